//! P-22: a thousand calls at one time, each waiting inside the host.
//! Outcome: all are answered, with no thread for each; further ones are `busy` at once.
//! Switched off: without the permits (`call.rs`) and with room in the pool for more the further calls ran too and the test failed.

use crate::process::threads;
use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn a_thousand_calls_wait_without_a_thread_each_and_more_are_busy() {
    let mut siege = Siege::with("hostile").begin();
    // Loaded before, so that the thousand begin together.
    siege.call("hostile", json!({ "how": "say" }));
    for _ in 0..2 {
        (0..1010).for_each(|_| _ = siege.send("hostile", json!({ "how": "sleep", "number": 5000 })));
        for _ in 0..10 {
            let answer = siege.answer();
            assert_eq!(answer["error"]["kind"], "busy", "{answer}");
        }
        let threads = threads(siege.pid());
        assert!(threads < 40, "{threads} threads");
        (0..1000).for_each(|_| assert_eq!(siege.answer()["result"], "slept"));
    }
    siege.lift();
}
