//! P-16: text that is none: invalid UTF-8, NUL, noncharacters, lone surrogates.
//! Outcome: invalid UTF-8 ends the guest; what no reader should meet is shown as a picture or left away, with a notice.
//! Switched off: without `clean_output` (`call/outcome.rs`) NUL and U+FFFF came through and the test failed; the check of UTF-8 is wasmtime's own.

use serde_json::json;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{Preparation, Siege};

#[test]
fn invalid_utf_8_ends_the_guest() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        let failure = siege.failure("hostile", json!({ "how": "invalid_utf8" }));
        assert!(failure.starts_with("execution_failed: the plugin stopped: invalid utf-8"), "{failure}");
    }
    siege.lift();
}

#[test]
fn an_encoded_surrogate_in_a_result_ends_the_guest() {
    // `ok` with the JSON `"\u{d800}"` as three bytes that UTF-8 does not have.
    let call = "(i32.store (i32.const 96) (i32.const 0x80a0ed22)) (i32.store8 (i32.const 100) (i32.const 0x22))
        (i32.store (i32.const 68) (i32.const 96)) (i32.store (i32.const 72) (i32.const 5))
        (return (i32.const 64))";
    let mut siege = Preparation::new().component("lone", &Forged::new("lone").call(call).bytes()).begin();
    for _ in 0..2 {
        let failure = siege.failure("lone", json!({}));
        assert!(failure.starts_with("execution_failed: the plugin stopped: invalid utf-8"), "{failure}");
    }
    siege.lift();
}

#[test]
fn nul_and_noncharacters_do_not_come_through() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        let answer = siege.call("hostile", json!({ "how": "odd_text" }));
        assert_eq!(answer["result"], "a␀bcd");
        let notice = "control characters were removed from the result or made visible";
        assert_eq!(answer["notices"], json!([notice]));
    }
    siege.lift();
}
