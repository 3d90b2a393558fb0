//! P-72: a result of fifty thousand empty parts: no text, and a place for each in every envelope.
//! Outcome: `limit`; a part counts with what it costs to carry, not with its text alone.
//! Switched off: with the bytes of the texts alone (`check_output` in `call/outcome.rs`) the parts came through and both tests failed.

use crate::process::peak_mib;
use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

/// Answers `"ok"` with a list at untouched memory: at `field` its address, behind that its length.
fn refused(field: u32) {
    let call = format!(
        "(drop (memory.grow (i32.const 300)))
        (i32.store (i32.const 32) (i32.const 0x226b6f22))
        (i32.store (i32.const 68) (i32.const 32)) (i32.store (i32.const 72) (i32.const 4))
        (i32.store (i32.const {field}) (i32.const 0x400000)) (i32.store (i32.const {}) (i32.const 50000))
        (return (i32.const 64))",
        field + 4
    );
    let mut siege = Preparation::new().component("parts", &Forged::new("parts").call(&call).bytes()).begin();
    let before = peak_mib(siege.pid());
    for _ in 0..2 {
        let failure = siege.failure("parts", json!({}));
        assert_eq!(failure, "limit: limit: result 1024 KiB, this one has 12800004 bytes");
    }
    assert!(peak_mib(siege.pid()) < before + 24, "the host took {} MiB", peak_mib(siege.pid()) - before);
    siege.lift();
}

#[test]
fn fifty_thousand_empty_texts_are_over_the_limit_of_a_result() {
    refused(76);
}

#[test]
fn fifty_thousand_empty_notices_are_over_the_limit_of_a_result() {
    refused(84);
}
