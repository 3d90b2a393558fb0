//! `toolcrib run`: a line in, a line out, for programs.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use toolcrib_tests::client::{cancel, request};
use toolcrib_tests::outcome::{NO_QUESTION, answers, code, ended, stderr};
use toolcrib_tests::processes::lives;
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, Running, eventually, guest};

const MIB: usize = 1 << 20;

fn start(program: &Program, before: &[&str]) -> Running {
    program.start(&[&NO_QUESTION[..], before, &["run"]].concat())
}

fn run(program: &Program, input: &str) -> Vec<Value> {
    answers(&program.run_with(&[&NO_QUESTION[..], &["run"]].concat(), input))
}

fn error(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("not a failure: {answer}"))
}

fn time(id: impl Into<Value>) -> String {
    request(id, "time", &json!({}))
}

/// A command that begins by making the file `name` and ends when the file `name.go` is there.
fn until_go(name: &str) -> Value {
    harmless(&format!("touch {name}; until [ -e {name}.go ]; do sleep 0.01; done; echo {name}"))
}

#[test]
fn answers_come_in_order_of_completion() {
    let program = Program::new();
    let mut running = start(&program, &[]);
    running.write(request("slow", "run_shell", &until_go("a")));
    eventually("the slow call runs", || program.path("work/a").exists());
    running.write(time("fast"));
    let first = running.line();
    assert_eq!((&first["id"], &first["result"]["source"]), (&json!("fast"), &json!("harness")));
    program.write("work/a.go", "");
    let second = running.line();
    assert_eq!((&second["id"], &second["result"]["stdout"]), (&json!("slow"), &json!("a\n")));
    running.close();
    assert_eq!(ended(&mut running), Some(0));
}

#[test]
fn an_answer_is_the_id_and_the_envelope() {
    let answers = run(&Program::new(), &(time(1) + &request(2, "tmie", &json!({}))));
    for answer in &answers {
        let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
        let outcome = if answer["id"] == 1 { "result" } else { "error" };
        assert_eq!(keys, ["id", "harness_timestamp", outcome]);
    }
    assert_eq!(answers.len(), 2);
}

#[test]
fn an_id_is_any_json_and_comes_back_as_it_was() {
    let ids = [json!(1), json!(-1.5), json!("a"), json!(""), json!(true), json!([1, [2]]), json!({ "b": 1, "a": 2 })];
    let input: String = ids.iter().map(|id| time(id.clone())).collect();
    let mut texts: Vec<String> = run(&Program::new(), &input).iter().map(|answer| answer["id"].to_string()).collect();
    let mut expected: Vec<String> = ids.iter().map(Value::to_string).collect();
    texts.sort();
    expected.sort();
    assert_eq!(texts, expected);
}

#[test]
fn arguments_are_an_object_its_text_or_nothing() {
    let input = [r#"{"id":1,"tool":"time","arguments":{}}"#, r#"{"id":2,"tool":"time","arguments":"{}"}"#]
        .into_iter()
        .chain([r#"{"id":3,"tool":"time"}"#, r#"{"id":4,"tool":"time","arguments":null}"#, "", "  "])
        .collect::<Vec<_>>()
        .join("\n");
    let answers = run(&Program::new(), &input);
    assert!(answers.len() == 4 && answers.iter().all(|answer| answer["result"].is_object()), "{answers:?}");
}

#[test]
fn events_are_told_on_request_before_the_answer() {
    let program = Program::new();
    let input = request(7, "run_shell", &harmless("echo hello; echo err >&2"));
    assert_eq!(run(&program, &input).len(), 1);
    let arguments = [&NO_QUESTION[..], &["run", "--events"]].concat();
    let lines = answers(&program.run_with(&arguments, &input));
    assert!(lines.iter().all(|line| line["id"] == 7));
    let (answer, events) = lines.split_last().unwrap();
    assert_eq!(answer["result"]["exit_code"], 0);
    let events: Vec<&Value> = events.iter().map(|line| &line["event"]).collect();
    assert_eq!(*events[0], json!({ "type": "started", "detail": "echo hello; echo err >&2" }));
    assert!(events.contains(&&json!({ "type": "stdout", "text": "hello\n" })), "{events:?}");
    assert_eq!(**events.last().unwrap(), json!({ "type": "completed", "outcome": "ok" }));
}

#[test]
fn a_call_is_cancelled_by_its_id() {
    let program = Program::new().unconfined();
    // The answer waits for the command's end, also on a loaded machine.
    let mut running = start(&program, &["--set", "limits.grace_ms=20000"]);
    running.write(request(json!(["a", 1]), "run_shell", &harmless("echo $$ > pid; touch ready; sleep 1000")));
    eventually("the call runs", || program.path("work/ready").exists());
    running.write(cancel(2, json!(["a", 1])));
    let answer = running.line();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(["a", 1]), &json!("cancelled")));
    let pid = std::fs::read_to_string(program.path("work/pid")).unwrap();
    assert!(!lives(&pid), "the command lives on");
    running.write(time(3));
    assert_eq!(running.line()["id"], 3);
}

#[test]
fn cancelling_what_does_not_run_is_a_failure_of_the_request() {
    let answers = run(&Program::new(), &cancel(1, "gone"));
    assert_eq!((&answers[0]["id"], error(&answers[0])), (&json!(1), "no call with the id `\"gone\"` is in flight"));
}

#[test]
fn an_id_that_is_in_flight_cannot_be_used_again_until_its_answer() {
    let program = Program::new();
    let mut running = start(&program, &[]);
    running.write(request(1, "run_shell", &until_go("a")));
    running.write(time(1));
    let refused = running.line();
    assert_eq!(error(&refused), "a call with the id `1` is in flight");
    program.write("work/a.go", "");
    assert_eq!(running.line()["result"]["stdout"], "a\n");
    running.write(time(1));
    assert_eq!(running.line()["result"]["source"], "harness");
}

#[test]
fn a_line_that_is_no_request_is_answered_without_an_id_and_with_its_column() {
    let program = Program::new();
    for (line, words) in [
        ("{nonsense", "column 2"),
        (r#"{"id": 1, "tool": time}"#, "column 20"),
        (r#"{"id": 1, "tool": "time""#, "column 24"),
        (r#""time""#, "column"),
        ("[]", "column"),
        (r#"{"tool": "time"}"#, "missing field `id`"),
        (r#"{"id": 1, "tool": 7}"#, "column"),
        (r#"{"id": 1, "tool": "time", "argument": {}}"#, "unknown field `argument`"),
    ] {
        let answers = run(&program, &format!("{line}\n{}", time("next")));
        assert_eq!((answers.len(), &answers[0]["id"], &answers[1]["id"]), (2, &Value::Null, &json!("next")), "{line}");
        assert_eq!(answers[0]["error"]["kind"], "invalid_arguments");
        assert!(error(&answers[0]).contains(words) && error(&answers[0]).contains("column"), "{}", error(&answers[0]));
        assert!(answers[0]["error"]["hint"].as_str().unwrap().contains("\"tool\": \"time\""));
        assert!(answers[1]["result"].is_object());
    }
}

#[test]
fn a_fault_in_a_line_is_told_in_the_words_of_the_interface() {
    for line in ["\"time\"", "7", "[]"] {
        let answers = run(&Program::new(), line);
        assert!(!error(&answers[0]).contains("struct Line"), "{}", error(&answers[0]));
    }
}

#[test]
fn a_line_that_is_not_text_is_refused_and_the_next_is_answered() {
    let program = Program::new();
    program.write("input", [b"{\"id\": \"\xff\", \"tool\": \"time\"}\n\0\n", time(2).as_bytes()].concat());
    let input = std::fs::File::open(program.path("input")).unwrap();
    let output = program.command(&["run"]).stdin(input).output().unwrap();
    let ids: Vec<Value> = answers(&output).into_iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [Value::Null, Value::Null, json!(2)]);
}

#[test]
fn a_line_without_tool_and_cancel_or_with_both_is_refused_by_its_id() {
    for line in [r#"{"id": 5}"#, r#"{"id": 5, "tool": "time", "cancel": 1}"#, r#"{"id": 5, "arguments": {}}"#] {
        let answers = run(&Program::new(), line);
        let told = "a line has either `tool` or `cancel`, or is about a session";
        assert_eq!((&answers[0]["id"], error(&answers[0])), (&json!(5), told));
    }
}

#[test]
fn an_over_long_line_is_refused_and_the_next_is_answered() {
    let input = request(1, "time", &json!({ "why": "x".repeat(5 * MIB) })) + &time(2);
    let answers = run(&Program::new(), &input);
    assert_eq!((&answers[0]["id"], error(&answers[0])), (&Value::Null, "a line is longer than 4194304 bytes"));
    assert_eq!((&answers[1]["id"], &answers[1]["result"]["source"]), (&json!(2), &json!("harness")));
}

#[test]
fn a_line_may_have_4_mib_and_no_byte_more() {
    let padded = |bytes: usize| {
        let line = r#"{"id": 1, "tool": "time"}"#;
        format!("{line}{}\n", " ".repeat(bytes - line.len()))
    };
    let program = Program::new();
    assert!(run(&program, &padded(4 * MIB))[0]["result"].is_object());
    assert_eq!(error(&run(&program, &padded(4 * MIB + 1))[0]), "a line is longer than 4194304 bytes");
    assert!(run(&program, padded(4 * MIB).trim_end_matches('\n'))[0]["result"].is_object());
}

#[test]
fn a_line_may_be_64_deep_and_no_deeper() {
    let line = |depth: usize| {
        let arguments = (2..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
        request(1, "time", &arguments)
    };
    let program = Program::new();
    assert_eq!(error(&run(&program, &line(64))[0]), "arguments of `time`: unknown argument `a`");
    let answers = run(&program, &(line(65) + &time(2)));
    assert_eq!((error(&answers[0]), &answers[1]["id"]), ("the line nests deeper than 64 levels", &json!(2)));
    let endless = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&run(&program, &endless)[0]).contains("recursion limit"));
}

/// A caller that waits for the answer to id 1 gets one.
#[test]
fn a_line_that_is_too_deep_is_refused_by_its_id() {
    let arguments = (0..70).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert_eq!(run(&Program::new(), &request(1, "time", &arguments))[0]["id"], 1);
}

#[test]
fn the_end_of_the_input_lets_running_calls_come_to_their_end() {
    let program = Program::new();
    let mut running = start(&program, &[]);
    for name in ["a", "b"] {
        running.write(request(name, "run_shell", &until_go(name)));
    }
    running.close();
    eventually("both run", || program.path("work/a").exists() && program.path("work/b").exists());
    for name in ["b", "a"] {
        program.write(&format!("work/{name}.go"), "");
        let answer = running.line();
        assert_eq!((&answer["id"], &answer["result"]["stdout"]), (&json!(name), &json!(format!("{name}\n"))));
    }
    assert_eq!(ended(&mut running), Some(0));
}

#[test]
fn a_last_line_without_a_line_break_counts() {
    assert_eq!(run(&Program::new(), time(1).trim_end())[0]["id"], 1);
}

#[test]
fn no_input_is_no_answer() {
    let output = Program::new().run(&["run"]);
    assert_eq!((code(&output), output.stdout.len(), stderr(&output)), (0, 0, String::new()));
}

#[test]
fn failed_calls_do_not_make_the_program_fail() {
    let output = Program::new().run_with(&["run"], &request(1, "nothing", &json!({})));
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

#[test]
fn a_reader_that_goes_ends_the_program_and_what_it_runs() {
    let program = Program::new().unconfined();
    let mut running = start(&program, &[]);
    running.write(request(1, "run_shell", &harmless("echo $$ > pid; touch ready; sleep 1000")));
    eventually("the call runs", || program.path("work/ready").exists());
    running.hang_up();
    // A child of another test, between its fork and its exec, may still hold the pipe when the first answer is written.
    let status = (0..100).find_map(|_| {
        running.write(time(2));
        running.ended(std::time::Duration::from_millis(100))
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    let pid = std::fs::read_to_string(program.path("work/pid")).unwrap();
    eventually("the command ends", || !lives(&pid));
}

#[test]
fn answers_that_cannot_be_written_make_the_program_fail() {
    let program = Program::new();
    program.write("input", time(1));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let input = std::fs::File::open(program.path("input")).unwrap();
    let output = program.command(&["run"]).stdin(input).stdout(full).output().unwrap();
    assert_eq!(code(&output), 1, "an answer was lost and nobody was told: {}", stderr(&output));
}

#[test]
fn two_hundred_calls_at_once_are_answered_each_once() {
    let program = Program::new();
    let input: String =
        (0..200).map(|id| request(id, "run_shell", &harmless(&format!("sleep 0.2; echo {id}")))).collect();
    let answers = run(&program, &input);
    let ids: BTreeSet<i64> = answers.iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    assert_eq!((answers.len(), ids.len()), (200, 200));
    for answer in answers {
        assert_eq!(answer["result"]["stdout"].as_str(), Some(format!("{}\n", answer["id"]).as_str()), "{answer}");
    }
}

#[test]
fn calls_over_the_bound_are_busy() {
    let program = Program::new();
    let mut running = start(&program, &["--set", "limits.concurrent_calls=1"]);
    running.write(request(1, "run_shell", &until_go("a")));
    eventually("the first call runs", || program.path("work/a").exists());
    running.write(time(2));
    let busy = running.line();
    assert_eq!((&busy["id"], &busy["error"]["kind"]), (&json!(2), &json!("busy")));
    program.write("work/a.go", "");
    assert_eq!(running.line()["id"], 1);
}

#[test]
fn without_a_terminal_commands_are_denied_and_the_rest_goes_on() {
    let program = Program::new();
    let input = request(1, "run_shell", &harmless("touch ran")) + &time(2);
    let mut answers = answers(&program.run_with(&["run"], &input));
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(answers[0]["error"]["kind"], "denied");
    assert!(answers[1]["result"].is_object() && !program.path("work/ran").exists());
}

#[test]
fn the_same_failing_line_is_run_twice_only() {
    let program = Program::new();
    let mut running = start(&program, &[]);
    let mut messages = Vec::new();
    for id in 0..9 {
        running.write(request(id, "read_file", &json!({ "path": "missing" })));
        messages.push(error(&running.line()).to_owned());
    }
    let again = messages.iter().filter(|message| message.starts_with("`read_file` was not run again: ")).count();
    assert_eq!(again, 7, "{messages:?}");
}

/// A new tool drops in while programs call.
#[test]
fn a_plugin_that_is_added_or_removed_is_there_or_not_at_the_next_call() {
    let program = Program::new();
    let client = RefCell::new(program.client(&["run"]));
    let kind = || client.borrow_mut().call("word_count", json!({ "text": "two words" }))["error"]["kind"].clone();
    assert_eq!(kind(), "unknown_tool");
    program.write("data/toolcrib/plugins/word_count.wasm", std::fs::read(guest("word_count")).expect("a guest"));
    eventually("it is there", || kind() != "unknown_tool");
    std::fs::remove_file(program.path("data/toolcrib/plugins/word_count.wasm")).expect("removed");
    eventually("it is gone", || kind() == "unknown_tool");
}
