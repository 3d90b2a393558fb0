//! Every example that a tool gives in its guidance is a call that works where it would be made. Those of the web are in `tests/network`.

use crate::crib::Crib;
use serde_json::{Value, json};
use toolcrib_tests::shell::declared;

/// What is called in which order, so that each finds what the one before has made.
const ORDER: [&str; 14] = [
    "time",
    "write_file",
    "read_file",
    "file_list",
    "file_find",
    "file_search",
    "file_edit",
    "run_shell",
    "tmux-create-pane",
    "capture-pane",
    "send-keys",
    "tmux-kill-pane",
    "tmux-create-session",
    "tmux-kill-session",
];
const OF_THE_WEB: [&str; 2] = ["fetch_url", "web_search"];

fn examples(tool: &Value) -> Vec<Value> {
    let description = tool["description"].as_str().expect("a description");
    let lines = description.split_once("\nExamples:").expect("examples").1.trim_start().lines();
    lines.map_while(|line| line.strip_prefix("- ")).map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_example_in_guidance_works_where_it_would_be_called() {
    let mut crib = Crib::with(&["tmux.max_sessions=2", "tmux.max_panes=6"]);
    crib.program.write("work/src/main.rs", "fn main() { let port = 80; }\n");
    crib.program.write("work/build.log", "a line of the build\n".repeat(1000));
    std::fs::create_dir(crib.program.path("work/notes")).expect("a directory");
    let listed = crib.program.run(&["tools", "--format", "json"]).stdout;
    let tools: Vec<Value> = serde_json::from_slice(&listed).expect("a list of tools");
    let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    names.retain(|name| !OF_THE_WEB.contains(name));
    assert!(names.len() == ORDER.len() && names.iter().all(|name| ORDER.contains(name)), "{names:?}");
    assert_eq!(crib.run("true").0, 0);
    // The examples speak of `%3`, and of a pane in which a server runs.
    for name in ["one", "two", "three"] {
        crib.result("tmux-create-pane", declared(json!({ "pane": name })));
    }
    for name in ORDER {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("a tool of this name");
        let examples = examples(tool);
        assert!(!examples.is_empty(), "{name} has no example");
        for example in examples {
            let answer = crib.call(name, example.clone());
            assert!(answer["error"].is_null(), "{name} {example}: {answer}");
            // What a pane that was asked for is replaced by is told, and would be no example.
            let notices = answer["notices"].to_string();
            assert!(!notices.contains("instead"), "{name} {example}: {answer}");
        }
    }
}
