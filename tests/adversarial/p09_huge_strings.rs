//! P-09: 50 MiB as the result of a call, and as an argument of a host call.
//! Outcome: `limit` before the host makes room for it; a result over 1 MiB is `limit` too.
//! Switched off: with hostcall fuel of 1 GiB (`sandbox/mod.rs`) and without `charge_bytes` (`engine/meter.rs`) the tests of one and of many arguments and of 50 MiB failed; without `check_failure` (`call/outcome.rs`) that of a failure.

use crate::process::peak_mib;
use serde_json::json;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{Preparation, Siege};

const ONE_CALL: &str = "limit: limit: bytes from the guest in one host call 4096 KiB";

/// Answers with so many bytes of memory that was never touched.
fn answering(bytes: u32) -> Vec<u8> {
    let call = format!(
        "(drop (memory.grow (i32.const 900)))
         (i32.store (i32.const 68) (i32.const 0x100000)) (i32.store (i32.const 72) (i32.const {bytes}))
         (return (i32.const 64))"
    );
    Forged::new("huge").call(&call).bytes()
}

#[test]
fn a_result_of_50_mib_is_refused_before_there_is_room_made_for_it() {
    let mut siege = Preparation::new().component("huge", &answering(50 << 20)).begin();
    let before = peak_mib(siege.pid());
    for _ in 0..2 {
        assert_eq!(siege.failure("huge", json!({})), ONE_CALL);
    }
    assert!(peak_mib(siege.pid()) < before + 40, "the host took it in");
    siege.lift();
}

#[test]
fn a_result_over_the_limit_of_results_is_refused() {
    let mut siege = Preparation::new().component("huge", &answering(2 << 20)).begin();
    for _ in 0..2 {
        assert_eq!(siege.failure("huge", json!({})), "limit: limit: result 1024 KiB, this one has 2097152 bytes");
    }
    siege.lift();
}

#[test]
fn an_argument_of_50_mib_is_refused() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        assert_eq!(siege.failure("hostile", json!({ "how": "huge_argument" })), ONE_CALL);
        let failure = siege.failure("hostile", json!({ "how": "huge_result" }));
        assert!(failure.starts_with("limit: limit: "), "{failure}");
    }
    siege.lift();
}

#[test]
fn many_arguments_that_are_large_together_are_refused() {
    let mut siege = Siege::with("hostile").set("limits.call_kib=1024").begin();
    let text = "x".repeat(100 << 10);
    for _ in 0..2 {
        let failure = siege.failure("hostile", json!({ "how": "say_much", "text": text, "number": 11 }));
        assert_eq!(failure, "limit: limit: bytes from the guest in one call 1024 KiB");
    }
    siege.lift();
}

#[test]
fn a_failure_is_no_way_round_the_limit_of_results() {
    let mut siege = Siege::with("hostile").begin();
    let text = "x".repeat(1_900_000);
    for _ in 0..2 {
        let answer = siege.call("hostile", json!({ "how": "fail", "text": text }));
        assert!(answer.to_string().len() < 1 << 20, "a failure of {} bytes", answer.to_string().len());
    }
    siege.lift();
}
