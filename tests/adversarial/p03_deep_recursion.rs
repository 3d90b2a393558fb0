//! P-03: recursion without end.
//! Outcome: the guest's stack has its own bound; the call fails with a stack overflow by its name, and no stack of the host is touched.
//! Switched off: not tried: the bound is wasmtime's own (`max_wasm_stack` in `engine/lib.rs`) and has no off; without it the process would end.

use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn recursion_without_end_stops_at_the_bound_of_the_guests_stack() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        let failure = siege.failure("hostile", json!({ "how": "recurse_bare" }));
        assert_eq!(failure, "execution_failed: the plugin stopped: stack overflow (limit: 512 KiB)");
        // What a compiler keeps in memory has a stack of its own there, with nothing below it.
        let failure = siege.failure("hostile", json!({ "how": "recurse" }));
        assert_eq!(failure, "execution_failed: the plugin stopped: wasm trap: out of bounds memory access");
    }
    siege.lift();
}
