//! Panes that are not what they were: gone with their server, ended, or another program. Nothing reaches what took their place.

use crate::crib::Crib;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib_tests::shell::{command, declared, waiting};
use toolcrib_tests::{Program, eventually, is_long};

const SHARED: &str = "=toolcrib-agent:";

/// Ends the server, and waits until it takes no more.
fn end_server(program: &Program) {
    let _ = program.tmux(&["kill-server"]);
    eventually("the server is gone", || program.tmux(&["list-sessions"]).is_empty());
}

/// Calls until the host has noticed what is gone, and made it anew.
pub(crate) fn anew(crib: &mut Crib, tool: &str, mut arguments: Value) -> Value {
    let begin = Instant::now();
    for attempt in 1.. {
        // Arguments that failed twice would not be tried again.
        arguments["why"] = json!(format!("attempt {attempt}"));
        let answer = crib.call(tool, arguments.clone());
        if answer["error"].is_null() {
            return answer["result"].clone();
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "{answer}");
        std::thread::sleep(Duration::from_millis(5));
    }
    unreachable!("attempts do not end")
}

fn id(place: &Value) -> String {
    place["id"].as_str().unwrap_or_else(|| panic!("{place}")).to_owned()
}

fn number(id: &str) -> &str {
    id.split('@').next().expect("there is a first part")
}

/// Starts a command that does not end by itself, and waits until it has begun.
fn begin(crib: &mut Crib) -> u64 {
    let mut arguments = command("echo begun >begun.txt; sleep 20; echo ended >ended.txt");
    arguments["wait"] = json!("30s");
    let id = crib.send("run_shell", arguments);
    eventually("the command began", || crib.program.path("work/begun.txt").exists());
    id
}

/// The next answer is that nobody knows what came of the command, long before its wait is over.
fn assert_unknown(crib: &mut Crib, id: u64) {
    let answer = crib.answer();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(id), &json!("outcome_unknown")), "{answer}");
}

/// The pane takes commands again.
fn assert_works(crib: &mut Crib) {
    let arguments = waiting("echo works", "3s");
    assert_eq!(anew(crib, "run_shell", arguments)["stdout"], "works\n");
}

#[test]
fn an_id_of_a_server_that_was_ended_never_reaches_the_pane_that_has_its_number() {
    let mut crib = Crib::new();
    let beside = declared(json!({ "pane": "beside" }));
    let mut old = id(&crib.result("tmux-create-pane", beside.clone()));
    let rounds = if is_long() { 1_000 } else { 20 };
    for round in 0..rounds {
        end_server(&crib.program);
        let new = id(&anew(&mut crib, "tmux-create-pane", beside.clone()));
        assert!(number(&new) == number(&old) && new != old, "{old}, then {new}");
        let stray = declared(json!({ "target": old, "literal_text": format!("stray{round}"), "enter": true }));
        let said = crib.failure("send-keys", stray);
        assert_eq!(said, format!("execution_failed: there is no pane `{old}`"));
        // What is typed in order arrives in order.
        crib.result("send-keys", declared(json!({ "target": new, "literal_text": "arrived" })));
        let shown = || crib.program.tmux(&["capture-pane", "-p", "-t", number(&new)]);
        eventually("what is typed arrives", || shown().contains("arrived"));
        let shared = crib.program.tmux(&["capture-pane", "-p", "-t", SHARED]);
        assert!(!shown().contains("stray") && !shared.contains("stray"), "{}{shared}", shown());
        old = new;
    }
}

#[test]
fn an_id_of_a_pane_that_was_ended_reaches_no_other() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let beside = declared(json!({ "pane": "beside" }));
    let old = id(&crib.result("tmux-create-pane", beside.clone()));
    crib.result("tmux-kill-pane", beside.clone());
    let new = id(&crib.result("tmux-create-pane", beside));
    assert_ne!(old, new);
    let said = crib.failure("send-keys", declared(json!({ "target": old, "literal_text": "stray" })));
    assert_eq!(said, format!("execution_failed: there is no pane `{old}`"));
    crib.result("send-keys", declared(json!({ "target": new, "literal_text": "arrived" })));
    let shown = || crib.program.tmux(&["capture-pane", "-p", "-t", number(&new)]);
    eventually("what is typed arrives", || shown().contains("arrived"));
    assert!(!shown().contains("stray"), "{}", shown());
}

#[test]
fn a_pane_of_somebody_else_cannot_be_named_by_its_number() {
    let mut crib = Crib::new();
    let ours = id(&crib.result("send-keys", declared(json!({ "enter": true }))));
    let generation = ours.split('@').nth(1).expect("an id").to_owned();
    let _ = crib.program.tmux(&["new-session", "-d", "-s", "theirs"]);
    let _ = crib.program.tmux(&["split-window", "-d", "-t", SHARED]);
    let panes = crib.program.tmux(&["list-panes", "-a", "-F", "#{pane_id}"]);
    let foreign: Vec<&str> = panes.lines().filter(|pane| *pane != number(&ours)).collect();
    assert_eq!(foreign.len(), 2, "{panes}");
    for pane in foreign {
        let target = format!("{pane}@{generation}");
        let said = crib.failure("send-keys", declared(json!({ "target": target, "literal_text": "stray" })));
        assert_eq!(said, format!("execution_failed: there is no pane `{target}`"));
        let answer = crib.call("capture-pane", json!({ "target": target }));
        assert!(answer["notices"].to_string().contains("this is the shared pane instead"), "{answer}");
    }
}

#[test]
fn a_pane_that_is_ended_while_a_command_runs_leaves_the_outcome_unknown() {
    let mut crib = Crib::new();
    let id = begin(&mut crib);
    let _ = crib.program.tmux(&["kill-pane", "-t", SHARED]);
    assert_unknown(&mut crib, id);
    assert_works(&mut crib);
}

#[test]
fn a_server_that_is_ended_while_a_command_runs_leaves_the_outcome_unknown() {
    let mut crib = Crib::new();
    let id = begin(&mut crib);
    end_server(&crib.program);
    assert_unknown(&mut crib, id);
    assert_works(&mut crib);
}

#[test]
fn a_pane_that_is_respawned_while_a_command_runs_leaves_the_outcome_unknown() {
    let mut crib = Crib::new();
    let id = begin(&mut crib);
    let _ = crib.program.tmux(&["respawn-pane", "-k", "-t", SHARED]);
    assert_unknown(&mut crib, id);
    assert_works(&mut crib);
}

#[test]
fn a_pane_that_was_respawned_between_commands_takes_the_next() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here").0, 0);
    let _ = crib.program.tmux(&["respawn-pane", "-k", "-t", SHARED]);
    assert_eq!(crib.run("echo \"[$kept]\""), (0, "[]\n".into()));
}

/// Its server may have been told to keep dead panes on the screen.
#[test]
fn a_dead_pane_that_stays_on_the_screen_leaves_the_outcome_unknown() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let _ = crib.program.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
    let mut arguments = command("p=$$; kill -9 $p; sleep 5");
    arguments["wait"] = json!("30s");
    let id = crib.send("run_shell", arguments);
    assert_unknown(&mut crib, id);
    assert_works(&mut crib);
}

#[test]
fn a_shell_that_became_another_program_is_not_typed_into() {
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("true").0, 0);
    let answer = crib.within("become=exec; $become cat", "2s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    let answer = crib.within("echo never", "200ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    let shown = crib.program.tmux(&["capture-pane", "-p", "-t", SHARED]);
    assert!(!shown.contains("never"), "{shown}");
    crib.type_keys(&["C-d"]);
    assert_works(&mut crib);
}

#[test]
fn a_shell_that_became_another_program_which_ends_leaves_the_outcome_unknown() {
    let mut crib = Crib::new();
    let id = crib.send("run_shell", command("become=exec; $become sleep 0.2"));
    assert_unknown(&mut crib, id);
    assert_works(&mut crib);
}
