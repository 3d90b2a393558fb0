//! `file_find`: the files that `rg --files` lists, without closed ones.

use crate::file_search::{made, rg, ruled};
use serde_json::{Value, json};
use std::fs::create_dir_all;
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

async fn found(host: &TestHost, arguments: Value) -> String {
    host.result("file_find", arguments).await.as_str().expect("text").to_owned()
}

#[tokio::test]
async fn it_finds_what_ripgrep_lists() {
    let host = ruled();
    for (arguments, flags) in [
        (json!({}), &[][..]),
        (json!({ "pattern": "*.rs" }), &["-g*.rs"]),
        (json!({ "pattern": "deep/**/*.py" }), &["-gdeep/**/*.py"]),
        (json!({ "pattern": "!*.{rs,py}" }), &["-g!*.{rs,py}"]),
        (json!({ "type": "rust" }), &["-trust"]),
        (json!({ "hidden": true }), &["--hidden"]),
        (json!({ "hidden": true, "no_ignore": true }), &["--hidden", "--no-ignore"]),
        (json!({ "path": "deep" }), &["deep"]),
    ] {
        let said = found(&host, arguments.clone()).await;
        let Some(expected) = rg(&host, &[&["--files"], flags].concat()) else { toolcrib_tests::skip!("rg is missing") };
        assert_eq!(said, expected.trim_end(), "{arguments}");
    }
    // Rules above the path count, as for git; ripgrep 13 forgets those that begin with `/`.
    assert_eq!(found(&host, json!({ "path": "deep/sub/" })).await, "deep/sub/y.py");
}

#[tokio::test]
async fn paths_are_continued_in_order() {
    let names: Vec<String> = (0..30).map(|at| format!("{}/{at:02}", at % 4)).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let host = made(&files);
    let mut expected = names.clone();
    expected.sort();
    let first = found(&host, json!({ "limit": 20 })).await;
    assert_eq!(first, format!("{}\n\n20 files shown. More follow: set `offset` to 20.", expected[..20].join("\n")));
    assert_eq!(found(&host, json!({ "limit": 20, "offset": 20 })).await, expected[20..].join("\n"));
    assert_eq!(found(&host, json!({ "offset": 30 })).await, "No file after the first 30.");
}

/// Switched off (`entry` of `file_access/src/tree.rs` admits every name): `.netrc` is named, the test fails.
#[tokio::test]
async fn names_in_closed_directories_are_not_told() {
    let host = made(&[("a", b"")]);
    create_dir_all(host.home().join(".ssh")).expect("a directory");
    std::fs::write(host.home().join(".ssh/id_of_mine"), "").expect("a key");
    std::fs::write(host.home().join(".netrc"), "").expect("a login");
    let said = found(&host, json!({ "path": "..", "hidden": true })).await;
    assert!(said.contains("../work/a\n") && !said.contains("id_of_mine") && !said.contains(".netrc"), "{said}");
    assert!(said.contains(" closed to tools."), "{said}");
    assert_eq!(host.failure("file_find", json!({ "path": "~/.ssh" })).await.kind, Kind::Denied);
    let failure = host.failure("file_find", json!({ "pattern": "a{" })).await;
    assert_eq!(failure.kind, Kind::InvalidArguments);
}
