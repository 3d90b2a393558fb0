//! `toolcrib calls`: what runs in other programs of this user, and an end to it.

use serde_json::{Value, json};
use std::os::unix::net::UnixListener;
use toolcrib_tests::client::request;
use toolcrib_tests::outcome::{NO_QUESTION, code, ended, stderr};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, Running, eventually};

/// A program with a call that runs until it is ended.
fn busy(program: &Program) -> Running {
    let mut running = program.start(&[&NO_QUESTION[..], &["run"]].concat());
    running.write(request(1, "run_shell", &harmless("touch begun; exec sleep 60")));
    eventually("the call runs", || program.path("work/begun").exists());
    eventually("it is listed", || !listed(program).is_empty());
    running
}

fn listed(program: &Program) -> Vec<Value> {
    let output = program.run(&["calls", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("a list")
}

#[test]
fn a_call_of_another_program_is_listed_and_ended() {
    let program = Program::new();
    assert_eq!(listed(&program), [] as [Value; 0]);
    let mut running = busy(&program);
    let calls = listed(&program);
    assert_eq!(calls.len(), 1);
    let call = &calls[0];
    assert_eq!((&call["tool"], &call["backend"], &call["asks"]), (&json!("run_shell"), &json!("local"), &json!(false)));
    assert_eq!((&call["principal"], &call["process"]), (&json!("cli:agent"), &json!(running.pid())));
    let id = call["id"].as_str().expect("an id");
    let table = program.run(&["calls"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains(&id[..8]) && table.contains("run_shell") && table.contains("s ago"), "{table}");

    let ending = program.run(&["calls", "--cancel", &id[..8]]);
    assert_eq!((code(&ending), ending.stdout.as_slice()), (0, &b"`run_shell` is being cancelled\n"[..]));
    assert_eq!(running.line()["error"]["kind"], "cancelled");
    eventually("it is listed no more", || listed(&program).is_empty());
    running.close();
    assert_eq!(ended(&mut running), Some(0));
    let left = std::fs::read_dir(program.path("state/toolcrib/calls")).expect("the sockets").count();
    assert_eq!(left, 0, "a program that ends takes its socket with it");
}

#[test]
fn what_cannot_be_ended_is_said() {
    let program = Program::new();
    let _running = busy(&program);
    for (id, says) in [("0123456789abcdef", "no call `0123456789abcdef` runs"), ("shared", "an id is hexadecimal")] {
        let refused = program.run(&["calls", "--cancel", id]);
        assert_eq!(code(&refused), 2);
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}

/// What a program left behind that was killed, and what was put there to hold up whoever asks.
#[test]
fn sockets_that_do_not_answer_hold_nobody_up() {
    let program = Program::new();
    let mut running = busy(&program);
    let place = program.path("state/toolcrib/calls");
    let sockets = || std::fs::read_dir(&place).expect("the sockets").count();
    running.signal("KILL");
    ended(&mut running);
    assert_eq!(sockets(), 1, "who is killed cannot clean up");
    let silent = UnixListener::bind(place.join("1-silent")).expect("a socket");
    std::fs::write(place.join("2-file"), "").expect("a file");
    assert_eq!(listed(&program), [] as [Value; 0]);
    assert_eq!(sockets(), 1, "a dead socket is removed, a live one stays");
    drop(silent);
}
