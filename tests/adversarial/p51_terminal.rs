//! P-51: control sequences in what a plugin says: results, notices, failures, events, prints, names, imports.
//! Outcome: none reaches a reader; complete sequences go, lone controls show as pictures, the words stay.
//! Switched off: without the sanitiser in `clean_output` and `clean_failure` (`call/outcome.rs`) and in `Event::log` (`event.rs`) the first two tests failed.

use crate::events::watched;
use crate::texts::{TRICKS, has_marks, odd_characters};
use serde_json::{Value, json};
use toolcrib_tests::forge::component;
use toolcrib_tests::{Preparation, Program, Siege};

/// Neither as characters nor as escapes of JSON is there anything odd.
fn is_clean(value: &Value) {
    let text = value.to_string();
    assert_eq!(odd_characters(&text), "", "{text}");
    assert!(!text.contains("\\u00") && !text.contains("\\b") && !text.contains("\\r"), "{text}");
    assert!(has_marks(&text), "{text}");
    assert!(!text.contains("evil.example") && !text.contains("cm0="), "{text}");
}

#[test]
fn results_notices_and_failures_are_clean() {
    let mut siege = Siege::with("hostile").begin();
    for _ in 0..2 {
        is_clean(&siege.call("hostile", json!({ "how": "say", "text": TRICKS }))["result"]);
        is_clean(&siege.call("hostile", json!({ "how": "notice", "text": TRICKS }))["notices"]);
        let answer = siege.call("hostile", json!({ "how": "fail", "text": TRICKS }));
        is_clean(&answer["error"]["message"]);
        is_clean(&answer["error"]["hint"]);
    }
    siege.lift();
}

#[test]
fn events_and_prints_are_clean() {
    for how in ["say_much", "print_much", "print"] {
        for (events, answer) in watched(&json!({ "how": how, "text": TRICKS, "number": 1 }), 2) {
            assert!(answer["result"].is_string(), "{answer}");
            let said = events.iter().filter(|event| event["type"] == "log");
            is_clean(&said.filter_map(|event| event["text"].as_str()).collect::<String>().into());
        }
    }
}

/// What the program prints to a terminal, its own colours removed.
fn shown(program: &Program, arguments: &[&str]) -> String {
    let output = program.command(arguments).env("CLICOLOR_FORCE", "1").output().expect("the program starts");
    let mut text = String::from_utf8(output.stdout).expect("text") + &String::from_utf8_lossy(&output.stderr);
    for code in ["0", "1", "22", "31", "32", "33", "36", "38;5;10", "38;5;11", "39"] {
        text = text.replace(&format!("\u{1b}[{code}m"), "");
    }
    text
}

#[test]
fn names_and_imports_of_a_plugin_that_nobody_allowed_are_clean() {
    let name = TRICKS.replace('\n', " ");
    // No parser of text forms takes such an import: it is patched in.
    let plain = component(r#"(component (import "evil:host/aaaaaaaaaaaaaaaa@1.0.0" (instance)))"#, "imports");
    let mut import = plain.clone();
    let at = plain.windows(16).position(|window| window == [b'a'; 16]).expect("the name");
    import[at..at + 16].copy_from_slice("\u{1b}[2J\u{202e}\u{200b}\u{9b}31m_".as_bytes());
    let siege = Preparation::new()
        .component("names", &component("(component)", &format!("{name}\nsecond")))
        .component("imports", &import)
        .begin();
    let plugins = siege.program.path("plugins").display().to_string();
    let file = |name: &str| siege.program.path("plugins").join(format!("{name}.wasm")).display().to_string();
    let inspections: [&[&str]; 6] = [
        &["plugin", "list"],
        &["plugin", "inspect", &file("names")],
        &["plugin", "inspect", &file("imports")],
        &["tools"],
        &["--plugins", &plugins, "plugin", "list"],
        &["--plugins", &plugins, "tools"],
    ];
    for _ in 0..2 {
        for arguments in inspections {
            let shown = shown(&siege.program, arguments);
            assert_eq!(odd_characters(&shown), "", "{arguments:?}: {shown}");
            assert!(!shown.contains("\\u001b") && !shown.contains("\\u009b"), "{arguments:?}: {shown}");
        }
    }
    siege.lift();
}

#[test]
fn the_audit_trail_is_clean() {
    let mut siege = Siege::with("hostile").allowing("hostile").begin();
    for _ in 0..2 {
        siege.call("hostile", json!({ "how": "fail", "text": TRICKS }));
        siege.call("hostile", json!({ "how": "read_file", "text": TRICKS }));
        siege.call("hostile", json!({ "how": "run_command", "text": format!("# {TRICKS}") }));
        siege.call(TRICKS, json!({}));
    }
    let trail = std::fs::read_to_string(siege.program.path("state/toolcrib/audit.jsonl")).expect("an audit trail");
    assert_eq!(odd_characters(&trail), "");
    assert!(!trail.contains("\\u001b") && !trail.contains("\\b"), "{trail}");
    assert!(has_marks(&trail), "{trail}");
    siege.lift();
}
