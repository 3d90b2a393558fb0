//! P-21: a call that waits inside the host for ever: for a clock, a FIFO, a command.
//! Outcome: the call's own time ends the first, a FIFO is no file, the command's time ends the last; nothing is left behind.
//! Switched off: with `call_ms` a thousand times as long (`bounded` in `call/accepted.rs`) the first test did not come to its end in 45 s.

use serde_json::json;
use std::process::Command;
use toolcrib_tests::Siege;

const FOR_EVER: u64 = u64::MAX / 2_000_000;

#[test]
fn a_sleep_without_end_is_ended_by_the_calls_own_time() {
    let mut siege = Siege::with("hostile").set("limits.call_ms=2000").begin();
    for _ in 0..2 {
        let failure = siege.failure("hostile", json!({ "how": "sleep", "number": FOR_EVER }));
        assert_eq!(failure, "timed_out: the call took more than 2000 ms of its own time");
    }
    siege.lift();
}

#[test]
fn calls_that_sleep_do_not_hold_up_others() {
    let mut siege = Siege::with("hostile").set("limits.call_ms=3000").begin();
    // Loaded before: compiling it takes its time too.
    siege.call("hostile", json!({ "how": "say" }));
    for _ in 0..2 {
        (0..50).for_each(|_| _ = siege.send("hostile", json!({ "how": "sleep", "number": FOR_EVER })));
        assert_eq!(siege.call("time", json!({}))["result"]["source"], "harness");
        (0..50).for_each(|_| assert_eq!(siege.answer()["error"]["kind"], "timed_out"));
    }
    siege.lift();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "only `mkfifo` makes a FIFO")]
fn a_fifo_is_not_waited_for() {
    let mut siege = Siege::with("hostile").allowing("hostile").begin();
    let made = Command::new("mkfifo").arg(siege.program.path("work/pipe")).status();
    assert!(made.is_ok_and(|status| status.success()), "`mkfifo` fails");
    for how in ["read_file", "write_file"] {
        for _ in 0..2 {
            let answer = siege.call("hostile", json!({ "how": how, "text": "pipe", "number": 0 }));
            assert_eq!(answer["result"], r#"Err("execution_failed")"#);
        }
    }
    siege.lift();
}

#[test]
fn a_command_without_end_is_ended_by_its_own_time() {
    let mut siege = Siege::with("hostile").allowing("hostile").set("limits.command_ms=3000").begin();
    for _ in 0..2 {
        let answer = siege.call("hostile", json!({ "how": "run_command", "text": "sleep 1000 & sleep 1000" }));
        assert_eq!(answer["result"], "timed_out");
    }
    siege.lift();
}
