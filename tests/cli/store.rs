//! `toolcrib store`: looking at what plugins keep, copying it, and moving it to another store.

use serde_json::json;
use std::os::unix::fs::{FileExt, PermissionsExt};
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};

#[test]
fn a_store_is_looked_at_and_copied() {
    let program = Program::new();
    let none = program.run(&["store", "check"]);
    assert_eq!((code(&none), stdout(&none).as_str()), (0, "there is no store: no plugin has kept anything\n"));
    let none = program.run(&["store", "backup", "copy"]);
    assert_eq!(code(&none), 2, "{}", stderr(&none));
    let file = program.path("state/toolcrib/store.sqlite");
    assert!(!file.exists(), "looking makes none");

    let (saved, _) = program.call(&["note_save", r#"{"key":"a","content":"kept"}"#]);
    assert_eq!(saved, 0);
    assert_eq!(std::fs::metadata(&file).expect("a store").permissions().mode() & 0o777, 0o600);
    let checked = json_of(&program.run(&["store", "check", "--json"]));
    assert_eq!((&checked["ok"], &checked["items"]), (&true.into(), &2.into()), "the note, and how many there are");
    succeeded(&program.run(&["store", "backup", "copy"]));
    let copy = program.path("work/copy");
    assert_eq!(std::fs::metadata(&copy).expect("a copy").permissions().mode() & 0o777, 0o600);
    for (to, said) in [("copy", "is there already"), ("absent/copy", "cannot be written: No such file")] {
        let refused = program.run(&["store", "backup", to]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }

    let damaged = std::fs::OpenOptions::new().write(true).open(&file).expect("a store");
    damaged.write_all_at(&[0xa5; 3 * 4096], 4096).expect("written");
    let found = program.run(&["store", "check"]);
    assert_ne!(code(&found), 0);
    assert!((stdout(&found) + &stderr(&found)).contains("damaged"));
    let (_, refused) = program.call(&["note_list", "{}"]);
    assert_eq!(refused["error"]["kind"], "unavailable", "{refused}");
    assert!(refused["error"]["hint"].as_str().is_some_and(|hint| hint.contains("toolcrib store backup")), "{refused}");

    // The copy takes its place.
    std::fs::copy(&copy, &file).expect("copied");
    let (_, listed) = program.call(&["note_list", "{}"]);
    assert_eq!(listed["result"]["notes"][0]["key"], "a", "{listed}");
}

/// A program with one note, and the file to which its store was exported.
fn exported(key: &str, content: &str) -> (Program, String) {
    let program = Program::new();
    let saved = program.call(&["note_save", &json!({ "key": key, "content": content }).to_string()]);
    assert_eq!(saved.0, 0, "{saved:?}");
    let said = succeeded(&program.run(&["store", "export", "out"]));
    assert!(said.starts_with("wrote 2 documents to /"), "the note, and how many there are: {said}");
    let file = program.path("work/out").display().to_string();
    (program, file)
}

fn refusal(program: &Program, arguments: &[&str]) -> (i32, String) {
    let refused = program.run(arguments);
    (code(&refused), stderr(&refused))
}

#[test]
fn documents_go_from_one_store_to_another() {
    let (from, file) = exported("deploy-day", "Deploys go out on Tuesdays.");
    assert_eq!(std::fs::metadata(&file).expect("an export").permissions().mode() & 0o777, 0o600);
    let (exit, said) = refusal(&from, &["store", "export", "out"]);
    assert!(exit == 2 && said.contains("is there already"), "{said}");
    let (exit, said) = refusal(&from, &["store", "export", "other", "--agent", "nobody"]);
    assert!(exit == 2 && said.contains("no documents of agent `nobody`"), "{said}");
    assert!(!from.path("work/other").exists());

    let to = Program::new();
    assert_eq!(json_of(&to.run(&["store", "list", "--json"])), json!([]));
    assert_eq!(succeeded(&to.run(&["store", "list"])), "no plugin keeps anything\n");
    assert_eq!(refusal(&to, &["store", "export", "out"]).0, 2);
    assert!(!to.path("state/toolcrib/store.sqlite").exists(), "looking makes none");
    let imported = succeeded(&to.run(&["store", "import", &file]));
    assert_eq!(imported, "imported 2 documents, replaced 0, skipped 0 that were there\n");
    let (_, listed) = to.call(&["note_list", "{}"]);
    assert_eq!(listed["result"]["notes"][0]["key"], "deploy-day", "{listed}");
    for arguments in [&["store", "import", file.as_str()][..], &["store", "import", &file, "--replace"]] {
        let again = succeeded(&to.run(arguments));
        assert_eq!(again, "imported 0 documents, replaced 0, skipped 2 that were there\n");
    }
    let holdings = json_of(&to.run(&["store", "list", "--json"]));
    assert_eq!(
        (&holdings[0]["plugin"], &holdings[0]["items"], holdings.as_array().map(Vec::len)),
        (&json!("notes"), &json!(2), Some(1))
    );
    let table = succeeded(&to.run(&["store", "list"]));
    let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let agent = holdings[0]["agent"].as_str().expect("an agent");
    assert_eq!(
        (&cells[0][..], &cells[1][..3]),
        (&["agent", "plugin", "items", "bytes"][..], &[agent, "notes", "2"][..])
    );
    // What was imported is changed as any other.
    assert_eq!(to.call(&["note_save", r#"{"key":"deploy-day","content":"Now on Mondays."}"#]).0, 0);
    assert_eq!(json_of(&to.run(&["store", "check", "--json"]))["ok"], true);
}

#[test]
fn what_is_there_with_another_body_is_replaced_only_on_request() {
    let ((_from, file), (to, _)) = (exported("a", "theirs"), exported("a", "ours, and longer"));
    let (exit, said) = refusal(&to, &["store", "import", &file]);
    assert!(exit == 2 && said.contains("`a` in collection `notes` of agent "), "{said}");
    assert!(said.contains(" is there already with another body") && said.contains("--replace"), "{said}");
    let content = || to.call(&["note_show", r#"{"key":"a"}"#]).1["result"]["content"].clone();
    assert_eq!(content(), "ours, and longer");
    let replaced = succeeded(&to.run(&["store", "import", "--replace", &file]));
    assert_eq!(replaced, "imported 0 documents, replaced 1, skipped 1 that were there\n");
    assert_eq!(content(), "theirs");
    assert_eq!(json_of(&to.run(&["store", "check", "--json"]))["ok"], true);
}

#[test]
fn an_import_that_cannot_be_whole_changes_nothing() {
    let (_from, file) = exported("a", "kept");
    let text = std::fs::read_to_string(&file).expect("an export");
    let to = Program::new();
    let lines: Vec<&str> = text.lines().collect();
    to.write("work/cut", format!("{}\n{}\n", lines[0], lines[1]));
    to.write("work/bad", format!("{}\n{}\n{}\n", lines[0], lines[1], lines[2].replace("\"key\":", "\"kay\":")));
    to.write("work/other", "name,age\n");
    for (name, said) in [
        ("cut", "the file is cut off: it has 1 of 2 documents"),
        ("bad", "line 3: `kay` is not a member of a document"),
        ("other", "this is not an export of a store (its first line is `name,age`)"),
        ("absent", "cannot be read: No such file"),
    ] {
        let (exit, refused) = refusal(&to, &["store", "import", name]);
        assert!(exit == 2 && refused.contains(said), "{name}: {refused}");
    }
    let (exit, said) = refusal(&to, &["--set", "store.items=1", "store", "import", &file]);
    assert!(exit == 6 && said.contains("2 items are too many for one plugin of an agent (limit: 1)"), "{said}");
    assert_eq!(json_of(&to.run(&["store", "list", "--json"])), json!([]));
    assert_eq!(json_of(&to.run(&["store", "check", "--json"]))["items"], 0);
}
