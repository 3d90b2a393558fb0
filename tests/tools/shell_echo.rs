//! `shell_echo`, a third-party plugin that runs commands: the same denylist, approval and audit as a built-in one.

use serde_json::json;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::Answer;
use toolcrib_tests::{TestHost, digest, guest};

fn granted() -> TestHost {
    TestHost::new().plugin("shell_echo").grant("shell_echo", "shell=true")
}

async fn refused(host: &TestHost) -> Failure {
    host.failure("shell_echo", json!({ "text": "hello" })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_runs_before_the_plugin_is_allowed() {
    let host = TestHost::new().plugin("shell_echo").answering(Answer::Yes);
    let failure = refused(&host).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "`shell_echo` needs `shell`, which the policy does not grant");
    let hint = failure.hint.expect("a hint");
    assert!(
        hint.starts_with("allow it: `toolcrib plugin allow /") && hint.ends_with("/shell_echo.wasm --shell`"),
        "{hint}"
    );
    assert!(host.asked().is_empty() && host.events().len() == 1, "{:?}", host.events());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_plugin_prints_through_the_shell() {
    let host = granted();
    for text in ["hello", "", "two\nlines\n", "it's $HOME `id`; exit 3", "世界 🙂"] {
        assert_eq!(host.result("shell_echo", json!({ "text": text })).await, text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_files_is_none_for_the_shell() {
    let host = TestHost::new().plugin("shell_echo").grant("shell_echo", "files.read=[\"/\"]");
    let failure = refused(&host).await;
    assert_eq!(failure.message, "`shell_echo` needs `shell`, which the policy does not grant");
    assert_eq!(failure.hint.as_deref(), Some("add `shell = true` under [plugin.shell_echo]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hint_of_a_refusal_opens_it_when_followed() {
    let host = TestHost::new().plugin("shell_echo").grant("shell_echo", "shell=false");
    assert_eq!(refused(&host).await.hint.as_deref(), Some("add `shell = true` under [plugin.shell_echo]"));
    let host = TestHost::new().plugin("shell_echo").grant("shell_echo", "shell = true");
    assert_eq!(host.result("shell_echo", json!({ "text": "hello" })).await, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_under_the_same_name_start_with_nothing() {
    let mut bytes = std::fs::read(guest("shell_echo")).expect("a guest that was built");
    bytes.extend([0, 2, 1, b'x']);
    let failure = refused(&granted().plugin_as("shell_echo", &bytes)).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "`shell_echo` needs `shell`, but these are not the bytes that were allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_plugin_under_an_allowed_name_starts_with_nothing() {
    let bytes = std::fs::read(guest("shell_echo")).expect("a guest that was built");
    let host = TestHost::new().plugin_as("word_count", &bytes).grant("word_count", "shell=true");
    let failure = refused(&host).await;
    assert_eq!(failure.message, "`word_count` needs `shell`, but these are not the bytes that were allowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_without_shell_for_the_plugin_wins() {
    let host = granted().policy("[plugin.shell_echo]\nshell = false\n");
    assert_eq!(refused(&host).await.kind, Kind::Denied);
    assert_eq!(host.shell("echo built in").await["stdout"], "built in\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_grants_nothing_by_itself() {
    let section = format!("[plugin.shell_echo]\nsha256 = {:?}\nshell = true\n", digest("shell_echo"));
    let host = TestHost::new().plugin("shell_echo").policy(&section);
    assert_eq!(refused(&host).await.kind, Kind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_for_the_shell_is_above_every_grant() {
    let host = granted().policy("[tools]\nshell_enabled = false\n");
    assert_eq!(refused(&host).await.message, "`shell` is switched off by `tools.shell_enabled = false`");
    assert_eq!(host.shell_failure("true").await.message, "`shell` is switched off by `tools.shell_enabled = false`");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_names_the_plugin_and_the_whole_command() {
    let host = granted().answering(Answer::Yes);
    host.result("shell_echo", json!({ "text": "it's" })).await;
    let asked = host.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].tool.as_str(), asked[0].plugin.as_str()), ("shell_echo", "shell_echo (third party)"));
    assert_eq!(asked[0].action, r"printf %s 'it'\''s'");
    assert_eq!(asked[0].why(), "print the text that the caller gave");
    assert_eq!(asked[0].landing.backend, "local");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_says_no_is_obeyed() {
    let host = granted().answering(Answer::No);
    let failure = refused(&host).await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "Command execution denied by user."));
    assert!(host.events().iter().all(|event| !matches!(event, toolcrib::event::Event::Started { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_the_session_is_for_one_plugin() {
    let host = granted().answering(Answer::YesForSession);
    for text in ["one", "two"] {
        host.result("shell_echo", json!({ "text": text })).await;
    }
    assert_eq!(host.asked().len(), 1);
    host.shell("true").await;
    host.shell("true").await;
    let plugins: Vec<String> = host.asked().into_iter().map(|request| request.plugin).collect();
    assert_eq!(plugins, ["shell_echo (third party)", "run_shell (built in)"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_denylist_binds_it_too() {
    let host = granted().set("tools.shell_denylist=[\"printf\"]").answering(Answer::Yes);
    let failure = refused(&host).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.contains("`tools.shell_denylist`"), "{}", failure.message);
    assert!(host.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn its_commands_are_audited_with_its_digest() {
    let host = granted();
    host.result("shell_echo", json!({ "text": "hello" })).await;
    let audit = host.audit();
    let outcome = audit.last().expect("an audit line");
    let sha256 = outcome["plugin_sha256"].as_str().unwrap_or_default();
    assert_eq!((sha256.len(), &outcome["tool"], &outcome["outcome"]), (64, &json!("shell_echo"), &json!("ok")));
    assert_eq!(outcome["actions"][0]["what"], "printf %s 'hello'");
    assert_eq!(outcome["actions"][0]["decision"], "allowed by tools.shell_confirm");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_plugin_is_no_hindrance_to_the_next_call() {
    let host = TestHost::new().plugin("shell_echo");
    assert_eq!(refused(&host).await.kind, Kind::Denied);
    assert_eq!(host.shell("echo next").await["stdout"], "next\n");
}
