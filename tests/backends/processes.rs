//! The processes of a test, known by a number of seconds that no other `sleep` of this machine sleeps.
//!
//! Containers and hosts behind the tests' sshd are on this machine, so their processes are seen from here.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Seconds for `sleep`: long, and in no other command line.
pub(crate) fn unique_seconds() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("1000.{:07}{:04}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("the list of processes");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Living processes whose command line holds these bytes. One that has ended, and is only waited for, has none.
fn with(text: &[u8]) -> Vec<u32> {
    let holds = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(text.len()).any(|piece| piece == text)
    };
    pids().filter(holds).collect()
}

/// Processes with this text in their command line.
pub(crate) fn running(text: &str) -> Vec<u32> {
    with(text.as_bytes())
}

/// Processes that sleep so long.
pub(crate) fn sleeping(seconds: &str) -> Vec<u32> {
    with(format!("sleep\0{seconds}").as_bytes())
}

/// The sockets of a process, by their numbers.
fn sockets(pid: u32) -> BTreeSet<String> {
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        let link = std::fs::read_link(entry.ok()?.path()).ok()?;
        Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
    };
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    entries.filter_map(number).collect()
}

/// Lines of a table of the kernel, in fields.
fn table(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/net/{name}")).expect("a table of sockets");
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// Processes of ssh that are connected to a port of this machine. A master renames itself, so its command line says nothing.
pub(crate) fn ssh_clients(port: u16) -> Vec<u32> {
    let end = format!(":{port:04X}");
    let is_there = |fields: &Vec<String>| fields.len() > 9 && fields[2].ends_with(&end) && fields[3] == "01";
    let connections: BTreeSet<String> =
        table("tcp").into_iter().filter(is_there).map(|mut fields| fields.swap_remove(9)).collect();
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let is_client = |pid: &u32| name(*pid).trim_end() == "ssh" && !sockets(*pid).is_disjoint(&connections);
    pids().filter(is_client).collect()
}

/// The files of the sockets that these processes listen on.
pub(crate) fn listening(pids: &[u32]) -> Vec<PathBuf> {
    let own: BTreeSet<String> = pids.iter().flat_map(|pid| sockets(*pid)).collect();
    let is_one = |fields: &Vec<String>| fields.len() == 8 && fields[3] == "00010000" && own.contains(&fields[6]);
    table("unix").into_iter().filter(is_one).map(|mut fields| PathBuf::from(fields.swap_remove(7))).collect()
}

/// Fails when there still is a process with this text after two seconds and what a loaded machine takes. Leaves none in any case.
pub(crate) fn assert_gone(text: &str) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(4) {
        if running(text).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let left: Vec<String> = running(text).into_iter().map(shown).collect();
    kill(text);
    assert!(left.is_empty(), "still there: {left:?}");
}

/// A process, as a person recognises it.
fn shown(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line: String = String::from_utf8_lossy(&line).replace('\0', " ").chars().take(200).collect();
    format!("{pid} {line}")
}

/// Ends what a test left running, where this user may.
pub(crate) fn kill(text: &str) {
    for pid in running(text) {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
