//! `read_file`: text of regular files, a piece at a time, and nothing of what is closed.

mod closed;
mod pages;

use serde_json::json;
use std::os::unix::net::UnixListener;
use std::time::Duration;
use toolcrib::envelope::{Content, Failure, Kind, Output};
use toolcrib_tests::{Program, TestHost, skip};

async fn read(host: &TestHost, path: &str) -> Output {
    let outcome = host.call("read_file", json!({ "path": path })).await.outcome;
    outcome.unwrap_or_else(|failure| panic!("{path}: {}", failure.message))
}

async fn refused(host: &TestHost, path: &str) -> Failure {
    host.failure("read_file", json!({ "path": path })).await
}

/// A host in whose working directory a file holds this.
fn holding(name: &str, content: impl AsRef<[u8]>) -> TestHost {
    let host = TestHost::new();
    std::fs::write(host.work().join(name), content).expect("a file");
    host
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_returned_as_it_stands() {
    let host = TestHost::new();
    for content in [
        "",
        "\n",
        "no final newline",
        "two\nlines\n",
        "\n\n  leading and trailing  \n\n",
        "a\ttab\n",
        "Grüße, 世界, 🙂 and e\u{301}\n",
        "it's \"quoted\" $HOME `id` $(id) \\n %s {}\n",
        "...[truncated]",
    ] {
        std::fs::write(host.work().join("a.txt"), content).expect("a file");
        let output = read(&host, "a.txt").await;
        assert_eq!((output.result, output.notices), (json!(content), vec![]), "{content:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_write_file_wrote_is_read_back() {
    let host = TestHost::new();
    let content = "# Grüße\n\n- 世界 🙂\n\tend";
    host.result("write_file", json!({ "path": "a.md", "content": content })).await;
    assert_eq!(host.result("read_file", json!({ "path": "a.md" })).await, content);
}

#[tokio::test(flavor = "multi_thread")]
async fn carriage_returns_are_left_away_and_said() {
    let host = TestHost::new();
    for (content, which) in [("one\r\ntwo\r\n", "its lines"), ("one\r\ntwo\n", "some lines")] {
        std::fs::write(host.work().join("dos.txt"), content).expect("a file");
        let output = read(&host, "dos.txt").await;
        assert_eq!(output.result, "one\ntwo\n");
        let said = format!("`dos.txt` ends {which} with CRLF, which edits keep; a line break stands for it here");
        assert_eq!(output.notices, [said]);
    }
}

/// Nothing of a file reaches a terminal or a model as a control, and nothing of it is hidden.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_characters_are_shown_as_their_code_points() {
    let output = read(&holding("log", "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}text\u{0}"), "log").await;
    assert_eq!(output.result, r"\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}text\u{0}");
    assert_eq!(output.notices, [""; 0]);
    let output = read(&holding("a.txt", "\u{feff}user\u{200b}name \u{202e}x\rb\u{ad}c 👩\u{200d}💻"), "a.txt").await;
    assert_eq!(output.result, "user\\u{200b}name \\u{202e}x\\u{d}b\\u{ad}c 👩\u{200d}💻");
    assert_eq!(output.notices, [""; 0]);
}

/// A PNG of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_shown() {
    // That it is all text is no matter.
    let riff = [b"RIFF\x04\0\0\0WEBP".as_slice(), b"abc"].concat();
    let images = [
        ("a.png", PIXEL, "image/png"),
        ("no name of an image", b"\xff\xd8\xff\xe0\0\x10JFIF".as_slice(), "image/jpeg"),
        ("a.gif", b"GIF89a\x01\0\x01\0\0\0\0".as_slice(), "image/gif"),
        ("a.webp", &riff, "image/webp"),
    ];
    let host = TestHost::new();
    for (name, bytes, media_type) in images {
        std::fs::write(host.work().join(name), bytes).expect("a file");
        let output = read(&host, name).await;
        assert_eq!(output.result, format!("`{name}` is an image, {media_type}, {} bytes", bytes.len()));
        assert_eq!(output.notices, [""; 0], "{name}");
        assert_eq!(output.content, [Content::Image(media_type.into(), bytes.into())], "{name}");
        let other = host.failure("file_read", json!({ "path": name })).await;
        assert!(other.message.contains("is not text: it is a"), "{}", other.message);
        assert_eq!(other.hint.as_deref(), Some("look at it with `read_file`"));
    }
    let most = 1_000 << 10;
    for (size, is_shown) in [(most, true), (most + 1, false)] {
        let mut large = PIXEL.to_vec();
        large.resize(size, 0);
        std::fs::write(host.work().join("large.png"), large).expect("a file");
        let outcome = host.call("read_file", json!({ "path": "large.png" })).await.outcome;
        assert_eq!(outcome.is_ok(), is_shown, "{size}: {:?}", outcome.err());
    }
    let failure = refused(&host, "large.png").await;
    assert_eq!(failure.kind, Kind::Limit);
    assert_eq!(failure.message, "`large.png` is an image of 1024001 bytes, more than the 1000 KiB that are shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_is_refused_with_what_reads_it() {
    let failure = refused(&holding("a.pdf", "%PDF-1.7\n1 0 obj\n"), "a.pdf").await;
    assert_eq!(failure.message, "`a.pdf` is not text: it is a PDF");
    assert_eq!(failure.hint.as_deref(), Some("read its text with run_shell: `pdftotext FILE -`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn text_in_another_encoding_is_read_by_its_name() {
    let host = TestHost::new();
    let utf_16: Vec<u8> =
        format!("\u{feff}é 🙂\r\n{}end", "x".repeat(9_000)).encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(host.work().join("a.txt"), utf_16).expect("a file");
    let failure = refused(&host, "a.txt").await;
    assert_eq!(failure.message, "`a.txt` is not UTF-8: its byte order mark says UTF-16LE");
    assert_eq!(failure.hint.as_deref(), Some("set `encoding` to `utf-16le`"));
    let read = async |arguments| host.call("read_file", arguments).await.outcome.expect("a text");
    let output = read(json!({ "path": "a.txt", "encoding": "utf-16le" })).await;
    let text = output.result.as_str().expect("a text");
    assert!(text.starts_with("é 🙂\nxxx") && text.ends_with("x...[truncated]"), "{text}");
    // It reads on where the notice says.
    let next: u64 = output.notices[0]
        .split("to ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("a place")
        .parse()
        .expect("a number");
    let output = read(json!({ "path": "a.txt", "encoding": "utf-16le", "offset": next })).await;
    assert!(
        output.result.as_str().is_some_and(|text| text.starts_with('x') && text.ends_with("xend")),
        "{}",
        output.result
    );
    std::fs::write(host.work().join("b.txt"), b"caf\xe9 cr\xe8me\n").expect("a file");
    let failure = refused(&host, "b.txt").await;
    assert!(failure.message.ends_with("it may be windows-1252, which is a guess"), "{}", failure.message);
    assert!(failure.hint.is_some_and(|hint| hint.starts_with("set `encoding` to `windows-1252`; or look at it")));
    for tool in ["read_file", "file_read"] {
        let text = host.result(tool, json!({ "path": "b.txt", "encoding": "windows-1252" })).await;
        assert_eq!(text, "café crème\n", "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_start_at_the_working_directory_the_home_or_the_root() {
    let host = holding("here.txt", "work");
    std::fs::write(host.home().join("there.txt"), "home").expect("a file");
    std::fs::create_dir(host.work().join("sub")).expect("a directory");
    let absolute = host.work().join("here.txt").display().to_string();
    for path in ["here.txt", "./here.txt", "sub/../here.txt", "sub/.././/here.txt", absolute.as_str()] {
        assert_eq!(read(&host, path).await.result, "work", "{path}");
    }
    assert_eq!(read(&host, "~/there.txt").await.result, "home");
    assert_eq!(read(&host, "../home/there.txt").await.result, "home");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubled_slash_does_not_leave_the_home() {
    let host = TestHost::new();
    std::fs::create_dir(host.home().join("etc")).expect("a directory");
    std::fs::write(host.home().join("etc/passwd"), "home").expect("a file");
    assert_eq!(read(&host, "~//etc/passwd").await.result, "home");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_may_hold_anything_that_a_file_system_takes() {
    let host = TestHost::new();
    for name in ["a b", "it's", "-rf", "$HOME", "a;id", "a\nb", "*", "~", "世界", "\\", "#"] {
        std::fs::write(host.work().join(name), name).expect("a file");
        assert_eq!(read(&host, &format!("./{name}")).await.result, name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_users_home_is_a_name_like_any_other() {
    assert_eq!(read(&holding("~root", "mine"), "~root").await.result, "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_user_can_read_is_open() {
    let output = read(&TestHost::new(), "/etc/passwd").await;
    assert!(output.result.as_str().is_some_and(|text| text.contains("root:")), "{}", output.result);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_between_open_files_are_followed() {
    let host = holding("a.txt", "text");
    std::os::unix::fs::symlink("a.txt", host.work().join("one")).expect("a link");
    std::os::unix::fs::symlink("one", host.work().join("two")).expect("a link");
    assert_eq!(read(&host, "two").await.result, "text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_name_of_a_file_is_no_hindrance_to_an_unconfined_plugin() {
    let host = holding("a.txt", "text");
    std::fs::hard_link(host.work().join("a.txt"), host.work().join("b.txt")).expect("a hard link");
    assert_eq!(read(&host, "b.txt").await.result, "text");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said_with_its_path() {
    let host = holding("a.txt", "text");
    for (path, message) in [
        ("gone.txt", "no such file or directory"),
        ("gone/a.txt", "no such file or directory"),
        ("a.txt/b", "a part of the path is not a directory"),
        ("a.txt/", "a part of the path is not a directory"),
    ] {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::ExecutionFailed, "{path}: {}", failure.message);
        assert!(
            failure.message.contains(message) && failure.message.contains(path.trim_end_matches('/')),
            "{}",
            failure.message
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_refused_with_what_lists_it() {
    let host = TestHost::new();
    std::fs::create_dir(host.work().join("sub")).expect("a directory");
    for path in ["sub", "sub/", ".", "..", "~", "/"] {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::ExecutionFailed, "{path}: {}", failure.message);
        assert!(failure.message.ends_with("is a directory"), "{path}: {}", failure.message);
        assert!(failure.hint.is_some_and(|hint| hint.contains("ls -la")), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_file_is_refused_with_the_place_of_its_first_fault() {
    let host = holding("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\xff\0\0\0");
    let failure = refused(&host, "program").await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert_eq!(failure.message, "`program` is not text: byte 12 of 16 is not valid UTF-8");
    assert!(failure.hint.is_some_and(|hint| hint.contains("run_shell")));
    std::fs::write(host.work().join("cut"), b"ab\xf0\x9f").expect("a file");
    assert!(refused(&host, "cut").await.message.contains("is not text"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_is_refused_without_waiting_for_its_other_end() {
    let host = TestHost::new();
    host.shell("mkfifo pipe").await;
    let answered = tokio::time::timeout(Duration::from_secs(10), refused(&host, "pipe")).await;
    let Ok(failure) = answered else {
        let _other_end = std::fs::File::options().read(true).write(true).open(host.work().join("pipe"));
        panic!("it waited for somebody who writes");
    };
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.ends_with("is not a regular file"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_is_refused() {
    let host = TestHost::new();
    let _listener = UnixListener::bind(host.work().join("socket")).expect("a socket");
    let failure = refused(&host, "socket").await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.ends_with("is not a regular file"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_links_is_refused() {
    let host = TestHost::new();
    std::os::unix::fs::symlink("two", host.work().join("one")).expect("a link");
    std::os::unix::fs::symlink("one", host.work().join("two")).expect("a link");
    let failure = refused(&host, "one").await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.contains("is a loop of links"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_name_no_file_are_invalid() {
    let host = TestHost::new();
    let long = "d/".repeat(2500);
    for (path, message) in [
        ("", "`path` is blank"),
        (" \n\t", "`path` is blank"),
        ("a\0.txt", "path contains a NUL byte"),
        ("/etc/passwd\0.png", "path contains a NUL byte"),
        (long.as_str(), "path is 5000 bytes long (limit: 4096 bytes)"),
    ] {
        let failure = refused(&host, path).await;
        assert_eq!((failure.kind, failure.message.as_str()), (Kind::InvalidArguments, message));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_longer_than_the_file_system_takes_is_refused() {
    let failure = refused(&TestHost::new(), &"n".repeat(300)).await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.contains("longer than the file system accepts (255 bytes)"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_are_named() {
    let host = TestHost::new();
    for arguments in [
        json!({ "path": 7 }),
        json!({ "path": ["a"] }),
        json!({ "path": null }),
        json!({ "path": "a", "offset": -1 }),
        json!({ "path": "a", "offset": 1.5 }),
        json!({ "path": "a", "offset": "one" }),
        json!({ "path": "a", "why": {} }),
    ] {
        let failure = host.failure("read_file", arguments.clone()).await;
        assert_eq!(failure.kind, Kind::InvalidArguments, "{arguments}: {}", failure.message);
        assert!(
            failure.hint.is_some_and(|hint| hint.starts_with("`read_file` takes {\"path\": string")),
            "{arguments}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_system_forbids_is_said() {
    use std::os::unix::fs::PermissionsExt;
    let program = Program::new();
    program.write("work/private.txt", "text");
    let mode = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(program.path("work/private.txt"), mode).expect("a mode");
    let Some((code, envelope)) = crate::ordinary_user::call(&program, &["read_file", "path=private.txt"]) else {
        skip!("the program cannot be started as another user");
    };
    assert_eq!(code, 12, "{envelope}");
    let message = envelope["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("permission denied by the system"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_turns_reading_off() {
    let host = holding("a.txt", "text").set("tools.files_enabled=false");
    let failure = refused(&host, "a.txt").await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "`files` is switched off by `tools.files_enabled = false`");
}
