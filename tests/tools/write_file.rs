//! `write_file`: a file is replaced whole or stays as it is, and only where policy lets it.

mod asked;
mod closed;

use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::{Program, TestHost, skip};

async fn write(host: &TestHost, path: &str, content: &str) -> String {
    let result = host.result("write_file", json!({ "path": path, "content": content })).await;
    result.as_str().expect("a sentence").to_owned()
}

async fn refused(host: &TestHost, path: &str) -> Failure {
    host.failure("write_file", json!({ "path": path, "content": "new" })).await
}

fn content(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("a name in UTF-8")).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_holds_exactly_the_content() {
    let host = TestHost::new();
    for text in [
        "",
        "no final newline",
        "line\n",
        "\n\n\n",
        "one\r\ntwo\r\n",
        "Grüße, 世界, 🙂\n",
        "\u{feff}with a mark",
        "\u{1b}[31m\u{0}\u{7}\u{202e}",
        "$HOME `id` $(id) 'quoted' \"twice\" \\n\n",
    ] {
        let answer = write(&host, "a.txt", text).await;
        assert_eq!(content(host.work().join("a.txt")), text);
        let mark = if text.starts_with('\u{feff}') { " with a byte order mark" } else { "" };
        assert_eq!(answer, format!("Wrote {} bytes to a.txt{mark}", text.len()));
        assert_eq!(names(&host.work()), ["a.txt"]);
        std::fs::remove_file(host.work().join("a.txt")).expect("a file");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_its_line_endings_and_its_mark() {
    let host = TestHost::new();
    for (old, new, kept, said, as_given) in [
        ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n", " with CRLF line endings", "x\ny\n"),
        ("a\r\n", "x\ny\r\n", "x\r\ny\r\n", " with CRLF line endings", "x\ny\r\n"),
        ("\u{feff}a\r\n", "x\ny", "\u{feff}x\r\ny", " with a byte order mark and CRLF line endings", "x\ny"),
        ("\u{feff}a", "x\n", "\u{feff}x\n", " with a byte order mark", "x\n"),
        ("\u{feff}a", "\u{feff}x", "\u{feff}x", " with a byte order mark", "\u{feff}x"),
        ("a\nb\n", "x\r\ny\r\n", "x\ny\n", " with LF line endings", "x\r\ny\r\n"),
        ("a\nb\n", "x\n", "x\n", "", "x\n"),
        ("a", "x\r\n", "x\r\n", "", "x\r\n"),
        (
            "a\r\nb\n",
            "x\ny\n",
            "x\ny\n",
            "; it had both CRLF and LF line endings, and has those of the content now",
            "x\ny\n",
        ),
    ] {
        for tool in ["write_file", "file_write"] {
            let path = host.work().join("a.txt");
            std::fs::write(&path, old).expect("a file");
            let answer = host.result(tool, json!({ "path": "a.txt", "content": new })).await;
            assert_eq!(content(&path), kept, "{old:?}");
            assert_eq!(answer, format!("Wrote {} bytes to a.txt{said}", kept.len()), "{old:?}");
            std::fs::write(&path, old).expect("a file");
            host.result(tool, json!({ "path": "a.txt", "content": new, "line_endings": "as_given" })).await;
            assert_eq!(content(&path), as_given, "{old:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_written_in_the_encoding_that_is_asked_for() {
    let host = TestHost::new();
    let path = host.work().join("a.txt");
    let write = async |text: &str, encoding: &str| {
        host.call("write_file", json!({ "path": "a.txt", "content": text, "encoding": encoding })).await.outcome
    };
    let said = async |text, encoding| write(text, encoding).await.expect("it is written").result;
    assert_eq!(said("é\n", "utf-16le").await, "Wrote 6 bytes to a.txt in UTF-16LE with a byte order mark");
    assert_eq!(std::fs::read(&path).expect("a file"), b"\xff\xfe\xe9\0\n\0");
    std::fs::write(&path, b"a\0\r\0\n\0").expect("a file");
    assert_eq!(said("b\n", "utf-16le").await, "Wrote 6 bytes to a.txt in UTF-16LE with CRLF line endings");
    assert_eq!(std::fs::read(&path).expect("a file"), b"b\0\r\0\n\0");
    assert_eq!(said("caf\u{e9}\n", "latin1").await, "Wrote 5 bytes to a.txt in windows-1252");
    assert_eq!(std::fs::read(&path).expect("a file"), b"caf\xe9\n");
    let failure = write("a\n\u{2192}", "windows-1252").await.expect_err("no arrow");
    assert_eq!(failure.kind, Kind::InvalidArguments);
    assert!(
        failure.message.contains("`→` (U+2192) in line 2, column 1 of the new content; nothing"),
        "{}",
        failure.message
    );
    assert_eq!(std::fs::read(&path).expect("a file"), b"caf\xe9\n");
    assert_eq!(write("a", "utf-9").await.expect_err("no encoding").kind, Kind::InvalidArguments);
    std::fs::write(&path, b"\xff\xfea\0").expect("a file");
    let answer = host.result("write_file", json!({ "path": "a.txt", "content": "b" })).await;
    assert_eq!(answer, "Wrote 1 bytes to a.txt; it was UTF-16LE before");
    assert_eq!(content(&path), "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn shorter_content_leaves_nothing_of_the_longer() {
    let host = TestHost::new();
    write(&host, "a.txt", &"long\n".repeat(1000)).await;
    write(&host, "a.txt", "short").await;
    assert_eq!(content(host.work().join("a.txt")), "short");
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_start_at_the_working_directory_the_home_or_the_root() {
    let host = TestHost::new();
    std::fs::create_dir(host.work().join("sub")).expect("a directory");
    let absolute = host.work().join("absolute").display().to_string();
    for (path, place) in [
        ("relative", host.work().join("relative")),
        ("sub/../dotted", host.work().join("dotted")),
        ("sub/inner", host.work().join("sub/inner")),
        ("~/tilde", host.home().join("tilde")),
        (absolute.as_str(), host.work().join("absolute")),
        ("a b;id", host.work().join("a b;id")),
    ] {
        write(&host, path, path).await;
        assert_eq!(content(place), path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_has_the_mode_of_any_new_file() {
    let host = TestHost::new();
    std::fs::write(host.work().join("theirs"), "").expect("a file");
    write(&host, "ours", "").await;
    let mode = |name: &str| std::fs::metadata(host.work().join(name)).expect("a file").mode();
    assert_eq!(format!("{:o}", mode("ours")), format!("{:o}", mode("theirs")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_its_mode() {
    let host = TestHost::new();
    let path = host.work().join("run.sh");
    for mode in [0o600, 0o640, 0o666, 0o755] {
        std::fs::write(&path, "old").expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        write(&host, "run.sh", "new").await;
        assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o7777, mode);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_of_a_program_do_not_pass_to_content_that_a_tool_wrote() {
    let host = TestHost::new();
    let path = host.work().join("program");
    std::fs::write(&path, "old").expect("a file");
    std::fs::set_permissions(&path, Permissions::from_mode(0o6755)).expect("a mode");
    assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o7777, 0o6755);
    write(&host, "program", "new").await;
    assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o7777, 0o755);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_superuser_leaves_a_file_to_its_owner() {
    if !rustix::process::getuid().is_root() {
        skip!("only the superuser can give files away");
    }
    let host = TestHost::new();
    let path = host.work().join("a.txt");
    std::fs::write(&path, "old").expect("a file");
    std::os::unix::fs::chown(&path, Some(65534), Some(65533)).expect("the superuser gives files away");
    write(&host, "a.txt", "new").await;
    let metadata = std::fs::metadata(&path).expect("a file");
    assert_eq!((metadata.uid(), metadata.gid()), (65534, 65533));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_stays_and_its_target_gets_the_content() {
    let host = TestHost::new().without_canary();
    std::fs::write(host.home().join("target"), "old").expect("a file");
    symlink("../home/target", host.work().join("link")).expect("a link");
    write(&host, "link", "new").await;
    assert_eq!(content(host.home().join("target")), "new");
    assert!(host.work().join("link").is_symlink());
    assert_eq!((names(&host.work()), names(&host.home())), (vec!["link".to_owned()], vec!["target".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_nowhere_is_not_followed() {
    let host = TestHost::new().without_canary();
    symlink(host.home().join("new"), host.work().join("link")).expect("a link");
    let failure = refused(&host, "link").await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(host.work().join("link").is_symlink() && names(&host.home()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_name_of_the_old_content_keeps_it() {
    let host = TestHost::new();
    std::fs::write(host.home().join("elsewhere"), "old").expect("a file");
    std::fs::hard_link(host.home().join("elsewhere"), host.work().join("here")).expect("a hard link");
    write(&host, "here", "new").await;
    assert_eq!(
        (content(host.work().join("here")), content(host.home().join("elsewhere"))),
        ("new".into(), "old".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_refused_and_stays() {
    let host = TestHost::new();
    let work = host.work();
    std::fs::create_dir(work.join("directory")).expect("a directory");
    std::fs::write(work.join("file"), "old").expect("a file");
    let _listener = UnixListener::bind(work.join("socket")).expect("a socket");
    let before = names(&work);
    for (path, message) in [
        ("directory", "is a directory"),
        ("directory/", "is a directory"),
        (".", "is a directory"),
        ("~", "is a directory"),
        ("socket", "is not a regular file"),
        ("file/", "a part of the path is not a directory"),
        ("file/below", "a part of the path is not a directory"),
        ("new/", "ends like a directory and does not exist"),
        ("missing/new", "no such file or directory"),
        ("missing/../new", "no such file or directory"),
    ] {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::ExecutionFailed, "{path}: {}", failure.message);
        assert!(failure.message.contains(message), "{path}: {}", failure.message);
        assert_eq!(names(&work), before, "{path}");
    }
    assert_eq!(content(work.join("file")), "old");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_directory_is_said_to_be_needed() {
    let failure = refused(&TestHost::new(), "missing/new.txt").await;
    assert_eq!(failure.message, "`missing/new.txt`: no such file or directory");
    assert_eq!(failure.hint.as_deref(), Some("check the path; its directory must exist"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_is_refused_without_waiting_for_its_other_end() {
    let host = TestHost::new();
    host.shell("mkfifo pipe").await;
    let answered = tokio::time::timeout(Duration::from_secs(10), refused(&host, "pipe")).await;
    let Ok(failure) = answered else {
        let _other_end = std::fs::File::options().read(true).write(true).open(host.work().join("pipe"));
        panic!("it waited for somebody who reads");
    };
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.ends_with("is not a regular file"), "{}", failure.message);
    assert_eq!(names(&host.work()), ["pipe"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_name_no_file_are_invalid() {
    let host = TestHost::new();
    let long = "d/".repeat(2500);
    for (path, message) in [
        ("", "`path` is blank"),
        (" \n\t", "`path` is blank"),
        ("a\0.txt", "path contains a NUL byte"),
        (long.as_str(), "path is 5000 bytes long (limit: 4096 bytes)"),
    ] {
        let failure = refused(&host, path).await;
        assert_eq!((failure.kind, failure.message.as_str()), (Kind::InvalidArguments, message));
    }
    assert!(names(&host.work()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_longer_than_the_file_system_takes_is_refused() {
    let host = TestHost::new();
    let failure = refused(&host, &"n".repeat(300)).await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.contains("longer than the file system accepts (255 bytes)"), "{}", failure.message);
    write(&host, &"n".repeat(255), "fits").await;
    assert_eq!(names(&host.work()), ["n".repeat(255)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_content_is_written_and_more_than_a_call_takes_changes_nothing() {
    let host = TestHost::new();
    let fits = "x".repeat(3 << 20);
    write(&host, "a.txt", &fits).await;
    let over = json!({ "path": "a.txt", "content": "y".repeat(5 << 20) });
    assert_eq!(host.failure("write_file", over).await.kind, Kind::InvalidArguments);
    assert!(content(host.work().join("a.txt")) == fits, "a refused write changed the file");
    assert_eq!(write(&host, "b.txt", "next").await, "Wrote 4 bytes to b.txt");
}

#[tokio::test(flavor = "multi_thread")]
async fn content_beyond_the_limit_of_a_host_call_changes_nothing() {
    let host = TestHost::new().set("limits.host_call_kib=64");
    write(&host, "a.txt", "old").await;
    let failure = host.failure("write_file", json!({ "path": "a.txt", "content": "y".repeat(100_000) })).await;
    assert_eq!(failure.kind, Kind::Limit);
    assert_eq!(failure.message, "limit: bytes from the guest in one host call 64 KiB");
    assert_eq!((content(host.work().join("a.txt")), names(&host.work())), ("old".into(), vec!["a.txt".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_are_named() {
    let host = TestHost::new();
    for arguments in [
        json!({ "path": "a" }),
        json!({ "path": "a", "content": 7 }),
        json!({ "path": "a", "content": null }),
        json!({ "path": "a", "content": ["x"] }),
        json!({ "path": {}, "content": "x" }),
        json!({ "path": "a", "content": "x", "append": true }),
    ] {
        let failure = host.failure("write_file", arguments.clone()).await;
        assert_eq!(failure.kind, Kind::InvalidArguments, "{arguments}: {}", failure.message);
        let hint = "`write_file` takes {\"path\": string, \"content\": string";
        assert!(failure.hint.as_deref().is_some_and(|said| said.starts_with(hint)), "{arguments}: {:?}", failure.hint);
    }
    assert!(names(&host.work()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_one_time_leave_the_whole_content_of_one() {
    let host = Arc::new(TestHost::new());
    let contents: Vec<String> = ('a'..='t').map(|letter| letter.to_string().repeat(100_000)).collect();
    // Each file is new to the first of its writers; the others may meet its name at any moment.
    let files: Vec<String> = (0..10).map(|file| format!("{file}.txt")).collect();
    for file in &files {
        let mut calls = tokio::task::JoinSet::new();
        for text in contents.clone() {
            let (host, file) = (host.clone(), file.clone());
            calls.spawn(async move { write(&host, &file, &text).await });
        }
        calls.join_all().await;
        assert!(contents.contains(&content(host.work().join(file))), "contents were mixed");
    }
    assert_eq!(names(&host.work()), files);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_its_owner_made_read_only_stays() {
    let program = Program::new();
    program.write("work/kept.txt", "old");
    std::fs::set_permissions(program.path("work/kept.txt"), Permissions::from_mode(0o444)).expect("a mode");
    let arguments = ["write_file", "path=kept.txt", "content=new"];
    let Some((code, envelope)) = crate::ordinary_user::call(&program, &arguments) else {
        skip!("the program cannot be started as another user");
    };
    assert_eq!(code, 12, "{envelope}");
    let message = envelope["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("permission denied by the system"), "{message}");
    assert_eq!(content(program.path("work/kept.txt")), "old");
    assert_eq!(names(&program.path("work")), ["kept.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_its_owner_made_read_only_gets_no_file() {
    let program = Program::new();
    program.write("work/locked/kept.txt", "old");
    std::fs::set_permissions(program.path("work/locked"), Permissions::from_mode(0o555)).expect("a mode");
    for name in ["kept.txt", "new.txt"] {
        let path = format!("path=locked/{name}");
        let Some((code, envelope)) = crate::ordinary_user::call(&program, &["write_file", &path, "content=new"]) else {
            skip!("the program cannot be started as another user");
        };
        assert_eq!(code, 12, "{envelope}");
    }
    assert_eq!(content(program.path("work/locked/kept.txt")), "old");
    assert_eq!(names(&program.path("work/locked")), ["kept.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_turns_writing_off() {
    let host = TestHost::new().set("tools.files_enabled=false");
    let failure = refused(&host, "a.txt").await;
    assert_eq!(failure.message, "`files` is switched off by `tools.files_enabled = false`");
    assert_eq!((failure.kind, names(&host.work()).len()), (Kind::Denied, 0));
}
