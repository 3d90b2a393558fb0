//! Which calls a person is asked about, and what is on record.

use crate::rig::{accepting, behaving, call, echoed, host, section};
use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::{ActionKind, Answer};
use toolcrib_tests::TestHost;

#[tokio::test]
async fn a_person_is_asked_about_what_nobody_has_called_a_reader() {
    let asked = host().answering(Answer::Yes);
    let host = accepting(asked, &section("plain", &[]), &[]).await;
    assert_eq!(echoed(&host, "hello").await.expect("it was allowed"), "hello");
    let [question] = &host.asked()[..] else { panic!("one question") };
    assert_eq!(question.kind, ActionKind::ToolCall);
    assert!(question.action.contains("`echo` of the server `jotter`"), "{}", question.action);
    assert!(question.details.as_ref().is_some_and(|details| details.contains("hello")));
    assert!(question.headline(|text| text.to_owned()).contains("the model wants to call a tool of the server jotter"));
    // That it says itself that it reads counts for nothing.
    call(&host, "read_note", json!({})).await.expect("it was allowed");
    assert_eq!(host.asked().len(), 2);
    let host = host.set("upstream.jotter.reads=[\"read_*\"]");
    call(&host, "read_note", json!({})).await.expect("a person has called it a reader");
    assert_eq!(host.asked().len(), 2);
    let host = host.set("upstream.jotter.confirm=all");
    call(&host, "read_note", json!({})).await.expect("it was allowed");
    assert_eq!(host.asked().len(), 3);
}

#[tokio::test]
async fn a_no_is_a_denial_and_the_server_hears_nothing_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let section = section("log", &[&log.display().to_string()]);
    let section = toolcrib::config::UpstreamSection { write: vec![directory.path().to_owned()], ..section };
    let host =
        accepting(host().answering(Answer::No), &section, &[&format!("write={}", json!([directory.path()]))]).await;
    let failure = echoed(&host, "secret plans").await.expect_err("a person said no");
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "Call denied by user."));
    assert!(!std::fs::read_to_string(&log).expect("what it heard").contains("secret plans"));
}

#[tokio::test]
async fn a_yes_for_the_session_is_for_one_tool() {
    let host = accepting(host().answering(Answer::YesForSession), &section("plain", &[]), &[]).await;
    for _ in 0..3 {
        echoed(&host, "hello").await.expect("it was allowed");
    }
    assert_eq!(host.asked().len(), 1);
    call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect("it was allowed");
    assert_eq!(host.asked().len(), 2);
}

#[tokio::test]
async fn tools_that_settings_leave_out_are_not_there() {
    let host = accepting(host(), &section("plain", &[]), &["confirm=none", "tools=[\"e*\"]"]).await;
    assert_eq!(crate::rig::offered(&host).await, ["jotter__echo"]);
    assert_eq!(call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect_err("not offered").kind, Kind::UnknownTool);
}

#[tokio::test]
async fn each_call_is_on_record_with_its_arguments() {
    let host = accepting(host(), &section("plain", &[]), &["confirm=none"]).await;
    echoed(&host, "for the record").await.expect("a result");
    let audit = host.audit();
    let line =
        audit.iter().map(ToString::to_string).find(|line| line.contains("for the record")).expect("it is on record");
    assert!(line.contains("call echo with") && line.contains("\"upstream\""), "{line}");
}

#[tokio::test]
async fn under_a_lock_what_nobody_vetted_is_not_there() {
    let host = accepting(host(), &section("plain", &[]), &["confirm=none"]).await;
    assert_eq!(crate::rig::offered(&host).await.len(), 3);
    let host = host.policy("[lock]\nplugins = \"pins\"\n");
    assert!(crate::rig::offered(&host).await.is_empty());
    assert_eq!(echoed(&host, "x").await.expect_err("nobody vetted it").kind, Kind::Denied);
}

/// A question of the server is answered with what it proposes, where a person wants that, and it has four.
#[tokio::test]
async fn a_server_has_four_questions_and_a_yes_gives_it_what_it_proposes() {
    let ask = &["elicitation=\"ask\""];
    let said = async |host: &TestHost, field: &str| -> Value {
        serde_json::from_str(&echoed(host, field).await.expect("what came of them")).expect("JSON")
    };
    let host = behaving("wonders", ask).await.answering(Answer::Yes);
    let given = json!({ "action": "accept", "content": { "color": "blue" } });
    assert_eq!(said(&host, "color").await, json!([given, given, given, given, "refused", "refused"]));
    let questions: Vec<ActionKind> = host.asked().iter().map(|question| question.kind).collect();
    assert_eq!(questions, [ActionKind::Answer; 4], "each anew");
    assert!(host.asked()[0].details.as_deref().is_some_and(|details| details.contains("blue")));
    let trail = host.audit().iter().map(ToString::to_string).collect::<String>();
    assert!(trail.contains("answer the question: Which 0?"), "{trail}");
    // A no, a secret, and who may not ask.
    let declined = json!({ "action": "decline" });
    let host = behaving("wonders", ask).await.answering(Answer::No);
    assert_eq!(said(&host, "color").await[0], declined);
    let host = behaving("wonders", ask).await.answering(Answer::Yes);
    assert_eq!(said(&host, "API token").await[0], declined);
    assert!(host.asked().is_empty(), "nobody sees that");
    let host = behaving("wonders", &[]).await.answering(Answer::Yes);
    assert_eq!(said(&host, "color").await[0], "refused");
    assert!(host.asked().is_empty());
}

/// A server that asks on and on gets no more time by that.
#[tokio::test]
async fn questions_give_no_more_time_than_people_take() {
    let host = behaving("asks", &["elicitation=\"ask\"", "timeout_ms=1500"]).await.answering(Answer::No);
    let begin = std::time::Instant::now();
    let failure = call(&host, "echo", json!({ "text": "50" })).await.map(drop);
    assert!(begin.elapsed() < std::time::Duration::from_secs(8), "{failure:?}");
    assert!(host.asked().len() <= 4);
}
