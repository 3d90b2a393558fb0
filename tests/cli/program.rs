//! What every program does: say its version, help, complete, and mind its own pipes and homes.
#![expect(clippy::disallowed_methods, reason = "a pipe that breaks is made by a shell")]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use toolcrib_tests::Program;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};

const SUBCOMMANDS: [&[&str]; 89] = [
    &[],
    &["tools"],
    &["call"],
    &["run"],
    &["serve"],
    &["worker"],
    &["jobs"],
    &["jobs", "list"],
    &["jobs", "show"],
    &["jobs", "output"],
    &["jobs", "cancel"],
    &["jobs", "adopt"],
    &["schedules"],
    &["schedules", "list"],
    &["schedules", "show"],
    &["schedules", "pause"],
    &["schedules", "resume"],
    &["schedules", "adopt"],
    &["schedules", "remove"],
    &["plugin"],
    &["plugin", "list"],
    &["plugin", "compile"],
    &["plugin", "inspect"],
    &["plugin", "add"],
    &["plugin", "update"],
    &["plugin", "remove"],
    &["plugin", "allow"],
    &["plugin", "deny"],
    &["plugin", "new"],
    &["plugin", "doctor"],
    &["plugin", "build"],
    &["plugin", "test"],
    &["plugin", "dev"],
    &["plugin", "pack"],
    &["plugin", "check"],
    &["plugin", "wit"],
    &["plugin", "vet"],
    &["plugin", "sign"],
    &["plugin", "lock"],
    &["plugin", "verify"],
    &["program"],
    &["program", "inspect"],
    &["notes"],
    &["notes", "list"],
    &["notes", "show"],
    &["notes", "save"],
    &["notes", "delete"],
    &["memory"],
    &["memory", "list"],
    &["memory", "show"],
    &["memory", "delete"],
    &["tasks"],
    &["tasks", "list"],
    &["tasks", "show"],
    &["tasks", "approve"],
    &["tasks", "move"],
    &["store", "embed"],
    &["policy"],
    &["policy", "explain"],
    &["policy", "check"],
    &["policy", "lock"],
    &["policy", "install"],
    &["audit"],
    &["audit", "init"],
    &["audit", "verify"],
    &["audit", "show"],
    &["audit", "tail"],
    &["calls"],
    &["config"],
    &["config", "show"],
    &["store"],
    &["store", "check"],
    &["store", "backup"],
    &["store", "export"],
    &["store", "import"],
    &["store", "list"],
    &["setup"],
    &["toolset"],
    &["toolset", "import"],
    &["upstream"],
    &["upstream", "add"],
    &["upstream", "import"],
    &["upstream", "review"],
    &["upstream", "list"],
    &["upstream", "remove"],
    &["trust"],
    &["doctor"],
    &["completions"],
    &["man"],
];

#[test]
fn the_version_names_the_engine() {
    let text = succeeded(&Program::new().run(&["--version"]));
    assert!(text.starts_with("toolcrib 0.1.0 (wasmtime 48.0.") && text.ends_with(")\n"), "{text}");
    for subcommand in ["tools", "call", "run"] {
        assert!(succeeded(&Program::new().run(&[subcommand, "--version"])).contains("(wasmtime 48."));
    }
}

#[test]
fn every_subcommand_has_help() {
    let program = Program::new();
    let mut first_lines = BTreeSet::new();
    for subcommand in SUBCOMMANDS {
        let output = program.run(&[subcommand, &["--help"]].concat());
        let text = succeeded(&output);
        assert!(first_lines.insert(text.lines().next().map(str::to_owned)), "{subcommand:?} is another's: {text}");
        let usage = [&["Usage: toolcrib"], subcommand].concat().join(" ");
        assert!(text.contains(&usage) && stderr(&output).is_empty(), "{subcommand:?}: {text}");
    }
}

#[test]
fn every_subcommand_is_in_the_help_of_its_parent() {
    let program = Program::new();
    for subcommand in SUBCOMMANDS.iter().filter_map(|path| path.split_last()) {
        let (name, parent) = subcommand;
        let text = succeeded(&program.run(&[parent, &["--help"]].concat()));
        assert!(text.lines().any(|line| line.trim_start().starts_with(name)), "{name} in {parent:?}: {text}");
    }
}

#[test]
fn an_example_in_the_help_can_be_copied() {
    let text = succeeded(&Program::new().run(&["call", "--help"]));
    let examples: Vec<&str> = text.lines().skip_while(|line| *line != "Examples:").skip(1).collect();
    for line in examples.iter().filter(|line| !line.is_empty()) {
        assert!(line.contains("toolcrib call "), "the line before was broken: {line}");
    }
}

#[test]
fn a_reader_that_goes_early_is_no_fault() {
    let program = Program::new();
    for arguments in
        [&["tools", "--format", "json"][..], &["completions", "bash"], &["call", "time"], &["config", "show"]]
    {
        let mut child = program
            .command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), stderr(&output)), (0, String::new()), "{arguments:?}");
    }
}

#[test]
fn help_into_a_pipe_that_breaks_is_no_panic() {
    let program = Program::new();
    let script = format!("'{}' --help | true; '{0}' tools | head -1", Program::file().display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("HOME", program.path("home")).env("XDG_STATE_HOME", program.path("state"));
    let output = shell.output().unwrap();
    assert_eq!((stdout(&output).lines().count(), stderr(&output)), (1, String::new()));
}

#[test]
fn without_home_the_system_knows_it() {
    let program = Program::new();
    let output = program.command(&["call", "time"]).env_remove("HOME").stdin(Stdio::null()).output().unwrap();
    assert_eq!(json_of(&output)["result"]["source"], "harness");
}

#[test]
fn without_any_environment_but_a_home_everything_lies_below_it() {
    let program = Program::new();
    let mut command = program.command(&["call", "time"]);
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "PATH", "TERM"] {
        command.env_remove(name);
    }
    json_of(&command.stdin(Stdio::null()).output().unwrap());
    assert!(program.path("home/.local/state/toolcrib/audit.jsonl").exists());
}

#[test]
fn a_state_directory_that_cannot_be_used_costs_notices_on_stderr_alone() {
    let program = Program::cold();
    program.write("state/toolcrib", "in the way");
    let output = program.run(&["call", "time"]);
    assert_eq!(json_of(&output)["result"]["source"], "harness");
    let told = stderr(&output);
    assert!(told.lines().count() == 3 && told.lines().all(|line| line.starts_with("notice: ")), "{told}");
}

#[test]
fn a_working_directory_that_has_gone_is_told() {
    let program = Program::new();
    let script = format!("mkdir gone && cd gone && rmdir ../gone && '{}' call time", Program::file().display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(program.root()).env("HOME", program.path("home"));
    let output = shell.env("XDG_STATE_HOME", program.path("state")).output().unwrap();
    assert_eq!(code(&output), 10);
    assert!(stderr(&output).contains("unavailable: the working directory is gone: "), "{}", stderr(&output));
}

#[test]
fn nothing_is_left_in_the_working_directory() {
    let program = Program::new();
    for arguments in [&["tools"][..], &["call", "time"], &["doctor"], &["config", "show"], &["plugin", "list"]] {
        succeeded(&program.run(arguments));
    }
    assert_eq!(std::fs::read_dir(program.path("work")).unwrap().count(), 0);
}

/// `host/core/examples/agent.rs`: three processes with three toolsets over one host.
#[test]
fn an_agent_of_several_processes_has_its_day() {
    let example = Program::file().with_file_name("examples").join("agent");
    let program = Program::cold();
    let output = Command::new(example).current_dir(program.path("work")).output().expect("the example was built");
    let said = succeeded(&output);
    let lines: Vec<&str> = said.lines().collect();
    for expected in [
        "#kitchen: Good morning! I will see to the notes.",
        "(worker1 is working on: replace tea by coffee in notes.txt, and count the words)",
        "#kitchen? Shall I go on? [\"yes\",\"no\"]",
        "told in this turn: agent.branch, agent.spawn, message.ask, message.send",
        "late: `reply` of toolset `channel` is there while a turn is open, and none is",
        "asked: may `wc -w notes.txt` run? yes",
        "outcome: done: 4 notes.txt",
        "(branch2 no longer thinks about: what else could be improved)",
        "#kitchen: \u{2615}",
        "cancelled: true, false",
        "notes: a cup of coffee",
    ] {
        assert!(lines.contains(&expected), "{expected}: {said}");
    }
    // The next day all of it was started anew.
    let next: Vec<&str> = lines.iter().copied().skip_while(|line| !line.starts_with("notes: ")).skip(1).collect();
    assert_eq!(
        next,
        [
            "pinned: Ask before the kettle is replaced.",
            "remembered: \"Ada prefers coffee to tea.\"",
            "task 1 is \"done\"",
            "said: \"ada\": \"Could you replace the tea in the notes? I would rather have coffee.\"",
            "said: \"barista\": \"Good morning! I will see to the notes.\"",
            "the worker made 6 steps, and the last came to \"4 notes.txt\"",
        ],
        "{said}"
    );
}

/// `host/core/examples/embed.rs`: the library without its command line.
#[test]
fn a_program_that_embeds_the_host_lists_calls_and_answers() {
    let example = Program::file().with_file_name("examples").join("embed");
    let program = Program::cold();
    let output = Command::new(example).current_dir(program.path("work")).output().expect("the example was built");
    let said = succeeded(&output);
    assert!(said.starts_with("tools: ") && said.contains("run_shell") && said.contains("time"), "{said}");
    assert!(
        said.contains(
            "asked: run_shell (built in) wants to run on local, confined with named hosts only; the model says: \"low risk\"\n"
        ),
        "{said}"
    );
    assert!(said.contains("  run: echo from the example\n"), "{said}");
    assert!(said.contains(r#""stdout":"from the example\n""#), "{said}");
}
