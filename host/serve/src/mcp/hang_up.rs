//! Whether the other end of a pipe or connection has gone, without reading what is still unread.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;

/// Whether nothing more can come.
pub(super) fn is_hung_up(stream: &impl AsFd) -> bool {
    // Linux also reports a half-close. HTTP servers treat it the same way: a client that closes does not wait for the answer.
    let gone = PollFlags::HUP | PollFlags::ERR | closed_half();
    let mut looked = [PollFd::new(stream, gone)];
    matches!(poll(&mut looked, Some(&Timespec::default())), Ok(1..)) && looked[0].revents().intersects(gone)
}

#[cfg(target_os = "linux")]
fn closed_half() -> PollFlags {
    PollFlags::RDHUP
}

#[cfg(not(target_os = "linux"))]
fn closed_half() -> PollFlags {
    PollFlags::empty()
}
