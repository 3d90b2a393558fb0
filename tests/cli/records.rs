//! `toolcrib notes`, `memory`, `tasks` and `store embed`: what agents keep, for whoever answers for them.

use serde_json::{Value, json};
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};

fn rows(text: &str) -> Vec<&str> {
    text.lines().skip(1).collect()
}

#[test]
fn notes_are_written_listed_shown_and_removed() {
    let program = Program::new();
    assert_eq!(succeeded(&program.run(&["notes", "list"])), "no notes\n");
    let saved = succeeded(&program.run(&["notes", "save", "deploy-day", "Deploys go out on Tuesdays.", "--pin"]));
    assert_eq!(saved, "the note `deploy-day` is kept\n");
    let long = format!("first line\nsecond {}", "word ".repeat(50));
    succeeded(&program.run_with(&["notes", "save", "long", "-"], &(long.clone() + "\n")));
    let listed = succeeded(&program.run(&["notes", "list"]));
    let listed = rows(&listed);
    assert!(listed[0].starts_with("long") && listed[0].ends_with("first line"), "{listed:?}");
    assert!(listed[1].starts_with("deploy-day") && listed[1].contains("yes"), "{listed:?}");
    assert_eq!(succeeded(&program.run(&["notes", "show", "long"])).trim_end(), long.trim_end());
    // The agent has them, and another one does not.
    assert_eq!(program.call(&["note_list", "{}"]).1["result"]["notes"][1]["key"], "deploy-day");
    assert_eq!(succeeded(&program.run(&["notes", "list", "--agent", "other"])), "no notes\n");
    succeeded(&program.run(&["notes", "save", "a", "theirs", "--agent", "other"]));
    let theirs = json_of(&program.run(&["notes", "list", "--agent", "other", "--json"]));
    assert_eq!((&theirs[0]["key"], theirs.as_array().map(Vec::len)), (&json!("a"), Some(1)));
    assert_eq!(succeeded(&program.run(&["notes", "save", "long", "short"])), "the note `long` has another text\n");
    assert_eq!(succeeded(&program.run(&["notes", "delete", "long"])), "the note `long` is deleted\n");
    let gone = program.run(&["notes", "show", "long"]);
    assert_eq!((code(&gone), stdout(&gone).as_str()), (12, ""));
    assert!(stderr(&gone).contains("there is no note `long`"), "{}", stderr(&gone));
    let odd = program.run(&["notes", "save", "No Key", "x"]);
    assert_eq!(code(&odd), 4, "{}", stderr(&odd));
}

#[test]
fn memories_are_looked_at_without_being_recalled() {
    let program = Program::new();
    assert_eq!(succeeded(&program.run(&["memory", "list"])), "no memories\n");
    assert!(!program.path("state/toolcrib/store.sqlite").exists(), "looking makes no store");
    let save = |memory: Value| program.call(&["memory_save", &memory.to_string()]).1["result"]["memory_id"].clone();
    assert_eq!(save(json!({ "content": "The car is red.", "memory_type": "fact" })), "m1");
    let link = json!([{ "target_id": "m1", "relation": "updates" }]);
    save(json!({ "content": "The car is blue now.", "memory_type": "decision", "associations": link }));
    let of = |arguments: &[&str]| succeeded(&program.run(&[&["memory", "list"], arguments].concat()));
    assert_eq!(rows(&of(&[])).iter().map(|row| &row[..2]).collect::<Vec<_>>(), ["m2", "m1"], "the newest first");
    assert_eq!(rows(&of(&["--words", "red"])).len(), 1);
    assert!(rows(&of(&["--type", "decision"]))[0].starts_with("m2"));
    let first = program.run(&["memory", "list", "--limit", "1"]);
    assert!(stderr(&first).contains("1 of 2 are shown"), "{}", stderr(&first));
    assert_eq!(json_of(&program.run(&["memory", "list", "--json"]))[1]["content"], "The car is red.");
    let shown = succeeded(&program.run(&["memory", "show", "m1"]));
    assert!(shown.starts_with("The car is red.\n\ntype: fact\n"), "{shown}");
    assert!(shown.contains("recalled: 0\n") && shown.contains("belongs to: updates m2\n"), "{shown}");
    let recalled = program.call(&["memory_recall", r#"{"query":"red"}"#]).1;
    assert_eq!(recalled["result"]["memories"][0]["accessed"], 0, "{recalled}");
    assert!(succeeded(&program.run(&["memory", "show", "m1"])).contains("recalled: 1\n"));
    assert_eq!(code(&program.run(&["memory", "show", "m9"])), 12);
    assert_eq!(code(&program.run(&["memory", "list", "--limit", "0"])), 2);
    assert_eq!(succeeded(&program.run(&["memory", "list", "--agent", "other"])), "no memories\n");
    assert_eq!(code(&program.run(&["memory", "delete", "m1", "--agent", "other"])), 12, "of another's nothing goes");
    succeeded(&program.run(&["memory", "delete", "m1", "--reason", "sold"]));
    assert_eq!(rows(&of(&[])).len(), 1);
}

/// What an operator approves is asked as an agent's call would be: here nobody can be.
#[test]
fn a_task_is_approved_by_a_person() {
    let program = Program::new();
    assert_eq!(succeeded(&program.run(&["tasks", "list"])), "no tasks\n");
    let task = json!({ "title": "Renew the certificate", "subtasks": ["order it"] });
    assert_eq!(program.call(&["task_create", &task.to_string()]).0, 0);
    let listed = succeeded(&program.run(&["tasks", "list"]));
    assert!(rows(&listed)[0].starts_with("1       pending_approval  medium    0 of 1"), "{listed}");
    let nobody = program.run(&["tasks", "approve", "1"]);
    assert_eq!(code(&nobody), 5, "{}", stderr(&nobody));
    assert_eq!(succeeded(&program.run(&["tasks", "approve", "1", "--yes"])), "task 1 is ready\n");
    assert_eq!(code(&program.run(&["tasks", "move", "1", "done"])), 4, "it has not begun");
    assert_eq!(succeeded(&program.run(&["tasks", "move", "1", "in_progress"])), "task 1 is in_progress\n");
    assert_eq!(succeeded(&program.run(&["tasks", "list", "--status", "ready"])), "no tasks\n");
    assert_eq!(json_of(&program.run(&["tasks", "list", "--json"]))[0]["status"], "in_progress");
    assert!(succeeded(&program.run(&["tasks", "show", "1"])).contains("title: Renew the certificate\n"));
    assert_eq!(json_of(&program.run(&["tasks", "show", "1", "--json"]))["revision"], 3);
    assert_eq!(code(&program.run(&["tasks", "show", "2"])), 12);
    let begun = program.run(&["tasks", "approve", "1", "--yes"]);
    assert_eq!(code(&begun), 2);
    assert!(stderr(&begun).contains("task 1 is in_progress: it does not wait for approval"), "{}", stderr(&begun));
}

/// A model that a program is: a text's vector is how often it has an `a` and a `b`.
const MODEL: &str = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    texts = json.loads(line)["input"]
    if any("too much" in text for text in texts):
        print(json.dumps({"error": "too much"}), flush=True)
    else:
        print(json.dumps({"data": [{"embedding": [text.count("a"), text.count("b"), 1]} for text in texts]}), flush=True)
"#;

#[test]
fn vectors_are_made_by_hand_and_before_a_program_ends() {
    let program = Program::new();
    let none = program.run(&["store", "embed"]);
    assert_eq!(code(&none), 2, "{}", stderr(&none));
    let save = |content: &str, more: &[&str]| {
        let memory = json!({ "content": content }).to_string();
        assert_eq!(program.call(&[more, &["memory_save", &memory]].concat()).0, 0);
    };
    save("aaaa", &[]);
    save("too much", &[]);
    let without = program.run(&["store", "embed"]);
    assert_eq!(code(&without), 10);
    assert!(stderr(&without).contains("no model for embeddings is set"), "{}", stderr(&without));
    program.write_program("model", MODEL);
    let set = format!("embeddings.command=[{:?}]", program.path("model"));
    let made = succeeded(&program.run(&["store", "embed", "--set", &set]));
    assert!(made.starts_with("1 texts have vectors; the model did not take 1, such as one because"), "{made}");
    let made = json_of(&program.run(&["store", "embed", "--set", &set, "--json"]));
    assert_eq!((&made["made"], &made["missing"], &made["refused"]), (&json!(1), &json!(0), &json!(1)), "{made}");
    // A single call leaves nothing behind.
    save("bbbb", &["--set", &set]);
    let found = program.call(&["--set", &set, "memory_recall", r#"{"query":"xbxbxb","max_results":1}"#]).1;
    assert_eq!(found["result"]["memories"][0]["content"], "bbbb", "{found}");
}
