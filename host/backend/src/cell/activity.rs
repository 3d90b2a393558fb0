//! Whether any process of a cell ran between two moments. Processes that a command left behind may write in the person's directories. If all of
//! them slept meanwhile, the person wrote what has changed.

use rustix::process::{getpid, getuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{metadata, read_dir, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The context switches of a thread, as `/proc/PID/task/TID/status` counts them.
const COUNTS: [&str; 2] = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];

/// Processes that one belongs to, one to the other, at most.
const MOST_ABOVE: usize = 1024;

/// How often each thread in cells has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The user namespaces of the cells.
    users: BTreeSet<u64>,
    /// A process, its thread, and how often that has run.
    threads: BTreeSet<(u32, u32, u64)>,
}

impl Activity {
    /// That of all processes in these user namespaces; none if one of them is running now, or if `/proc` cannot be read.
    pub(crate) fn of(users: &BTreeSet<u64>) -> Option<Self> {
        let mut threads = BTreeSet::new();
        for pid in processes(users)? {
            // A process that has just ended is missing in what follows.
            for thread in read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let Some(id) = number(&thread.file_name()) else { continue };
                let Ok(status) = read_to_string(thread.path().join("status")) else { continue };
                match words(&status, "State:").next() {
                    // A process that runs all the time has no new context switch.
                    Some("R") => return None,
                    // The process has ended.
                    Some("Z" | "X") | None => {}
                    Some(_) => _ = threads.insert((pid, id, runs(&status))),
                }
            }
        }
        Some(Self { users: users.clone(), threads })
    }

    /// That of nothing in these user namespaces.
    pub(crate) fn in_cells(users: &BTreeSet<u64>) -> Self {
        Self { users: users.clone(), threads: BTreeSet::new() }
    }

    /// The user namespaces of the cells.
    pub(crate) fn users(&self) -> &BTreeSet<u64> {
        &self.users
    }

    /// It is that of the same cells.
    pub fn is_of_cells_of(&self, other: &Self) -> bool {
        self.users == other.users
    }

    /// That of what does not end with this program.
    pub fn outliving(&self) -> Self {
        let own = getpid().to_string();
        let is_own = |pid: u32| {
            let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            words(&status, "PPid:").next() == Some(&own)
        };
        let threads = self.threads.iter().filter(|(pid, ..)| !is_own(*pid)).copied().collect();
        Self { users: self.users.clone(), threads }
    }

    /// Something of it ran since, or came to its end. What is there besides was begun by something that ran.
    pub fn has_run(&self) -> bool {
        let user = getuid().as_raw();
        let is_asleep = |(pid, id, before): &(u32, u32, u64)| {
            let process = PathBuf::from(format!("/proc/{pid}"));
            let status = read_to_string(process.join(format!("task/{id}/status"))).unwrap_or_default();
            words(&status, "State:").next().is_some_and(|state| state != "R")
                && runs(&status) == *before
                && is_one(&process, &self.users, user)
        };
        !self.threads.iter().all(is_asleep)
    }

    /// Something is there in these cells.
    pub fn is_there(&self) -> bool {
        let is_alive = |pid: &u32| {
            let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            words(&status, "State:").next().is_some_and(|state| state != "Z")
        };
        processes(&self.users).is_none_or(|all| all.iter().any(is_alive))
    }
}

/// The processes in these user namespaces.
fn processes(users: &BTreeSet<u64>) -> Option<Vec<u32>> {
    let (own, user) = (getpid().as_raw_nonzero().get().unsigned_abs(), getuid().as_raw());
    let pids = read_dir("/proc").ok()?.flatten().filter_map(|process| number(&process.file_name()));
    Some(pids.filter(|pid| *pid != own && is_one(Path::new(&format!("/proc/{pid}")), users, user)).collect())
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
        let of_child = |all: &Activity| {
            all.threads.iter().filter(|(pid, ..)| *pid == id).map(|(.., runs)| *runs).collect::<Vec<_>>()
        };
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
