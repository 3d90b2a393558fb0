//! `toolcrib call --from`: a model API's call in, the message that answers it out.

use super::golden::golden;
use serde_json::{Value, json};
use std::process::Output;
use toolcrib::call::Arguments;
use toolcrib::envelope::Kind;
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, TestHost, guest};

const NO_QUESTION: [&str; 2] = ["--set", "tools.shell_confirm=false"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Exit code, answer and stderr.
fn answered(output: &Output) -> (i32, Value, String) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let answer = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    (output.status.code().expect("an exit code"), answer, stderr)
}

fn call(program: &Program, format: &str, message: &Value) -> (i32, Value) {
    let output = program.run(&[&["call"], &NO_QUESTION[..], &["--from", format, &message.to_string()]].concat());
    let (code, answer, _) = answered(&output);
    (code, answer)
}

/// A call as OpenAI's responses have it.
fn function_call(tool: &str, arguments: &Value) -> Value {
    json!({ "type": "function_call", "call_id": "c", "name": tool, "arguments": arguments.to_string() })
}

/// The envelope in the answer to [`function_call`].
fn envelope(answer: &Value) -> Value {
    let text = answer["output"].as_str().unwrap_or_else(|| panic!("no text in {answer}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_format_answers_in_its_own_words() {
    let program = Program::new();
    for (format, id, place) in [
        ("openai-chat", ("/tool_call_id", "/role", json!("tool")), "/content"),
        ("openai-responses", ("/call_id", "/type", json!("function_call_output")), "/output"),
        ("anthropic", ("/tool_use_id", "/type", json!("tool_result")), "/content/0/text"),
        (
            "gemini",
            ("/functionResponse/id", "/functionResponse/name", json!("time")),
            "/functionResponse/response/output",
        ),
        ("mcp", ("/id", "/result/isError", json!(false)), "/result/content/0/text"),
    ] {
        let message = golden(&format!("calls-{format}"))[0].clone();
        let (code, answer) = call(&program, format, &message);
        let (own_id, key, expected) = id;
        assert_eq!((code, answer.pointer(key)), (0, Some(&expected)), "{answer}");
        let ids = ["/id", "/call_id", "/functionCall/id"].iter().filter_map(|place| message.pointer(place)).next_back();
        assert_eq!(answer.pointer(own_id), ids, "{answer}");
        let text = answer.pointer(place).and_then(Value::as_str).unwrap_or_else(|| panic!("no text in {answer}"));
        assert_eq!(text.lines().count(), 1);
        let read: Value = serde_json::from_str(text).expect("JSON");
        // Over MCP the envelope lies beside it.
        let result = if format == "mcp" { &read } else { &read["result"] };
        assert_eq!(result["formatted"], result["date_utc"], "{read}");
        assert!(result["formatted"].is_string(), "{read}");
    }
}

#[test]
fn a_failure_is_said_in_words_and_marked() {
    let program = Program::new();
    let words = "Tool error: there is no tool `tmie`\ndid you mean `time`?";
    for (format, message, expected) in [
        (
            "openai-chat",
            json!({ "id": "c", "type": "function", "function": { "name": "tmie", "arguments": "{}" } }),
            json!({ "role": "tool", "tool_call_id": "c", "content": words }),
        ),
        (
            "openai-responses",
            function_call("tmie", &json!({})),
            json!({ "type": "function_call_output", "call_id": "c", "output": words }),
        ),
        (
            "anthropic",
            json!({ "type": "tool_use", "id": "t", "name": "tmie", "input": {} }),
            json!({
                "type": "tool_result",
                "tool_use_id": "t",
                "content": [{ "type": "text", "text": words }],
                "is_error": true,
            }),
        ),
        (
            "gemini",
            json!({ "name": "tmie" }),
            json!({ "functionResponse": { "name": "tmie", "response": { "error": words } } }),
        ),
        (
            "mcp",
            json!({ "name": "tmie", "arguments": {} }),
            json!({ "content": [{ "type": "text", "text": words }], "isError": true }),
        ),
    ] {
        let output = program.run(&["call", "--from", format, &message.to_string()]);
        let (code, mut answer, stderr) = answered(&output);
        let beside = answer.as_object_mut().expect("an object").shift_remove("_meta");
        assert_eq!((answer, beside.is_some()), (expected, format == "mcp"));
        assert_eq!((code, stderr.as_str()), (3, "unknown_tool: there is no tool `tmie`\nhint: did you mean `time`?\n"));
    }
}

#[test]
fn the_output_of_a_command_that_took_too_long_is_told() {
    let mut arguments = harmless("echo so far; sleep 9");
    arguments["wait"] = "2s".into();
    let (code, answer) = call(&Program::new(), "openai-responses", &function_call("run_shell", &arguments));
    let output = answer["output"].as_str().expect("words");
    assert_eq!(code, 7, "{answer}");
    let data: Value = serde_json::from_str(output.lines().last().expect("lines")).expect("data as JSON");
    assert_eq!(data["stdout"], "so far\n", "{output}");
}

#[test]
fn mcp_keeps_the_id_and_answers_bare_calls_barely() {
    let program = Program::new();
    let request =
        |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "time" } });
    for id in [json!(7), json!("seven")] {
        let (code, answer) = call(&program, "mcp", &request(id.clone()));
        assert_eq!((code, &answer["jsonrpc"], &answer["id"]), (0, &json!("2.0"), &id));
        assert_eq!(answer["result"]["structuredContent"]["source"], "harness");
    }
    program.write("work/a.txt", "text");
    let (_, bare) = call(&program, "mcp", &json!({ "name": "read_file", "arguments": { "path": "a.txt" } }));
    assert_eq!((bare.get("jsonrpc"), bare.get("structuredContent"), &bare["isError"]), (None, None, &json!(false)));
    assert_eq!(bare["content"], json!([{ "type": "text", "text": "text" }]));
}

#[test]
fn a_call_comes_as_an_argument_or_on_stdin() {
    let program = Program::new();
    let message = golden("calls-anthropic")[0].to_string();
    for arguments in [&["call", "--from", "anthropic"][..], &["call", "--from", "anthropic", "-"]] {
        let (code, answer, _) = answered(&program.run_with(arguments, &message));
        assert_eq!((code, &answer["tool_use_id"]), (0, &json!("toolu_1")));
    }
}

#[test]
fn arguments_that_the_model_got_wrong_are_answered_to_the_model() {
    let program = Program::new();
    for arguments in ["{\"format\":", "[]", "{\"surprise\":1}"] {
        let message = json!({ "id": "c", "type": "function", "function": { "name": "time", "arguments": arguments } });
        let (code, answer) = call(&program, "openai-chat", &message);
        let content = answer["content"].as_str().expect("words");
        assert!(code == 4 && content.starts_with("Tool error: ") && content.lines().count() == 2, "{code}: {answer}");
    }
}

#[test]
fn a_message_that_is_no_call_is_a_fault_of_the_command_line() {
    let program = Program::new();
    let bad = |format: &str, message: &str| {
        let output = program.run(&["call", "--from", format, message]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{format}: {message}");
        text(&output.stderr)
    };
    let example = r#"{"type":"tool_use","id":"toolu_1","name":"time","input":{}}"#;
    let stderr = bad("anthropic", "time");
    assert!(stderr.starts_with("usage: the message is not JSON: "), "{stderr}");
    assert!(stderr.ends_with(&format!("hint: give a call as `anthropic` has it: {example}\n")), "{stderr}");
    let stderr = bad("openai-chat", example);
    assert_eq!(stderr, "usage: the message is not a tool call of `openai-chat`\nhint: it is one of `anthropic`\n");
    for (format, message) in [
        ("openai-chat", r#"{"type":"function","function":{"name":"time","arguments":"{}"}}"#),
        ("openai-chat", r#"{"id":"c","type":"custom","custom":{"name":"time","input":"x"}}"#),
        ("openai-chat", r#"{"id":"c","type":"function","function":{"arguments":"{}"}}"#),
        ("openai-responses", r#"{"type":"function_call","call_id":"c","name":"time"}"#),
        ("openai-responses", r#"{"type":"function_call","call_id":"c","name":"time","arguments":7}"#),
        ("anthropic", r#"{"type":"tool_use","id":"t","name":"time","input":"{}"}"#),
        ("gemini", r#"{"functionCall":{"name":"time","args":"{}"}}"#),
        ("gemini", r#"{"functionCall":{"name":"time","partialArgs":[],"willContinue":true}}"#),
        ("mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
        ("mcp", r#"{"name":"time","arguments":[]}"#),
        ("mcp", "[]"),
        ("gemini", "null"),
    ] {
        let stderr = bad(format, message);
        assert!(
            stderr.starts_with(&format!("usage: the message is not a tool call of `{format}`\nhint: ")),
            "{stderr}"
        );
    }
}

#[test]
fn a_tool_is_not_named_twice() {
    let program = Program::new();
    let output = program.run(&["call", "--from", "mcp", "time", "format=date"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "usage: `--from` takes one message\nhint: the calls in it name the tools: omit TOOL and KEY=VALUE\n";
    assert_eq!(text(&output.stderr), expected);
    let output = program.run(&["call"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--from <FORMAT> [JSON|-]"), "{}", text(&output.stderr));
}

/// `types.Part.model_dump()` of Google's own SDK writes every field, in snake case.
fn dumped(id: Option<&str>, args: &Value) -> Value {
    let call = json!({ "id": id, "args": args, "name": "time", "partial_args": null, "will_continue": null });
    json!({ "media_resolution": null, "code_execution_result": null, "file_data": null, "function_call": call, "text": null })
}

#[test]
fn calls_of_gemini_are_taken_as_googles_own_sdk_dumps_them() {
    let program = Program::new();
    for (message, id) in [
        (dumped(Some("c"), &json!({})), json!("c")),
        (dumped(None, &Value::Null), Value::Null),
        (dumped(Some("c"), &json!({}))["function_call"].clone(), json!("c")),
        (json!({ "functionCall": { "name": "time", "args": {}, "id": null, "willContinue": null } }), Value::Null),
    ] {
        let (code, answer) = call(&program, "gemini", &message);
        assert_eq!((code, &answer["functionResponse"]["id"]), (0, &id), "{message}: {answer}");
        assert!(answer["functionResponse"]["response"]["output"].is_string(), "{answer}");
    }
    let streamed = json!({ "function_call": { "name": "time", "args": null, "will_continue": true } });
    assert_eq!(program.run(&["call", "--from", "gemini", &streamed.to_string()]).status.code(), Some(2));
}

#[test]
fn all_calls_of_a_message_are_answered_in_their_order() {
    let program = Program::new();
    let text = json!({ "text": "I look twice.", "function_call": null });
    let content = json!({ "role": "model", "parts": [text, dumped(Some("a"), &json!({})), dumped(Some("b"), &json!({ "x": 1 }))] });
    let (code, answer) = call(&program, "gemini", &content);
    let said = |at: usize, field: &str| answer[at]["functionResponse"]["response"][field].is_string();
    assert_eq!((code, answer.as_array().map(Vec::len)), (4, Some(2)), "the first failure is the exit code: {answer}");
    assert!(said(0, "output") && said(1, "error"), "{answer}");
    for (format, message, place, ids) in [
        (
            "gemini",
            json!([{ "name": "time", "id": "a" }, { "name": "time", "id": "b" }]),
            "/functionResponse/id",
            ["a", "b"],
        ),
        (
            "anthropic",
            json!({ "role": "assistant", "content": [
                { "type": "text", "text": "Now." },
                { "type": "tool_use", "id": "a", "name": "time", "input": {} },
                { "type": "tool_use", "id": "b", "name": "time", "input": {} },
            ] }),
            "/tool_use_id",
            ["a", "b"],
        ),
        (
            "openai-chat",
            json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "time", "arguments": "{}" } },
            ] }),
            "/tool_call_id",
            ["a", ""],
        ),
        (
            "openai-responses",
            json!({ "output": [{ "type": "reasoning", "id": "r" }, function_call("time", &json!({}))] }),
            "/call_id",
            ["c", ""],
        ),
    ] {
        let (code, answers) = call(&program, format, &message);
        let answers = answers.as_array().unwrap_or_else(|| panic!("{format}: {answers}")).clone();
        let answered: Vec<&str> = answers.iter().filter_map(|answer| answer.pointer(place)?.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().filter(|id| !id.is_empty()).collect();
        assert_eq!((code, answered), (0, ids), "{format}: {answers:?}");
    }
    let half = json!([{ "name": "time" }, { "name": "time", "args": "{" }]);
    assert_eq!(
        program.run(&["call", "--from", "gemini", &half.to_string()]).status.code(),
        Some(2),
        "none is left unanswered"
    );
}

/// The arguments as a strict model writes them: `null` for all that was left away.
fn all_required(tool: &Value, arguments: &Value) -> Value {
    let required = tool["parameters"]["required"].as_array().expect("required arguments").iter();
    required.map(|name| name.as_str().expect("a name")).map(|name| (name.to_owned(), arguments[name].clone())).collect()
}

fn strict_tools(program: &Program) -> Vec<Value> {
    let output = program.run(&["tools", "--format", "openai-responses", "--strict", "on"]);
    let tools: Value = serde_json::from_slice(&output.stdout).expect("definitions");
    tools.as_array().expect("a list").clone()
}

#[test]
fn null_for_every_optional_argument_does_what_leaving_them_away_does() {
    let program = Program::new();
    program.write("work/a.txt", "text");
    for (name, arguments, place, expected) in [
        ("time", json!({}), "/result/source", json!("harness")),
        ("read_file", json!({ "path": "a.txt" }), "/result", json!("text")),
        ("run_shell", harmless("echo ran"), "/result/stdout", json!("ran\n")),
    ] {
        let tool = strict_tools(&program).into_iter().find(|tool| tool["name"] == name).expect("a tool");
        let written = all_required(&tool, &arguments);
        assert!(written.to_string().contains(":null"), "{name} has optional arguments: {written}");
        assert!(jsonschema::draft202012::is_valid(&tool["parameters"], &written), "{written}");
        let (code, answer) = call(&program, "openai-responses", &function_call(name, &written));
        assert_eq!((code, envelope(&answer).pointer(place)), (0, Some(&expected)), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_built_in_tool_refuses_a_null_for_an_optional_argument() {
    // What is switched off is refused after the arguments were taken, so nothing happens.
    let host = TestHost::new().set("tools.shell_enabled=false").set("tools.files_enabled=false");
    for tool in strict_tools(&Program::new()) {
        let name = tool["name"].as_str().expect("a name");
        let description = tool["description"].as_str().expect("a description");
        let example = description.lines().find_map(|line| serde_json::from_str(line.strip_prefix("- ")?).ok());
        let written = all_required(&tool, &example.unwrap_or_else(|| panic!("{name} has an example")));
        let outcome = host.send(name, Arguments::Json(written.clone())).await.outcome;
        let kind = outcome.err().map(|failure| failure.kind);
        assert_ne!(kind, Some(Kind::InvalidArguments), "{name} and {written}");
    }
}

#[test]
fn a_third_party_tool_takes_null_for_what_has_a_default() {
    // A plugin that can use panes is offered where there are some.
    let program = Program::with_panes();
    program
        .write("data/toolcrib/plugins/hostile.wasm", std::fs::read(guest("hostile")).expect("a guest that was built"));
    let file = program.path("data/toolcrib/plugins/hostile.wasm").display().to_string();
    let allowed = program.run(&["plugin", "allow", &file, "--pane", "--read", ".", "--write", "."]);
    assert_eq!(allowed.status.code(), Some(0), "{}", text(&allowed.stderr));
    let tool = strict_tools(&program).into_iter().find(|tool| tool["name"] == "hostile").expect("a tool");
    let written = all_required(&tool, &json!({ "how": "notice" }));
    assert_eq!(written, json!({ "how": "notice", "text": null, "number": null }));
    let (code, answer) = call(&program, "openai-responses", &function_call("hostile", &written));
    assert_eq!(code, 0, "{answer}");
}
