//! Rules on the command line and at a terminal: written, listed, tried, removed, and kept by an answer.

use serde_json::json;
use std::fs;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, Terminal, skip};

const SETTINGS: &str = "config/toolcrib/toolcrib.toml";

fn settings(program: &Program) -> String {
    fs::read_to_string(program.path(SETTINGS)).unwrap_or_default()
}

/// Makes a rule, with these words after `add`.
fn add(program: &Program, words: &[&str]) {
    succeeded(&program.run(&[&["policy", "rules", "add"], words].concat()));
}

#[test]
fn a_rule_is_added_listed_and_removed_and_comments_stay() {
    let program = Program::new();
    let before = format!("{}\n# mine\n[limits]\ncall_ms = 5000 # short\n", settings(&program));
    program.write(SETTINGS, &before);
    add(&program, &["allow", "--command", "ls *", "--until", "2999-01-01"]);
    add(&program, &["deny", "--host", "t.example.com:443"]);
    let written = settings(&program);
    assert!(written.contains("# mine\n") && written.contains("call_ms = 5000 # short\n"), "{written}");
    assert!(written.contains("[[allow]]\ncommand = \"ls *\"\nuntil = \"2999-01-01\"\n"), "{written}");
    let list = json_of(&program.run(&["policy", "rules", "list", "--json"]));
    let rules: Vec<_> =
        list.as_array().unwrap().iter().map(|rule| (rule["number"].clone(), rule["rule"].clone())).collect();
    assert_eq!(
        rules,
        [
            (json!(1), json!({ "command": "ls *", "until": "2999-01-01" })),
            (json!(2), json!({ "host": "t.example.com:443" })),
        ]
    );
    succeeded(&program.run(&["policy", "rules", "remove", "1"]));
    let written = settings(&program);
    assert!(!written.contains("ls *") && written.contains("t.example.com:443"), "{written}");
    let gone = program.run(&["policy", "rules", "remove", "2"]);
    assert!(stderr(&gone).contains("there is no rule 2 in your settings"), "{}", stderr(&gone));
}

#[test]
fn a_rule_that_cannot_be_kept_is_not_written() {
    let program = Program::new();
    let before = settings(&program);
    for (words, why) in [
        (&["allow", "--command", "a; b"][..], "is not one plain command"),
        (&["allow", "--command", "sudo *"], "has a `*` after `sudo`"),
        (&["allow", "--write", "notes"], "has a relative `notes`"),
        (&["deny", "--host", "https://a.example"], "has a `host` that cannot be used"),
        (&["allow"], "is about nothing"),
    ] {
        let output = program.run(&[&["policy", "rules", "add"], words].concat());
        assert_ne!(code(&output), 0);
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    assert_eq!(settings(&program), before);
}

#[test]
fn a_test_says_which_rule_decides_and_why_none_does() {
    let program = Program::new();
    add(&program, &["allow", "--command", "ls *"]);
    add(&program, &["deny", "--command", "rm -rf"]);
    let answer = |text: &str| json_of(&program.run(&["policy", "rules", "test", "--json", text]));
    assert_eq!(answer("ls -la")["answer"], "allowed");
    assert_eq!(answer("ls; rm -r -f x")["answer"], "denied");
    let asked = answer("ls && wc x");
    assert_eq!(asked["answer"], "asked");
    assert_eq!(asked["commands"][1]["why_not"], "no rule is about `wc`");
    assert_eq!(answer("ls > x")["why_not"], "a redirection writes `x`");
    assert!(stdout(&program.run(&["policy", "rules", "test", "ls"])).starts_with("allowed\n"));
}

#[test]
fn a_rule_answers_in_the_place_of_a_person() {
    let program = Program::new();
    let call = |command: &str| program.call(&["run_shell", &harmless(command).to_string()]);
    assert_eq!(call("echo hello").0, 5);
    add(&program, &["allow", "--command", "echo *"]);
    let (code, answer) = call("echo hello");
    assert_eq!((code, answer["result"]["stdout"].as_str()), (0, Some("hello\n")), "{answer}");
    assert_eq!(call("echo hello; touch ran").0, 5);
    assert_eq!(call("echo hello > ran").0, 5);
    assert_eq!(program.call(&["--set", "approval.rules=false", "run_shell", &harmless("echo hello").to_string()]).0, 5);
    add(&program, &["deny", "--command", "echo"]);
    let (code, answer) = program.call(&["--yes", "run_shell", &harmless("echo hello").to_string()]);
    assert_eq!(code, 5, "{answer}");
    assert_eq!(answer["error"]["message"], "denied by a rule of yours");
    let hint = answer["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("`toolcrib policy rules remove 2`"), "{hint}");
}

#[test]
fn an_answer_is_kept_once_its_lines_were_seen() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::new(&Terminal::call(&harmless("touch ran")));
    terminal.asked(1);
    terminal.press(&["a", "Enter"]);
    terminal.shows("command = \"touch ran\"");
    assert!(!settings(&terminal.program).contains("touch ran") && !terminal.has("ran"));
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.has("ran"));
    assert!(settings(&terminal.program).contains("[[allow]]\ncommand = \"touch ran\"\n"));
}

#[test]
fn an_answer_that_is_not_confirmed_is_asked_again() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::new(&Terminal::call(&harmless("touch ran")));
    terminal.asked(1);
    terminal.press(&["a", "Enter"]);
    terminal.shows("Write this into");
    terminal.press(&["n", "Enter"]);
    terminal.asked(2);
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!settings(&terminal.program).contains("touch ran"));
}

#[test]
fn never_refuses_now_and_from_then_on() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let terminal = Terminal::new(&Terminal::call(&harmless("touch ran")));
    terminal.asked(1);
    terminal.press(&["never", "Enter"]);
    terminal.shows("[[deny]]");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("ran"));
    let (code, answer) = terminal.program.call(&["--yes", "run_shell", &harmless("touch ran").to_string()]);
    assert_eq!((code, answer["error"]["message"].as_str()), (5, Some("denied by a rule of yours")), "{answer}");
}

/// By its name alone: also where nobody would be asked.
#[test]
fn a_rule_denies_each_call_of_a_tool() {
    let program = Program::new();
    program.write("work/a", "one\n");
    let read = || program.call(&["read_file", &json!({ "path": "a" }).to_string()]);
    let offers = |name: &str| {
        let list = json_of(&program.run(&["tools", "--format", "mcp"]));
        list["tools"].as_array().expect("tools").iter().any(|tool| tool["name"] == name)
    };
    assert!(read().0 == 0 && offers("read_file"));
    add(&program, &["deny", "--tool", "read_*"]);
    let (code, answer) = read();
    assert_eq!((code, answer["error"]["message"].as_str()), (5, Some("denied by a rule of yours")), "{answer}");
    let hint = answer["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("tool = \"read_*\"") && hint.contains("`toolcrib policy rules remove 1`"), "{hint}");
    assert!(!offers("read_file") && offers("write_file"));
    let shown = program.run(&["tools", "--why", "read_file"]);
    assert!(stdout(&shown).contains("denied by a rule of yours"), "{}", stdout(&shown));
    let tested = |name: &str| json_of(&program.run(&["policy", "rules", "test", "--json", "--tool", name]));
    assert_eq!(tested("read_file")["answer"], "denied");
    assert_eq!(tested("write_file"), json!({ "answer": "not denied", "denied_by": [] }));
    succeeded(&program.run(&["policy", "rules", "remove", "1"]));
    add(&program, &["deny", "--tool", "read_file", "--workspace", "/elsewhere"]);
    assert!(read().0 == 0 && offers("read_file"));
}

#[test]
fn each_change_of_a_rule_is_on_record() {
    let program = Program::new();
    add(&program, &["deny", "--host", "t.example.com"]);
    succeeded(&program.run(&["policy", "rules", "remove", "1"]));
    let trail = fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    for told in ["rule added by policy rules add: ", "rule removed by policy rules remove: "] {
        let line = trail.lines().find(|line| line.contains(told)).unwrap_or_else(|| panic!("{told}: {trail}"));
        assert!(
            line.contains("\"changed\"") && line.contains("t.example.com") && line.contains("toolcrib.toml"),
            "{line}"
        );
    }
}

/// Nobody agrees to what was not on the screen.
#[test]
fn rules_that_do_not_fit_on_the_screen_are_paged() {
    if !Terminal::is_there() {
        skip!("tmux is not installed");
    }
    let names: Vec<String> = ('a'..='e').map(|letter| letter.to_string().repeat(80)).collect();
    let text = names.iter().map(|name| format!("touch {name}")).collect::<Vec<_>>().join("; ");
    let terminal = Terminal::sized((90, 19), &Terminal::call(&harmless(&text)));
    terminal.asked(1);
    terminal.press(&["a", "Enter"]);
    terminal.shows("Enter shows more");
    terminal.press(&["y", "Enter"]);
    // The first one has left the screen.
    terminal.asked(1);
    assert!(!settings(&terminal.program).contains("touch"));
    terminal.press(&["a", "Enter"]);
    terminal.shows("Enter shows more");
    terminal.press(&["Enter"]);
    terminal.shows("Write this into");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    let written = settings(&terminal.program);
    assert!(names.iter().all(|name| written.contains(name)), "{written}");
    let trail = fs::read_to_string(terminal.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    assert_eq!(trail.matches("rule added by an answer: ").count(), 5, "{trail}");
}
