//! The first process of a command that is not known yet: in the cell, with all that it gives up given up, it waits for a message that says
//! what to start (`programs/init.rs`). So the next command does not wait for namespaces and mounts.

use super::living::Idle;
use crate::spawn::{Program, Started};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of texts in a message; `programs/init.rs` has the same number. A longer command joins by itself.
const MOST_TOLD: usize = 64 << 10;
/// Arguments and variables of those.
const MOST_WORDS: usize = 1024;

/// The message that says what to start.
pub(super) struct Told {
    head: Vec<u8>,
    texts: Vec<u8>,
}

impl Told {
    /// None where that is too much for a message.
    pub(super) fn new(file: &Path, program: &Program<'_>) -> Option<Self> {
        let mut texts = Vec::new();
        let mut add = |parts: &[&OsStr]| {
            parts.iter().for_each(|part| texts.extend(part.as_bytes()));
            texts.push(0);
        };
        add(&[program.directory.as_os_str()]);
        add(&[file.as_os_str()]);
        program.argv.iter().for_each(|word| add(&[word]));
        program.environment.iter().for_each(|(name, value)| add(&[name, OsStr::new("="), value]));
        let words = program.argv.len() + program.environment.len();
        // A zero within a text would begin another one.
        let is_plain = texts.iter().filter(|byte| **byte == 0).count() == words + 2;
        if texts.len() > MOST_TOLD || words > MOST_WORDS || !is_plain {
            return None;
        }
        let numbers = [texts.len(), program.argv.len(), program.environment.len()];
        let head = numbers.iter().flat_map(|number| (*number as u32).to_ne_bytes()).collect();
        Some(Self { head, texts })
    }

    /// Has it start the program.
    ///
    /// # Errors
    ///
    /// When it is gone; it has started nothing then, and ends.
    pub(super) fn tell(&self, idle: Idle, program: &Program<'_>) -> io::Result<Started> {
        let lifeline = idle.lifeline().ok_or(io::ErrorKind::NotConnected)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let standard = program.standard;
        if !control.push(SendAncillaryMessage::ScmRights(&standard)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // It reads the head with the descriptors, and then so much as that says.
        let pieces = [IoSlice::new(&self.head), IoSlice::new(&self.texts)];
        let sent = sendmsg(lifeline.as_fd(), &pieces, &mut control, SendFlags::NOSIGNAL)?;
        if sent != self.head.len() + self.texts.len() {
            return Err(Errno::AGAIN.into());
        }
        Ok(idle.begun())
    }
}
