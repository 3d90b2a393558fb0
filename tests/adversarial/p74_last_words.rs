//! P-74: a plugin that prints much, terminal sequences among it, and then traps.
//! Outcome: the failure carries the last 2 KiB of it, clean, so that a panic can be understood; the rest is gone.
//! Switched off: without `printed` in `explain` (`sandbox/mod.rs`) the failures had no data and both tests failed.

use crate::texts::{TRICKS, has_marks, odd_characters};
use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn a_panic_says_what_it_said() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        let answer =
            siege.call("hostile", json!({ "how": "print_and_panic", "number": 500, "text": "no such planet" }));
        assert_eq!(answer["error"]["kind"], "execution_failed", "{answer}");
        let printed = answer["error"]["data"]["printed"].as_str().expect("what it printed");
        assert!(printed.len() <= 2048, "{} bytes", printed.len());
        assert!(printed.contains("line 499\n") && !printed.contains("line 1\n"), "{printed}");
        assert!(printed.contains("panicked at") && printed.contains("no such planet"), "{printed}");
    }
    let quiet = siege.call("hostile", json!({ "how": "unreachable" }));
    assert!(quiet["error"].is_object() && quiet["error"]["data"].is_null(), "{quiet}");
    siege.lift();
}

#[test]
fn what_a_plugin_printed_is_clean_in_a_failure() {
    let mut siege = Siege::with("hostile").begin();
    let answer = siege.call("hostile", json!({ "how": "print_and_panic", "text": TRICKS }));
    let data = answer["error"]["data"].to_string();
    assert_eq!(odd_characters(&data), "", "{data}");
    assert!(!data.contains("\\u00") && has_marks(&data), "{data}");
    siege.lift();
}
