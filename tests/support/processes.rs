//! The processes of a test, known by a number of seconds that no other `sleep` of this machine sleeps, or by other text of their command lines.
//!
//! Those of containers and of hosts behind the tests' sshd are on this machine too, and are seen from here.

use crate::Program;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Seconds for `sleep`: long, and in no other command line of this machine.
#[must_use]
pub fn unique_seconds() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("1000.{:07}{:04}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// All processes of this machine.
pub fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("the list of processes");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The arguments of a process, each with a zero at its end. One that has ended, and is only waited for, has none.
fn command_line(pid: u32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Living processes with this text in their command line.
#[must_use]
pub fn running(text: &str) -> Vec<u32> {
    let text = text.as_bytes();
    pids().filter(|pid| command_line(*pid).windows(text.len()).any(|piece| piece == text)).collect()
}

/// Processes that sleep so long.
#[must_use]
pub fn sleeping(seconds: &str) -> Vec<u32> {
    let expected = format!("sleep\0{seconds}\0");
    pids().filter(|pid| command_line(*pid) == expected.as_bytes()).collect()
}

/// The clients of a managed tmux, which a host starts and talks to.
#[must_use]
pub fn tmux_clients(program: &Program) -> Vec<u32> {
    let socket = program.path("state/toolcrib/tmux/socket").display().to_string();
    let is_client = |pid: &u32| {
        let line = command_line(*pid);
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&socket.as_bytes()) && words.contains(&&b"-C"[..])
    };
    pids().filter(is_client).collect()
}

/// Ends processes that a test is responsible for, where this user may.
pub fn kill(pids: &[u32]) {
    for pid in pids {
        let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw).expect("a process");
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Fails when there still is a process with this text after two seconds and what a loaded machine takes. Leaves none in any case.
pub fn assert_gone(text: &str) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        if running(text).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = running(text);
    let shown: Vec<String> = left.iter().map(|pid| shown(*pid)).collect();
    kill(&left);
    assert!(shown.is_empty(), "still there: {shown:?}");
}

/// A process, as a person recognises it.
fn shown(pid: u32) -> String {
    let line: String = String::from_utf8_lossy(&command_line(pid)).replace('\0', " ").chars().take(200).collect();
    format!("{pid} {line}")
}

/// Whether a process still runs: it is there, and not only waited for.
#[must_use]
pub fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
