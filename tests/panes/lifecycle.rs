//! How sessions and panes come, are found again, and go; and what is never touched.

use crate::crib::{Crib, serve};
use crate::stale::anew;
use serde_json::{Value, json};
use std::process::Stdio;
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::processes::lives;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{Program, eventually};

fn option(program: &Program, name: &str) -> String {
    program.tmux(&["show-options", "-v", "-t", "=toolcrib-agent:", name]).trim_end().to_owned()
}

/// The process of the server.
fn server(program: &Program) -> String {
    program.tmux(&["display-message", "-p", "#{pid}"])
}

fn id(crib: &mut Crib) -> Value {
    crib.result("send-keys", declared(json!({ "enter": true })))["id"].clone()
}

/// Runs a command in a pane that is not the shared one.
fn run_in(crib: &mut Crib, place: Value, text: &str) -> Value {
    let mut arguments = command(text);
    for (name, value) in place.as_object().expect("an object") {
        arguments[name.as_str()] = value.clone();
    }
    crib.result("run_shell", arguments)
}

#[test]
fn what_is_ours_is_named_and_marked() {
    let mut crib = Crib::new();
    let session = crib.program.session();
    assert_eq!(crib.run("echo $TOOLCRIB_SESSION $PAGER"), (0, format!("{session} cat\n")));
    assert_eq!(crib.program.tmux(&["list-sessions", "-F", "#{session_name}"]), format!("{session}\n"));
    assert_eq!(option(&crib.program, "@toolcrib_managed"), "1");
    assert_eq!(option(&crib.program, "@toolcrib_owner"), "toolcrib-agent");
    let panes = crib.program.tmux(&["list-panes", "-a", "-F", "#{window_name} #{@toolcrib_pane} #{pane_width}"]);
    assert_eq!(panes, "shared shared 200\n");
}

#[test]
fn a_session_is_named_after_its_agent() {
    let mut crib = Crib::with(&["agent.name=\"Ops Agent (Prod)\""]);
    let session = crib.program.session().replace("toolcrib-agent", "toolcrib-ops-agent-prod");
    assert_eq!(crib.run("echo $TOOLCRIB_SESSION"), (0, format!("{session}\n")));
}

#[test]
fn the_next_host_finds_pane_and_state_again() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here").0, 0);
    let first = id(&mut crib);
    let mut other = serve(&crib.program, &[]);
    assert_eq!(other.call("send-keys", declared(json!({ "enter": true })))["result"]["id"], first);
    assert_eq!(other.shell("echo $kept")["result"]["stdout"], "here\n");
}

#[test]
fn sessions_are_made_found_and_ended_within_their_limit() {
    let mut crib = Crib::with(&["tmux.max_sessions=2"]);
    assert_eq!(crib.run("kept=here").0, 0);
    let session = |name: &str| declared(json!({ "session": name }));
    let (default, build) = (crib.program.session(), format!("{}-build", crib.program.session()));
    let made = crib.result("tmux-create-session", session("Build"));
    assert_eq!(made["session"], build);
    assert_eq!((&made["pane"], &made["created"]), (&json!("shared"), &json!(true)));
    for name in ["build", " build ", &build, "BUILD"] {
        let found = crib.result("tmux-create-session", session(name));
        assert_eq!((&found["id"], &found["created"]), (&made["id"], &json!(false)), "`{name}`: {found}");
    }
    let said = crib.failure("tmux-create-session", session("third"));
    assert!(said.starts_with("limit: "), "{said}");
    let result = run_in(&mut crib, json!({ "session": "build" }), "echo \"[$kept]\" $TOOLCRIB_SESSION");
    assert_eq!(result["stdout"], format!("[] {build}\n"));
    let ended = crib.result("tmux-kill-session", session("build"));
    assert_eq!(ended["session"], build);
    assert_eq!(crib.program.tmux(&["list-sessions", "-F", "#{session_name}"]), format!("{default}\n"));
    let made = crib.result("tmux-create-session", session("third"));
    assert_eq!((&made["session"], &made["created"]), (&json!(format!("{default}-third")), &json!(true)));
    assert_eq!(crib.run("echo $kept"), (0, "here\n".into()));
}

#[test]
fn there_is_one_session_unless_the_settings_say_more() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let said = crib.failure("tmux-create-session", declared(json!({ "session": "build" })));
    assert!(said.starts_with("limit: ") && said.contains("tmux sessions of this workspace 1"), "{said}");
    let found = crib.result("tmux-create-session", declared(json!({ "session": "default" })));
    assert_eq!((&found["session"], &found["created"]), (&json!(crib.program.session()), &json!(false)));
}

#[test]
fn panes_are_made_found_and_ended_within_their_limit() {
    let mut crib = Crib::with(&["tmux.max_panes=2"]);
    assert_eq!(crib.run("kept=here").0, 0);
    let pane = |name: &str| declared(json!({ "pane": name }));
    let made = crib.result("tmux-create-pane", pane("Dev Server"));
    assert_eq!((&made["session"], &made["pane"]), (&json!(crib.program.session()), &json!("dev-server")));
    assert_eq!(made["created"], true);
    for name in ["dev-server", " dev server", "DEV  SERVER"] {
        let found = crib.result("tmux-create-pane", pane(name));
        assert_eq!((&found["id"], &found["created"]), (&made["id"], &json!(false)), "`{name}`: {found}");
    }
    let said = crib.failure("tmux-create-pane", pane("third"));
    assert!(said.starts_with("limit: ") && said.contains("tmux panes 2"), "{said}");
    let result = run_in(&mut crib, json!({ "pane": "dev server" }), "echo \"[$kept]\"; tput cols 2>/dev/null; true");
    assert!(result["stdout"].as_str().is_some_and(|text| text.starts_with("[]\n")), "{result}");
    let ended = crib.result("tmux-kill-pane", pane("dev-server"));
    assert_eq!(ended["id"], made["id"]);
    let mut arguments = command("echo nowhere");
    arguments["pane"] = json!("dev-server");
    let said = crib.failure("run_shell", arguments);
    assert!(said.starts_with("execution_failed: "), "{said}");
    assert_eq!(crib.result("tmux-create-pane", pane("third"))["created"], true);
    assert_eq!(crib.run("echo $kept"), (0, "here\n".into()));
}

/// A tmux 3.3a that respawns a pane, whose output is on its way to a client, ends with all its sessions.
#[test]
fn a_shared_pane_that_floods_is_ended_and_the_others_stay() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let beside = json!({ "pane": "beside" });
    crib.result("tmux-create-pane", declared(beside.clone()));
    run_in(&mut crib, beside.clone(), "kept=here");
    for _ in 0..5 {
        assert_eq!(crib.within("yes", "300ms")["error"]["kind"], "timed_out");
        succeeded(&crib.program.run(&["panes", "restart"]));
        assert_eq!(crib.run("echo new"), (0, "new\n".into()));
    }
    assert_eq!(run_in(&mut crib, beside, "echo $kept")["stdout"], "here\n");
}

#[test]
fn the_default_session_stays() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here").0, 0);
    let session = crib.program.session();
    for name in ["default", &session, "shared"] {
        let said = crib.failure("tmux-kill-session", declared(json!({ "session": name })));
        assert!(said.starts_with(&format!("denied: `{session}` is the default session")), "`{name}`: {said}");
    }
    assert_eq!(crib.run("echo $kept"), (0, "here\n".into()));
}

#[test]
fn what_is_not_there_is_not_ended() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let said = crib.failure("tmux-kill-session", declared(json!({ "session": "nowhere" })));
    assert!(
        said.starts_with(&format!("execution_failed: there is no session `{}-nowhere`", crib.program.session())),
        "{said}"
    );
    let said = crib.failure("tmux-kill-pane", declared(json!({ "pane": "nowhere" })));
    assert!(said.starts_with("execution_failed: there is no pane `nowhere`"), "{said}");
}

#[test]
fn names_that_name_nothing_are_refused() {
    let mut crib = Crib::with(&["tmux.max_sessions=5"]);
    for name in ["#{;}", "=", "...", "%"] {
        let said = crib.failure("tmux-create-session", declared(json!({ "session": name })));
        assert!(said.starts_with("invalid_arguments: "), "`{name}`: {said}");
        let said = crib.failure("tmux-create-pane", declared(json!({ "pane": name })));
        assert!(said.starts_with("invalid_arguments: "), "`{name}`: {said}");
    }
}

#[test]
fn a_session_of_somebody_else_is_not_touched() {
    let mut crib = Crib::with(&["tmux.max_sessions=3"]);
    assert_eq!(crib.run("true").0, 0);
    let theirs = format!("{}-x", crib.program.session());
    let _ = crib.program.tmux(&["new-session", "-d", "-s", &theirs]);
    let said = crib.failure("tmux-create-session", declared(json!({ "session": "x" })));
    assert_eq!(said, format!("denied: the session `{theirs}` exists, but does not belong to this agent"));
    let said = crib.failure("tmux-kill-session", declared(json!({ "session": "x" })));
    assert!(said.starts_with("execution_failed: "), "{said}");
    let mut arguments = command("echo never");
    arguments["session"] = json!("x");
    let said = crib.failure("run_shell", arguments);
    assert!(said.starts_with("execution_failed: "), "{said}");
    let sessions = crib.program.tmux(&["list-sessions", "-F", "#{session_name}"]);
    assert_eq!(sessions, format!("{}\n{theirs}\n", crib.program.session()));
    let output = crib.program.run(&["panes", "--all"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains(&theirs), "it is listed");
}

#[test]
fn a_shell_that_is_killed_leaves_the_outcome_unknown_and_the_session_comes_anew() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("kept=here").0, 0);
    let server = server(&crib.program);
    let said = crib.refusal("p=$$; kill -9 $p; sleep 1");
    assert!(said.starts_with("outcome_unknown: "), "{said}");
    eventually("the server is gone", || !lives(&server));
    let result = anew(&mut crib, "run_shell", command("echo \"[$kept]\""));
    assert_eq!(result["stdout"], "[]\n");
    assert!(result["notices"].to_string().contains("made anew"), "{result}");
    let result = crib.result("run_shell", command("echo again"));
    assert!(!result["notices"].to_string().contains("made anew"), "{result}");
}

#[test]
fn a_shell_that_is_killed_beside_another_pane_comes_anew_alone() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    crib.result("tmux-create-pane", declared(json!({ "pane": "beside" })));
    run_in(&mut crib, json!({ "pane": "beside" }), "kept=beside");
    let said = crib.refusal("p=$$; kill -9 $p; sleep 1");
    assert!(said.starts_with("outcome_unknown: "), "{said}");
    let result = anew(&mut crib, "run_shell", command("echo works"));
    assert_eq!(result["stdout"], "works\n");
    assert!(result["notices"].to_string().contains("the shared pane was gone and has been made anew"), "{result}");
    assert_eq!(run_in(&mut crib, json!({ "pane": "beside" }), "echo $kept")["stdout"], "beside\n");
}

#[test]
fn a_server_that_was_ended_comes_anew() {
    let mut crib = Crib::new();
    assert_eq!(crib.run("true").0, 0);
    let (before, server) = (id(&mut crib), server(&crib.program));
    let _ = crib.program.tmux(&["kill-server"]);
    eventually("the server is gone", || !lives(&server));
    let result = anew(&mut crib, "run_shell", command("echo works"));
    assert_eq!(result["stdout"], "works\n");
    assert!(result["notices"].to_string().contains("made anew"), "{result}");
    assert_ne!(id(&mut crib), before, "an id counts for one server alone");
    let said = crib.failure("send-keys", declared(json!({ "target": before, "enter": true })));
    assert!(said.starts_with("execution_failed: there is no pane"), "{said}");
}

#[test]
fn sessions_are_listed_and_ended_by_a_person() {
    let mut crib = Crib::with(&["tmux.max_sessions=2"]);
    let list = |crib: &Crib, arguments: &[&str]| {
        let output = crib.program.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let session = crib.program.session();
    assert!(!list(&crib, &["panes"]).contains(&session));
    assert_eq!(crib.run("true").0, 0);
    crib.result("tmux-create-session", declared(json!({ "session": "build" })));
    let listed = list(&crib, &["panes"]);
    assert!(listed.contains(&format!("{session} ")) && listed.contains(&format!("{session}-build")), "{listed}");
    let listed = list(&crib, &["panes", "--prune"]);
    assert_eq!(listed.matches("ended").count(), 2, "{listed}");
    assert_eq!(crib.program.tmux(&["list-sessions"]), "");
}

#[test]
fn attaching_needs_a_terminal() {
    let program = Program::with_panes();
    let output = program.run(&["attach"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("`attach` needs a terminal"), "{stderr}");
}

#[test]
fn secrets_of_the_host_do_not_reach_a_pane() {
    let program = Program::with_panes();
    let arguments = command("echo \"[$SECRET_TOKEN]\"; env | grep -c hunter2").to_string();
    let mut call = program.command(&["--yes", "call", "run_shell", &arguments]);
    let output = call.env("SECRET_TOKEN", "hunter2").stdin(Stdio::null()).output().expect("the program starts");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let envelope: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    assert_eq!(envelope["result"]["stdout"], "[]\n0\n", "{envelope}");
    let environment = program.tmux(&["show-environment", "-g"]);
    assert!(!environment.contains("hunter2"), "{environment}");
}

#[test]
fn files_of_staged_commands_are_this_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mut crib = Crib::new();
    assert_eq!(crib.run("echo private").0, 0);
    let directory = crib.program.path("state/toolcrib/tmux");
    let mode = std::fs::metadata(&directory).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
}
