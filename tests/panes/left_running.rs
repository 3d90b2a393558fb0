//! Commands that go on after their calls: each has a pane for itself, and how it goes on is asked later.

use crate::crib::Crib;
use serde_json::{Value, json};
use toolcrib_tests::shell::{command, declared};

/// The tool is listed on request.
const OFFERED: &str = "tools.offer=[\"exec\"]";

/// Starts a command that is not waited for; returns the id of its pane.
fn leave(crib: &mut Crib, text: &str) -> String {
    let mut arguments = command(text);
    arguments["wait"] = json!(false);
    let said = crib.result("run_shell", arguments);
    let said = said.as_str().unwrap_or_else(|| panic!("{said}"));
    said.split('`').nth(1).unwrap_or_else(|| panic!("no pane in {said}")).to_owned()
}

fn follow(crib: &mut Crib, pane: Value, wait: &str) -> Value {
    let mut arguments = pane;
    arguments["wait"] = json!(wait);
    crib.result("command_output", arguments)
}

#[test]
fn a_server_has_a_pane_for_itself_and_the_shared_one_goes_on() {
    let mut crib = Crib::with(&[OFFERED]);
    assert_eq!(crib.run("kept=here; mkdir sub; cd sub").0, 0);
    let pane = leave(&mut crib, "pwd; sleep 600");
    assert_eq!(crib.run("echo $kept"), (0, "here\n".into()));
    let look = follow(&mut crib, json!({ "target": pane }), "200ms");
    let printed = look["output"].as_str().expect("output");
    assert!(printed.ends_with("/sub\n") && look["running"] == json!(true) && look["exit_code"].is_null(), "{look}");
    // The same by its name, which is that of its program.
    crib.result("send-keys", declared(json!({ "pane": "sleep", "keys": ["C-c"] })));
    let look = follow(&mut crib, json!({ "pane": "sleep" }), "10s");
    assert_eq!((&look["running"], &look["exit_code"]), (&json!(false), &json!(130)), "{look}");
}

#[test]
fn a_command_that_timed_out_tells_its_rest_and_its_exit_code() {
    let mut crib = Crib::with(&[OFFERED]);
    assert_eq!(crib.run("cd /").0, 0);
    let answer = crib.within("echo early; sleep 2; echo late; (exit 7)", "500ms");
    let error = &answer["error"];
    assert_eq!(error["kind"], "timed_out", "{answer}");
    // The shared pane is busy: the next one has a pane for itself, in the same directory.
    let answer = crib.within("pwd", "30s");
    assert_eq!(answer["result"]["stdout"], "/\n", "{answer}");
    let notices = answer["result"]["notices"].to_string();
    assert!(notices.contains("was not free within 1s") && notices.contains("pane pwd of"), "{answer}");
    let look = follow(&mut crib, json!({}), "20s");
    let expected = json!({ "running": false, "exit_code": 7, "output": "late\n" });
    assert_eq!(look, expected);
    assert_eq!(crib.run("pwd"), (0, "/\n".into()));
}

#[test]
fn where_all_panes_are_in_use_one_goes_whose_command_has_ended() {
    let mut crib = Crib::with(&[OFFERED, "tmux.max_panes=3"]);
    assert_eq!(crib.run("true").0, 0);
    let over = leave(&mut crib, "printf 'it is over\\n'");
    assert_eq!(follow(&mut crib, json!({ "target": over }), "10s")["exit_code"], 0);
    let first = leave(&mut crib, "sleep 600");
    let second = leave(&mut crib, "sleep 601");
    assert_ne!(first, second);
    let mut arguments = command("sleep 602");
    arguments["wait"] = json!(false);
    let said = crib.failure("run_shell", arguments);
    assert!(said.starts_with("limit: ") && said.contains("tmux panes 3"), "{said}");
    for pane in [first, second] {
        assert_eq!(follow(&mut crib, json!({ "target": pane }), "0s")["running"], true);
    }
    // What has ended is told all the same.
    assert_eq!(follow(&mut crib, json!({ "target": over }), "0s")["exit_code"], 0);
    assert_eq!(crib.run("echo shared"), (0, "shared\n".into()));
}

/// Calls that name no pane go where the last command went that named none, as long as its pane is there.
#[test]
fn looking_and_typing_follow_the_last_command() {
    let mut crib = Crib::with(&[OFFERED]);
    assert_eq!(crib.run("echo in the shared one").0, 0);
    let pane = leave(&mut crib, "cat; read line");
    crib.result("send-keys", declared(json!({ "keys": ["C-d"] })));
    assert_eq!(follow(&mut crib, json!({ "target": pane }), "200ms")["running"], true);
    crib.result("send-keys", declared(json!({ "literal_text": "over", "enter": true })));
    assert_eq!(follow(&mut crib, json!({}), "10s")["exit_code"], 0);
    let screen = crib.result("capture-pane", json!({}));
    assert!(screen.as_str().is_some_and(|screen| !screen.contains("in the shared one")), "{screen}");
    // A pane that is gone is told once, then the shared one is meant.
    let _ = crib.program.tmux(&["kill-pane", "-t", pane.split('@').next().expect("a number")]);
    let keys = declared(json!({ "keys": ["C-l"] }));
    let said = crib.failure("send-keys", keys.clone());
    assert!(said.contains("the pane of the last command") && said.contains("is gone"), "{said}");
    crib.result("send-keys", keys);
    // The next command that names none is where they go now.
    leave(&mut crib, "sleep 600");
    assert_eq!(crib.run("echo again"), (0, "again\n".into()));
    let screen = crib.result("capture-pane", json!({}));
    assert!(screen.as_str().is_some_and(|screen| screen.contains("again")), "{screen}");
}

#[test]
fn a_pane_that_somebody_made_is_not_taken() {
    let mut crib = Crib::with(&[OFFERED, "tmux.max_panes=2"]);
    let made = crib.result("tmux-create-pane", declared(json!({ "pane": "sleep" })));
    let mut arguments = command("sleep 600");
    arguments["wait"] = json!(false);
    let said = crib.failure("run_shell", arguments);
    assert!(said.starts_with("limit: "), "{said}");
    let screen = crib.result("capture-pane", json!({ "target": made["id"] }));
    assert!(screen.is_string(), "{screen}");
}

#[test]
fn what_was_never_left_running_is_said_plainly() {
    let mut crib = Crib::with(&[OFFERED]);
    assert_eq!(crib.run("true").0, 0);
    for pane in [json!({}), json!({ "pane": "server" }), json!({ "target": "%99" }), json!({ "target": "%0@00000000" })]
    {
        let said = crib.failure("command_output", pane);
        assert!(said.contains("no command was left running"), "{said}");
    }
    let said = crib.failure("command_output", json!({ "target": "#{x}" }));
    assert!(said.starts_with("invalid_arguments: "), "{said}");
}

#[test]
fn without_the_setting_all_commands_go_to_the_shared_pane() {
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("true").0, 0);
    leave(&mut crib, "sleep 600");
    let answer = crib.within("echo never", "1500ms");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
}

/// tmux runs the commands of a format outside any cell.
#[test]
fn a_directory_that_is_named_like_a_format_runs_nothing() {
    let mut crib = Crib::with(&[OFFERED]);
    for name in ["#(touch owned)", "##(touch owned)", "#{pane_id}", "#[fg=red]", "%H"] {
        let (code, said) = crib.run(&format!("mkdir -p '{name}' && cd '{name}' && pwd"));
        assert_eq!(code, 0, "{name}: {said}");
        let pane = leave(&mut crib, "pwd; sleep 1");
        let printed =
            follow(&mut crib, json!({ "target": pane }), "20s")["output"].as_str().expect("output").to_owned();
        assert_eq!(printed, said, "{name}");
        assert_eq!(crib.run("cd ..").0, 0);
    }
    let owned = |directory: &str| crib.program.path(directory).join("owned").exists();
    assert!(!owned("work") && !owned(""), "a format was run");
}
