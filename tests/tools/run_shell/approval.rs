//! Commands that a person is asked about.

use super::text;
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Envelope, Kind};
use toolcrib::event::Event;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

/// Somebody who is asked and never answers.
#[derive(Default)]
struct Absent {
    asked: Notify,
}

#[async_trait]
impl Approver for Absent {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        self.asked.notify_one();
        std::future::pending().await
    }

    fn name(&self) -> &'static str {
        "nobody home"
    }
}

/// Calls with an approver and a cancellation of its own.
async fn call(host: &TestHost, command: &str, approver: Arc<dyn Approver>, cancel: CancellationToken) -> Envelope {
    let (called, context) = host.parts();
    let context = context.clone().approver(approver).cancel(cancel);
    called.call(Request { tool: "run_shell".into(), arguments: Arguments::Json(harmless(command)) }, &context).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_command_runs_and_the_question_shows_it_whole() {
    let host = TestHost::new().answering(Answer::Yes);
    assert_eq!(text(&host.shell("echo one\necho two").await, "stdout"), "one\ntwo\n");
    let asked = host.asked();
    assert_eq!((asked.len(), asked[0].action.as_str()), (1, "echo one\necho two"));
    assert_eq!((asked[0].tool.as_str(), asked[0].plugin.as_str()), ("run_shell", "run_shell (built in)"));
    assert_eq!(asked[0].landing.backend, "local");
    let declaration = serde_json::to_value(&asked[0].declaration).expect("JSON");
    assert_eq!(declaration, json!({ "risk": "low", "mutation": false, "privesc": false, "why": "a test" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_declaration_is_shown_as_it_was_made() {
    let host = TestHost::new().answering(Answer::Yes);
    let declared = json!({ "command": "true", "risk": "high", "mutation": true, "privesc": true, "why": "see «why»" });
    host.result("run_shell", declared).await;
    let shown = serde_json::to_value(&host.asked()[0].declaration).expect("JSON");
    assert_eq!(shown, json!({ "risk": "high", "mutation": true, "privesc": true, "why": "see «why»" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_command_does_not_run() {
    let host = TestHost::new().answering(Answer::No);
    let failure = host.shell_failure("touch ran").await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "Command execution denied by user."));
    assert!(!host.work().join("ran").exists());
    assert_eq!(host.events(), [Event::Completed { outcome: "denied" }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_be_asked_the_reason_is_the_answer() {
    let nobody = Answer::Nobody { reason: "no terminal here".into(), hint: "pass `--yes`".into() };
    let host = TestHost::new().answering(nobody);
    let failure = host.shell_failure("touch ran").await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "no terminal here"));
    assert_eq!(failure.hint.as_deref(), Some("pass `--yes`"));
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_is_asked_about_anew() {
    let host = TestHost::new().answering(Answer::Yes);
    for command in ["echo one", "echo two", "echo one"] {
        host.shell(command).await;
    }
    let actions: Vec<String> = host.asked().into_iter().map(|request| request.action).collect();
    assert_eq!(actions, ["echo one", "echo two", "echo one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_the_session_is_asked_once() {
    let host = TestHost::new().answering(Answer::YesForSession);
    for command in ["echo one", "echo two"] {
        host.shell(command).await;
    }
    assert_eq!(host.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_could_not_run_is_not_asked_about() {
    let host = TestHost::new().answering(Answer::Yes).set("tools.shell_denylist=[\"touch denied\"]");
    for (name, value) in [
        ("why", json!(" ")),
        ("why", json!("w".repeat(1025))),
        ("command", json!("a\0b")),
        ("wait", json!("bad")),
        ("wait", json!(false)),
        ("session", json!("build")),
        ("command", json!("touch denied")),
    ] {
        let mut arguments = harmless("touch ran");
        arguments[name] = value;
        host.call("run_shell", arguments).await.outcome.expect_err(name);
    }
    assert_eq!(host.asked().into_iter().map(|request| request.action).collect::<Vec<_>>(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_deceive_the_person_is_made_visible() {
    let host = TestHost::new().answering(Answer::No);
    let mut deceiving = harmless("touch ran # \u{1b}[2K\rls \u{202e}sl\u{200b}");
    deceiving["why"] = json!("\u{1b}[1A\u{7}harmless");
    host.failure("run_shell", deceiving).await;
    let request = &host.asked()[0];
    assert_eq!((request.action.as_str(), request.why()), (r"touch ran # ␛[2K␍ls \u{202e}sl\u{200b}", "␇harmless"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_ends_as_a_refusal() {
    let host = TestHost::new().set("tools.shell_confirm=true").set("approval.timeout_ms=50");
    let envelope = call(&host, "touch ran", Arc::new(Absent::default()), CancellationToken::new()).await;
    let failure = envelope.outcome.expect_err("nobody answered");
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.starts_with("nobody answered within"), "{}", failure.message);
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_while_a_person_is_asked_runs_nothing() {
    let host = TestHost::new().set("tools.shell_confirm=true");
    let (absent, cancel) = (Arc::new(Absent::default()), CancellationToken::new());
    let mut called = std::pin::pin!(call(&host, "touch ran", absent.clone(), cancel.clone()));
    tokio::select! {
        envelope = &mut called => panic!("nobody was asked: {:?}", envelope.outcome),
        () = absent.asked.notified() => cancel.cancel(),
    }
    assert_eq!(called.await.outcome.expect_err("cancelled").kind, Kind::Cancelled);
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_wants_questions_gets_them() {
    let host = TestHost::new().policy("[tools]\nshell_confirm = true\n");
    let failure = host.shell_failure("touch ran").await;
    assert_eq!((failure.kind, host.asked().len()), (Kind::Denied, 1));
    assert!(!host.work().join("ran").exists());
}
