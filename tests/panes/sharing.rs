//! Several hosts of one home, one after the other and at the same time: one pane, one command in it at a time.

use crate::crib::{ONE_PANE, serve, until_it_sleeps};
use serde_json::json;
use toolcrib_tests::processes::{kill, sleeping, unique_seconds};
use toolcrib_tests::shell::{command, waiting};
use toolcrib_tests::{Client, Program, eventually};

const PANE: &str = "=toolcrib-agent:";

/// Starts a command and waits until the pane is held by it.
fn occupy(program: &Program, host: &mut Client, text: &str) -> u64 {
    let id = host.send("run_shell", waiting(text, "20s"));
    eventually("the command holds the pane", || {
        program.tmux(&["show-options", "-pqv", "-t", PANE, "@toolcrib_holder"]).contains(text)
    });
    until_it_sleeps(program);
    id
}

#[test]
fn a_command_of_one_host_makes_the_other_wait() {
    let program = Program::with_panes();
    let (mut one, mut other) = (serve(&program, &[ONE_PANE]), serve(&program, &[ONE_PANE]));
    assert_eq!(other.within("echo ready", "10s")["result"]["stdout"], "ready\n");
    let id = occupy(&program, &mut one, "until [ -e go ]; do sleep 0.05; done; echo one");
    let answer = other.within("echo two", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    let message = answer["error"]["message"].to_string();
    assert!(message.contains("it runs `until [ -e go ]; do sleep 0.05; done; echo one`"), "{answer}");
    program.write("work/go", "");
    let answer = other.within("echo three", "10s");
    assert_eq!(answer["result"]["stdout"], "three\n", "{answer}");
    let answer = one.answer();
    assert_eq!((&answer["id"], &answer["result"]["stdout"]), (&json!(id), &json!("one\n")), "{answer}");
}

#[test]
fn outputs_of_two_hosts_are_never_mixed() {
    let program = Program::with_panes();
    let mut hosts = [serve(&program, &[]), serve(&program, &[])];
    for (number, host) in hosts.iter_mut().enumerate() {
        assert_eq!(host.within("true", "10s")["result"]["exit_code"], 0, "host {number}");
    }
    let mut sent = Vec::new();
    for round in 1..=5 {
        for (number, host) in hosts.iter_mut().enumerate() {
            let text = format!("echo {number}-{round}; sleep 0.05; echo {number}-{round}");
            let id = host.send("run_shell", waiting(&text, "20s"));
            sent.push((number, id, format!("{number}-{round}\n")));
        }
    }
    for (number, id, line) in sent {
        let answer = hosts[number].answer_to(id);
        assert_eq!(answer["result"]["stdout"], json!(line.repeat(2)), "{answer}");
    }
}

#[test]
fn hosts_share_the_shell_and_its_state() {
    let program = Program::with_panes();
    let (mut one, mut other) = (serve(&program, &[]), serve(&program, &[]));
    assert_eq!(one.within("kept=here", "10s")["result"]["exit_code"], 0);
    assert_eq!(other.within("echo $kept", "10s")["result"]["stdout"], "here\n");
    let panes = program.tmux(&["list-panes", "-a", "-F", "#{session_name}"]);
    assert_eq!(panes, format!("{}\n", program.session()));
}

#[test]
fn a_command_outlives_a_host_that_is_killed_and_the_next_host_waits_for_it() {
    let program = Program::with_panes();
    let mut one = serve(&program, &[ONE_PANE]);
    assert_eq!(one.within("kept=here", "10s")["result"]["exit_code"], 0);
    // The test ends its `sleep`.
    let seconds = unique_seconds();
    occupy(&program, &mut one, &format!("sleep {seconds}; echo done >done.txt"));
    one.kill();
    let mut next = serve(&program, &[ONE_PANE]);
    // A look finds the session, however long that takes.
    next.screen();
    let answer = next.within("echo early", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    assert!(!program.path("work/done.txt").exists(), "it has ended");
    kill(&sleeping(&seconds));
    let answer = next.within("cat done.txt; echo $kept", "10s");
    assert_eq!(answer["result"]["stdout"], "done\nhere\n", "{answer}");
}

/// The process in the foreground ends while it is looked at, and another one comes.
#[test]
fn a_loop_of_short_programs_is_waited_for_though_its_host_is_gone() {
    let program = Program::with_panes();
    let mut one = serve(&program, &[ONE_PANE]);
    assert_eq!(one.within("kept=here", "10s")["result"]["exit_code"], 0);
    let _ = one.send("run_shell", command("touch begun; until [ -e go ]; do /bin/true; done; echo done >done.txt"));
    eventually("it has begun", || program.path("work/begun").exists());
    one.kill();
    let mut next = serve(&program, &[ONE_PANE]);
    next.screen();
    for _ in 0..10 {
        let answer = next.within("echo early", "300ms");
        assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    }
    program.write("work/go", "");
    let answer = next.within("cat done.txt; echo $kept", "10s");
    assert_eq!(answer["result"]["stdout"], "done\nhere\n", "{answer}");
}

#[test]
fn a_host_that_is_killed_between_commands_holds_nothing() {
    let program = Program::with_panes();
    let mut one = serve(&program, &[]);
    assert_eq!(one.within("kept=here", "10s")["result"]["exit_code"], 0);
    one.kill();
    let answer = serve(&program, &[]).within("echo $kept", "5s");
    assert_eq!(answer["result"]["stdout"], "here\n", "{answer}");
}

#[test]
fn a_holder_that_is_gone_with_its_command_is_taken_over_from() {
    let program = Program::with_panes();
    let mut host = serve(&program, &[]);
    assert_eq!(host.within("true", "10s")["result"]["exit_code"], 0);
    let _ = program.tmux(&["set-option", "-p", "-t", PANE, "@toolcrib_holder", "999999999 0123456789abcdef sleep 100"]);
    let held = program.tmux(&["show-options", "-pqv", "-t", PANE, "@toolcrib_holder"]);
    assert!(held.contains("sleep 100"), "{held}");
    let answer = host.within("echo taken", "5s");
    assert_eq!(answer["result"]["stdout"], "taken\n", "{answer}");
}

#[test]
fn what_a_program_puts_in_the_holders_place_holds_nothing() {
    let program = Program::with_panes();
    let mut host = serve(&program, &[]);
    assert_eq!(host.within("true", "10s")["result"]["exit_code"], 0);
    for odd in ["x", "42", "42 0g", "42 0a'; kill-server; '", "#(kill-server) 0a", "42 0a\nmore", "#{pid} 0a rm"] {
        let _ = program.tmux(&["set-option", "-p", "-t", PANE, "@toolcrib_holder", odd]);
        let answer = host.within("echo free", "5s");
        assert_eq!(answer["result"]["stdout"], "free\n", "{odd}: {answer}");
        let left = program.tmux(&["show-options", "-pqv", "-t", PANE, "@toolcrib_holder"]);
        assert_ne!(left.trim_end_matches('\n'), odd);
    }
}
