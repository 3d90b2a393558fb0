//! Clients that declare forms and show none: their no is no person's, and the question may be answered elsewhere.

use crate::rig::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use toolcrib_tests::mcp::{ERAS, decides, envelope, failure};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually};

const DENIED: &str = "Tool error: Command execution denied by user.";
/// As long as a person takes to read, at least.
pub(crate) const READ: Duration = Duration::from_millis(350);

/// A home whose user is told of questions by a program that writes down what it gets.
fn notified() -> Home {
    let home = Home::new();
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >>{}\n", home.program.path("notes").display());
    home.program.write_program("tell", &script);
    let tell = home.program.path("tell").display().to_string();
    home.set(&format!("approval.notify=[{tell:?}, \"--now\"]"))
}

fn notes(program: &Program) -> String {
    std::fs::read_to_string(program.path("notes")).unwrap_or_default()
}

fn ran(program: &Program) -> bool {
    program.path("work/mark").exists()
}

/// Answers the open question as `toolcrib approve` does.
fn approve(program: &Program, answer: &str) -> String {
    let sockets = std::fs::read_dir(program.path("state/toolcrib/calls")).expect("sockets");
    let socket = sockets.flatten().next().expect("a program that listens").path();
    let mut stream = UnixStream::connect(socket).expect("it answers");
    let asked = json!({ "answer": { "number": 1, "answer": answer } });
    stream.write_all(format!("{asked}\n").as_bytes()).expect("it listens");
    let mut said = String::new();
    BufReader::new(stream).read_line(&mut said).expect("an answer");
    said
}

/// All by which a client says that it has shown nothing.
fn unseen() -> [(Value, &'static str); 7] {
    let (declined, cancelled, empty) = (
        "the client declined the question at once",
        "the client cancelled the question at once",
        "the client accepted the question without an answer in its form",
    );
    [
        (json!({ "action": "decline" }), declined),
        (json!({ "action": "decline", "content": { "decision": "allow once" } }), declined),
        (json!({ "action": "cancel" }), cancelled),
        (json!({ "action": "accept" }), empty),
        (json!({ "action": "accept", "content": {} }), empty),
        (json!({ "action": "accept", "content": { "Decision": "allow once" } }), empty),
        (json!({ "action": "accept", "content": "allow once" }), empty),
    ]
}

#[test]
fn what_a_client_answers_by_itself_is_not_told_as_its_users_no() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        for (number, (says, how)) in unseen().into_iter().enumerate() {
            let question = client.asked("run_shell", &command(&format!("touch mark # {number}")));
            let said = failure(&client.outcome(&question, says.clone())).to_owned();
            let expected = format!("Tool error: {how}; its user may not have seen it");
            assert!(said.starts_with(&expected), "{era:?} {says}: {said}");
            for hint in ["`notify` under [approval]", "`toolcrib approve`", "`shell_confirm = false`"] {
                assert!(said.contains(hint), "{era:?} {says}: {said}");
            }
            assert!(!ran(&home.program), "{era:?} {says}");
        }
    }
}

#[test]
fn a_person_who_declines_has_said_no() {
    for era in ERAS {
        let home = notified();
        let mut client = home.serve(era);
        for (number, action) in ["decline", "cancel"].into_iter().enumerate() {
            let question = client.asked("run_shell", &command(&format!("touch mark # {number}")));
            std::thread::sleep(READ);
            assert_eq!(failure(&client.outcome(&question, json!({ "action": action }))), DENIED, "{era:?} {action}");
        }
        assert!(!ran(&home.program) && notes(&home.program).is_empty(), "{era:?}");
    }
}

/// Where the user is told, the question stays open, and an answer from elsewhere counts, once.
#[test]
fn a_question_that_nobody_saw_is_answered_elsewhere() {
    for (era, says) in ERAS.into_iter().zip(unseen().into_iter().map(|(says, _)| says)) {
        for (answer, runs) in [("yes", true), ("no", false)] {
            let home = notified();
            let mut client = home.serve(era);
            let question = client.asked("run_shell", &command("touch mark # secret words"));
            let call = client.reply(&question, says.clone());
            eventually("the user is told", || notes(&home.program).lines().count() == 3);
            let notes = notes(&home.program);
            assert!(notes.starts_with("--now\nToolcrib: run_shell needs an answer\n"), "{notes}");
            assert!(notes.contains("toolcrib approve ") && !notes.contains("secret words"), "{notes}");
            assert!(approve(&home.program, answer).contains("true"));
            let result = client.result(call);
            if runs {
                envelope(&result);
            } else {
                assert_eq!(failure(&result), DENIED);
            }
            assert_eq!(ran(&home.program), runs);
            assert!(!approve(&home.program, "yes").contains("true"), "a late answer says so");
        }
    }
}

#[test]
fn what_nobody_saw_is_told_when_its_time_is_over() {
    for era in ERAS {
        let home = notified().set("approval.timeout_ms=1000");
        let mut client = home.serve(era);
        let question = client.asked("run_shell", &command("touch mark"));
        let said = failure(&client.outcome(&question, json!({ "action": "decline" }))).to_owned();
        let expected = "Tool error: the client declined the question at once; its user may not have seen it, and nobody answered within 1s";
        assert!(said.starts_with(expected), "{era:?}: {said}");
        assert!(!ran(&home.program));
    }
}

/// Where the client shows the question and nobody answers, the user is told of it, and the client's answer counts still.
#[test]
fn the_user_is_told_of_what_nobody_answers() {
    let home = notified();
    let mut client = home.serve(ERAS[0]);
    let question = client.asked("run_shell", &command("touch mark"));
    eventually("the user is told", || notes(&home.program).contains("toolcrib approve"));
    envelope(&client.outcome(&question, decides("allow once")));
    assert!(ran(&home.program));
}

/// A no that was said twice is remembered, and the model is told to stop.
#[test]
fn a_no_that_repeats_is_not_asked_again() {
    for era in ERAS {
        let home = Home::new();
        let mut client = home.serve(era);
        for why in ["first", "second"] {
            let mut arguments = command("touch mark");
            arguments["why"] = why.into();
            let question = client.asked("run_shell", &arguments);
            assert_eq!(failure(&client.outcome(&question, decides("deny"))), DENIED);
        }
        let mut arguments = command("touch mark");
        arguments["why"] = "third".into();
        let said = failure(&client.call("run_shell", arguments)).to_owned();
        assert!(said.starts_with("Tool error: your user has refused this twice"), "{era:?}: {said}");
        // Another command is another question.
        let question = client.asked("run_shell", &command("touch other"));
        envelope(&client.outcome(&question, decides("allow once")));
        assert!(!ran(&home.program));
    }
}

/// A command that its cell refused something may be let out by a person; not one that a person has just said no to something of.
#[test]
fn after_a_no_nothing_more_is_offered() {
    const OFFER: &str = "call it again with the very same text";
    for era in ERAS {
        let home = Home::new().set("confine.ask=leaving");
        let mut client = home.serve(era);
        let outside = "touch ../home/outside";
        let said = envelope(&client.call("run_shell", command(outside))).to_string();
        assert!(said.contains(OFFER), "{era:?}: {said}");
        let both = format!("{outside}; curl -sS http://fresh.example.com/");
        // A second time as well: it was not kept for later.
        for _ in 0..2 {
            let question = client.asked("run_shell", &command(&both));
            assert!(question.words().contains("fresh.example.com:80"), "{era:?}: {}", question.words());
            let said = envelope(&client.outcome(&question, decides("deny"))).to_string();
            assert!(said.contains("may not write") && said.contains("Connection denied by user."), "{era:?}: {said}");
            assert!(!said.contains(OFFER), "{era:?}: {said}");
        }
        assert!(!home.program.path("home/outside").exists());
    }
}
