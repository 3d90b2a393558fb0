//! How commands end: by timeout or cancel with all that they started, by themselves with what they leave running.

use super::processes::{has_ended, is_gone};
use super::text;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Failure, Kind};
use toolcrib::event::{Event, NoEvents};
use toolcrib_tests::processes::{kill, running, sleeping, unique_seconds};
use toolcrib_tests::shell::{harmless, waiting};
use toolcrib_tests::{PATIENCE, Program, TestHost, eventually};

/// The host gives a tree two seconds to end; a loaded machine may need some more to notice.
const LOADED: Duration = Duration::from_secs(10);

/// Commands that do not want to end. Each prints `ready SECONDS` when all its processes are there, and sleeps so long.
const STUBBORN: [(&str, &str); 10] = [
    ("a plain command", "echo ready SECONDS; sleep SECONDS"),
    ("one process alone", "echo ready SECONDS; exec sleep SECONDS"),
    ("a child in the background", "sleep SECONDS & echo ready SECONDS; wait"),
    ("a session of its own", "(setsid sleep SECONDS &); echo ready SECONDS; sleep SECONDS"),
    (
        "a daemon with a cleaned environment",
        "env -i setsid sh -c 'sleep SECONDS & sleep SECONDS' & echo ready SECONDS; sleep SECONDS",
    ),
    (
        "a daemon that forked twice and lost its parents",
        "env -i setsid sh -c 'setsid sh -c \"sleep SECONDS & sleep SECONDS\" & exit' & wait; echo ready SECONDS; sleep SECONDS",
    ),
    ("a shell that ignores SIGTERM", "trap '' TERM HUP INT; echo ready SECONDS; while :; do sleep SECONDS; done"),
    ("a shell that has closed its streams", "echo ready SECONDS; exec >&- 2>&-; sleep SECONDS"),
    (
        "a shell that answers SIGTERM with a daemon",
        "trap 'env -i setsid sleep SECONDS &' TERM; echo ready SECONDS; sleep SECONDS; sleep SECONDS",
    ),
    ("a process that is stopped", "sh -c 'kill -STOP $$; sleep SECONDS' & echo ready SECONDS; sleep SECONDS"),
];

fn is_ready(host: &TestHost, seconds: &str) -> bool {
    let line = format!("ready {seconds}\n");
    host.events().iter().any(|event| matches!(event, Event::Stdout { text } if *text == line))
}

/// What the command had printed, by what the failure hands back.
fn printed(failure: &Failure) -> Option<&str> {
    failure.data.as_ref()?["stdout"].as_str()
}

/// A call that was cancelled when its command was ready.
struct Cancelled {
    failure: Failure,
    /// The processes that were there.
    there: Vec<u32>,
    took: Duration,
}

async fn cancelled(host: &Arc<TestHost>, command: &str, seconds: &str) -> Cancelled {
    let cancel = host.cancel.child_token();
    let (called, context) = host.parts();
    let context = context.clone().cancel(cancel.clone());
    let arguments = Arguments::Json(waiting(&command.replace("SECONDS", seconds), "30s"));
    let (watcher, seconds) = (host.clone(), seconds.to_owned());
    let watching = tokio::task::spawn_blocking(move || {
        // It says so before it executes what is looked for.
        eventually("the command is ready", || is_ready(&watcher, &seconds) && !running(&seconds).is_empty());
        let there = running(&seconds);
        cancel.cancel();
        (there, Instant::now())
    });
    let (envelope, watched) =
        tokio::join!(called.call(Request { tool: "run_shell".into(), arguments }, &context), watching);
    let (there, begin) = watched.expect("the command became ready");
    Cancelled { failure: envelope.outcome.expect_err("a cancelled call"), there, took: begin.elapsed() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_leaves_nothing_running() {
    let host = TestHost::new();
    host.shell("true").await;
    for (what, command) in STUBBORN {
        let (seconds, begin) = (unique_seconds(), Instant::now());
        // So long that all of it is there when its time is over.
        let call = host.failure("run_shell", waiting(&command.replace("SECONDS", &seconds), "3s"));
        let answered = tokio::time::timeout(2 * LOADED, call).await;
        let (took, left) = (begin.elapsed(), running(&seconds));
        kill(&running(&seconds));
        let failure = answered.unwrap_or_else(|_| panic!("{what}: no answer within {:?}", 2 * LOADED));
        assert_eq!(failure.kind, Kind::TimedOut, "{what}: {}", failure.message);
        assert_eq!(printed(&failure), Some(format!("ready {seconds}\n").as_str()), "{what}");
        assert!(left.is_empty(), "{what}: {left:?} live on");
        assert!(took < LOADED + Duration::from_secs(3), "{what}: it took {took:?}");
        assert_eq!(host.shell("echo next").await["stdout"], "next\n", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_leaves_nothing_running() {
    let host = Arc::new(TestHost::new());
    for (what, command) in STUBBORN {
        let seconds = unique_seconds();
        let Cancelled { failure, there, took } = cancelled(&host, command, &seconds).await;
        let still = seconds.clone();
        let watching = move || eventually("nothing lives on", || running(&still).is_empty());
        let ended = tokio::task::spawn_blocking(watching).await;
        kill(&running(&seconds));
        assert_eq!(failure.kind, Kind::Cancelled, "{what}: {}", failure.message);
        assert!(!there.is_empty(), "{what}: nothing was there to end");
        assert!(ended.is_ok(), "{what}: some live on");
        assert!(took < LOADED, "{what}: it took {took:?}");
        assert_eq!(host.shell("echo next").await["stdout"], "next\n", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_hands_back_what_was_printed_by_then() {
    let host = Arc::new(TestHost::new());
    for round in 0..10 {
        let seconds = unique_seconds();
        let failure = cancelled(&host, "echo ready SECONDS; sleep SECONDS", &seconds).await.failure;
        assert_eq!(printed(&failure), Some(format!("ready {seconds}\n").as_str()), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_to_bury_what_a_timeout_or_cancel_ended() {
    let host = Arc::new(TestHost::new());
    for (what, command) in STUBBORN {
        let seconds = unique_seconds();
        let there = cancelled(&host, command, &seconds).await.there;
        kill(&running(&seconds));
        eventually(&format!("{what}: nothing is left of {there:?}"), || there.iter().all(|pid| is_gone(*pid)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_may_end_by_itself_when_it_is_asked_to() {
    let host = TestHost::new();
    let command = "trap 'echo tidied > tidied; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let failure = host.failure("run_shell", waiting(command, "3s")).await;
    assert_eq!(failure.kind, Kind::TimedOut);
    assert_eq!(std::fs::read_to_string(host.work().join("tidied")).expect("it tidied up"), "tidied\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_output_times_out_with_its_head_and_ends() {
    let (host, marker) = (TestHost::new(), unique_seconds());
    let (called, context) = host.parts();
    let context = context.clone().events(Arc::new(NoEvents));
    let arguments = Arguments::Json(waiting(&format!("yes {marker}"), "3s"));
    let envelope = called.call(Request { tool: "run_shell".into(), arguments }, &context).await;
    let left = running(&marker);
    kill(&running(&marker));
    let failure = envelope.outcome.expect_err("it never ends");
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (Kind::TimedOut, "timed out waiting for the command after 3s")
    );
    let data = *failure.data.expect("what was printed");
    let lines = format!("{marker}\n").repeat(400);
    let (head, tail) = text(&data, "stdout").split_once("\n[").expect("both ends");
    assert_eq!(head, &lines[..1_500]);
    assert!(tail.contains(" bytes left out, kept in ") && tail.len() < 2_800, "{tail}");
    let stored = data["stored"][0].as_str().expect("the kept file");
    assert!(std::fs::read_to_string(stored).expect("a kept file").starts_with(&format!("{marker}\n").repeat(1_000)));
    assert!(left.is_empty(), "{left:?} live on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_its_caller_drops_leaves_nothing_running() {
    let (host, seconds) = (Arc::new(TestHost::new()), unique_seconds());
    let command = format!("(setsid sleep {seconds} &); echo ready {seconds}; sleep {seconds}");
    let called = host.clone();
    let call = tokio::spawn(async move { called.call("run_shell", harmless(&command)).await });
    let (watcher, started) = (host.clone(), seconds.clone());
    let watching = move || eventually("the command is ready", || is_ready(&watcher, &started));
    tokio::task::spawn_blocking(watching).await.expect("ready");
    call.abort();
    assert!(call.await.expect_err("aborted").is_cancelled());
    let still = seconds.clone();
    let ended = tokio::task::spawn_blocking(move || eventually("all is dead", || running(&still).is_empty())).await;
    kill(&running(&seconds));
    ended.expect("all is dead");
    assert_eq!(host.audit().last().expect("an audit line")["outcome"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_in_the_background_lives_on_and_is_named() {
    let (host, seconds) = (TestHost::new().set("confine.mode=off"), unique_seconds());
    let begin = Instant::now();
    let result = host.result("run_shell", waiting(&format!("sleep {seconds} & echo $!; echo hi >&2"), "100s")).await;
    let took = begin.elapsed();
    // The shell may have ended before its child is that program: until then the child has the words of the shell, and for a moment none.
    eventually("it runs", || !sleeping(&seconds).is_empty());
    let left = sleeping(&seconds);
    kill(&left);
    assert!(took < Duration::from_secs(50), "it was waited for");
    let pid = text(&result, "stdout").trim().to_owned();
    assert_eq!((&result["exit_code"], text(&result, "stderr")), (&json!(0), "hi\n"));
    assert_eq!(left.iter().map(ToString::to_string).collect::<Vec<_>>(), std::slice::from_ref(&pid));
    let notice = format!("a process that the command started is still running: {pid} (end with `kill {pid}`)");
    assert_eq!(result["notices"], json!([notice]));
    eventually("it is buried when it ends", || left.iter().all(|pid| is_gone(*pid)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_running_is_named_however_it_was_started() {
    named_and_buried(&[
        "sleep SECONDS > /dev/null 2>&1 &",
        "nohup sleep SECONDS > /dev/null 2>&1 &",
        "(setsid sleep SECONDS &)",
        "setsid sh -c 'sleep SECONDS & exit' & wait",
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_running_with_a_cleaned_environment_is_named() {
    named_and_buried(&["env -i sleep SECONDS &"]).await;
}

/// Runs each command, and expects that what it leaves running is in the notice and is buried when it ends.
async fn named_and_buried(commands: &[&str]) {
    for command in commands {
        let (host, seconds) = (TestHost::new().set("confine.mode=off"), unique_seconds());
        let command =
            format!("{}\nwhile ! pgrep -fx 'sleep {seconds}' > pids; do :; done", command.replace("SECONDS", &seconds));
        let result = host.shell(&command).await;
        let left = running(&seconds);
        kill(&running(&seconds));
        let named = result["notices"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<String>();
        assert!(!left.is_empty(), "{command}: nothing is left running");
        for pid in &left {
            assert!(named.split(' ').any(|word| word == pid.to_string()), "{command}: {pid} is not named: {result}");
        }
        eventually(&format!("{command}: it is buried when it ends"), || left.iter().all(|pid| is_gone(*pid)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_earlier_commands_left_running_is_not_named_again() {
    let (host, seconds) = (TestHost::new(), unique_seconds());
    host.shell(&format!("sleep {seconds} &")).await;
    let next = host.shell("echo next").await;
    kill(&running(&seconds));
    assert_eq!((text(&next, "stdout"), &next["notices"]), ("next\n", &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_running_outlives_a_timeout_of_another() {
    let (host, seconds) = (TestHost::new().set("confine.mode=off"), unique_seconds());
    host.shell(&format!("sleep {seconds} &")).await;
    host.failure("run_shell", waiting("sleep 1000", "200ms")).await;
    let left = running(&seconds).len();
    kill(&running(&seconds));
    assert_eq!(left, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_talks_on_does_not_hold_the_call() {
    let (host, marker) = (TestHost::new(), unique_seconds());
    let result = host.result("run_shell", waiting(&format!("yes {marker} & exit 5"), "100s")).await;
    kill(&running(&marker));
    assert_eq!(result["exit_code"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_of_whoever_embeds_the_host_is_left_to_them() {
    let (host, program) = (TestHost::new(), Program::new());
    let mut own = program.start(&["run"]);
    let pid = own.pid();
    let result = host.shell("true").await;
    own.close();
    eventually("it ends with its input", || has_ended(pid));
    host.shell("true").await;
    let status = own.ended(PATIENCE);
    assert_eq!(result["notices"], json!([]));
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}
