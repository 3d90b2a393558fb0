//! P-12: ten million handles, none given back.
//! Outcome: `limit` at 1,024.
//! Switched off: with 10^8 handles (`sandbox/mod.rs`) all ten million were given and the test failed.

use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn handles_end_at_their_limit() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        let failure = siege.failure("hostile", json!({ "how": "hoard_handles", "number": 10_000_000 }));
        assert_eq!(failure, "limit: limit: component handles 1024");
        // Those of the call before are gone.
        let answer = siege.call("hostile", json!({ "how": "hoard_handles", "number": 1000 }));
        assert_eq!(answer["result"], "1000 handles");
    }
    siege.lift();
}
