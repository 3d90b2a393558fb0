//! P-04: code that traps: `unreachable`, division by zero, overflow, memory and tables out of bounds, wrong indirect calls.
//! Outcome: `execution_failed` with the sort of the trap and nothing of the guest's insides; the instance is never used again.
//! Switched off: with the whole error in place of its root cause (`explain` in `sandbox/mod.rs`) the guest's backtrace came through and all three tests failed.

use serde_json::json;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{Preparation, Siege};

const TRAPS: [(&str, &str, &str); 6] = [
    ("stop", "unreachable", "wasm `unreachable` instruction executed"),
    ("divide", "(drop (i32.div_s (i32.const 1) (i32.const 0)))", "integer divide by zero"),
    ("overflow", "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))", "integer overflow"),
    ("convert", "(drop (i32.trunc_f32_s (f32.const nan)))", "invalid conversion to integer"),
    ("reach", "(drop (i32.load (i32.const -4)))", "out of bounds memory access"),
    ("fill", "(memory.fill (i32.const -4) (i32.const 0) (i32.const 8))", "out of bounds memory access"),
];

#[test]
fn code_that_traps_fails_with_the_sort_of_the_trap() {
    let mut host = Preparation::new();
    for (tool, code, _) in TRAPS {
        host = host.component(tool, &Forged::new(tool).call(code).bytes());
    }
    let mut siege = host.begin();
    for (tool, _, trap) in TRAPS {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert_eq!(failure, format!("execution_failed: the plugin stopped: wasm trap: {trap}"));
        }
    }
    siege.lift();
}

#[test]
fn an_indirect_call_of_nothing_or_of_another_type_traps() {
    let table = "(type $none (func)) (type $one (func (param i32)))
        (func $f (type $none)) (table 4 funcref) (elem (i32.const 1) $f)";
    let cases = [
        ("null", "(call_indirect (type $none) (i32.const 0))", "uninitialized element"),
        ("beyond", "(call_indirect (type $none) (i32.const 99))", "undefined element: out of bounds table access"),
        ("other", "(call_indirect (type $one) (i32.const 7) (i32.const 1))", "indirect call type mismatch"),
    ];
    let mut host = Preparation::new();
    for (tool, code, _) in cases {
        host = host.component(tool, &Forged::new(tool).parts(table).call(code).bytes());
    }
    let mut siege = host.begin();
    for (tool, _, trap) in cases {
        for _ in 0..2 {
            let failure = siege.failure(tool, json!({}));
            assert_eq!(failure, format!("execution_failed: the plugin stopped: wasm trap: {trap}"));
        }
    }
    siege.lift();
}

#[test]
fn a_trap_of_compiled_rust_tells_nothing_of_the_plugins_insides() {
    let mut siege = Siege::with("hostile").begin();
    for how in ["unreachable", "out_of_bounds", "bad_indirect_call"] {
        for _ in 0..2 {
            let failure = siege.failure("hostile", json!({ "how": how }));
            assert!(failure.starts_with("execution_failed: the plugin stopped: wasm trap: "), "{failure}");
            assert!(!failure.contains("backtrace") && !failure.contains('!'), "{failure}");
        }
    }
    siege.lift();
}
