//! S-04: a command reads the environment, or the core dump, of the program that runs it: `/proc/$PPID/environ`, a crash.
//! Outcome: the host shows none of its variables, nor its memory to anybody but root (`confined/unread.rs`), its token leaves the environment, and it leaves no core; commands have what they had.
//! Switched off: without `process::seal` in `cli/main.rs` the command printed the canary and the token, and the host dumped core.
#![expect(clippy::disallowed_methods, reason = "the test starts programs beside the one it tests")]

use rustix::process::{Resource, Rlimit};
use serde_json::{Value, json};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Client, PATIENCE, Program, Running, eventually};

const CANARY: &str = "canary-5f1d0b7c9e";
const TOKEN: &str = "canary-0123456789abcdef0123456789abcdef";

fn with_secrets(program: &Program, arguments: &[&str]) -> Command {
    let mut command = program.command(arguments);
    command.env("CLOUD_SECRET", CANARY).env("TOOLCRIB_TOKEN", TOKEN).env("GIVEN", "to commands").env("LANG", "C.UTF-8");
    command.stdin(Stdio::null());
    command
}

fn result(output: &Output) -> Value {
    let envelope: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    envelope["result"].clone()
}

fn shell(program: &Program, options: &[&str], command: &str) -> Value {
    let arguments = harmless(command).to_string();
    let arguments = [options, &["--yes", "call", "run_shell", &arguments]].concat();
    result(&with_secrets(program, &arguments).output().expect("the program starts"))
}

#[test]
fn a_command_finds_nothing_of_the_hosts_environment() {
    let program = Program::new().unconfined();
    let found = shell(&program, &[], "tr '\\0' '\\n' < /proc/$PPID/cmdline; echo; tr -d '\\0' < /proc/$PPID/environ");
    let stdout = found["stdout"].as_str().expect("text");
    let (host, environment) = stdout.split_once("\n\n").expect("two parts");
    assert!(host.contains("toolcrib") && host.contains("run_shell"), "the parent is the host: {found}");
    assert_eq!(environment, "", "{found}");
    // Root alone may look, and finds nothing.
    let is_closed = found["stderr"].as_str().is_some_and(|said| said.contains("Permission denied"));
    assert!(found["stderr"] == "" || is_closed && !rustix::process::getuid().is_root(), "{found}");
}

/// A canary of its own: other tests start programs whose environment can be seen until they have begun.
#[test]
fn no_process_of_a_call_shows_a_secret() {
    let program = Program::new();
    let command = "grep -lsa -e canary-for-all-proces[s]es /proc/[0-9]*/environ; printenv";
    let arguments = harmless(command).to_string();
    let mut host = with_secrets(&program, &["--yes", "call", "run_shell", &arguments]);
    let output = host.env("CLOUD_SECRET", "canary-for-all-processes").output().expect("the program starts");
    let found = result(&output);
    let stdout = found["stdout"].as_str().expect("text");
    assert!(stdout.contains("HOME=") && !stdout.contains("/environ") && !stdout.contains("canary"), "{found}");
}

#[test]
fn commands_have_the_variables_that_they_had() {
    let program = Program::new();
    let found = shell(&program, &["--set", "tools.shell_env=[\"GIVEN\"]"], "echo \"$GIVEN,$HOME,$LANG,$PATH\"");
    let (home, path) = (program.path("home").display().to_string(), std::env::var("PATH").unwrap_or_default());
    assert_eq!(found["stdout"], format!("to commands,{home},C.UTF-8,{path}\n"));
}

#[test]
fn no_setting_passes_the_token_on() {
    let program = Program::new();
    let arguments = ["--set", "tools.shell_env=[\"TOOLCRIB_TOKEN\"]", "doctor"];
    let output = with_secrets(&program, &arguments).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("`TOOLCRIB_TOKEN` is never passed"), "{text}");
}

#[test]
fn the_token_of_the_environment_is_served_and_gone() {
    let program = Program::new();
    let server = Running::start(&mut with_secrets(&program, &["serve", "--http", "0"]));
    eventually("it says something", || server.said().contains('\n'));
    let (line, environment) = (server.said(), std::fs::read(format!("/proc/{}/environ", server.pid())));
    assert!(line.contains("listening on"), "the token is taken: {line}");
    match environment {
        Ok(shown) => assert!(shown.iter().all(|byte| *byte == 0), "{}", String::from_utf8_lossy(&shown)),
        Err(error) => assert!(!rustix::process::getuid().is_root(), "{error}"),
    }
}

/// Lets a program and what it starts leave core dumps as large as they may be here.
fn with_cores(command: &mut Command) -> &mut Command {
    #[expect(unsafe_code, reason = "code between fork and exec has no safe form")]
    // SAFETY: these are two system calls; they neither allocate nor lock.
    unsafe {
        command.pre_exec(|| {
            let limit = rustix::process::getrlimit(Resource::Core);
            let unlimited = Rlimit { current: None, maximum: None };
            let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
            rustix::process::setrlimit(Resource::Core, unlimited)
                .or_else(|_| rustix::process::setrlimit(Resource::Core, most))
                .map_err(Into::into)
        })
    }
}

/// The soft limit of core dumps as `/proc/PID/limits` shows it.
fn core_limit(limits: &str) -> String {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).expect("a limit of core dumps");
    line.split_whitespace().next().expect("a value").to_owned()
}

/// K-09: no secret of a host is in a core dump.
#[test]
fn a_host_that_crashes_leaves_no_core_and_commands_leave_theirs() {
    let program = Program::new();
    let bare = with_cores(Command::new("cat").arg("/proc/self/limits")).output().expect("cat is installed");
    let bare = core_limit(&String::from_utf8_lossy(&bare.stdout));
    let arguments = harmless("cat /proc/self/limits");
    let mut host = program.command(&["--yes", "call", "run_shell", &arguments.to_string()]);
    let found = result(&with_cores(&mut host).output().expect("the program starts"));
    assert_eq!(core_limit(found["stdout"].as_str().expect("text")), bare, "what commands may leave");
    let mut host = program.command(&["run"]);
    let mut host = Client::of(Running::start(with_cores(&mut host)));
    // It is on its feet when it answers.
    host.call("time", json!({}));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", host.pid())).expect("our own child");
    assert!(["0", "1"].contains(&core_limit(&limits).as_str()), "{limits}");
    host.signal("ABRT");
    let status = host.ended(PATIENCE).expect("it ends");
    assert!(status.signal() == Some(6) && !status.core_dumped(), "{status}");
}
