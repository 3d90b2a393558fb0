//! The steps by which commands are confined: which one is used where others fail, what is said of it, and that bwrap holds what this program
//! promises.
#![expect(clippy::disallowed_methods, reason = "the program where calls fail, and these tests themselves once more")]

use crate::rig::{REQUIRED, Rig, STEP, Step, Via, program};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use toolcrib_tests::shell::{self, command};
use toolcrib_tests::{Client, LANDLOCK, MOUNT, Program, Running, on_path};

fn call(mut command: Command) -> Value {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// What [`Program::failing`] starts, with a PATH on which there is nothing.
fn without_programs(given: &Command, program: &Program) -> Command {
    let (before, own): (Vec<_>, Vec<_>) = given.get_args().enumerate().partition(|(at, _)| *at < 3);
    let mut command = Command::new(given.get_program());
    command.args(before.iter().map(|(_, word)| word)).arg("/usr/bin/env");
    command.arg(format!("PATH={}", program.path("data").display())).args(own.iter().map(|(_, word)| word));
    command.current_dir(program.path("work")).env_clear();
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// C-43: each step takes over from those that fail, as far as settings let it count; where none is left, `required` refuses, and
/// `auto` has no person here.
#[test]
fn a_step_takes_over_from_those_that_fail() {
    let program = program(Via::Process);
    let arguments = command(": >ran").to_string();
    let bwrap_fails = [MOUNT];
    let all_fail = [MOUNT, LANDLOCK];
    let (none, partial) = ("confine.network=none", "confine.floor=partial");
    for (fails, settings, has_programs, expected) in [
        (Step::Bwrap.failing(), &[none][..], true, Ok("confined by bwrap without a network, writes below ")),
        (
            Step::Bwrap.failing(),
            &[],
            true,
            Err("making mounts read-only: Operation not permitted (os error 1); bwrap: it has no way to a network"),
        ),
        (Step::Bwrap.failing(), &[none], false, Err("; bwrap: it is not on PATH; Landlock: it does not count")),
        (&bwrap_fails, &[none], true, Err("; bwrap: ")),
        (&bwrap_fails, &[none, partial], true, Ok("partially confined by Landlock without a network, writes below ")),
        (&bwrap_fails, &[partial], false, Ok("partially confined by Landlock without a network, writes below ")),
        (&all_fail, &[partial], true, Err("; Landlock: ")),
    ] {
        for mode in ["auto", "required"] {
            let mode = format!("confine.mode={mode}");
            let set =
                [mode.as_str()].into_iter().chain(settings.iter().copied()).flat_map(|setting| ["--set", setting]);
            let given: Vec<&str> = set.chain(["--yes", "call", "run_shell", &arguments]).collect();
            let command = program.failing(fails, &given);
            let command = if has_programs { command } else { without_programs(&command, &program) };
            let trail = || std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).unwrap_or_default();
            let before = trail().len();
            let envelope = call(command);
            let (ran, recorded) = (std::fs::remove_file(program.path("work/ran")).is_ok(), trail().split_off(before));
            let said = format!("{mode} {settings:?}: {envelope}\n{recorded}");
            match expected {
                Ok(told) => assert!(ran && recorded.contains(told), "{said}"),
                Err(why) => assert!(!ran && said.replace("\\\"", "\"").contains(why), "{said}"),
            }
        }
    }
}

/// Doctor says of each step why it cannot be used, and what helps.
#[test]
fn doctor_says_why_a_step_cannot_be_used() {
    let program = program(Via::Process);
    let said = |mut command: Command| {
        let output = command.stdin(Stdio::null()).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let here = said(program.command(&["doctor"]));
    assert!(!here.contains("confining"), "{here}");
    let bwrap = said(program.failing(Step::Bwrap.failing(), &["--set", "confine.network=none", "doctor"]));
    for part in ["no namespaces: making mounts read-only: ", "commands are confined by bwrap without a network"] {
        assert!(bwrap.contains(part), "{part}: {bwrap}");
    }
    let none = said(program.failing(&[MOUNT], &["doctor"]));
    for part in [
        "no namespaces: mounting over /: ",
        "no bwrap: it has no way to a network (set `network = \"none\"` under [confine])",
        "no Landlock: it does not count as confined (set `floor = \"partial\"` under [confine] to let that count)",
        "they cannot be confined here: mounting over /: ",
    ] {
        assert!(none.contains(part), "{part}: {none}");
    }
    let partial = said(program.failing(&[MOUNT], &["--set", "confine.floor=partial", "doctor"]));
    assert!(
        partial.contains("commands are partially confined by Landlock without a network, writes below"),
        "{partial}"
    );
    assert!(partial.contains("can read credentials"), "{partial}");
}

/// Under AppArmor's restriction, doctor names the profile for this very program.
#[test]
fn doctor_names_the_profile_that_apparmor_wants() {
    let program = program(Via::Process);
    let given = program.failing(&[MOUNT], &["doctor"]);
    let mut command = Command::new("unshare");
    let restricted = "mount -t tmpfs none /proc/sys && mkdir /proc/sys/kernel && \
                      echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns && exec \"$@\"";
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", restricted, "sh"]).arg(given.get_program());
    command.args(given.get_args()).current_dir(program.path("work")).env_clear();
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!(
        "AppArmor lets only programs with a profile do that: install the one for `{}`",
        Program::file().display()
    );
    assert!(said.contains(&expected), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// A declared program runs from its copy by each step: one with a file of its own, and a script, whose interpreter reads it.
#[test]
fn each_step_runs_the_copy_of_a_declared_program() {
    let script = "#!/bin/sh\necho \"$1\"; cat; echo outside >../outside\n";
    for step in [Step::Namespaces, Step::Bwrap, Step::Landlock] {
        let program = program(Via::Process);
        program.write_program("work/script", script);
        let file = program.path("work/script");
        program.declares("script", &file, "result = \"any\"");
        program.declares("cat", &on_path("cat"), "");
        program.declares("ls", &on_path("ls"), "");
        let mut rig = Rig::by(step, program, &[]);
        let given = json!({ "args": ["-"], "stdin": "text" });
        assert_eq!(rig.client.result("cat", given.clone())["stdout"], "text", "{step:?}");
        let result = rig.client.result("script", given);
        assert_eq!(result["stdout"], "-\ntext", "{step:?}");
        assert!(!rig.program.path("outside").exists(), "{step:?}: {result}");
        // Nothing else is open in it: the last is what it lists them by.
        let open = rig.client.result("ls", json!({ "args": ["/proc/self/fd"] }));
        assert_eq!(open["stdout"], "0\n1\n2\n3\n", "{step:?}");
    }
}

/// Where nothing can be confined and all has to be, no program runs.
#[test]
fn a_declared_program_that_cannot_be_confined_does_not_run() {
    let program = program(Via::Process);
    program.declares("touch", &on_path("touch"), "");
    let given = ["--yes", "--set", REQUIRED, "call", "touch", r#"{"args":["ran"]}"#];
    let envelope = call(program.failing(&[MOUNT, LANDLOCK], &given));
    assert_eq!(envelope["error"]["kind"], "unavailable", "{envelope}");
    assert!(!program.path("work/ran").exists());
}

/// Programs on PATH that commands could have written make no cell.
#[test]
fn a_bwrap_of_the_workspace_is_not_used() {
    let program = program(Via::Process);
    program.write_program("work/bin/bwrap", "#!/bin/sh\necho planted >&2; shift 999 2>/dev/null; touch planted\n");
    let bin = program.path("work/bin").canonicalize().expect("a directory");
    let given = [
        "--yes",
        "--set",
        REQUIRED,
        "--set",
        "confine.network=none",
        "call",
        "run_shell",
        &command("echo ran").to_string(),
    ];
    let mut command = program.failing(Step::Bwrap.failing(), &given);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let envelope = call(command);
    assert_eq!(envelope["result"]["stdout"], "ran\n", "{envelope}");
    assert!(!program.path("work/planted").exists());
}

/// What another program cannot make any more ends as what this one cannot: nothing ran.
#[test]
fn a_command_that_bwrap_cannot_confine_does_not_run() {
    let program = program(Via::Process);
    std::fs::create_dir(program.path("more")).expect("a directory");
    let more = program.path("more").canonicalize().expect("a directory");
    let mut rig = Rig::by(Step::Bwrap, program, &[&format!("confine.write=[\".\", {more:?}]")]);
    assert_eq!(rig.run("echo ran"), (0, "ran\n".into()));
    std::fs::rename(&more, rig.program.path("away")).expect("a directory");
    let refused = rig.client.failure("run_shell", command("echo ran"));
    assert!(refused.starts_with("unavailable: ") && refused.contains("/more"), "{refused}");
}

/// The same where bwrap itself fails, which it did not when it was tried.
#[test]
fn a_command_whose_bwrap_fails_did_not_run() {
    let program = program(Via::Process);
    let given =
        program.failing(Step::Bwrap.failing(), &["--yes", "--set", REQUIRED, "--set", "confine.network=none", "run"]);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user"]).arg(given.get_program()).args(given.get_args());
    command.current_dir(program.path("work")).env_clear();
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut client = Client::of(Running::start(&mut command));
    assert_eq!(client.result("run_shell", shell::command("echo ran"))["stdout"], "ran\n");
    // No more namespaces in the one that the host is in.
    let script = format!(
        "import ctypes; ns = open('/proc/{}/ns/user'); assert ctypes.CDLL(None).setns(ns.fileno(), 0) == 0; \
         open('/proc/sys/user/max_user_namespaces', 'w').write('0')",
        client.pid()
    );
    assert!(Command::new("python3").args(["-c", &script]).status().expect("python3").success());
    let refused = client.failure("run_shell", shell::command("touch ran"));
    assert!(refused.starts_with("unavailable: the command cannot be confined: "), "{refused}");
    assert!(!program.path("work/ran").exists());
}

/// Caches begin empty, and what is written there stays with the workspace; programs of theirs that are on PATH stay.
#[test]
fn caches_of_bwrap_are_of_the_workspace_alone() {
    for via in crate::rig::BOTH {
        let program = program(via);
        program.write("home/.cargo/registry/there", "outside\n");
        let mut rig = Rig::by(Step::Bwrap, program, &[]);
        assert_eq!(
            rig.run("mkdir -p ~/.cargo/registry && echo inside >~/.cargo/registry/new && ls ~/.cargo/registry"),
            (0, "new\n".into()),
            "{via:?}"
        );
        assert!(!rig.program.path("home/.cargo/registry/new").exists());
        if via == Via::Process {
            assert_eq!(rig.run("cat ~/.cargo/registry/new"), (0, "inside\n".into()));
        }
    }
}

/// C-01 to C-35, as far as they are not about what cells share: these tests once more, with a host that can make no namespaces itself.
#[test]
fn by_bwrap_the_same_holds() {
    if std::env::var_os(STEP).is_some() {
        return;
    }
    let skip = [
        // It has no proxy, shares no `/tmp`, and lays no directory over another.
        "attempts::a_command_has_the_standard_variables_and_those_of_its_cell",
        "attempts::a_plain_command_leaves_the_next_nothing",
        "attempts::devices_keep_their_modes",
        "places::what_is_written_in_caches_stays_with_the_workspace",
    ];
    let mut tests = Command::new(std::env::current_exe().expect("these tests"));
    tests.env(STEP, "bwrap").args(["--test-threads=2", "--nocapture", "attempts::", "places::", "ends::"]);
    let output = tests.args(skip.iter().flat_map(|name| ["--skip", name])).output().expect("they start");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("SKIPPED"), "{said}");
    assert!(said.matches(" ... ok").count() >= 15, "{said}");
}
