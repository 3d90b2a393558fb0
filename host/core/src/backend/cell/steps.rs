//! What the child of a cell does before it executes: steps that are laid out before it exists, so that it makes system calls only.

use std::ffi::{CStr, CString};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::path::Path;

/// One system call, or a few that belong together.
pub(in crate::backend) enum Step {
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
    /// Opens a socket by which the kernel says which others are bound, into a slot.
    AskForSockets {
        slot: usize,
    },
}

/// Which mounts a step is about.
pub(in crate::backend) enum Mounts {
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

/// Connections that wait until they are accepted.
const BACKLOG: libc::c_int = 128;

/// A slot that holds nothing.
pub(in crate::backend) const EMPTY: RawFd = -1;

/// What a function of the C library returned, or the number of its error.
#[expect(unsafe_code, reason = "the C library's number of an error")]
pub(super) fn result(returned: libc::c_long) -> Result<RawFd, i32> {
    if returned >= 0 {
        Ok(returned as RawFd)
    } else {
        // SAFETY: the C library's own.
        Err(unsafe { *libc::__errno_location() })
    }
}

/// Takes all steps in turn; returns the number of the one that failed, and its error.
///
/// # Safety
///
/// As of [`Step::run`].
#[expect(unsafe_code, reason = "the steps of a child that shares memory until it executes")]
pub(in crate::backend) unsafe fn take(steps: &[Step], slots: &mut [RawFd]) -> Result<(), (usize, i32)> {
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
        // SAFETY: system calls on what the step holds, which outlives the child's part in it.
        unsafe {
            match self {
                Self::Write { file, text } => {
                    let opened = result(libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC).into())?;
                    let written = result(libc::write(opened, text.as_ptr().cast(), text.len()) as libc::c_long);
                    libc::close(opened);
                    written.map(drop)
                }
                Self::LoopbackUp => {
                    let socket = result(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0).into())?;
                    let mut request: libc::ifreq = std::mem::zeroed();
                    request.ifr_name[0] = b'l' as libc::c_char;
                    request.ifr_name[1] = b'o' as libc::c_char;
                    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
                    let up = result(libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request).into());
                    libc::close(socket);
                    up.map(drop)
                }
                Self::Mount { source, target, kind, flags, data } => result(
                    libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), *flags, data.as_ptr().cast()).into(),
                )
                .map(drop),
                Self::Take { path, slot } => {
                    match open_tree(libc::AT_FDCWD, path, 0) {
                        Err(libc::ENOENT | libc::ENOTDIR) => {}
                        taken => slots[*slot] = taken?,
                    }
                    Ok(())
                }
                Self::TakeSame { path, slot, device, inode } => {
                    let mut how: libc::open_how = std::mem::zeroed();
                    how.flags = (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64;
                    how.resolve = libc::RESOLVE_NO_SYMLINKS;
                    let found = result(libc::syscall(
                        libc::SYS_openat2,
                        libc::AT_FDCWD,
                        path.as_ptr(),
                        &raw const how,
                        size_of::<libc::open_how>(),
                    ))?;
                    let mut stat: libc::stat = std::mem::zeroed();
                    result(libc::fstat(found, &raw mut stat).into())?;
                    if (stat.st_dev, stat.st_ino) != (*device, *inode) {
                        return Err(libc::ESTALE);
                    }
                    let taken = open_tree(found, c"", libc::AT_EMPTY_PATH);
                    libc::close(found);
                    slots[*slot] = taken?;
                    Ok(())
                }
                Self::Overlay { lower, upper, work, slot } => {
                    slots[*slot] = match overlay(lower, upper, work, 0) {
                        Ok(made) => made,
                        Err(_) => open_tree(libc::AT_FDCWD, upper, 0)?,
                    };
                    Ok(())
                }
                Self::Gate { room, upper, work, over } => {
                    result(libc::fchdir(*room).into())?;
                    let made = overlay(over, upper, work, (NOSUID | NODEV) as libc::c_uint)?;
                    let laid = move_mount(made, over);
                    libc::close(made);
                    laid
                }
                Self::LayOpened { mount, target } => move_mount(*mount, target),
                Self::Open { path, slot } => {
                    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
                    slots[*slot] = result(libc::open(path.as_ptr(), flags).into())?;
                    Ok(())
                }
                Self::Uncover { path } => {
                    let flags = libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW;
                    result(libc::umount2(path.as_ptr(), flags).into()).map(drop)
                }
                Self::Propagate { how } => {
                    let (none, top) = (c"".as_ptr(), c"/".as_ptr());
                    result(libc::mount(none, top, none, how | libc::MS_REC, std::ptr::null()).into()).map(drop)
                }
                Self::Attributes { of, set } => {
                    // A copy is not one of its original's peers: what is laid over it later would be laid over all of them.
                    let propagation = match of {
                        Mounts::Slot(_) => libc::MS_PRIVATE,
                        Mounts::All | Mounts::At(_) => 0,
                    };
                    let attributes = libc::mount_attr { attr_set: *set, attr_clr: 0, propagation, userns_fd: 0 };
                    let (directory, path, flags) = match of {
                        Mounts::Slot(slot) if slots[*slot] == EMPTY => return Ok(()),
                        Mounts::Slot(slot) => (slots[*slot], c"", libc::AT_EMPTY_PATH),
                        Mounts::At(path) => (libc::AT_FDCWD, path.as_c_str(), 0),
                        Mounts::All => (libc::AT_FDCWD, c"/", 0),
                    };
                    result(libc::syscall(
                        libc::SYS_mount_setattr,
                        directory,
                        path.as_ptr(),
                        flags | libc::AT_RECURSIVE,
                        &raw const attributes,
                        size_of::<libc::mount_attr>(),
                    ))
                    .map(drop)
                }
                Self::Lay { slot, target, passes } => {
                    if slots[*slot] == EMPTY {
                        return Ok(());
                    }
                    let laid = move_mount(slots[*slot], target);
                    libc::close(slots[*slot]);
                    slots[*slot] = EMPTY;
                    match laid {
                        Err(error) if passes.contains(&error) => Ok(()),
                        laid => laid,
                    }
                }
                Self::MakeDirectory { path } => made(libc::mkdir(path.as_ptr(), 0o755)),
                Self::MakeFile { path } => {
                    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
                    let file = result(libc::open(path.as_ptr(), flags, 0o666).into())?;
                    libc::close(file);
                    Ok(())
                }
                Self::MakeProgram { path, program } => {
                    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
                    let file = result(libc::open(path.as_ptr(), flags, 0o755).into())?;
                    let wrote = libc::write(file, program.as_ptr().cast(), program.len());
                    libc::close(file);
                    if wrote == program.len().cast_signed() { Ok(()) } else { Err(libc::ENOSPC) }
                }
                Self::Link { path, to } => made(libc::symlink(to.as_ptr(), path.as_ptr())),
                Self::Listen { address, port, kind, slot } => {
                    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
                    slots[*slot] = result(libc::socket(libc::AF_INET, kind | flags, 0).into())?;
                    // Connections of a host that was here before may still be about to end.
                    let reuse: libc::c_int = libc::c_int::from(*kind == libc::SOCK_STREAM);
                    result(
                        libc::setsockopt(
                            slots[*slot],
                            libc::SOL_SOCKET,
                            libc::SO_REUSEADDR,
                            (&raw const reuse).cast(),
                            size_of_val(&reuse) as libc::socklen_t,
                        )
                        .into(),
                    )?;
                    let mut at: libc::sockaddr_in = std::mem::zeroed();
                    at.sin_family = libc::AF_INET as libc::sa_family_t;
                    at.sin_port = port.to_be();
                    at.sin_addr.s_addr = address.to_bits().to_be();
                    let length = size_of_val(&at) as libc::socklen_t;
                    result(libc::bind(slots[*slot], (&raw const at).cast(), length).into())?;
                    match *kind {
                        libc::SOCK_STREAM => result(libc::listen(slots[*slot], BACKLOG).into()).map(drop),
                        _ => Ok(()),
                    }
                }
                Self::ListenAt { path, slot } => {
                    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
                    slots[*slot] = result(libc::socket(libc::AF_UNIX, kind, 0).into())?;
                    libc::unlink(path.as_ptr());
                    let mut at: libc::sockaddr_un = std::mem::zeroed();
                    at.sun_family = libc::AF_UNIX as libc::sa_family_t;
                    for (to, from) in at.sun_path.iter_mut().zip(path.to_bytes_with_nul()) {
                        *to = *from as libc::c_char;
                    }
                    let length = size_of_val(&at) as libc::socklen_t;
                    result(libc::bind(slots[*slot], (&raw const at).cast(), length).into())?;
                    result(libc::listen(slots[*slot], BACKLOG).into()).map(drop)
                }
                Self::AskForSockets { slot } => {
                    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
                    slots[*slot] = result(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG).into())?;
                    Ok(())
                }
            }
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
            Self::AskForSockets { .. } => "asking for sockets".into(),
        }
    }
}

fn made(returned: libc::c_int) -> Result<(), i32> {
    match result(returned.into()) {
        Err(libc::EEXIST) => Ok(()),
        made => made.map(drop),
    }
}

#[expect(unsafe_code, reason = "a system call that the libraries do not know")]
unsafe fn open_tree(directory: RawFd, path: &CStr, flags: libc::c_int) -> Result<RawFd, i32> {
    let flags =
        flags as libc::c_uint | libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: a system call on a path that outlives it.
    result(unsafe { libc::syscall(libc::SYS_open_tree, directory, path.as_ptr(), flags) })
}

#[expect(unsafe_code, reason = "a system call that the libraries do not know")]
unsafe fn move_mount(mount: RawFd, target: &CStr) -> Result<(), i32> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: a system call on a path that outlives it.
    let moved =
        unsafe { libc::syscall(libc::SYS_move_mount, mount, c"".as_ptr(), libc::AT_FDCWD, target.as_ptr(), flags) };
    result(moved).map(drop)
}

/// A mount of the kernel's overlay file system, which is nowhere yet. By the calls that take each path for itself: in a list of options, commas
/// and colons in it would mean something.
#[expect(unsafe_code, reason = "system calls that the libraries do not know")]
unsafe fn overlay(lower: &CStr, upper: &CStr, work: &CStr, attributes: libc::c_uint) -> Result<RawFd, i32> {
    const CLOEXEC: libc::c_int = 1;
    const SET_FLAG: libc::c_int = 0;
    const SET_STRING: libc::c_int = 1;
    const CREATE: libc::c_int = 6;
    const NONE: *const libc::c_char = std::ptr::null();
    // SAFETY: system calls on texts that outlive them.
    unsafe {
        let made = result(libc::syscall(libc::SYS_fsopen, c"overlay".as_ptr(), CLOEXEC))?;
        let set = |what: libc::c_int, key: *const libc::c_char, value: *const libc::c_char| {
            result(libc::syscall(libc::SYS_fsconfig, made, what, key, value, 0))
        };
        // Before Linux 6.8 there is only the key that takes a list; a path with a colon is none of its words.
        let has_colon = lower.to_bytes().iter().any(|byte| b":,\\".contains(byte));
        let configured = set(SET_STRING, c"lowerdir+".as_ptr(), lower.as_ptr())
            .or_else(|error| if has_colon { Err(error) } else { set(SET_STRING, c"lowerdir".as_ptr(), lower.as_ptr()) })
            .and_then(|_| set(SET_STRING, c"upperdir".as_ptr(), upper.as_ptr()))
            .and_then(|_| set(SET_STRING, c"workdir".as_ptr(), work.as_ptr()))
            // Its notes are attributes that a user may set.
            .and_then(|_| set(SET_FLAG, c"userxattr".as_ptr(), NONE))
            .and_then(|_| set(CREATE, NONE, NONE));
        let mounted = configured.and_then(|_| result(libc::syscall(libc::SYS_fsmount, made, CLOEXEC, attributes)));
        libc::close(made);
        mounted
    }
}

pub(super) fn path(path: impl AsRef<Path>) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_ref().as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte"))
}
