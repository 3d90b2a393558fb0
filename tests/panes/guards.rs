//! What keeps commands out of the wrong hands and the wrong programs.

use crate::crib::Crib;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{Program, eventually};

const SHARED: &str = "=toolcrib-agent:";

/// A person starts a program in the shared pane by hand.
fn started_by_hand(line: &str, running: &str) -> Crib {
    let mut crib = Crib::of_one_pane();
    assert_eq!(crib.run("true").0, 0);
    let _ = crib.program.tmux(&["send-keys", "-t", SHARED, line, "Enter"]);
    is_running(&crib, running);
    crib
}

/// Waits until the pane runs this program, on the main screen (0) or the alternate one (1).
fn is_running(crib: &Crib, running: &str) {
    let format = "#{pane_current_command}#{alternate_on}";
    eventually("the program runs", || {
        crib.program.tmux(&["display-message", "-p", "-t", SHARED, format]).trim() == running
    });
}

#[test]
fn a_program_that_a_person_started_is_not_typed_into() {
    let mut crib = started_by_hand("cat", "cat0");
    let answer = crib.within("echo never", "5s");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("`cat`")), "{answer}");
    assert!(!crib.screen().contains("never"));
    crib.type_keys(&["C-d"]);
    is_running(&crib, "bash0");
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn a_shell_that_fills_the_screen_is_not_typed_into() {
    let mut crib = started_by_hand("tput smcup; read x; tput rmcup", "bash1");
    let answer = crib.within("echo never", "5s");
    assert_eq!(answer["error"]["kind"], "busy", "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("fills the screen")), "{answer}");
    crib.type_keys(&["Enter"]);
    is_running(&crib, "bash0");
    assert_eq!(crib.run("echo after"), (0, "after\n".into()));
}

#[test]
fn raw_tmux_that_would_change_sessions_is_refused_and_a_look_is_not() {
    let mut crib = Crib::on(Program::with_panes().unconfined(), &[]);
    for text in ["tmux kill-server", "tmux new-session -d -s x", "true; tmux splitw -d"] {
        let said = crib.refusal(text);
        assert!(said.starts_with("denied: ") && said.contains("tmux"), "{text}: {said}");
    }
    assert_eq!(crib.run("tmux list-panes -a | grep -c ."), (0, "1\n".into()));
    assert_eq!(crib.run("echo tmux split-window").0, 0);
}

#[test]
fn the_program_does_not_start_in_a_pane_that_it_would_type_into() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let socket = crib.program.path("state/toolcrib/tmux/socket");
    let inside = |flags: &[&str]| {
        let mut program =
            crib.program.command(&[flags, &["--yes", "call", "run_shell", &command("true").to_string()]].concat());
        program.env("TMUX", format!("{},1,0", socket.display())).env("TOOLCRIB_SESSION", "toolcrib-agent");
        program.output().expect("it runs")
    };
    let refused = inside(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("pane of the managed session"));
    assert!(inside(&["--no-tmux"]).status.success());
}

#[test]
fn what_a_model_sees_of_a_pane_has_no_hidden_signs() {
    let mut crib = Crib::new();
    crib.run(r"printf '\342\200\256reversed \363\240\201\201tag \033[31mred\033[0m\n'");
    for view in [json!({}), json!({ "include_escape_sequences": true })] {
        let screen = crib.result("capture-pane", view);
        let screen = screen.as_str().expect("text");
        assert!(screen.contains("reversed") && screen.contains("red"), "{screen}");
        let hidden = |c: char| matches!(c, '\u{1b}' | '\u{202e}' | '\u{e0000}'..='\u{e007f}');
        assert!(!screen.contains(hidden), "{screen:?}");
    }
}

#[test]
fn a_socket_that_others_could_plant_is_not_used() {
    let program = Program::with_panes();
    let place = program.path("state/toolcrib/tmux");
    std::fs::create_dir_all(&place).expect("a directory");
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o777)).expect("a mode");
    let theirs = program.path("theirs");
    let tmux = |arguments: &[&str]| {
        let mut argv = vec!["-S", theirs.to_str().expect("text")];
        argv.extend(arguments);
        program.tmux(&argv)
    };
    let _ = tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "theirs", "cat"]);
    std::os::unix::fs::symlink(&theirs, place.join("socket")).expect("a link");
    let output = program.call(&["run_shell", &command("true").to_string(), "--yes"]);
    let sessions = tmux(&["list-sessions", "-F", "#{session_name}"]);
    let _ = tmux(&["kill-server"]);
    assert_eq!(output.0, 0, "{output:?}");
    assert_eq!(sessions, "theirs\n");
}

#[test]
fn ending_a_pane_needs_approval_and_obeys_the_denylist() {
    let mut crib = Crib::with(&["tools.shell_denylist=[\"tmux kill-pane\"]"]);
    crib.result("tmux-create-pane", declared(json!({ "pane": "beside" })));
    let said = crib.failure("tmux-kill-pane", declared(json!({ "pane": "beside" })));
    assert!(said.starts_with("denied: ") && said.contains("shell_denylist"), "{said}");
    let arguments = declared(json!({ "pane": "beside" })).to_string();
    let asked = crib.program.call(&["tmux-kill-pane", &arguments]);
    assert_eq!(asked.0, 5, "{asked:?}");
    assert_eq!(crib.program.tmux(&["list-panes", "-a"]).lines().count(), 2);
}
