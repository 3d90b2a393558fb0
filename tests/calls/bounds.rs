//! Time, number and size: each bound ends a call with a word of its own, and the next call is answered.

use crate::world::{Elsewhere, HARD_TO_END, begin, completed, context, failure, outcomes, pids, send, small_host};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolcrib::envelope::Kind;
use toolcrib_tests::processes::lives;
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{TestHost, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_timed_out_with_the_setting_that_says_so() {
    let host = small_host().set("limits.call_ms=2000").set("limits.grace_ms=50");
    // What is compiled by then does not take the time of the call below.
    host.call("read_file", json!({ "path": "a" })).await;
    let context = context(&host).backend(Elsewhere::new(&host, true));
    let begin = Instant::now();
    let failure = failure(send(&host, &context, "read_file", json!({ "path": "b" })).await);
    assert_eq!(failure.kind, Kind::TimedOut);
    assert_eq!(failure.message, "the call took more than 2000 ms of its own time");
    assert!(failure.hint.unwrap().contains("`call_ms` under [limits]"));
    assert!(begin.elapsed() >= Duration::from_secs(2) && begin.elapsed() < Duration::from_secs(4));
    assert_eq!(outcomes(&host.audit()), ["execution_failed", "timed_out"]);
    assert_eq!(completed(&host.events()), ["execution_failed", "timed_out"]);
    host.result("time", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_a_command_takes_is_not_the_calls() {
    let host = small_host().set("limits.call_ms=1000");
    host.shell("true").await;
    assert_eq!(host.shell("sleep 1.5; echo done").await["stdout"], "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_over_its_time_is_ended_with_all_it_started_and_says_what_it_printed() {
    let host = small_host().set("confine.mode=off").set("limits.command_ms=3000");
    let failure = host.shell_failure(HARD_TO_END).await;
    assert_eq!(failure.kind, Kind::TimedOut);
    assert_eq!(failure.message, "timed out waiting for the command after 3s");
    assert_eq!(failure.data.unwrap()["stdout"], "begun\n");
    let left: Vec<String> = pids(&host).into_iter().filter(|pid| lives(pid)).collect();
    assert_eq!(left, [""; 0], "processes live on");
    assert_eq!(outcomes(&host.audit()), ["timed_out"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_over_the_longest_is_refused_before_anything_runs() {
    let host = small_host().set("limits.command_max_ms=1000");
    let mut arguments = harmless("touch ran");
    arguments["wait"] = json!("2s");
    let failure = host.failure("run_shell", arguments).await;
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (Kind::InvalidArguments, "a wait of 2s is too long (limit: 1s)")
    );
    assert!(!host.work().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_its_size_is_a_limit() {
    let host = small_host().set("limits.result_kib=1");
    let failure = host.shell_failure("yes | head -c 3000").await;
    assert_eq!(failure.kind, Kind::Limit);
    assert!(failure.message.contains("result 1 KiB"), "{}", failure.message);
    assert!(failure.hint.unwrap().contains("`result_kib` under [limits]"));
    assert_eq!(host.shell("echo short").await["stdout"], "short\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_hands_over_in_one_call_is_a_limit() {
    let host = small_host().set("limits.call_kib=1");
    let failure = host.shell_failure(&format!("touch ran # {}", "x".repeat(2000))).await;
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (Kind::Limit, "limit: bytes from the guest in one call 1 KiB")
    );
    assert!(!host.work().join("ran").exists());
    host.shell("true").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_named_once() {
    let message = small_host().set("limits.result_kib=1").shell_failure("yes | head -c 3000").await.message;
    assert_eq!(message.matches("limit").count(), 1, "what a person reads: {message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_more_than_may_run_is_busy() {
    let host = Arc::new(small_host().set("limits.concurrent_calls=1"));
    let context = context(&host);
    let running = begin(&host, &context, "run_shell", harmless("touch ready; sleep 1000"));
    eventually("the first call runs", || host.work().join("ready").exists());

    let failure = host.failure("time", json!({})).await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Busy, "too many calls are running (limit: 1)"));
    assert!(failure.hint.unwrap().contains("`concurrent_calls` under [limits]"));

    host.cancel.cancel();
    running.await.unwrap();
    let context = context.cancel(CancellationToken::new());
    assert!(send(&host, &context, "time", json!({})).await.outcome.is_ok());
    assert_eq!(outcomes(&host.audit()), ["busy", "cancelled", "ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_backend_hangs_does_not_hold_up_others() {
    let host = Arc::new(small_host());
    let backend = Elsewhere::new(&host, true);
    let context = context(&host).backend(backend.clone());
    let hanging = begin(&host, &context, "read_file", json!({ "path": "a" }));
    eventually("the call hangs", || backend.reached.load(Ordering::SeqCst) == 1);
    host.result("time", json!({})).await;
    hanging.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_at_once_are_answered_each_for_itself() {
    let host = Arc::new(TestHost::new());
    let context = context(&host);
    for number in 0..1000 {
        std::fs::write(host.work().join(number.to_string()), format!("content {number}")).unwrap();
    }
    let calls: Vec<_> =
        (0..1000).map(|number| begin(&host, &context, "read_file", json!({ "path": number.to_string() }))).collect();
    for (number, call) in calls.into_iter().enumerate() {
        let result = call.await.unwrap().outcome.map(|output| output.result);
        assert_eq!(result, Ok(Value::String(format!("content {number}"))));
    }
    assert_eq!(outcomes(&host.audit()).len(), 1000);
}
