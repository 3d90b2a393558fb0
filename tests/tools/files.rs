//! `file_read`, `file_write`, `file_list`, and what only other plugins ask of files. The numbers are those of the cases of agents that are made of
//! several processes.

use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::{ActionKind, Answer};
use toolcrib_tests::TestHost;

fn made(content: &str) -> TestHost {
    let host = TestHost::new();
    std::fs::write(host.work().join("file"), content).expect("a file");
    host
}

#[tokio::test]
async fn a_file_is_read_whole_or_by_lines() {
    let host = made("one\ntwo\nthree\n");
    let read = async |more: Value| {
        let mut arguments = json!({ "path": "file" });
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        host.call("file_read", arguments).await
    };
    let shown = |envelope: toolcrib::envelope::Envelope| {
        let output = envelope.outcome.expect("a result");
        (output.result, output.notices.join("\n"))
    };
    assert_eq!(shown(read(json!({})).await), (json!("one\ntwo\nthree\n"), String::new()));
    let on = "`file` goes on; set `offset` to 3 to read on";
    assert_eq!(shown(read(json!({ "offset": 2, "limit": 1 })).await), (json!("2\ttwo\n"), on.into()));
    let past = "`offset` 9 is past the end: `file` has 3 lines";
    assert_eq!(shown(read(json!({ "offset": 9 })).await), (json!(""), past.into()));
    for odd in [json!({ "offset": 0 }), json!({ "limit": 0 }), json!({ "offset": -1 }), json!({ "lines": 3 })] {
        assert_eq!(read(odd.clone()).await.outcome.expect_err("refused").kind, Kind::InvalidArguments, "{odd}");
    }
    // Longer than all that is read at once.
    std::fs::write(host.work().join("file"), format!("{}\nlast\n", "ü".repeat(600_000))).expect("a file");
    assert_eq!(shown(read(json!({ "offset": 2 })).await).0, "2\tlast\n");
}

#[tokio::test]
async fn directories_above_a_file_are_made() {
    let host = TestHost::new();
    let write = |path: &str| json!({ "path": path, "content": "x" });
    assert_eq!(host.result("file_write", write("a/b/c")).await, "Wrote 1 bytes to a/b/c");
    assert_eq!(host.result("file_write", write("a/b/d")).await, "Wrote 1 bytes to a/b/d");
    let mut without = write("e/f");
    without["create_dirs"] = false.into();
    assert_eq!(host.failure("file_write", without).await.kind, Kind::ExecutionFailed);
    assert!(!host.work().join("e").exists());
    let below = host.failure("file_write", write("a/b/c/d")).await;
    assert_eq!(below.kind, Kind::ExecutionFailed);
    assert!(below.message.contains("is not a directory"), "{}", below.message);
}

/// Cases 32 and 36: nothing is made where nothing may be written, nor by a path that leads back.
#[tokio::test]
async fn no_directory_is_made_elsewhere() {
    let host = TestHost::new().answering(Answer::Yes);
    symlink("/etc", host.work().join("link")).expect("a link");
    for path in [
        "nope/../../x/y",
        "nope/../x/y",
        "/etc/toolcrib-x/y",
        "link/toolcrib-x/y",
        "~/.ssh/x/y",
        "/proc/x/y",
        "/sys/x/y",
    ] {
        let failure = host.failure("file_write", json!({ "path": path, "content": "x" })).await;
        assert!(matches!(failure.kind, Kind::Denied | Kind::ExecutionFailed), "{path}: {}", failure.message);
    }
    assert!(host.asked().is_empty(), "{:?}", host.asked());
    for path in ["nope", "x", "../x"] {
        assert!(!host.work().join(path).exists(), "{path}");
    }
    assert!(!std::path::Path::new("/etc/toolcrib-x").exists() && !host.home().join(".ssh").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_about_a_directory_outside() {
    for (answer, is_made) in [(Answer::No, false), (Answer::Yes, true)] {
        let host = TestHost::new().answering(answer);
        let outcome = host.call("file_write", json!({ "path": "~/new/file", "content": "x" })).await.outcome;
        assert_eq!(outcome.is_ok(), is_made);
        let asked = &host.asked()[0];
        assert_eq!(
            (asked.kind, asked.action.as_str()),
            (ActionKind::Write, host.home().join("new").to_str().expect("text"))
        );
        assert!(
            asked.details.as_deref().is_some_and(|details| details.starts_with("a new directory; it lies outside")),
            "{asked:?}"
        );
        assert_eq!(host.home().join("new").is_dir(), is_made);
        if is_made {
            // For what is there nobody is asked but for the file.
            let before = host.asked().len();
            host.result("file_write", json!({ "path": "~/new/other", "content": "x" })).await;
            assert_eq!(host.asked().len(), before + 1);
        }
    }
}

/// Case 35.
#[tokio::test]
async fn the_first_entries_are_listed_in_order_and_all_are_counted() {
    let host = made("content");
    std::fs::create_dir(host.work().join("many")).expect("a directory");
    for number in (0..600).rev() {
        std::fs::write(host.work().join(format!("many/{number:03}")), "").expect("a file");
    }
    let output = host.call("file_list", json!({ "path": "many" })).await.outcome.expect("a result");
    assert_eq!(
        output.notices,
        ["these are the first 500 of 600 entries; `run_shell` with `ls` or `find` shows others"]
    );
    let listed = output.result;
    let names: Vec<_> =
        listed["entries"].as_array().expect("a list").iter().map(|entry| entry["name"].clone()).collect();
    let expected: Vec<_> = (0..500).map(|number| json!(format!("{number:03}"))).collect();
    assert_eq!((names, &listed["total"]), (expected, &json!(600)));
    symlink("/nowhere", host.work().join(".link")).expect("a link");
    let all = host.result("file_list", json!({})).await;
    let expected = json!([
        { "name": ".link", "type": "link" },
        { "name": "file", "type": "file", "size": 7 },
        { "name": "many", "type": "directory" },
    ]);
    assert_eq!(all, json!({ "entries": expected, "total": 3 }));
}

#[tokio::test]
async fn what_cannot_be_listed_says_why() {
    let host = made("content");
    std::fs::create_dir(host.home().join(".ssh")).expect("a directory");
    for (path, kind, why) in [
        ("file", Kind::ExecutionFailed, "is not a directory"),
        ("missing", Kind::ExecutionFailed, "no such file or directory"),
        (" ", Kind::InvalidArguments, "is blank"),
        ("~/.ssh", Kind::Denied, "is closed to tools"),
        ("/proc/self", Kind::Denied, "which file tools never access"),
    ] {
        let failure = host.failure("file_list", json!({ "path": path })).await;
        assert!(failure.kind == kind && failure.message.contains(why), "{path}: {failure:?}");
    }
    let kept = TestHost::new().set("tools.files_read_paths=[\"/nowhere\"]");
    assert_eq!(kept.failure("file_list", json!({})).await.kind, Kind::Denied);
}

#[tokio::test]
async fn plugins_append_and_read_bytes_within_their_grants() {
    let host = TestHost::new()
        .plugin("hostile")
        .grant("hostile", "files.read=[\"/tmp\"]")
        .set("plugin.hostile.files.write=[\"/tmp\"]");
    let path = host.work().join("file");
    let ask = async |how: &str, path: &std::path::Path, number: u64| {
        let text = path.display().to_string();
        host.result("hostile", json!({ "how": how, "text": text, "number": number })).await
    };
    assert_eq!(ask("append", &path, 2).await, "Ok(2)");
    std::fs::write(&path, b"\xff\x00").expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("a mode");
    assert_eq!(ask("append", &path, 3).await, "Ok(5)");
    assert_eq!(std::fs::read(&path).expect("a file"), b"\xff\x00xxx");
    assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o640);
    assert_eq!(ask("bytes", &path, 1).await, "Ok([0, 120, 120, 120]) Ok((EntryKind::File, 5))");
    assert_eq!(ask("bytes", &path, 9).await, "Ok([]) Ok((EntryKind::File, 5))");
    assert_eq!(ask("bytes", &host.work(), 0).await, "Err(\"execution_failed\") Ok((EntryKind::Directory, 0))");
    assert_eq!(ask("make_directory", &host.work().join("new"), 0).await, "Ok(true)");
    assert_eq!(ask("make_directory", &host.work().join("new"), 0).await, "Ok(false)");
    assert_eq!(ask("list", &host.work(), 1).await, "Ok((1, 2))");
    std::fs::write(&path, vec![0; (4 << 20) + 1]).expect("a file");
    assert_eq!(ask("append", &path, 1).await, "Err(\"limit\")");
    for (how, refused) in [
        ("append", "Err(\"denied\")"),
        ("make_directory", "Err(\"denied\")"),
        ("list", "Err(\"denied\")"),
        ("bytes", "Err(\"denied\") Err(\"denied\")"),
    ] {
        assert_eq!(ask(how, std::path::Path::new("/opt/x"), 1).await, refused, "{how}");
    }
}
