//! Which calls a person is asked about, and what is on record.

use crate::rig::{accepting, call, echoed, host, section};
use serde_json::json;
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::{ActionKind, Answer};

#[tokio::test]
async fn a_person_is_asked_about_what_nobody_has_called_a_reader() {
    let asked = host().answering(Answer::Yes);
    let host = accepting(asked, &section("plain", &[]), &[]).await;
    assert_eq!(echoed(&host, "hello").await.expect("it was allowed"), "hello");
    let [question] = &host.asked()[..] else { panic!("one question") };
    assert_eq!(question.kind, ActionKind::ToolCall);
    assert!(question.action.contains("`echo` of the server `jotter`"), "{}", question.action);
    assert!(question.details.as_ref().is_some_and(|details| details.contains("hello")));
    assert!(
        question.headline(|_, text| text.to_owned()).contains("the model wants to call a tool of the server jotter")
    );
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
