//! A person between a command and its effect: what is asked, what an answer covers, and what happens without one.

use crate::world::{Elsewhere, HARD_TO_END, Silent, Thoughtful, context, failure, outcomes, send, small_host};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::{Answer, Landing, Nobody};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{TestHost, guest};

/// A host that asks; who answers is up to the context.
fn asking() -> TestHost {
    small_host().set("tools.shell_confirm=true")
}

fn last_action(host: &TestHost) -> Value {
    host.audit().last().expect("an outcome")["actions"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_command_runs_after_its_very_text_was_shown() {
    let host = small_host().answering(Answer::Yes);
    let text = "echo 'two words' > ran\nprintf %s \"$HOME\"  # so";
    host.shell(text).await;
    let asked = host.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].action, text);
    assert_eq!((asked[0].tool.as_str(), asked[0].plugin.as_str()), ("run_shell", "run_shell (built in)"));
    let work = host.work().canonicalize().unwrap().display().to_string();
    let landing = Landing { backend: "local".into(), pane: None, directory: Some(work), delay: None };
    assert_eq!(asked[0].landing, landing);
    assert_eq!(std::fs::read_to_string(host.work().join("ran")).unwrap(), "two words\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_declaration_reaches_the_person_and_the_trail() {
    for (risk, mutation, privesc) in [("low", false, false), ("medium", true, false), ("high", true, true)] {
        let host = small_host().answering(Answer::Yes);
        let declared = json!({ "risk": risk, "mutation": mutation, "privesc": privesc, "why": "see the date" });
        let mut arguments = declared.clone();
        arguments["command"] = json!("date");
        host.result("run_shell", arguments).await;
        let asked = host.asked().remove(0).declaration.expect("a command is declared");
        assert_eq!(
            (asked.risk.name(), asked.mutation, asked.privesc, asked.why.as_str()),
            (risk, mutation, privesc, "see the date")
        );
        assert_eq!(last_action(&host)["declaration"], declared);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_does_not_run() {
    let host = small_host().answering(Answer::No);
    let failure = host.shell_failure("touch ran").await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "Command execution denied by user."));
    assert!(!host.work().join("ran").exists());
    assert_eq!(last_action(&host)["decision"], "denied by the test");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_anyway_is_not_asked_about() {
    let host = small_host().answering(Answer::Yes);
    let mut waiting = harmless("true");
    waiting["wait"] = json!("100d");
    for arguments in [harmless(" "), harmless("a\0b"), waiting] {
        assert_eq!(host.failure("run_shell", arguments).await.kind, Kind::InvalidArguments);
    }
    assert_eq!(host.asked().len(), 0);
}

/// The text that a person approves has to hold everything that `sh` would act on.
#[tokio::test(flavor = "multi_thread")]
async fn no_part_of_a_command_can_hide_from_the_person() {
    for (begin, end) in
        [("\u{1b}]0;", "\u{7}"), ("\u{1b}P;", "\u{1b}\\"), ("\u{1b}_;", "\u{1b}\\"), ("\u{90};", "\u{9c}")]
    {
        let host = small_host().answering(Answer::Yes);
        host.call("run_shell", harmless(&format!("true {begin} touch hidden #{end}"))).await;
        let shown: Vec<String> = host.asked().into_iter().map(|request| request.action).collect();
        let ran = host.work().join("hidden").exists();
        assert!(!ran || shown[0].contains("touch hidden"), "{begin:?}: it ran, and the person saw {shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_part_of_a_command_can_hide_from_the_trail() {
    let host = small_host();
    host.call("run_shell", harmless("true \u{1b}]0;touch hidden #\u{7}")).await;
    let what = last_action(&host)["what"].clone();
    assert!(!host.work().join("hidden").exists() || what.as_str().unwrap().contains("touch hidden"), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_shown_without_control_characters() {
    let host = small_host().answering(Answer::No);
    let mut arguments = harmless("echo \u{1b}[2J\u{1b}[1;1Hsafe \u{202e}esrever\r");
    arguments["why"] = json!("\u{1b}]0;title\u{7}because");
    host.failure("run_shell", arguments).await;
    let asked = host.asked().remove(0);
    for text in [&asked.action, asked.why()] {
        assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
    assert!(asked.action.contains("safe") && asked.why().ends_with("because"));
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_for_the_session_is_asked_once() {
    let host = small_host().answering(Answer::YesForSession);
    for text in ["touch one", "touch two"] {
        host.shell(text).await;
    }
    assert_eq!(host.asked().len(), 1);
    assert!(host.work().join("two").exists());
    assert_eq!(last_action(&host)["decision"], "allowed by approval for the session");
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_for_this_once_is_asked_every_time() {
    let host = small_host().answering(Answer::Yes);
    host.shell("true").await;
    host.shell("true").await;
    assert_eq!(host.asked().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_for_the_session_does_not_cover_another_session() {
    let host = small_host().answering(Answer::YesForSession);
    host.shell("true").await;
    let other = context(&host).session(Arc::default());
    send(&host, &other, "run_shell", harmless("true")).await;
    assert_eq!(host.asked().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_for_the_session_does_not_cover_another_plugin() {
    let host = small_host().plugin("shell_echo").grant("shell_echo", "shell=true").answering(Answer::YesForSession);
    host.shell("true").await;
    host.result("shell_echo", json!({ "text": "hello" })).await;
    let asked: Vec<String> = host.asked().into_iter().map(|request| request.plugin).collect();
    assert_eq!(asked, ["run_shell (built in)", "shell_echo (third party)"]);
    host.result("shell_echo", json!({ "text": "again" })).await;
    assert_eq!(host.asked().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_for_the_session_does_not_cover_another_backend() {
    let host = small_host().answering(Answer::YesForSession);
    host.shell("true").await;
    let other = context(&host).backend(Elsewhere::new(&host, false));
    assert!(send(&host, &other, "run_shell", harmless("true")).await.outcome.is_ok());
    let asked: Vec<String> = host.asked().into_iter().map(|request| request.landing.backend).collect();
    assert_eq!(asked, ["local", "elsewhere"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn yes_for_the_session_does_not_cover_other_bytes_under_the_same_name() {
    let bytes = std::fs::read(guest("shell_echo")).unwrap();
    // A custom section without content: other bytes, the same plugin.
    let changed = [&bytes[..], &[0, 2, 1, b'x']].concat();
    let host = small_host().plugin("shell_echo").grant("shell_echo", "shell=true").answering(Answer::YesForSession);
    host.result("shell_echo", json!({ "text": "hello" })).await;
    let session = context(&host).session;
    let other = small_host().plugin_as("shell_echo", &changed);
    let digest = context(&other).tools.plugin_of("shell_echo").ok().unwrap().sha256().to_owned();
    let other = small_host()
        .plugin_as("shell_echo", &changed)
        .set(&format!("plugin.shell_echo.sha256={digest:?}"))
        .set("plugin.shell_echo.shell=true")
        .answering(Answer::YesForSession);
    let context = context(&other).session(session);
    let envelope = send(&other, &context, "shell_echo", json!({ "text": "changed" })).await;
    assert_eq!(envelope.outcome.map(|output| output.result), Ok(json!("changed")));
    assert_eq!(other.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nobody_to_ask_the_answer_says_what_to_set() {
    let host = asking();
    let context = context(&host).approver(Arc::new(Nobody));
    let failure = failure(send(&host, &context, "run_shell", harmless("touch ran")).await);
    assert_eq!(failure.kind, Kind::Denied);
    let hint = failure.hint.unwrap();
    assert!(hint.contains("`--yes`") && hint.contains("`shell_confirm = false` under [tools]"), "{hint}");
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_in_time_is_a_refusal() {
    let host = asking().set("approval.timeout_ms=50");
    let person = Arc::new(Silent::default());
    let context = context(&host).approver(person.clone());
    let failure = failure(send(&host, &context, "run_shell", harmless("touch ran")).await);
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.starts_with("nobody answered within "), "{}", failure.message);
    assert_eq!(person.withdrawn.load(Ordering::SeqCst), 1);
    assert!(!host.work().join("ran").exists());
    assert_eq!(outcomes(&host.audit()), ["denied"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_nobody_answered_in_is_told_as_it_was_set() {
    let host = asking().set("approval.timeout_ms=50");
    let context = context(&host).approver(Arc::new(Silent::default()));
    let message = failure(send(&host, &context, "run_shell", harmless("true")).await).message;
    assert_eq!(message, "nobody answered within 50ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_a_person_takes_is_not_the_calls() {
    let host = asking().set("limits.call_ms=2000").set("limits.grace_ms=0");
    let approver = Arc::new(Thoughtful(Duration::from_millis(2500)));
    let context = context(&host).approver(approver);
    let envelope = send(&host, &context, "run_shell", harmless("touch ran")).await;
    assert!(envelope.outcome.is_ok(), "{}", envelope.to_json());
    assert!(host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_without_a_grant_asks_nobody() {
    let host = small_host().plugin("shell_echo").answering(Answer::Yes);
    let failure = host.failure("shell_echo", json!({ "text": "hello" })).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "`shell_echo` needs `shell`, which the policy does not grant");
    assert!(failure.hint.unwrap().starts_with("allow it: `toolcrib plugin allow "));
    assert_eq!(host.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_command_is_shown_whole() {
    let host = small_host().answering(Answer::No);
    let text = format!("{HARD_TO_END}\n{}", "# line\n".repeat(5000));
    host.shell_failure(&text).await;
    assert_eq!(host.asked().remove(0).action, text);
}
