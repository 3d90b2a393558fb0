//! What calls leave behind: processes, and lines of the audit trail.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use toolcrib_tests::Program;

/// How long what was ended may take to go: two seconds, and what a loaded machine takes.
pub(crate) const SOON: Duration = Duration::from_secs(4);

/// Seconds for `sleep`: long, and in no other command line of this machine.
pub(crate) fn unique_seconds() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("1000.{:07}{:04}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Living processes with such a command line. One that has ended, and is only waited for, has none.
fn processes(is_one: impl Fn(&[u8]) -> bool) -> Vec<i32> {
    let runs = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| is_one(&line));
    let entries = std::fs::read_dir("/proc").expect("the list of processes");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(runs).collect()
}

/// Processes that sleep so long.
pub(crate) fn sleeping(seconds: &str) -> Vec<i32> {
    let expected = format!("sleep\0{seconds}\0");
    processes(|line| line == expected.as_bytes())
}

/// The clients of a managed tmux, which servers of MCP start.
pub(crate) fn tmux_clients(program: &Program) -> Vec<i32> {
    let socket = program.path("state/toolcrib/tmux/socket").display().to_string();
    let is_one = |line: &[u8]| {
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&socket.as_bytes()) && words.contains(&&b"-C"[..])
    };
    processes(is_one)
}

/// Ends processes that a test is responsible for.
pub(crate) fn kill(pids: &[i32]) {
    for pid in pids {
        let _ = Pid::from_raw(*pid).map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// Fails when some process still sleeps so long after a while. Leaves none in any case.
pub(crate) fn assert_gone(seconds: &str) {
    let begin = Instant::now();
    while begin.elapsed() < SOON {
        if sleeping(seconds).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = sleeping(seconds);
    kill(&left);
    assert!(left.is_empty(), "still there: {left:?}");
}

/// The audit trail so far, without a line that is being written.
pub(crate) fn trail(program: &Program) -> Vec<Value> {
    let text = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).unwrap_or_default();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| serde_json::from_str(line).expect("an audit line")).collect()
}

/// Calls that were accepted and have no outcome yet.
pub(crate) fn open_calls(program: &Program) -> usize {
    let trail = trail(program);
    let number = |event: &str| trail.iter().filter(|line| line["event"] == event).count();
    number("accepted").saturating_sub(number("outcome"))
}

/// The outcome of every call of a tool, in order. Every call that was accepted has exactly one.
pub(crate) fn outcomes(program: &Program, tool: &str) -> Vec<String> {
    let mut counts: HashMap<String, (u32, u32)> = HashMap::new();
    let mut outcomes = Vec::new();
    for line in trail(program).iter().filter(|line| line["tool"] == tool) {
        let (accepted, ended) = counts.entry(line["call"].to_string()).or_default();
        if line["event"] == "accepted" {
            *accepted += 1;
        } else {
            *ended += 1;
            outcomes.push(line["outcome"].as_str().expect("a word").to_owned());
        }
    }
    assert!(counts.values().all(|counts| *counts == (1, 1)), "a call without exactly one outcome: {counts:?}");
    outcomes
}
