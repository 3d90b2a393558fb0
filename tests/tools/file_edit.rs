//! `file_edit`: one exact piece of text by another, and nothing that was changed meanwhile is lost. The numbers are those of the cases of agents
//! that are made of several processes.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

fn edit(old: &str, new: &str) -> Value {
    json!({ "path": "file", "old_string": old, "new_string": new })
}

fn content(host: &TestHost) -> String {
    std::fs::read_to_string(host.work().join("file")).expect("a file")
}

/// Case 34.
#[tokio::test]
async fn one_occurrence_is_replaced_or_all_or_none() {
    let host = TestHost::new();
    std::fs::write(host.work().join("file"), "let a = 1;\r\n\tlet b = 1;\nü 🙂").expect("a file");
    assert_eq!(host.result("file_edit", edit("\tlet b = 1;", "\tlet b = 2;")).await, "Replaced 1 occurrence in file");
    assert_eq!(content(&host), "let a = 1;\r\n\tlet b = 2;\nü 🙂");
    let twice = host.failure("file_edit", edit("let ", "const ")).await;
    assert_eq!(
        (twice.kind, &*twice.message),
        (Kind::ExecutionFailed, "`old_string` is 2 times in `file`; nothing was changed")
    );
    assert_eq!(content(&host), "let a = 1;\r\n\tlet b = 2;\nü 🙂");
    let mut all = edit("let ", "");
    all["replace_all"] = true.into();
    assert_eq!(host.result("file_edit", all).await, "Replaced 2 occurrences in file");
    assert_eq!(content(&host), "a = 1;\r\n\tb = 2;\nü 🙂");
    for (arguments, kind) in [
        (edit("", "x"), Kind::InvalidArguments),
        (edit("a", "a"), Kind::InvalidArguments),
        (edit("not there", "x"), Kind::ExecutionFailed),
        (json!({ "path": "missing", "old_string": "a", "new_string": "b" }), Kind::ExecutionFailed),
        (json!({ "path": ".", "old_string": "a", "new_string": "b" }), Kind::ExecutionFailed),
        (json!({ "path": "file", "old_string": "a" }), Kind::InvalidArguments),
    ] {
        assert_eq!(host.failure("file_edit", arguments.clone()).await.kind, kind, "{arguments}");
    }
    assert_eq!(content(&host), "a = 1;\r\n\tb = 2;\nü 🙂");
}

#[tokio::test]
async fn what_is_no_text_or_too_large_is_refused() {
    let host = TestHost::new();
    std::fs::write(host.work().join("file"), b"a\xffb").expect("a file");
    assert!(host.failure("file_edit", edit("a", "c")).await.message.contains("is not text"));
    std::fs::write(host.work().join("file"), "a".repeat(3 << 20) + "b").expect("a file");
    assert_eq!(host.result("file_edit", edit("b", "c")).await, "Replaced 1 occurrence in file");
    std::fs::write(host.work().join("file"), "a".repeat(4 << 20) + "b").expect("a file");
    let failure = host.failure("file_edit", edit("b", "c")).await;
    assert!(failure.kind == Kind::Limit && failure.message.contains("more than the 4 MiB"), "{}", failure.message);
}

/// Cases 32 and 36: what nobody may write is not edited either.
#[tokio::test]
async fn the_rules_of_writing_hold() {
    let host = TestHost::new();
    for path in ["nope/../../x", "/etc/hostname", "~/.ssh/config"] {
        let arguments = json!({ "path": path, "old_string": "a", "new_string": "b" });
        let failure = host.failure("file_edit", arguments).await;
        assert!(matches!(failure.kind, Kind::Denied | Kind::ExecutionFailed), "{path}: {}", failure.message);
    }
    assert!(!host.work().join("../x").exists());
}

/// What was written since is not lost: the revision that was read has to be there still.
#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_replaced() {
    let host = TestHost::new()
        .plugin("hostile")
        .grant("hostile", "files.read=[\"/tmp\"]")
        .set("plugin.hostile.files.write=[\"/tmp\"]");
    let path = host.work().join("file").display().to_string();
    std::fs::write(&path, "before").expect("a file");
    let said = host.result("hostile", json!({ "how": "replace_stale", "text": path })).await;
    assert_eq!(said, "Ok(9) Err(\"busy\")");
    assert_eq!(content(&host), "meanwhile");
}

#[tokio::test]
async fn it_is_listed_where_it_is_wanted() {
    let names = async |host: &TestHost, session: Option<Session>| {
        let (called, context) = host.parts();
        let context = session.map_or_else(|| context.clone(), |session| context.clone().session(Arc::new(session)));
        let offered = called.offered(&context).await;
        offered.tools.iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>()
    };
    let host = TestHost::new().user("[toolset.editor]\ntools = [\"file_edit\"]\n");
    assert!(!names(&host, None).await.contains(&"file_edit".to_owned()));
    let editor = Session::on(host.parts().0.toolset("editor").expect("a toolset"), Map::new()).expect("a session");
    assert_eq!(names(&host, Some(editor)).await, ["file_edit"]);
    let offering = TestHost::new().set("tools.offer=[\"files\"]");
    assert!(names(&offering, None).await.contains(&"file_edit".to_owned()));
}
