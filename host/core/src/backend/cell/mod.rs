//! A cell: the namespaces in which commands run confined.
//!
//! What is writable, what is hidden and which processes there are is decided by mounts and namespaces that the child makes before it
//! executes (`steps.rs`), as the user, without privilege or another program. `filter.rs` refuses what would make others, `init.rs` is the
//! first process, whose end is the end of all. `hidden.rs` finds what there is to hide. `../spawn.rs` has the child.

mod filter;
mod hidden;
mod steps;

use crate::config::CellNetwork;
use hidden::{Hidden, Place};
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{File, canonicalize, metadata, symlink_metadata};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use steps::{Mounts, NODEV, NONE, NOSUID, OUT_OF_REACH, RDONLY, Step, VANISHED, path, result};

/// The namespaces that every cell has of its own.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;
/// The first process, as the build made it; empty where there are no cells.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));
/// Places of the machine that a cell has new and empty, with the options of their mounts.
const OWN: [(&str, &str); 4] = [
    ("/tmp", "mode=1777,size=1g"),
    ("/run", "mode=755,size=16m"),
    ("/dev", "mode=755,size=64k"),
    ("/dev/shm", "mode=1777,size=1g"),
];
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
/// What lies over hidden directories.
const NOTHING: &str = "/run/.nothing";

/// What the commands of a cell reach. Paths are absolute; those of directories that can be written have no links.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Directories that may be written. All else can be read at most.
    pub write: Vec<PathBuf>,
    /// What is not there. What is missing is passed over.
    pub hide: Vec<PathBuf>,
    /// What can be read in places that are hidden, or that a cell has new. What is missing is passed over.
    pub show: Vec<PathBuf>,
    /// What cannot be written, in directories that can. What is missing is passed over.
    pub protect: Vec<PathBuf>,
    /// What network it has.
    pub network: CellNetwork,
    /// Whether its processes can have sockets of files and names among themselves.
    pub unix_sockets: bool,
    /// Processes that there can be at once. Does not bind root.
    pub processes: u64,
    /// What was found out about it.
    #[serde(skip)]
    pub(crate) known: Known,
}

/// What was found out about a profile, and is forgotten by a copy, which may become another one.
#[derive(Debug, Default)]
pub(crate) struct Known {
    digest: OnceLock<String>,
    hidden: Mutex<Option<Arc<Hidden>>>,
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
    /// Nothing can be written, nothing is hidden, and there is no network.
    #[must_use]
    pub fn closed() -> Self {
        let [write, hide, show, protect] = [const { Vec::new() }; 4];
        let (network, known) = (CellNetwork::None, Known::default());
        Self { write, hide, show, protect, network, unix_sockets: true, processes: 512, known }
    }

    pub(crate) fn can_write(&self, path: &Path) -> bool {
        self.write.iter().any(|root| path.starts_with(root))
    }

    /// The errors with which a place that is to be hidden is so already. In a directory that can be written its owner could open the way.
    fn passes(&self, place: &Path) -> &'static [i32] {
        if self.can_write(place) { VANISHED } else { OUT_OF_REACH }
    }

    /// Where can be written, in words.
    pub(crate) fn writes(&self) -> String {
        let roots: Vec<_> = self.write.iter().map(|root| root.display().to_string()).collect();
        if roots.is_empty() { "writes nowhere".into() } else { format!("writes below {}", roots.join(", ")) }
    }

    /// The same with one more place that can be read where all else is gone.
    pub(crate) fn showing(&self, place: PathBuf) -> Self {
        let show = self.show.iter().cloned().chain([place]).collect();
        Self { show, ..self.clone() }
    }

    /// Tells it from every other one. It is not changed after it was asked for this.
    pub(crate) fn digest(&self) -> &str {
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

    /// As [`Self::digest`] reads it.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a profile is made of text (`policy/confine.rs`)")
    }
}

/// All that a child needs to make a cell, laid out before it exists.
pub(super) struct Cell {
    steps: Vec<Step>,
    slots: usize,
    filter: Vec<libc::sock_filter>,
    init: OwnedFd,
    processes: u64,
    pub(super) namespaces: libc::c_int,
}

impl Cell {
    /// Lays out the cell of a profile, as the machine is now.
    pub(super) fn of(profile: &Profile) -> io::Result<Self> {
        let layout = Layout::of(profile)?;
        Ok(Self {
            steps: layout.steps,
            slots: layout.slots,
            filter: filter::program(profile.unix_sockets),
            init: init()?,
            processes: profile.processes,
            namespaces: match profile.network {
                CellNetwork::None => NAMESPACES | libc::CLONE_NEWNET,
                CellNetwork::Full => NAMESPACES,
            },
        })
    }

    /// Descriptors that the child keeps between steps.
    pub(super) fn slots(&self) -> Vec<RawFd> {
        vec![steps::EMPTY; self.slots]
    }

    /// Makes the cell around the child that calls this; returns the number of the step that failed.
    ///
    /// # Safety
    ///
    /// The caller has these namespaces of its own, and nothing else runs in its memory.
    #[expect(unsafe_code, reason = "the steps of a child that shares memory until it executes")]
    pub(super) unsafe fn make(&self, slots: &mut [RawFd]) -> Result<(), (usize, i32)> {
        for (number, step) in self.steps.iter().enumerate() {
            // SAFETY: up to the caller.
            unsafe { step.run(slots) }.map_err(|error| (number, error))?;
        }
        Ok(())
    }

    /// Gives up all that would reach out of the cell, for good. The last thing before executing.
    ///
    /// # Safety
    ///
    /// As [`Self::make`].
    #[expect(unsafe_code, reason = "system calls of a child that shares memory until it executes")]
    pub(super) unsafe fn close(&self) -> Result<(), i32> {
        const LAST_CAPABILITY: libc::c_ulong = 63;
        const VERSION_3: u32 = 0x2008_0522;
        let zero: libc::c_ulong = 0;
        // SAFETY: system calls on values of this function and of `self`.
        unsafe {
            // Those that this kernel does not have are refused.
            for capability in zero..=LAST_CAPABILITY {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, zero, zero, zero);
            }
            let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
            result(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))?;
            let most = libc::rlimit { rlim_cur: self.processes, rlim_max: self.processes };
            result(libc::setrlimit(libc::RLIMIT_NPROC, &raw const most).into())?;
            let one: libc::c_ulong = 1;
            result(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero).into())?;
            let length = self.filter.len() as libc::c_ushort;
            let program = libc::sock_fprog { len: length, filter: self.filter.as_ptr().cast_mut() };
            result(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, zero, &raw const program)).map(drop)
        }
    }

    /// The program of the first process.
    pub(super) fn init(&self) -> RawFd {
        self.init.as_raw_fd()
    }

    /// What a step does.
    pub(super) fn described(&self, step: usize) -> String {
        self.steps.get(step).map_or_else(|| "closing the cell".to_owned(), Step::described)
    }
}

/// The first process's program, in memory that nobody can write.
fn init() -> io::Result<OwnedFd> {
    if INIT.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let memory = rustix::fs::memfd_create("toolcrib-init", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(memory);
    file.write_all(INIT)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file.into())
}

/// What stays to be read.
struct Shown<'p> {
    path: &'p Path,
    is_directory: bool,
    /// It lies in a place that is hidden.
    is_hidden: bool,
    slot: usize,
}

/// Whether it lies in a place that a cell has new.
fn is_new(path: &Path) -> bool {
    OWN.iter().any(|(own, _)| path.starts_with(own))
}

/// It is not there, for this user.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied)
}

/// Steps as they are put together.
#[derive(Default)]
struct Layout {
    steps: Vec<Step>,
    slots: usize,
}

impl Layout {
    fn of(profile: &Profile) -> io::Result<Self> {
        let mut layout = Self::default();
        layout.user()?;
        if profile.network == CellNetwork::None {
            layout.push(Step::LoopbackUp);
        }
        layout.mount("", "/", "", libc::MS_REC | libc::MS_PRIVATE, "")?;
        // All are taken while they can be written, and before what is new lies over them.
        let roots = layout.roots(&profile.write)?;
        let devices = DEVICES.map(|name| format!("/dev/{name}"));
        let taken = devices.iter().map(|device| layout.take(device)).collect::<io::Result<Vec<_>>>()?;
        let shown = layout.shown(profile)?;
        layout.push(Step::Attributes { of: Mounts::All, set: RDONLY | NOSUID });
        for (place, options) in OWN {
            // Devices are bound into `/dev`, and work there.
            let flags = if place == "/dev" { libc::MS_NOEXEC } else { libc::MS_NODEV };
            layout.directory(Path::new(place))?;
            layout.mount("tmpfs", place, "tmpfs", flags | libc::MS_NOSUID, options)?;
        }
        for (device, slot) in devices.iter().zip(taken) {
            layout.push(Step::MakeFile { path: path(device)? });
            layout.lay(slot, Path::new(device), NONE)?;
        }
        layout.directory(Path::new("/dev/pts"))?;
        let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
        layout.mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")?;
        for (link, to) in LINKS {
            layout.push(Step::Link { path: path(link)?, to: path(to)? });
        }
        layout.mount("proc", "/proc", "proc", flags | libc::MS_NODEV, "")?;
        for machines in MACHINES {
            layout.cover(Path::new(machines), Path::new(machines), RDONLY | NOSUID, NONE)?;
        }
        // Whoever could write in it would write into all that is hidden.
        layout.directory(Path::new(NOTHING))?;
        layout.cover(Path::new(NOTHING), Path::new(NOTHING), RDONLY | NOSUID, NONE)?;
        for (root, slot) in roots {
            layout.push(Step::Attributes { of: Mounts::Slot(slot), set: NOSUID | NODEV });
            layout.directories_to(root)?;
            layout.lay(slot, root, NONE)?;
        }
        layout.protect(&profile.write, &profile.protect)?;
        // What lies in hidden places comes with those.
        for shown in shown.iter().filter(|shown| !shown.is_hidden) {
            layout.show(shown)?;
        }
        layout.mask_sockets(profile)?;
        // Last: it may lie in a directory that can be written.
        layout.hide(profile, &shown)?;
        Ok(layout)
    }

    /// The same user in a namespace where nobody else is: files look as they do outside.
    fn user(&mut self) -> io::Result<()> {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        self.write("/proc/self/setgroups", "deny")?;
        self.write("/proc/self/uid_map", &format!("{user} {user} 1\n"))?;
        self.write("/proc/self/gid_map", &format!("{group} {group} 1\n"))
    }

    /// Takes the directories that may be written, each as it is found now: another one in its place ends the cell.
    fn roots<'p>(&mut self, write: &'p [PathBuf]) -> io::Result<Vec<(&'p Path, usize)>> {
        let mut roots = Vec::new();
        for root in write {
            let missing = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", root.display()));
            let found = symlink_metadata(root).map_err(missing)?;
            let slot = self.slot();
            self.push(Step::TakeSame { path: path(root)?, slot, device: found.dev(), inode: found.ino() });
            roots.push((root.as_path(), slot));
        }
        Ok(roots)
    }

    /// Takes what stays to be read where all else is gone.
    fn shown<'p>(&mut self, profile: &'p Profile) -> io::Result<Vec<Shown<'p>>> {
        let mut all = Vec::new();
        for path in &profile.show {
            let is_hidden = profile.hide.iter().any(|hidden| path.starts_with(hidden));
            if !is_hidden && !is_new(path) {
                continue;
            }
            match metadata(path) {
                Ok(found) => all.push(Shown { path, is_directory: found.is_dir(), is_hidden, slot: self.take(path)? }),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Lays it where it was.
    fn show(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        self.push(Step::Attributes { of: Mounts::Slot(shown.slot), set: RDONLY | NOSUID | NODEV });
        if shown.is_directory {
            self.directories_to(shown.path)?;
        } else {
            self.directories_to(shown.path.parent().unwrap_or(shown.path))?;
            self.push(Step::MakeFile { path: path(shown.path)? });
        }
        self.lay(shown.slot, shown.path, NONE)
    }

    /// Makes what lies in these directories, and is there, a mount that cannot be written. Directories on the way become mounts too: those
    /// cannot be moved, to make others in their place.
    fn protect(&mut self, roots: &[PathBuf], protected: &[PathBuf]) -> io::Result<()> {
        // Where a link leads out of what can be written, nothing has to be done.
        let is_within = |place: &PathBuf| roots.iter().any(|root| place != root && place.starts_with(root));
        let there = protected.iter().filter(|place| symlink_metadata(place).is_ok());
        let protected = there.filter_map(|place| canonicalize(place).ok()).filter(is_within);
        let protected: BTreeSet<PathBuf> = protected.collect();
        let mut on_the_way = BTreeSet::new();
        for place in &protected {
            let is_below = |above: &&Path| roots.iter().any(|root| *above != root && above.starts_with(root));
            on_the_way.extend(place.ancestors().skip(1).filter(is_below));
        }
        // From the top down.
        for directory in on_the_way {
            self.cover(directory, directory, NOSUID | NODEV, NONE)?;
        }
        protected.iter().try_for_each(|place| self.cover(place, place, RDONLY | NOSUID | NODEV, NONE))
    }

    /// Lays nothing over sockets that are there: connecting needs no right to write the file system.
    fn mask_sockets(&mut self, profile: &Profile) -> io::Result<()> {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        // The path is the last of eight fields, and may hold blanks.
        let names = sockets.lines().filter_map(|line| line.split_once(" /").map(|(_, path)| format!("/{path}")));
        // As who bound it wrote it: by a link, or by a descriptor of its own.
        let paths = names.filter_map(|name| canonicalize(name).ok());
        let reached = |path: &PathBuf| !is_new(path) && !path.starts_with("/proc") && !profile.can_write(path);
        let is_there = |path: &PathBuf| symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        let paths: BTreeSet<PathBuf> = paths.filter(reached).filter(is_there).collect();
        paths.iter().try_for_each(|path| self.cover(Path::new("/dev/null"), path, RDONLY | NOSUID, OUT_OF_REACH))
    }

    /// Lays nothing over what is there.
    fn hide(&mut self, profile: &Profile, shown: &[Shown<'_>]) -> io::Result<()> {
        for Place { path: place, is_directory } in &profile.hidden()?.places {
            let mut within = shown.iter().filter(|shown| shown.path.starts_with(place)).peekable();
            if !is_directory || within.peek().is_none() {
                let over = if *is_directory { NOTHING } else { "/dev/null" };
                self.cover(Path::new(over), place, RDONLY | NOSUID, profile.passes(place))?;
                continue;
            }
            self.directories_to(place)?;
            let place = place.to_str().ok_or(io::ErrorKind::InvalidInput)?;
            self.mount("tmpfs", place, "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, "mode=755,size=64k")?;
            for shown in within {
                let between = shown.path.ancestors().take_while(|above| *above != Path::new(place));
                let mut between: Vec<_> = between.skip(usize::from(!shown.is_directory)).collect();
                between.reverse();
                between.into_iter().try_for_each(|directory| self.directory(directory))?;
                self.show(shown)?;
            }
            self.push(Step::Attributes { of: Mounts::At(path(place)?), set: RDONLY | NOSUID | NODEV });
        }
        Ok(())
    }

    /// Lays a copy of what is at a path over a place, with these attributes. What is missing is passed over.
    fn cover(&mut self, from: &Path, place: &Path, attributes: u64, passes: &'static [i32]) -> io::Result<()> {
        let slot = self.take(from)?;
        self.push(Step::Attributes { of: Mounts::Slot(slot), set: attributes });
        self.lay(slot, place, passes)
    }

    /// Makes a directory and those above it where they are in a place that is new.
    fn directories_to(&mut self, root: &Path) -> io::Result<()> {
        let mut directories: Vec<_> = root.ancestors().filter(|above| is_new(above)).collect();
        directories.reverse();
        directories.into_iter().try_for_each(|directory| self.directory(directory))
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn write(&mut self, file: &str, text: &str) -> io::Result<()> {
        self.push(Step::Write { file: path(file)?, text: text.into() });
        Ok(())
    }

    fn mount(&mut self, source: &str, target: &str, kind: &str, flags: libc::c_ulong, options: &str) -> io::Result<()> {
        let [source, target, kind, options] = [source, target, kind, options].map(path);
        self.push(Step::Mount { source: source?, target: target?, kind: kind?, flags, data: options? });
        Ok(())
    }

    fn take(&mut self, from: impl AsRef<Path>) -> io::Result<usize> {
        let slot = self.slot();
        self.push(Step::Take { path: path(from)?, slot });
        Ok(slot)
    }

    fn lay(&mut self, slot: usize, target: &Path, passes: &'static [i32]) -> io::Result<()> {
        self.push(Step::Lay { slot, target: path(target)?, passes });
        Ok(())
    }

    fn directory(&mut self, at: &Path) -> io::Result<()> {
        self.push(Step::MakeDirectory { path: path(at)? });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
