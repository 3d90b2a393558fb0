//! P-27: a guest guesses the handles of others.
//! Outcome: handles are each instance's own; a guess ends the guest, with the same words whatever the number.
//! Switched off: not tried: the check is wasmtime's own and has no off.

use serde_json::json;
use toolcrib_tests::Siege;

#[test]
fn a_guessed_handle_is_unknown_whatever_its_number() {
    let mut siege = Siege::with("hostile").allowing("hostile").begin();
    for number in [0_u32, 1, 2, 7, 1023, 1024, u32::MAX / 2, u32::MAX] {
        for _ in 0..2 {
            let failure = siege.failure("hostile", json!({ "how": "guess_handle", "number": number }));
            let words = failure.replace(&number.to_string(), "N");
            assert_eq!(words, "execution_failed: the plugin stopped: unknown handle index N");
        }
    }
    siege.lift();
}
