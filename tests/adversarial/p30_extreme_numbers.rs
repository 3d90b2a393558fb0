//! P-30: numbers at the edges of their types, in arguments and in host calls.
//! Outcome: refused or clamped, each with its own words; never a panic.
//! Switched off: without the upper bound of a wait (`capability/shell.rs`) the command ran and the first test failed.

use serde_json::{Value, json};
use toolcrib_tests::shell::waiting;
use toolcrib_tests::{Preparation, Siege};

#[test]
fn extreme_numbers_of_a_guest_are_refused_or_clamped() {
    let mut siege = Siege::with("hostile").allowing("hostile").begin();
    for _ in 0..2 {
        let answer = siege.call("hostile", json!({ "how": "extreme_numbers", "text": "health.txt" }));
        assert_eq!(answer["result"], "invalid_arguments|timed_out||");
    }
    siege.lift();
}

#[test]
fn extreme_numbers_of_a_caller_are_refused_or_clamped() {
    let numbers: [Value; 12] = [
        json!(-1),
        json!(0),
        json!(0.5),
        json!(-0.0),
        json!(1e308),
        json!(-1e308),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(u32::MAX),
        serde_json::from_str("18446744073709551616").expect("a number"),
        serde_json::from_str("1e400").unwrap_or(Value::Null),
    ];
    let mut siege = Preparation::new().begin();
    for number in numbers {
        for argument in ["offset", "limit", "max_chars"] {
            let answer = siege.call("read_file", json!({ "path": "health.txt", argument: number }));
            let kind = answer["error"]["kind"].as_str();
            assert!(matches!(kind, None | Some("invalid_arguments" | "execution_failed")), "{argument}: {answer}");
        }
        let answer = siege.call("run_shell", waiting("true", number.clone()));
        let kind = answer["error"]["kind"].as_str();
        assert!(matches!(kind, None | Some("invalid_arguments" | "timed_out")), "wait: {answer}");
    }
    siege.lift();
}
