//! `plugins = "pins"`: what the policy names by its bytes is there, and nothing else.

use crate::rig::{Locked, MESSAGE, word_count};
use serde_json::json;
use std::fs;
use toolcrib_builtins::BUILTINS;
use toolcrib_tests::outcome::{json_of, stderr, stdout, succeeded, with_a_section_more};

const CALL: [&str; 2] = ["word_count", "path=a.txt"];
const NONE: &str = "[lock]\nplugins = \"pins\"\nmessage = \"MESSAGE\"\n";
const PINNED: &str = "[lock]\nplugins = \"pins\"\n\n[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n";

/// Asserts that a call is refused with this code, in these words, by this line of the first policy.
fn refused(locked: &Locked, tool: &[&str], code: &str, reason: &str, line: usize) {
    let (exit, envelope) = locked.call(tool);
    let error = &envelope["error"];
    assert_eq!((exit, &error["kind"], &error["data"]["code"]), (5, &json!("denied"), &json!(code)), "{envelope}");
    assert!(error["message"].as_str().unwrap().contains(reason), "{envelope}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("the operator's policy decides this") && hint.contains(&locked.line(line)), "{hint}");
    assert!(!hint.contains("plugin allow"), "{hint}");
}

/// L-07: it has the user's grant, and is in no list, is not compiled, and its call says why.
#[test]
fn what_nobody_vetted_is_not_there() {
    let locked = Locked::by(&[NONE]);
    locked.installed("word_count", &word_count());
    // Allowing it asked it for its definitions, so its code is kept by now: what is kept counts for nothing.
    assert!(!locked.tools().contains(&"word_count".to_owned()));
    refused(&locked, &CALL, "not_vetted", "plugin `word_count` was refused: it was not vetted", 2);
    assert!(locked.call(&CALL).1["error"]["hint"].as_str().unwrap().starts_with(MESSAGE));
    let list = json_of(&locked.run(&["plugin", "list", "--json"]));
    let row = list["plugins"].as_array().unwrap().iter().find(|row| row["name"] == "word_count").unwrap();
    assert_eq!((&row["refused"], &row["enabled"]), (&json!("not_vetted"), &json!(false)));
    assert!(succeeded(&locked.run(&["plugin", "list"])).contains("refused: not_vetted"));
    let explained = json_of(&locked.run(&["policy", "explain", "--json", "word_count"]));
    assert_eq!(explained["clauses"][0]["decided_by"], format!("lock.plugins ({})", locked.line(2)));
}

/// L-07: what asks for no capability runs no more than the rest. These are the bytes of a built-in plugin, which a file does not become.
#[test]
fn what_only_computes_is_not_there_either() {
    let policy = format!("{NONE}builtin = []\n");
    let locked = Locked::by(&[&policy]);
    let bytes = BUILTINS.iter().find(|builtin| builtin.name == "time").unwrap().bytes;
    locked.program.write("data/toolcrib/plugins/time.wasm", bytes);
    assert_eq!(locked.tools(), Vec::<String>::new());
    refused(&locked, &["time"], "builtin_off", "it is not among the built-in plugins that the policy lists", 2);
    let list = json_of(&locked.run(&["plugin", "list", "--json"]));
    let codes =
        list["plugins"].as_array().unwrap().iter().filter(|row| row["name"] == "time").map(|row| &row["refused"]);
    assert_eq!(codes.collect::<Vec<_>>(), [&json!("builtin_off"), &json!("not_vetted")]);
}

#[test]
fn what_is_refused_is_not_compiled() {
    let locked = Locked::by(&[NONE]);
    locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    let digest = toolcrib_tests::digest("word_count");
    let is_compiled = || walk(&locked.program.path("state")).iter().any(|path| path.contains(&digest));
    locked.tools();
    refused(&locked, &CALL, "not_vetted", "not vetted", 2);
    json_of(&locked.run(&["plugin", "list", "--json"]));
    assert!(!is_compiled());
    json_of(&locked.program.run(&["plugin", "list", "--json"]));
    assert!(is_compiled(), "what is kept is not found by this test");
}

fn walk(directory: &std::path::Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let below = |path: std::path::PathBuf| if path.is_dir() { walk(&path) } else { vec![path.display().to_string()] };
    entries.flat_map(|entry| below(entry.unwrap().path())).collect()
}

#[test]
fn what_was_vetted_works_as_far_as_the_user_lets_it() {
    let locked = Locked::by(&[PINNED]);
    locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    assert!(locked.tools().contains(&"word_count".to_owned()));
    let (code, envelope) = locked.call(&CALL);
    assert_eq!((code, &envelope["error"]["data"]), (5, &json!(null)), "{envelope}");
    assert!(envelope["error"]["message"].as_str().unwrap().contains("which the policy does not grant"), "{envelope}");
    succeeded(&locked.run(&["plugin", "allow", "word_count", "--read", "."]));
    assert_eq!(locked.call(&CALL).0, 0);
}

/// L-04 and L-05.
#[test]
fn other_bytes_under_a_vetted_name_are_refused() {
    let locked = Locked::by(&[PINNED]);
    locked.installed("word_count", &with_a_section_more(word_count()));
    assert!(!locked.tools().contains(&"word_count".to_owned()));
    refused(&locked, &CALL, "other_bytes", "it has other bytes than those that were vetted", 5);
}

/// L-03.
#[test]
fn a_vetted_plugin_under_another_name_is_refused() {
    let locked = Locked::by(&[PINNED]);
    locked.installed("counter", &word_count());
    refused(&locked, &CALL, "renamed", "it was vetted under another name, `word_count`", 5);
}

/// L-06: the vetted one keeps its names, whichever file sorts first.
#[test]
fn a_twin_that_nobody_vetted_takes_no_name_of_a_vetted_plugin() {
    for twin in ["aaa", "Word-Count", "zzz"] {
        let locked = Locked::by(&[PINNED]);
        locked.program.write(&format!("data/toolcrib/plugins/{twin}.wasm"), with_a_section_more(word_count()));
        locked.installed("word_count", &word_count());
        assert_eq!(locked.call(&CALL).0, 0, "{twin}");
    }
}

/// L-10, for a digest that the operator has noted.
#[test]
fn other_definitions_than_those_that_were_vetted_are_refused() {
    let policy = |definitions: &str| format!("{PINNED}definitions_sha256 = \"{definitions}\"\n");
    let locked = Locked::by(&[&policy(&"0".repeat(64))]);
    locked.installed("word_count", &word_count());
    refused(&locked, &CALL, "definitions_changed", "it says something else of its tools", 5);
    assert!(!locked.tools().contains(&"word_count".to_owned()));

    let settings = fs::read_to_string(locked.program.path("config/toolcrib/toolcrib.toml")).unwrap();
    let definitions = settings.lines().find_map(|line| line.strip_prefix("definitions = ")).unwrap().trim_matches('"');
    locked
        .program
        .write("policy0.toml", policy(definitions).replace("WORD_COUNT", &toolcrib_tests::digest("word_count")));
    assert_eq!(locked.call(&CALL).0, 0);
}

#[test]
fn the_built_in_plugins_are_those_that_the_policy_lists() {
    let locked = Locked::by(&["[lock]\nplugins = \"off\"\nbuiltin = [\"time\", \"read_file\"]\n"]);
    locked.installed("word_count", &word_count());
    assert_eq!(locked.tools(), ["read_file", "time", "word_count"]);
    refused(&locked, &["run_shell", "command=id"], "builtin_off", "plugin `run_shell` was refused", 2);
}

/// A plugin needs the word of every lock, in whatever order they come.
#[test]
fn a_second_lock_takes_away_and_adds_nothing() {
    for policies in [[PINNED, NONE], [NONE, PINNED]] {
        let locked = Locked::by(&policies);
        locked.installed("word_count", &word_count());
        let (code, envelope) = locked.call(&CALL);
        assert_eq!((code, &envelope["error"]["data"]["code"]), (5, &json!("not_vetted")), "{envelope}");
    }
    let locked = Locked::by(&[PINNED, "[lock]\nplugins = \"off\"\n"]);
    locked.installed("word_count", &with_a_section_more(word_count()));
    assert_eq!(locked.call(&CALL).1["error"]["data"]["code"], "other_bytes");
}

#[test]
fn an_operators_words_are_shown_clean() {
    let policy = NONE.replace("MESSAGE", "ask\\u001b[2J\\u202e us\\nnow");
    let locked = Locked::by(&[&policy]);
    locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    let output = locked.run(&["call", "word_count", "path=a.txt"]);
    for text in [stdout(&output), stderr(&output)] {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    }
}
