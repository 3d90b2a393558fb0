//! P-11: strings and lists that lie outside the guest's memory, or not where their type may lie.
//! Outcome: `execution_failed`; the host reads nothing that is not the guest's.
//! Switched off: not tried: the check is wasmtime's own and has no off.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

#[test]
fn results_outside_of_the_guests_memory_are_refused() {
    let cases = [
        ("beyond", "(i32.store (i32.const 68) (i32.const -16)) (i32.store (i32.const 72) (i32.const 100))"),
        ("wrapping", "(i32.store (i32.const 68) (i32.const -16)) (i32.store (i32.const 72) (i32.const 32))"),
        ("notices", "(i32.store (i32.const 84) (i32.const -16)) (i32.store (i32.const 88) (i32.const 4))"),
        ("misaligned", "(i32.store (i32.const 84) (i32.const 65)) (i32.store (i32.const 88) (i32.const 1))"),
        ("discriminant", "(i32.store (i32.const 64) (i32.const 77))"),
    ];
    let mut host = Preparation::new();
    for (tool, stores) in cases {
        let plugin = Forged::new(tool).call(&format!("{stores} (return (i32.const 64))"));
        host = host.component(tool, &plugin.bytes());
    }
    let mut siege = host.begin();
    for (tool, _) in cases {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert!(failure.starts_with("execution_failed: the plugin stopped: "), "{tool}: {failure}");
        }
    }
    siege.lift();
}

#[test]
fn an_answer_at_an_address_outside_is_refused() {
    let plugin = Forged::new("nowhere").call("(return (i32.const -4))").bytes();
    let mut siege = Preparation::new().component("nowhere", &plugin).begin();
    for _ in 0..2 {
        let failure = siege.failure("nowhere", json!({}));
        assert!(failure.starts_with("execution_failed: the plugin stopped: "), "{failure}");
    }
    siege.lift();
}
