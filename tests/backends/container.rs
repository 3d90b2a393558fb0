//! Containers: what becomes of a call when its container stops, pauses, restarts or goes, and which container a name means.

use crate::rig::{Rig, all, assert_interrupt_ends_all, assert_interrupt_ends_all_by, call, each, run, start, to_end};
use crate::targets::{Act, Container, Engine, need_podman, need_targets};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toolcrib_tests::envelope::{kept, notices, said};
use toolcrib_tests::processes::{assert_gone, unique_seconds};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually};

/// What a call may take to notice, and what a loaded machine takes besides.
const SOON: Duration = Duration::from_secs(8);

/// Disturbs the container while a command runs: the answer comes soon and claims nothing, and nothing is run again.
fn disturbed(engine: Engine, panes: bool, act: Act) {
    let container = Container::new(engine, "debian");
    let mut rig = Rig::new(&container.flags(), panes);
    rig.output("true");
    let id = rig.send("run_shell", command("echo run >>/tmp/count; echo begun; sleep 60; echo late >>/tmp/count"));
    rig.until_printed(id, "begun");
    container.act(act);
    let begin = Instant::now();
    let answer = rig.answer();
    let took = begin.elapsed();
    assert_eq!(answer["id"], id, "{answer}");
    assert!(is_unknown(&answer), "{answer}");
    assert!(took < SOON, "it took {took:?}");
    match act {
        Act::Pause => container.act(Act::Unpause),
        Act::Stop => {
            let said = rig.refused("run_shell", command("echo again >>/tmp/count"));
            assert!(said.starts_with("unavailable: ") && said.contains(&container.name), "{said}");
            container.act(Act::Start);
        }
        Act::Remove => {
            let said = rig.refused("run_shell", command("echo again >>/tmp/count"));
            assert!(said.starts_with("unavailable: ") && said.contains(&container.name), "{said}");
            return;
        }
        _ => {}
    }
    // In its pane the command goes on when the container does.
    if panes && act == Act::Pause {
        rig.type_keys(&["C-c"]);
    }
    assert_eq!(rig.output("cat /tmp/count"), "run\n");
}

fn is_unknown(answer: &Value) -> bool {
    ["outcome_unknown", "unavailable"].iter().any(|kind| answer["error"]["kind"] == *kind)
}

const ACTS: [Act; 4] = [Act::Stop, Act::Remove, Act::Restart, Act::Pause];

#[test]
fn what_becomes_of_a_docker_container_mid_command_is_told_soon() {
    need_targets!();
    each(&ACTS, |act| disturbed(Engine::Docker, false, act));
}

#[test]
fn what_becomes_of_a_docker_container_with_panes_mid_command_is_told_soon() {
    need_targets!();
    each(&ACTS, |act| disturbed(Engine::Docker, true, act));
}

#[test]
fn what_becomes_of_a_podman_container_mid_command_is_told_soon() {
    need_podman!();
    each(&ACTS, |act| disturbed(Engine::Podman, false, act));
}

#[test]
fn what_becomes_of_a_podman_container_with_panes_mid_command_is_told_soon() {
    need_podman!();
    each(&ACTS, |act| disturbed(Engine::Podman, true, act));
}

/// Calls a container that cannot take the call; returns what is said.
fn unavailable(flags: &[String]) -> String {
    for program in [Program::new(), Program::with_panes()] {
        let (code, text) = call(&program, flags, "touch ran");
        assert_eq!(code, 10, "{text}");
        assert!(!program.path("work/ran").exists(), "it ran on this machine");
    }
    call(&Program::new(), flags, "touch ran").1
}

#[test]
fn a_container_that_is_not_there_is_named() {
    need_targets!();
    let flags = ["--container", "toolcrib-test-nowhere", "--engine", "docker"].map(str::to_owned);
    let text = unavailable(&flags);
    assert!(text.contains("toolcrib-test-nowhere"), "{text}");
    let text = unavailable(&flags[..2]);
    assert!(text.contains("toolcrib-test-nowhere"), "{text}");
}

#[test]
fn a_podman_container_that_is_not_there_is_named() {
    need_podman!();
    let text = unavailable(&["--container", "toolcrib-test-nowhere", "--engine", "podman"].map(str::to_owned));
    assert!(text.contains("toolcrib-test-nowhere"), "{text}");
}

fn stopped_and_paused(engine: Engine) {
    let container = Container::new(engine, "busybox");
    container.act(Act::Pause);
    let text = unavailable(&container.flags());
    assert!(text.contains(&container.name) && text.contains("paused"), "{text}");
    container.act(Act::Unpause);
    container.act(Act::Stop);
    let text = unavailable(&container.flags());
    assert!(text.contains(&container.name) && text.contains("not running"), "{text}");
    container.act(Act::Start);
    let (code, text) = call(&Program::new(), &container.flags(), "echo back");
    assert!(code == 0 && text.contains("back\\n"), "{text}");
}

#[test]
fn a_docker_container_that_does_not_run_is_named_with_its_state() {
    need_targets!();
    stopped_and_paused(Engine::Docker);
}

#[test]
fn a_podman_container_that_does_not_run_is_named_with_its_state() {
    need_podman!();
    stopped_and_paused(Engine::Podman);
}

/// C-01: a name is resolved once. Who makes another container of that name does not get what was meant for the first.
fn made_anew(engine: Engine, panes: bool) {
    let container = Container::new(engine, "debian");
    let mut rig = Rig::new(&container.flags(), panes);
    rig.output("echo first >/tmp/first");
    container.act(Act::Remove);
    container.make("debian", &[]);
    for attempt in 0..3 {
        let said = rig.refused("run_shell", command("touch /tmp/meant-for-the-first"));
        assert!(said.starts_with("unavailable: ") && said.contains(&container.name), "{attempt}: {said}");
        let said = rig.refused("write_file", json!({ "path": "/tmp/meant-for-the-first", "content": "" }));
        assert!(said.starts_with("unavailable: "), "{attempt}: {said}");
    }
    assert_eq!(container.exec("ls -A /tmp"), "");
    assert_eq!(rig.another().output("ls /tmp/first 2>/dev/null; echo second"), "second\n");
}

#[test]
fn another_docker_container_of_the_same_name_is_not_the_same() {
    need_targets!();
    each(&[false, true], |panes| made_anew(Engine::Docker, panes));
}

#[test]
fn another_podman_container_of_the_same_name_is_not_the_same() {
    need_podman!();
    made_anew(Engine::Podman, false);
}

#[test]
fn settings_name_a_container_as_flags_do() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let program = Program::new();
    let settings = format!("[backend]\ncontainer = {:?}\nengine = \"docker\"\n", container.name);
    program.write("config/toolcrib/toolcrib.toml", settings);
    container.exec(&format!("touch /tmp/{}", container.name));
    let here = format!("{}\\n", container.name);
    let (code, text) = call(&program, &[], "ls /tmp");
    assert!(code == 0 && text.contains(&here), "{text}");
    // Without the engine, docker's is found.
    let (code, text) = call(&Program::new(), &container.flags()[..2], "ls /tmp");
    assert!(code == 0 && text.contains(&here), "{text}");
}

/// What stands in a project is not trusted with more than narrowing.
#[test]
fn a_project_cannot_choose_the_place() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let program = Program::new();
    program.write("work/toolcrib.toml", format!("[backend]\ncontainer = {:?}\n", container.name));
    call(&program, &[], "touch /tmp/chosen-by-a-project");
    let _ = std::fs::remove_file("/tmp/chosen-by-a-project");
    assert_eq!(container.exec("ls -A /tmp"), "");
}

#[test]
fn a_container_without_tmux_runs_plain_processes_and_says_so_once() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let program = Program::with_panes();
    let mut host = start(&program, &container.flags(), &[]);
    let answer = host.call("run_shell", command("echo out; echo err >&2"));
    assert_eq!(
        (&answer["result"]["stdout"], &answer["result"]["stderr"]),
        (&"out\n".into(), &"err\n".into()),
        "{answer}"
    );
    assert!(notices(&answer).contains("tmux"), "{answer}");
    let answer = host.call("run_shell", command("echo again"));
    assert!(!notices(&answer).contains("tmux"), "{answer}");
    assert_eq!(program.tmux(&["list-sessions"]), "", "this machine's tmux was used");
}

#[test]
fn panes_that_are_demanded_and_cannot_be_had_are_an_error() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let flags = [container.flags(), vec!["--tmux".to_owned()]].concat();
    let (code, text) = call(&Program::with_panes(), &flags, "touch /tmp/ran");
    assert_eq!(code, 10, "{text}");
    assert!(text.contains("tmux"), "{text}");
    assert_eq!(container.exec("ls -A /tmp"), "");
}

#[test]
fn without_panes_their_tools_are_not_listed() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    let listed = |program: Program, more: &[&str]| {
        let output = run(&program, &container.flags(), &[more, &["tools"]].concat());
        assert!(output.status.success(), "{}", all(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    for (text, panes) in [
        (listed(Program::new(), &[]), false),
        (listed(Program::with_panes(), &["--no-tmux"]), false),
        (listed(Program::with_panes(), &["--tmux"]), true),
    ] {
        assert!(text.contains("run_shell") && text.contains("write_file"), "{text}");
        assert_eq!(text.contains("capture-pane") && text.contains("tmux-create-session"), panes, "{text}");
    }
}

/// C-04: variables that would lead the clients elsewhere are this user's, not a call's.
#[test]
fn the_environment_does_not_lead_to_another_daemon() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let program = Program::new();
    let arguments = command("echo here").to_string();
    let flags = container.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut called = program.command(&[&flags[..], &["--yes", "call", "run_shell", &arguments]].concat());
    called.envs([
        ("DOCKER_HOST", "tcp://127.0.0.1:1"),
        ("DOCKER_CONTEXT", "nowhere"),
        ("CONTAINER_HOST", "tcp://127.0.0.1:1"),
    ]);
    let output = to_end(called);
    assert!(output.status.success() && all(&output).contains("here\\n"), "{}", all(&output));
}

/// A daemon that does not answer is said in its client's words.
#[test]
fn what_the_engine_says_is_handed_on() {
    let program = Program::new();
    program.write_program(
        "bin/docker",
        "#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///nowhere' >&2\nexit 1\n",
    );
    let mut called = program.command(&[
        "--yes",
        "--container",
        "a",
        "--engine",
        "docker",
        "call",
        "run_shell",
        &command("true").to_string(),
    ]);
    called.env("PATH", format!("{}:/usr/bin:/bin", program.path("bin").display()));
    let output = to_end(called);
    assert_eq!(output.status.code(), Some(10), "{}", all(&output));
    assert!(all(&output).contains("Cannot connect to the Docker daemon"), "{}", all(&output));
}

/// C-05, when the host itself is told to end.
#[test]
fn an_interrupted_program_leaves_nothing_running() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    assert_interrupt_ends_all(&container.flags());
}

#[test]
fn an_interrupted_program_leaves_nothing_running_in_podman() {
    need_podman!();
    let container = Container::new(Engine::Podman, "debian");
    assert_interrupt_ends_all(&container.flags());
}

/// A command may run there long before its engine says so here.
#[test]
fn an_interrupted_program_ends_a_command_that_it_has_not_heard_of_yet() {
    need_targets!();
    let (container, program) = (Container::new(Engine::Docker, "busybox"), Program::new());
    // The real engine, whose words arrive late.
    program.write_program(
        "bin/docker",
        "#!/bin/bash\nset -o pipefail\nPATH=${PATH#*:} docker \"$@\" | (sleep 3; exec cat)\n",
    );
    let path = format!("{}:{}", program.path("bin").display(), std::env::var("PATH").expect("a PATH"));
    assert_interrupt_ends_all_by(&program, &container.flags(), &[("PATH", &path)]);
}

/// Living processes of a container. Its first one waits for nobody, so what has ended is listed on.
fn others(container: &Container) -> usize {
    let states = container.exec("cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //' | grep -vc '^Z'");
    states.trim().parse().expect("a number")
}

#[test]
fn nothing_of_ours_stays_in_a_container() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let before = others(&container);
    let mut rig = Rig::new(&container.flags(), false);
    rig.output("true");
    rig.within("sleep 50", "300ms");
    rig.write_file("file", "content");
    assert!(rig.end(Duration::from_secs(10)).is_some_and(|status| status.success()));
    eventually("all helpers have ended", || others(&container) <= before);
    assert_eq!(container.exec("find /tmp /root /var /dev/shm -mindepth 1"), "/tmp/file");
}

/// What podman runs beside a command must see to its end: killed, it leaves a session behind, and a process that nobody reaps, because of
/// which the container cannot be removed.
#[test]
fn podman_keeps_nothing_of_a_command_that_has_ended() {
    need_podman!();
    let container = Container::new(Engine::Podman, "debian");
    let sessions = || Engine::Podman.done(&["container", "inspect", "--format", "{{len .ExecIDs}}", &container.name]);
    let mut rig = Rig::new(&container.flags(), false);
    rig.output("true");
    rig.within("sleep 50", "300ms");
    eventually("podman knows of no session", || sessions() == "0");
}

/// C-10: memory stays bounded, and so does what is kept.
#[test]
fn a_flood_takes_bounded_memory() {
    need_targets!();
    let container = Container::new(Engine::Docker, "busybox");
    let mut rig = Rig::new(&container.flags(), false);
    rig.output("seq 5000 >/dev/null");
    let before = peak_kib(rig.pid());
    let answer = rig.call("run_shell", command("yes | head -c 200000000; echo the end"));
    let file = kept(&answer);
    assert!(file.starts_with(b"y\ny\n") && file.ends_with(b"y\nthe end\n"), "{answer}");
    assert!(file.len() < (16 << 20) + (128 << 10), "{} bytes were kept", file.len());
    let after = peak_kib(rig.pid());
    assert!(after < before + (64 << 10), "the flood took {} KiB", after - before);
}

/// The most memory that a process has had resident.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn commands_run_as_the_user_of_the_container_also_where_nothing_can_be_written() {
    need_targets!();
    let container = Container::with(Engine::Docker, "debian", &["--read-only", "--user", "65534:65534"]);
    let mut rig = Rig::new(&container.flags(), false);
    assert_eq!(rig.output("id -u; pwd"), "65534\n/tmp\n");
    let said = said(&rig.write_file("/tmp/new", "new"));
    assert!(said.starts_with("execution_failed: ") && said.contains("/tmp/new"), "{said}");
    assert!(rig.read_file("/etc/passwd")["result"].is_string());
    let seconds = unique_seconds();
    let answer = rig.within(&format!("(setsid sleep {seconds} &); env sleep {seconds}"), "1s");
    assert_eq!(answer["error"]["kind"], "timed_out", "{answer}");
    assert_gone(&seconds);
}

#[test]
fn attaching_needs_a_terminal() {
    need_targets!();
    let container = Container::new(Engine::Docker, "debian");
    let output = run(&Program::with_panes(), &container.flags(), &["attach"]);
    assert_eq!(output.status.code(), Some(2), "{}", all(&output));
    assert!(all(&output).contains("`attach` needs a terminal"), "{}", all(&output));
}
