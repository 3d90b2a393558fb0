//! `file`: four tools by one name. What each does is in the tests of `file_read`, `file_write`, `file_edit` and `file_list`.

use serde_json::json;
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

#[tokio::test]
async fn each_action_does_what_the_tool_of_that_name_does() {
    let host = TestHost::new();
    let write = json!({ "action": "write", "path": "notes/a.txt", "content": "one\ntwo\n" });
    assert_eq!(host.result("file", write).await, "Wrote 8 bytes to notes/a.txt");
    let edit = json!({ "action": "edit", "path": "notes/a.txt", "old_string": "two", "new_string": "three" });
    let diff = "--- notes/a.txt\n+++ notes/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
    assert_eq!(host.result("file", edit).await, diff);
    let none = json!({ "action": "edit", "path": "notes/a.txt", "edits": [{ "old_string": "one", "new_string": "1" }, { "old_string": "x", "new_string": "y" }] });
    assert!(host.failure("file", none).await.message.starts_with("`edits[1].old_string` is not in"));
    assert_eq!(host.result("file", json!({ "action": "read", "path": "notes/a.txt" })).await, "one\nthree\n");
    let line = json!({ "action": "read", "path": "notes/a.txt", "offset": 2, "limit": 1 });
    assert_eq!(host.result("file", line).await, "2\tthree\n");
    let expected = json!({ "entries": [{ "name": "a.txt", "type": "file", "size": 10 }], "total": 1 });
    assert_eq!(host.result("file", json!({ "action": "list", "path": "notes" })).await, expected);
}

/// Cases 32 and 34.
#[tokio::test]
async fn what_the_tools_refuse_it_refuses() {
    let host = TestHost::new();
    std::fs::write(host.work().join("a"), "x x").expect("a file");
    for (arguments, kind) in [
        (json!({ "action": "write", "path": "nope/../../x", "content": "x" }), Kind::ExecutionFailed),
        (json!({ "action": "edit", "path": "a", "old_string": "x", "new_string": "y" }), Kind::ExecutionFailed),
        (json!({ "action": "edit", "path": "a", "old_string": "", "new_string": "y" }), Kind::InvalidArguments),
        (json!({ "action": "delete", "path": "a" }), Kind::InvalidArguments),
        (json!({ "action": "read", "path": "a", "content": "x" }), Kind::InvalidArguments),
        (json!({ "action": "list", "path": "a", "encoding": "gbk" }), Kind::InvalidArguments),
        (json!({ "action": "edit", "path": "a", "line_endings": "keep" }), Kind::InvalidArguments),
        (json!({ "path": "a" }), Kind::InvalidArguments),
    ] {
        assert_eq!(host.failure("file", arguments.clone()).await.kind, kind, "{arguments}");
    }
    assert_eq!(std::fs::read_to_string(host.work().join("a")).expect("a file"), "x x");
}
