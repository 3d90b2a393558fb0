//! The processes of a test, known by a number of seconds that no other `sleep` of this machine sleeps.

use std::sync::atomic::{AtomicU32, Ordering};

/// Seconds for `sleep`: long, and in no other command line.
pub(super) fn unique_seconds() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("1000.{:07}{:04}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Living processes with this text in their command line.
pub(super) fn running(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("the list of processes");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has_text = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    pids.filter(has_text).collect()
}

/// Nothing is left of the process, not even its exit status for whoever should have asked for it.
pub(super) fn is_gone(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// The process has ended; its parent may not have asked for its exit status yet.
pub(super) fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('Z'))
}

/// Ends what a test left running.
pub(super) fn end(text: &str) {
    for pid in running(text) {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
