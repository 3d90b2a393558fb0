//! Whether anything ran in cells between two moments. What a command left running may write where a person works as well; where all of it slept
//! meanwhile, it was the person.

use rustix::process::{getpid, getuid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{metadata, read_dir, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The context switches of a thread, as `/proc/PID/task/TID/status` counts them.
const COUNTS: [&str; 2] = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];

/// Processes that one belongs to, one to the other, at most.
const MOST_ABOVE: usize = 1024;

/// How often each thread in cells has run.
#[derive(Debug, PartialEq, Eq)]
pub struct Activity(BTreeMap<(u32, u32), u64>);

impl Activity {
    /// That of all processes in these user namespaces; none if one of them is running now, or if `/proc` cannot be read.
    pub(in crate::backend) fn of(users: &BTreeSet<u64>) -> Option<Self> {
        let (own, user) = (getpid().as_raw_nonzero().get().unsigned_abs(), getuid().as_raw());
        let mut threads = BTreeMap::new();
        for process in read_dir("/proc").ok()?.flatten() {
            let Some(pid) = number(&process.file_name()) else { continue };
            if pid == own || !is_one(&process.path(), users, user) {
                continue;
            }
            // A process that has just ended is missing in what follows.
            for thread in read_dir(process.path().join("task")).into_iter().flatten().flatten() {
                let Some(id) = number(&thread.file_name()) else { continue };
                let Ok(status) = read_to_string(thread.path().join("status")) else { continue };
                // A process that runs all the time has no new context switch.
                if words(&status, "State:").next() == Some("R") {
                    return None;
                }
                threads.insert((pid, id), runs(&status));
            }
        }
        Some(Self(threads))
    }
}

fn number(name: &std::ffi::OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

/// Whether a process is in one of these namespaces. A process can close itself to others: then it is where the one is that it belongs to, up to the
/// first of its cell, which is open to who made it.
fn is_one(process: &Path, users: &BTreeSet<u64>, user: u32) -> bool {
    let mut at = process.to_owned();
    for _ in 0..MOST_ABOVE {
        match metadata(at.join("ns/user")) {
            Ok(namespace) => return users.contains(&namespace.ino()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
            Err(_) => {
                let status = read_to_string(at.join("status")).unwrap_or_default();
                if !words(&status, "Uid:").any(|uid| uid.parse() == Ok(user)) {
                    return false;
                }
                let Some(above) = words(&status, "PPid:").next() else { return false };
                at = Path::new("/proc").join(above);
            }
        }
    }
    true
}

fn words<'s>(status: &'s str, name: &str) -> impl Iterator<Item = &'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().split_whitespace()
}

fn runs(status: &str) -> u64 {
    let count = |line: &str| {
        let rest = COUNTS.iter().find_map(|name| line.strip_prefix(name))?;
        rest.trim().parse::<u64>().ok()
    };
    status.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process of the test's own")]
    fn it_changes_when_something_ran() {
        let own = metadata("/proc/self/ns/user").expect("a namespace").ino();
        let users = BTreeSet::from([own]);
        let child =
            std::process::Command::new("sh").args(["-c", "read x; read y"]).stdin(std::process::Stdio::piped()).spawn();
        let mut child = child.expect("a shell");
        let id = child.id();
        let of_child =
            |all: &Activity| all.0.iter().filter(|((pid, _), _)| *pid == id).map(|(_, runs)| *runs).collect::<Vec<_>>();
        let look = || Activity::of(&users).map(|all| of_child(&all));
        let mut before = look();
        // The shell first has to reach its first `read`.
        loop {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let now = look();
            if now == before && now.as_ref().is_some_and(|runs| !runs.is_empty()) {
                break;
            }
            before = now;
        }
        std::io::Write::write_all(child.stdin.as_mut().expect("its input"), b"x\n").expect("it reads");
        let begin = std::time::Instant::now();
        while look() == before {
            assert!(begin.elapsed().as_secs() < 60, "it ran");
        }
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }
}
