//! Panes whose shells are in cells.

use crate::rig::{BOTH, REQUIRED, Rig, Via, program};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;
use toolcrib_tests::shell::{command, declared, waiting};
use toolcrib_tests::{Client, Program, Running, eventually};

fn host(program: &Program, settings: &[&str]) -> toolcrib_tests::Client {
    let set = settings.iter().flat_map(|setting| ["--set", setting]);
    program.client(&["--yes"].into_iter().chain(set).chain(["run"]).collect::<Vec<_>>())
}

fn is_confined(client: &mut toolcrib_tests::Client) -> bool {
    client.result("run_shell", command("echo $$"))["stdout"] == "2\n"
}

/// A pane that was not started in the present profile is replaced, never used; what is kept in one that was stays.
#[test]
fn a_pane_whose_shell_is_confined_otherwise_is_never_used() {
    let program = program(Via::Pane);
    let mut open = host(&program, &["confine.mode=off"]);
    open.result("run_shell", command("kept=open"));
    assert!(!is_confined(&mut open));
    let mut confined = host(&program, &[REQUIRED]);
    let result = confined.result("run_shell", command("echo [$kept]; kept=confined"));
    assert!(result["stdout"] == "[]\n" && result["notices"].to_string().contains("has a new shell"), "{result}");
    assert!(is_confined(&mut confined));
    assert_eq!(confined.result("run_shell", command("echo $kept"))["stdout"], "confined\n");
    drop(confined);
    let mut again = host(&program, &[REQUIRED]);
    assert_eq!(again.result("run_shell", command("echo $kept"))["stdout"], "confined\n", "it is the same cell");
    let mut other = host(&program, &[REQUIRED, "confine.network=full"]);
    let result = other.result("run_shell", command("echo [$kept]"));
    assert!(result["stdout"] == "[]\n" && is_confined(&mut other), "{result}");
    // Those that believe to know the pane find out.
    assert!(is_confined(&mut again) && !is_confined(&mut open) && is_confined(&mut again));
}

/// The same of what is typed, and of panes that are made.
#[test]
fn what_is_typed_goes_to_a_shell_that_is_confined() {
    let program = program(Via::Pane);
    let mut open = host(&program, &["confine.mode=off"]);
    open.result("run_shell", command("true"));
    open.result("tmux-create-pane", declared(serde_json::json!({ "pane": "side" })));
    let mut confined = host(&program, &[REQUIRED]);
    for pane in ["shared", "side"] {
        let keys = serde_json::json!({ "pane": pane, "literal_text": "echo $$ >number", "enter": true });
        confined.result("send-keys", declared(keys));
        eventually("it was typed", || program.path("work/number").exists());
        eventually("it is written", || {
            std::fs::read_to_string(program.path("work/number")).is_ok_and(|said| said == "2\n")
        });
        std::fs::remove_file(program.path("work/number")).expect("a file");
    }
    confined.result("tmux-create-pane", declared(serde_json::json!({ "pane": "new" })));
    let result = confined.result("run_shell", toolcrib_tests::shell::with(command("echo $$"), "pane", "new"));
    assert_eq!(result["stdout"], "2\n", "{result}");
}

/// A command that another host runs is not ended by a pane's being replaced.
#[test]
fn a_pane_at_work_is_not_replaced() {
    let program = program(Via::Pane);
    let mut open = host(&program, &["confine.mode=off"]);
    let call = open.send("run_shell", command("touch began; while [ ! -e end ]; do sleep 0.05; done; echo done"));
    eventually("it runs", || program.path("work/began").exists());
    let mut confined = host(&program, &[REQUIRED]);
    let refused = confined.refused("run_shell", command("true"));
    assert!(
        refused.starts_with("busy: pane shared of ") && refused.contains("is not confined as settings say now"),
        "{refused}"
    );
    program.write("work/end", "");
    assert_eq!(open.answer_to(call)["result"]["stdout"], "done\n");
    // The shell is at its prompt a moment after what it ran has ended.
    eventually("the pane is free", || confined.call("run_shell", command("true"))["error"].is_null());
    assert!(is_confined(&mut confined));
}

/// Job control, an interrupt, and what is asked of the kernel work as in other panes.
#[test]
fn a_shell_in_a_cell_is_a_shell() {
    let mut rig = Rig::new(Via::Pane);
    let (status, printed) = rig.run("set -m; sleep 30 & jobs; kill %1; wait; (exit 4)");
    assert!(status == 4 && printed.contains("Running"), "{printed}");
    let timed_out = rig.client.failure("run_shell", waiting("sleep 74001", "2s"));
    assert!(timed_out.contains("timed out") || timed_out.starts_with("timed_out"), "{timed_out}");
    rig.client.result("send-keys", declared(serde_json::json!({ "keys": ["C-c"] })));
    assert_eq!(rig.run("echo after"), (0, "after\n".into()));
    // The hook is gone, and no mark tells the end: the kernel is asked, by another number than the shell has for itself.
    let begun = std::time::Instant::now();
    let said = rig.client.call("run_shell", waiting("unset PROMPT_COMMAND; kill -INT $$; sleep 0.1", "20s"));
    assert!(begun.elapsed() < Duration::from_secs(15), "{said}");
    assert_eq!(rig.run("echo after"), (0, "after\n".into()));
}

/// What cannot be built runs no bare shell, and says so at the pane.
#[test]
fn a_profile_that_is_not_there_runs_nothing() {
    let program = program(Via::Pane);
    let output = program.run(&["cell", "/nowhere/profile.json", "1:1", "/", "--", "/bin/sh", "-c", "echo ran"]);
    assert_eq!(toolcrib_tests::outcome::code(&output), 125);
    assert!(!toolcrib_tests::outcome::stdout(&output).contains("ran"));
    assert!(toolcrib_tests::outcome::stderr(&output).contains("cannot be confined, so it does not run"), "{output:?}");
}

/// A profile that was changed after it was written confines nothing: it is written anew, or no shell runs.
#[test]
fn a_profile_that_was_changed_is_not_used() {
    let program = program(Via::Pane);
    let mut confined = host(&program, &[REQUIRED]);
    assert!(is_confined(&mut confined));
    let cells = program.path("state/toolcrib/cells");
    let file = std::fs::read_dir(&cells).expect("profiles").next().expect("one").expect("a name").path();
    let text = std::fs::read_to_string(&file).expect("a profile");
    std::fs::write(&file, text.replace("\"network\":\"egress\"", "\"network\":\"full\"")).expect("a file");
    let path = file.display().to_string();
    let output = program.run(&["cell", &path, "1:1", "/", "--", "/bin/sh", "-c", "echo ran"]);
    assert_eq!(toolcrib_tests::outcome::code(&output), 125, "{output:?}");
    assert!(toolcrib_tests::outcome::stderr(&output).contains("not the one that it is named after"), "{output:?}");
    confined.result("tmux-create-pane", declared(serde_json::json!({ "pane": "new" })));
    let script = "python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 443), 1)' 2>&1 | tail -n 1";
    let result = confined.result("run_shell", toolcrib_tests::shell::with(command(script), "pane", "new"));
    assert!(result["stdout"].as_str().is_some_and(|said| said.contains("unreachable")), "{result}");
    assert_eq!(std::fs::read_to_string(&file).expect("a profile"), text);
}

/// A cell that could be made and cannot be any more: the refusal says why, and no bare shell takes its place.
#[test]
fn a_pane_that_cannot_be_confined_says_why() {
    let program = program(Via::Pane);
    std::fs::create_dir(program.path("more")).expect("a directory");
    let more = program.path("more").canonicalize().expect("a directory");
    let mut confined = host(&program, &[REQUIRED, &format!("confine.write=[\".\", {more:?}]")]);
    assert!(is_confined(&mut confined));
    std::fs::rename(&more, program.path("away")).expect("a directory");
    let refused = confined.failure("tmux-create-pane", declared(serde_json::json!({ "pane": "new" })));
    let says_why = |refused: &str| refused.contains(" cannot be confined: ") && refused.contains("/more");
    assert!(says_why(&refused), "{refused}");
    let _ = program.tmux(&["kill-server"]);
    let refused = confined.failure("run_shell", command("echo ran >ran"));
    assert!(says_why(&refused), "{refused}");
    assert!(!program.path("work/ran").exists());
}

/// As in the person's own shell, in a pane and without one.
#[test]
fn commands_have_the_umask_of_the_person() {
    for via in BOTH {
        for mask in ["0022", "0002", "0077"] {
            let program = program(via);
            let script = format!("umask {mask} && exec \"$@\"");
            let arguments = ["--yes", "--set", REQUIRED, "run"];
            let mut command = program.started_by(&["sh", "-c", &script, "sh"], &arguments);
            let mut rig = Rig { client: Client::of(Running::start(&mut command)), program };
            assert_eq!(rig.run("umask"), (0, format!("{mask}\n")), "{via:?}");
            // What only the person is to read stays so.
            let state = std::fs::metadata(rig.program.path("state/toolcrib")).expect("a directory");
            assert_eq!(state.permissions().mode() & 0o077, 0, "{via:?} {mask}");
        }
    }
}

/// A home, a state directory and a temporary directory are found by a link, as where `/home` is one.
#[test]
fn places_that_are_links_work() {
    for via in BOTH {
        let program = program(via);
        for name in ["home", "state", "temporary"] {
            std::fs::create_dir_all(program.path(name)).expect("a directory");
            symlink(program.path(name), program.path(&format!("{name}-link"))).expect("a link");
        }
        let mut command = program.command(&["--yes", "--set", REQUIRED, "run"]);
        for (name, place) in [("HOME", "home"), ("XDG_STATE_HOME", "state"), ("TMPDIR", "temporary")] {
            command.env(name, program.path(&format!("{place}-link")));
        }
        let mut rig = Rig { client: Client::of(Running::start(&mut command)), program };
        assert_eq!(rig.run("cat ~/notes; mktemp >/dev/null && echo made"), (0, "# private\nmade\n".into()), "{via:?}");
        let (status, printed) = rig.run("cat ~/.ssh/id ~/.netrc");
        assert!(status != 0 && !printed.contains("private"), "{via:?} {printed}");
    }
}
