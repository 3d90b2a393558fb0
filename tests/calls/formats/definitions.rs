//! `toolcrib tools --format`: what model APIs are told, and what they are not.

use super::golden::assert_golden;
use serde_json::{Value, json};
use std::process::Output;
use toolcrib_tests::forge::Forged;
use toolcrib_tests::{Program, guest};

const APIS: [&str; 5] = ["mcp", "openai-chat", "openai-responses", "anthropic", "gemini"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// What is printed on stdout, as JSON, and on stderr.
fn printed(output: &Output) -> (Value, String) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    (serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}")), stderr)
}

fn tools(program: &Program, arguments: &[&str]) -> (Value, String) {
    printed(&program.run(&[&["tools", "--format"], arguments].concat()))
}

/// The tools of a list, in whichever place the API has them.
fn entries(list: &Value) -> Vec<Value> {
    let list = list.get("tools").or_else(|| list.get("functionDeclarations")).unwrap_or(list);
    list.as_array().expect("a list").iter().map(|tool| tool.get("function").unwrap_or(tool).clone()).collect()
}

fn entry(list: &Value, name: &str) -> Value {
    entries(list).into_iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// Puts a guest into the plugin directory; returns its path.
fn install(program: &Program, name: &str) -> String {
    let file = format!("data/toolcrib/plugins/{name}.wasm");
    program.write(&file, std::fs::read(guest(name)).expect("a guest that was built"));
    program.path(&file).display().to_string()
}

#[test]
fn definitions_are_the_goldens_byte_for_byte() {
    let program = Program::new();
    for (golden, arguments) in [
        ("mcp", &["mcp"][..]),
        ("openai-chat", &["openai-chat"]),
        ("openai-chat-strict-off", &["openai-chat", "--strict", "off"]),
        ("openai-responses", &["openai-responses"]),
        ("anthropic", &["anthropic"]),
        ("anthropic-strict-on", &["anthropic", "--strict", "on"]),
        ("gemini", &["gemini"]),
    ] {
        let output = program.run(&[&["tools", "--format"], arguments].concat());
        let (list, _) = printed(&output);
        assert_eq!(text(&output.stdout), format!("{list}\n"), "one line, nothing else");
        assert_golden(golden, &list);
    }
}

#[test]
fn the_same_tools_give_the_same_bytes_in_another_home() {
    let (one, other) = (Program::new(), Program::new());
    for api in APIS {
        let print = |program: &Program| program.run(&["tools", "--format", api]).stdout;
        assert_eq!(print(&one), print(&other), "{api}");
    }
}

#[test]
fn tools_stand_by_name_and_each_alone_as_in_the_list() {
    let program = Program::new();
    for api in APIS {
        let (list, _) = tools(&program, &[api]);
        let names: Vec<String> = entries(&list).iter().map(|tool| tool["name"].to_string()).collect();
        assert!(names.is_sorted() && names.len() >= 4, "{names:?}");
        assert_eq!(entries(&tools(&program, &[api, "time"]).0), [entry(&list, "time")]);
    }
}

#[test]
fn every_schema_is_one_and_stands_alone() {
    let program = Program::new();
    for (api, key) in
        APIS.into_iter().zip(["inputSchema", "parameters", "parameters", "input_schema", "parametersJsonSchema"])
    {
        for tool in entries(&tools(&program, &[api]).0) {
            let schema = &tool[key];
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(jsonschema::draft202012::meta::is_valid(schema), "{schema}");
            assert!(
                !["\"$ref\"", "\"$defs\"", "\"$schema\"", "\"$id\""]
                    .iter()
                    .any(|word| schema.to_string().contains(word))
            );
        }
    }
}

#[test]
fn a_tool_that_policy_denies_is_left_away_and_named() {
    let program = Program::new();
    let file = install(&program, "word_count");
    let (list, stderr) = tools(&program, &["anthropic", "--set", "tools.shell_enabled=false"]);
    let names: Vec<Value> = entries(&list).into_iter().map(|tool| tool["name"].clone()).collect();
    assert!(!names.contains(&json!("word_count")) && !names.contains(&json!("run_shell")), "{names:?}");
    let line = format!(
        "notice: `word_count` is omitted: `word_count` needs `files`, which the policy does not grant \
         (allow it: `toolcrib plugin allow {file} --read DIR`)\n"
    );
    assert!(stderr.contains(&line) && stderr.contains("notice: `run_shell` is omitted: "), "{stderr}");
    let output = program.run(&["tools", "word_count", "--format", "gemini"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(5), 0));
    assert!(text(&output.stderr).starts_with("denied: `word_count` needs `files`"));
}

#[test]
fn without_a_tool_nothing_is_printed_with_a_notice() {
    let program = Program::new();
    // No name for Gemini, which is how a list without tools comes about.
    program.write("data/toolcrib/plugins/7zip.wasm", Forged::new("7zip").bytes());
    let output = program.run(&["tools", "7zip", "--format", "gemini"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()));
    let notice = "notice: no tool can be called: omit the list of tools from the request\n";
    assert!(text(&output.stderr).ends_with(notice), "{}", text(&output.stderr));
}

#[test]
fn annotations_come_from_imports_and_grants() {
    let program = Program::new();
    let hints = |program: &Program, name: &str| entry(&tools(program, &["mcp"]).0, name)["annotations"].clone();
    let reads = json!({ "readOnlyHint": true, "openWorldHint": false });
    let writes = json!({ "readOnlyHint": false, "openWorldHint": false });
    assert_eq!(hints(&program, "time"), reads);
    assert_eq!(hints(&program, "read_file"), reads);
    assert_eq!(hints(&program, "write_file"), writes);
    assert_eq!(hints(&program, "run_shell"), json!({ "readOnlyHint": false, "openWorldHint": true }));

    // What the code of a third party shows is its own claim: the grant decides.
    let file = install(&program, "word_count");
    let allow = |rights: &[&str]| {
        let output = program.run(&[&["plugin", "allow", &file], rights].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    allow(&["--read", "/tmp"]);
    assert_eq!(hints(&program, "word_count"), reads);
    allow(&["--read", "/tmp", "--write", "/tmp"]);
    assert_eq!(hints(&program, "word_count"), writes);
}

#[test]
fn mcp_has_output_schemas_of_data_alone() {
    let (list, stderr) = tools(&Program::new(), &["mcp"]);
    assert_eq!(entry(&list, "time")["outputSchema"]["type"], "object");
    // The one is text, the other the output of a command: nothing is lost by that.
    for name in ["read_file", "run_shell"] {
        assert_eq!(entry(&list, name).get("outputSchema"), None, "{name}");
    }
    assert!(!stderr.contains("its output schema is dropped"), "{stderr}");
}

#[test]
fn strict_is_for_apis_that_have_it() {
    let program = Program::new();
    for (arguments, message, hint) in [
        (&["--format", "mcp", "--strict", "on"][..], "`mcp` has no strict mode", "omit `--strict`"),
        (&["--format", "gemini", "--strict", "on"], "`gemini` has no strict mode", "omit `--strict`"),
        (&["--strict", "on"], "`--strict` is for the format of a model API", "add `--format openai-chat` or another"),
    ] {
        let output = program.run(&[&["tools"], arguments].concat());
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{arguments:?}");
        assert_eq!(text(&output.stderr), format!("usage: {message}\nhint: {hint}\n"));
    }
}

#[test]
fn openai_gets_every_built_in_tool_strict() {
    let program = Program::new();
    for strict in ["auto", "on", "off"] {
        let (list, _) = tools(&program, &["openai-responses", "--strict", strict]);
        let names = |value: &Value| value.as_object().expect("properties").keys().cloned().collect::<Value>();
        let requires_all = |tool: &Value| tool["parameters"]["required"] == names(&tool["parameters"]["properties"]);
        assert_eq!(entries(&list).iter().all(requires_all), strict != "off", "{list}");
        for tool in entries(&list) {
            assert_eq!(tool["strict"], strict != "off", "{tool}");
        }
    }
}

#[test]
fn anthropic_is_strict_when_asked() {
    let program = Program::new();
    assert_eq!(tools(&program, &["anthropic", "--strict", "auto"]), tools(&program, &["anthropic"]));
    assert!(entries(&tools(&program, &["anthropic"]).0).iter().all(|tool| tool.get("strict").is_none()));
    let (list, stderr) = tools(&program, &["anthropic", "--strict", "on", "read_file"]);
    let tool = entry(&list, "read_file");
    assert_eq!((&tool["strict"], &tool["input_schema"]["required"]), (&json!(true), &json!(["path"])));
    let offset = tool["input_schema"]["properties"]["offset"]["description"].as_str().expect("a description");
    assert!(offset.ends_with("\n\n{minimum: 0}"), "{offset}");
    assert_eq!(stderr, "notice: `read_file`: /properties/offset: a strict mode cannot enforce `minimum`\n");
}
