//! P-24: a guest that calls the host where it may not: while the host asks it for room, from its start function.
//! Outcome: the first ends the guest, the second is a host call as any other.
//! Switched off: not tried: the check is wasmtime's own and has no off.

use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

const IMPORT: &str = r#"(import "toolcrib:plugin/events@0.1.0" "log" (func $log (param i32 i32 i32)))"#;
const SAY: &str = "(call $log (i32.const 1) (i32.const 1024) (i32.const 1))";

#[test]
fn a_host_call_while_the_host_asks_for_room_ends_the_guest() {
    let plugin = Forged::new("inside").parts(IMPORT).realloc(SAY).bytes();
    let mut siege = Preparation::new().component("inside", &plugin).begin();
    for _ in 0..2 {
        let failure = siege.failure("inside", json!({}));
        assert_eq!(failure, "execution_failed: the plugin stopped: wasm trap: cannot leave component instance");
    }
    siege.lift();
}

#[test]
fn host_calls_of_definitions_change_nothing() {
    let plugin = Forged::new("early").parts(IMPORT).definitions(SAY).bytes();
    let mut siege = Preparation::new().component("early", &plugin).begin();
    for _ in 0..2 {
        assert_eq!(siege.call("early", json!({}))["result"], "ok");
    }
    siege.lift();
}
