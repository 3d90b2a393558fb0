//! What people, the record and the model learn of confinement.

use crate::rig::{Rig, Via, program};
use serde_json::Value;
use toolcrib_tests::shell::{command, with};
use toolcrib_tests::{QUESTION, Terminal};

/// The question says how the command is confined, and to what.
#[test]
fn the_question_says_how_a_command_is_confined() {
    for (settings, headline, cell) in [
        (&["--set", "confine.mode=auto"][..], "wants to run on local, confined with named hosts only", "writes below"),
        (
            &["--set", "confine.mode=auto", "--set", "confine.network=none"],
            "wants to run on local, confined without a network",
            "writes below",
        ),
        (
            &["--set", "confine.mode=auto", "--set", "confine.network=full"],
            "confined with this machine's network",
            "writes below",
        ),
        (
            &["--set", "confine.mode=auto", "--set", "confine.write=[]"],
            "confined with named hosts only",
            "writes nowhere",
        ),
        (&["--set", "confine.mode=off"], "wants to run on local, unconfined", "│"),
    ] {
        let terminal = Terminal::idle(program(Via::Process));
        terminal.run(&format!("$toolcrib {} call run_shell '{}'", settings.join(" "), command("true")));
        let screen = terminal.shows(QUESTION).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(screen.contains(headline) && screen.contains(cell), "{settings:?}: {screen}");
        terminal.press(&["n", "Enter"]);
    }
}

/// Without `ask` a command runs unasked that is confined, has no network and needs no more rights; the denylist still counts.
#[test]
fn a_confined_command_runs_unasked_where_settings_say_so() {
    let program = program(Via::Process);
    let unasked = ["--set", "confine.mode=auto", "--set", "confine.ask=leaving"];
    let call = |settings: &[&str], arguments: Value| {
        let arguments = arguments.to_string();
        program.call(&[settings, &["run_shell", &arguments]].concat()).1
    };
    let call = |settings: &[&str], arguments| {
        let mut all: Vec<&str> = unasked.to_vec();
        all.extend(settings);
        call(&all, arguments)
    };
    assert!(call(&[], command("true"))["error"].is_null());
    for (settings, arguments) in [
        (&["--set", "confine.network=full"][..], command("true")),
        (&[], with(command("true"), "privesc", true)),
        (&["--set", "confine.mode=off"], command("true")),
        (&[], command("rm -rf /")),
    ] {
        let envelope = call(settings, arguments.clone());
        assert_eq!(envelope["error"]["kind"], "denied", "{settings:?} {arguments}: {envelope}");
    }
}

/// The record has how each command ran.
#[test]
fn the_record_says_how_a_command_ran() {
    let mut rig = Rig::new(Via::Process);
    rig.run("true");
    let trail = std::fs::read_to_string(rig.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    assert!(trail.contains("\"confinement\":\"confined with named hosts only, writes below "), "{trail}");
}

/// The result says what was refused inside, with the line that would open it.
#[test]
fn a_refusal_names_the_line_that_would_open_it() {
    for via in crate::rig::BOTH {
        let mut rig = Rig::new(via);
        let home = rig.program.path("home").canonicalize().expect("a directory");
        let notices = rig.notices(&format!("touch {}/x", home.display()));
        let expected = format!(
            "the command may not write `{}/x`, and no setting allows it (it is the home): use another path",
            home.display()
        );
        assert!(notices.contains(&expected), "{via:?} {notices}");
        let notices = rig.notices("cat ~/.ssh/id");
        assert!(notices.contains("/home/.ssh` is hidden from commands"), "{via:?} {notices}");
        let notices = rig.notices("touch ok; echo Read-only file system >&2");
        assert!(!notices.contains("may not write"), "{via:?}: it ended well: {notices}");
    }
}

/// What the cell does not allow is named whatever the exit code, and what is said works.
#[test]
fn what_a_cell_does_not_allow_is_named_whatever_the_exit_code() {
    for via in crate::rig::BOTH {
        let mut rig = Rig::new(via);
        rig.program.write("work/.vscode/settings.json", "{}");
        for (text, said) in [
            ("touch /usr/x; true", "and no setting allows it"),
            ("touch ~/x; true", "and no setting allows it"),
            ("touch /opt/x; true", "add a directory above it to `write` under [confine]"),
            ("mv .vscode other; true", "can neither remove nor rename"),
            ("unshare -Ur true", "commands in a cell cannot make namespaces"),
        ] {
            let notices = rig.notices(text);
            assert!(notices.contains(said), "{via:?} {text}: {notices}");
        }
        let notices = rig.notices("echo 'Device or resource busy'; echo 'ptrace: Operation not permitted'");
        assert!(!notices.contains("commands"), "{via:?}: {notices}");
    }
}

/// `policy explain` has the clauses.
#[test]
fn explain_says_how_commands_are_confined() {
    let program = program(Via::Process);
    let explain = |settings: &[&str]| {
        let output = program.run(&[settings, &["policy", "explain", "run_shell"]].concat());
        toolcrib_tests::outcome::stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let off = explain(&["--set", "confine.mode=off"]);
    assert!(off.contains("commands have all rights of the user"), "{off}");
    let said = explain(&[]);
    for part in [
        "where they cannot be, a person is asked",
        "confined is what runs in namespaces of its own",
        "write below: the workspace",
        ".envrc",
        "with named hosts only",
        "hosts that they reach: none; whether",
        "ports of hosts: 80, 443",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
