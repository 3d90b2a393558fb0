//! `send_file`: a file for the person. Which files may go is in `tests/calls/embedder.rs`, with what holds for all events.

use serde_json::json;
use std::sync::Arc;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;
use toolcrib_tests::embedder::Played;

#[tokio::test]
async fn a_file_is_sent_by_its_own_name_with_what_it_is() {
    let host = TestHost::new();
    let embedder = Arc::new(Played::answering(&["message.file"], json!({})));
    std::fs::create_dir(host.work().join("out")).expect("a directory");
    std::fs::write(host.work().join("out/Report.PDF"), "%PDF").expect("a file");
    let (called, context) = host.parts();
    let context = context.clone().embedder(embedder.clone());
    let send =
        |path: &str| Request { tool: "send_file".into(), arguments: Arguments::Json(json!({ "file_path": path })) };
    let sent = called.call(send("out/Report.PDF"), &context).await.outcome.expect("a result");
    assert_eq!(sent.result, json!({ "sent": true, "name": "Report.PDF", "bytes": 4 }));
    assert_eq!(embedder.events()[0].files[0].media_type, "application/pdf");
    assert_eq!(embedder.events()[0].payload, json!({}));
    let refused = called.call(send("out"), &context).await.outcome.expect_err("a failure");
    assert_eq!((refused.kind, &*refused.message), (Kind::ExecutionFailed, "`out` is a directory"));
    assert_eq!(embedder.events().len(), 1);
}
