//! Lines that somebody has begun at a shell's prompt: a command is never typed behind one, and what stood there is told.

use crate::crib::{Crib, SHARED};
use crate::people::{Person, once_quiet};
use crate::shells::{SHELLS, crib_with};
use serde_json::json;
use std::time::Duration;
use toolcrib_tests::envelope::notices;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{Program, eventually};

/// The record of where the cursor stands at an empty prompt.
fn is_settled(program: &Program) -> bool {
    !program.tmux(&["show-options", "-pqv", "-t", SHARED, "@toolcrib_prompt"]).trim().is_empty()
}

/// Somebody types this, key by key, and goes away.
fn begin_line(crib: &Crib, keys: &[&str], text: &str) {
    eventually("the prompt is settled", || is_settled(&crib.program));
    for key in keys {
        let _ = crib.program.tmux(&["send-keys", "-t", SHARED, key]);
    }
    let shown = || crib.program.tmux(&["capture-pane", "-p", "-t", SHARED]);
    eventually("what was typed is there", || shown().contains(text));
}

/// What was begun has not run, what was called has, and the line is told.
fn assert_not_run(crib: &mut Crib, what: &str) {
    let answer = crib.within("echo mine", "5s");
    assert_eq!(answer["result"]["stdout"], "mine\n", "{what}: {answer}");
    assert!(notices(&answer).contains("touch F"), "{what}: it was not told: {answer}");
    assert!(!crib.program.path("work/F").exists(), "{what}: it ran");
    assert_eq!(crib.run("echo again"), (0, "again\n".into()), "{what}");
}

#[test]
fn a_line_that_somebody_began_is_told_and_never_run() {
    let line = "true; touch F";
    let places: [(&str, &[&str]); 4] = [
        ("at its end", &[line]),
        ("at its beginning", &[line, "C-a"]),
        ("behind Escape", &[line, "Escape"]),
        ("behind a blank", &[" true; touch F", "C-a", "C-f"]),
    ];
    for shell in SHELLS {
        for (place, keys) in places {
            let Some(mut crib) = crib_with(shell) else { continue };
            assert_eq!(crib.run("true").0, 0);
            begin_line(&crib, keys, "touch F");
            if place == "behind a blank" {
                // Until it is there, it stands where it did at the empty prompt. A shell without an editor shows the keys.
                let under = || crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{cursor_character}"]);
                let shown = || crib.program.tmux(&["capture-pane", "-p", "-t", SHARED]);
                eventually("the cursor is behind it", || under() == "t\n" || shown().contains("^F"));
            }
            assert_not_run(&mut crib, &format!("{shell}, {place}"));
        }
    }
}

#[test]
fn a_line_that_was_begun_in_vi_mode_is_told_and_never_run() {
    for shell in ["bash", "zsh", "ash"] {
        for keys in [&["true; touch F", "Escape"][..], &["true; touch F", "Escape", "0"]] {
            let Some(mut crib) = crib_with(shell) else { continue };
            let mode = if shell == "zsh" { "bindkey -v" } else { "set -o vi" };
            assert_eq!(crib.run(mode).0, 0);
            begin_line(&crib, keys, "touch F");
            assert_not_run(&mut crib, &format!("{shell}, {keys:?}"));
        }
    }
}

/// The last key of a macro may not have come yet: what is typed next would be part of it.
#[test]
fn a_line_that_a_macro_wrote_is_told_and_never_run() {
    let Some(mut crib) = crib_with("bash") else { return };
    assert_eq!(crib.run(r#"bind '"\C-x\C-x": "true; touch F\C-a"'"#).0, 0);
    begin_line(&crib, &["C-x", "C-x"], "touch F");
    // The command that bound it shows the same text.
    let under = || crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{cursor_character}"]);
    eventually("the cursor is at its beginning", || under() == "t\n");
    assert_not_run(&mut crib, "a macro");
}

#[test]
fn a_line_that_an_attached_person_began_is_told_and_never_run() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let person = Person::attached_to(&crib.program);
    person.tmux(&["send-keys", "-t", "person", "-l", "true; touch F"]);
    eventually("what was typed is there", || person.sees().contains("touch F"));
    person.tmux(&["send-keys", "-t", "person", "C-a"]);
    let answer = once_quiet(&mut crib, "echo mine");
    assert_eq!(answer["result"]["stdout"], "mine\n", "{answer}");
    assert!(notices(&answer).contains("touch F"), "it was not told: {answer}");
    assert!(!crib.program.path("work/F").exists());
}

/// Nobody tells of a person who is gone, and the cursor may stand where it did.
#[test]
fn a_line_that_a_person_began_before_they_left_is_told_and_never_run() {
    let mut crib = Crib::new();
    // The pane is there, and no command has run in it.
    crib.result("capture-pane", json!({}));
    for round in ["before the first command", "after it"] {
        let person = Person::attached_to(&crib.program);
        person.tmux(&["send-keys", "-t", "person", "-l", " true; touch F"]);
        eventually("what was typed is there", || person.sees().contains("touch F"));
        person.tmux(&["send-keys", "-t", "person", "C-a"]);
        let _ = crib.program.tmux(&["detach-client", "-s", &format!("={}", crib.program.session())]);
        let people = || crib.program.tmux(&["list-clients", "-F", "#{client_control_mode}"]);
        eventually("they have left", || !people().lines().any(|mode| mode == "0"));
        let answer = once_quiet(&mut crib, "echo mine");
        assert_eq!(answer["result"]["stdout"], "mine\n", "{round}: {answer}");
        assert!(notices(&answer).contains("touch F"), "{round}: it was not told: {answer}");
        assert!(!crib.program.path("work/F").exists(), "{round}: it ran");
        eventually("the prompt is settled", || is_settled(&crib.program));
    }
}

/// A program in the pane can write what it likes into the options that say what is known of it.
#[test]
fn what_a_program_writes_into_the_options_of_its_pane_keeps_no_command_waiting() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    for forged in ["x|9 a", "|||", "#{q:#(touch F)}", "9 9 9 9"] {
        for option in ["@toolcrib_prompt", "@toolcrib_began", "@toolcrib_made", "@toolcrib_holder"] {
            let _ = crib.program.tmux(&["set-option", "-p", "-t", SHARED, option, forged]);
            let answer = crib.within("echo mine", "5s");
            assert_eq!(answer["result"]["stdout"], "mine\n", "{option} {forged}: {answer}");
        }
    }
    assert!(!crib.program.path("work/F").exists());
}

#[test]
fn keys_that_were_sent_are_not_run_with_the_next_command() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    crib.result("send-keys", declared(json!({ "literal_text": "true; touch F" })));
    assert_not_run(&mut crib, "send-keys");
    // Also when they were sent while a command ran.
    let id = crib.send("run_shell", command("echo begun >begun.txt; sleep 0.3"));
    eventually("the command began", || crib.program.path("work/begun.txt").exists());
    let keys = crib.send("send-keys", declared(json!({ "literal_text": "true; touch F" })));
    let answers = [crib.answer(), crib.answer()];
    assert!(
        answers.iter().all(|answer| answer["error"].is_null() && (answer["id"] == id || answer["id"] == keys)),
        "{answers:?}"
    );
    assert_not_run(&mut crib, "send-keys ahead");
}

/// C-c would run the user's traps, and stands on the screen of who watches.
#[test]
fn an_empty_prompt_is_left_alone() {
    for shell in SHELLS {
        let Some(mut crib) = crib_with(shell) else { continue };
        assert_eq!(crib.run("trap 'echo trapped >&2; touch F' INT").0, 0);
        for text in ["mkdir -p a/b/c", "cd a/b", "true", "cd c", "cd /", "echo on"] {
            assert_eq!(crib.run(text).0, 0, "{shell}: `{text}`");
            let column = || crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{cursor_x}:"]);
            let record = || crib.program.tmux(&["show-options", "-pqv", "-t", SHARED, "@toolcrib_prompt"]);
            eventually("the prompt is settled", || column().trim() != "0:" && record().starts_with(column().trim()));
        }
        assert_eq!(crib.run("true").0, 0);
        let shown = crib.program.tmux(&["capture-pane", "-p", "-S", "-", "-t", SHARED]);
        assert!(!shown.contains("^C") && !crib.program.path("work/F").exists(), "{shell}: {shown}");
    }
}

#[test]
fn what_a_person_runs_in_the_shell_itself_is_not_interrupted() {
    for shell in ["bash", "zsh", "ash"] {
        let Some(mut crib) = crib_with(shell) else { continue };
        assert_eq!(crib.run("true").0, 0);
        begin_line(&crib, &["read held", "Enter"], "read held");
        // What is on the screen may still be a line that the shell has not taken.
        let column = || crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{cursor_x}:"]);
        eventually("the shell has taken the line", || column().trim() == "0:");
        let answer = crib.within("echo never", "300ms");
        assert_eq!(answer["error"]["kind"], "busy", "{shell}: {answer}");
        let _ = crib.program.tmux(&["send-keys", "-t", SHARED, "word", "Enter"]);
        let answer = crib.within("echo $held", "5s");
        assert_eq!(answer["result"]["stdout"], "word\n", "{shell}: {answer}");
    }
}

#[test]
fn to_attach_is_not_to_type() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let _person = Person::attached_to(&crib.program);
    assert_eq!(crib.run("echo at once"), (0, "at once\n".into()));
}

#[test]
fn what_a_person_has_open_over_a_pane_is_told() {
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("true").0, 0);
    for (open, mode) in [("clock-mode", "clock-mode"), ("choose-tree", "tree-mode")] {
        let _ = crib.program.tmux(&[open, "-t", SHARED]);
        let said = crib.refusal(&format!("echo {mode}"));
        assert!(said.starts_with("busy: ") && said.contains(mode), "{said}");
        let _ = crib.program.tmux(&["send-keys", "-t", SHARED, "q"]);
        eventually("it is left", || {
            crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{pane_in_mode}"]).trim() == "0"
        });
    }
    let _ = crib.program.tmux(&["copy-mode", "-t", SHARED]);
    assert_eq!(crib.run("echo on"), (0, "on\n".into()));
}

/// Enter is no end of a line there, and C-u and C-c are text.
#[test]
fn a_terminal_that_was_left_raw_takes_commands() {
    for shell in SHELLS {
        for modes in ["stty -icrnl", "stty raw", "stty raw -echo"] {
            let Some(mut crib) = crib_with(shell) else { continue };
            assert_eq!(crib.run(modes).0, 0, "{shell}: {modes}");
            let answer = crib.within("echo taken", "3s");
            assert_eq!(answer["result"]["stdout"], "taken\n", "{shell}: {modes}: {answer}");
        }
    }
}

#[test]
fn a_program_that_died_in_the_alternate_screen_leaves_the_pane_usable() {
    for shell in SHELLS {
        let Some(mut crib) = crib_with(shell) else { continue };
        assert_eq!(crib.run("printf '\\033[?1049h'").0, 0);
        let answer = crib.within("echo back", "3s");
        assert_eq!(answer["result"]["stdout"], "back\n", "{shell}: {answer}");
        let alternate = crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{alternate_on}"]);
        assert_eq!(alternate, "0\n", "{shell}");
    }
}

/// The cursor stands where it did, on a blank; only the time tells.
#[test]
fn a_line_behind_a_blank_that_an_attached_person_began_is_told_and_never_run() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let person = Person::attached_to(&crib.program);
    assert_eq!(once_quiet(&mut crib, "echo first")["result"]["stdout"], "first\n");
    // What was recorded then knows of the person already.
    std::thread::sleep(Duration::from_secs(2));
    person.tmux(&["send-keys", "-t", "person", "-l", " true; touch F"]);
    eventually("what was typed is there", || person.sees().contains("touch F"));
    person.tmux(&["send-keys", "-t", "person", "C-a"]);
    let answer = once_quiet(&mut crib, "echo mine");
    assert_eq!(answer["result"]["stdout"], "mine\n", "{answer}");
    assert!(notices(&answer).contains("touch F"), "it was not told: {answer}");
    assert!(!crib.program.path("work/F").exists());
}

#[test]
fn keys_that_were_sent_ahead_are_not_run_with_a_later_command() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let id = crib.send("run_shell", command("echo begun >begun.txt; sleep 0.5"));
    eventually("the command began", || crib.program.path("work/begun.txt").exists());
    let keys = crib.send("send-keys", declared(json!({ "literal_text": "true; touch F" })));
    let answers = [crib.answer(), crib.answer()];
    assert!(answers.iter().all(|answer| answer["id"] == id || answer["id"] == keys), "{answers:?}");
    // By now the prompt behind the command would be on record.
    std::thread::sleep(Duration::from_secs(1));
    assert_not_run(&mut crib, "send-keys ahead");
}

/// Of a pane in which no command has run yet no prompt is on record.
#[test]
fn a_line_that_an_attached_person_began_in_a_new_pane_is_told_and_never_run() {
    let mut crib = Crib::with(&["tmux.max_panes=5"]);
    assert_eq!(crib.run("true").0, 0);
    let person = Person::attached_to(&crib.program);
    crib.result("tmux-create-pane", declared(json!({ "pane": "second" })));
    let _ = crib.program.tmux(&["select-window", "-t", "%1"]);
    std::thread::sleep(Duration::from_secs(1));
    person.tmux(&["send-keys", "-t", "person", "-l", " true; touch F"]);
    eventually("what was typed is there", || person.sees().contains("touch F"));
    person.tmux(&["send-keys", "-t", "person", "C-a"]);
    std::thread::sleep(Duration::from_secs(4));
    let mut mine = command("echo mine");
    mine["pane"] = json!("second");
    let answer = crib.call("run_shell", mine);
    assert_eq!(answer["result"]["stdout"], "mine\n", "{answer}");
    assert!(notices(&answer).contains("touch F"), "it was not told: {answer}");
    assert!(!crib.program.path("work/F").exists());
}
