//! Cgroups below the one that these tests were given (`machine/delegated`): a host is started in one that it has for itself.

use super::ALL;
use crate::rig::word;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A cgroup without processes. It goes with this, and what is in it ends.
pub(super) struct Group(PathBuf);

impl Group {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let path = given().join(format!("group-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&path).expect("a cgroup");
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// What a host has made of it for its cells.
    pub(super) fn cells(&self) -> Vec<PathBuf> {
        self.parts("toolcrib-cell-")
    }

    /// How many of these are in use: one that was only tried goes when the next one is made.
    pub(super) fn used(&self) -> usize {
        let is_used = |cell: &PathBuf| fs::read_to_string(cell.join("cgroup.procs")).is_ok_and(|text| !text.is_empty());
        self.cells().iter().filter(|cell| is_used(cell)).count()
    }

    /// What hosts have made of it for themselves.
    pub(super) fn hosts(&self) -> Vec<PathBuf> {
        self.parts("toolcrib-host-")
    }

    fn parts(&self, beginning: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("a cgroup").map(|entry| entry.expect("a name").path());
        let has_name =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning));
        entries.filter(|path| path.is_dir() && has_name(path)).collect()
    }

    /// How many processes the cells have.
    pub(super) fn processes(&self) -> usize {
        self.cells().iter().map(|cell| read(cell, "cgroup.procs").lines().count()).sum()
    }

    /// Takes its controllers back from its parts, as systemd does before it starts something there anew.
    pub(super) fn gather(&self) {
        fs::write(self.0.join("cgroup.subtree_control"), "-memory -pids").expect("controllers are taken back");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        // The kernel takes processes out a moment after their end.
        for _ in 0..500 {
            for part in self.parts("") {
                let _ = fs::remove_dir(part);
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The cgroup that these tests were given: they run in a part of it.
pub(super) fn given() -> PathBuf {
    let own = of("self");
    own.parent().expect("a cgroup above these tests").to_owned()
}

/// The cgroup of a process.
pub(super) fn of(process: &str) -> PathBuf {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).expect("a process");
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).expect("a cgroup of version 2");
    Path::new(ALL).join(path)
}

pub(super) fn read(cgroup: &Path, file: &str) -> String {
    fs::read_to_string(cgroup.join(file)).expect("a file of a cgroup").trim().to_owned()
}

/// A program as it is started in a cgroup.
pub(super) fn started_in(cgroup: &Path, given: &Command) -> Command {
    through(&format!("echo 0 >{} && exec \"$@\"", word(cgroup.join("cgroup.procs"))), given)
}

/// A program as a script of `sh` starts it.
pub(super) fn through(script: &str, given: &Command) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(given.get_program()).args(given.get_args());
    command.current_dir(given.get_current_dir().expect("a directory")).env_clear();
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}
