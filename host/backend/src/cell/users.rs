//! The user namespace of a cell, which its other namespaces belong to: the same user, and nobody else.
//!
//! Who is who there is written from outside, for a process that executed something. A process that shares this program's memory could not do
//! that for itself: as that memory is nobody's to read (`cli/process.rs`), the files for it are root's.

use super::layout::Layout;
use super::living::{Idle, Namespaces};
use super::{Cell, Profile};
use crate::spawn::Started;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{self, File};
use std::io;

/// Who root is where nobody is to be root.
const SOMEBODY: u32 = 1000;
/// How long its process may take to be there.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Makes one. It is there as long as what is returned.
pub(super) fn namespace(profile: &Profile) -> io::Result<Namespaces> {
    let cell = Cell::new(profile, Layout::default(), libc::CLONE_NEWUSER, None);
    let first = Idle::start(&cell, "users")?;
    let failed = |error: io::Error| io::Error::other(format!("making a namespace of users: {error}"));
    wait(&first).and_then(|()| map(first.pid(), profile.nests)).map_err(failed)?;
    let namespace = File::open(format!("/proc/{}/ns/user", first.pid())).map_err(failed)?;
    Ok(Namespaces(vec![namespace]))
}

/// Waits until it has executed the first process: before that its files are root's.
fn wait(first: &Idle) -> io::Result<()> {
    let lifeline = first.lifeline().ok_or(io::ErrorKind::NotConnected)?;
    let mut polled = [PollFd::new(lifeline, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut polled, Some(&PATIENCE)))?;
    if Started::says_it_is_there(lifeline) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// Files look as they do outside. One that is root is somebody else there where that is not wanted, and files look as if they were that one's.
fn map(pid: u32, never_root: bool) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let within = |id: u32| if never_root && id == 0 { SOMEBODY } else { id };
    let write = |name: &str, text: String| fs::write(format!("/proc/{pid}/{name}"), text);
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{} {user} 1\n", within(user)))?;
    write("gid_map", format!("{} {group} 1\n", within(group)))
}
