//! K-01: the model types the answer to its own question, late, into the pane where questions are answered.
//! Outcome: nothing is typed there, `send-keys` is not offered, and the question waits for the person.
//! Switched off: the check of the terminal (`policy/typing.rs`): "s" and Enter came after their delay and answered for the session.

use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use toolcrib_tests::shell::{declared, with};
use toolcrib_tests::{Seat, eventually, skip};

const QUESTION: &str = "Allow?";

/// A host in a pane of the user's, and a model that calls it.
struct Host {
    seat: Seat,
    calls: File,
}

impl Host {
    /// Starts `run` in the pane by this command line, under a policy that asks and takes no yes in advance.
    fn started(begin: &str) -> Self {
        let seat = Seat::new();
        seat.program.write("policy.toml", "[tools]\nshell_confirm = true\n[approval]\nallow_yes = false\n");
        seat.types("mkfifo ../calls; touch ../answers");
        eventually("the pipe is there", || seat.program.path("answers").exists());
        seat.types(&format!("clear; {begin}"));
        // Opens once the host has opened the other end.
        let calls = File::options().write(true).open(seat.program.path("calls")).expect("a pipe");
        Self { seat, calls }
    }

    fn send(&mut self, id: u64, tool: &str, arguments: &Value) {
        let line = json!({ "id": id, "tool": tool, "arguments": arguments });
        self.calls.write_all(format!("{line}\n").as_bytes()).expect("the host reads");
    }

    fn answer(&self, id: u64) -> Option<Value> {
        let text = std::fs::read_to_string(self.seat.program.path("answers")).expect("a file");
        let answers = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        answers.into_iter().find(|answer| answer["id"] == id)
    }

    fn is_asked(&self) -> bool {
        self.seat.screen().contains(QUESTION)
    }

    /// A person who says yes to what is typed, and is then asked about a command: does the command run?
    fn is_deceived(&mut self) -> bool {
        let declared = |arguments: Value, why: &str| with(declared(arguments), "why", why);
        let keys = json!({ "literal_text": "s", "enter": true, "delay": "1s" });
        self.send(1, "send-keys", &declared(keys, "dismiss the prompt"));
        eventually("the keys are asked about or refused", || self.is_asked() || self.answer(1).is_some());
        if self.is_asked() {
            self.seat.types("y");
            let _ = self.seat.tmux(&["clear-history", "-t", &self.seat.pane]);
        }
        self.send(2, "run_shell", &declared(json!({ "command": "touch ../owned" }), "look around"));
        eventually("the keys have been typed or refused", || self.answer(1).is_some());
        if let Some(refused) = self.answer(1).filter(|answer| answer["error"]["kind"] == "denied") {
            println!("{refused}");
            eventually("the command is asked about", || self.is_asked());
            self.seat.types("n");
        }
        eventually("the command has run or was refused", || self.answer(2).is_some());
        self.seat.program.path("owned").exists()
    }
}

#[test]
fn the_model_cannot_answer_its_own_question() {
    let mut host = Host::started("toolcrib --own-pane --policy ../policy.toml run <../calls >>../answers");
    assert!(!host.is_deceived(), "{}", host.seat.screen());
    let refused = host.answer(1).expect("an answer");
    assert_eq!(refused["error"]["kind"], "denied");
    let said = refused["error"]["message"].as_str().expect("a message");
    assert!(said.starts_with("nothing is typed there: questions are, or may be, answered"), "{said}");
    let person = &host.answer(2).expect("an answer")["error"];
    assert_eq!(person["message"], "Command execution denied by user.", "{person}");
}

#[test]
fn a_terminal_within_the_pane_is_no_way_round() {
    if !std::path::Path::new("/usr/bin/script").exists() {
        skip!("script is not installed");
    }
    let toolcrib = toolcrib_tests::Program::file();
    let inner = format!("{} --own-pane --policy ../policy.toml run <../calls >>../answers", toolcrib.display());
    let mut host = Host::started(&format!("script -qc '{inner}' /dev/null"));
    assert!(!host.is_deceived(), "{}", host.seat.screen());
    assert_eq!(host.answer(1).expect("an answer")["error"]["kind"], "denied");
}

#[test]
fn a_command_that_is_not_waited_for_is_no_way_round() {
    let mut host = Host::started("toolcrib --own-pane --policy ../policy.toml run <../calls >>../answers");
    let arguments =
        json!({ "command": "s", "wait": false, "risk": "low", "mutation": false, "privesc": false, "why": "x" });
    host.send(1, "run_shell", &arguments);
    eventually("it is asked about or refused", || host.is_asked() || host.answer(1).is_some());
    assert_eq!(host.answer(1).expect("an answer")["error"]["kind"], "denied");
}

#[test]
fn what_cannot_be_typed_is_not_offered() {
    let seat = Seat::new();
    seat.types("toolcrib --own-pane tools >../asked; toolcrib --yes --own-pane tools >../answered; echo done");
    seat.shows("\ndone");
    let listed = |name: &str| std::fs::read_to_string(seat.program.path(name)).expect("a list");
    let (asked, answered) = (listed("asked"), listed("answered"));
    assert!(asked.contains("capture-pane") && !asked.contains("send-keys"), "{asked}");
    assert!(answered.contains("capture-pane") && answered.contains("send-keys"), "{answered}");
}
