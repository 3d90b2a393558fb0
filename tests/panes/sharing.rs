//! Several hosts of one home, one after the other and at the same time: one pane, one command in it at a time.

use crate::crib::{command, serve};
use serde_json::{Value, json};
use toolcrib_tests::{Program, Running, eventually};

const PANE: &str = "=toolcrib-agent:";

fn send(host: &mut Running, id: u64, text: &str, wait: &str) {
    let mut arguments = command(text);
    arguments["wait"] = wait.into();
    host.send(&format!("{}\n", json!({ "id": id, "tool": "run_shell", "arguments": arguments })));
}

fn ask(host: &mut Running, text: &str, wait: &str) -> Value {
    send(host, 0, text, wait);
    host.line()
}

/// Starts a command and waits until the pane is held by it.
fn occupy(program: &Program, host: &mut Running, id: u64, text: &str) {
    send(host, id, text, "20s");
    eventually("the command holds the pane", || {
        program.tmux(&["show-options", "-pqv", "-t", PANE, "@toolcrib_holder"]).contains(text)
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
}

#[test]
fn a_command_of_one_host_makes_the_other_wait() {
    let program = Program::with_panes();
    let (mut one, mut other) = (serve(&program, &[]), serve(&program, &[]));
    assert_eq!(ask(&mut other, "echo ready", "10s")["result"]["stdout"], "ready\n");
    occupy(&program, &mut one, 1, "sleep 1.5; echo one");
    let answer = ask(&mut other, "echo two", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    assert!(answer["error"]["message"].to_string().contains("it runs `sleep 1.5; echo one`"), "{answer}");
    let answer = ask(&mut other, "echo three", "10s");
    assert_eq!(answer["result"]["stdout"], "three\n", "{answer}");
    let answer = one.line();
    assert_eq!((&answer["id"], &answer["result"]["stdout"]), (&json!(1), &json!("one\n")), "{answer}");
}

#[test]
fn outputs_of_two_hosts_are_never_mixed() {
    let program = Program::with_panes();
    let mut hosts = [serve(&program, &[]), serve(&program, &[])];
    for (number, host) in hosts.iter_mut().enumerate() {
        assert_eq!(ask(host, "true", "10s")["result"]["exit_code"], 0, "host {number}");
    }
    for id in 1..=5 {
        for (number, host) in hosts.iter_mut().enumerate() {
            send(host, id, &format!("echo {number}-{id}; sleep 0.05; echo {number}-{id}"), "20s");
        }
    }
    for (number, host) in hosts.iter_mut().enumerate() {
        for _ in 1..=5 {
            let answer = host.line();
            let line = format!("{number}-{}\n", answer["id"]);
            assert_eq!(answer["result"]["stdout"], json!(line.repeat(2)), "{answer}");
        }
    }
}

#[test]
fn hosts_share_the_shell_and_its_state() {
    let program = Program::with_panes();
    let (mut one, mut other) = (serve(&program, &[]), serve(&program, &[]));
    assert_eq!(ask(&mut one, "kept=here", "10s")["result"]["exit_code"], 0);
    assert_eq!(ask(&mut other, "echo $kept", "10s")["result"]["stdout"], "here\n");
    let panes = program.tmux(&["list-panes", "-a", "-F", "#{session_name}"]);
    assert_eq!(panes, format!("{}\n", program.session()));
}

#[test]
fn a_command_outlives_a_host_that_is_killed_and_the_next_host_waits_for_it() {
    let program = Program::with_panes();
    let mut one = serve(&program, &[]);
    assert_eq!(ask(&mut one, "kept=here", "10s")["result"]["exit_code"], 0);
    occupy(&program, &mut one, 1, "sleep 3; echo done >done.txt");
    one.child.kill().expect("it is killed");
    one.child.wait().expect("it ends");
    let mut next = serve(&program, &[]);
    let answer = ask(&mut next, "echo early", "300ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    assert!(!program.path("work/done.txt").exists(), "the test was too slow");
    let answer = ask(&mut next, "cat done.txt; echo $kept", "10s");
    assert_eq!(answer["result"]["stdout"], "done\nhere\n", "{answer}");
}

#[test]
fn a_host_that_is_killed_between_commands_holds_nothing() {
    let program = Program::with_panes();
    let mut one = serve(&program, &[]);
    assert_eq!(ask(&mut one, "kept=here", "10s")["result"]["exit_code"], 0);
    one.child.kill().expect("it is killed");
    one.child.wait().expect("it ends");
    let answer = ask(&mut serve(&program, &[]), "echo $kept", "5s");
    assert_eq!(answer["result"]["stdout"], "here\n", "{answer}");
}

#[test]
fn a_holder_that_is_gone_with_its_command_is_taken_over_from() {
    let program = Program::with_panes();
    let mut host = serve(&program, &[]);
    assert_eq!(ask(&mut host, "true", "10s")["result"]["exit_code"], 0);
    let _ = program.tmux(&["set-option", "-p", "-t", PANE, "@toolcrib_holder", "999999999 0123456789abcdef sleep 100"]);
    let held = program.tmux(&["show-options", "-pqv", "-t", PANE, "@toolcrib_holder"]);
    assert!(held.contains("sleep 100"), "{held}");
    let answer = ask(&mut host, "echo taken", "5s");
    assert_eq!(answer["result"]["stdout"], "taken\n", "{answer}");
}
