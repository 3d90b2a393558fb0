//! `toolcrib files undo`: a person puts back what file tools changed, by call or by session.

use serde_json::{Value, json};
use std::process::Output;
use toolcrib_tests::Program;
use toolcrib_tests::client::request;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};

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
