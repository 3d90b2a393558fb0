//! Calls of the tools of a server: both eras, results of all kinds, and servers that end, are slow, or say things twice.

use crate::rig::{
    accepting, behaving, behaving_with, call, command, echoed, host, look, program, section, set, wait_for,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use toolcrib::call::Request;
use toolcrib::config::{UpstreamConfirm, UpstreamSection};
use toolcrib::envelope::{Content, Kind};
use toolcrib::event::Event;
use toolcrib::formats::{Format, Strictness};
use toolcrib::upstream::Accepted;
use toolcrib_tests::{TestHost, is_long};

#[tokio::test]
async fn a_tool_is_called_in_both_eras() {
    for mode in ["plain", "modern"] {
        let host = accepting(host(), &section(mode, &[]), &["confirm=none"]).await;
        assert_eq!(echoed(&host, "häßlich \u{1F600}").await.expect("its text"), "häßlich \u{1F600}", "{mode}");
        let sum = call(&host, "add", json!({ "a": 40, "b": 2 })).await.expect("a sum");
        assert_eq!(sum.result, json!({ "sum": 42 }), "{mode}");
        assert!(sum.content.is_empty(), "what it says once more as text is left out");
    }
}

#[tokio::test]
async fn the_newer_era_is_what_was_accepted() {
    assert_eq!(look(&host(), &section("modern", &[])).await.expect("it speaks it").accepted.protocol, "2026-07-28");
}

#[tokio::test]
async fn silence_to_the_newer_era_is_the_older_one() {
    let begin = Instant::now();
    let look = look(&host(), &section("mute", &[])).await.expect("it speaks the older one");
    assert_eq!(look.accepted.protocol, "2025-11-25");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let failure = crate::rig::look(&host(), &section("ancient", &[])).await.map(drop).expect_err("no version of ours");
    assert!(failure.message.contains("1999-01-01"), "{}", failure.message);
}

#[tokio::test]
async fn one_that_is_slow_to_start_speaks_the_era_that_it_was_asked_in_first() {
    let look = look(&host(), &section("slow", &[])).await.expect("it speaks the newer one");
    assert_eq!(look.accepted.protocol, "2026-07-28");
}

#[tokio::test]
async fn one_that_ends_over_the_newer_era_is_started_in_the_older_one() {
    let look = look(&host(), &section("strict", &[])).await.expect("it speaks the older one");
    assert_eq!(look.accepted.protocol, "2025-11-25");
}

#[tokio::test]
async fn a_banner_before_the_protocol_is_passed_over() {
    let host = behaving("banner", &[]).await;
    assert_eq!(echoed(&host, "x").await.expect("its text"), "x");
}

#[tokio::test]
async fn arguments_are_held_against_the_schema_before_a_server_sees_them() {
    let host = behaving("plain", &[]).await;
    let failure = call(&host, "add", json!({ "a": "one", "b": 2 })).await.expect_err("no integer");
    assert_eq!(failure.kind, Kind::InvalidArguments);
}

#[tokio::test]
async fn a_result_that_is_not_as_promised_is_a_result_with_a_notice() {
    let of_text = "`jotter__add` returned a result that does not fit its own schema: \"done\" is not of type \"object\"; it is handed on as it is";
    let of_sum = "`jotter__add` returned a result that does not fit its own schema: `sum`: \"many\" is not of type \"integer\"; it is handed on as it is";
    for (mode, result, notice) in [("text-only", json!("done"), of_text), ("misfit", json!({ "sum": "many" }), of_sum)]
    {
        let host = behaving(mode, &[]).await;
        let output = call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect("its work is done");
        assert_eq!((output.result, output.notices), (result, vec![notice.to_owned()]), "{mode}");
    }
    // All that is structured is a result, whatever there is beside it.
    for mode in ["bare", "bare-null"] {
        let host = behaving(mode, &[]).await;
        let output = call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect("its work is done");
        assert_eq!((output.result, output.notices), (json!({ "sum": 3 }), Vec::new()), "{mode}");
    }
}

#[tokio::test]
async fn a_schema_that_is_put_together_is_listed_plainly_and_holds_as_it_is() {
    let host = accepting(host(), &section("composed", &[]), &["confirm=none"]).await;
    let (made, context) = host.parts();
    let tools = made.offered(context).await.tools;
    let offers =
        || tools.iter().filter(|tool| tool.name().starts_with("jotter__")).map(|tool| made.offer(tool, context));
    for format in Format::ALL {
        let definitions = format.definitions(offers().collect(), Strictness::Off).expect("a list");
        let listed = definitions.json.expect("some tools").to_string();
        assert!(!listed.contains("\"oneOf\"") && !listed.contains("\"anyOf\""), "{}: {listed}", format.name());
        let told = "`jotter__look_up`: `anyOf` at the top are folded into its properties";
        assert!(definitions.report.iter().any(|line| line == told), "{:?}", definitions.report);
    }
    let listed =
        Format::Mcp.definitions(offers().collect(), Strictness::Off).expect("a list").json.expect("some tools");
    let schema = |name: &str| {
        let tool = listed["tools"].as_array().into_iter().flatten().find(|tool| tool["name"] == name);
        tool.expect("it is listed")["inputSchema"].clone()
    };
    assert_eq!(
        schema("jotter__look_up"),
        json!({ "type": "object", "properties": { "id": { "type": "string" }, "name": { "type": "string" } } })
    );
    assert_eq!(
        schema("jotter__open"),
        json!({
            "type": "object",
            "properties": { "kind": { "enum": ["path", "url"] }, "path": { "type": "string" }, "url": { "type": "string" } },
            "required": ["kind"],
        })
    );
    // Nobody else would check it.
    let failure = call(&host, "look_up", json!({})).await.expect_err("none of the two");
    assert_eq!(failure.message, "arguments of `jotter__look_up`: needs `id`, or `name`");
    let takes = "`jotter__look_up` takes {\"id\"?: string, \"name\"?: string}";
    assert_eq!(failure.hint.as_deref(), Some(takes));
    let failure = call(&host, "open", json!({ "kind": "path", "url": "x" })).await.expect_err("the other one's");
    assert_eq!(failure.kind, Kind::InvalidArguments);
    for (tool, arguments) in [("look_up", json!({ "name": "x" })), ("open", json!({ "kind": "url", "url": "x" }))] {
        let output = call(&host, tool, arguments.clone()).await.expect("what it was given");
        assert_eq!(output.result, arguments.to_string().replace(':', ": ").replace(',', ", "));
    }
}

/// Of a tool that takes what it does not name, nothing is dropped.
#[tokio::test]
async fn what_a_tool_may_take_goes_to_its_server_as_it_came() {
    let host = accepting(host(), &section("composed", &[]), &["confirm=none"]).await;
    let given = json!({ "id": "1", "toolCallId": "2", "task_progress": "3" });
    let output = call(&host, "look_up", given.clone()).await.expect("what it was given");
    assert_eq!(serde_json::from_str::<Value>(output.result.as_str().expect("a text")).expect("JSON"), given);
    let sum = call(&host, "add", json!({ "a": "40", "b": "2" })).await.expect("numbers");
    assert_eq!(sum.result, json!({ "sum": 42 }));
}

#[tokio::test]
async fn an_error_of_a_tool_is_a_failure_in_its_words() {
    let host = behaving("fails", &[]).await;
    let failure = echoed(&host, "x").await.expect_err("it fails");
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.message.contains("no such note"), "{}", failure.message);
}

#[tokio::test]
async fn content_of_all_kinds_is_handed_on_and_nothing_is_fetched() {
    let host = behaving("kinds", &[]).await;
    let output = call(&host, "echo", json!({ "text": "x" })).await.expect("a result");
    let text = output.result.as_str().expect("a text");
    assert!(text.contains("a text") && text.contains("a note") && text.contains("file:///etc/passwd"), "{text}");
    assert!(!text.contains("root:"), "{text}");
    assert!(
        matches!(&output.content[..], [Content::Image(kind, bytes)] if kind == "image/png" && bytes.starts_with(b"\x89PNG"))
    );
    assert!(output.notices.iter().any(|notice| notice.contains("not known here")), "{:?}", output.notices);
    // Clients go by the type: a page that is called an image is not handed on.
    let left_out = "an image or audio was left out whose media type is that of something else";
    assert!(output.notices.iter().any(|notice| notice == left_out), "{:?}", output.notices);
}

#[tokio::test]
async fn a_large_text_is_cut_and_kept() {
    let host = behaving("large", &[]).await;
    let envelope = host.call("jotter__echo", json!({ "text": "x" })).await;
    let output = envelope.outcome.expect("a result");
    let text = output.result.as_str().expect("a text");
    assert!(text.len() < 100_000 && text.starts_with("line of a large answer"), "{}", text.len());
    assert!(
        output.notices.iter().any(|notice| notice.contains("of which this is the beginning")),
        "{:?}",
        output.notices
    );
    assert_eq!(envelope.kept.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_that_is_not_on_record() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let write = format!("write={}", json!([directory.path()]));
    let host = behaving_with("log", &[&log.display().to_string()], &[&write]).await;
    echoed(&host, "first").await.expect("its text");
    // Whoever has the trail's lock keeps its next line from being written, for so long.
    let trail = std::fs::File::open(host.dirs().audit()).expect("a trail");
    trail.lock().expect("nobody has it");
    let call = tokio::spawn(async move { echoed(&host, "second").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let heard = std::fs::read_to_string(&log).expect("what it was sent");
    assert!(heard.contains("first") && !heard.contains("second"), "{heard}");
    trail.unlock().expect("it was ours");
    assert_eq!(call.await.expect("no fault").expect("its text"), "second");
}

#[tokio::test]
async fn each_caller_has_a_server_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log").display().to_string();
    let lines = [format!("read={}", json!([program()])), format!("write={}", json!([directory.path()]))];
    let host = behaving_with("counting", &[&log], &[&lines[0], &lines[1]]).await;
    assert_eq!((echoed(&host, "").await.unwrap(), echoed(&host, "").await.unwrap()), ("1".into(), "2".into()));
    let (made, context) = host.parts();
    let request =
        Request { tool: "jotter__echo".into(), arguments: toolcrib::call::Arguments::Json(json!({ "text": "" })) };
    let other = made.call(request, &context.clone().principal("somebody else")).await;
    assert_eq!(other.outcome.expect("a result").result, "1");
}

#[tokio::test]
async fn a_reader_is_asked_again_where_its_server_died_and_a_writer_is_not() {
    let host = behaving("dies", &["reads=[\"read_note\"]"]).await;
    let failure = call(&host, "read_note", json!({})).await.expect_err("it dies each time");
    assert_eq!(failure.kind, Kind::Unavailable);
    // By now it is waited for until it is started again.
    let host = behaving("dies", &[]).await;
    let failure = echoed(&host, "x").await.expect_err("it dies");
    assert_eq!(failure.kind, Kind::OutcomeUnknown);
    assert!(failure.message.contains("in the middle of the call"), "{}", failure.message);
    // It is started again at once, the first time.
    let sum = call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect("a server that was started again");
    assert_eq!(sum.result["sum"], 3);
}

#[tokio::test]
async fn a_server_that_fails_is_started_less_and_less_often() {
    let host = behaving("crash", &[]).await;
    let mut hints = Vec::new();
    for _ in 0..4 {
        let failure = echoed(&host, "x").await.expect_err("it ends at once");
        hints.push(failure.hint.unwrap_or_default());
    }
    assert!(
        hints[2].contains("it is started again when it is called after")
            || hints[3].contains("it is started again when it is called after"),
        "{hints:?}"
    );
}

#[tokio::test]
async fn who_waits_for_a_silent_server_holds_nobody_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let path = log.display().to_string();
    let lines = [format!("write={}", json!([directory.path()])), "timeout_ms=5000".to_owned()];
    let host = behaving_with("silent", &[&path], &[&lines[0], &lines[1]]).await;
    // From here on it runs.
    let _ = call(&host, "add", json!({ "a": 1, "b": 1 })).await.expect("a sum");
    let silent = async { (echoed(&host, "x").await, Instant::now()) };
    let ((silent, given_up), summed) = tokio::join!(silent, async {
        wait_for(|| std::fs::read_to_string(&log).ok().filter(|log| log.contains("\"echo\""))).await;
        for number in 0..20 {
            assert_eq!(
                call(&host, "add", json!({ "a": number, "b": 1 })).await.expect("a sum").result["sum"],
                number + 1
            );
        }
        Instant::now()
    });
    let silent = silent.expect_err("no answer");
    assert_eq!(silent.kind, Kind::TimedOut);
    assert!(silent.message.contains("within 5000 ms"), "{}", silent.message);
    assert!(summed < given_up, "{:?} too late", summed - given_up);
    // It was told that nobody waits any more.
    let heard =
        wait_for(|| std::fs::read_to_string(&log).ok().filter(|log| log.contains("notifications/cancelled"))).await;
    assert!(heard.contains("requestId"), "{heard}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_is_cancelled_there_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let path = log.display().to_string();
    let host = behaving_with("silent", &[&path], &[&format!("write={}", json!([directory.path()]))]).await;
    let cancel = host.cancel.clone();
    let (outcome, ()) = tokio::join!(echoed(&host, "x"), async {
        wait_for(|| std::fs::read_to_string(&log).ok().filter(|log| log.contains("tools/call"))).await;
        cancel.cancel();
    });
    assert_eq!(outcome.expect_err("it was cancelled").kind, Kind::Cancelled);
    wait_for(|| std::fs::read_to_string(&log).ok().filter(|log| log.contains("notifications/cancelled"))).await;
}

/// Case 26. The server is read more slowly than it writes, so a million takes half an hour.
#[tokio::test]
async fn of_a_flood_of_progress_ten_reports_a_second_are_handed_on_and_the_call_succeeds() {
    let (notes, most) = if is_long() { ("1000000", "timeout_ms=7200000") } else { ("10000", "timeout_ms=60000") };
    let host = behaving("progress", &[most]).await;
    let begin = Instant::now();
    assert_eq!(echoed(&host, notes).await.expect("its text"), notes);
    let seconds = usize::try_from(begin.elapsed().as_secs()).expect("not that long") + 1;
    let reports = host.events().iter().filter(|event| matches!(event, Event::Progress { .. })).count();
    assert!((1..=10 * seconds).contains(&reports), "{reports} in {seconds} s");
}

#[tokio::test]
async fn many_calls_at_once_have_each_its_own_answer() {
    let host = behaving("plain", &[]).await;
    let _ = echoed(&host, "first").await.expect("it runs");
    let calls = (0..50).map(|number| {
        let host: &TestHost = &host;
        async move {
            let sum: Value = call(host, "add", json!({ "a": number, "b": number })).await.expect("a sum").result;
            assert_eq!(sum["sum"], 2 * number);
        }
    });
    futures_util::future::join_all(calls).await;
}

/// A toolset has of a server's tools those that it names, and sets arguments of them, as of any other.
#[tokio::test]
async fn a_toolset_has_some_tools_and_sets_their_arguments() {
    let settings = "[toolset.clerk]\ntools = [\"jotter__add\"]\nsession = [\"agent\"]\nbind.jotter__add.a = 40\n";
    let host = accepting(host().user(settings), &section("plain", &[]), &["confirm=none"]).await;
    let sum = async |arguments| host.call_as("clerk", "ann", "jotter__add", arguments).await;
    assert_eq!(sum(json!({ "b": 2 })).await.expect("a sum")["sum"], 42);
    let failure = sum(json!({ "a": 1, "b": 2 })).await.expect_err("that is set");
    assert_eq!(failure.kind, Kind::InvalidArguments, "{}", failure.message);
    let failure = host.call_as("clerk", "ann", "jotter__echo", json!({ "text": "x" })).await.expect_err("not in it");
    assert!(failure.message.contains("has no tool `jotter__echo`"), "{}", failure.message);
}

/// A host that has accepted a server under many names. Each notes when it starts and when it is asked for its list.
async fn with_many(names: &[String], log: &Path) -> TestHost {
    let (host, plain) = (host(), section("plain", &[]));
    let command = command("starts", &[log.to_str().expect("text")]);
    let (made, context) = host.parts();
    let looks = names.iter().map(|name| made.look_at_upstream(name, &plain, context));
    let looks = futures_util::future::join_all(looks).await;
    let accepted = names.iter().zip(looks).map(|(name, look)| {
        let look = look.map_err(|failure| failure.to_json().to_string()).expect("it says what it offers");
        let accepted = Accepted { command: command.clone(), ..look.accepted };
        accepted.keep(&host.dirs().config, name).expect("it is kept")
    });
    let accepted: Vec<String> = accepted.collect();
    let write = vec![log.parent().expect("a directory").to_owned()];
    let section = UpstreamSection { command, write, confirm: UpstreamConfirm::None, ..plain };
    names
        .iter()
        .zip(accepted)
        .fold(host, |host, (name, accepted)| set(host, name, &UpstreamSection { accepted, ..section.clone() }))
}

/// Case 46.
#[tokio::test]
async fn of_many_servers_that_are_called_at_once_four_start_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let names: Vec<String> = (1..=22).map(|number| format!("jotter{number}")).collect();
    let host = with_many(&names, &log).await;
    let calls = names.iter().map(|name| {
        let host: &TestHost = &host;
        async move { host.result(&format!("{name}__echo"), json!({ "text": name })).await }
    });
    assert_eq!(futures_util::future::join_all(calls).await, names);
    let log = std::fs::read_to_string(&log).expect("what they noted");
    let (mut starting, mut most, mut started) = (0, 0, 0);
    for line in log.lines() {
        match line == "started" {
            true => (starting, started) = (starting + 1, started + 1),
            false => starting -= 1,
        }
        most = starting.max(most);
    }
    assert_eq!((started, starting), (22, 0), "{log}");
    assert!((2..=4).contains(&most), "{most}: {log}");
}
