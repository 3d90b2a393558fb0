//! P-13: ten million cheap host calls.
//! Outcome: `limit` at 10,000; the audit trail keeps two lines of the call.
//! Switched off: without the count in `engine/meter.rs` all calls were taken and the first test failed; without the bounds of `Actions` (`audit/lib.rs`) the second.

use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn host_calls_end_at_their_limit() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        let failure = siege.failure("hostile", json!({ "how": "call_host", "number": 10_000_000 }));
        assert_eq!(failure, "limit: limit: host calls 10000");
    }
    let trail = std::fs::read_to_string(siege.program.path("state/toolcrib/audit.jsonl")).expect("an audit trail");
    assert!(trail.len() < 20_000, "{} bytes of audit", trail.len());
    siege.lift();
}

#[test]
fn refused_actions_do_not_flood_the_audit_trail() {
    let mut siege = Siege::with("hostile").allowing("hostile").begin();
    let path = format!("/etc/{}passwd", "./".repeat(1500));
    for _ in 0..2 {
        let read = json!({ "how": "read_much", "text": path, "number": 3000 });
        assert_eq!(siege.call("hostile", read)["result"], "3000 refused");
    }
    let trail = siege.program.path("state/toolcrib/audit.jsonl").metadata().expect("an audit trail").len();
    assert!(trail < 4 << 20, "two calls left {trail} bytes of audit");
    siege.lift();
}
