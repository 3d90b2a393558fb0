//! The system calls that steps are made of. They run in a child that has the host's memory until it executes: no allocation, no lock.

use super::{EMPTY, Mounts, NODEV, NOSUID};
use std::ffi::CStr;
use std::net::Ipv4Addr;
use std::os::fd::RawFd;

/// Connections that wait until they are accepted.
const BACKLOG: libc::c_int = 128;

/// The value that a function of the C library returned; `errno` if it failed.
#[expect(unsafe_code, reason = "the C library's number of an error")]
pub(in crate::cell) fn result(returned: libc::c_long) -> Result<RawFd, i32> {
    if returned >= 0 {
        Ok(returned as RawFd)
    } else {
        // SAFETY: the C library's own.
        Err(unsafe { *libc::__errno_location() })
    }
}

pub(super) fn write(file: &CStr, text: &[u8]) -> Result<(), i32> {
    let opened = open(file, libc::O_WRONLY | libc::O_CLOEXEC, 0)?;
    let written = write_to(opened, text);
    close(opened);
    written.map(drop)
}

#[expect(unsafe_code, reason = "a request of the kernel's in a structure of the C library's")]
pub(super) fn loopback_up() -> Result<(), i32> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)?;
    // SAFETY: plain numbers, of which zeroes are some.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: a system call that reads the request, which outlives it.
    let up = result(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request) }.into());
    if up.is_ok() {
        add_address(socket, request);
    }
    close(socket);
    up.map(drop)
}

/// Gives the loopback a second address. A C library that is asked for addresses of families "that are configured" (`AI_ADDRCONFIG`) does not
/// count 127.0.0.1, and would find no name at all. Nothing else needs it, so a failure does not matter.
#[expect(unsafe_code, reason = "a system call that reads a request")]
fn add_address(socket: RawFd, mut request: libc::ifreq) {
    request.ifr_name[2] = b':' as libc::c_char;
    request.ifr_name[3] = b'1' as libc::c_char;
    let sa_data = [0, 0, 127, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0];
    request.ifr_ifru.ifru_addr = libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data };
    // SAFETY: a system call that reads the request, which outlives it.
    unsafe { libc::ioctl(socket, libc::SIOCSIFADDR as _, &raw const request) };
}

#[expect(unsafe_code, reason = "a system call on paths")]
pub(super) fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong, data: &CStr) -> Result<(), i32> {
    let data = data.as_ptr().cast();
    // SAFETY: a system call on texts that outlive it.
    result(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data) }.into()).map(drop)
}

pub(super) fn take(path: &CStr, slot: &mut RawFd) -> Result<(), i32> {
    match open_tree(libc::AT_FDCWD, path, 0) {
        Err(libc::ENOENT | libc::ENOTDIR) => {}
        taken => *slot = taken?,
    }
    Ok(())
}

pub(super) fn take_same(path: &CStr, device: u64, inode: u64, slot: &mut RawFd) -> Result<(), i32> {
    let found = open_without_links(path)?;
    if identity(found)? != (device, inode) {
        return Err(libc::ESTALE);
    }
    let taken = open_tree(found, c"", libc::AT_EMPTY_PATH);
    close(found);
    *slot = taken?;
    Ok(())
}

#[expect(unsafe_code, reason = "a system call that the libraries do not know")]
fn open_without_links(directory: &CStr) -> Result<RawFd, i32> {
    // SAFETY: plain numbers, of which zeroes are some.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_NO_SYMLINKS;
    let (path, size) = (directory.as_ptr(), size_of::<libc::open_how>());
    // SAFETY: a system call on a path and a structure that outlive it, with the structure's size.
    result(unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path, &raw const how, size) })
}

/// The device and the inode of what is open.
#[expect(unsafe_code, reason = "a system call that fills a structure of the C library's")]
fn identity(of: RawFd) -> Result<(u64, u64), i32> {
    // SAFETY: plain numbers, of which zeroes are some.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a system call that writes into the structure, which outlives it.
    result(unsafe { libc::fstat(of, &raw mut stat) }.into())?;
    Ok((stat.st_dev, stat.st_ino))
}

pub(super) fn overlay_or_upper(lower: &CStr, upper: &CStr, work: &CStr, slot: &mut RawFd) -> Result<(), i32> {
    *slot = match overlay(lower, upper, work, 0) {
        Ok(made) => made,
        Err(_) => open_tree(libc::AT_FDCWD, upper, 0)?,
    };
    Ok(())
}

pub(super) fn gate(room: RawFd, upper: &CStr, work: &CStr, over: &CStr) -> Result<(), i32> {
    change_directory(room)?;
    let made = overlay(over, upper, work, (NOSUID | NODEV) as libc::c_uint)?;
    let laid = move_mount(made, over);
    close(made);
    laid
}

pub(super) fn open_directory(path: &CStr, slot: &mut RawFd) -> Result<(), i32> {
    *slot = open(path, libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW, 0)?;
    Ok(())
}

#[expect(unsafe_code, reason = "a system call on a path")]
pub(super) fn uncover(path: &CStr) -> Result<(), i32> {
    // SAFETY: a system call on a path that outlives it.
    result(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) }.into()).map(drop)
}

#[expect(unsafe_code, reason = "a system call on paths")]
pub(super) fn propagate(how: libc::c_ulong) -> Result<(), i32> {
    let (none, top) = (c"".as_ptr(), c"/".as_ptr());
    // SAFETY: a system call on texts of the program, without data.
    result(unsafe { libc::mount(none, top, none, how | libc::MS_REC, std::ptr::null()) }.into()).map(drop)
}

#[expect(unsafe_code, reason = "a system call that the libraries do not know")]
pub(super) fn set_attributes(of: &Mounts, set: u64, slots: &[RawFd]) -> Result<(), i32> {
    // A copy is not one of its original's peers: what is laid over it later would be laid over all of them.
    let propagation = match of {
        Mounts::Slot(_) => libc::MS_PRIVATE,
        Mounts::All | Mounts::At(_) => 0,
    };
    let (directory, path, flags) = match of {
        Mounts::Slot(slot) if slots[*slot] == EMPTY => return Ok(()),
        Mounts::Slot(slot) => (slots[*slot], c"", libc::AT_EMPTY_PATH),
        Mounts::At(path) => (libc::AT_FDCWD, path.as_c_str(), 0),
        Mounts::All => (libc::AT_FDCWD, c"/", 0),
    };
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation, userns_fd: 0 };
    let (path, flags, size) = (path.as_ptr(), flags | libc::AT_RECURSIVE, size_of::<libc::mount_attr>());
    // SAFETY: a system call on a path and a structure that outlive it, with the structure's size.
    result(unsafe { libc::syscall(libc::SYS_mount_setattr, directory, path, flags, &raw const attributes, size) })
        .map(drop)
}

pub(super) fn lay(slot: &mut RawFd, target: &CStr, passes: &[i32]) -> Result<(), i32> {
    if *slot == EMPTY {
        return Ok(());
    }
    let laid = move_mount(*slot, target);
    close(*slot);
    *slot = EMPTY;
    match laid {
        Err(error) if passes.contains(&error) => Ok(()),
        laid => laid,
    }
}

#[expect(unsafe_code, reason = "a system call on a path")]
pub(super) fn make_directory(path: &CStr) -> Result<(), i32> {
    // SAFETY: a system call on a path that outlives it.
    made(unsafe { libc::mkdir(path.as_ptr(), 0o755) })
}

/// How files are opened that a step makes.
const MAKING: libc::c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;

pub(super) fn make_file(path: &CStr) -> Result<(), i32> {
    close(open(path, MAKING, 0o666)?);
    Ok(())
}

pub(super) fn make_program(path: &CStr, program: &[u8]) -> Result<(), i32> {
    let file = open(path, MAKING, 0o755)?;
    let wrote = write_to(file, program);
    close(file);
    if wrote.is_ok_and(|bytes| bytes == program.len()) { Ok(()) } else { Err(libc::ENOSPC) }
}

#[expect(unsafe_code, reason = "a system call on paths")]
pub(super) fn link(path: &CStr, to: &CStr) -> Result<(), i32> {
    // SAFETY: a system call on paths that outlive it.
    made(unsafe { libc::symlink(to.as_ptr(), path.as_ptr()) })
}

pub(super) fn listen(address: Ipv4Addr, port: u16, kind: libc::c_int, slot: &mut RawFd) -> Result<(), i32> {
    *slot = socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)?;
    // Connections of a host that was here before may still be about to end.
    reuse_address(*slot, kind == libc::SOCK_STREAM)?;
    let at = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: address.to_bits().to_be() },
        sin_zero: [0; 8],
    };
    bind(*slot, &at)?;
    match kind {
        libc::SOCK_STREAM => accept_connections(*slot),
        _ => Ok(()),
    }
}

pub(super) fn listen_at(path: &CStr, slot: &mut RawFd) -> Result<(), i32> {
    *slot = socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)?;
    unlink(path);
    let mut at = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    for (to, from) in at.sun_path.iter_mut().zip(path.to_bytes_with_nul()) {
        *to = *from as libc::c_char;
    }
    bind(*slot, &at)?;
    accept_connections(*slot)
}

pub(super) fn stream_socket(family: libc::c_int, slot: &mut RawFd) -> Result<(), i32> {
    match socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) {
        Ok(socket) => *slot = socket,
        Err(libc::EAFNOSUPPORT) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

pub(super) fn ask_for_sockets(slot: &mut RawFd) -> Result<(), i32> {
    *slot = socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG)?;
    Ok(())
}

#[expect(unsafe_code, reason = "a system call on a path")]
fn open(path: &CStr, flags: libc::c_int, mode: libc::c_uint) -> Result<RawFd, i32> {
    // SAFETY: a system call on a path that outlives it.
    result(unsafe { libc::open(path.as_ptr(), flags, mode) }.into())
}

#[expect(unsafe_code, reason = "a system call on bytes")]
fn write_to(file: RawFd, bytes: &[u8]) -> Result<usize, i32> {
    // SAFETY: a system call that reads bytes that outlive it, and no more of them than there are.
    let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
    result(written as libc::c_long).map(|_| written.cast_unsigned())
}

#[expect(unsafe_code, reason = "a descriptor that no value owns")]
fn close(file: RawFd) {
    // SAFETY: a step opened this descriptor, and no caller uses it after this.
    unsafe { libc::close(file) };
}

#[expect(unsafe_code, reason = "a system call on a descriptor")]
fn change_directory(to: RawFd) -> Result<(), i32> {
    // SAFETY: a system call on a number.
    result(unsafe { libc::fchdir(to) }.into()).map(drop)
}

#[expect(unsafe_code, reason = "a system call on a path")]
fn unlink(path: &CStr) {
    // SAFETY: a system call on a path that outlives it.
    unsafe { libc::unlink(path.as_ptr()) };
}

#[expect(unsafe_code, reason = "a system call on numbers")]
fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> Result<RawFd, i32> {
    // SAFETY: a system call on numbers.
    result(unsafe { libc::socket(family, kind, protocol) }.into())
}

#[expect(unsafe_code, reason = "a system call that reads a number")]
fn reuse_address(socket: RawFd, reuse: bool) -> Result<(), i32> {
    let reuse = libc::c_int::from(reuse);
    let (value, size) = ((&raw const reuse).cast(), size_of_val(&reuse) as libc::socklen_t);
    // SAFETY: a system call that reads the number, which outlives it, with its size.
    result(unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, value, size) }.into()).map(drop)
}

/// Binds a socket to one of the C library's addresses.
#[expect(unsafe_code, reason = "a system call that reads an address")]
fn bind<T>(socket: RawFd, address: &T) -> Result<(), i32> {
    let size = size_of_val(address) as libc::socklen_t;
    // SAFETY: a system call that reads the address, which outlives it, with its size.
    result(unsafe { libc::bind(socket, std::ptr::from_ref(address).cast(), size) }.into()).map(drop)
}

#[expect(unsafe_code, reason = "a system call on a descriptor")]
fn accept_connections(socket: RawFd) -> Result<(), i32> {
    // SAFETY: a system call on numbers.
    result(unsafe { libc::listen(socket, BACKLOG) }.into()).map(drop)
}

fn made(returned: libc::c_int) -> Result<(), i32> {
    match result(returned.into()) {
        Err(libc::EEXIST) => Ok(()),
        made => made.map(drop),
    }
}

#[expect(unsafe_code, reason = "a system call that the libraries do not know")]
fn open_tree(directory: RawFd, path: &CStr, flags: libc::c_int) -> Result<RawFd, i32> {
    let flags =
        flags as libc::c_uint | libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: a system call on a path that outlives it.
    result(unsafe { libc::syscall(libc::SYS_open_tree, directory, path.as_ptr(), flags) })
}

#[expect(unsafe_code, reason = "a system call that the libraries do not know")]
pub(super) fn move_mount(mount: RawFd, target: &CStr) -> Result<(), i32> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: a system call on a path that outlives it.
    let moved =
        unsafe { libc::syscall(libc::SYS_move_mount, mount, c"".as_ptr(), libc::AT_FDCWD, target.as_ptr(), flags) };
    result(moved).map(drop)
}

/// A mount of the kernel's overlay file system, which is nowhere yet. By the calls that take each path for itself: in a list of options, commas
/// and colons in it would mean something.
#[expect(unsafe_code, reason = "system calls that the libraries do not know")]
fn overlay(lower: &CStr, upper: &CStr, work: &CStr, attributes: libc::c_uint) -> Result<RawFd, i32> {
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
        // Linux before 6.8 has only `lowerdir`, a list of paths with colons between them: it cannot take a path with such a character.
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
