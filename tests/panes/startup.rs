//! What a shell's start-up files can do to commands: hold them up, change the shell, end it.

use crate::crib::Crib;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, skip};

/// A crib whose panes run bash with this start-up file.
fn crib(startup: &str) -> Crib {
    let program = Program::with_panes();
    program.write("home/.bashrc", startup);
    Crib::on(program, &["tmux.default_shell=\"/bin/bash\""])
}

/// Holds the shell up until the test lets it go. The pane is there: a look brings it up, and does not need its shell.
fn held() -> Crib {
    let mut crib = crib("until [ -e ~/go ]; do sleep 0.02; done\n");
    crib.screen();
    crib
}

#[test]
fn a_startup_file_that_hangs_makes_the_pane_busy_within_the_wait() {
    let mut crib = held();
    let begin = Instant::now();
    let answer = crib.within("touch ran", "500ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    let message = answer["error"]["message"].as_str().expect("text");
    assert!(message.contains(&format!("pane shared of {}", crib.program.session())), "{message}");
    assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
}

#[test]
fn a_command_that_the_shell_did_not_take_up_never_runs() {
    let mut crib = held();
    let answer = crib.within("echo first >>ran.txt", "500ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    crib.program.write("home/go", "");
    assert_eq!(crib.run("echo second >>ran.txt").0, 0);
    // Whatever was typed before has been read by now.
    assert_eq!(crib.run("cat ran.txt"), (0, "second\n".into()));
}

#[test]
fn a_command_that_was_cancelled_before_the_shell_took_it_up_never_runs() {
    let mut crib = held();
    let id = crib.send("run_shell", command("echo first >>ran.txt"));
    toolcrib_tests::eventually("the command is typed", || {
        crib.program.tmux(&["capture-pane", "-p", "-t", "=toolcrib-agent:"]).contains("/t-")
    });
    crib.cancel(id);
    let answer = crib.answer();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("cancelled")), "{answer}");
    // The answer does not wait for it.
    toolcrib_tests::eventually("its text is taken back", || {
        let staged = crib.program.staged();
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        !staged.is_empty() && staged.into_iter().map(text).all(|text| !text.contains("first"))
    });
    crib.program.write("home/go", "");
    assert_eq!(crib.run("echo second >>ran.txt").0, 0);
    assert_eq!(crib.run("cat ran.txt"), (0, "second\n".into()));
}

#[test]
fn a_startup_file_that_ends_the_shell_is_said_to() {
    let mut crib = crib("exit 3\n");
    for attempt in 1..=3 {
        let said = crib.refusal(&format!("echo {attempt}"));
        // When the server went with its last shell, nobody can say whether the line was read.
        assert!(said.starts_with("unavailable: ") || said.starts_with("outcome_unknown: "), "{said}");
    }
}

#[test]
fn a_startup_file_that_becomes_another_shell_is_followed() {
    if !Path::new("/usr/bin/zsh").exists() {
        skip!("zsh is not installed");
    }
    let mut crib = crib("exec zsh -f\n");
    assert_eq!(crib.run("echo ${ZSH_VERSION:+zsh}; (exit 4)"), (4, "zsh\n".into()));
    assert_eq!(crib.run("echo on"), (0, "on\n".into()));
}

#[test]
fn settings_of_the_users_shell_change_no_output() {
    let startup = "echo noise\nset -o vi\nset -u\nset -f\nshopt -s extglob histverify\ntrap 'echo debug' DEBUG\nPS1='$(exit 9)% '\n\
                   PROMPT_COMMAND='echo prompt'\nHISTCONTROL=\nIFS=0\n";
    let mut crib = crib(startup);
    for (text, status, stdout) in [("echo 101\necho '*'", 0, "101\n*\n"), ("(exit 5)", 5, ""), ("printf x", 0, "x")] {
        assert_eq!(crib.run(text), (status, stdout.to_owned()), "`{text}`");
    }
}

#[test]
fn options_that_a_command_leaves_set_are_not_heard_in_later_output() {
    for option in ["set -C", "set -u", "set -f", "IFS=0"] {
        let mut crib = crib("");
        assert_eq!(crib.run(option), (0, String::new()), "{option}");
        for _ in 0..2 {
            assert_eq!(crib.run("echo 101; (exit 3)"), (3, "101\n".into()), "after `{option}`");
        }
    }
}

#[test]
fn what_would_turn_the_shells_output_away_is_refused() {
    let mut crib = crib("");
    for text in ["exec >log.txt", "exec 2>&1 >/dev/null; echo on", "true && exec >>log.txt 2>&1"] {
        let answer = crib.within(text, "500ms");
        assert_eq!(answer["error"]["kind"], "denied", "`{text}`: {answer}");
    }
    assert_eq!(crib.run("( exec >log.txt; echo away ); cat log.txt"), (0, "away\n".into()));
}

#[test]
fn a_trace_shows_the_command_and_nothing_of_the_machinery() {
    let mut crib = crib("");
    for option in ["set -x", "set -v"] {
        let (status, stdout) = crib.run(&format!("{option}; echo traced"));
        assert_eq!(status, 0);
        assert!(stdout.contains("traced\n") && !stdout.contains("toolcrib") && !stdout.contains("133"), "{stdout}");
        assert_eq!(crib.run("echo on"), (0, "on\n".into()), "after `{option}`");
    }
}

#[test]
fn functions_and_aliases_of_the_user_do_not_stand_in_for_the_machinery() {
    for startup in
        ["printf() { echo mine; }\n", "alias printf=false\nalias .=false\n", "echo() { false; }\nset() { false; }\n"]
    {
        let mut crib = crib(startup);
        for _ in 0..2 {
            assert_eq!(crib.within("true", "5s")["result"]["exit_code"], 0, "{startup}");
        }
    }
}
