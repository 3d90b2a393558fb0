//! What a caller gets back: one shape for success, one for failure, stamped by the harness.

use crate::world::{completed, small_host};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use toolcrib::call::Arguments;
use toolcrib::envelope::Kind;
use toolcrib::event::Event;
use toolcrib_tests::shell::harmless;

/// Takes the time out of an envelope, after a look at it.
fn unstamped(mut envelope: Value) -> Value {
    let stamp = envelope["harness_timestamp"].as_object_mut().expect("a stamp");
    let then = stamp.remove("unix_millis").and_then(|millis| millis.as_u64()).expect("an integer");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    assert!(u128::from(then) <= now && now - u128::from(then) < 60_000, "{then} is not now, {now}");
    envelope
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_has_the_stamp_of_the_harness_and_a_result() {
    let host = small_host();
    std::fs::write(host.work().join("a.txt"), "hello").unwrap();
    let envelope = host.call("read_file", json!({ "path": "a.txt" })).await;
    assert_eq!(envelope.exit_code(), 0);
    assert_eq!(
        unstamped(envelope.to_json()),
        json!({ "harness_timestamp": { "source": "harness" }, "result": "hello" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_has_the_same_stamp_and_an_error() {
    let envelope = small_host().call("tmie", json!({})).await;
    let error = json!({ "kind": "unknown_tool", "message": "there is no tool `tmie`", "hint": "did you mean `time`?" });
    assert_eq!(unstamped(envelope.to_json()), json!({ "harness_timestamp": { "source": "harness" }, "error": error }));
    assert_eq!(envelope.exit_code(), 3);
    assert_eq!(envelope.outcome.unwrap_err().to_text(), "Tool error: there is no tool `tmie`");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_stand_in_the_order_that_readers_expect() {
    let host = small_host();
    let keys = |envelope: Value| envelope.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    std::fs::write(host.work().join("long.txt"), "x".repeat(9000)).unwrap();
    let success = host.call("read_file", json!({ "path": "long.txt" })).await.to_json();
    assert!(success["notices"][0].as_str().unwrap().contains("9000"), "{success}");
    assert_eq!(keys(success), ["harness_timestamp", "result", "notices"]);
    assert_eq!(keys(host.call("nothing", json!({})).await.to_json()), ["harness_timestamp", "error"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_sequences_in_a_result_are_removed_with_a_notice() {
    let host = small_host();
    let envelope = host.call("run_shell", harmless(r"printf '\033[2Jclean'")).await.to_json();
    assert_eq!(envelope["result"]["stdout"], "clean");
    assert_eq!(envelope["notices"], json!(["control characters were removed from the result or made visible"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_answered_with_the_nearest_name() {
    let host = small_host();
    let meant =
        [("read-file", "read_file"), ("ReadFile", "read_file"), ("runshell", "run_shell"), ("Bash", "run_shell")];
    for (given, nearest) in meant {
        let failure = host.failure(given, json!({})).await;
        assert_eq!(failure.kind, Kind::UnknownTool);
        assert_eq!(failure.message, format!("there is no tool `{given}`"));
        assert_eq!(failure.hint, Some(format!("did you mean `{nearest}`?")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_that_is_like_none_is_answered_with_the_list() {
    for given in ["", "zzzzzzzzz"] {
        let failure = small_host().failure(given, json!({})).await;
        assert_eq!(failure.hint.as_deref(), Some("`toolcrib tools` lists the tools"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_an_unknown_tool_cannot_carry_more_than_a_name() {
    let failure = small_host().failure(&format!("\u{1b}[2J{}", "x".repeat(100_000)), json!({})).await;
    assert!(failure.message.len() < 200 && !failure.message.contains(char::is_control), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_is_a_success_of_the_tool() {
    let host = small_host();
    let result = host.shell("echo out; exit 42").await;
    assert_eq!((result["exit_code"].as_i64(), result["stdout"].as_str()), (Some(42), Some("out\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_prints_last_on_either_stream_is_not_lost() {
    let host = small_host();
    for _ in 0..100 {
        let result = host.shell("printf out; printf err >&2").await;
        assert_eq!((&result["stdout"], &result["stderr"]), (&json!("out"), &json!("err")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_watched_from_its_start_to_its_one_end() {
    let host = small_host();
    host.shell("echo hello").await;
    let events = host.events();
    assert_eq!(events.first(), Some(&Event::Started { detail: "echo hello".into() }));
    assert!(events.contains(&Event::Stdout { text: "hello\n".into() }), "{events:?}");
    assert_eq!(events.last(), Some(&Event::Completed { outcome: "ok" }));
    assert_eq!(completed(&events), ["ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failed_call_completes_once_with_its_kind() {
    let host = small_host();
    host.failure("nothing", json!({})).await;
    host.send("time", Arguments::Text("{".into())).await;
    host.failure("read_file", json!({ "path": "missing" })).await;
    assert_eq!(completed(&host.events()), ["unknown_tool", "invalid_arguments", "execution_failed"]);
}
