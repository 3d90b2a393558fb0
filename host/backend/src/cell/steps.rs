//! What the child of a cell does before it executes: steps that are laid out before it exists, so that it makes system calls only.

mod calls;

pub(super) use calls::result;
use std::ffi::{CStr, CString};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::path::Path;

/// One system call, or a few that belong together.
pub(crate) enum Step {
    /// Writes into a file of the kernel's.
    Write {
        file: CString,
        text: Vec<u8>,
    },
    /// Lets the cell's own loopback carry packets.
    LoopbackUp,
    Mount {
        source: CString,
        target: CString,
        kind: CString,
        flags: libc::c_ulong,
        data: CString,
    },
    /// Takes a copy of what lies at a path into a slot; nothing, where nothing does.
    Take {
        path: CString,
        slot: usize,
    },
    /// The same of a directory that was decided on: what lies there now has to be that one.
    TakeSame {
        path: CString,
        slot: usize,
        device: u64,
        inode: u64,
    },
    /// Makes a directory that shows what lies in one and keeps what is written in another, into a slot. Where the file systems do not go together
    /// so, it is the other one alone.
    Overlay {
        lower: CString,
        upper: CString,
        work: CString,
        slot: usize,
    },
    /// Lays a directory over itself that shows what is there and keeps what is written in another one. Both of `upper` and `work` are relative
    /// to the directory that is open as `room`.
    Gate {
        room: RawFd,
        upper: CString,
        work: CString,
        over: CString,
    },
    /// Opens a directory by its path alone, into a slot.
    Open {
        path: CString,
        slot: usize,
    },
    /// Takes away what was laid over a path last.
    Uncover {
        path: CString,
    },
    /// Says who else learns of mounts.
    Propagate {
        how: libc::c_ulong,
    },
    /// Sets attributes of mounts.
    Attributes {
        of: Mounts,
        set: u64,
    },
    /// Lays what a slot holds over a path.
    Lay {
        slot: usize,
        target: CString,
        passes: &'static [i32],
    },
    /// Lays what is open over a path.
    LayOpened {
        mount: RawFd,
        target: CString,
    },
    MakeDirectory {
        path: CString,
    },
    MakeFile {
        path: CString,
    },
    /// Makes a file that everybody can execute.
    MakeProgram {
        path: CString,
        program: &'static [u8],
    },
    Link {
        path: CString,
        to: CString,
    },
    /// Opens a socket that waits for others, into a slot.
    Listen {
        address: Ipv4Addr,
        port: u16,
        kind: libc::c_int,
        slot: usize,
    },
    /// The same at a path, where a host before this one may have left its own.
    ListenAt {
        path: CString,
        slot: usize,
    },
    /// Opens a socket for a connection, into a slot, which stays empty if there is no such family.
    Socket {
        family: libc::c_int,
        slot: usize,
    },
    /// Opens a socket by which the kernel says which others are bound, into a slot.
    AskForSockets {
        slot: usize,
    },
}

/// Which mounts a step is about.
pub(crate) enum Mounts {
    /// All that there are.
    All,
    /// Those that a slot holds.
    Slot(usize),
    /// What lies at a path.
    At(CString),
}

/// The attributes of `mount_setattr`.
pub(super) const RDONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(super) const NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(super) const NODEV: u64 = libc::MOUNT_ATTR_NODEV;

/// Errors with which a place needs no cover: none; it vanished meanwhile; or commands could not come there either.
pub(super) const NONE: &[i32] = &[];
pub(super) const VANISHED: &[i32] = &[libc::ENOENT, libc::ENOTDIR];
pub(super) const OUT_OF_REACH: &[i32] = &[libc::ENOENT, libc::ENOTDIR, libc::EACCES];

/// A slot that holds nothing.
pub(crate) const EMPTY: RawFd = -1;

/// Takes all steps in turn; returns the number of the one that failed, and its error.
///
/// # Safety
///
/// As of [`Step::run`].
#[expect(unsafe_code, reason = "the steps of a child that shares memory until it executes")]
pub(crate) unsafe fn take(steps: &[Step], slots: &mut [RawFd]) -> Result<(), (usize, i32)> {
    for (number, step) in steps.iter().enumerate() {
        // SAFETY: up to the caller.
        unsafe { step.run(slots) }.map_err(|error| (number, error))?;
    }
    Ok(())
}

impl Step {
    /// Runs in the child, in the host's memory: no allocation, no lock.
    ///
    /// # Safety
    ///
    /// It changes the namespaces of whoever calls it.
    #[expect(unsafe_code, reason = "system calls of a child that shares memory until it executes")]
    unsafe fn run(&self, slots: &mut [RawFd]) -> Result<(), i32> {
        match self {
            Self::Write { file, text } => calls::write(file, text),
            Self::LoopbackUp => calls::loopback_up(),
            Self::Mount { source, target, kind, flags, data } => calls::mount(source, target, kind, *flags, data),
            Self::Take { path, slot } => calls::take(path, &mut slots[*slot]),
            Self::TakeSame { path, slot, device, inode } => calls::take_same(path, *device, *inode, &mut slots[*slot]),
            Self::Overlay { lower, upper, work, slot } => {
                calls::overlay_or_upper(lower, upper, work, &mut slots[*slot])
            }
            Self::Gate { room, upper, work, over } => calls::gate(*room, upper, work, over),
            Self::LayOpened { mount, target } => calls::move_mount(*mount, target),
            Self::Open { path, slot } => calls::open_directory(path, &mut slots[*slot]),
            Self::Uncover { path } => calls::uncover(path),
            Self::Propagate { how } => calls::propagate(*how),
            Self::Attributes { of, set } => calls::set_attributes(of, *set, slots),
            Self::Lay { slot, target, passes } => calls::lay(&mut slots[*slot], target, passes),
            Self::MakeDirectory { path } => calls::make_directory(path),
            Self::MakeFile { path } => calls::make_file(path),
            Self::MakeProgram { path, program } => calls::make_program(path, program),
            Self::Link { path, to } => calls::link(path, to),
            Self::Listen { address, port, kind, slot } => calls::listen(*address, *port, *kind, &mut slots[*slot]),
            Self::ListenAt { path, slot } => calls::listen_at(path, &mut slots[*slot]),
            Self::Socket { family, slot } => calls::stream_socket(*family, &mut slots[*slot]),
            Self::AskForSockets { slot } => calls::ask_for_sockets(&mut slots[*slot]),
        }
    }

    /// What it does, for the message that says what failed.
    pub(super) fn described(&self) -> String {
        let shown = |path: &CStr| path.to_string_lossy().into_owned();
        match self {
            Self::Write { file, .. } => format!("writing {}", shown(file)),
            Self::LoopbackUp => "bringing up a loopback".into(),
            Self::Mount { target, kind, .. } if kind.is_empty() => format!("mounting over {}", shown(target)),
            Self::Mount { target, kind, .. } => format!("mounting {} at {}", shown(kind), shown(target)),
            Self::Take { path, .. } | Self::TakeSame { path, .. } => format!("taking {}", shown(path)),
            Self::Overlay { lower, .. } => format!("making a copy of {}", shown(lower)),
            Self::Gate { over, .. } => format!("laying a gate over {}", shown(over)),
            Self::Open { path, .. } => format!("opening {}", shown(path)),
            Self::Uncover { path } => format!("uncovering {}", shown(path)),
            Self::Propagate { .. } => "setting how mounts are passed on".into(),
            Self::Attributes { .. } => "making mounts read-only".into(),
            Self::Lay { target, .. } | Self::LayOpened { target, .. } => {
                format!("laying a mount over {}", shown(target))
            }
            Self::MakeDirectory { path }
            | Self::MakeFile { path }
            | Self::MakeProgram { path, .. }
            | Self::Link { path, .. } => format!("making {}", shown(path)),
            Self::Listen { port, .. } => format!("listening on port {port}"),
            Self::ListenAt { path, .. } => format!("listening at {}", shown(path)),
            Self::Socket { .. } => "opening a socket".into(),
            Self::AskForSockets { .. } => "asking for sockets".into(),
        }
    }
}

pub(super) fn path(path: impl AsRef<Path>) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_ref().as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte"))
}
