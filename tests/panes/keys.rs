//! What `send-keys` types, and what it refuses before anything is typed.

use crate::crib::{Crib, command, declared};
use serde_json::{Value, json};

/// A shell whose command waits for a line and puts it into `x`.
fn reading(settings: &[&str]) -> Crib {
    let mut crib = Crib::with(settings);
    let mut arguments = command("read -r x; echo \"got $x\"");
    arguments["wait"] = json!(false);
    crib.result("run_shell", arguments);
    crib
}

fn refused(crib: &mut Crib, arguments: Value) -> String {
    crib.failure("send-keys", declared(arguments))
}

/// Answers the command that reads, and returns what it got.
fn answered(crib: &mut Crib, text: &str) -> String {
    crib.result("send-keys", declared(json!({ "literal_text": text, "enter": true })));
    let (status, stdout) = crib.run("printf '%s' \"$x\"");
    assert_eq!(status, 0);
    stdout
}

#[test]
fn text_and_enter_answer_a_question() {
    let mut crib = reading(&[]);
    let place = crib.result("send-keys", declared(json!({ "literal_text": "one ", "keys": ["t", "w", "o"] })));
    assert_eq!((&place["session"], &place["pane"]), (&json!(crib.program.session()), &json!("shared")));
    assert_eq!(answered(&mut crib, " three"), "one two three");
    assert!(crib.shows("got one two three"));
}

#[test]
fn a_pane_is_found_by_its_id() {
    let mut crib = reading(&[]);
    let place = crib.result("send-keys", declared(json!({ "literal_text": "by " })));
    let id = place["id"].as_str().expect("an id");
    assert!(id.starts_with('%') && id.contains('@'), "{id}");
    let again = crib.result("send-keys", declared(json!({ "target": id, "literal_text": "id" })));
    assert_eq!(again["id"], place["id"]);
    assert_eq!(answered(&mut crib, "!"), "by id!");
}

#[test]
fn an_unknown_key_is_refused_and_nothing_is_typed() {
    let mut crib = reading(&[]);
    for key in ["NoSuchKey", "enter now", "", "C-", "-R"] {
        let said = refused(&mut crib, json!({ "literal_text": "early", "keys": ["Enter", key] }));
        assert!(said.starts_with("invalid_arguments: ") && said.ends_with("is no key"), "`{key}`: {said}");
    }
    assert_eq!(answered(&mut crib, "late"), "late");
}

#[test]
fn control_characters_in_text_are_refused() {
    let mut crib = reading(&[]);
    for text in ["a\nb", "a\rb", "a\u{3}", "a\u{1b}[201~", "a\u{7f}"] {
        let said = refused(&mut crib, json!({ "literal_text": text, "enter": true }));
        assert!(said.starts_with("invalid_arguments: "), "{text:?}: {said}");
    }
    assert_eq!(answered(&mut crib, "late"), "late");
}

#[test]
fn nothing_to_type_is_refused() {
    let mut crib = Crib::new();
    for arguments in [json!({}), json!({ "literal_text": " " }), json!({ "keys": [], "enter": false })] {
        assert_eq!(refused(&mut crib, arguments), "invalid_arguments: there is nothing to type");
    }
}

#[test]
fn text_that_names_a_key_is_typed_as_text() {
    let mut crib = reading(&[]);
    for text in ["Enter", "C-c", "C-d", "Escape "] {
        crib.result("send-keys", declared(json!({ "literal_text": text })));
    }
    assert_eq!(answered(&mut crib, "F1"), "EnterC-cC-dEscape F1");
}

#[test]
fn text_that_looks_like_an_option_is_typed_as_text() {
    let mut crib = reading(&[]);
    for text in ["-l", "--", "-X "] {
        crib.result("send-keys", declared(json!({ "literal_text": text })));
    }
    assert_eq!(answered(&mut crib, "-R"), "-l---X -R");
}

#[test]
fn text_with_signs_of_tmux_and_of_shells_is_typed_as_it_is() {
    let mut crib = reading(&["tools.shell_denylist=[]"]);
    let text = "#{pane_id} #(id) \"$HOME\" \\n ; ~ {} %1 'ä🙂";
    assert_eq!(answered(&mut crib, text), text);
}

#[test]
fn a_missing_pane_is_an_error_for_keys_and_none_for_a_look() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("echo here").0, 0);
    let said = refused(&mut crib, json!({ "pane": "nowhere", "enter": true }));
    assert!(said.starts_with("execution_failed: there is no pane `nowhere`"), "{said}");
    let said = refused(&mut crib, json!({ "session": "nowhere", "enter": true }));
    assert!(
        said.starts_with(&format!("execution_failed: there is no session `{}-nowhere`", crib.program.session())),
        "{said}"
    );
    let answer = crib.call("capture-pane", json!({ "pane": "nowhere" }));
    assert!(answer["result"].as_str().is_some_and(|text| text.contains("here")), "{answer}");
    assert!(answer["notices"].to_string().contains("this is the shared pane instead"), "{answer}");
}

#[test]
fn an_id_of_another_server_or_none_at_all_is_refused() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let place = crib.result("send-keys", declared(json!({ "enter": true })));
    let number = place["id"].as_str().and_then(|id| id.split('@').next()).expect("an id").to_owned();
    let stale = format!("{number}@00000000");
    let said = refused(&mut crib, json!({ "target": stale, "enter": true }));
    assert!(said.starts_with("execution_failed: there is no pane"), "{said}");
    for odd in [number.as_str(), "0", "{last}", "=toolcrib-agent:", "%x@00000000", "@1"] {
        let said = refused(&mut crib, json!({ "target": odd, "enter": true }));
        assert!(said.starts_with("invalid_arguments: ") && said.contains("is no pane's id"), "`{odd}`: {said}");
    }
}

#[test]
fn the_denylist_holds_for_what_is_typed() {
    let mut crib = Crib::with(&["tools.shell_denylist=[\"forbidden-thing\"]"]);
    let said = crib.refusal("forbidden-thing now");
    assert!(said.starts_with("denied: ") && said.contains("`forbidden-thing`"), "{said}");
    let said = refused(&mut crib, json!({ "literal_text": "forbidden-thing now", "enter": true }));
    assert!(said.starts_with("denied: ") && said.contains("`forbidden-thing`"), "{said}");
    let said = refused(&mut crib, json!({ "literal_text": "it's a forbidden-thing; forbidden-thing", "enter": true }));
    assert!(said.starts_with("denied: "), "{said}");
    assert!(!crib.screen().contains("forbidden-thing"));
    // What is no script is an answer to a program.
    crib.result("send-keys", declared(json!({ "literal_text": "don't" })));
    assert!(crib.shows("don't"));
}

#[test]
fn a_person_who_scrolls_back_holds_up_no_command() {
    let mut crib = Crib::new();
    for text in ["echo seen", "echo seen again"] {
        assert_eq!(crib.run("true").0, 0);
        let _ = crib.program.tmux(&["copy-mode", "-t", "=toolcrib-agent:"]);
        let mode = crib.program.tmux(&["display-message", "-p", "-t", "=toolcrib-agent:", "#{pane_in_mode}"]);
        assert_eq!(mode, "1\n", "the pane is in no mode");
        assert_eq!(crib.run(text), (0, format!("{}\n", &text[5..])));
    }
}

#[test]
fn keys_leave_the_mode_that_a_person_is_in() {
    let mut crib = reading(&[]);
    let _ = crib.program.tmux(&["copy-mode", "-t", "=toolcrib-agent:"]);
    assert_eq!(answered(&mut crib, "quit"), "quit");
}
