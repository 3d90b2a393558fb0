//! `file_undo`: what file tools changed is put back, and nothing that somebody else changed since is lost.

use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::Answer;
use toolcrib_tests::TestHost;

async fn write(host: &TestHost, path: &str, content: &str) {
    host.result("write_file", json!({ "path": path, "content": content })).await;
}

fn content(host: &TestHost, path: &str) -> String {
    std::fs::read_to_string(host.work().join(path)).expect("a file")
}

#[tokio::test]
async fn the_last_change_is_undone_and_the_one_before_that_by_a_second_call() {
    let host = TestHost::new();
    let file = host.work().join("a");
    std::fs::write(&file, "one\r\n").expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o750)).expect("a mode");
    write(&host, "a", "two").await;
    host.result("file_edit", json!({ "path": "a", "old_string": "two", "new_string": "three" })).await;
    assert_eq!(host.result("file_undo", json!({})).await, format!("{} is as it was before", file.display()));
    assert_eq!(content(&host, "a"), "two");
    host.result("file_undo", json!({})).await;
    assert_eq!(content(&host, "a"), "one\r\n");
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o750);
    let nothing = host.failure("file_undo", json!({})).await;
    assert_eq!(nothing.message, "no call of this session has changed a file by a file tool");
}

#[tokio::test]
async fn a_new_file_is_removed_and_a_path_chooses_the_file() {
    let host = TestHost::new();
    for path in ["a", "b"] {
        write(&host, path, "x").await;
    }
    host.result("file_undo", json!({ "path": "a" })).await;
    assert!(!host.work().join("a").exists() && host.work().join("b").exists());
    let unknown = host.failure("file_undo", json!({ "path": "c" })).await;
    assert!(
        unknown.message.starts_with("no call of this session has changed `c` by a file tool"),
        "{}",
        unknown.message
    );
    assert_eq!(host.failure("file_undo", json!({ "path": " " })).await.kind, Kind::InvalidArguments);
}

#[tokio::test]
async fn what_somebody_changed_since_stays_and_is_shown() {
    let host = TestHost::new();
    write(&host, "a", "one\n").await;
    write(&host, "a", "two\n").await;
    std::fs::write(host.work().join("a"), "a person's\n").expect("a file");
    let refused = host.failure("file_undo", json!({})).await;
    assert!(refused.message.ends_with("has changed since; it was left as it is"), "{}", refused.message);
    let hint = refused.hint.expect("a hint");
    assert!(hint.contains("-a person's\n+one"), "{hint}");
    assert_eq!(content(&host, "a"), "a person's\n");
    std::fs::remove_file(host.work().join("a")).expect("a file");
    let gone = host.failure("file_undo", json!({ "path": "a" })).await;
    assert!(gone.message.contains("it was left as it is"), "{}", gone.message);
    assert!(!host.work().join("a").exists());
}

/// Who may write need not be allowed to read.
#[tokio::test]
async fn what_may_not_be_read_is_not_shown() {
    let host = TestHost::new().set("plugin.file_undo.files.read=[]");
    write(&host, "a", "one\n").await;
    std::fs::write(host.work().join("a"), "a person's\n").expect("a file");
    let refused = host.failure("file_undo", json!({})).await;
    assert!(refused.message.ends_with("has changed since; it was left as it is"), "{}", refused.message);
    assert_eq!(refused.hint.as_deref(), Some("make the change yourself"));
}

/// A session undoes its own changes alone.
#[tokio::test]
async fn another_session_has_nothing_to_undo() {
    let host = TestHost::new();
    write(&host, "a", "x").await;
    let (called, context) = host.parts();
    let other = context.clone().session(Arc::new(Session::default()));
    let request = Request { tool: "file_undo".into(), arguments: Arguments::Json(json!({ "path": "a" })) };
    let refused = called.call(request, &other).await.outcome.expect_err("another session");
    assert!(refused.message.starts_with("no call of this session"), "{}", refused.message);
    assert!(host.work().join("a").exists());
}

/// To put a file back is to write it: the grant decides, a person is asked where that is so, and a link leads nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_writing_hold() {
    let host = TestHost::new().answering(Answer::Yes);
    write(&host, "~/outside", "x").await;
    assert_eq!(host.asked().len(), 1);
    host.result("file_undo", json!({})).await;
    assert_eq!(host.asked().len(), 2, "to undo outside the workspace is asked as well");
    assert!(!host.home().join("outside").exists());

    let closed = TestHost::new().set("plugin.file_undo.files.write=[]");
    write(&closed, "a", "x").await;
    assert_eq!(closed.failure("file_undo", json!({})).await.kind, Kind::Denied);
    assert!(closed.work().join("a").exists());

    let linked = TestHost::new();
    std::fs::create_dir(linked.work().join("d")).expect("a directory");
    write(&linked, "d/a", "x").await;
    std::fs::rename(linked.work().join("d"), linked.work().join("e")).expect("moved");
    symlink("e", linked.work().join("d")).expect("a link");
    let refused = linked.failure("file_undo", json!({})).await;
    assert!(refused.message.contains("leads elsewhere by now"), "{}", refused.message);
    assert!(linked.work().join("e/a").exists());
}

#[tokio::test]
async fn a_file_that_is_too_large_is_told_when_it_is_written() {
    let host = TestHost::new();
    std::fs::write(host.work().join("a"), vec![b'x'; (8 << 20) + 1]).expect("a file");
    let envelope = host.call("write_file", json!({ "path": "a", "content": "x" })).await;
    let notices = format!("{:?}", envelope.outcome.expect("it was written").notices);
    assert!(notices.contains("this change cannot be undone: it had more than 8 MiB"), "{notices}");
}

/// Runs a command.
async fn shell(host: &TestHost, text: &str) {
    let result = host.result("run_shell", toolcrib_tests::shell::command(text)).await;
    assert_eq!(result["exit_code"], 0, "{result}");
}

/// By its path, and by the rules of writing.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_command_changed_comes_back_as_it_was() {
    let host = TestHost::new().answering(Answer::Yes);
    for (path, text) in
        [("a", "one"), ("d/b", "one"), (".gitignore", "ignored\n"), ("ignored", "one"), (".envrc", "one")]
    {
        let path = host.work().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    shell(&host, "echo two > a; rm -r d; echo two > ignored; echo new > new").await;
    for path in ["a", "d/b"] {
        host.result("file_undo", json!({ "path": path })).await;
        assert_eq!(content(&host, path), "one");
    }
    // It was an ordinary write, which can be undone.
    host.result("file_undo", json!({ "path": "a" })).await;
    assert_eq!(content(&host, "a"), "two\n");
    let refused = host.failure("file_undo", json!({ "path": "ignored" })).await;
    assert!(refused.message.contains("no checkpoint of this session has it otherwise"), "{}", refused.message);
    let new = host.failure("file_undo", json!({ "path": "new" })).await;
    assert!(new.message.ends_with("was not there before"), "{}", new.message);
    assert!(host.work().join("new").exists());
    // What acts by itself is asked about, as any write of it.
    std::fs::write(host.work().join(".envrc"), "two").expect("a file");
    let asked = host.asked().len();
    host.result("file_undo", json!({ "path": ".envrc" })).await;
    assert_eq!((host.asked().len(), &*content(&host, ".envrc")), (asked + 1, "one"));
}

/// Neither what the tool may not write, nor what lies elsewhere, nor another session's.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_opens_nothing_to_the_tool() {
    let host = TestHost::new().answering(Answer::Yes).set("plugin.file_undo.files.write=[]");
    std::fs::write(host.work().join("a"), "one").expect("a file");
    shell(&host, "echo two > a").await;
    assert_eq!(host.failure("file_undo", json!({ "path": "a" })).await.kind, Kind::Denied);
    assert_eq!(content(&host, "a"), "two\n");

    let host = TestHost::new().answering(Answer::Yes);
    std::fs::write(host.work().join("a"), "one").expect("a file");
    shell(&host, "echo two > a").await;
    let (called, context) = host.parts();
    let other = context.clone().session(Arc::new(Session::default()));
    let request = Request { tool: "file_undo".into(), arguments: Arguments::Json(json!({ "path": "a" })) };
    let refused = called.call(request, &other).await.outcome.expect_err("another session");
    assert!(refused.message.starts_with("no call of this session"), "{}", refused.message);

    // A directory that became a link.
    let host = TestHost::new().answering(Answer::Yes);
    std::fs::create_dir_all(host.work().join("d")).expect("a directory");
    std::fs::create_dir_all(host.work().join("e")).expect("a directory");
    std::fs::write(host.work().join("d/a"), "one").expect("a file");
    shell(&host, "rm -r d; ln -s e d").await;
    host.failure("file_undo", json!({ "path": "d/a" })).await;
    assert!(!host.work().join("e/a").exists());
}
