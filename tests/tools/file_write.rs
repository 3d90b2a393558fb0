//! `file_write`: a file with the directories above it, and what only other plugins ask of files. The numbers are those of the cases of agents that
//! are made of several processes.

use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::{ActionKind, Answer};
use toolcrib_tests::TestHost;

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
    // Case 32: where a list decides, it decides on where the path would lead.
    let listed = TestHost::new().set("tools.files_allowed_paths=[\"/srv\"]");
    let refused = listed.failure("file_write", json!({ "path": "nope/../../x", "content": "x" })).await;
    assert_eq!(refused.kind, Kind::Denied, "{refused:?}");
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
