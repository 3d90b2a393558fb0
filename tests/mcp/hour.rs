//! What an ordinary hour of an agent asks its user with default settings.

use crate::rig::{Home, has_tmux};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use toolcrib_tests::mcp::{Client, Era, Question, decides, envelope};
use toolcrib_tests::shell::{command, with};
use toolcrib_tests::skip;

/// Commands of any hour.
const ORDINARY: [&str; 15] = [
    "git status",
    "git log --oneline -5",
    "ls -la",
    "cat a.txt",
    "rg -n TODO . || grep -rn TODO .",
    "sed -n 1,20p a.txt",
    "python3 -c 'print(1)'",
    "git diff",
    "wc -l a.txt",
    "find . -name '*.py'",
    "make -n test || true",
    "git add -A",
    "git commit -qm x --allow-empty",
    "echo ok > out.txt",
    "python3 -m py_compile a.txt || true",
];

#[expect(clippy::disallowed_methods, reason = "the user's own git")]
pub(crate) fn git(directory: &Path, words: &[&str]) {
    let git = std::process::Command::new("git").args(words).current_dir(directory).status();
    assert!(git.expect("git").success(), "{words:?}");
}

/// An agent in a repository, whose commands run in a full cell with default settings.
pub(crate) fn at_work() -> (Home, Client) {
    let home = Home::with_default_settings();
    home.program.write("work/a.txt", "TODO one\n");
    home.program.write("home/.gitconfig", "[user]\nname = a\nemail = a@example.com\n");
    home.program.write("outside", "");
    git(&home.program.path("work"), &["init", "-q"]);
    let client = home.serve(Era::Modern);
    (home, client)
}

/// Answers each question of a call with yes; returns how many there were.
pub(crate) fn questions(client: &mut Client, tool: &str, arguments: &Value) -> usize {
    let mut call = client.begin(tool, arguments.clone());
    for asked in 0.. {
        let result = client.result(call);
        if result["resultType"] != "input_required" {
            envelope(&result);
            return asked;
        }
        let question = Question::of(result, call, tool, arguments);
        call = client.reply(&question, decides("allow once"));
    }
    unreachable!("a call ends")
}

#[test]
fn ordinary_commands_in_a_full_cell_ask_nothing() {
    let (_home, mut client) = at_work();
    for text in ORDINARY {
        assert_eq!(questions(&mut client, "run_shell", &command(text)), 0, "{text}");
    }
    let write = json!({ "path": "new.txt", "content": "x\n" });
    assert_eq!(questions(&mut client, "write_file", &write), 0);
}

#[test]
fn what_leaves_the_cell_or_lasts_is_asked() {
    let (home, mut client) = at_work();
    let outside = home.program.path("outside").display().to_string();
    for (tool, arguments) in [
        ("write_file", json!({ "path": ".envrc", "content": "x\n" })),
        ("write_file", json!({ "path": outside, "content": "x\n" })),
        ("run_shell", with(command("true"), "privesc", true)),
    ] {
        assert_eq!(questions(&mut client, tool, &arguments), 1, "{tool} {arguments}");
    }
}

#[test]
fn panes_in_a_full_cell_ask_nothing() {
    if !has_tmux() {
        skip!("tmux is not installed");
    }
    let (_home, mut client) = at_work();
    let declared = |mut arguments: Value| {
        for (name, value) in command("").as_object().expect("an object") {
            if name != "command" {
                arguments[name] = value.clone();
            }
        }
        arguments
    };
    for (tool, arguments) in [
        ("tmux-create-pane", declared(json!({ "pane": "srv" }))),
        ("send-keys", declared(json!({ "pane": "srv", "literal_text": "echo 1\n" }))),
        ("capture-pane", json!({ "pane": "srv" })),
        ("tmux-kill-pane", declared(json!({ "pane": "srv" }))),
    ] {
        assert_eq!(questions(&mut client, tool, &arguments), 0, "{tool}");
    }
}

/// Whoever writes `shell_confirm = true` is asked about each command, and a policy can only ask more.
#[test]
fn settings_and_policies_ask_more() {
    let asked = |home: Home| {
        let mut client = home.serve(Era::Modern);
        questions(&mut client, "run_shell", &command("true"))
    };
    let user = |settings: &str| {
        let home = Home::with_default_settings();
        let file = home.program.path("config/toolcrib/toolcrib.toml");
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("settings");
        file.write_all(settings.as_bytes()).expect("they are written");
        home
    };
    assert_eq!(asked(user("[tools]\nshell_confirm = true\n")), 1);
    assert_eq!(asked(user("[confine]\nask = \"always\"\n")), 1);
    assert_eq!(asked(user("[tools]\nshell_confirm = true\n[confine]\nask = \"leaving\"\n")), 0);
    assert_eq!(asked(user("[confine]\nmode = \"off\"\n")), 1, "where there is no full cell");
    assert_eq!(asked(user("[confine]\nnetwork = \"full\"\n")), 1);
    let under = |policy: &str, settings: &str| {
        let home = user(settings);
        home.program.write("policy.toml", policy);
        let policy = home.program.path("policy.toml").display().to_string();
        asked(home.flags(&["--policy", &policy]))
    };
    assert_eq!(under("[confine]\nask = \"always\"\n", "[confine]\nask = \"leaving\"\n"), 1);
    assert_eq!(under("[tools]\nshell_confirm = true\n", ""), 1);
    assert_eq!(under("[confine]\nask = \"leaving\"\n", "[confine]\nask = \"always\"\n"), 1);
}

#[test]
fn a_question_says_what_is_new_since_the_last_one() {
    let home = Home::new();
    let mut client = home.serve(Era::Modern);
    let mut asked = |arguments: &Value| {
        let question = client.asked("run_shell", arguments);
        let words = question.words().to_owned();
        envelope(&client.outcome(&question, decides("allow once")));
        words
    };
    let news = |words: &str| words.contains("\nnew:") || words.contains("\nnew\n") || words.contains("new │");
    let first = asked(&command("true"));
    assert!(!news(&first), "{first}");
    let same = asked(&command("echo other"));
    assert!(!news(&same), "the text of a command is always new: {same}");
    let more = asked(&with(command("true"), "privesc", true));
    assert!(news(&more) && more.contains("needs more rights"), "{more}");
    let as_before = asked(&command("true"));
    assert!(!news(&as_before), "less is not told: {as_before}");
}
