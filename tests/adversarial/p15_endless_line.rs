//! P-15: one printed line of many MiB, without an end.
//! Outcome: 256 KiB of it come through as events, then one mark; the host gathers nothing.
//! Switched off: without the caps of `GuestEvents` (`event.rs`) 6.5 MB of events came through and the first test failed.

use crate::events::watched;
use crate::process::peak_mib;
use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn a_line_without_end_is_cut_with_a_mark() {
    let call = json!({ "how": "print_one_line", "text": "x".repeat(64 << 10), "number": 100 });
    for (events, answer) in watched(&call, 2) {
        assert_eq!(answer["result"], "printed");
        let bytes: usize = events.iter().filter_map(|event| event["text"].as_str()).map(str::len).sum();
        assert!((1..=(256 << 10) + 100).contains(&bytes), "{bytes} bytes of events");
        let last = &events[events.len() - 2]["text"];
        assert_eq!(last, "[further events of this plugin are dropped]");
    }
}

#[test]
fn a_line_without_end_is_not_gathered() {
    let mut siege = Siege::with("hostile").begin();
    let call = || json!({ "how": "print_one_line", "text": "x".repeat(64 << 10), "number": 100 });
    siege.call("hostile", call());
    let before = peak_mib(siege.pid());
    for _ in 0..2 {
        let mut call = call();
        call["number"] = json!(2000);
        let _ = siege.call("hostile", call);
    }
    assert!(peak_mib(siege.pid()) < before + 40, "the host gathers what a guest prints");
    siege.lift();
}
