//! P-44: a plugin keeps something of one call for the next.
//! Outcome: every call has an instance of its own; nothing is there but what the component itself holds.
//! Switched off: not tried: one store a call is the shape of `sandbox/mod.rs`, not a check.

use serde_json::json;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{Preparation, Siege};

#[test]
fn a_call_finds_nothing_of_the_call_before() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        assert_eq!(siege.call("hostile", json!({ "how": "remember" }))["result"], "1");
    }
    siege.lift();
}

/// Pools hand out the same memories and tables again and again.
#[test]
fn memory_and_tables_that_a_call_changed_are_fresh_in_the_next() {
    let parts = "(table $t 1 funcref) (global $g (mut i32) (i32.const 0)) (func $f) (elem declare func $f)";
    let call = "(drop (memory.grow (i32.const 100)))
        (if (i32.load (i32.const 900000)) (then unreachable))
        (if (i32.load (i32.const 7000000)) (then unreachable))
        (if (i32.ne (table.size $t) (i32.const 1)) (then unreachable))
        (if (i32.eqz (ref.is_null (table.get $t (i32.const 0)))) (then unreachable))
        (if (global.get $g) (then unreachable))
        (drop (table.grow $t (ref.func $f) (i32.const 10)))
        (table.set $t (i32.const 0) (ref.func $f))
        (global.set $g (i32.const 1))
        (memory.fill (i32.const 100000) (i32.const 7) (i32.const 7500000))";
    let mut siege =
        Preparation::new().component("spoil", &Forged::new("spoil").parts(parts).call(call).bytes()).begin();
    for _ in 0..20 {
        assert_eq!(siege.call("spoil", json!({}))["result"], "ok");
    }
    siege.lift();
}
