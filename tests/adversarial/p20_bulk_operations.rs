//! P-20: operations on whole memories, each of which runs long between two looks at the clock.
//! Outcome: `limit` when the CPU time is up.
//! Switched off: without the check of CPU time (`engine/meter.rs`) both ran into `timed_out` and both tests failed.

use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{Preparation, Siege};

#[test]
fn filling_memory_over_and_over_is_stopped_when_the_cpu_time_is_up() {
    let mut siege = Siege::with("hostile").set("limits.guest_cpu_ms=200").begin();
    for _ in 0..2 {
        let begin = Instant::now();
        let failure = siege.failure("hostile", json!({ "how": "fill_memory", "number": 100_000 }));
        assert_eq!(failure, "limit: limit: guest CPU time 200 ms");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
    siege.lift();
}

#[test]
fn copying_memory_over_itself_is_stopped_when_the_cpu_time_is_up() {
    let copy = "(drop (memory.grow (i32.const 1000)))
        (loop $on (memory.copy (i32.const 0) (i32.const 65536) (i32.const 66000000)) (br $on))";
    let plugin = Forged::new("copy").call(copy).bytes();
    let mut siege = Preparation::new().component("copy", &plugin).set("limits.guest_cpu_ms=200").begin();
    for _ in 0..2 {
        let begin = Instant::now();
        assert_eq!(siege.failure("copy", json!({})), "limit: limit: guest CPU time 200 ms");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
    siege.lift();
}
