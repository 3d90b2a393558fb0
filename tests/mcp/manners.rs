//! What the two sides owe each other beyond the call: questions that are withdrawn, progress, notices to the operator, rates, arguments
//! that do not fit.

use crate::rig::{Home, LIST_CHANGED, bytes_of};
use crate::traces::{open_calls, outcomes, trail};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toolcrib_tests::forge::liar;
use toolcrib_tests::mcp::{
    Client, ERAS, Era, decides, envelope, failure, is_answer_to, is_progress, progress_of, text,
};
use toolcrib_tests::shell::command;
use toolcrib_tests::{eventually, is_long};

/// Says that the answer to a request is not wanted any more, in either direction.
const CANCELLED: &str = "notifications/cancelled";

fn is_withdrawal(message: &Value) -> bool {
    message["method"] == CANCELLED
}

/// Names of the files in the working directory.
fn files(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.program.path("work")).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("a file").file_name().display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_question_is_withdrawn_when_its_call_is_cancelled() {
    let home = Home::new();
    let mut client = home.serve(Era::Legacy);
    let question = client.asked("run_shell", &command("touch first"));
    // Its question comes when the one before is no longer open.
    let second = client.begin("run_shell", command("touch second"));
    client.settle();
    assert_eq!(client.count(is_withdrawal), 0, "nobody has cancelled anything");

    client.cancel(question.call);
    let told = client.notification(CANCELLED);
    assert_eq!(told["params"]["requestId"], question.place, "{told}");
    let next = client.question(second, "run_shell", &command("touch second"));
    assert_ne!(next.place, question.place);
    // Too late.
    client.reply(&question, decides("allow once"));
    envelope(&client.outcome(&next, decides("allow once")));

    eventually("both calls have their outcome", || open_calls(&home.program) == 0);
    client.settle();
    assert_eq!(client.count(is_withdrawal), 0, "a question that was answered is not withdrawn");
    assert_eq!(client.count(|message| is_answer_to(message, question.call)), 0, "what was cancelled is not answered");
    assert_eq!(files(&home), ["second"]);
    let mut outcomes = outcomes(&home.program, "run_shell");
    outcomes.sort();
    assert_eq!(outcomes, ["cancelled", "ok"]);
}

#[test]
fn a_question_is_withdrawn_when_nobody_answers_in_time() {
    let home = Home::new().set("approval.timeout_ms=1000");
    let mut client = home.serve(Era::Legacy);
    let question = client.asked("run_shell", &command("touch ran"));
    let result = client.result(question.call);
    assert!(failure(&result).starts_with("Tool error: nobody answered within 1s"), "{result}");
    assert_eq!(client.count(is_withdrawal), 1, "the question goes before its call does, and once");
    let told = client.notification(CANCELLED);
    assert_eq!(told["params"]["requestId"], question.place, "{told}");
    assert_eq!((files(&home), outcomes(&home.program, "run_shell")), (Vec::new(), vec!["denied".to_owned()]));
}

/// Metadata of a request, with a token if there is one.
fn watched_by(token: Option<&str>) -> Value {
    token.map_or_else(|| json!({}), |token| json!({ "progressToken": token }))
}

/// The request that asked has ended by the time the command runs.
#[test]
fn a_call_that_waited_tells_how_it_fares_to_the_request_that_resumed_it() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let arguments = command("for i in 1 2 3 4; do echo step $i; sleep 0.3; done");
    for (first, second) in
        [(None, Some("second")), (Some("first"), Some("second")), (Some("first"), None), (None, None)]
    {
        let params = json!({ "name": "run_shell", "arguments": arguments, "_meta": watched_by(first) });
        let call = client.request("tools/call", params);
        let question = client.question(call, "run_shell", &arguments);
        assert_eq!(client.count(is_progress), 0, "{first:?}, {second:?}: nothing has begun yet");

        let mut again = question.again(question.state(), decides("allow once"));
        again["_meta"] = watched_by(second);
        let id = client.request("tools/call", again);
        let result = client.result(id);
        assert_eq!(envelope(&result)["result"]["exit_code"], 0);
        if let Some(token) = second {
            let told = progress_of(&mut client, &json!(token));
            assert!(told >= 3, "{first:?}, {second:?}: {told} notifications of four steps");
        }
        client.settle();
        assert_eq!(client.count(is_progress), 0, "{first:?}, {second:?}: for nobody, or after the result");
    }
}

/// How often the operator was told that a plugin was refused.
fn refusals(client: &Client, plugin: &str) -> usize {
    let end = format!("{plugin}` was refused: ");
    client.said().lines().filter(|line| line.contains("plugin `") && line.contains(&end)).count()
}

#[test]
fn what_is_wrong_with_a_plugin_is_told_once() {
    for era in ERAS {
        let home = Home::new();
        home.install("text", b"no component");
        // What is wrong with this one is found when it is first listed.
        home.install("liar", &liar(&json!({ "tools": [{ "name": "one", "summary": "Answer." }] }), &["other"]));
        let mut client = home.serve(era);
        assert_eq!(refusals(&client, "text.wasm"), 1, "{era:?}: {}", client.said());
        (0..5).for_each(|_| client.settle());
        let told = ["text.wasm", "liar"].map(|plugin| refusals(&client, plugin));
        assert_eq!(told, [1, 1], "{era:?}: {}", client.said());

        home.install("late", b"no component either");
        eventually("the one that came is told", || refusals(&client, "late.wasm") > 0);
        (0..5).for_each(|_| client.settle());
        let told = ["text.wasm", "liar", "late.wasm"].map(|plugin| refusals(&client, plugin));
        assert_eq!(told, [1, 1, 1], "{era:?}: {}", client.said());
        envelope(&client.call("time", json!({})));
    }
}

/// Something else writes there all the time.
#[test]
fn a_plugin_is_taken_though_its_directory_never_gets_quiet() {
    let home = Home::new().reading("word_count");
    let mut client = home.serve(Era::Legacy);
    client.settle();
    let (file, is_enough) = (home.plugin("noise").with_extension("txt"), Arc::new(AtomicBool::new(false)));
    let noise = std::thread::spawn({
        let (file, is_enough, begin) = (file.clone(), is_enough.clone(), Instant::now());
        move || {
            while begin.elapsed() < Duration::from_secs(10) && !is_enough.load(Ordering::Relaxed) {
                let _ = std::fs::write(&file, format!("{:?}\n", begin.elapsed()));
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    });
    eventually("there is noise", || file.exists());
    home.install("word_count", &bytes_of("word_count"));
    client.notification(LIST_CHANGED);
    // A host that waits for silence has it when the noise ends.
    assert!(!noise.is_finished(), "it is taken when the directory has become quiet");
    assert!(client.tools().iter().any(|name| name == "word_count"));
    is_enough.store(true, Ordering::Relaxed);
    noise.join().expect("writing does not panic");
}

/// Some tools make a directory anew.
#[test]
fn a_plugin_is_taken_though_its_directory_was_removed_meanwhile() {
    let home = Home::new().reading("word_count");
    home.install("word_count", &bytes_of("word_count"));
    let mut client = home.serve(Era::Legacy);
    assert!(client.tools().iter().any(|name| name == "word_count"));
    std::fs::remove_dir_all(home.plugin("word_count").parent().expect("a directory")).expect("it is removed");
    client.notification(LIST_CHANGED);
    assert!(!client.tools().iter().any(|name| name == "word_count"));
    client.forget(|message| message["method"] == LIST_CHANGED);
    home.install("word_count", &bytes_of("word_count"));
    client.notification(LIST_CHANGED);
    assert!(client.tools().iter().any(|name| name == "word_count"));
}

/// A call is one too many.
fn assert_over_the_rate(result: &Value) {
    let said = failure(result);
    assert!(said.starts_with("Tool error: limit: "), "{said}");
    for word in ["calls a minute", "calls_per_minute"] {
        assert!(said.contains(word), "no `{word}`: {said}");
    }
}

/// M-12.
#[test]
fn more_calls_a_minute_than_may_be_are_refused() {
    for era in ERAS {
        let home = Home::new().unasked().set("limits.calls_per_minute=5");
        let mut client = home.serve(era);
        let mark = |number: usize| command(&format!("echo {number} >>marks"));
        for number in 0..5 {
            // A list is no call.
            (0..3).for_each(|_| client.settle());
            envelope(&client.call("run_shell", mark(number)));
        }
        for number in 5..8 {
            assert_over_the_rate(&client.call("run_shell", mark(number)));
        }
        assert_over_the_rate(&client.call("write_file", json!({ "path": "written", "content": "x" })));
        let marks = std::fs::read_to_string(home.program.path("work/marks")).expect("a file");
        assert_eq!((marks.as_str(), files(&home)), ("0\n1\n2\n3\n4\n", vec!["marks".to_owned()]), "{era:?}");
        let expected = [["ok"; 5].as_slice(), &["limit"; 3]].concat();
        assert_eq!(outcomes(&home.program, "run_shell"), expected, "{era:?}");
        client.settle();
    }
}

#[test]
fn a_caller_over_the_rate_is_served_again_when_there_is_room() {
    let home = Home::new().set("limits.calls_per_minute=60");
    let mut client = home.serve(Era::Legacy);
    let refused = (0..1000).map(|_| client.call("time", json!({}))).find(|result| result["isError"] == true);
    assert_over_the_rate(&refused.expect("a thousand calls are more than there is room for"));
    let client = RefCell::new(client);
    eventually("a call is taken", || client.borrow_mut().call("time", json!({}))["isError"] != true);
}

/// In the newer era it takes two requests.
#[test]
fn a_call_that_a_person_approves_is_one_call() {
    for era in ERAS {
        let home = Home::new().set("limits.calls_per_minute=1");
        let mut client = home.serve(era);
        let question = client.asked("run_shell", &command("touch ran"));
        envelope(&client.outcome(&question, decides("allow once")));
        assert_eq!(files(&home), ["ran"], "{era:?}");
        assert_over_the_rate(&client.call("time", json!({})));
    }
}

/// Arguments that fit. Those of tools that change something leave `ran-N`.
fn fitting(tool: &str, number: usize) -> Value {
    match tool {
        "run_shell" => command(&format!("touch ran-{number}")),
        "write_file" => json!({ "path": format!("ran-{number}"), "content": "x" }),
        "read_file" => json!({ "path": "a.txt", "offset": 0 }),
        "file_edit" => json!({ "path": "a.txt", "old_string": "a", "new_string": "b" }),
        "file_list" => json!({ "path": "." }),
        "file_search" => json!({ "pattern": "a" }),
        "file_find" => json!({ "pattern": "*.txt" }),
        "time" => json!({ "format": "date" }),
        "fetch_url" => json!({ "url": "http://127.0.0.1:9/", "as": "text" }),
        "web_search" => json!({ "query": "nothing" }),
        _ => panic!("which arguments fit `{tool}`?"),
    }
}

/// What is done to arguments that fit. An index is that of a property in the schema.
#[derive(Clone, Debug)]
enum Change {
    Drop(Index),
    Put(Index, Value),
    PutIntoList(Index),
    Add(String, Value),
}

impl Change {
    fn any() -> impl Strategy<Value = Self> {
        let deep = (0..40).fold(json!("x"), |inner, _| json!([inner]));
        let values = select(vec![
            Value::Null,
            json!(true),
            json!(5),
            json!(-1),
            json!(1.5),
            json!(1e300),
            json!(u64::MAX),
            json!(""),
            json!("extreme"),
            json!([]),
            json!({}),
            json!({ "path": "a.txt" }),
            deep,
        ]);
        prop_oneof![
            2 => any::<Index>().prop_map(Self::Drop),
            4 => (any::<Index>(), values.clone()).prop_map(|(which, value)| Self::Put(which, value)),
            1 => any::<Index>().prop_map(Self::PutIntoList),
            // No property ends so.
            1 => ("[ -~]{0,20}!", values).prop_map(|(name, value)| Self::Add(name, value)),
        ]
    }

    fn apply(&self, arguments: &mut Map<String, Value>, schema: &Value) {
        let properties = schema["properties"].as_object().expect("arguments have names");
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        let is_required = |name: &str| schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
        match self {
            Self::Drop(which) => {
                arguments.remove(*which.get(&names));
            }
            // For an optional one it says that there is none, and fits.
            Self::Put(which, Value::Null) if !is_required(which.get::<&str>(&names)) => {}
            Self::Put(which, value) => {
                arguments.insert((*which.get(&names)).to_owned(), value.clone());
            }
            Self::PutIntoList(which) => {
                let name = *which.get(&names);
                let list = json!([arguments.get(name)]);
                arguments.insert(name.to_owned(), list);
            }
            Self::Add(name, value) => {
                arguments.insert(name.clone(), value.clone());
            }
        }
    }
}

/// M-11.
#[test]
fn arguments_that_do_not_fit_never_reach_a_tool() {
    let cases = if is_long() { 5000 } else { 150 };
    for era in ERAS {
        let home = Home::new().unasked();
        home.program.write("work/a.txt", "text");
        let mut client = home.serve(era);
        for (number, tool) in ["run_shell", "write_file", "read_file", "time"].into_iter().enumerate() {
            envelope(&client.call(tool, fitting(tool, number)));
        }
        let ran = files(&home);
        assert_eq!(ran, ["a.txt", "ran-0", "ran-1"], "{era:?}: what fits has its effect");
        let list = client.ask("tools/list", json!({}))["tools"].take();
        let tools: Vec<(&str, &Value)> = list.as_array().expect("a list").iter().map(named).collect();
        for (tool, schema) in &tools {
            assert!(jsonschema::draft202012::is_valid(schema, &fitting(tool, 0)), "{tool}: {schema}");
        }

        let (client, sent) = (RefCell::new(client), Cell::new(0));
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
        let mutants = (any::<Index>(), prop::collection::vec(Change::any(), 1..4));
        let outcome = TestRunner::new(config).run(&mutants, |(which, changes)| {
            let (tool, schema) = which.get(&tools);
            let number = 2 + sent.get();
            let mut arguments = fitting(tool, number).as_object().expect("an object").clone();
            changes.iter().for_each(|change| change.apply(&mut arguments, schema));
            let arguments = Value::Object(arguments);
            if jsonschema::draft202012::is_valid(schema, &arguments) {
                return Ok(());
            }
            sent.set(sent.get() + 1);
            let result = client.borrow_mut().call(tool, arguments.clone());
            let is_refused = result["isError"] == true && text(&result).contains(&format!("arguments of `{tool}`"));
            prop_assert!(is_refused, "{tool} took {arguments}: {result}");
            prop_assert!(!home.program.path(&format!("work/ran-{number}")).exists(), "{tool} ran with {arguments}");
            Ok(())
        });
        outcome.unwrap_or_else(|failed| panic!("{era:?}: {failed}"));

        assert_eq!(files(&home), ran, "{era:?}: nothing has changed");
        let trail = trail(&home.program);
        let is_refusal = |line: &&Value| line["outcome"] == "invalid_arguments" && line.get("actions").is_none();
        assert_eq!(trail.iter().filter(is_refusal).count(), sent.get(), "{era:?}");
        assert!(sent.get() * 2 > cases as usize, "{era:?}: {} of {cases} did not fit", sent.get());
    }
}

/// Name and schema of a tool that is listed.
fn named(tool: &Value) -> (&str, &Value) {
    (tool["name"].as_str().expect("a tool has a name"), &tool["inputSchema"])
}
