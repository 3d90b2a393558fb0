//! P-07: components of very many core instances or memories, or of one that begins with 4 GiB.
//! Outcome: refused when they are first needed, with the limit in the reason.
//! Switched off: with the counts of `engine/lib.rs` and `engine/meter.rs` raised a hundred instances and nine memories were taken and their tests failed.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

fn reason(items: &str) -> String {
    let mut siege = Preparation::new().component("many", &Forged::new("many").items(items).bytes()).begin();
    let failures = [(); 2].map(|()| siege.failure("many", json!({})));
    assert_eq!(failures[0], failures[1]);
    siege.lift();
    let [failure, _] = failures;
    failure.strip_prefix("unavailable: plugin `many` was refused: ").expect("refused").to_owned()
}

#[test]
fn a_hundred_core_instances_are_refused() {
    let items = format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(100));
    let reason = reason(&items);
    assert!(reason.contains("core module instances") && reason.contains("64"), "{reason}");
}

#[test]
fn ten_thousand_core_instances_are_refused() {
    let items = format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(10_000));
    let reason = reason(&items);
    assert!(!reason.is_empty() && reason.len() < 300, "{reason}");
}

#[test]
fn nine_memories_are_refused() {
    let items = format!("(core module $m (memory 1)) {}", "(core instance (instantiate $m))".repeat(8));
    let reason = reason(&items);
    assert!(reason.contains("memories") && reason.contains('8'), "{reason}");
}

#[test]
fn a_memory_that_begins_with_all_there_can_be_is_refused() {
    let reason = reason("(core module $m (memory 65536)) (core instance (instantiate $m))");
    assert!(reason.contains("memory"), "{reason}");
}
