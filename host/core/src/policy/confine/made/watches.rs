//! Which directories something has happened in: the kernel tells (inotify), also of what was done in another mount namespace. Where nothing
//! happened nothing has to be looked at.

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Directories that are watched at most; a user has some thousand for all programs.
const MOST: usize = 1024;
/// Bytes of events that are read at once.
const BUFFER: usize = 4096;

/// A directory in one that can be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) root: PathBuf,
    /// Relative to the root.
    pub(super) at: PathBuf,
    /// 1 for the root itself.
    pub(super) level: usize,
}

/// What has happened.
pub(super) enum Dirty {
    /// In these directories, to these names.
    Places(BTreeMap<Place, BTreeSet<OsString>>),
    /// More than the kernel tells.
    All,
}

/// The directories that are watched.
#[derive(Default)]
pub(super) struct Watches {
    queue: Option<OwnedFd>,
    /// By their numbers; whether it is one within a place, which matters as a whole.
    places: HashMap<i32, (Place, bool)>,
    seen: BTreeMap<Place, BTreeSet<OsString>>,
    /// More has happened than the kernel told.
    has_lost: bool,
    /// A directory cannot be watched: everything is looked at each time.
    is_blind: bool,
}

impl Watches {
    /// Watches an open directory from now on: a place, or one within it.
    pub(super) fn add(&mut self, directory: impl AsFd, place: Place, is_within: bool) {
        if self.queue.is_none() {
            self.queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        }
        let Some(queue) = self.queue.as_ref().filter(|_| self.places.len() < MOST) else {
            self.is_blind |= self.queue.is_none();
            return;
        };
        let events = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB | WatchFlags::CLOSE_WRITE;
        // This very directory, whatever its name leads to by now.
        let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        match add_watch(queue, path, events | WatchFlags::ONLYDIR) {
            Ok(number) => drop(self.places.insert(number, (place, is_within))),
            Err(_) => self.is_blind = true,
        }
    }

    /// All that has happened since it was forgotten last.
    pub(super) fn dirty(&mut self) -> Dirty {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        if let Some(queue) = &self.queue {
            let mut reader = Reader::new(queue, &mut buffer);
            while let Ok(event) = reader.next() {
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    self.has_lost = true;
                } else if event.events().contains(ReadFlags::IGNORED) {
                    self.places.remove(&event.wd());
                } else if let Some((place, is_within)) = self.places.get(&event.wd()) {
                    let names = self.seen.entry(place.clone()).or_default();
                    let name = event.file_name().filter(|_| !is_within);
                    names.extend(name.map(|name| OsStr::from_bytes(name.to_bytes()).to_owned()));
                }
            }
        }
        if self.has_lost || self.is_blind { Dirty::All } else { Dirty::Places(self.seen.clone()) }
    }

    /// Forgets what has happened: it was looked at.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
        self.has_lost = false;
    }
}
