//! What `toolcrib doctor` says of a place: what is there, what is missing, and why it cannot be reached.

use crate::rig::to_end;
use crate::targets::{Act, Container, Engine, Sshd, done, need_podman, need_targets, ssh_flags};
use std::sync::LazyLock;
use toolcrib_tests::{Program, reuse_code};

/// Doctor loads all plugins, which takes five seconds where none was compiled.
static SEED: LazyLock<Program> = LazyLock::new(|| {
    let seed = Program::new();
    let _ = seed.run(&["doctor"]);
    seed
});

/// Exit code and report.
fn doctor(program: &Program, flags: &[String], path: Option<&str>) -> (i32, String) {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    reuse_code(SEED.root(), &program.path("state/toolcrib"));
    let mut doctor = program.command(&[&flags[..], &["doctor"]].concat());
    if let Some(path) = path {
        doctor.env("PATH", path);
    }
    let output = to_end(doctor);
    let report = String::from_utf8(output.stdout).expect("text");
    assert!(report.lines().all(|line| ["ok  ", "note", "bad "].iter().any(|mark| line.starts_with(mark))), "{report}");
    (output.status.code().expect("an exit code"), report)
}

/// Nothing is bad, and all of this is said.
fn assert_sound(flags: &[String], panes: bool, words: &[&str]) {
    let program = if panes { Program::with_panes() } else { Program::new() };
    let (code, report) = doctor(&program, flags, None);
    assert_eq!(code, 0, "{report}");
    for word in words {
        assert!(report.contains(word), "`{word}` is not said: {report}");
    }
}

/// A line says why this place is bad.
fn assert_bad(flags: &[String], path: Option<&str>, words: &[&str]) {
    for program in [Program::new(), Program::with_panes()] {
        let (code, report) = doctor(&program, flags, path);
        assert_eq!(code, 1, "{report}");
        let bad: Vec<&str> = report.lines().filter(|line| line.starts_with("bad")).collect();
        let is_said = |line: &&str| words.iter().all(|word| line.to_lowercase().contains(&word.to_lowercase()));
        assert!(bad.iter().any(is_said), "{words:?} is not said: {report}");
    }
}

fn containers(engine: Engine) {
    let container = Container::new(engine, "debian");
    let version = engine.version();
    let tmux = container.exec("tmux -V");
    let words = [engine.name(), version.as_str(), container.name.as_str(), "/sh"];
    assert_sound(&container.flags(), false, &words);
    assert_sound(&container.flags(), true, &[&words[..], &[tmux.as_str()]].concat());
    let bare = Container::new(engine, "busybox");
    assert_sound(&bare.flags(), true, &[engine.name(), bare.name.as_str(), "tmux"]);
    container.act(Act::Pause);
    assert_bad(&container.flags(), None, &[container.name.as_str(), "paused"]);
    container.act(Act::Unpause);
    container.act(Act::Stop);
    assert_bad(&container.flags(), None, &[container.name.as_str(), "not running"]);
    container.act(Act::Remove);
    assert_bad(&container.flags(), None, &[container.name.as_str()]);
}

#[test]
fn docker_and_its_containers_are_told() {
    need_targets!();
    containers(Engine::Docker);
}

#[test]
fn podman_and_its_containers_are_told() {
    need_podman!();
    containers(Engine::Podman);
}

#[test]
fn what_is_not_installed_is_bad() {
    let flags = |flags: &[&str]| flags.iter().map(ToString::to_string).collect::<Vec<String>>();
    assert_bad(&flags(&["--container", "a", "--engine", "docker"]), Some("/nowhere"), &["docker"]);
    assert_bad(&flags(&["--container", "a", "--engine", "podman"]), Some("/nowhere"), &["podman"]);
    assert_bad(&flags(&["--ssh", "host"]), Some("/nowhere"), &["ssh"]);
}

#[test]
fn a_host_behind_ssh_is_told() {
    need_targets!();
    let sshd = Sshd::new();
    let tmux = done("tmux", &["-V"]);
    assert_sound(&sshd.flags("crib"), false, &["ssh", "crib", "/sh"]);
    assert_sound(&sshd.flags("crib"), true, &["ssh", "crib", "/sh", &tmux]);
    assert_sound(&sshd.flags("cribplain"), true, &["cribplain", "tmux"]);
    assert_sound(&sshd.flags("cribnoisy"), true, &["cribnoisy", &tmux]);
}

#[test]
fn a_host_behind_ssh_that_cannot_be_used_is_bad() {
    need_targets!();
    let sshd = Sshd::new();
    let unknown = std::fs::read_to_string(sshd.path("ssh_config")).expect("its configuration");
    let empty = sshd.bare_config("known_hosts-empty", "");
    let unknown = unknown.replace(&sshd.path("known_hosts").display().to_string(), &empty.display().to_string());
    let unknown = sshd.bare_config("unknown", &unknown);
    assert_bad(&ssh_flags("crib", &unknown), None, &["crib", &sshd.fingerprint()]);
    sshd.rekey();
    assert_bad(&sshd.flags("crib"), None, &["crib", "changed"]);
    sshd.cut();
    assert_bad(&sshd.flags("crib"), None, &["crib", "refused"]);
}
