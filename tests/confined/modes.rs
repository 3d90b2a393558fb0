//! What each `mode` does where cells can be made, and where they cannot.
#![expect(clippy::disallowed_methods, reason = "the program in a namespace of its own")]

use crate::rig::{Via, program, word};
use serde_json::Value;
use std::process::{Command, Stdio};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, QUESTION, Terminal};

/// What is said where no cgroup can be divided.
pub(crate) const NEEDS: &str = "`memory` under [confine] needs a cgroup";

/// What helps there.
pub(crate) fn remedy() -> &'static str {
    let listed = std::fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let is_of_version_1 = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        ["memory", "pids"].contains(&fields[0]) && fields[1] != "0"
    };
    match listed.lines().any(is_of_version_1) {
        true => "boot with `systemd.unified_cgroup_hierarchy=1`",
        false => "systemd-run --user --scope -p Delegate=yes toolcrib",
    }
}

/// The program in a user namespace that may hold no other one: no cell can be made there.
fn without_cells(program: &Program, arguments: &[&str]) -> Command {
    unshared(&[], "echo 0 >/proc/sys/user/max_user_namespaces", program, arguments)
}

/// The program where no cgroup can be found.
fn without_cgroups(program: &Program, arguments: &[&str]) -> Command {
    unshared(&["--mount"], "mount -t tmpfs none /sys/fs/cgroup", program, arguments)
}

/// The program in namespaces where a command was run before.
fn unshared(namespaces: &[&str], before: &str, program: &Program, arguments: &[&str]) -> Command {
    let given = program.command(arguments);
    let mut command = Command::new("unshare");
    command.args(namespaces).args(["--user", "--map-current-user", "--keep-caps", "sh", "-c"]);
    command.args([format!("{before} && exec \"$@\"").as_str(), "sh"]).arg(given.get_program());
    command.args(given.get_args()).current_dir(given.get_current_dir().expect("a directory")).env_clear();
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

pub(crate) fn call(mut command: Command) -> Value {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// C-43, C-47: `off` runs it, `auto` asks a person who has to be there, `required` refuses; an answer in advance does not count.
#[test]
fn without_cells_each_mode_does_what_it_says() {
    let program = program(Via::Process);
    let arguments = command("touch ran").to_string();
    let ran = || std::fs::remove_file(program.path("work/ran")).is_ok();
    for (mode, yes, expected) in [
        ("off", true, ""),
        ("auto", true, "cannot be confined here"),
        ("auto", false, "cannot be confined here"),
        ("required", true, "`confine.mode = \"required\"` demands"),
    ] {
        let set = format!("confine.mode={mode}");
        let unasked: &[&str] = if yes { &["--yes"] } else { &["--set", "tools.shell_confirm=false"] };
        let given = [&["--set", &set], unasked, &["call", "run_shell", &arguments]].concat();
        let envelope = call(without_cells(&program, &given));
        let message = envelope["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected) && message.is_empty() == expected.is_empty(), "{mode}: {envelope}");
        assert_eq!(ran(), expected.is_empty(), "{mode}: {envelope}");
        if mode == "required" {
            let why = format!("{envelope}");
            assert!(why.contains("making namespaces") && why.contains("mode = "), "{envelope}");
        }
    }
    // The same program, where cells can be made.
    let set = ["--set", "confine.mode=auto", "--yes", "call", "run_shell", &arguments];
    let envelope = call(program.command(&set));
    assert!(envelope["error"].is_null() && ran(), "{envelope}");
}

/// C-30: if `memory` is set and cannot be enforced, a command runs only with `mode = "off"`. Nobody is asked, and the error says what to do.
#[test]
fn a_bound_of_memory_that_cannot_be_kept_lets_nothing_run() {
    let program = program(Via::Process);
    let arguments = command("touch ran").to_string();
    let ran = || std::fs::remove_file(program.path("work/ran")).is_ok();
    for (mode, runs) in [("off", true), ("auto", false), ("required", false)] {
        let mode = format!("confine.mode={mode}");
        let given = ["--set", &mode, "--set", "confine.memory=64 MiB", "--yes", "call", "run_shell", &arguments];
        let envelope = call(without_cgroups(&program, &given));
        let said = envelope.to_string();
        assert_eq!(ran(), runs, "{mode}: {said}");
        assert_eq!(envelope["error"].is_null(), runs, "{mode}: {said}");
        if !runs {
            assert_eq!(envelope["error"]["kind"], "unavailable", "{mode}: {said}");
            assert!(said.contains(NEEDS) && said.contains(remedy()), "{mode}: {said}");
        }
    }
    program.write("policy.toml", "[confine]\nmemory = \"64 MiB\"\n");
    let policy = program.path("policy.toml").display().to_string();
    let envelope = call(without_cgroups(&program, &["--policy", &policy, "call", "run_shell", &arguments]));
    let said = envelope.to_string();
    assert!(said.contains("the operator's policy decides this: `confine.memory` in "), "{said}");
    assert!(!said.contains("leave `memory`") && !ran(), "{said}");
    let doctor = without_cgroups(&program, &["--set", "confine.memory=64 MiB", "doctor"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&doctor.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("no cgroup: {NEEDS}")) && said.contains(remedy()), "{said}");
}

/// C-30: a project that is not trusted can set a bound that cannot be kept. Nobody is asked whether its commands may run unconfined.
#[test]
fn a_project_gets_no_command_out_of_its_cell_by_a_bound_of_memory() {
    let terminal = Terminal::idle(program(Via::Process));
    terminal.program.write("work/toolcrib.toml", "[confine]\nmemory = \"1 TiB\"\n");
    let host = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"";
    let call = format!("call run_shell {}", word(command("touch ran").to_string()));
    let unshared = format!("unshare --mount --user --map-current-user --keep-caps sh -c {} sh", word(host));
    terminal.run(&format!("{unshared} $toolcrib --set confine.mode=auto {call} >out"));
    assert_eq!(terminal.ended(), 10, "{}", terminal.screen());
    assert!(!terminal.screen().contains(QUESTION) && !terminal.has("ran"), "{}", terminal.screen());
    let said = terminal.out();
    assert!(said[0].to_string().contains(NEEDS), "{said:?}");
}

/// A person may let it run, each time anew: `s` covers nothing that is not confined.
#[test]
fn a_person_is_asked_each_time_where_nothing_confines() {
    let terminal = Terminal::idle(program(Via::Process));
    let calls = [1, 2]
        .map(|id| serde_json::json!({ "id": id, "tool": "run_shell", "arguments": command("echo ran") }).to_string());
    terminal.program.write("calls", calls.join("\n") + "\n");
    let host = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" --set confine.mode=auto run";
    terminal.run(&format!("unshare --user --map-current-user --keep-caps sh -c '{host}' $toolcrib <../calls >out"));
    for count in 1..=2 {
        let screen = terminal.asked(count).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(screen.matches("wants to run on local, unconfined;").count(), count, "{screen}");
        assert_eq!(screen.matches("cell │ none: making namespaces").count(), count, "{screen}");
        terminal.press(&["s", "Enter"]);
    }
    assert_eq!(terminal.ended(), 0);
}

/// What `doctor` says was tried.
#[test]
fn doctor_says_what_can_be_confined() {
    let program = program(Via::Process);
    let said = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        text.split("reach of run_shell").nth(1).unwrap_or_default().to_owned()
    };
    let off = said(&mut program.command(&["--set", "confine.mode=off", "doctor"]));
    assert!(off.contains("full rights; this system could confine them"), "{off}");
    let auto = said(&mut program.command(&["doctor"]));
    assert!(auto.contains("commands are confined with named hosts only, writes below"), "{auto}");
    let off = said(&mut without_cells(&program, &["--set", "confine.mode=off", "doctor"]));
    assert!(off.contains("this system cannot confine them: making namespaces"), "{off}");
    let auto = said(&mut without_cells(&program, &["doctor"]));
    assert!(auto.contains("a person is asked about each") && auto.contains("making namespaces"), "{auto}");
    let required = said(&mut without_cells(&program, &["--set", "confine.mode=required", "doctor"]));
    assert!(required.contains("`confine.mode = \"required\"` demands"), "{required}");
}

/// The network is the machine's where settings say so, and all other walls stand.
#[test]
fn with_the_machines_network_the_other_walls_stand() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    for via in crate::rig::BOTH {
        let mut rig = crate::rig::Rig::with(via, &["confine.network=full"]);
        let script = format!(
            "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})); print(\"reached\")'; touch /usr/x; ls -A ~/.ssh"
        );
        let (_, printed) = rig.run(&script);
        assert!(printed.contains("reached\n") && printed.contains("Read-only file system"), "{via:?} {printed}");
        assert!(!printed.contains("id\n"), "{printed}");
    }
}
