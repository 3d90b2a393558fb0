//! A cell that lives: what commands and panes join, so that they share its `/tmp` and its loopback.
//!
//! Its namespaces are kept by a process that does nothing, which ends with this host, and by all that joined it. Each command has a copy of
//! the mounts and processes of its own. What comes into being outside and is to be hidden or protected is covered before the next one joins.

use super::layout::{Layout, Over, Which, covers};
use super::{Cell, Listeners, Profile};
use crate::backend::{spawn, tree};
use crate::config::CellNetwork;
use parking_lot::Mutex;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use std::collections::HashSet;
use std::fs::{File, metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// In the order in which they are entered: what comes after the first belongs to it.
const KINDS: [&str; 6] = ["user", "ipc", "uts", "cgroup", "net", "mnt"];

/// The namespaces of a cell that are not this process's own.
pub(in crate::backend) struct Namespaces(Vec<File>);

impl Namespaces {
    /// Those of a process in a cell of this profile. One that has any of them in common with this process is in no such cell.
    fn of(profile: &Profile, pid: &str) -> io::Result<Self> {
        let open = |process: &str, kind: &str| File::open(format!("/proc/{process}/ns/{kind}"));
        let mut all = Vec::new();
        for kind in KINDS {
            let (theirs, ours) = (open(pid, kind)?, open("self", kind)?);
            if theirs.metadata()?.ino() != ours.metadata()?.ino() {
                all.push(theirs);
            } else if kind != "net" || profile.network != CellNetwork::Full {
                return Err(io::Error::new(io::ErrorKind::NotFound, format!("process {pid} is in no cell")));
            }
        }
        Ok(Self(all))
    }

    /// Those that an address names, as [`Living::address`] wrote it.
    pub(in crate::backend) fn at(profile: &Profile, address: &str) -> io::Result<Self> {
        let (pid, user) = address.split_once(':').ok_or(io::ErrorKind::InvalidInput)?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(pid) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the cell that it is to join is gone");
        let found = Self::of(profile, pid).map_err(|_| gone())?;
        // The number of a process may be another one's by now.
        if found.user()?.to_string() == user { Ok(found) } else { Err(gone()) }
    }

    /// What tells the user namespace from all others that there are.
    fn user(&self) -> io::Result<u64> {
        Ok(self.0.first().ok_or(io::ErrorKind::NotFound)?.metadata()?.ino())
    }

    pub(in crate::backend) fn descriptors(&self) -> Vec<RawFd> {
        self.0.iter().map(AsRawFd::as_raw_fd).collect()
    }
}

/// The process that keeps a cell.
struct Keeper(spawn::Started);

impl Keeper {
    fn start(cell: &Cell) -> io::Result<Self> {
        tree::born(|| spawn::keeper(cell)).map(Self)
    }

    fn is_alive(&self) -> bool {
        let ended = rustix::process::waitid(
            WaitId::PidFd(self.0.handle.as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
        );
        matches!(ended, Ok(None))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It has nothing to lose, and is gone at once.
        let _ = rustix::process::pidfd_send_signal(&self.0.handle, Signal::KILL);
        let _ = rustix::process::waitid(WaitId::PidFd(self.0.handle.as_fd()), WaitIdOptions::EXITED);
        tree::remove_leader(self.0.pid);
    }
}

/// A cell of this host's.
pub(in crate::backend) struct Living {
    namespaces: Arc<Namespaces>,
    keeper: Mutex<Keeper>,
    /// What was taken from outside when it was made.
    taken: Vec<(PathBuf, Which)>,
    covered: Mutex<HashSet<Over>>,
    /// Its listeners were handed out.
    is_served: Mutex<bool>,
}

impl Living {
    /// Makes a cell.
    pub(in crate::backend) fn make(profile: &Profile) -> io::Result<Self> {
        let cell = Cell::of(profile)?;
        let keeper = Keeper::start(&cell)?;
        let namespaces = Arc::new(Namespaces::of(profile, &keeper.0.pid.to_string())?);
        let Layout { taken, covered, .. } = cell.layout;
        Ok(Self {
            namespaces,
            keeper: Mutex::new(keeper),
            taken,
            covered: Mutex::new(covered.into_iter().collect()),
            is_served: Mutex::default(),
        })
    }

    /// Keeps the cell of a process that is in one of this profile; `is_there` says whether the number is still that process's.
    pub(in crate::backend) fn of_process(
        profile: &Profile,
        pid: &str,
        is_there: impl FnOnce() -> bool,
    ) -> io::Result<Self> {
        let namespaces = Arc::new(Namespaces::of(profile, pid)?);
        // What was opened before it was so is the process's own.
        if !is_there() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let keeper = Mutex::new(Keeper::start(&Cell::joining(profile, namespaces.clone())?)?);
        let (taken, covered) = (Layout::of(profile)?.taken, Mutex::default());
        Ok(Self { namespaces, keeper, taken, covered, is_served: Mutex::default() })
    }

    /// What it was made of is what is there now.
    pub(in crate::backend) fn holds(&self) -> bool {
        let is_same = |(path, which): &(PathBuf, Which)| metadata(path).is_ok_and(|found| Which::of(&found) == *which);
        self.taken.iter().all(is_same)
    }

    /// What a command or a pane has of its own in it.
    pub(in crate::backend) fn join(&self, profile: &Profile) -> io::Result<Cell> {
        self.cover(profile)?;
        Cell::joining(profile, self.namespaces.clone())
    }

    /// Where another program finds it: a process in it, and which user namespace that is in.
    pub(in crate::backend) fn address(&self, profile: &Profile) -> io::Result<String> {
        self.cover(profile)?;
        let mut keeper = self.keeper.lock();
        // Somebody may have ended it; the cell is there all the same.
        if !keeper.is_alive() {
            *keeper = Keeper::start(&Cell::joining(profile, self.namespaces.clone())?)?;
        }
        Ok(format!("{}:{}", keeper.0.pid, self.namespaces.user()?))
    }

    /// What waits for its connections; none where this or another host has that already.
    pub(in crate::backend) fn listeners(&self, profile: &Profile) -> io::Result<Option<Listeners>> {
        let mut is_served = self.is_served.lock();
        if *is_served {
            return Ok(None);
        }
        let listeners = Listeners::bind(&self.namespaces, profile)?;
        *is_served = listeners.is_some();
        Ok(listeners)
    }

    /// Covers what came into being since.
    fn cover(&self, profile: &Profile) -> io::Result<()> {
        let covers = covers(profile)?;
        let mut covered = self.covered.lock();
        let new: Vec<_> = covers.iter().filter(|cover| !covered.contains(&cover.over)).collect();
        if !new.is_empty() {
            spawn::enter(&self.namespaces, &Layout::default().covering(new)?)?;
        }
        *covered = covers.into_iter().map(|cover| cover.over).collect();
        Ok(())
    }
}
