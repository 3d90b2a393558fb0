//! A cell: the namespaces in which commands run confined.
//!
//! What is writable, what is hidden and which processes there are is decided by mounts and namespaces that the child makes before it
//! executes (`steps.rs`), as the user, without privilege or another program. `filter.rs` refuses what would make others, `init.rs` is the
//! first process, whose end is the end of all. `../spawn.rs` has the child.

mod filter;
mod steps;

use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::{File, metadata, symlink_metadata};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use steps::{NODEV, NOSUID, RDONLY, Step, path};

/// The namespaces that a cell has of its own.
pub(super) const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
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

/// What the commands of a cell reach. Paths are canonical.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Directories that may be written. All else can be read at most.
    pub write: Vec<PathBuf>,
    /// What is not there. What is missing is passed over.
    pub hide: Vec<PathBuf>,
    /// What cannot be written, in directories that can.
    pub protect: Vec<PathBuf>,
    /// Processes that there can be at once. Does not bind root.
    pub processes: u64,
}

/// All that a child needs to make a cell, laid out before it exists.
pub(super) struct Cell {
    steps: Vec<Step>,
    slots: usize,
    filter: Vec<libc::sock_filter>,
    init: OwnedFd,
    processes: u64,
}

impl Cell {
    /// Lays out the cell of a profile, as the machine is now.
    pub(super) fn of(profile: &Profile) -> io::Result<Self> {
        let layout = Layout::of(profile)?;
        Ok(Self {
            steps: layout.steps,
            slots: layout.slots,
            filter: filter::program(),
            init: init()?,
            processes: profile.processes,
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
    /// The caller has [`NAMESPACES`] of its own, and nothing else runs in its memory.
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
        let done = |returned: libc::c_long| {
            // SAFETY: the C library's own.
            if returned == 0 { Ok(()) } else { Err(unsafe { *libc::__errno_location() }) }
        };
        // SAFETY: system calls on values of this function and of `self`.
        unsafe {
            // Those that this kernel does not have are refused.
            for capability in zero..=LAST_CAPABILITY {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, zero, zero, zero);
            }
            let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
            done(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))?;
            let most = libc::rlimit { rlim_cur: self.processes, rlim_max: self.processes };
            done(libc::setrlimit(libc::RLIMIT_NPROC, &raw const most).into())?;
            let one: libc::c_ulong = 1;
            done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero).into())?;
            let length = self.filter.len() as libc::c_ushort;
            let program = libc::sock_fprog { len: length, filter: self.filter.as_ptr().cast_mut() };
            done(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, zero, &raw const program))
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
        layout.push(Step::LoopbackUp);
        layout.mount("", "/", "", libc::MS_REC | libc::MS_PRIVATE, "")?;
        // Both are taken while they can be written, and before what is new lies over them.
        let roots = layout.roots(&profile.write)?;
        let devices = DEVICES.map(|name| format!("/dev/{name}"));
        let taken = devices.iter().map(|device| layout.take(device)).collect::<io::Result<Vec<_>>>()?;
        layout.push(Step::Attributes { slot: None, set: RDONLY | NOSUID });
        for (place, options) in OWN {
            // Devices are bound into `/dev`, and work there.
            let flags = if place == "/dev" { libc::MS_NOEXEC } else { libc::MS_NODEV };
            layout.directory(Path::new(place))?;
            layout.mount("tmpfs", place, "tmpfs", flags | libc::MS_NOSUID, options)?;
        }
        for (device, slot) in devices.iter().zip(taken) {
            layout.push(Step::MakeFile { path: path(device)? });
            layout.lay(slot, Path::new(device), false)?;
        }
        layout.directory(Path::new("/dev/pts"))?;
        let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
        layout.mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")?;
        for (link, to) in LINKS {
            layout.push(Step::Link { path: path(link)?, to: path(to)? });
        }
        layout.mount("proc", "/proc", "proc", flags | libc::MS_NODEV, "")?;
        for machines in MACHINES {
            layout.cover(Path::new(machines), Path::new(machines), RDONLY | NOSUID)?;
        }
        // Whoever could write in it would write into all that is hidden.
        layout.directory(Path::new(NOTHING))?;
        layout.cover(Path::new(NOTHING), Path::new(NOTHING), RDONLY | NOSUID)?;
        for (root, slot) in roots {
            layout.push(Step::Attributes { slot: Some(slot), set: NOSUID | NODEV });
            layout.directories_to(root)?;
            layout.lay(slot, root, false)?;
        }
        for protected in &profile.protect {
            layout.cover(protected, protected, RDONLY | NOSUID | NODEV)?;
        }
        // Last: it may lie in a directory that can be written.
        layout.hide(&profile.hide)?;
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
            let found = symlink_metadata(root)?;
            let slot = self.slot();
            self.push(Step::TakeSame { path: path(root)?, slot, device: found.dev(), inode: found.ino() });
            roots.push((root.as_path(), slot));
        }
        Ok(roots)
    }

    /// Lays nothing over what is there.
    fn hide(&mut self, hidden: &[PathBuf]) -> io::Result<()> {
        for place in hidden {
            match metadata(place) {
                Ok(found) => {
                    let over = if found.is_dir() { NOTHING } else { "/dev/null" };
                    self.cover(Path::new(over), place, RDONLY | NOSUID)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Lays a copy of what is at a path over a place, with these attributes. What is missing is passed over.
    fn cover(&mut self, from: &Path, place: &Path, attributes: u64) -> io::Result<()> {
        let slot = self.take(from)?;
        self.push(Step::Attributes { slot: Some(slot), set: attributes });
        self.lay(slot, place, true)
    }

    /// Makes the directories above a root where they are in a place that is new.
    fn directories_to(&mut self, root: &Path) -> io::Result<()> {
        let is_new = |directory: &&Path| OWN.iter().any(|(own, _)| directory.starts_with(own));
        let mut directories: Vec<_> = root.ancestors().filter(is_new).collect();
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

    fn lay(&mut self, slot: usize, target: &Path, may_be_missing: bool) -> io::Result<()> {
        self.push(Step::Lay { slot, target: path(target)?, may_be_missing });
        Ok(())
    }

    fn directory(&mut self, at: &Path) -> io::Result<()> {
        self.push(Step::MakeDirectory { path: path(at)? });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
