//! P-10: a list of a million empty strings, which costs the guest nothing and the host a place for each.
//! Outcome: `limit`; places count, not only the text in them.
//! Switched off: with hostcall fuel of 1 GiB (`sandbox/mod.rs`) a million notices came through and the test failed.

use crate::process::peak_mib;
use serde_json::json;
use toolcrib_tests::Preparation;
use toolcrib_tests::forge::Forged;

#[test]
fn a_million_empty_notices_are_refused_before_there_is_room_made_for_them() {
    // `ok`, with the notices at untouched memory: a million times address 0, length 0.
    let call = r"(drop (memory.grow (i32.const 300)))
        (i32.store (i32.const 84) (i32.const 0x100000)) (i32.store (i32.const 88) (i32.const 1000000))
        (return (i32.const 64))";
    let mut siege = Preparation::new().component("list", &Forged::new("list").call(call).bytes()).begin();
    let before = peak_mib(siege.pid());
    for _ in 0..2 {
        let failure = siege.failure("list", json!({}));
        assert_eq!(failure, "limit: limit: bytes from the guest in one host call 4096 KiB");
    }
    assert!(peak_mib(siege.pid()) < before + 16, "the host took it in");
    siege.lift();
}
