//! P-01: a tool that never returns.
//! Outcome: `limit` when its CPU time is up; time inside the host does not count.
//! Switched off: without the check of CPU time (`engine/meter.rs`) the call ran into `timed_out` and the test failed; with time on the wall for CPU time (`engine/cpu.rs`) guests that share a processor were stopped early and the last test failed.

use crate::process::cpu_ms;
use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn a_tool_that_never_returns_is_stopped_when_its_cpu_time_is_up() {
    let mut siege = Siege::with("hostile").set("limits.guest_cpu_ms=200").set("limits.call_ms=30000").begin();
    for _ in 0..2 {
        assert_eq!(siege.failure("hostile", json!({ "how": "spin" })), "limit: limit: guest CPU time 200 ms");
    }
    siege.lift();
}

#[test]
fn a_tool_that_waits_inside_the_host_spends_no_cpu_time() {
    let mut siege = Siege::with("hostile").set("limits.guest_cpu_ms=400").begin();
    assert_eq!(siege.call("hostile", json!({ "how": "sleep", "number": 1600 }))["result"], "slept");
    siege.lift();
}

/// What is counted is what the kernel counts: a guest that waits for its turn uses nothing.
#[test]
fn guests_that_share_a_processor_get_all_of_their_cpu_time() {
    const GUESTS: u64 = 12;
    let mut siege = Siege::with("hostile").set("limits.guest_cpu_ms=250").begin();
    siege.call("hostile", json!({ "how": "say" }));
    let before = cpu_ms(siege.pid());
    (0..GUESTS).for_each(|_| _ = siege.send("hostile", json!({ "how": "spin" })));
    for _ in 0..GUESTS {
        assert_eq!(siege.answer()["error"]["message"], "limit: guest CPU time 250 ms");
    }
    let used = cpu_ms(siege.pid()) - before;
    assert!(used >= GUESTS * 250, "{GUESTS} guests used {used} ms together");
    siege.lift();
}
