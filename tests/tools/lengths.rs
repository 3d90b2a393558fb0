//! How much a model reads before its first call: names, descriptions and input schemas of a list, and the guidance of each tool.

use serde_json::{Value, json};
use std::cmp::Reverse;
use toolcrib::formats::{Format, Strictness};
use toolcrib_builtins::{BUILTINS, Builtin};
use toolcrib_tests::{Program, TestHost};

/// Bytes of the tools that are listed without any setting.
const DEFAULT_BYTES: usize = 16 << 10;
/// Bytes of the tools of all families together.
const ALL_BYTES: usize = 90 << 10;
/// Characters of what a tool says beside its summary: when to use it, when not, what is like it, and examples.
const GUIDANCE_CHARS: usize = 400;
/// Tools whose guidance is still longer.
const LONGER: [&str; 0] = [];

/// The bytes of each tool of a list, the largest first.
fn bytes(list: &Value) -> Vec<(usize, String)> {
    let mut sizes: Vec<(usize, String)> = list["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| {
            // Titles, annotations and output schemas are for its client.
            let read =
                json!({ "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"] });
            (read.to_string().len(), tool["name"].as_str().expect("a name").to_owned())
        })
        .collect();
    sizes.sort_by_key(|(bytes, _)| Reverse(*bytes));
    sizes
}

fn assert_fits(sizes: &[(usize, String)], most: usize) {
    let sum: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
    let lines: Vec<String> = sizes.iter().map(|(bytes, name)| format!("{bytes:6} {name}")).collect();
    let table = format!("{} tools have {sum} bytes of at most {most}:\n{}", sizes.len(), lines.join("\n"));
    assert!(sum <= most, "{table}");
    println!("{table}");
}

/// The definitions of every tool that is built in, also of those that nobody is offered by default.
fn definitions() -> Vec<Value> {
    let said = BUILTINS.iter().flat_map(|Builtin { name, definitions, .. }| {
        let said: Value = serde_json::from_str(definitions)
            .unwrap_or_else(|_| panic!("{name}: its definitions are older than its sources: see `definitions.rs`"));
        said["tools"].as_array().expect("tools").clone()
    });
    said.collect()
}

#[test]
fn the_default_list_is_short() {
    let output = Program::with_panes().run(&["tools", "--format", "mcp"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).expect("a list of tools");
    let sizes = bytes(&list);
    assert!(sizes.len() >= 12, "{sizes:?}");
    assert_fits(&sizes, DEFAULT_BYTES);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tools_together_are_short() {
    let test = TestHost::new();
    let (host, context) = test.parts();
    let all = host.all_tools(context).await;
    let offers = all.tools.iter().map(|(tool, _)| host.offer(tool, context)).collect();
    let definitions = Format::Mcp.definitions(offers, Strictness::Off).expect("definitions");
    let sizes = bytes(&definitions.json.expect("a list"));
    assert!(sizes.len() >= 112, "{sizes:?}");
    assert_fits(&sizes, ALL_BYTES);
}

#[test]
fn the_guidance_of_each_tool_is_short() {
    let chars = |text: &Value| text.as_str().expect("a text").chars().count();
    for tool in definitions() {
        let (name, guidance) = (tool["name"].as_str().expect("a name"), &tool["guidance"]);
        let examples = guidance["examples"].as_array().expect("examples").iter();
        let parts = ["when_to_use", "when_not_to_use", "disambiguation"].map(|part| &guidance[part]);
        let sum: usize = parts.into_iter().chain(examples).map(chars).sum();
        let fits = sum <= GUIDANCE_CHARS;
        assert_eq!(
            fits,
            !LONGER.contains(&name),
            "{name} has {sum} characters: at most {GUIDANCE_CHARS}, or see `LONGER`"
        );
    }
}

#[test]
fn every_argument_of_every_tool_is_described() {
    fn undescribed(schema: &Value, place: &str, found: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{name}");
            if property["description"].as_str().is_none_or(str::is_empty) {
                found.push(place.clone());
            }
            undescribed(property, &place, found);
            undescribed(&property["items"], &place, found);
        }
    }
    let mut found = Vec::new();
    for tool in definitions() {
        undescribed(&tool["input_schema"], tool["name"].as_str().expect("a name"), &mut found);
    }
    assert!(found.is_empty(), "no description: {found:?}");
}
