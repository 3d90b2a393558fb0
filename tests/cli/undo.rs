//! `toolcrib files undo`: a person puts back what file tools changed, by call or by session, and what commands changed, by checkpoint.

use serde_json::{Value, json};
use std::process::Output;
use toolcrib_tests::Program;
use toolcrib_tests::client::request;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::shell::command;

/// Writes each of these files with a content, all in one session.
fn write(program: &Program, files: &[(&str, &str)]) {
    let lines = files
        .iter()
        .enumerate()
        .map(|(id, (path, content))| request(id as i64, "write_file", &json!({ "path": path, "content": content })));
    let output = program.run_with(&["run"], &lines.collect::<String>());
    assert!(!stdout(&output).contains("error"), "{}", stdout(&output));
}

fn read(program: &Program, path: &str) -> Option<String> {
    std::fs::read_to_string(program.path("work").join(path)).ok()
}

fn undo(program: &Program, arguments: &[&str]) -> Output {
    program.run(&[&["files", "undo"], arguments].concat())
}

#[test]
fn the_last_call_a_named_call_or_a_session_is_undone() {
    let program = Program::new();
    program.write("work/a", "person's\n");
    write(&program, &[("a", "one\n"), ("b", "one\n")]);
    write(&program, &[("a", "two\n")]);
    let listed = json_of(&undo(&program, &["--list", "--json"]));
    let files: Vec<&Value> = listed.as_array().expect("a list").iter().map(|change| &change["file"]).collect();
    assert_eq!(files.len(), 3, "{listed}");
    assert!(succeeded(&undo(&program, &["--list"])).contains("write_file"));
    // What it would be, which changes nothing.
    let told = succeeded(&undo(&program, &["--diff"]));
    assert!(told.contains("/a:\n") && told.contains("-two\n+one\n"), "{told}");
    assert_eq!(read(&program, "a").as_deref(), Some("two\n"));
    // The last call.
    assert!(succeeded(&undo(&program, &[])).ends_with("/a is as it was before\n"));
    assert_eq!(read(&program, "a").as_deref(), Some("one\n"));
    // A session, by one of its calls.
    let call = listed[1]["call"].as_str().expect("an id")[..8].to_owned();
    let told = succeeded(&undo(&program, &[&call, "--session", "--diff"]));
    assert!(told.contains("-one\n+person's\n") && told.contains("/b:\n"), "{told}");
    let told = succeeded(&undo(&program, &[&call, "--session"]));
    assert_eq!(told.lines().count(), 2, "{told}");
    assert_eq!((read(&program, "a").as_deref(), read(&program, "b")), (Some("person's\n"), None));
    let nothing = undo(&program, &[]);
    assert!(
        code(&nothing) == 2 && stderr(&nothing).contains("no file tool has changed a file"),
        "{}",
        stderr(&nothing)
    );
}

#[test]
fn what_changed_since_stays_and_the_difference_is_shown() {
    let program = Program::new();
    write(&program, &[("a", "one\n")]);
    write(&program, &[("a", "two\n")]);
    program.write("work/a", "person's\n");
    let output = undo(&program, &[]);
    assert_ne!(code(&output), 0);
    assert!(stdout(&output).contains("has changed since: it was left as it is"), "{}", stdout(&output));
    assert!(stdout(&output).contains("-person's\n+one"), "{}", stdout(&output));
    assert!(stderr(&output).contains("1 of 1 files were left as they are"), "{}", stderr(&output));
    assert_eq!(read(&program, "a").as_deref(), Some("person's\n"));
    for (arguments, said) in [
        (["nothex"].as_slice(), "an id is hexadecimal"),
        (["0000"].as_slice(), "the call `0000` has changed no file"),
        (["--json"].as_slice(), "--list"),
        (["--list", "0000"].as_slice(), "cannot be used with"),
    ] {
        let refused = undo(&program, arguments);
        assert!(code(&refused) == 2 && stderr(&refused).contains(said), "{arguments:?}: {}", stderr(&refused));
    }
}

/// Runs a command in a session of its own.
fn shell(program: &Program, text: &str) -> String {
    succeeded(&program.run(&["--yes", "call", "run_shell", &command(text).to_string()]))
}

#[test]
fn what_commands_changed_is_put_back() {
    let program = Program::new();
    for (path, text) in [("a", "one\n"), ("d/b", "one\n"), (".gitignore", "*.log\n"), ("x.log", "one\n")] {
        program.write(&format!("work/{path}"), text);
    }
    write(&program, &[("t", "by a tool\n")]);
    shell(&program, "rm -r d; echo two > a; echo two > x.log; echo new > n");
    // One timeline, which says what each is.
    let listed = succeeded(&undo(&program, &["--list"]));
    let kinds: Vec<&str> = listed
        .lines()
        .filter_map(|line| ["checkpoint", " file "].into_iter().find(|kind| line.contains(kind)))
        .collect();
    assert_eq!(kinds[..2], ["checkpoint", " file "], "{listed}");
    assert!(listed.contains("run_shell") && listed.contains("ignored"), "{listed}");
    let id = json_of(&undo(&program, &["--list", "--json"]))[0]["id"].as_str().expect("an id").to_owned();
    // What would change comes first, and a person says yes.
    let told = succeeded(&undo(&program, &["--diff"]));
    assert!(
        told.contains("-two\n+one\n")
            && told.contains("/n would be removed")
            && told.contains("/d would be there again"),
        "{told}"
    );
    assert!(!told.contains("x.log"), "{told}");
    let refused = undo(&program, &[]);
    assert!(code(&refused) == 5 && stderr(&refused).contains("--yes"), "{}", stderr(&refused));
    assert_eq!((read(&program, "a").as_deref(), read(&program, "d/b")), (Some("two\n"), None));
    // Some of it, by the beginning of the id; then all that is left, which is the newest.
    succeeded(&undo(&program, &[&id[..8], "--file", "d/b", "--yes"]));
    assert_eq!((read(&program, "a").as_deref(), read(&program, "d/b").as_deref()), (Some("two\n"), Some("one\n")));
    succeeded(&undo(&program, &["--yes"]));
    assert_eq!((read(&program, "a").as_deref(), read(&program, "n")), (Some("one\n"), None));
    assert_eq!(
        (read(&program, "x.log").as_deref(), read(&program, "t").as_deref()),
        (Some("two\n"), Some("by a tool\n"))
    );
    // The next one is what the tool did before.
    succeeded(&undo(&program, &["--yes"]));
    assert_eq!(read(&program, "t"), None);
    // An undo is undone by the checkpoint that was taken before it.
    let listed = json_of(&undo(&program, &["--list", "--json"]));
    let before = listed.as_array().expect("a list").iter().filter(|one| one["why"] == "undo").nth(1).expect("one");
    succeeded(&undo(&program, &[before["id"].as_str().expect("an id"), "--yes"]));
    assert_eq!((read(&program, "a").as_deref(), read(&program, "n").as_deref()), (Some("two\n"), Some("new\n")));
    assert_eq!(stdout(&undo(&program, &[before["id"].as_str().expect("an id")])).matches("is as it was at").count(), 1);
}

/// A command that has no checkpoint of its own goes by the one before it.
#[test]
fn a_command_goes_by_the_nearest_checkpoint() {
    let program = Program::new();
    program.write("work/a", "one\n");
    let mut running = program.start(&["--yes", "run"]);
    for (id, text) in ["echo two > a", "echo three > a"].iter().enumerate() {
        running.write(request(id as i64, "run_shell", &command(text)));
        let answer = running.line();
        assert!(answer.get("error").is_none(), "{answer}");
    }
    drop(running);
    let trail = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    let calls: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let second = calls.iter().filter(|line| line["event"] == "accepted").nth(1).expect("two calls");
    let told = succeeded(&undo(&program, &[second["call"].as_str().expect("an id"), "--yes"]));
    assert!(told.contains("+one"), "{told}");
    assert_eq!(read(&program, "a").as_deref(), Some("one\n"));
}

/// Commands that write elsewhere wait for no checkpoint of the workspace.
#[test]
fn a_workspace_that_commands_cannot_write_has_no_checkpoint() {
    let program = Program::new();
    program.write("work/a", "one\n");
    let call = ["--set", "confine.write=[]", "--yes", "call", "run_shell", &command("true").to_string()];
    succeeded(&program.run(&call));
    assert_eq!(json_of(&undo(&program, &["--list", "--json"])), json!([]));
}
