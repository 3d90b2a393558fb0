//! What grows when a host serves for long: resident memory, descriptors, threads before and after.
//!
//! Small counts by default; `tests/run --long` sets `TOOLCRIB_LONG` and runs the full figures.

use serde_json::{Value, json};
use std::time::Instant;
use toolcrib_tests::{Preparation, Siege, is_long, resident_kib};

#[test]
fn calls_leave_nothing_behind() {
    let calls = if is_long() { 1_000_000 } else { 10_000 };
    let mut siege = Preparation::new().set("limits.calls_per_minute=1000000000").begin();
    serve(&mut siege, calls / 10);
    let before = resident_kib(siege.pid());
    let begin = Instant::now();
    serve(&mut siege, calls);
    let after = resident_kib(siege.pid());
    println!("{calls} calls of time in {:.0?}: {before} KiB resident before, {after} KiB after", begin.elapsed());
    assert!(after < before + 5 * 1024, "resident memory grew from {before} to {after} KiB");
    siege.lift();
}

/// Calls in batches, as a busy client sends them. More than a million with the same arguments are refused, so half have others.
fn serve(siege: &mut Siege, calls: usize) {
    const BATCH: usize = 100;
    for batch in 0..calls / BATCH {
        let arguments = if batch % 2 == 0 { json!({}) } else { json!({ "format": "iso" }) };
        (0..BATCH).for_each(|_| _ = siege.send("time", arguments.clone()));
        for _ in 0..BATCH {
            let answer = siege.answer();
            assert_eq!(answer["result"]["source"], Value::from("harness"), "{answer}");
        }
    }
}

#[test]
fn a_thousand_calls_that_wait_hold_no_thread_each() {
    // One plugin has half of the places, and of the memory.
    let room = Siege::with("hostile").set("limits.concurrent_calls=2200").set("limits.total_memory_mib=8192");
    let mut siege = room.begin();
    let rounds = if is_long() { 10 } else { 1 };
    for _ in 0..rounds {
        (0..1000).for_each(|_| _ = siege.send("hostile", json!({ "how": "sleep", "number": 300 })));
        let threads = std::fs::read_dir(format!("/proc/{}/task", siege.pid())).map_or(0, Iterator::count);
        assert!(threads < 32, "{threads} threads");
        (0..1000).for_each(|_| assert_eq!(siege.answer()["result"], "slept"));
    }
    println!("1,000 waiting calls, {rounds} times: {} KiB resident", resident_kib(siege.pid()));
    siege.lift();
}
