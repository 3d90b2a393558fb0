//! `file_read`: a text whole, or by lines with their numbers.

use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

#[tokio::test]
async fn a_file_is_read_whole_or_by_lines() {
    let host = TestHost::new();
    std::fs::write(host.work().join("file"), "one\ntwo\nthree\n").expect("a file");
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
    let revision = read(json!({ "revision": true })).await.outcome.expect("a text").notices;
    assert_eq!(revision, ["the `revision` of `file` is `b6285c57e8797db5d4c51c80d6f11938`"]);
    // Longer than all that is read at once.
    std::fs::write(host.work().join("file"), format!("{}\nlast\n", "ü".repeat(600_000))).expect("a file");
    assert_eq!(shown(read(json!({ "offset": 2 })).await).0, "2\tlast\n");
}
