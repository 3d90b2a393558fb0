//! A cell: the namespaces in which commands run confined.
//!
//! What is writable, what is hidden and which processes there are is decided by mounts and namespaces that a child makes before it
//! executes, as the user, without privilege or another program: `layout.rs` puts together how, `steps/` has the system calls, `hidden.rs`
//! finds what there is to hide, `doors.rs` which sockets and pipes are closed, `users.rs` makes the namespace that the others belong to. `filter.rs` refuses what would make others, `programs/` has what runs there: the
//! first process, whose end is the end of all.
//! Commands and panes join a cell that lives (`living.rs`), and this host makes their connections for them (`listeners.rs`);
//! `left.rs` finds what panes of a host before this one have. `cgroup.rs` bounds
//! what they take together. `../spawn.rs` has the children.
//!
//! Where the system does not let this program make namespaces, bubblewrap may be let (`bwrap.rs`), or Landlock bounds what it can
//! (`domain.rs`); `means.rs` names which of these it is.

mod activity;
mod bwrap;
mod cgroup;
mod domain;
mod doors;
mod filter;
mod gates;
mod hidden;
mod layout;
mod left;
mod listeners;
mod living;
mod means;
mod ports;
mod spare;
mod steps;
mod system;
mod users;
mod variables;

pub use activity::Activity;
pub(super) use bwrap::Bwrap;
pub(super) use cgroup::{Group, enter, how_to_enter, leave};
pub use cgroup::{Met, can_bound_memory};
pub use cgroup::{bounds_memory, cannot_enter, how_to_get_a_cgroup};
pub(super) use domain::Domain;
pub(super) use left::MountTree;
pub use listeners::{Asked, Listeners};
pub use living::Visit;
pub(super) use living::{Joined, Living, Namespaces};
pub use means::Means;
pub use ports::PaneCell;

use config::{CellNetwork, Keys};
use doors::Doors;
use hidden::Hidden;
pub(super) use layout::Layout;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
pub(super) use steps::{EMPTY, Step, take};
use steps::{OUT_OF_REACH, VANISHED, result};

/// The namespaces that every cell has of its own, in one of users (`users.rs`).
const NAMESPACES: libc::c_int =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
/// The first process, as the build made it; empty where there are no cells.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));
/// What git calls there for what is outside.
const RELAY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/relay"));
/// Places of the machine that a cell has new and empty, with their modes and sizes in bytes.
const OWN: [(&str, &str, u64); 4] =
    [("/tmp", "1777", 1 << 30), ("/run", "755", 16 << 20), ("/dev", "755", 64 << 10), ("/dev/shm", "1777", 1 << 30)];
/// The part of a bound of memory that each of these may fill. What is written there stays, whatever process the system ends, so together they
/// must leave commands room to run.
const PART: u64 = 4;
/// A place that a cell has new and empty.
pub struct OwnPlace {
    /// Where it is.
    pub place: &'static str,
    /// How much it holds.
    pub bytes: u64,
    /// The bound on the cell's memory makes it smaller than it would be.
    pub is_bounded: bool,
}

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("/dev/ptmx", "pts/ptmx"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];
/// What of `/proc` is the machine's: root, without any capability, could write there what runs outside (`core_pattern`).
const MACHINES: [&str; 6] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"];
/// What the names of hosts are resolved by; a link into `/run` on many systems.
pub const RESOLVER: &str = "/etc/resolv.conf";
/// Where what is written into a copy of a directory is kept.
const WRITTEN: &str = "written";
/// What lies over hidden directories.
const NOTHING: &str = "/run/.nothing";
/// Where keys outside are asked for: by ssh, by [`RELAY`], and that itself.
const KEYS: &str = "/run/.keys";
const SSH_AGENT: &str = "/run/.keys/ssh";
const KEYS_HOST: &str = "/run/.keys/host";
const GIT_RELAY: &str = "/run/.keys/git";

/// What the commands of a cell reach. Paths are absolute; those of directories that can be written have no links.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// By what it is enforced.
    pub by: Means,
    /// The toolset whose sessions it is for, where that narrows settings: what may be reached is decided by its rules, so its cells are its own.
    pub toolset: Option<String>,
    /// Directories that may be written. All else can be read at most.
    pub write: Vec<PathBuf>,
    /// Where sockets and pipes of other programs are looked for besides.
    pub around: Vec<PathBuf>,
    /// What is empty but for what is written or shown there, and for caches: the home, as a rule.
    pub emptied: Vec<PathBuf>,
    /// What is not there. What is missing is passed over.
    pub hide: Vec<PathBuf>,
    /// What can be read in places that are hidden, or that a cell has new. What is missing is passed over.
    pub show: Vec<PathBuf>,
    /// What cannot be written, in directories that can. What is missing is passed over.
    pub protect: Vec<PathBuf>,
    /// Directories that look as they do outside, and keep what is written for the workspace alone.
    pub caches: Vec<Cache>,
    /// Directories that are there under another name as well, laid last.
    pub mounts: Vec<MountPoint>,
    /// What network it has.
    pub network: CellNetwork,
    /// The ports at which connections to hosts are caught, where it reaches some.
    pub ports: Vec<u16>,
    /// The keys outside that its commands can have used for them, where it reaches hosts.
    pub keys: Vec<Keys>,
    /// Whether its processes can have sockets of files and names among themselves.
    pub unix_sockets: bool,
    /// Whether they can look into each other, as debuggers do.
    pub debug: bool,
    /// Whether they can make namespaces of their own, by which a browser confines its pages. Then nobody there is root, as that is where browsers
    /// start without.
    pub nests: bool,
    /// Processes that there can be at once. Does not bind root where memory is not bounded.
    pub processes: u64,
    /// Bytes of memory that all may take together; none where that is not bounded.
    pub memory: Option<u64>,
    /// What was found out about it.
    #[serde(skip)]
    pub known: Known,
}

/// A directory that is there under another name as well.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountPoint {
    /// What it is, in the cell and outside.
    pub from: PathBuf,
    /// Where it is as well.
    pub at: PathBuf,
    /// It cannot be written there.
    pub read_only: bool,
}

/// A directory that commands have a copy of.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Where it is for them: in the home, or where `variable` says.
    pub place: PathBuf,
    /// Where what they write is kept.
    pub own: PathBuf,
    /// What programs read that look for it; none where it is where they look by themselves.
    pub variable: Option<String>,
    /// It shows what is at that place outside; else it begins empty.
    pub is_copy: bool,
}

impl Cache {
    /// One that commands find where it is kept.
    pub fn kept(own: PathBuf, variable: &str) -> Self {
        Self { place: own.join(WRITTEN), own, variable: Some(variable.to_owned()), is_copy: false }
    }

    /// What was written there.
    fn upper(&self) -> PathBuf {
        self.own.join(WRITTEN)
    }

    /// What the kernel has for itself.
    fn work(&self) -> PathBuf {
        self.own.join("work")
    }

    /// Makes the directories, which are this user's alone.
    pub(super) fn make(&self) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(self.upper())?;
        builder.create(self.work())
    }
}

/// What was found out about a profile, and is forgotten by a copy, which may become another one.
#[derive(Debug, Default)]
pub struct Known {
    digest: OnceLock<String>,
    hidden: Mutex<Option<Arc<Hidden>>>,
    git: Mutex<Option<Arc<git::Found>>>,
    doors: Mutex<Doors>,
}

impl Clone for Known {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What they say of what is reached.
impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Profile {
    /// What a cell has new and empty, with the options of their mounts.
    fn own(&self) -> [(&'static str, String); 4] {
        OWN.map(|(place, mode, size)| (place, format!("mode={mode},size={}", self.bounded(size))))
    }

    fn bounded(&self, size: u64) -> u64 {
        self.memory.map_or(size, |memory| size.min(memory / PART))
    }

    /// The innermost place of a cell's own in which a path lies.
    #[must_use]
    pub fn own_place(&self, path: &Path) -> Option<OwnPlace> {
        let (place, _, size) = OWN.iter().rfind(|(place, ..)| path.starts_with(place))?;
        let bytes = self.bounded(*size);
        Some(OwnPlace { place, bytes, is_bounded: bytes < *size })
    }

    /// Nothing can be written, nothing is hidden, and there is no network.
    #[must_use]
    pub fn closed() -> Self {
        let [write, around, hide, show, protect] = [const { Vec::new() }; 5];
        let (caches, mounts) = (Vec::new(), Vec::new());
        let (by, network, known) = (Means::Namespaces, CellNetwork::None, Known::default());
        let (ports, keys) = (Vec::new(), Vec::new());
        let (toolset, emptied, unix_sockets, debug, nests) = (None, Vec::new(), true, false, false);
        let (processes, memory) = (512, None);
        Self {
            by,
            toolset,
            write,
            around,
            emptied,
            hide,
            show,
            protect,
            caches,
            mounts,
            network,
            ports,
            keys,
            unix_sockets,
            debug,
            nests,
            processes,
            memory,
            known,
        }
    }

    pub fn can_write(&self, path: &Path) -> bool {
        self.write.iter().any(|root| path.starts_with(root))
    }

    /// Whether a place is new in a cell: nothing of what is there outside is there, but for what is laid there.
    fn has_new(&self, path: &Path) -> bool {
        OWN.iter()
            .map(|(own, ..)| Path::new(own))
            .chain(self.emptied.iter().map(PathBuf::as_path))
            .any(|new| path.starts_with(new))
    }

    /// Whether commands see what is at a path outside, if it is not hidden.
    pub fn has_in_sight(&self, path: &Path) -> bool {
        let copies = self.caches.iter().filter(|cache| cache.is_copy).map(|cache| &cache.place);
        !self.has_new(path) || copies.chain(&self.show).any(|above| path.starts_with(above))
    }

    /// Whether commands see what is at a path outside.
    pub fn shows(&self, path: &Path) -> bool {
        // A place can be shown inside a hidden one.
        let is_hidden = |hidden: &&PathBuf| path.starts_with(hidden);
        let is_shown = |hidden: &PathBuf| {
            self.show.iter().any(|shown| shown != hidden && shown.starts_with(hidden) && path.starts_with(shown))
        };
        (self.can_write(path) || self.has_in_sight(path)) && self.hide.iter().filter(is_hidden).all(is_shown)
    }

    /// Whether commands have a copy of what is at a path outside, which they write.
    pub(crate) fn has_copy_of(&self, path: &Path) -> bool {
        self.caches.iter().any(|cache| cache.is_copy && path.starts_with(&cache.place))
    }

    /// The errors with which a place that is to be hidden is so already. In a directory that can be written its owner could open the way.
    fn passes(&self, place: &Path) -> &'static [i32] {
        if self.can_write(place) { VANISHED } else { OUT_OF_REACH }
    }

    /// Where can be written, in words.
    pub fn writes(&self) -> String {
        let roots: Vec<_> = self.write.iter().map(|root| root.display().to_string()).collect();
        if roots.is_empty() { "writes nowhere".into() } else { format!("writes below {}", roots.join(", ")) }
    }

    /// Whether its commands have a network of their own, with a loopback that they share.
    #[must_use]
    pub fn has_own_network(&self) -> bool {
        let is_shared = match self.by {
            Means::Namespaces => true,
            Means::Bwrap(_) | Means::Landlock => false,
        };
        is_shared && self.network != CellNetwork::Full
    }

    /// How it confines, in words.
    pub fn words(&self) -> String {
        format!("{} {}", self.by.words(), self.network.words())
    }

    /// Where can be written, and what else is open, in words.
    pub fn bounds(&self) -> String {
        let open = match self.by {
            Means::Namespaces | Means::Bwrap(_) => "",
            Means::Landlock => ", what is protected there too; can read credentials and all else that you can",
        };
        self.writes() + open
    }

    /// Tells it from every other one. It is not changed after it was asked for this.
    pub fn digest(&self) -> &str {
        self.known.digest.get_or_init(|| hex::encode(&Sha256::digest(self.to_json())[..16]))
    }

    /// What is there of what it hides.
    fn hidden(&self) -> io::Result<Arc<Hidden>> {
        let mut last = self.known.hidden.lock();
        if let Some(hidden) = last.as_ref().filter(|hidden| hidden.holds()) {
            return Ok(hidden.clone());
        }
        let hidden = Arc::new(Hidden::look(self)?);
        *last = Some(hidden.clone());
        Ok(hidden)
    }

    /// The git directories that its commands reach.
    pub fn git(&self) -> Arc<git::Found> {
        let mut last = self.known.git.lock();
        if let Some(found) = last.as_ref().filter(|found| found.holds(&self.write)) {
            return found.clone();
        }
        let found = Arc::new(git::find(&self.write));
        *last = Some(found.clone());
        found
    }

    /// As [`Self::digest`] reads it.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a profile is made of text (`policy/confine.rs`)")
    }
}

/// All that a child needs to make a cell or to join one, laid out before it exists.
pub(super) struct Cell {
    layout: Layout,
    filter: Vec<libc::sock_filter>,
    processes: u64,
    /// Those that the child has new.
    pub(super) namespaces: libc::c_int,
    /// Those that it joins before.
    pub(super) joins: Option<Arc<Namespaces>>,
    /// What bounds its memory; none where nothing does, or who starts it is there already.
    pub(super) group: Option<Arc<Group>>,
}

impl Cell {
    /// Lays out a cell of this profile that is made from nothing, as the machine is now; `room` is where its gates are kept.
    pub(super) fn of(profile: &Profile, room: Option<&Path>) -> io::Result<Self> {
        let layout = Layout::of(profile, room)?.covering(&layout::covers(profile, None)?)?;
        let namespaces = match profile.network {
            CellNetwork::None | CellNetwork::Egress => NAMESPACES | libc::CLONE_NEWNET,
            CellNetwork::Full => NAMESPACES,
        };
        Ok(Self::new(profile, layout, namespaces, Some(Arc::new(users::namespace(profile)?))))
    }

    /// Lays out what a command has of its own in a cell of this profile that lives.
    pub(super) fn joining(profile: &Profile, namespaces: Arc<Namespaces>) -> io::Result<Self> {
        Ok(Self::new(profile, Layout::joining()?, libc::CLONE_NEWPID | libc::CLONE_NEWNS, Some(namespaces)))
    }

    fn new(profile: &Profile, layout: Layout, namespaces: libc::c_int, joins: Option<Arc<Namespaces>>) -> Self {
        let filter = filter::program(filter::families(profile.unix_sockets), profile.debug, profile.nests);
        let processes = profile.processes;
        Self { layout, filter, processes, namespaces, joins, group: None }
    }

    fn within(self, group: Option<Arc<Group>>) -> Self {
        Self { group, ..self }
    }

    /// What a child begins with, for the message that says that it failed.
    pub(super) fn beginning(&self) -> &'static str {
        if self.namespaces & libc::CLONE_NEWIPC == 0 { "entering a cell" } else { "making namespaces" }
    }

    /// Descriptors that the child keeps between steps.
    pub(super) fn slots(&self) -> Vec<RawFd> {
        self.layout.slots()
    }

    /// Makes the cell around the child that calls this; returns the number of the step that failed.
    ///
    /// # Safety
    ///
    /// The caller has these namespaces of its own, and nothing else runs in its memory.
    #[expect(unsafe_code, reason = "the steps of a child that shares memory until it executes")]
    pub(super) unsafe fn make(&self, slots: &mut [RawFd]) -> Result<(), (usize, i32)> {
        // SAFETY: up to the caller.
        unsafe { take(&self.layout.steps, slots) }
    }

    /// Gives up all that would reach out of the cell, for good. The last thing before executing.
    ///
    /// # Safety
    ///
    /// As [`Self::make`].
    #[expect(unsafe_code, reason = "system calls of a child that shares memory until it executes")]
    pub(super) unsafe fn close(&self) -> Result<(), i32> {
        // SAFETY: up to the caller.
        unsafe { give_up(&self.filter, Some(self.processes)) }
    }

    /// What a step does.
    pub(super) fn described(&self, step: usize) -> String {
        self.layout.described(step)
    }
}

/// What a child is confined by, laid out before it exists.
pub(super) enum Walls {
    Cell(Cell),
    /// A cell that lives, and that it joins.
    Living(Joined),
    Bwrap(Bwrap),
    Domain(Domain),
}

/// Gives up all capabilities, and what the filter refuses; there can be so many processes from here on.
///
/// # Safety
///
/// Nothing else runs in the memory of the thread that calls this.
#[expect(unsafe_code, reason = "system calls of a child that shares memory until it executes")]
unsafe fn give_up(filter: &[libc::sock_filter], processes: Option<u64>) -> Result<(), i32> {
    const LAST_CAPABILITY: libc::c_ulong = 63;
    let zero: libc::c_ulong = 0;
    // SAFETY: system calls on values of this function and on the filter.
    unsafe {
        // Those that this kernel does not have are refused.
        for capability in zero..=LAST_CAPABILITY {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, zero, zero, zero);
        }
        drop_capabilities()?;
        if let Some(processes) = processes {
            let most = libc::rlimit { rlim_cur: processes, rlim_max: processes };
            result(libc::setrlimit(libc::RLIMIT_NPROC, &raw const most).into())?;
        }
        let one: libc::c_ulong = 1;
        result(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero).into())?;
        let program = libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_ptr().cast_mut() };
        result(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, zero, &raw const program)).map(drop)
    }
}

/// Leaves the thread that calls this without a capability. No allocation, no lock.
#[expect(unsafe_code, reason = "a system call, as the C library has none for it")]
fn drop_capabilities() -> Result<(), i32> {
    const VERSION_3: u32 = 0x2008_0522;
    let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
    // SAFETY: a system call on values of this function.
    result(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) }).map(drop)
}

/// The program of the first process, in memory that nobody can write.
pub(super) fn init() -> io::Result<RawFd> {
    static MEMORY: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(memory) = MEMORY.get() {
        return Ok(memory.as_raw_fd());
    }
    if INIT.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let memory = rustix::fs::memfd_create("toolcrib-init", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(memory);
    file.write_all(INIT)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(MEMORY.get_or_init(|| file.into()).as_raw_fd())
}

#[cfg(test)]
mod tests;
