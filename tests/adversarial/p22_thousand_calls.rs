//! P-22: a thousand calls of one plugin at one time, each waiting inside the host.
//! Outcome: as many as are the plugin's share are answered, with no thread for each; further ones are `busy` at once, and others have room.
//! Switched off: without the share (`engine/room.rs`) the further calls ran too and the test failed.

use crate::process::threads;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib_tests::Siege;

/// Half of the places: 1,000 calls, 10 jobs, and 16 plugins that say what they offer.
const SHARE: u64 = 513;
/// How long each waits: longer than a busy machine takes to begin them all, and than its threads for that stay.
const SLEEP_MS: u64 = 15_000;
/// More threads than a host has without calls, and far less than calls.
const FEW: usize = 40;

#[test]
fn a_thousand_calls_of_one_plugin_wait_without_a_thread_each_and_leave_room_for_others() {
    let mut siege = Siege::with("hostile").begin();
    // Loaded before, so that the thousand begin together.
    siege.call("hostile", json!({ "how": "say" }));
    for _ in 0..2 {
        let begin = Instant::now();
        (0..1000).for_each(|_| _ = siege.send("hostile", json!({ "how": "sleep", "number": SLEEP_MS })));
        for _ in SHARE..1000 {
            let answer = siege.answer();
            assert_eq!(answer["error"]["kind"], "busy", "{answer}");
        }
        assert_eq!(siege.call("time", json!({}))["result"]["source"], Value::from("harness"));
        // A thread that had work when the calls began goes after ten seconds without any. All calls wait as long as this does.
        let mut count = threads(siege.pid());
        while count >= FEW && begin.elapsed() < Duration::from_millis(SLEEP_MS - 1000) {
            std::thread::sleep(Duration::from_millis(100));
            count = threads(siege.pid());
        }
        assert!(count < FEW, "{count} threads");
        (0..SHARE).for_each(|_| assert_eq!(siege.answer()["result"], "slept"));
    }
    siege.lift();
}
