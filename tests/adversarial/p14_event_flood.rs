//! P-14: a flood of events and of printed lines.
//! Outcome: 1,000 events and 256 KiB of them come through, then one mark; the call goes on.
//! Switched off: without the caps of `GuestEvents` (`event.rs`) 2.5 MB of events came through and all three tests failed.

use crate::events::watched;
use serde_json::json;

const MARK: &str = "[further events of this plugin are dropped]";

fn flood(how: &str, text: &str, number: u64) {
    let events = watched(&json!({ "how": how, "text": text, "number": number }), 2);
    for (events, answer) in events {
        assert!(answer["result"].is_string(), "{answer}");
        let texts: Vec<&str> = events.iter().filter_map(|event| event["text"].as_str()).collect();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        assert!(texts.len() <= 1001 && bytes <= (256 << 10) + MARK.len(), "{} events, {bytes} bytes", texts.len());
        assert_eq!(texts.iter().filter(|text| **text == MARK).count(), 1, "one mark");
        assert!(texts.len() > 1, "something comes through");
    }
}

#[test]
fn many_short_events_are_cut_with_a_mark() {
    flood("say_much", "a line", 9000);
}

#[test]
fn many_long_events_are_cut_with_a_mark() {
    flood("say_much", &"x".repeat(5000), 500);
}

#[test]
fn many_printed_lines_are_cut_with_a_mark() {
    flood("print_much", &"x".repeat(80), 2000);
}
