//! What the attacks by commands share: calls of `run_shell`, and processes known by a mark in their arguments.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use toolcrib_tests::Siege;

/// Runs a command and returns its result.
pub(crate) fn run(siege: &mut Siege, text: &str) -> Value {
    let answer = siege.shell(text);
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

/// Text that stands in the arguments of no other process.
pub(crate) fn mark() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("mark-{}-{}-", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Processes with this text in their arguments, by any of their threads: the first may be gone while others go on.
pub(crate) fn marked(mark: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("the list of processes");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| is_marked(&PathBuf::from(format!("/proc/{pid}/task")), mark)).collect()
}

fn is_marked(tasks: &Path, mark: &str) -> bool {
    let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let lines = tasks.filter_map(|task| std::fs::read(task.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(mark))
}

/// Ends what a failing test would leave running.
pub(crate) fn end(mark: &str) {
    for pid in marked(mark).into_iter().filter_map(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
