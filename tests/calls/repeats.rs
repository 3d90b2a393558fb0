//! The same failing call again and again: two runs, then the remedy, until something may have changed.

use crate::world::{context, failure, send, small_host};
use serde_json::{Value, json};
use std::sync::Arc;
use toolcrib::envelope::Kind;
use toolcrib::event::Event;
use toolcrib::policy::approval::Answer;
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

/// Calls that reached the file system, by what the audit trail says they did.
fn runs(host: &TestHost) -> usize {
    host.audit().iter().filter(|line| line["actions"].is_array()).count()
}

fn missing() -> Value {
    json!({ "path": "missing", "offset": 1 })
}

async fn fail_twice(host: &TestHost) {
    for _ in 0..2 {
        host.failure("read_file", missing()).await;
    }
    assert_eq!(runs(host), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_identical_failures_are_two_runs_and_seven_remedies() {
    let host = small_host();
    let mut failures = Vec::new();
    for _ in 0..9 {
        failures.push(host.failure("read_file", missing()).await);
    }
    assert_eq!(runs(&host), 2);
    assert_eq!(failures[0], failures[1]);
    let original = &failures[0];
    for remedy in &failures[2..] {
        assert_eq!(remedy.kind, Kind::ExecutionFailed);
        let words = "`read_file` was not run again: these arguments failed 2 times with: ";
        assert_eq!(remedy.message, format!("{words}{}", original.message));
        let advice = "change the arguments, or fix what the message names and wait a minute";
        assert_eq!(remedy.hint, Some(format!("{}; {advice}", original.hint.as_ref().unwrap())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_said_no_twice_is_not_asked_again() {
    let host = small_host().answering(Answer::No);
    for _ in 0..9 {
        assert_eq!(host.shell_failure("touch ran").await.kind, Kind::Denied);
    }
    assert_eq!(host.asked().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_tool_itself_refuses_counts_too() {
    let host = small_host();
    let mut messages = Vec::new();
    for _ in 0..9 {
        messages.push(host.shell_failure(" ").await.message);
    }
    assert_eq!(messages[..2], ["`command` is blank"; 2]);
    assert!(messages[2..].iter().all(|message| message.starts_with("`run_shell` was not run again: ")), "{messages:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_arguments_are_another_call() {
    let host = small_host();
    fail_twice(&host).await;
    for other in [json!({ "path": "missing" }), json!({ "path": "missing", "offset": 2 }), json!({ "path": "absent" })]
    {
        host.failure("read_file", other).await;
    }
    assert_eq!(runs(&host), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_principal_is_another_caller() {
    let host = small_host();
    fail_twice(&host).await;
    let other = context(&host).principal("somebody else");
    send(&host, &other, "read_file", missing()).await;
    assert_eq!(runs(&host), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_session_remembers_nothing() {
    let host = small_host();
    fail_twice(&host).await;
    let other = context(&host).session(Arc::default());
    send(&host, &other, "read_file", missing()).await;
    assert_eq!(runs(&host), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_keys_makes_no_difference() {
    let host = small_host();
    fail_twice(&host).await;
    let turned = serde_json::from_str(r#"{"offset":1,"path":"missing"}"#).unwrap();
    assert!(host.failure("read_file", turned).await.message.contains("was not run again"));
    assert_eq!(runs(&host), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_and_an_argument_left_away_make_no_difference() {
    let host = small_host();
    for arguments in [json!({ "path": "missing" }), json!({ "path": "missing", "offset": null })] {
        host.failure("read_file", arguments).await;
    }
    let failure = host.failure("read_file", json!({ "offset": null, "path": "missing" })).await;
    assert!(failure.message.contains("was not run again"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_that_touches_state_lets_the_call_run_again() {
    let host = small_host();
    fail_twice(&host).await;
    host.result("write_file", json!({ "path": "missing", "content": "there now" })).await;
    let result = host.result("read_file", missing()).await;
    assert_eq!(result, "here now");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_exits_counts_as_touching_state() {
    let host = small_host();
    fail_twice(&host).await;
    host.shell("exit 3").await;
    host.failure("read_file", missing()).await;
    assert!(host.failure("read_file", missing()).await.message.starts_with('`'));
    assert_eq!(host.audit().iter().filter(|line| line["actions"][0]["capability"] == "files").count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_that_only_looks_changes_nothing() {
    let host = small_host();
    fail_twice(&host).await;
    host.result("time", json!({})).await;
    assert!(host.failure("read_file", missing()).await.message.contains("was not run again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_of_the_call_itself_begins_the_count_anew() {
    let host = small_host();
    let path = host.work().join("missing");
    host.failure("read_file", missing()).await;
    std::fs::write(&path, "x").unwrap();
    host.result("read_file", missing()).await;
    std::fs::remove_file(&path).unwrap();
    for _ in 0..3 {
        host.failure("read_file", missing()).await;
    }
    assert_eq!(runs(&host), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_may_pass_by_itself_is_tried_every_time() {
    let host = small_host();
    let mut arguments = harmless("sleep 1000");
    arguments["wait"] = json!("1ms");
    for _ in 0..4 {
        let failure = failure(host.call("run_shell", arguments.clone()).await);
        assert_eq!(failure.kind, Kind::TimedOut);
        assert!(!failure.message.contains("not run again"), "{}", failure.message);
    }
    assert_eq!(host.events().iter().filter(|event| matches!(event, Event::Started { .. })).count(), 4);
}

/// Case 62: equal calls are counted until another one changes something; off where nothing is set.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_go_round_in_circles_are_ended_where_settings_say_so() {
    let host = TestHost::new().set("tools.equal_calls=7");
    std::fs::write(host.work().join("a"), "x").expect("a file");
    let test = || harmless("cat a");
    for time in 1..=7 {
        let outcome = host.call("run_shell", test()).await.outcome.expect("a result");
        let said = outcome.notices.iter().any(|notice| notice.contains(&format!("this is call {time} of `run_shell`")));
        assert_eq!(said, time > 3, "{time}: {:?}", outcome.notices);
    }
    let ended = host.failure("run_shell", test()).await;
    let message = "`run_shell` was called 7 times with these arguments, and nothing else has changed";
    assert_eq!((ended.kind, &*ended.message), (Kind::Limit, message));
    // Other arguments are another call; and a write lets it go on.
    assert_eq!(host.result("read_file", json!({ "path": "a" })).await, "x");
    assert_eq!(host.failure("run_shell", test()).await.kind, Kind::Limit);
    for _ in 0..10 {
        host.result("write_file", json!({ "path": "a", "content": "y" })).await;
        let outcome = host.call("run_shell", test()).await.outcome.expect("a result");
        assert_eq!(outcome.notices, [""; 0]);
    }
    let host = TestHost::new();
    for _ in 0..20 {
        assert!(host.call("time", json!({})).await.outcome.expect("a result").notices.is_empty());
    }
}
