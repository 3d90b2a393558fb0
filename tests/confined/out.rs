//! C-47: one command is let out of its cell by a person who was told what the cell refused, once; nothing else lets one out.

use crate::approve::{ASKS, in_a_second_window, second_screen};
use crate::rig::{BOTH, Via, program, word};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use toolcrib::policy::approval::Answer;
use toolcrib_tests::client::request;
use toolcrib_tests::mcp::{self, ERAS, decides, envelope, failure, forms};
use toolcrib_tests::shell::{command, with};
use toolcrib_tests::{Program, QUESTION, Terminal, TestHost, eventually};

const AGAIN: &str = "call it again with the very same text: a person is asked whether it may run unconfined, once";
const OFFER: &str = "[u]nconfined: this once, with all rights of your user";

/// A file that no cell writes.
fn outside(program: &Program) -> PathBuf {
    program.path("home").canonicalize().expect("a directory").join("outside")
}

fn touch(program: &Program) -> Value {
    command(&format!("touch {}", word(outside(program))))
}

/// Runs a host at a terminal that is given the calls one after the other.
fn at_a_terminal(via: Via, settings: &str, calls: impl Fn(&Program) -> Vec<Value>) -> Terminal {
    let terminal = Terminal::idle(program(via));
    let calls = calls(&terminal.program);
    let lines: String = (1..).zip(&calls).map(|(id, arguments)| request(id, "run_shell", arguments)).collect();
    terminal.program.write("work/calls", lines);
    let feed = "n=0; while read -r line; do while [ $(wc -l <out) -lt $n ]; do sleep 0.05; done; printf '%s\\n' \"$line\"; n=$((n+1)); done <calls";
    terminal.run(&format!(": >out; ({feed}) | $toolcrib --set confine.mode=auto {settings} run >>out"));
    terminal
}

/// The screen with its lines joined.
fn flat(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_person_lets_one_command_out_once() {
    for via in BOTH {
        let calls = |program: &Program| {
            let again = touch(program);
            vec![again.clone(), again.clone(), again, with(command("true"), "privesc", true)]
        };
        let terminal = at_a_terminal(via, "--set confine.ask=leaving", calls);
        let screen = flat(&terminal.asked(1));
        let outside = outside(&terminal.program);
        assert!(screen.contains("wants to run on local, confined with named hosts only"), "{via:?} {screen}");
        assert!(screen.contains("last │ the command may not write `") && screen.contains("/home/outside`"), "{screen}");
        assert!(screen.contains("; the last time its cell refused it something") && screen.contains(OFFER), "{screen}");
        assert_eq!(screen.contains("unconfined it would be a process of its own in `/"), via == Via::Pane, "{screen}");
        assert!(!outside.exists(), "{via:?}");
        terminal.press(&["u", "Enter"]);
        // Only the one that asks for more rights is asked about.
        let screen = terminal.asked(2);
        assert_eq!(screen.matches(OFFER).count(), 1, "{screen}");
        assert!(outside.exists(), "{via:?}");
        std::fs::remove_file(&outside).expect("a file");
        in_a_second_window(&terminal, &format!("{ASKS}$toolcrib approve >list 2>notices"));
        eventually("it ended", || terminal.program.path("second").exists());
        let read = |name: &str| std::fs::read_to_string(terminal.program.path("work").join(name)).expect("a file");
        let (list, notices) = (read("list"), read("notices"));
        assert!(!list.contains("wants to run"), "{list}");
        assert!(notices.contains("a person has let one of its commands out of its cell"), "{notices}");
        terminal.press(&["n", "Enter"]);
        assert_eq!(terminal.ended(), 0);
        let results: Vec<Value> = terminal.out().iter().map(|line| line["result"].clone()).collect();
        let said = |number: usize| results[number]["notices"].to_string();
        assert_eq!([0, 1, 2].map(|number| results[number]["exit_code"].clone()), [1, 0, 1], "{via:?} {results:?}");
        assert!(said(0).contains(AGAIN) && said(2).contains(AGAIN) && !said(1).contains(AGAIN), "{results:?}");
        assert!(said(1).contains("it ran unconfined, this once, as a process of its own in `/"), "{results:?}");
        assert!(!outside.exists(), "the third ran in the cell again");
        let trail = std::fs::read_to_string(terminal.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
        let out = trail.matches("\"confinement\":\"unconfined: a person let it out of its cell, once\"").count();
        assert!(out == 1 && trail.matches("\"confinement\":\"confined with").count() >= 3, "{trail}");
    }
}

/// The plain answers mean what they mean of every other command.
#[test]
fn a_plain_answer_lets_nothing_out() {
    for (answer, codes) in [("y", vec![json!(1), json!(1)]), ("s", vec![json!(1), json!(1)]), ("n", vec![json!(1)])] {
        let terminal = at_a_terminal(Via::Process, "--set confine.ask=leaving", |program| vec![touch(program); 2]);
        assert!(flat(&terminal.asked(1)).contains(OFFER));
        terminal.press(&[answer, "Enter"]);
        let _ = terminal.ended();
        assert!(!outside(&terminal.program).exists(), "{answer}");
        let out = terminal.out();
        let found: Vec<Value> = out.iter().filter_map(|line| line["result"].get("exit_code").cloned()).collect();
        assert_eq!(found, codes, "{answer}: {out:?}");
    }
}

/// A yes for the session was given to what is confined, before.
#[test]
fn an_approval_for_the_session_does_not_answer() {
    let terminal = at_a_terminal(Via::Process, "", |program| vec![touch(program), command("true"), touch(program)]);
    let first = terminal.asked(1);
    assert!(!first.contains(OFFER), "{first}");
    terminal.press(&["s", "Enter"]);
    let screen = terminal.asked(2);
    assert!(flat(&screen).contains(OFFER), "{screen}");
    terminal.press(&["u", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(outside(&terminal.program).exists(), "{:?}", terminal.out());
}

/// The second terminal has the same answers, as long as nothing was let out.
#[test]
fn a_command_is_let_out_from_a_second_terminal() {
    let terminal = at_a_terminal(Via::Process, "--set confine.ask=leaving", |program| vec![touch(program); 2]);
    terminal.asked(1);
    in_a_second_window(&terminal, &format!("{ASKS}$toolcrib approve $id"));
    eventually("the question is asked there", || second_screen(&terminal).contains(QUESTION));
    let screen = flat(&second_screen(&terminal));
    assert!(screen.contains(OFFER) && screen.contains("last │ the command may not write"), "{screen}");
    assert!(terminal.tmux(&["send-keys", "-t", "second", "u", "Enter"]).status.success());
    assert_eq!(terminal.ended(), 0);
    assert!(outside(&terminal.program).exists(), "{:?}", terminal.out());
}

/// Where nobody is there, and where settings or a policy say never: no word of it, and no question because of it.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_person_or_a_setting_nothing_is_let_out() {
    let host = || TestHost::new().answering(Answer::Unconfined).set("confine.mode=auto").set("confine.ask=leaving");
    let never = "[confine]\nunconfined = \"never\"\n";
    for (host, is_asked) in [
        (host(), true),
        (host().set("confine.unconfined=never"), false),
        (host().policy(never), false),
        (host().set("confine.mode=required"), false),
    ] {
        let outside = host.home().canonicalize().expect("a directory").join("outside");
        let text = format!("touch {}", word(&outside));
        let first = host.shell(&text).await;
        assert_eq!((first["exit_code"].as_i64(), first.to_string().contains(AGAIN)), (Some(1), is_asked), "{first}");
        let other = host.shell(&format!("{text} ")).await;
        assert_eq!(other["exit_code"], 1, "another text is another command: {other}");
        let second = host.shell(&text).await;
        assert_eq!(
            (second["exit_code"] == 0, outside.exists(), host.asked().len()),
            (is_asked, is_asked, usize::from(is_asked))
        );
        assert!(
            host.asked()
                .iter()
                .all(|request| request.refused.as_ref().is_some_and(|said| said.contains("may not write")))
        );
    }
    // An answer that was not offered is no answer.
    let host = TestHost::new().answering(Answer::Unconfined).set("confine.mode=auto");
    assert_eq!(host.shell_failure("touch ran").await.message, "Command execution denied by user.");
    assert!(!host.work().join("ran").exists() && host.asked()[0].refused.is_none());
}

#[test]
fn an_answer_in_advance_lets_nothing_out() {
    for via in BOTH {
        let program = program(via);
        let mut client = program.client(&["--yes", "--set", "confine.mode=auto", "run"]);
        for _ in 0..3 {
            let result = client.result("run_shell", touch(&program));
            assert!(result["exit_code"] == 1 && !result.to_string().contains("unconfined"), "{via:?} {result}");
        }
        assert!(!outside(&program).exists());
    }
}

/// A client of the protocol shows the same, in both eras.
#[test]
fn a_client_lets_one_command_out() {
    for era in ERAS {
        let home = Arc::new(program(Via::Process));
        let mut start = home.command(&["--set", "confine.mode=auto", "--set", "confine.ask=leaving", "serve"]);
        let mut client = mcp::Client::start(&mut start, home.clone(), era, forms());
        client.shake_hands();
        let arguments = touch(&home);
        let first = client.call("run_shell", arguments.clone());
        assert!(first.to_string().contains(AGAIN), "{era:?} {first}");
        let question = client.asked("run_shell", &arguments);
        let decision = &question.form["requestedSchema"]["properties"]["decision"];
        let offered = json!(["allow once", "allow for this session", "allow once, unconfined", "deny"]);
        assert_eq!(decision["enum"], offered, "{}", question.form);
        assert!(question.words().contains("last:\n> the command may not write"), "{}", question.words());
        let result = client.outcome(&question, decides("allow once, unconfined"));
        assert_eq!(envelope(&result)["result"]["exit_code"], 0, "{result}");
        assert!(outside(&home).exists());
        // Where it is not offered it is a no.
        let more = with(command("touch ran"), "privesc", true);
        let question = client.asked("run_shell", &more);
        let decision = &question.form["requestedSchema"]["properties"]["decision"];
        assert_eq!(decision["enum"].as_array().map(Vec::len), Some(3), "{decision}");
        let result = client.outcome(&question, decides("allow once, unconfined"));
        assert_eq!(failure(&result), "Tool error: Command execution denied by user.");
        assert!(!home.path("work/ran").exists());
    }
}
