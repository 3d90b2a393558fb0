//! The trail of what was asked and what came of it: two lines a call, for this user's eyes, never rewritten.

use crate::world::{context, outcomes, send, small_host, started_again};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use toolcrib::audit::Batch;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Envelope, Kind};
use toolcrib::event::{Event, EventSink};
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

#[tokio::test(flavor = "multi_thread")]
async fn every_call_leaves_one_accepted_and_one_outcome_line() {
    let host = small_host().answering(Answer::No).set("limits.command_ms=50");
    host.result("time", json!({})).await;
    host.failure("nothing", json!({})).await;
    host.send("time", Arguments::Text("{".into())).await;
    host.failure("time", json!({ "a": 1 })).await;
    host.failure("read_file", json!({ "path": "missing" })).await;
    host.shell_failure("true").await;
    assert_eq!(
        outcomes(&host.audit()),
        ["ok", "unknown_tool", "invalid_arguments", "invalid_arguments", "execution_failed", "denied"]
    );
}

/// A process that is killed leaves what it had begun.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_on_record_before_its_command_runs() {
    let host = small_host().set("confine.mode=off");
    let trail = host.dirs().audit();
    let seen = host.shell(&format!("cat '{}'", trail.display())).await["stdout"].to_string();
    assert!(seen.contains(r#"\"event\":\"accepted\""#) && !seen.contains("outcome"), "{seen}");
}

/// Looks at the trail when it is asked.
struct LookingWhenAsked(Arc<TestHost>, Mutex<Vec<Value>>);

#[async_trait]
impl Approver for LookingWhenAsked {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        *self.1.lock().unwrap() = self.0.audit();
        Answer::No
    }

    fn name(&self) -> &'static str {
        "the test"
    }
}

/// Nothing was waited for by then: what a plugin may do is behind the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_on_record_before_its_plugin_may_do_anything() {
    let host = Arc::new(small_host().set("tools.shell_confirm=true").set("confine.mode=off"));
    let looking = Arc::new(LookingWhenAsked(host.clone(), Mutex::default()));
    send(&host, &context(&host).approver(looking.clone()), "run_shell", harmless("true")).await;
    let seen = looking.1.lock().unwrap().clone();
    assert_eq!(seen.iter().map(|line| line["event"].clone()).collect::<Vec<_>>(), ["accepted"]);
}

/// Looks at the trail when the guest says something.
struct Looking(Arc<TestHost>, Mutex<Vec<Value>>);

impl EventSink for Looking {
    fn emit(&self, event: Event) {
        if let Event::Log { .. } = event {
            *self.1.lock().unwrap() = self.0.audit();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_on_record_before_its_plugin_is_heard() {
    let host = Arc::new(small_host().plugin("hostile"));
    let say = |times: u64| json!({ "how": "say_much", "text": "x", "number": times });
    // Loaded, so that nothing is waited for before it is heard.
    host.result("hostile", say(0)).await;
    let looking = Arc::new(Looking(host.clone(), Mutex::default()));
    send(&host, &context(&host).events(looking.clone()), "hostile", say(1)).await;
    let seen = looking.1.lock().unwrap().clone();
    assert_eq!(seen.iter().map(|line| line["event"].clone()).collect::<Vec<_>>(), ["accepted", "outcome", "accepted"]);
}

/// Nothing of such a call can be lost but the call itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_did_nothing_is_on_record_as_a_whole() {
    let host = small_host();
    host.result("time", json!({})).await;
    let events: Vec<Value> = host.audit().iter().map(|line| line["event"].clone()).collect();
    assert_eq!(events, ["accepted", "outcome"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_says_who_asked_what_where_and_when() {
    let host = small_host();
    let context = context(&host).principal("cli:me");
    send(&host, &context, "time", json!({})).await;
    let audit = host.audit();
    let digest = context.tools.plugin_of("time").ok().unwrap().sha256();
    for line in &audit {
        assert_eq!(
            (&line["principal"], &line["tool"], &line["backend"]),
            (&json!("cli:me"), &json!("time"), &json!("local"))
        );
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.contains('T'), "{time}");
        assert_eq!(line["call"].as_str().unwrap().len(), 32);
    }
    assert_eq!(audit[1]["plugin_sha256"], digest);
    assert!(audit[1]["duration_ms"].is_u64());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_on_record_with_declaration_and_decision() {
    let host = small_host().set("confine.mode=off");
    host.shell("echo 'on record'").await;
    let action = json!({
        "capability": "shell",
        "what": "echo 'on record'",
        "confinement": "unconfined",
        "declaration": { "risk": "low", "mutation": false, "privesc": false, "why": "a test" },
        "decision": "allowed by tools.shell_confirm",
    });
    assert_eq!(host.audit()[1]["actions"], json!([action]));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_on_record_whether_they_were_opened_or_not() {
    let host = small_host();
    host.result("write_file", json!({ "path": "a.txt", "content": "x" })).await;
    host.failure("write_file", json!({ "path": "/etc/passwd", "content": "x" })).await;
    let actions: Vec<Value> = host.audit().into_iter().filter_map(|line| line.get("actions").cloned()).collect();
    assert_eq!(actions[0], json!([{ "capability": "files", "what": "write a.txt", "decision": "allowed" }]));
    assert_eq!(actions[1][0]["what"], "write /etc/passwd");
    assert!(actions[1][0]["decision"].as_str().unwrap().starts_with("denied: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_leads_nowhere_is_on_record() {
    let host = small_host();
    host.failure("read_file", json!({ "path": "no/such/directory/file" })).await;
    assert_eq!(host.audit()[1]["actions"][0]["what"], "read no/such/directory/file");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trail_is_for_this_user_alone() {
    let host = small_host();
    host.result("time", json!({})).await;
    let mode = std::fs::metadata(host.dirs().audit()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_started_again_only_appends() {
    let first = small_host();
    first.result("time", json!({})).await;
    let before = std::fs::read_to_string(first.dirs().audit()).unwrap();
    let (second, context) = started_again(&first, &[]);
    second.call(Request { tool: "time".into(), arguments: Arguments::Json(json!({})) }, &context).await;
    first.result("time", json!({})).await;
    let after = std::fs::read_to_string(first.dirs().audit()).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    assert_eq!(outcomes(&first.audit()), ["ok", "ok", "ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_many_calls_at_once_do_not_mix() {
    let host = Arc::new(small_host().set("limits.concurrent_calls=100"));
    let context = context(&host);
    let calls: Vec<_> = (0..100)
        .map(|_| crate::world::begin(&host, &context, "run_shell", harmless(&format!("true # {}", "x".repeat(4000)))))
        .collect();
    for call in calls {
        assert!(call.await.unwrap().outcome.is_ok());
    }
    assert_eq!(outcomes(&host.audit()), ["ok"; 100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_caller_writes_can_forge_a_line() {
    let host = small_host();
    host.failure("time\n{\"event\":\"outcome\"}", json!({})).await;
    host.shell("true # \n{\"event\":\"outcome\"}\u{2028}").await;
    assert_eq!(outcomes(&host.audit()), ["unknown_tool", "ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_command_is_on_record_in_part() {
    let host = small_host();
    host.shell(&format!("true # {}", "x".repeat(100_000))).await;
    let what = host.audit()[1]["actions"][0]["what"].as_str().unwrap().to_owned();
    assert_eq!(what.chars().count(), 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_after_a_torn_one_begins_on_a_line_of_its_own() {
    let host = small_host();
    host.result("time", json!({})).await;
    let trail = host.dirs().audit();
    let before = std::fs::read_to_string(&trail).unwrap();
    std::fs::write(&trail, format!("{before}{{\"time\":\"2026-")).unwrap();
    host.result("time", json!({})).await;
    let after = std::fs::read_to_string(&trail).unwrap();
    let lines: Vec<&str> = after.lines().collect();
    assert_eq!((lines.len(), lines[3]), (7, "{\"time\":\"2026-"));
    assert!(lines[4..].iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trail_that_is_removed_or_moved_away_is_begun_anew() {
    let host = small_host();
    let trail = host.dirs().audit();
    host.result("time", json!({})).await;
    std::fs::rename(&trail, trail.with_extension("old")).unwrap();
    host.result("time", json!({})).await;
    std::fs::remove_file(&trail).unwrap();
    host.result("time", json!({})).await;
    assert_eq!(outcomes(&host.audit()), ["ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trail_that_cannot_be_written_any_more_is_told_with_each_result() {
    let host = small_host();
    let trail = host.dirs().audit();
    host.result("time", json!({})).await;
    std::fs::remove_file(&trail).unwrap();
    std::fs::create_dir(&trail).unwrap();
    let envelope = host.call("time", json!({})).await;
    let notices = envelope.outcome.unwrap().notices;
    let told = format!("this call is not in the audit trail: `{}` is not a regular file", trail.display());
    assert!(notices.len() == 1 && notices[0].starts_with(&told), "{notices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_record_is_required_a_call_without_one_does_nothing() {
    let host = small_host().set("audit.required=true");
    std::fs::create_dir_all(host.dirs().audit()).unwrap();
    let failure = host.shell_failure("touch ran").await;
    let told = format!(
        "no call runs without a line in the audit trail (`audit.required`): `{}` is not a regular file",
        host.dirs().audit().display()
    );
    assert!(failure.kind == Kind::Unavailable && failure.message.starts_with(&told), "{failure:?}");
    assert!(!host.work().join("ran").exists());
    let host = small_host().set("audit.required=false").policy("audit.required = true");
    std::fs::create_dir_all(host.dirs().audit()).unwrap();
    assert_eq!(host.shell_failure("touch ran").await.kind, Kind::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_is_not_on_record_is_told() {
    let host = small_host().set("confine.mode=off");
    let trail = host.dirs().audit().display().to_string();
    let envelope = host.call("run_shell", harmless(&format!("rm '{trail}'; mkdir '{trail}'"))).await;
    let notices = envelope.outcome.unwrap().notices;
    let told = format!("the outcome of this call is not in the audit trail: `{trail}` is not a regular file");
    assert!(notices.iter().any(|notice| notice.starts_with(&told)), "{notices:?}");
}

fn begun(host: &TestHost, batch: &Arc<Batch>) -> BoxFuture<'static, Envelope> {
    let (host, context) = host.parts();
    let (host, context) = (host.clone(), context.clone().batch(Some(batch.clone())));
    let request = Request { tool: "time".into(), arguments: Arguments::Json(json!({})) };
    Box::pin(async move { host.call(request, &context).await })
}

/// So many calls that have ended but for their record, which they share. One that waits for its code, or whose guest gives way to others, is
/// recorded by itself.
async fn ended(host: &TestHost, batch: &Arc<Batch>, count: usize) -> Vec<BoxFuture<'static, Envelope>> {
    let mut calls = Vec::new();
    while calls.len() < count {
        let (mut call, before) = (begun(host, batch), batch.calls());
        let answered = (&mut call).now_or_never();
        assert!(answered.is_none(), "it was answered before it was on record");
        if batch.calls() > before {
            calls.push(call);
        } else {
            call.await;
        }
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_recorded_together_wait_for_their_record() {
    let host = small_host();
    let batch = host.parts().0.batch();
    let mut calls = ended(&host, &batch, 3).await;
    let alone = outcomes(&host.audit()).len();
    assert!(calls.iter_mut().all(|call| call.now_or_never().is_none()), "one was answered before it was on record");
    batch.write();
    assert_eq!(outcomes(&host.audit()).len(), alone + 3);
    for call in calls {
        assert_eq!(call.await.outcome.unwrap().notices, [] as [String; 0]);
    }
    // Who comes later does not wait.
    assert!(begun(&host, &batch).await.outcome.is_ok());
    assert_eq!(outcomes(&host.audit()), vec!["ok"; alone + 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_something_is_recorded_by_itself() {
    let host = small_host();
    let batch = host.parts().0.batch();
    let context = host.parts().1.clone().batch(Some(batch.clone()));
    assert!(send(&host, &context, "run_shell", harmless("true")).await.outcome.is_ok());
    assert_eq!((batch.calls(), outcomes(&host.audit())), (0, vec!["ok"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_made_is_told_with_each_of_its_calls() {
    let host = small_host();
    let batch = host.parts().0.batch();
    let calls = ended(&host, &batch, 2).await;
    let trail = host.dirs().audit();
    std::fs::remove_file(&trail).unwrap();
    std::fs::create_dir(&trail).unwrap();
    batch.write();
    let told = format!("this call is not in the audit trail: `{}` is not a regular file", trail.display());
    for call in calls {
        let notices = call.await.outcome.unwrap().notices;
        assert!(notices.len() == 1 && notices[0].starts_with(&told), "{notices:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_nobody_waits_for_any_more_are_on_record() {
    let host = small_host();
    let batch = host.parts().0.batch();
    let calls = ended(&host, &batch, 2).await;
    let alone = outcomes(&host.audit()).len();
    drop(calls);
    drop(batch);
    assert_eq!(outcomes(&host.audit()), vec!["ok"; alone + 2]);
}
