//! A call that its caller ends: before it began, while a person thinks, while a command runs, or by dropping it.

use crate::world::{
    Elsewhere, HARD_TO_END, Silent, begin, completed, context, failure, outcomes, pids, send, small_host,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolcrib::call::CallContext;
use toolcrib::envelope::Kind;
use toolcrib::event::Event;
use toolcrib_tests::processes::lives;
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{TestHost, eventually};

/// Begins [`HARD_TO_END`] and waits until all of it runs.
async fn begun(host: &Arc<TestHost>) -> tokio::task::JoinHandle<toolcrib::envelope::Envelope> {
    let running = begin(host, &context(host), "run_shell", harmless(HARD_TO_END));
    eventually("the script runs", || host.work().join("ready").exists());
    assert_eq!(pids(host).iter().filter(|pid| lives(pid)).count(), 5);
    running
}

/// The host's context with a token that was not used yet.
fn fresh(host: &TestHost) -> CallContext {
    context(host).cancel(CancellationToken::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_command_is_gone_with_all_it_started_within_two_seconds() {
    // Two seconds, and what a loaded machine takes: with less grace the answer would come while processes are still being ended.
    let host = Arc::new(small_host().set("confine.mode=off").set("limits.grace_ms=20000"));
    let running = begun(&host).await;
    let cancelled = Instant::now();
    host.cancel.cancel();
    let failure = failure(running.await.unwrap());
    assert!(cancelled.elapsed() < Duration::from_secs(10), "{:?}", cancelled.elapsed());
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Cancelled, "the call was cancelled"));
    let left: Vec<String> = pids(&host).into_iter().filter(|pid| lives(pid)).collect();
    assert_eq!(left, [""; 0], "processes live on");
    assert_eq!(outcomes(&host.audit()), ["cancelled"]);
    assert_eq!(completed(&host.events()), ["cancelled"]);
    assert!(send(&host, &fresh(&host), "time", json!({})).await.outcome.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_command_says_what_it_had_printed() {
    let host = Arc::new(small_host());
    let running = begun(&host).await;
    let has_printed = || host.events().iter().any(|event| matches!(event, Event::Stdout { .. }));
    eventually("what it printed is read", has_printed);
    host.cancel.cancel();
    let data = failure(running.await.unwrap()).data.map(|data| *data);
    assert_eq!(data.map(|data| data["stdout"].clone()), Some(json!("begun\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_cancelled_before_it_began_starts_nothing() {
    let host = small_host();
    host.shell("true").await;
    let before = host.events().len();
    host.cancel.cancel();
    let failure = host.shell_failure("touch ran").await;
    assert_eq!(failure.kind, Kind::Cancelled);
    let events = host.events().split_off(before);
    assert!(!events.iter().any(|event| matches!(event, Event::Started { .. })), "{events:?}");
    assert!(!host.work().join("ran").exists());
    assert_eq!(outcomes(&host.audit()), ["ok", "cancelled"]);
    assert_eq!(completed(&events), ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_cancelled_while_a_person_thinks_withdraws_the_question() {
    let host = Arc::new(small_host().set("tools.shell_confirm=true"));
    let person = Arc::new(Silent::default());
    let context = context(&host).approver(person.clone());
    let running = begin(&host, &context, "run_shell", harmless("touch ran"));
    eventually("the person is asked", || person.asked.load(Ordering::SeqCst) == 1);
    let cancelled = Instant::now();
    host.cancel.cancel();
    assert_eq!(failure(running.await.unwrap()).kind, Kind::Cancelled);
    assert!(cancelled.elapsed() < Duration::from_secs(2));
    assert_eq!(person.withdrawn.load(Ordering::SeqCst), 1);
    assert!(!host.work().join("ran").exists());
    assert_eq!(outcomes(&host.audit()), ["cancelled"]);
    assert_eq!(host.audit().last().unwrap()["actions"][0]["decision"], "denied by cancel");
    assert_eq!(completed(&host.events()), ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_heed_its_cancellation_is_dropped_soon() {
    let host = Arc::new(small_host());
    let backend = Elsewhere::new(&host, true);
    let context = context(&host).backend(backend.clone());
    let running = begin(&host, &context, "read_file", json!({ "path": "a" }));
    eventually("the call hangs", || backend.reached.load(Ordering::SeqCst) == 1);
    let cancelled = Instant::now();
    host.cancel.cancel();
    assert_eq!(failure(running.await.unwrap()).kind, Kind::Cancelled);
    assert!(cancelled.elapsed() < Duration::from_secs(2), "{:?}", cancelled.elapsed());
    assert_eq!(outcomes(&host.audit()), ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_cannot_be_ended_is_dropped_within_the_grace() {
    let host = Arc::new(small_host().set("limits.grace_ms=300"));
    let backend = Elsewhere::new(&host, true);
    let context = context(&host).backend(backend.clone());
    let running = begin(&host, &context, "run_shell", harmless("true"));
    eventually("the command runs", || backend.reached.load(Ordering::SeqCst) == 1);
    let cancelled = Instant::now();
    host.cancel.cancel();
    assert_eq!(failure(running.await.unwrap()).kind, Kind::Cancelled);
    let elapsed = cancelled.elapsed();
    // Three quarters of it, as the answer takes time, too.
    assert!((Duration::from_millis(225)..Duration::from_secs(2)).contains(&elapsed), "{elapsed:?}");
    assert_eq!(outcomes(&host.audit()), ["cancelled"]);
    assert_eq!(completed(&host.events()), ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cancelled_call_leaves_the_others_alone() {
    let host = Arc::new(small_host());
    let (one, other) = (fresh(&host), fresh(&host));
    let cancelled = begin(&host, &one, "run_shell", harmless("touch one; sleep 1000"));
    let kept =
        begin(&host, &other, "run_shell", harmless("touch other; until [ -e go ]; do sleep 0.01; done; echo kept"));
    eventually("both run", || ["one", "other"].iter().all(|name| host.work().join(name).exists()));
    one.cancel.cancel();
    assert_eq!(failure(cancelled.await.unwrap()).kind, Kind::Cancelled);
    std::fs::write(host.work().join("go"), "").unwrap();
    assert_eq!(kept.await.unwrap().outcome.unwrap().result["stdout"], "kept\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_leaves_one_outcome_and_no_process() {
    let host = Arc::new(small_host().set("confine.mode=off"));
    let running = begun(&host).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let audit = host.audit();
    assert_eq!(outcomes(&audit), ["cancelled"]);
    assert_eq!(audit[1]["message"], "the call was cancelled");
    assert_eq!(audit[1]["actions"][0]["decision"], "allowed by tools.shell_confirm");
    let left = || pids(&host).into_iter().filter(|pid| lives(pid)).count();
    eventually("no process is left", || left() == 0);
    assert!(send(&host, &fresh(&host), "time", json!({})).await.outcome.is_ok());
    assert_eq!(outcomes(&host.audit()), ["cancelled", "ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_completes_for_those_who_watch() {
    let host = Arc::new(small_host());
    let running = begun(&host).await;
    running.abort();
    assert!(running.await.is_err());
    assert_eq!(completed(&host.events()), ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_while_a_person_thinks_leaves_one_outcome() {
    let host = Arc::new(small_host().set("tools.shell_confirm=true"));
    let person = Arc::new(Silent::default());
    let context = context(&host).approver(person.clone());
    let running = begin(&host, &context, "run_shell", harmless("touch ran"));
    eventually("the person is asked", || person.asked.load(Ordering::SeqCst) == 1);
    running.abort();
    assert!(running.await.is_err());
    assert_eq!(person.withdrawn.load(Ordering::SeqCst), 1);
    assert_eq!(outcomes(&host.audit()), ["cancelled"]);
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_gives_its_place_to_the_next() {
    let host = Arc::new(small_host().set("limits.concurrent_calls=1"));
    let running = begun(&host).await;
    running.abort();
    assert!(running.await.is_err());
    assert!(send(&host, &fresh(&host), "time", json!({})).await.outcome.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_not_held_against_the_next() {
    let host = Arc::new(small_host());
    for _ in 0..3 {
        let context = fresh(&host);
        let _ = std::fs::remove_file(host.work().join("ready"));
        let running = begin(&host, &context, "run_shell", harmless("touch ready; sleep 1000"));
        eventually("the command runs", || host.work().join("ready").exists());
        context.cancel.cancel();
        let message: Value = json!(failure(running.await.unwrap()).message);
        assert_eq!(message, "the call was cancelled");
    }
}
