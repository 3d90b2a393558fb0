//! P-48: names that are another's, look like another's, or are none: twins by case and hyphen, homoglyphs, a million of them.
//! Outcome: the second of two that read the same is refused; what is not 1 to 64 of `A-Za-z0-9_-` is no name; the start stays short.
//! Switched off: without folding of names (`text/names.rs`) the tests of twins failed; without `check_names` (`tools/provider/component.rs`) those of twins within one plugin, of odd names and of hundreds of thousands.

use crate::texts::odd_characters;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::mpsc::channel;
use std::time::Duration;
use toolcrib_tests::forge::{Forged, component, liar};
use toolcrib_tests::{Preparation, plugin_source};

#[test]
fn a_tool_that_reads_as_one_that_is_there_is_refused() {
    let names = ["read_file", "Read_File", "read-file", "READ-FILE", "run-shell", "TIME"];
    let host = names.iter().enumerate().fold(Preparation::new(), |host, (index, name)| {
        host.component(&format!("twin{index}"), &Forged::new(name).bytes())
    });
    let mut siege = host.begin();
    for (index, name) in names.iter().enumerate() {
        for _ in 0..2 {
            let refusal = siege.refusal(&format!("twin{index}"));
            assert!(refusal.contains(&format!("its tool `{name}` could be confused with `")), "{refusal}");
        }
    }
    assert_eq!(siege.call("read_file", json!({ "path": "health.txt" }))["result"], "well");
    siege.lift();
}

#[test]
fn twins_within_one_plugin_are_refused() {
    for (first, second) in [("twin", "twin"), ("twin", "Twin"), ("a-twin", "a_twin")] {
        let script = json!({ "tools": [{ "name": first, "summary": "Good." }, { "name": second, "summary": "Bad." }] });
        let plugin = liar(&script, &[first, second]);
        let siege = Preparation::new().component("twins", &plugin).begin();
        let plugins = siege.program.path("plugins").display().to_string();
        let output = siege.program.run(&["--plugins", &plugins, "tools", "--format", "json"]);
        let tools: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list of tools");
        let twins = tools.iter().filter(|tool| tool["plugin"]["name"] == "twins").count();
        assert_eq!(twins, 0, "`{first}` and `{second}` are both offered");
        siege.lift();
    }
}

#[test]
fn what_is_no_name_is_refused() {
    let long = "n".repeat(65);
    let longer = "n".repeat(10_000);
    // The second has a Cyrillic `е`.
    let names =
        ["read file", "rеad_file", "../time", "time.", "tіme", "tool\u{202e}", "tool\u{1b}[2J", "名前", &long, &longer];
    let host = names.iter().enumerate().fold(Preparation::new(), |host, (index, name)| {
        host.component(&format!("odd{index}"), &Forged::new(name).bytes())
    });
    let mut siege = host.begin();
    for (index, name) in names.iter().enumerate() {
        for _ in 0..2 {
            let answer = siege.call(name, json!({}));
            assert!(matches!(answer["error"]["kind"].as_str(), Some("unavailable" | "unknown_tool")), "{answer}");
            assert!(answer.to_string().len() < 1000, "{} bytes of answer", answer.to_string().len());
        }
        let refusal = siege.refusal(&format!("odd{index}"));
        assert!(
            refusal.contains("is not a valid tool name: use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`"),
            "{refusal}"
        );
        assert_eq!(odd_characters(&refusal), "", "{refusal}");
    }
    siege.lift();
}

#[test]
fn a_plugin_without_tools_or_with_an_empty_name_is_refused() {
    for shown in ["", "\n", "\n\n\n"] {
        let bytes = component("(component)", shown);
        let siege = Preparation::new().component("nameless", &bytes).begin();
        assert!(siege.refusal("nameless").contains("was refused: "));
        siege.lift();
    }
}

/// Each of these files is within the limit of a component's size.
#[test]
fn hundreds_of_thousands_of_names_do_not_hold_up_the_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for plugin in ["one", "two"] {
        let mut names = String::new();
        (0..200_000).for_each(|index| writeln!(names, "{plugin}{index}").expect("text grows"));
        let bytes = component("(component)", names.trim_end());
        std::fs::write(directory.path().join(format!("{plugin}.wasm")), bytes).expect("a plugin");
    }
    let (sender, receiver) = channel();
    let plugins = directory.path().to_owned();
    std::thread::spawn(move || sender.send(plugin_source(&[], &[&plugins], &[]).load().refused().len()));
    let refused = receiver.recv_timeout(Duration::from_secs(40)).expect("the registry is loaded within 40 s");
    assert_eq!(refused, 2, "nobody needs so many tools");
}
