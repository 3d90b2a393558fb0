//! Jobs. The numbers are those of the cases of agents whose tools are programs; what happens when programs are killed is in `cli/jobs.rs`.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolcrib::Host;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::policy::approval::Answer;
use toolcrib_tests::processes::{sleeping, unique_seconds};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{TestHost, on_path, write_program};

/// A host with some programs.
fn host() -> TestHost {
    ["cat", "printf", "sleep", "sh", "pwd", "printenv"]
        .iter()
        .fold(TestHost::new(), |host, name| host.declares(name, &on_path(name), &[]))
}

/// A caller with a session of its own.
struct Caller {
    host: Arc<Host>,
    context: CallContext,
}

impl Caller {
    fn of(host: &TestHost) -> Self {
        let (host, context) = host.parts();
        Self { host: host.clone(), context: context.clone().session(Arc::default()) }
    }

    /// One of an agent, on a toolset.
    fn on(host: &TestHost, toolset: &str, agent: &str) -> Self {
        let given = Map::from_iter([("agent".to_owned(), agent.into())]);
        let caller = Self::of(host);
        let toolset = caller.host.toolset(toolset).map_err(|failure| failure.message).expect("a toolset");
        let session = Session::on(toolset, given).map_err(|failure| failure.message).expect("a session");
        Self { context: caller.context.session(Arc::new(session)), ..caller }
    }

    async fn call_until(&self, tool: &str, arguments: Value, cancel: CancellationToken) -> Envelope {
        let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
        self.host.call(request, &self.context.clone().cancel(cancel)).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Envelope {
        self.call_until(tool, arguments, CancellationToken::new()).await
    }

    async fn result(&self, tool: &str, arguments: Value) -> Value {
        let outcome = self.call(tool, arguments).await.outcome;
        outcome.map(|output| output.result).map_err(|failure| failure.to_json().to_string()).expect("a result")
    }

    async fn failure(&self, tool: &str, arguments: Value) -> Failure {
        self.call(tool, arguments).await.outcome.map(|output| output.result.to_string()).expect_err("a failure")
    }

    async fn submit(&self, submission: Value) -> String {
        self.result("job_submit", submission).await["job_id"].as_str().expect("an id").to_owned()
    }

    async fn sleeper(&self, seconds: &str) -> String {
        self.submit(json!({ "bin": "sleep", "args": [seconds] })).await
    }

    async fn status(&self, id: &str) -> Value {
        self.result("job_status", json!({ "job_id": id })).await
    }

    async fn wait(&self, id: &str) -> Value {
        self.result("job_wait", json!({ "job_id": id, "timeout": "60s" })).await
    }

    async fn until(&self, id: &str, state: &str) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.status(id).await;
            if status["state"] == state {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "not {state}: {status}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Cases 44, 47 and 48.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_runs_as_a_job_and_its_exit_code_is_a_result() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let id = caller.submit(json!({ "bin": "sh", "args": ["-c", "echo out; echo err >&2; exit 3"] })).await;
    let end = caller.wait(&id).await;
    assert_eq!((&end["state"], &end["exit_code"]), (&json!("done"), &json!(3)));
    assert_eq!((&end["stdout"], &end["stderr"]), (&json!("out\n"), &json!("err\n")));
    let begun = Instant::now();
    let running = caller.sleeper(&unique_seconds()).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "its end was waited for: {:?}", begun.elapsed());
    let status = caller.until(&running, "running").await;
    assert_eq!(status.get("exit_code"), None);
    caller.result("job_cancel", json!({ "job_id": running })).await;
    // The file is another one by now.
    let other = host.work().join("other");
    std::fs::copy(on_path("cat"), &other).expect("a program");
    let host = host.declares("other", &on_path("true"), &[]).set(&format!("program.other.path={other:?}"));
    let _jobs = host.run_jobs().await;
    let refused = Caller::of(&host).failure("job_submit", json!({ "bin": "other", "args": ["x"] })).await;
    assert_eq!(refused.kind, Kind::Denied, "{refused:?}");
}

/// What cannot be started when its turn comes is an error with its cause.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_any_more_is_an_error_with_its_cause() {
    let host = host();
    let program = host.work().join("program");
    write_program(&program, std::fs::read(on_path("cat")).expect("a program"));
    let host = host.declares("copy", &program, &[]).set("jobs.pool=1");
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let first = caller.sleeper(&unique_seconds()).await;
    caller.until(&first, "running").await;
    let id = caller.submit(json!({ "bin": "copy", "stdin": "x" })).await;
    std::fs::remove_file(&program).expect("a program");
    caller.result("job_cancel", json!({ "job_id": first })).await;
    let end = caller.wait(&id).await;
    assert_eq!((&end["state"], end.get("exit_code")), (&json!("error"), None));
    assert!(end["cause"].as_str().is_some_and(|cause| cause.contains("cannot be run")), "{end}");
}

/// Cases 45, 46 and 54.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_submitted_or_looked_for_is_refused_with_what_can() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let refused = caller.failure("job_submit", json!({ "bin": "nope", "args": ["x"] })).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::InvalidArguments, "there is no program or tool `nope`"));
    let hint = refused.hint.expect("a hint");
    assert!(hint.starts_with("there is `cat`, `printenv`, `printf`, `pwd`, `sh`, `sleep`, "), "{hint}");
    assert!(hint.contains("`run_shell`") && !hint.contains("`read_file`"), "{hint}");
    for own in ["session", "agent", "origin"] {
        let labels = json!({ "bin": "cat", "stdin": "x", "labels": { own: "mine" } });
        let refused = caller.failure("job_submit", labels).await;
        assert_eq!(refused.kind, Kind::InvalidArguments, "{refused:?}");
        assert!(refused.message.contains(&format!("`{own}`")), "{refused:?}");
    }
    let refused = caller.failure("job_list", json!({ "status": "runing" })).await;
    assert_eq!(refused.kind, Kind::InvalidArguments);
    for state in ["pending", "running", "done", "error", "cancelled", "orphaned"] {
        assert!(refused.message.contains(state), "{refused:?}");
    }
    for (wrong, what) in [
        (json!({ "bin": "cat" }), "neither `args` nor `stdin`"),
        (json!({ "bin": "cat", "stdin": "x", "arguments": {} }), "both `arguments`"),
        (json!({ "bin": "cat", "arguments": { "stdin": 1 } }), "stdin"),
        (json!({ "bin": "cat", "stdin": "x", "token": "" }), "token"),
        (json!({ "bin": "cat", "stdin": "x", "labels": { "": "x" } }), "label"),
        (json!({ "bin": "run_shell", "arguments": { "command": "true" } }), "risk"),
    ] {
        let refused = caller.failure("job_submit", wrong.clone()).await;
        assert_eq!(refused.kind, Kind::InvalidArguments, "{wrong}: {refused:?}");
        assert!(refused.message.contains(what), "{wrong}: {refused:?}");
    }
    let refused = caller.failure("job_submit", json!({ "bin": "cat", "stdin": "x", "timeout": "86400001ms" })).await;
    assert_eq!((refused.kind, refused.message.contains("limit: 24h")), (Kind::Limit, true), "{refused:?}");
    assert_eq!(caller.result("job_list", json!({ "all_sessions": true })).await["jobs"], json!([]));
}

/// Case 49, and the first half of 50.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_its_time_and_takes_its_own_job_with_it_when_it_is_cancelled() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let (caller, other) = (Caller::of(&host), Caller::of(&host));
    let id = caller.sleeper(&unique_seconds()).await;
    let begun = Instant::now();
    let waited = caller.call("job_wait", json!({ "job_id": id, "timeout": 1 })).await.outcome.expect("a result");
    assert!((1000..30_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    assert_eq!(waited.result["state"], "running");
    assert_eq!(waited.notices, ["the job is still running after 1s"]);
    let cancelled = async |who: &Caller, tool: &str| {
        let cancel = CancellationToken::new();
        let stop = async {
            // So late that the call has begun to wait.
            tokio::time::sleep(Duration::from_secs(2)).await;
            cancel.cancel();
        };
        let arguments = json!({ "job_id": id, "timeout": "60s" });
        let (envelope, ()) = tokio::join!(who.call_until(tool, arguments, cancel.clone()), stop);
        assert_eq!(envelope.outcome.map_err(|failure| failure.kind).map(|output| output.result), Err(Kind::Cancelled));
        who.status(&id).await["state"].clone()
    };
    // Another session's wait, and a watch, leave it alone.
    assert_eq!(cancelled(&other, "job_wait").await, "running");
    assert_eq!(cancelled(&other, "job_watch").await, "running");
    assert_eq!(cancelled(&caller, "job_watch").await, "running");
    assert_eq!(cancelled(&caller, "job_wait").await, "cancelled");
}

/// Case 51: both streams, each byte once, in the order of each.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_has_each_byte_of_both_streams_once() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let script = "i=0; while [ $i -lt 3000 ]; do echo \"out $i ä\"; echo \"err $i\" >&2; i=$((i+1)); [ $((i%1000)) = 0 ] && sleep 0.3; done; printf end";
    let id = caller.submit(json!({ "bin": "sh", "args": ["-c", script] })).await;
    let (mut out, mut err, mut since, mut looks) = (String::new(), String::new(), None::<String>, 0);
    loop {
        let mut arguments = json!({ "job_id": id });
        if let Some(since) = &since {
            arguments["since"] = json!(since);
        }
        let watched = caller.result("job_watch", arguments).await;
        out += watched["stdout"].as_str().expect("text");
        err += watched["stderr"].as_str().expect("text");
        looks += 1;
        match watched["next"].as_str() {
            Some(next) => since = Some(next.to_owned()),
            None => break,
        }
    }
    let expected: String = (0..3000).map(|number| format!("out {number} ä\n")).collect();
    assert_eq!(out, expected + "end");
    assert_eq!(err, (0..3000).map(|number| format!("err {number}\n")).collect::<String>());
    assert!(looks > 3, "it was read while it ran");
    let refused = caller.failure("job_watch", json!({ "job_id": id, "since": "5" })).await;
    assert_eq!(refused.kind, Kind::InvalidArguments);
}

/// Long output is shown by its beginning and its end; what is not text is made text.
#[tokio::test(flavor = "multi_thread")]
async fn long_output_is_shown_by_its_beginning_and_its_end() {
    let host = host().set("limits.kept_stream_mib=1");
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let script = "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last; printf 'a\\377b' >&2";
    let id = caller.submit(json!({ "bin": "sh", "args": ["-c", script] })).await;
    let end = caller.wait(&id).await;
    let (out, bytes) = (end["stdout"].as_str().expect("text"), end["stdout_bytes"].as_u64().expect("a number"));
    assert!(out.starts_with("first\nxxx") && out.ends_with("xxxlast\n"), "{}", &out[..20]);
    assert!(out.contains("bytes left out]") && out.len() < 5000);
    // The beginning up to the limit, and the last 64 KiB.
    assert!((1 << 20..(1 << 20) + (65 << 10)).contains(&bytes), "{bytes}");
    assert_eq!(end["stderr"], "a\u{fffd}b");
}

/// Cases 52 and 53.
#[tokio::test(flavor = "multi_thread")]
async fn agents_see_their_own_jobs_and_sessions_theirs() {
    let tools = "[\"job_submit\", \"job_list\", \"job_status\", \"job_wait\", \"job_watch\", \"job_cancel\", \"cat\"]";
    let host = host().user(&format!("[toolset.otter]\ntools = {tools}\nsession = [\"agent\"]\n"));
    let _jobs = host.run_jobs().await;
    let (one, two, stranger) =
        (Caller::on(&host, "otter", "a"), Caller::on(&host, "otter", "a"), Caller::on(&host, "otter", "b"));
    let first = one.submit(json!({ "bin": "cat", "stdin": "1", "labels": { "n": "1" } })).await;
    let second = two.submit(json!({ "bin": "cat", "stdin": "2" })).await;
    for id in [&first, &second] {
        one.wait(id).await;
    }
    let ids = async |who: &Caller, arguments: Value| {
        let listed = who.result("job_list", arguments).await;
        let ids = listed["jobs"].as_array().expect("a list").iter().map(|job| job["job_id"].as_str().expect("an id"));
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ids(&one, json!({})).await, [&*first]);
    assert_eq!(ids(&two, json!({})).await, [&*second]);
    assert_eq!(ids(&one, json!({ "all_sessions": true })).await, [second.clone(), first.clone()]);
    assert_eq!(ids(&one, json!({ "all_sessions": true, "labels": { "n": "1" } })).await, [&*first]);
    assert!(ids(&stranger, json!({ "all_sessions": true })).await.is_empty());
    let invented = "0123456789abcdef0123456789abcdef";
    for tool in ["job_status", "job_wait", "job_watch", "job_cancel"] {
        let (own, other) = (
            stranger.failure(tool, json!({ "job_id": first })).await,
            stranger.failure(tool, json!({ "job_id": invented })).await,
        );
        assert_eq!(own.message.replace(&first, invented), other.message);
        assert_eq!((own.kind, own.hint), (other.kind, other.hint));
        assert_eq!(own.kind, Kind::InvalidArguments);
    }
    // A session has the tools of its toolset, and no others.
    let refused = one.failure("job_submit", json!({ "bin": "sleep", "args": ["1"] })).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::Unavailable, "toolset `otter` has no tool `sleep`"));
    let refused = one.failure("job_submit", json!({ "bin": "nope", "args": ["1"] })).await;
    assert_eq!(
        (refused.kind, refused.hint.as_deref()),
        (Kind::InvalidArguments, Some("there is `cat`")),
        "{refused:?}"
    );
}

/// Case 55.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_many_has_pages() {
    let host = host().set("jobs.pool=1");
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let mut ids = Vec::new();
    for number in 0..25 {
        ids.push(caller.submit(json!({ "bin": "printf", "args": [number.to_string()] })).await);
    }
    ids.reverse();
    let (mut found, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut arguments = json!({ "limit": 10 });
        if let Some(after) = &after {
            arguments["after"] = json!(after);
        }
        let page = caller.result("job_list", arguments).await;
        let jobs = page["jobs"].as_array().expect("a list").clone();
        found.push(jobs.iter().map(|job| job["job_id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>());
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(found.concat(), ids);
    for limit in [0, 101] {
        assert_eq!(caller.failure("job_list", json!({ "limit": limit })).await.kind, Kind::InvalidArguments);
    }
}

/// Cases 56, 57 and 58.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_ends_with_all_that_it_started_or_never_begins() {
    let host = host().set("jobs.pool=1");
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let seconds = unique_seconds();
    let script = format!("(setsid sleep {seconds} &) ; echo there; sleep {seconds}");
    let running = caller.submit(json!({ "bin": "sh", "args": ["-c", script] })).await;
    let begun = Instant::now();
    while sleeping(&seconds).len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", caller.status(&running).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let touched = host.work().join("touched");
    let waiting = caller.submit(json!({ "bin": "sh", "args": ["-c", format!("touch {}", touched.display())] })).await;
    assert_eq!(caller.status(&waiting).await["state"], "pending");
    assert_eq!(caller.result("job_cancel", json!({ "job_id": waiting })).await["cancelled"], true);
    let cancelled = caller.result("job_cancel", json!({ "job_id": running })).await;
    assert_eq!((&cancelled["cancelled"], &cancelled["stopped"]), (&json!(true), &json!(true)));
    assert!(sleeping(&seconds).is_empty());
    let status = caller.status(&running).await;
    assert_eq!((&status["state"], &status["stdout"]), (&json!("cancelled"), &json!("there\n")));
    let other = caller.submit(json!({ "bin": "printf", "args": ["x"] })).await;
    assert_eq!(caller.wait(&other).await["state"], "done");
    assert!(!touched.exists());
    for id in [&running, &waiting, &other] {
        let refused = caller.failure("job_cancel", json!({ "job_id": id })).await;
        assert_eq!(refused.kind, Kind::ExecutionFailed);
        assert!(refused.message.contains("is not running"), "{refused:?}");
    }
}

/// Case 61.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_token_is_the_same_job() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let token = |text: &str| json!({ "bin": "cat", "stdin": text, "token": "once" });
    let (first, second) = (caller.submit(token("1")).await, caller.submit(token("1")).await);
    assert_eq!(first, second);
    let refused = caller.failure("job_submit", token("2")).await;
    assert_eq!(refused.kind, Kind::InvalidArguments);
    assert!(refused.message.starts_with("this token stands for another job"), "{refused:?}");
    assert_eq!(caller.wait(&first).await["stdout"], "1");
    assert_eq!(caller.result("job_list", json!({})).await["jobs"].as_array().map(Vec::len), Some(1));
}

/// The token is looked for before a person is asked, and by then somebody else may have used it.
#[tokio::test(flavor = "multi_thread")]
async fn of_other_calls_sent_together_with_one_token_one_is_submitted() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    for round in 0..5 {
        let submit = |number: u64| {
            let job = json!({ "bin": "cat", "stdin": number.to_string(), "token": format!("round-{round}") });
            caller.call("job_submit", job)
        };
        let all = futures_util::future::join_all((0..8).map(submit)).await;
        let (submitted, refused): (Vec<_>, Vec<_>) = all.into_iter().map(|one| one.outcome).partition(Result::is_ok);
        assert_eq!(submitted.len(), 1, "round {round}: {submitted:?}");
        for failure in refused.into_iter().filter_map(Result::err) {
            assert_eq!(failure.kind, Kind::InvalidArguments, "{failure:?}");
            assert!(failure.message.starts_with("this token stands for another job"), "{failure:?}");
        }
    }
}

/// Case 62.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_closed_ends_its_jobs_but_for_those_that_outlive_it() {
    let host = host().set("jobs.per_session=2");
    let _jobs = host.run_jobs().await;
    let (caller, other) = (Caller::of(&host), Caller::of(&host));
    let seconds = unique_seconds();
    let dies = caller.sleeper(&seconds).await;
    let outlives = caller.submit(json!({ "bin": "sleep", "args": [unique_seconds()], "outlive_session": true })).await;
    let waits = caller.sleeper(&unique_seconds()).await;
    let others = other.sleeper(&unique_seconds()).await;
    for id in [&dies, &outlives, &others] {
        other.until(id, "running").await;
    }
    assert_eq!(other.status(&waits).await["state"], "pending");
    caller.host.close_session(&caller.context.session).await;
    for (id, state) in [(&dies, "cancelled"), (&waits, "cancelled"), (&outlives, "running"), (&others, "running")] {
        assert_eq!(other.status(id).await["state"], state);
    }
    assert!(sleeping(&seconds).is_empty());
    for id in [&outlives, &others] {
        other.result("job_cancel", json!({ "job_id": id })).await;
    }
}

/// Case 64: where nothing runs jobs, none is taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_with_its_call_takes_no_jobs() {
    let host = host();
    let refused = host.failure("job_submit", json!({ "bin": "cat", "stdin": "x" })).await;
    assert_eq!(refused.kind, Kind::Unavailable);
    let hint = refused.hint.expect("a hint");
    assert!(
        ["`toolcrib serve`", "`toolcrib run`", "`toolcrib worker`"].iter().all(|door| hint.contains(door)),
        "{hint}"
    );
    assert_eq!(host.result("job_list", json!({ "all_sessions": true })).await["jobs"], json!([]));
    assert_eq!(host.failure("job_status", json!({ "job_id": "0" })).await.kind, Kind::InvalidArguments);
    assert!(!host.dirs().state.join("store.sqlite").exists(), "a look makes no store");
    let host = host.set("jobs.enabled=false");
    let (off, context) = host.parts();
    let tools = context.tools.clone();
    assert!(matches!(off.run_jobs(context.clone(), Box::new(move || tools.clone())).await, Ok(None)));
    let refused = host.failure("job_submit", json!({ "bin": "cat", "stdin": "x" })).await;
    assert!(refused.message.contains("`jobs.enabled = false`"), "{refused:?}");
}

/// Cases 10 and 11 of programs, as jobs: the same directory and the same environment as the tool.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_the_directory_and_the_environment_of_its_tool() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    for (bin, arguments) in [("pwd", json!({ "args": ["-P"] })), ("printenv", json!({ "stdin": "x" }))] {
        let tool = caller.result(bin, arguments.clone()).await;
        let id = caller.submit(json!({ "bin": bin, "arguments": arguments })).await;
        let job = caller.wait(&id).await;
        // The call's own mark is another one.
        let lines = |value: &Value| -> Vec<String> {
            let text = value["stdout"].as_str().expect("text").to_owned();
            text.lines().filter(|line| !line.starts_with("TOOLCRIB_CALL=")).map(str::to_owned).collect()
        };
        assert_eq!(lines(&tool), lines(&job));
        assert!(!lines(&job).is_empty());
    }
}

/// A person is asked about the very command when it is submitted, and not when it runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_once_when_it_is_submitted() {
    let asking = |answer: Answer| host().set("confine.ask=always").answering(answer);
    let host = asking(Answer::Yes);
    let jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let direct = caller.result("run_shell", harmless("echo direct")).await;
    assert_eq!(direct["stdout"], "direct\n");
    let id = caller.submit(json!({ "bin": "run_shell", "arguments": harmless("echo direct") })).await;
    assert_eq!(caller.wait(&id).await["stdout"], "direct\n");
    let mut questions: Vec<Value> = host.asked().iter().map(|request| json!(request)).collect();
    assert_eq!(questions.len(), 2);
    assert_eq!((&questions[0]["tool"], &questions[1]["tool"]), (&json!("run_shell"), &json!("run_shell as a job")));
    questions.iter_mut().for_each(|question| question["tool"] = Value::Null);
    assert_eq!(questions[0], questions[1], "the same question as for the tool itself");
    let program = caller.submit(json!({ "bin": "sh", "args": ["-c", "echo program"] })).await;
    assert_eq!(caller.wait(&program).await["stdout"], "program\n");
    assert_eq!(host.asked().len(), 3);
    jobs.close().await;
    // The trail has who allowed it, and the job's call by the job's id.
    let audit = host.audit();
    let of_submission: Vec<&Value> = audit.iter().filter(|line| line["tool"] == "job_submit").collect();
    let actions = of_submission.iter().map(|line| line["actions"].to_string()).collect::<String>();
    assert!(actions.contains("allowed by the test") && actions.contains("echo direct"), "{actions}");
    let of_job: Vec<&Value> = audit.iter().filter(|line| line["call"] == json!(id)).collect();
    assert_eq!(of_job.len(), 2, "{audit:?}");
    assert!(
        of_job[1]["actions"].to_string().contains("allowed by the answer when the job was submitted"),
        "{of_job:?}"
    );

    let host = asking(Answer::No);
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let refused = caller.failure("job_submit", json!({ "bin": "run_shell", "arguments": harmless("echo no") })).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "Command execution denied by user."));
    assert_eq!(caller.result("job_list", json!({})).await["jobs"], json!([]));
    // What the denylist refuses nobody is asked about.
    let refused = caller.failure("job_submit", json!({ "bin": "run_shell", "arguments": harmless("rm -rf /") })).await;
    assert_eq!(refused.kind, Kind::Denied);
    assert_eq!(host.asked().len(), 1);
}

/// What a person said is worth nothing for another command, and for a plugin or settings that are others by then.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_is_worth_nothing_under_other_settings() {
    let host = host().set("confine.ask=always").answering(Answer::Yes).set("jobs.pool=1");
    let jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let first = caller.submit(json!({ "bin": "sleep", "args": [unique_seconds()] })).await;
    caller.until(&first, "running").await;
    let id = caller.submit(json!({ "bin": "run_shell", "arguments": harmless("echo later") })).await;
    let wider = caller.submit(json!({ "bin": "run_shell", "arguments": harmless("echo wider") })).await;
    jobs.close().await;
    let first = caller.status(&first).await;
    assert_eq!(
        (&first["state"], first["cause"].as_str().map(|cause| cause.contains("its worker was stopped"))),
        (&json!("orphaned"), Some(true))
    );
    // Nobody was asked about what these settings let commands do.
    let host = host.set("tools.shell_env=[\"PATH\"]");
    let jobs = host.run_jobs().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let caller = Caller::of(&host);
    let status = caller.status(&id).await;
    assert_eq!(status["state"], "pending");
    assert!(status["cause"].as_str().is_some_and(|cause| cause.contains("with the settings of then")), "{status}");
    assert_eq!(jobs.waiting_elsewhere().await, Ok(2));
    // An operator can have it run all the same; what is asked then is the question that was answered, or it is not.
    let (core, context) = host.parts();
    core.adopt_job(&id, context).await.map_err(|failure| failure.message).expect("a job that waits");
    assert_eq!(caller.wait(&id).await["stdout"], "later\n");
    jobs.close().await;
    // The question would be another one: it says what the command reaches.
    let host = host.set("confine.network=full");
    let _jobs = host.run_jobs().await;
    let (core, context) = host.parts();
    core.adopt_job(&wider, context).await.map_err(|failure| failure.message).expect("a job that waits");
    let end = Caller::of(&host).wait(&wider).await;
    assert_eq!(end["state"], "error", "{end}");
    let cause = end["cause"].as_str().expect("a cause");
    assert!(cause.starts_with("denied: it is not what was approved when the job was submitted"), "{cause}");
}

/// What nobody can be asked about while it runs runs as a job where settings say so.
#[tokio::test(flavor = "multi_thread")]
async fn other_tools_run_as_jobs_where_settings_say_that_they_may() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let read = json!({ "bin": "read_file", "arguments": { "path": "a.txt" } });
    let refused = Caller::of(&host).failure("job_submit", read.clone()).await;
    assert_eq!(refused.kind, Kind::Denied, "{refused:?}");
    assert_eq!(refused.hint.as_deref(), Some("add \"read_file\" to `unattended` under [tools]"));
    let host = host.set("tools.unattended=[\"read_file\", \"write_file\"]");
    std::fs::write(host.work().join("a.txt"), "some text\n").expect("a file");
    let jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let id = caller.submit(read).await;
    let end = caller.wait(&id).await;
    assert_eq!(end["state"], "done", "{end}");
    assert!(end["outcome"]["result"].to_string().contains("some text"), "{end}");
    jobs.close().await;
    // What settings let it do when it was submitted counts for nothing later.
    let blocked = host.set("jobs.pool=1");
    let jobs = blocked.run_jobs().await;
    let caller = Caller::of(&blocked);
    let first = caller.sleeper(&unique_seconds()).await;
    caller.until(&first, "running").await;
    let id = caller.submit(json!({ "bin": "read_file", "arguments": { "path": "a.txt" } })).await;
    jobs.close().await;
    let host = blocked.set("tools.unattended=[\"write_file\"]");
    let jobs = host.run_jobs().await;
    let (core, context) = host.parts();
    core.adopt_job(&id, context).await.map_err(|failure| failure.message).expect("a job that waits");
    let end = Caller::of(&host).wait(&id).await;
    assert!(end["cause"].as_str().is_some_and(|cause| cause.starts_with("denied: `read_file` may not")), "{end}");
    jobs.close().await;
    // It is asked about now, and nobody is there.
    let host = host.set("tools.files_confirm=always");
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let id = caller.submit(json!({ "bin": "write_file", "arguments": { "path": "b.txt", "content": "x" } })).await;
    let end = caller.wait(&id).await;
    assert_eq!(end["state"], "error", "{end}");
    assert!(end["cause"].as_str().is_some_and(|cause| cause.starts_with("denied: ")), "{end}");
    assert!(!host.work().join("b.txt").exists());
}

/// A plugin of somebody else submits, and sees, jobs of the tools that it was granted; and what a person allowed others is not for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_somebody_else_has_the_jobs_of_its_tools_and_no_approvals() {
    let clerk = || host().set("confine.ask=always").plugin("clerk");
    let refused = clerk().failure("clerk", json!({})).await;
    assert_eq!(refused.kind, Kind::Denied);
    assert!(refused.hint.is_some_and(|hint| hint.ends_with("--job TOOL`")));
    let host = clerk().grant("clerk", "jobs=[\"run_shell\"]").answering(Answer::YesForSession);
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let of_cat = caller.submit(json!({ "bin": "cat", "stdin": "x" })).await;
    let refused = caller.failure("clerk", json!({ "submit": "cat", "arguments": { "stdin": "x" } })).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "`clerk` may not submit jobs of `cat`"));
    assert_eq!(refused.hint.as_deref(), Some("add \"cat\" to `jobs` under [plugin.clerk]"));
    for verb in ["get", "cancel"] {
        let refused = caller.failure("clerk", json!({ verb: of_cat })).await;
        assert_eq!(refused.message, format!("there is no job `{of_cat}`"));
    }
    // What the person allowed for this session they allowed to the tool itself.
    caller.result("run_shell", harmless("echo 1")).await;
    let submit = |text: &str| json!({ "submit": "run_shell", "arguments": harmless(text) });
    let asked = host.asked().len();
    let told = caller.result("clerk", submit("echo 2")).await;
    assert_eq!((&told["seen"], &told["tools"]), (&json!(["run_shell"]), &json!(["run_shell"])));
    caller.result("clerk", submit("echo 3")).await;
    assert_eq!(host.asked().len(), asked + 2);
    // A tool of this program has them.
    caller.submit(json!({ "bin": "run_shell", "arguments": harmless("echo 4") })).await;
    assert_eq!(host.asked().len(), asked + 2);
}

/// A job may take so long, and no longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_takes_too_long_is_ended() {
    let host = host();
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let seconds = unique_seconds();
    let script = format!("echo begun; sleep {seconds}");
    let id = caller.submit(json!({ "bin": "sh", "args": ["-c", script], "timeout": "5s" })).await;
    let end = caller.wait(&id).await;
    assert_eq!((&end["state"], &end["stdout"]), (&json!("error"), &json!("begun\n")), "{end}");
    assert_eq!(end["cause"], "it took more than 5000 ms");
    assert!(sleeping(&seconds).is_empty());
}

/// Rows and output hold no secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_neither_taken_nor_kept() {
    const SECRET: &str = "s3cr3t-value-of-a-test";
    let host = host();
    let file = host.home().join("secret");
    std::fs::write(&file, SECRET).expect("a file");
    std::os::unix::fs::chown(&file, None, None).expect("a file of this user's");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    let host = host.user(&format!("[secret.TOKEN]\nfile = {file:?}\n"));
    let _jobs = host.run_jobs().await;
    let caller = Caller::of(&host);
    let refused = caller.failure("job_submit", json!({ "bin": "cat", "stdin": SECRET })).await;
    assert_eq!(refused.kind, Kind::Denied, "{refused:?}");
    let copy = host.work().join("copy");
    std::fs::write(&copy, SECRET).expect("a file");
    let id = caller.submit(json!({ "bin": "cat", "args": [copy.display().to_string()] })).await;
    let end = caller.wait(&id).await;
    assert_eq!(end["state"], "done", "{end}");
    assert!(!end.to_string().contains(SECRET), "{end}");
    let kept =
        std::fs::read_dir(host.dirs().state.join("jobs")).expect("output").map(|entry| entry.expect("a name").path());
    let store = ["store.sqlite", "store.sqlite-wal"].map(|name| host.dirs().state.join(name));
    for file in kept.chain(store).filter(|path| path.is_file()) {
        let bytes = std::fs::read(&file).expect("a file");
        let has_secret = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!has_secret, "{}", file.display());
    }
}
