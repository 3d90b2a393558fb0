//! `word_count`, a third-party plugin that reads: nothing until it is granted, and then no more than that.

use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::Path;
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::{TestHost, guest};

/// A host with the plugin, which may read below its working directory.
fn granted() -> TestHost {
    let host = TestHost::new().plugin("word_count");
    reading(&host.work(), host)
}

fn reading(directory: &Path, host: TestHost) -> TestHost {
    host.grant("word_count", &format!("files.read=[{directory:?}]"))
}

async fn refused(host: &TestHost, path: &str) -> Failure {
    host.failure("word_count", json!({ "path": path })).await
}

/// The same code in other bytes: a custom section that nobody reads was added.
fn other_bytes() -> Vec<u8> {
    let mut bytes = std::fs::read(guest("word_count")).expect("a guest that was built");
    bytes.extend([0, 2, 1, b'x']);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_before_the_plugin_is_allowed() {
    let host = TestHost::new().plugin("word_count");
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    let failure = refused(&host, "a.txt").await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "`word_count` needs `files`, which the policy does not grant");
    let hint = failure.hint.expect("a hint");
    assert!(
        hint.starts_with("allow it: `toolcrib plugin allow /") && hint.ends_with("/word_count.wasm --read DIR`"),
        "{hint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_plugin_learns_nothing_of_what_is_there() {
    let host = TestHost::new().plugin("word_count");
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    assert_eq!(refused(&host, "a.txt").await, refused(&host, "missing.txt").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_words_and_bytes_are_counted() {
    let host = granted();
    for (text, counts) in [
        ("", json!({ "lines": 0, "words": 0, "bytes": 0 })),
        ("one two\nthree\n", json!({ "lines": 2, "words": 3, "bytes": 14 })),
        ("zwei Wörter\nund mehr", json!({ "lines": 2, "words": 4, "bytes": 21 })),
        ("a\r\nb\r\n", json!({ "lines": 2, "words": 2, "bytes": 6 })),
    ] {
        std::fs::write(host.work().join("a.txt"), text).expect("a file");
        assert_eq!(host.result("word_count", json!({ "path": "a.txt" })).await, counts, "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_four_mebibytes_is_counted_and_a_larger_one_is_a_limit() {
    let host = granted();
    std::fs::write(host.work().join("fits"), "x\n".repeat(2 << 20)).expect("a file");
    std::fs::write(host.work().join("over"), "x\n".repeat((2 << 20) + 1)).expect("a file");
    assert_eq!(host.result("word_count", json!({ "path": "fits" })).await["bytes"], 4 << 20);
    let failure = refused(&host, "over").await;
    assert_eq!(failure.kind, Kind::Limit);
    assert!(failure.message.contains("`over` has 4194306 bytes"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_file_reach_the_caller_as_the_host_says_them() {
    let host = granted();
    std::fs::write(host.work().join("binary"), b"\xff\0").expect("a file");
    let failure = refused(&host, "missing.txt").await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.ends_with("missing.txt`: no such file or directory"), "{}", failure.message);
    let failure = refused(&host, "binary").await;
    assert_eq!(failure.message, "`binary` is not text: byte 0 of 2 is not valid UTF-8");
    assert_eq!(failure.data.map(|data| *data), Some(json!({ "bytes": 2 })));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_granted_directory_is_read() {
    let host = granted();
    let (work, home) = (host.work(), host.home());
    let above = work.parent().expect("a directory above").to_owned();
    std::fs::write(home.join("out.txt"), "out").expect("a file");
    std::fs::create_dir(above.join("workshop")).expect("a directory");
    std::fs::write(above.join("workshop/out.txt"), "out").expect("a file");
    std::fs::create_dir(home.join("dir")).expect("a directory");
    symlink(home.join("out.txt"), work.join("link")).expect("a link");
    symlink(&home, work.join("up")).expect("a link");
    symlink(home.join("dir"), work.join("dir")).expect("a link");
    for path in
        ["~/out.txt", "../home/out.txt", "../workshop/out.txt", "link", "up/out.txt", "dir/../out.txt", "/etc/passwd"]
    {
        let failure = refused(&host, path).await;
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
        assert!(failure.message.starts_with("`word_count` may not read"), "{path}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_name_of_a_file_from_elsewhere_is_refused() {
    let host = granted();
    std::fs::write(host.home().join("out.txt"), "out").expect("a file");
    std::fs::hard_link(host.home().join("out.txt"), host.work().join("in.txt")).expect("a hard link");
    let failure = refused(&host, "in.txt").await;
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.contains("has 2 names"), "{}", failure.message);
    std::fs::remove_file(host.home().join("out.txt")).expect("the other name");
    assert_eq!(host.result("word_count", json!({ "path": "in.txt" })).await["bytes"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_does_not_reach_keys_or_the_kernel() {
    let host = TestHost::new().plugin("word_count");
    std::fs::create_dir(host.home().join(".ssh")).expect("a directory");
    std::fs::write(host.home().join(".ssh/id"), "SECRET").expect("a file");
    let host = reading(Path::new("/"), host);
    for path in ["~/.ssh/id", "/proc/self/environ", "/dev/zero"] {
        assert_eq!(refused(&host, path).await.kind, Kind::Denied, "{path}");
    }
    let audit = host.dirs().audit().display().to_string();
    assert_eq!(refused(&host, &audit).await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_under_the_same_name_start_with_nothing() {
    let host = granted().plugin_as("word_count", &other_bytes());
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    let failure = refused(&host, "a.txt").await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "`word_count` needs `files`, but these are not the bytes that were allowed");
    assert!(failure.hint.is_some_and(|hint| hint.contains("toolcrib plugin inspect") && hint.contains("plugin allow")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_under_another_name_start_with_nothing() {
    let host =
        TestHost::new().plugin_as("counter", &std::fs::read(guest("word_count")).expect("a guest that was built"));
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    let host = reading(&host.work(), host);
    let failure = refused(&host, "a.txt").await;
    assert_eq!(failure.message, "`counter` needs `files`, which the policy does not grant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_section_without_a_digest_grants_nothing() {
    let host = TestHost::new().plugin("word_count");
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    let work = host.work();
    let host = host.user(&format!("[plugin.word_count]\nfiles.read = [{work:?}]\n"));
    assert_eq!(refused(&host, "a.txt").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrower_policy_wins() {
    let host = granted();
    std::fs::create_dir(host.work().join("public")).expect("a directory");
    std::fs::write(host.work().join("public/a.txt"), "text").expect("a file");
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    let public = host.work().join("public");
    let host = host.policy(&format!("[plugin.word_count]\nfiles.read = [{public:?}]\n"));
    assert_eq!(host.result("word_count", json!({ "path": "public/a.txt" })).await["bytes"], 4);
    assert_eq!(refused(&host, "a.txt").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_does_not_grant_what_the_user_did_not() {
    let wider = TestHost::new().plugin("word_count");
    std::fs::write(wider.home().join("a.txt"), "text").expect("a file");
    let (work, home) = (wider.work(), wider.home());
    let wider = reading(&work, wider).policy(&format!("[plugin.word_count]\nfiles.read = [{work:?}, {home:?}]\n"));
    assert_eq!(refused(&wider, "~/a.txt").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_about_other_bytes_takes_the_grant_away() {
    let host = granted().policy(&format!("[plugin.word_count]\nsha256 = \"{}\"\n", "0".repeat(64)));
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    assert_eq!(refused(&host, "a.txt").await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_for_files_is_above_every_grant() {
    let host = granted().policy("[tools]\nfiles_enabled = false\n");
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    let failure = refused(&host, "a.txt").await;
    assert_eq!(failure.message, "`files` is switched off by `tools.files_enabled = false`");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_plugin_is_no_hindrance_to_the_next_call() {
    let host = TestHost::new().plugin("word_count");
    assert_eq!(refused(&host, "a.txt").await.kind, Kind::Denied);
    assert_eq!(host.result("time", json!({})).await["source"], "harness");
}
