//! What a test asks of a process that has ended or is to end: its code, its streams, its answers.

use crate::{Program, Running, canary, eventually, guest};
use serde_json::Value;
use std::process::Output;
use std::time::Duration;

/// Lets `run_shell` run without a question.
pub const NO_QUESTION: [&str; 2] = ["--set", "tools.shell_confirm=false"];

/// The exit code.
#[must_use]
pub fn code(output: &Output) -> i32 {
    canary::check_output(output);
    output.status.code().unwrap_or_else(|| panic!("{}: {}", output.status, stderr(output)))
}

/// What it wrote to stdout.
#[must_use]
pub fn stdout(output: &Output) -> String {
    canary::check_output(output);
    String::from_utf8(output.stdout.clone()).expect("text on stdout")
}

/// What it wrote to stderr.
#[must_use]
pub fn stderr(output: &Output) -> String {
    canary::check_output(output);
    String::from_utf8(output.stderr.clone()).expect("text on stderr")
}

/// The result of a program that succeeded. Not every test looks at it.
pub fn succeeded(output: &Output) -> String {
    assert_eq!(code(output), 0, "{}", stderr(output));
    stdout(output)
}

/// The JSON that a program printed which succeeded.
pub fn json_of(output: &Output) -> Value {
    let text = succeeded(output);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The lines of `toolcrib run`.
#[must_use]
pub fn answers(output: &Output) -> Vec<Value> {
    let text = succeeded(output);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Waits for the end of a program, which has to come by itself; returns its exit code.
pub fn ended(running: &mut Running) -> Option<i32> {
    running.ended(Duration::from_secs(10)).expect("the process ends").code()
}

/// Waits until the process has a handler for all three signals; before that they would simply end it.
pub fn catches_signals(pid: u32) {
    const HUP_INT_AND_TERM: u64 = 1 | 1 << 1 | 1 << 14;
    eventually("signals are caught", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & HUP_INT_AND_TERM == HUP_INT_AND_TERM)
    });
}

/// Puts a guest into the user's plugin directory; returns its path.
pub fn install(program: &Program, name: &str) -> String {
    let file = format!("data/toolcrib/plugins/{name}.wasm");
    program.write(&file, std::fs::read(guest(name)).expect("a guest that was built"));
    program.path(&file).display().to_string()
}

/// The same plugin in other bytes: with a custom section that says nothing.
pub fn change(file: &str) {
    let bytes = std::fs::read(file).expect("a plugin");
    std::fs::write(file, with_a_section_more(bytes)).expect("a changed plugin");
}

/// The same component with a custom section more, which changes nothing but its bytes.
#[must_use]
pub fn with_a_section_more(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend([0, 2, 1, b'x']);
    bytes
}
