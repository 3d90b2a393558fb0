//! A cell that lives: what commands and panes join, so that they share its `/tmp` and its loopback.
//!
//! Its namespaces are kept by a process that does nothing, which ends with this host, and by all that joined it. Each command has a copy of
//! the mounts and processes of its own. What comes into being outside and is to be hidden or protected is covered before the next one joins.

use super::gates::{Gates, When};
use super::layout::{Layout, Over, covers};
use super::left::{self, MountTree};
use super::spare::Told;
use super::{Cell, Group, Listeners, Profile};
use crate::{spawn, tree};
use base::disk::OwnDir;
use base::disk::Which;
use config::CellNetwork;
use git::{Ask, Report};
use parking_lot::Mutex;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use std::collections::HashSet;
use std::fs::{File, metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long nothing has to be written into git directories before it is taken over between calls.
const QUIET: Duration = Duration::from_secs(1);
/// How long a process that was just started may take to be there.
const PATIENCE: Duration = Duration::from_secs(2);
/// In the order in which they are entered: what comes after the first belongs to it.
const KINDS: [&str; 6] = ["user", "ipc", "uts", "cgroup", "net", "mnt"];

/// The namespaces of a cell that are not this process's own.
pub(crate) struct Namespaces(pub(super) Vec<File>);

impl Namespaces {
    /// Those of a process in a cell of this profile. One that has any of them in common with this process is in no such cell.
    pub(super) fn of(profile: &Profile, pid: &str) -> io::Result<Self> {
        let open = |process: &str, kind: &str| {
            let path = format!("/proc/{process}/ns/{kind}");
            let begin = Instant::now();
            loop {
                match File::open(&path) {
                    // Before it executes its program it shares this one's memory, and its files in /proc belong to root.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied && begin.elapsed() < PATIENCE => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    opened => return opened.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}"))),
                }
            }
        };
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
    pub(crate) fn at(profile: &Profile, address: &str) -> io::Result<Self> {
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
    pub(super) fn user(&self) -> io::Result<u64> {
        Ok(self.0.first().ok_or(io::ErrorKind::NotFound)?.metadata()?.ino())
    }

    /// Sockets in their network for one connection to its loopback: IPv4 first, then IPv6 if the system has it.
    pub(super) fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let mut layout = Layout::default();
        [libc::AF_INET, libc::AF_INET6].into_iter().for_each(|family| layout.socket(family));
        spawn::enter(self, &layout)
    }

    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.0.iter().map(AsRawFd::as_raw_fd).collect()
    }
}

/// The first process of a cell that has no command, which ends with this.
pub(super) struct Idle(Option<spawn::Started>);

impl Idle {
    pub(super) fn start(cell: &Cell, what: &str) -> io::Result<Self> {
        tree::born(|| spawn::idle(cell, what)).map(|started| Self(Some(started)))
    }

    /// One that keeps the cell that it is in.
    fn keeper(cell: &Cell) -> io::Result<Self> {
        Self::start(cell, "keep")
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.as_ref().map_or(0, |started| started.pid)
    }

    pub(super) fn lifeline(&self) -> Option<&OwnedFd> {
        self.0.as_ref()?.lifeline.as_ref()
    }

    fn is_alive(&self) -> bool {
        let ended = self.0.as_ref().map(|started| {
            let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            rustix::process::waitid(WaitId::PidFd(started.handle.as_fd()), how)
        });
        matches!(ended, Some(Ok(None)))
    }

    /// It has a command now.
    pub(super) fn begun(mut self) -> spawn::Started {
        self.0.take().expect("it is taken by nothing else (this function takes itself)")
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let Some(started) = &self.0 else { return };
        // It has nothing to lose, and is gone at once.
        let _ = rustix::process::pidfd_send_signal(&started.handle, Signal::KILL);
        let reap = || rustix::process::waitid(WaitId::PidFd(started.handle.as_fd()), WaitIdOptions::EXITED);
        let _ = tree::bury_leader(started.pid, reap);
    }
}

/// A cell of this host's.
pub(crate) struct Living {
    /// Its own namespaces, and after them those of panes that its mounts do not reach.
    trees: Vec<MountTree>,
    /// What bounds the memory of all in it. Another one of the same profile has the same.
    group: Option<Arc<Group>>,
    keeper: Mutex<Idle>,
    /// What was taken from outside when it was made.
    taken: Vec<(PathBuf, Which)>,
    covered: Mutex<Covered>,
    /// What the next command is started by, and how often places had been covered when it joined.
    spare: Mutex<Option<(u64, Idle)>>,
    /// Commands that have joined.
    commands: AtomicU32,
    /// Its listeners were handed out.
    is_served: Mutex<bool>,
    /// What stands between its commands and git directories; none where those are only read.
    gates: Option<Gates>,
    /// Calls whose commands run in it.
    calls: AtomicUsize,
    /// Another program has learned of it, and so something may run there when this host is gone.
    is_known: AtomicBool,
}

/// What lies over places in it.
#[derive(Default)]
struct Covered {
    over: HashSet<Over>,
    /// How often something was added.
    times: u64,
}

/// A cell that lives, and the profile by which a command or a pane joins it.
#[derive(Clone)]
pub(crate) struct Joined {
    living: Arc<Living>,
    profile: Arc<Profile>,
}

impl Joined {
    /// What the command has of its own there.
    pub(crate) fn cell(&self) -> io::Result<Cell> {
        self.living.joining(&self.profile)
    }

    /// Starts the program by what is there for the next command; none where nothing is, or it cannot be told so much.
    pub(crate) fn begin(&self, program: &spawn::Program<'_>) -> Option<spawn::Started> {
        self.living.commands.fetch_add(1, Ordering::Relaxed);
        let name = program.argv.first()?;
        let told = Told::new(&spawn::find(name, program.environment).ok()?, program)?;
        let idle = self.living.take_spare()?;
        told.tell(idle, program).ok()
    }

    /// Makes what the next command is started by, where there was more than one: a program that runs one command and ends needs none.
    pub(crate) fn prepare(&self) {
        if self.living.commands.load(Ordering::Relaxed) > 1 {
            // The next command can do without.
            let _ = self.living.make_spare(self);
        }
    }
}

impl Living {
    /// Makes a cell; `own` is where its gates are kept.
    pub(crate) fn make(profile: &Profile, group: Option<Arc<Group>>, own: Option<&OwnDir>) -> io::Result<Self> {
        // Where there can be none, as on a full disk, git directories are only read.
        let gates = own.and_then(|own| Gates::new(own, &profile.git(), &profile.write).ok());
        let room = own.map(OwnDir::path).filter(|_| gates.is_some());
        let cell = Cell::of(profile, room)?.within(group.clone());
        let keeper = Idle::keeper(&cell)?;
        let trees = vec![MountTree::new(Namespaces::of(profile, &keeper.pid().to_string())?)];
        if let Some(gates) = &gates {
            gates.mount(&trees)?;
        }
        // Last: what has another name there has it with all that lies over it.
        let last = Layout::within(profile).sharing().mounting(&profile.mounts)?;
        spawn::enter(&trees[0].namespaces, &last)?;
        let Layout { mut taken, covered, .. } = cell.layout;
        taken.extend(last.taken);
        Ok(Self {
            trees,
            group,
            keeper: Mutex::new(keeper),
            taken,
            covered: Mutex::new(Covered { over: covered.into_iter().collect(), times: 0 }),
            spare: Mutex::default(),
            commands: AtomicU32::default(),
            is_served: Mutex::default(),
            gates,
            calls: AtomicUsize::default(),
            is_known: AtomicBool::default(),
        })
    }

    /// Keeps the cell of a process that is in one of this profile; `is_there` says whether the number is still that process's. Where
    /// its memory is bounded, the process is in `group`.
    pub(crate) fn of_process(
        profile: &Profile,
        group: Option<Arc<Group>>,
        own: Option<&OwnDir>,
        pid: &str,
        is_there: impl FnOnce() -> bool,
    ) -> io::Result<Self> {
        let trees = left::trees(profile, pid, is_there)?;
        let namespaces = &trees[0].namespaces;
        // First of all: what joined before would not learn of what is laid there later.
        spawn::enter(namespaces, &Layout::within(profile).sharing())?;
        let keeper = Idle::keeper(&Cell::joining(profile, namespaces.clone())?.within(group.clone()))?;
        let keeper = Mutex::new(keeper);
        let covers = covers(profile, Some(namespaces))?;
        for tree in &trees {
            // The host before this one has laid the others. A gate lies over what covers its directory.
            let new = covers.iter().filter(|cover| tree.had(&cover.over.place) == 0);
            spawn::enter(&tree.namespaces, &Layout::default().covering(new)?)?;
        }
        let covered = Covered { over: covers.into_iter().map(|cover| cover.over).collect(), times: 0 };
        let (covered, spare) = (Mutex::new(covered), Mutex::default());
        let taken = Layout::of(profile, None)?.taken;
        let (commands, is_served) = (AtomicU32::default(), Mutex::default());
        let gates = own.and_then(|own| Gates::new(own, &profile.git(), &profile.write).ok());
        if let Some(gates) = &gates {
            gates.mount(&trees)?;
        }
        Ok(Self {
            trees,
            group,
            keeper,
            taken,
            covered,
            spare,
            commands,
            is_served,
            gates,
            calls: AtomicUsize::default(),
            is_known: AtomicBool::new(true),
        })
    }

    fn namespaces(&self) -> &Arc<Namespaces> {
        &self.trees[0].namespaces
    }

    /// The inode of its user namespace.
    pub(crate) fn user(&self) -> io::Result<u64> {
        self.namespaces().user()
    }

    /// A call begins whose commands run in it.
    pub(crate) fn visit(self: Arc<Self>, profile: &Profile) -> Option<Visit> {
        let gates = self.gates.as_ref()?;
        if self.calls.fetch_add(1, Ordering::AcqRel) == 0 {
            let found = profile.git();
            // The read-only mount of a git directory has to lie below its gate.
            if gates.has_new(&found) {
                let _ = self.cover(profile);
            }
            gates.begin(&found, &self.trees);
        }
        Some(Visit(self))
    }

    /// Takes over what is written into git directories when no call is there to end, once nothing has come for a while.
    pub(crate) fn attend(self: &Arc<Self>) {
        let Some(bell) = self.gates.as_ref().and_then(Gates::bell) else { return };
        // Without a runtime there are no panes either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let living = Arc::downgrade(self);
        runtime.spawn(async move {
            while bell.rings().await {
                loop {
                    tokio::time::sleep(QUIET).await;
                    let Some(living) = living.upgrade() else { return };
                    let settled = tokio::task::spawn_blocking(move || living.settle_between()).await;
                    if settled.unwrap_or(true) {
                        break;
                    }
                }
            }
        });
    }

    /// The same now; `false` where it has to be done again.
    fn settle_between(&self) -> bool {
        let Some(gates) = self.gates.as_ref() else { return true };
        if self.calls.load(Ordering::Acquire) == 0 {
            gates.settle_untold(&self.trees);
        }
        gates.has_nothing_new()
    }

    /// What a process has of its own that joins it.
    fn joining(&self, profile: &Profile) -> io::Result<Cell> {
        Ok(Cell::joining(profile, self.namespaces().clone())?.within(self.group.clone()))
    }

    /// What it was made of is what is there now, and what bounds it is this group.
    pub(crate) fn holds(&self, group: Option<&Arc<Group>>) -> bool {
        let is_same = |(path, which): &(PathBuf, Which)| metadata(path).is_ok_and(|found| Which::of(&found) == *which);
        self.group.as_ref().map(Arc::as_ptr) == group.map(Arc::as_ptr) && self.taken.iter().all(is_same)
    }

    /// Has it as it is to be for a command that joins it now.
    pub(crate) fn join(self: Arc<Self>, profile: &Arc<Profile>) -> io::Result<Joined> {
        self.cover(profile)?;
        Ok(Joined { living: self, profile: profile.clone() })
    }

    /// What the next command is started by, if all is covered there.
    fn take_spare(&self) -> Option<Idle> {
        let times = self.covered.lock().times;
        let (since, idle) = self.spare.lock().take()?;
        Some(idle).filter(|_| since == times)
    }

    fn make_spare(&self, joined: &Joined) -> io::Result<()> {
        // Before it joins: what is covered meanwhile is missing there, or is not.
        let times = self.covered.lock().times;
        if self.spare.lock().as_ref().is_some_and(|(since, idle)| *since == times && idle.is_alive()) {
            return Ok(());
        }
        let idle = Idle::start(&joined.cell()?, "spare")?;
        let before = self.spare.lock().replace((times, idle));
        drop(before);
        Ok(())
    }

    /// Where another program finds it: a process in it, and which user namespace that is in.
    pub(crate) fn address(&self, profile: &Profile) -> io::Result<String> {
        self.is_known.store(true, Ordering::Release);
        self.cover(profile)?;
        let mut keeper = self.keeper.lock();
        // Somebody may have ended it; the cell is there all the same.
        if !keeper.is_alive() {
            *keeper = Idle::keeper(&self.joining(profile)?)?;
        }
        Ok(format!("{}:{}", keeper.pid(), self.namespaces().user()?))
    }

    /// What waits for its connections; none where this or another host has that already.
    pub(crate) fn listeners(&self, profile: &Profile) -> io::Result<Option<Listeners>> {
        let mut is_served = self.is_served.lock();
        if *is_served {
            return Ok(None);
        }
        let listeners = Listeners::bind(self.namespaces(), profile)?;
        *is_served = listeners.is_some();
        Ok(listeners)
    }

    /// Sockets in its network for one connection to its loopback.
    pub(crate) fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        self.namespaces().sockets()
    }

    /// Covers what came into being since.
    fn cover(&self, profile: &Profile) -> io::Result<()> {
        let covers = covers(profile, Some(self.namespaces()))?;
        let mut covered = self.covered.lock();
        let new: Vec<_> = covers.iter().filter(|cover| !covered.over.contains(&cover.over)).collect();
        if !new.is_empty() {
            let layout = Layout::default().covering(new)?;
            self.trees.iter().try_for_each(|tree| spawn::enter(&tree.namespaces, &layout).map(drop))?;
            covered.times += 1;
        }
        covered.over = covers.into_iter().map(|cover| cover.over).collect();
        Ok(())
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        if let Some(gates) = self.gates.take().filter(|_| !*self.is_known.get_mut()) {
            // Its processes end first.
            drop(self.spare.lock().take());
            drop(std::mem::replace(&mut *self.keeper.lock(), Idle(None)));
            gates.end();
        }
    }
}

/// A call whose commands run in a cell with gates, until its end.
pub struct Visit(Arc<Living>);

impl Visit {
    /// Whether commands wrote nothing into git directories.
    pub fn is_quiet(&self) -> bool {
        self.0.gates.as_ref().is_none_or(Gates::is_quiet)
    }

    /// Takes over what commands wrote into git directories. Commands of other calls may still run.
    /// `repositories` are those that they made outside of any gate.
    pub fn settle(&self, repositories: &[PathBuf]) -> Report {
        let when = if self.0.calls.load(Ordering::Acquire) <= 1 { When::Last } else { When::Among };
        let Some(gates) = self.0.gates.as_ref() else { return Report::default() };
        let mut report = gates.settle(&self.0.trees, when);
        gates.make_anew(repositories, &mut report);
        report
    }

    /// Does what a person said yes to.
    pub fn make(&self, ask: &Ask) -> io::Result<()> {
        let made = self.0.gates.as_ref().and_then(|gates| gates.make(&ask.directory, &ask.act));
        made.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}
