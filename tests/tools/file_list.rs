//! `file_list`: what a directory has. The numbers are those of the cases of agents that are made of several processes.

use serde_json::json;
use std::os::unix::fs::symlink;
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

fn made(content: &str) -> TestHost {
    let host = TestHost::new();
    std::fs::write(host.work().join("file"), content).expect("a file");
    host
}

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
