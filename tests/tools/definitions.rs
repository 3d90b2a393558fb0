//! What every tool says of itself and keeps: schemas, guidance, limits, and a module of tests.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolcrib::call::Arguments;
use toolcrib::config::Config;
use toolcrib::envelope::Kind;
use toolcrib::tools::definition::composition;
use toolcrib::tools::provider::Component;
use toolcrib_builtins::{BUILTINS, Builtin, SOURCES};
use toolcrib_tests::{Program, TestHost, plugin_source};

const GUESTS: [&str; 2] = ["shell_echo", "word_count"];
/// Plugins whose tests are in `tests/panes`.
const PANES: [&str; 7] = [
    "capture_pane",
    "command_output",
    "send_keys",
    "tmux_create_pane",
    "tmux_create_session",
    "tmux_kill_pane",
    "tmux_kill_session",
];
const DECLARATION: [&str; 4] = ["risk", "mutation", "privesc", "why"];
const HEADINGS: [&str; 4] = ["When to use:", "When NOT to use:", "Disambiguation:", "Examples:"];

/// What `toolcrib tools` says of the tools in this binary.
fn builtins() -> Vec<Value> {
    let output = Program::with_panes().run(&["tools", "--format", "json"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a list of tools")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value} is no text"))
}

fn names(schema: &Value, key: &str) -> BTreeSet<String> {
    let required = schema[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    required
        .chain(schema[key].as_object().into_iter().flatten().map(|(name, _)| name.as_str()))
        .map(str::to_owned)
        .collect()
}

/// The text below a heading, up to the next one.
fn section<'t>(description: &'t str, heading: &str) -> &'t str {
    let (_, text) = description.split_once(heading).unwrap_or_else(|| panic!("no `{heading}` in {description}"));
    let end = HEADINGS.iter().chain(&["## Usage"]).filter_map(|next| text.find(next)).min();
    text[..end.unwrap_or(text.len())].trim()
}

fn examples(tool: &Value) -> Vec<Value> {
    let lines = section(text(tool, "description"), "Examples:").lines();
    lines
        .map(|line| {
            let example = line.strip_prefix("- ").unwrap_or_else(|| panic!("`{line}` is no item"));
            serde_json::from_str(example).unwrap_or_else(|error| panic!("`{example}`: {error}"))
        })
        .collect()
}

fn depth(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn directories(of: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(of);
    let entries = std::fs::read_dir(path).expect("a directory of crates").map(|entry| entry.expect("an entry").path());
    let names = entries.filter(|path| path.is_dir()).map(|path| path.file_name().expect("a name").to_owned());
    names.map(|name| name.into_string().expect("a name in UTF-8")).collect()
}

#[test]
fn the_tools_their_arguments_and_capabilities() {
    let line = |tool: &Value| {
        let required = names(&tool["inputSchema"], "required");
        let arguments: Vec<String> = names(&tool["inputSchema"], "properties")
            .into_iter()
            .map(|name| if required.contains(&name) { name } else { format!("{name}?") })
            .collect();
        let needs: Vec<&str> =
            tool["plugin"]["capabilities"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("{}({}) needs [{}]", text(tool, "name"), arguments.join(", "), needs.join(", "))
    };
    let lines: Vec<String> = builtins().iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    capture-pane(delay?, delay_ms?, end?, escape_non_printable?, include_alternate_screen?, include_escape_sequences?, join_wrapped_lines?, pane?, preserve_trailing_spaces?, session?, start?, target?) needs [panes]
    fetch_url(as?, offset?, url) needs [http]
    file_edit(edits?, encoding?, expected_revision?, new_string?, old_string?, path, replace_all?) needs [files]
    file_list(path?) needs [files]
    file_search(context?, glob?, hidden?, ignore_case?, limit?, literal?, no_ignore?, offset?, path?, pattern, type?) needs [files]
    file_find(hidden?, limit?, no_ignore?, offset?, path?, pattern?, type?) needs [files]
    read_file(encoding?, offset?, path) needs [files]
    run_shell(command, mutation, pane?, privesc, risk, session?, wait?, why) needs [shell]
    send-keys(delay?, delay_ms?, enter?, keys?, literal_text?, mutation, pane?, privesc, risk, session?, target?, why) needs [panes]
    time(format?) needs []
    tmux-create-pane(mutation, pane, privesc, risk, session?, why) needs [pane-sessions]
    tmux-create-session(mutation, privesc, risk, session, why) needs [pane-sessions]
    tmux-kill-pane(mutation, pane, privesc, risk, session?, why) needs [pane-sessions]
    tmux-kill-session(mutation, privesc, risk, session, why) needs [pane-sessions]
    web_search(query) needs [http]
    write_file(content, encoding?, line_endings?, path) needs [files]
    ");
}

#[test]
fn every_crate_below_plugins_is_built_in_and_nothing_else() {
    let built_in: BTreeSet<String> = BUILTINS.iter().map(|builtin| builtin.name.to_owned()).collect();
    assert_eq!(directories("../plugins"), built_in);
    let registry = plugin_source(BUILTINS, &[], &[]).load();
    assert!(registry.refused().is_empty(), "{:?}", registry.refused());
}

/// So that none has to be compiled to be listed. `TOOLCRIB_UPDATE=1` writes it anew; what is built after that has it.
#[test]
fn each_family_of_the_settings_is_one_of_plugins() {
    let said: BTreeSet<&str> = BUILTINS.iter().filter_map(|builtin| builtin.family).collect();
    assert_eq!(said, config::FAMILIES.into_iter().collect());
}

#[tokio::test]
async fn what_is_written_of_built_in_tools_is_what_they_say() {
    let is_update = std::env::var_os("TOOLCRIB_UPDATE").is_some();
    let (test, files) = (TestHost::new(), tempfile::tempdir().expect("a directory"));
    let (host, context) = test.parts();
    for (Builtin { name, bytes, definitions: built, .. }, (_, sources)) in BUILTINS.iter().zip(SOURCES) {
        let file = files.path().join(format!("{name}.wasm"));
        std::fs::write(&file, bytes).expect("a component");
        // A file has to be asked.
        let open = || Component::open(&file, &Config::default().limits).expect("a component");
        let tools = host.tools_of_component(open(), context).await.expect("it says what it offers");
        let tools: Vec<_> = tools.iter().map(|tool| tool.definition()).collect();
        let limits = Config::default().limits;
        let checked = json!({
            "schema_kib": limits.schema_kib, "schema_depth": limits.schema_depth, "description_bytes": limits.description_bytes,
        });
        let text = json!({ "sources": sources, "checked": checked, "tools": tools });
        let text = serde_json::to_string_pretty(&text).expect("JSON") + "\n";
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../plugins/{name}/definitions.json"));
        if is_update {
            std::fs::write(place, text).expect("a file");
            continue;
        }
        let how = format!("{name}: run this test with TOOLCRIB_UPDATE=1");
        assert_eq!(std::fs::read_to_string(place).unwrap_or_default(), text, "{how}");
        assert_eq!(*built, text, "{how}, and build");
        // Policies and statements name a plugin's definitions by this digest.
        let registry = plugin_source(BUILTINS, &[], &[]).load();
        let plugin = registry.plugins().chain(registry.barred()).find(|plugin| plugin.name() == *name).cloned();
        if let Some(plugin) = plugin.filter(|plugin| registry.plugins().any(|other| other.id == plugin.id)) {
            let context = context.clone().tools(Arc::new(registry));
            let ready = host.ready(&plugin, &context).await.expect("it is ready");
            let asked = host.definitions_of(open(), &context).await.expect("it says what it offers");
            assert_eq!(ready.definitions(), asked, "{name}");
        }
    }
}

#[test]
fn every_plugin_and_guest_tool_has_a_module_of_tests() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools");
    let list = std::fs::read_to_string(tests.join("main.rs")).expect("the list of modules");
    for name in directories("../plugins").into_iter().chain(GUESTS.map(str::to_owned)) {
        // The tools of panes are tested together, in `tests/panes`.
        if PANES.contains(&name.as_str()) {
            continue;
        }
        assert!(
            list.lines().any(|line| line == format!("mod {name};")),
            "`mod {name};` is missing in tests/tools/main.rs"
        );
        let tests = std::fs::read_to_string(tests.join(format!("{name}.rs"))).unwrap_or_default();
        assert!(tests.contains("::test"), "tests/tools/{name}.rs tests nothing");
    }
}

#[test]
fn every_tool_says_when_to_choose_it() {
    for tool in builtins() {
        let (name, description) = (text(&tool, "name"), text(&tool, "description"));
        let places: Vec<_> = HEADINGS.iter().map(|heading| description.find(&format!("\n{heading}"))).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{name}: {description}");
        for heading in HEADINGS {
            assert!(section(description, heading).len() > 1, "{name}: nothing stands under `{heading}`");
        }
        let summary = description.lines().next().unwrap_or_default();
        assert!(summary.ends_with('.') && summary.len() < 160, "{name}: {summary}");
    }
}

#[test]
fn every_example_is_a_call_that_the_tool_takes() {
    for tool in builtins() {
        let schema = jsonschema::draft202012::new(&tool["inputSchema"]).expect("a schema");
        let examples = examples(&tool);
        assert!(!examples.is_empty(), "{} has no example", tool["name"]);
        for example in examples {
            let faults: Vec<String> = schema.iter_errors(&example).map(|fault| fault.to_string()).collect();
            assert!(faults.is_empty(), "{} does not take {example}: {faults:?}", tool["name"]);
        }
    }
}

/// Arguments whose names are the words of others; their form is that of all, but where a number is not seconds.
const TIMES_OF_OTHERS: [(&str, &str, &str); 6] = [
    ("capture-pane", "delay_ms", "an older form of `delay` that agents of panes know; milliseconds"),
    ("send-keys", "delay_ms", "an older form of `delay` that agents of panes know; milliseconds"),
    ("cron", "interval_secs", "Spacebot's name"),
    ("cron", "timeout_secs", "Spacebot's name"),
    ("exec", "timeout_seconds", "Spacebot's name"),
    ("shell", "timeout_seconds", "Spacebot's name"),
];
/// Names of times that a model gives.
const TIMES: [&str; 3] = ["delay", "timeout", "wait"];

/// The types that a schema accepts, sorted.
fn types(schema: &Value) -> BTreeSet<&str> {
    let own = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect::<BTreeSet<_>>(),
    };
    own.into_iter().chain(schema["anyOf"].as_array().into_iter().flatten().flat_map(types)).collect()
}

/// Seconds, or text such as `30s`, whatever the tool.
#[test]
fn every_time_among_the_arguments_has_one_form() {
    let (mut seen, mut of_others) = (0, Vec::new());
    for Builtin { definitions, .. } in BUILTINS {
        let said: Value = serde_json::from_str(definitions).expect("what a plugin says of its tools");
        for tool in said["tools"].as_array().expect("tools") {
            let properties = tool["input_schema"]["properties"].as_object().into_iter().flatten();
            for (argument, schema) in properties {
                let has_unit = argument.split('_').any(|part| ["ms", "secs", "seconds", "minutes"].contains(&part));
                if !has_unit && !TIMES.contains(&argument.as_str()) {
                    continue;
                }
                seen += 1;
                let name = text(tool, "name");
                let place = format!("`{argument}` of {name}");
                let other =
                    TIMES_OF_OTHERS.iter().find(|(tool, other, _)| (*tool, *other) == (name, argument.as_str()));
                assert_eq!(other.is_some(), has_unit, "{place}: a time says no unit in its name");
                of_others.extend(other.map(|(tool, argument, _)| (*tool, *argument)));
                let mut types = types(schema);
                types.retain(|name| !["null", "boolean"].contains(name));
                let is_in_ms = argument.ends_with("_ms");
                let expected =
                    if is_in_ms { BTreeSet::from(["integer"]) } else { BTreeSet::from(["integer", "string"]) };
                assert_eq!(types, expected, "{place}: use `duration::Span`");
            }
        }
    }
    of_others.sort_unstable();
    let mut expected = TIMES_OF_OTHERS.map(|(tool, argument, _)| (tool, argument));
    expected.sort_unstable();
    assert_eq!(of_others, expected);
    assert!(seen > of_others.len(), "{seen}");
}

#[test]
fn every_schema_is_json_schema_2020_12() {
    for tool in builtins() {
        for key in ["inputSchema", "outputSchema"] {
            let fault = jsonschema::draft202012::meta::validate(&tool[key]).err().map(|fault| fault.to_string());
            assert_eq!(fault, None, "{key} of {}", tool["name"]);
        }
    }
}

#[test]
fn every_input_schema_is_a_closed_object_with_described_arguments() {
    for tool in builtins() {
        let (name, schema) = (text(&tool, "name"), &tool["inputSchema"]);
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        for (argument, property) in schema["properties"].as_object().expect("properties") {
            assert!(!text(property, "description").is_empty(), "`{argument}` of {name} is not described");
        }
    }
}

#[test]
fn only_tools_that_run_or_type_ask_for_a_declaration() {
    for tool in builtins() {
        let required = names(&tool["inputSchema"], "required");
        let declared = DECLARATION.iter().filter(|name| required.contains(**name)).count();
        let runs_or_types = ["run_shell", "send-keys"];
        let name = text(&tool, "name");
        let asks = runs_or_types.contains(&name) || name.starts_with("tmux-");
        assert_eq!(declared, if asks { DECLARATION.len() } else { 0 }, "{}", tool["name"]);
    }
}

#[test]
fn every_definition_fits_the_limits() {
    let limits = Config::default().limits;
    for tool in builtins() {
        let name = text(&tool, "name");
        assert!((1..=64).contains(&name.len()), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{name}");
        assert!(text(&tool, "description").len() as u64 <= limits.description_bytes, "{name}");
        for key in ["inputSchema", "outputSchema"] {
            assert!(tool[key].to_string().len() as u64 <= limits.schema_kib << 10, "{key} of {name}");
            assert!(depth(&tool[key]) <= limits.schema_depth, "{key} of {name}");
        }
    }
}

/// Clients leave out a tool whose arguments are put together at the top, and model APIs refuse the request that has it.
#[test]
fn the_arguments_of_built_in_tools_are_plain_at_the_top() {
    for Builtin { name, definitions, .. } in BUILTINS {
        let said: Value = serde_json::from_str(definitions).expect("JSON");
        for tool in said["tools"].as_array().expect("tools") {
            assert_eq!(composition(&tool["input_schema"]), Vec::<&str>::new(), "{name}: {}", tool["name"]);
            assert!(tool["input_schema"]["$ref"].is_null(), "{name}: {}", tool["name"]);
        }
    }
}

#[test]
fn a_guest_describes_itself_as_a_built_in_tool_does() {
    let program = Program::new();
    for guest in GUESTS {
        let path: PathBuf = toolcrib_tests::guest(guest);
        program.write(
            &format!("data/toolcrib/plugins/{guest}.wasm"),
            std::fs::read(path).expect("a guest that was built"),
        );
    }
    let output = program.run(&["tools", "--format", "json"]);
    let tools: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list of tools");
    for guest in GUESTS {
        let tool = tools.iter().find(|tool| tool["name"] == guest).unwrap_or_else(|| panic!("no {guest}"));
        assert_eq!((&tool["plugin"]["builtin"], &tool["available"]), (&json!(false), &json!(false)), "{guest}");
        for example in examples(tool) {
            assert!(jsonschema::draft202012::is_valid(&tool["inputSchema"], &example), "{guest}: {example}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_no_object_are_refused_by_every_tool() {
    let host = GUESTS.into_iter().fold(TestHost::new(), TestHost::plugin);
    let tools = builtins();
    for tool in tools.iter().map(|tool| text(tool, "name")).chain(GUESTS) {
        for arguments in ["not json", "", "null", "7", "[]", "[{}]", "\"{\\\"path\\\"", "{", "{}}", "{\"a\":1,}"] {
            let failure = host.send(tool, Arguments::Text(arguments.into())).await.outcome.expect_err("no object");
            assert_eq!(failure.kind, Kind::InvalidArguments, "`{tool}` and `{arguments}`: {}", failure.message);
            assert!(failure.hint.is_some_and(|hint| hint.contains("JSON object")), "`{tool}` and `{arguments}`");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_in_a_string_is_the_object() {
    let text = Value::String(json!({ "format": "date" }).to_string());
    let envelope = TestHost::new().send("time", Arguments::Json(text)).await;
    let now = envelope.outcome.expect("a result").result;
    assert_eq!(now["formatted"], now["date_utc"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_argument_is_named_by_every_tool() {
    let host = TestHost::new();
    for tool in builtins() {
        let name = text(&tool, "name");
        let mut arguments = examples(&tool)[0].clone();
        arguments["surprise"] = json!(true);
        let failure = host.failure(name, arguments).await;
        assert_eq!(failure.kind, Kind::InvalidArguments, "{name}: {}", failure.message);
        assert_eq!(failure.message, format!("arguments of `{name}`: unknown argument `surprise`"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_argument_is_named_by_every_tool() {
    let host = TestHost::new();
    for tool in builtins() {
        for missing in names(&tool["inputSchema"], "required") {
            let (name, mut arguments) = (text(&tool, "name"), examples(&tool)[0].clone());
            arguments.as_object_mut().expect("an object").remove(&missing);
            let failure = host.failure(name, arguments).await;
            assert_eq!(failure.kind, Kind::InvalidArguments, "{name}: {}", failure.message);
            assert_eq!(failure.message, format!("arguments of `{name}`: `{missing}` is missing"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_for_an_optional_argument_counts_as_left_away() {
    let host = TestHost::new();
    std::fs::write(host.work().join("a.txt"), "text").expect("a file");
    assert_eq!(host.result("read_file", json!({ "path": "a.txt", "offset": null })).await, "text");
    assert_eq!(host.result("time", json!({ "format": null })).await.get("formatted"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_nearly_right_is_corrected() {
    let failure = TestHost::new().failure("readfile", json!({})).await;
    assert_eq!(failure.kind, Kind::UnknownTool);
    assert_eq!(failure.message, "there is no tool `readfile`");
    assert_eq!(failure.hint.as_deref(), Some("did you mean `read_file`?"));
}
