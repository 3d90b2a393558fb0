//! Names of places that could be taken for options, commands or other places: refused before anything is started.

use crate::rig::{all, to_end};
use std::process::Output;
use toolcrib_tests::Program;
use toolcrib_tests::shell::command;

const ENGINES_AND_SSH: [&str; 3] = ["docker", "podman", "ssh"];

/// A program that finds impostors of docker, podman and ssh, which leave a file when they are run.
fn among_impostors() -> Program {
    let program = Program::new();
    for name in ENGINES_AND_SSH {
        program.write_program(&format!("bin/{name}"), "#!/bin/sh\n: >>\"$0.ran\"\nexit 1\n");
    }
    program
}

/// Which impostors were run.
fn ran(program: &Program) -> Vec<&'static str> {
    ENGINES_AND_SSH.into_iter().filter(|name| program.path(&format!("bin/{name}.ran")).exists()).collect()
}

fn call(program: &Program, flags: &[&str]) -> Output {
    let arguments = command("true").to_string();
    let mut called = program.command(&[flags, &["--yes", "call", "run_shell", &arguments]].concat());
    called.env("PATH", format!("{}:/usr/bin:/bin", program.path("bin").display()));
    to_end(called)
}

fn assert_refused(program: &Program, flags: &[&str]) {
    let output = call(program, flags);
    assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", all(&output));
    assert_eq!(ran(program), [] as [&str; 0], "{flags:?} started it");
}

const NO_CONTAINERS: [&str; 21] = [
    "-x",
    "--privileged",
    "-it",
    " ",
    "a b",
    " a",
    "a ",
    "a/b",
    "../a",
    "a@sha256:0123",
    "a:b",
    "a,b",
    "ä",
    "名",
    "a\nb",
    "a;id",
    "$(id)",
    "`id`",
    "a'b",
    "_a",
    ".a",
];

#[test]
fn what_is_no_containers_name_is_refused_before_anything_is_started() {
    let program = among_impostors();
    let long = "a".repeat(129);
    for name in NO_CONTAINERS.into_iter().chain([long.as_str(), "a\u{7f}b", "a\tb", "a\"b", "a\\b", "a%hb"]) {
        assert_refused(&program, &[&format!("--container={name}")]);
        assert_refused(&program, &[&format!("--container={name}"), "--engine=podman"]);
        assert_refused(&program, &["--set", &format!("backend.container={name:?}")]);
    }
    assert_refused(&program, &["--container="]);
    assert_refused(&program, &["--set", r#"backend.container="a\u0000b""#]);
    assert_refused(&program, &["--container", "a", "--engine", "lxc"]);
    assert_refused(&program, &["--set", "backend.container=\"a\"", "--set", "backend.engine=\"/bin/sh\""]);
}

#[test]
fn the_longest_name_that_there_can_be_is_taken() {
    let program = among_impostors();
    let output = call(&program, &["--container", &format!("aZ0_.-{}", "a".repeat(122)), "--engine", "docker"]);
    assert_eq!(output.status.code(), Some(10), "{}", all(&output));
    assert_eq!(ran(&program), ["docker"]);
}

/// What is no target in any of its parts.
const NO_TARGETS: [&str; 46] = [
    "-oProxyCommand=id",
    "-V",
    "-F/x",
    "--",
    "-J evil",
    "-u@host",
    "u@-host",
    "-",
    " ",
    "a b",
    " a",
    "a ",
    "a\tb",
    "a\nb",
    "a\rb",
    "a\u{7f}b",
    "a\u{1b}[2Jb",
    "a;id",
    "a&id",
    "a|id",
    "a`id`",
    "$(id)",
    "$HOME",
    "a'b",
    "a\"b",
    "a\\b",
    "%h",
    "host%h",
    "a%%b",
    "a,b",
    "*",
    "ssh://host",
    "ssh://u@host:22",
    "u@@host",
    "@host",
    "u@",
    "u;id@host",
    "u id@host",
    "u%r@host",
    "host:",
    "host:x",
    "host:99999",
    "host:-1",
    "host:22 -V",
    "[::1",
    "hôst",
];

#[test]
fn what_is_no_target_of_ssh_is_refused_before_anything_is_started() {
    let program = among_impostors();
    for target in NO_TARGETS {
        assert_refused(&program, &[&format!("--ssh={target}")]);
        assert_refused(&program, &["--set", &format!("backend.ssh={target:?}")]);
    }
    assert_refused(&program, &["--ssh="]);
    assert_refused(&program, &["--set", r#"backend.ssh="a\u0000b""#]);
    assert_refused(&program, &["--set", r#"backend.ssh="a\u001Bb""#]);
    assert_refused(&program, &[&format!("--ssh={}", "a".repeat(300))]);
}

#[test]
fn targets_of_every_form_are_taken() {
    for target in [
        "host",
        "user@host",
        "host:2222",
        "user@host.example:2222",
        "[::1]",
        "[::1]:2222",
        "user@[fe80::1]:22",
        "10.0.0.1",
    ] {
        let program = among_impostors();
        let output = call(&program, &["--ssh", target]);
        assert_eq!(output.status.code(), Some(10), "{target}: {}", all(&output));
        assert_eq!(ran(&program), ["ssh"], "{target}");
    }
}

#[test]
fn two_places_at_a_time_are_refused() {
    let program = among_impostors();
    assert_refused(&program, &["--container", "a", "--ssh", "host"]);
    assert_refused(&program, &["--set", "backend.container=\"a\"", "--set", "backend.ssh=\"host\""]);
}

/// Whoever has neither asked for gets a clear word, not an answer of this machine.
#[test]
fn what_is_not_installed_is_named() {
    for (flags, missing) in
        [(["--container", "a", "--engine", "docker"], "docker"), (["--container", "a", "--engine", "podman"], "podman")]
    {
        assert_missing(&flags, missing);
    }
    assert_missing(&["--container", "a"], "docker");
    assert_missing(&["--ssh", "host"], "ssh");
}

fn assert_missing(flags: &[&str], missing: &str) {
    let program = Program::new();
    let arguments = command("touch ran").to_string();
    let mut called = program.command(&[flags, &["--yes", "call", "run_shell", &arguments]].concat());
    called.env("PATH", program.path("work"));
    let output = to_end(called);
    assert_eq!(output.status.code(), Some(10), "{flags:?}: {}", all(&output));
    assert!(all(&output).contains(missing), "{flags:?}: {}", all(&output));
    assert!(!program.path("work/ran").exists(), "{flags:?}: it ran on this machine");
}
