//! What `send-keys` types, and what it refuses before anything is typed.

use crate::crib::{Crib, ONE_PANE};
use serde_json::{Value, json};
use toolcrib_tests::shell::{command, declared};

/// A shell whose command waits for a line and puts it into `x`.
fn reading(settings: &[&str]) -> Crib {
    let mut crib = Crib::with(&[settings, &[ONE_PANE]].concat());
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
        assert!(
            said.starts_with("invalid_arguments: ") && said.ends_with("is not the name of a key"),
            "`{key}`: {said}"
        );
    }
    assert_eq!(answered(&mut crib, "late"), "late");
}

#[test]
fn control_characters_in_text_are_refused() {
    let mut crib = reading(&[]);
    for text in ["a\u{3}", "a\nb\u{1b}[201~", "a\u{7f}", "a\u{0}"] {
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
    for gone in [format!("{number}@00000000"), "%99".into(), "0".into(), "shared:nowhere".into()] {
        let said = refused(&mut crib, json!({ "target": gone, "enter": true }));
        assert!(said.starts_with("execution_failed: there is no "), "`{gone}`: {said}");
    }
    for odd in ["{last}", "=shared:", "%x@00000000", "@1", "shared:0.1", ":"] {
        let said = refused(&mut crib, json!({ "target": odd, "enter": true }));
        assert!(said.starts_with("invalid_arguments: ") && said.contains("is not a valid pane"), "`{odd}`: {said}");
    }
}

#[test]
fn a_target_is_written_as_tmux_does_and_found_among_our_own_panes() {
    let mut crib = Crib::with(&["tmux.max_sessions=2"]);
    let made = crib.result("tmux-create-pane", declared(json!({ "pane": "server" })));
    let other = crib.result("tmux-create-session", declared(json!({ "session": "build" })));
    let (server, build) = (made["id"].as_str().expect("an id"), other["session"].as_str().expect("a session"));
    let number = server.split('@').next().expect("a number");
    let home = made["session"].as_str().expect("a session");
    for (target, session, pane) in [
        (number.to_owned(), home, "server"),
        (server.to_owned(), home, "server"),
        (home.to_owned(), home, "shared"),
        (format!("{home}:server"), home, "server"),
        ("shared:server".to_owned(), home, "server"),
        ("build".to_owned(), build, "shared"),
        (format!("{build}:shared"), build, "shared"),
    ] {
        let place = crib.result("send-keys", declared(json!({ "target": target, "keys": ["C-l"] })));
        assert_eq!((&place["session"], &place["pane"]), (&json!(session), &json!(pane)), "{target}");
        assert!(crib.result("capture-pane", json!({ "target": target })).is_string(), "{target}");
    }
    // A person's own pane on the same server is nobody's target.
    let foreign = crib.program.tmux(&["new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "theirs", "sh"]);
    for target in [foreign.trim(), "theirs", "theirs:0"] {
        let said = refused(&mut crib, json!({ "target": target, "literal_text": "touch owned\n" }));
        assert!(said.starts_with("execution_failed: there is no "), "{target}: {said}");
    }
}

#[test]
fn line_breaks_are_enter() {
    let mut crib = Crib::new();
    let mut arguments = command("read -r x; read -r y; read -r z; echo \"got $x $y $z\"");
    arguments["wait"] = json!(false);
    crib.result("run_shell", arguments);
    crib.result("send-keys", declared(json!({ "literal_text": "one\ntwo\r\nthree\n" })));
    assert!(crib.shows("got one two three"));
}

#[test]
fn each_line_is_held_against_the_denylist() {
    let mut crib = reading(&["tools.shell_denylist=[\"forbidden-thing now\"]"]);
    for text in [
        "yes\nforbidden-thing now",
        "it's\nforbidden-thing now\nit's",
        "forbidden-thing \\\nnow",
        "if true\nthen forbidden-thing now\nfi\n",
        "yes\r\nforbidden-thing now\r\n",
    ] {
        let said = refused(&mut crib, json!({ "literal_text": text }));
        assert!(said.starts_with("denied: ") && said.contains("`forbidden-thing now`"), "{text:?}: {said}");
    }
    assert_eq!(answered(&mut crib, "late"), "late");
}

/// The keys of a text, one a character.
fn spelled(text: &str) -> Vec<String> {
    text.chars().map(|c| if c == ' ' { "Space".into() } else { c.to_string() }).collect()
}

#[test]
fn what_single_keys_spell_is_held_against_the_denylist() {
    let mut crib = reading(&["tools.shell_denylist=[\"rmx -rf\"]"]);
    let keys = |text: &str| json!({ "keys": spelled(text) });
    let mut corrected = spelled("rmy");
    corrected.extend(["BSpace".to_owned(), "x".into(), "Space".into(), "-".into(), "r".into(), "f".into()]);
    for arguments in [
        keys("rmx -rf"),
        keys("echo; rmx -rf"),
        json!({ "keys": corrected }),
        json!({ "literal_text": "rm", "keys": ["x", "Space", "-", "r", "f"] }),
        json!({ "literal_text": "echo ", "keys": ["C-c", "r", "m", "x", "Space", "-", "r", "f", "KPEnter"] }),
    ] {
        let said = refused(&mut crib, arguments.clone());
        assert!(said.starts_with("denied: ") && said.contains("`rmx -rf`"), "{arguments}: {said}");
    }
    assert_eq!(answered(&mut crib, "late"), "late");
}

#[test]
fn what_several_calls_spell_is_held_against_the_denylist_until_enter() {
    let mut crib = reading(&["tools.shell_denylist=[\"rmx -rf\"]"]);
    crib.result("send-keys", declared(json!({ "literal_text": "rm" })));
    crib.result("send-keys", declared(json!({ "keys": ["x", "Space"] })));
    let said = refused(&mut crib, json!({ "literal_text": "-rf", "enter": true }));
    assert!(said.starts_with("denied: ") && said.contains("`rmx -rf`"), "{said}");
    // What was refused was not typed, and counts for nothing.
    crib.result("send-keys", declared(json!({ "keys": ["Enter"] })));
    crib.result("send-keys", declared(json!({ "literal_text": "-rf", "enter": true })));
    assert_eq!(crib.run("printf '%s' \"$x\""), (0, "rmx".into()));
}

#[test]
fn every_name_of_a_key_is_known_to_tmux() {
    let mut crib = Crib::new();
    let mut arguments =
        command("stty raw -echo; : >begun; dd bs=1 count=400 2>/dev/null | od -An -tx1 -v >keys; stty sane");
    arguments["wait"] = json!(false);
    crib.result("run_shell", arguments);
    toolcrib_tests::eventually("the terminal is raw", || crib.program.path("work/begun").exists());
    // tmux types what is no name as text: the name itself would stand among what is read.
    let names = [
        "Enter", "Escape", "Space", "Tab", "BTab", "BSpace", "Up", "Down", "Left", "Right", "Home", "End", "PageUp",
        "PgUp", "PPage", "PageDown", "PgDn", "NPage", "Insert", "IC", "Delete", "DC", "F1", "F2", "F3", "F4", "F5",
        "F6", "F7", "F8", "F9", "F10", "F11", "F12", "KPEnter", "KP0", "KP5", "KP9", "KP/", "KP*", "KP-", "KP+", "KP.",
        "^C", "^c", "C-M-Left", "S-Up", "enter", "ESCAPE", "C-Space",
    ];
    for half in names.chunks(40) {
        crib.type_keys(half);
    }
    crib.result("send-keys", declared(json!({ "literal_text": "~".repeat(400) })));
    let read = || std::fs::read_to_string(crib.program.path("work/keys")).unwrap_or_default();
    toolcrib_tests::eventually("all are read", || read().split_whitespace().count() >= 400);
    let bytes = read().split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect();
    let read = String::from_utf8(bytes).expect("text");
    for name in ["Enter", "Esc", "ESC", "Up", "Page", "Pg", "Home", "Ins", "Del", "F1", "KP", "C-", "S-", "^", "enter"]
    {
        assert!(!read.contains(name), "`{name}` was typed as text: {read}");
    }
}

#[test]
fn a_delay_in_milliseconds_is_an_older_form_and_stands_alone() {
    let mut crib = reading(&[]);
    let said = refused(&mut crib, json!({ "literal_text": "x", "delay": "1ms", "delay_ms": 1 }));
    assert_eq!(said, "invalid_arguments: `delay` and `delay_ms` were both given");
    assert_eq!(crib.failure("capture-pane", json!({ "delay": 0, "delay_ms": 0 })), said);
    let begin = std::time::Instant::now();
    crib.result("send-keys", declared(json!({ "literal_text": "la", "delay_ms": 300 })));
    crib.result("capture-pane", json!({ "delay_ms": 300 }));
    assert!(begin.elapsed() >= std::time::Duration::from_millis(600));
    assert_eq!(answered(&mut crib, "te"), "late");
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
