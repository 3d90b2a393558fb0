//! Ends of commands that no mark tells: whatever a command, a signal or a person did, the pane takes the next command.

use crate::crib::{Crib, SHARED, until_it_sleeps};
use crate::shells::{SHELLS, crib_started, crib_with};
use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib_tests::outcome::stdout;
use toolcrib_tests::shell::{command, declared, waiting};
use toolcrib_tests::{eventually, is_long};

/// The pane takes a command.
fn assert_free(crib: &mut Crib, what: &str) {
    let arguments = waiting("echo free", "15s");
    let id = crib.send("run_shell", arguments);
    let answer = crib.answer_to(id);
    assert_eq!(answer["result"]["stdout"], "free\n", "{what}: {answer}");
}

#[test]
fn an_interrupt_at_any_moment_frees_the_pane() {
    let rounds = if is_long() { 300 } else { 12 };
    for shell in SHELLS {
        let Some(mut crib) = crib_with(shell) else { continue };
        assert_eq!(crib.run("true").0, 0);
        for round in 0..rounds {
            // Within 20 ms of its beginning, or of its end.
            let (text, after) = match round % 2 {
                0 => ("sleep 5", Duration::from_millis(round % 20)),
                _ => ("sleep 0.03", Duration::from_millis(25 + round % 20)),
            };
            let id = crib.send("run_shell", command(text));
            std::thread::sleep(after);
            crib.cancel(id);
            let answer = crib.answer_to(id);
            assert!(
                answer["error"]["kind"] == "cancelled" || answer["result"]["exit_code"] == 0,
                "{shell}, {round}: {answer}"
            );
            assert_free(&mut crib, &format!("{shell}, {round}"));
        }
    }
}

#[test]
fn traps_of_the_user_stay_and_an_interrupt_ends_the_whole_command() {
    for shell in SHELLS {
        let Some(mut crib) = crib_with(shell) else { continue };
        assert_eq!(crib.run("trap 'echo caught' INT").0, 0);
        assert!(crib.run("trap").1.contains("echo caught"), "{shell}");
        assert_eq!(crib.run("trap - INT").0, 0);
        let id = crib.send("run_shell", command("f() { echo >begun.txt; sleep 5; }; f; echo after >after.txt"));
        eventually("the command began", || crib.program.path("work/begun.txt").exists());
        until_it_sleeps(&crib.program);
        crib.cancel(id);
        assert_eq!(crib.answer()["error"]["kind"], "cancelled", "{shell}");
        assert_free(&mut crib, shell);
        assert!(!crib.program.path("work/after.txt").exists(), "{shell}: it went on");
    }
}

#[test]
fn what_ends_all_that_a_shell_sources_frees_the_pane() {
    for (shell, startup, text, status) in [
        ("zsh", "", "sh -c 'kill -QUIT $$'; true", 131),
        ("zsh", "setopt ERR_RETURN\n", "(exit 3); true", 3),
        ("dash", "", "sh -c 'kill -INT $$'; true", 130),
        ("ash", "", "sh -c 'kill -INT $$'; true", 130),
        ("bash", "", "sh -c 'kill -INT $$'; true", 130),
        ("bash", "enable -n printf\n", "(exit 4)", 4),
        ("bash", "builtin() { :; }\n", "(exit 5)", 5),
        ("bash", "command() { :; }\n", "(exit 6)", 6),
    ] {
        let Some(mut crib) = crib_started(shell, startup) else { continue };
        assert_eq!(crib.within(text, "5s")["result"]["exit_code"], status, "{shell}: {startup}: {text}");
        assert_free(&mut crib, &format!("{shell}: {startup}: {text}"));
    }
}

#[test]
fn a_shell_whose_hooks_cannot_be_changed_runs_a_command_once_and_comes_back() {
    for (shell, startup) in [
        ("bash", "readonly PROMPT_COMMAND\n"),
        ("bash", "PROMPT_COMMAND=true; readonly PROMPT_COMMAND\n"),
        ("zsh", "readonly precmd_functions\n"),
    ] {
        let Some(mut crib) = crib_started(shell, startup) else { continue };
        assert_eq!(crib.run("echo once >>ran.txt"), (0, String::new()), "{shell}: {startup}");
        let id = crib.send("run_shell", command("echo >begun.txt; sleep 20"));
        eventually("the command began", || crib.program.path("work/begun.txt").exists());
        // Somebody at the pane ends it, and no hook tells.
        until_it_sleeps(&crib.program);
        let _ = crib.program.tmux(&["send-keys", "-t", SHARED, "C-c"]);
        let begin = Instant::now();
        let answer = crib.answer();
        assert_eq!(
            (&answer["id"], &answer["error"]["kind"]),
            (&json!(id), &json!("outcome_unknown")),
            "{shell}: {answer}"
        );
        assert!(begin.elapsed() < Duration::from_secs(8), "{shell}: it took {:?}", begin.elapsed());
        assert_free(&mut crib, shell);
        assert_eq!(crib.run("cat ran.txt"), (0, "once\n".into()), "{shell}");
    }
}

/// What the kernel tells is no more than it is: a shell that reads input for its command has not ended it.
#[test]
fn a_shell_that_reads_for_its_command_is_still_running_it() {
    for shell in SHELLS {
        let Some(mut crib) = crib_with(shell) else { continue };
        let id = crib.send("run_shell", command("touch reading; read word; echo \"[$word]\""));
        eventually("the command began", || crib.program.path("work/reading").exists());
        // Longer than the first looks at it.
        std::thread::sleep(Duration::from_millis(2500));
        let _ = crib.program.tmux(&["send-keys", "-t", SHARED, "late", "Enter"]);
        let answer = crib.answer();
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer["result"]["stdout"].as_str().is_some_and(|text| text.contains("[late]")), "{shell}: {answer}");
    }
}

#[test]
fn a_holder_that_is_gone_does_not_hold_a_pane_whose_shell_waits() {
    for shell in SHELLS {
        let Some(mut crib) = crib_with(shell) else { continue };
        let _ = crib.send("run_shell", command("echo >begun.txt; sleep 20"));
        until_it_sleeps(&crib.program);
        crib.kill();
        let _ = crib.program.tmux(&["send-keys", "-t", SHARED, "C-c"]);
        let mut crib = crib.again();
        let answer = crib.within("echo free", "10s");
        assert_eq!(answer["result"]["stdout"], "free\n", "{shell}: {answer}");
    }
}

#[test]
fn a_person_can_always_end_the_shared_pane() {
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("true").0, 0);
    let answer = crib.within("kept=here; trap '' INT; while :; do :; done", "2s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    crib.type_keys(&["C-c"]);
    assert_eq!(crib.within("true", "200ms")["error"]["kind"], "busy");
    for pane in ["shared", " Default "] {
        let said = crib.failure("tmux-kill-pane", declared(json!({ "pane": pane })));
        assert!(said.starts_with("denied: the shared pane of the default session stays"), "{said}");
    }
    let ended = crib.program.run(&["panes", "restart"]);
    assert!(stdout(&ended).contains("the next command begins a new shell"), "{ended:?}");
    // Nothing that was known of the shell before counts for this one.
    for option in ["@toolcrib_prompt", "@toolcrib_began", "@toolcrib_holder"] {
        assert_eq!(
            crib.program.tmux(&["show-options", "-pqv", "-t", "=toolcrib-agent:", option]).trim(),
            "",
            "{option}"
        );
    }
    assert_eq!(crib.run("echo \"[$kept]\""), (0, "[]\n".into()));
    assert!(!crib.screen().contains("^C"), "{}", crib.screen());
}

/// `sh` in a pane of bash may be dash.
#[test]
fn a_shell_that_was_opened_by_hand_runs_commands_whatever_it_is() {
    for inner in SHELLS {
        let (Some(mut crib), Some(path)) = (crib_with("bash"), crate::shells::path(inner)) else { continue };
        assert_eq!(crib.run("kept=outer").0, 0);
        // Through a name that tells nothing of what it is.
        std::os::unix::fs::symlink(path, crib.program.path("home/sh")).expect("a link");
        crib.result("send-keys", declared(json!({ "literal_text": "~/sh", "enter": true })));
        eventually("the shell runs", || {
            crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{pane_current_command}"]) == "sh\n"
        });
        let answer = crib.within("echo \"[$kept]\"; (exit 7)", "5s");
        assert_eq!(
            (&answer["result"]["stdout"], &answer["result"]["exit_code"]),
            (&json!("[]\n"), &json!(7)),
            "{inner}: {answer}"
        );
        crib.result("send-keys", declared(json!({ "literal_text": "exit", "enter": true })));
        eventually("it has ended", || {
            crib.program.tmux(&["display-message", "-p", "-t", SHARED, "#{pane_current_command}"]) == "bash\n"
        });
        assert_eq!(crib.run("echo \"[$kept]\""), (0, "[outer]\n".into()), "{inner}");
    }
}

#[test]
fn a_server_that_has_stopped_holds_no_call_up_beyond_its_wait() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let server = crib.program.tmux(&["display-message", "-p", "#{pid}"]).trim().to_owned();
    let signal = |signal: &str| toolcrib_tests::signal(&server, signal);
    signal("STOP");
    let begin = Instant::now();
    let answer = crib.within("touch F", "1s");
    let took = begin.elapsed();
    signal("CONT");
    assert_eq!(answer["error"]["kind"], "unavailable", "{answer}");
    assert!(took < Duration::from_secs(12), "it took {took:?}");
    assert_free(&mut crib, "a server that goes on");
    assert!(!crib.program.path("work/F").exists(), "nothing was to run");
}

#[test]
fn a_staged_command_that_is_read_again_does_not_run_again() {
    for shell in SHELLS {
        let Some(mut crib) = crib_with(shell) else { continue };
        assert_eq!(crib.run("echo once >>ran.txt").0, 0);
        let staged = crib.program.staged();
        let text = format!("\\. '{}'; echo re''ad >read.txt", staged[0].display());
        crib.result("send-keys", declared(json!({ "literal_text": text, "enter": true })));
        eventually("it was read", || crib.program.path("work/read.txt").exists());
        let ran = std::fs::read_to_string(crib.program.path("work/ran.txt")).expect("it ran");
        assert_eq!(ran, "once\n", "{shell}");
    }
}

#[test]
fn a_command_that_outlasted_its_wait_and_told_no_end_frees_the_pane() {
    let Some(mut crib) = crib_started("bash", "readonly PROMPT_COMMAND\n") else { return };
    assert_eq!(crib.run("true").0, 0);
    assert_eq!(crib.within("sleep 20", "2s")["error"]["kind"], "timed_out");
    until_it_sleeps(&crib.program);
    let _ = crib.program.tmux(&["send-keys", "-t", SHARED, "C-c"]);
    std::thread::sleep(Duration::from_secs(2));
    assert_free(&mut crib, "after C-c");
}
