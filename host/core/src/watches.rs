//! Which directories something has happened in: the kernel tells (inotify), also of what was done in another mount namespace. Where nothing
//! happened nothing has to be looked at.

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Directories that are watched at most; a user has some thousand for all programs.
const MOST: usize = 1024;
/// Bytes of events that are read at once.
const BUFFER: usize = 4096;

/// What is told of directories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Told {
    /// Names that came into being or were moved there.
    Names,
    /// Those, and what was written or changed.
    Changes,
}

impl Told {
    fn events(self) -> WatchFlags {
        let names = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        match self {
            Self::Names => names,
            Self::Changes => names | WatchFlags::ATTRIB | WatchFlags::CLOSE_WRITE,
        }
    }
}

/// What has happened.
pub(crate) enum Dirty<P> {
    /// In these directories, to these names.
    Places(BTreeMap<P, BTreeSet<OsString>>),
    /// More than the kernel tells.
    All,
}

/// The directories that are watched, each a place as who watches them knows it.
#[derive(Debug)]
pub(crate) struct Watches<P> {
    told: Told,
    queue: Option<OwnedFd>,
    /// By their numbers; whether it is one within a place, which matters as a whole.
    places: HashMap<i32, (P, bool)>,
    seen: BTreeMap<P, BTreeSet<OsString>>,
    /// More has happened than the kernel told.
    has_lost: bool,
    /// A directory cannot be watched: everything is looked at each time.
    is_blind: bool,
}

impl<P: Clone + Ord> Watches<P> {
    /// Watches none yet.
    pub(crate) fn of(told: Told) -> Self {
        let (places, seen) = (HashMap::new(), BTreeMap::new());
        Self { told, queue: None, places, seen, has_lost: false, is_blind: false }
    }

    /// Watches an open directory from now on: a place, or one within it.
    pub(crate) fn add(&mut self, directory: impl AsFd, place: P, is_within: bool) {
        if self.queue.is_none() {
            self.queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        }
        let Some(queue) = self.queue.as_ref().filter(|_| self.places.len() < MOST) else {
            self.is_blind |= self.queue.is_none();
            return;
        };
        // This very directory, whatever its name leads to by now.
        let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        match add_watch(queue, path, self.told.events() | WatchFlags::ONLYDIR) {
            Ok(number) => drop(self.places.insert(number, (place, is_within))),
            Err(_) => self.is_blind = true,
        }
    }

    /// All that has happened since it was forgotten last.
    pub(crate) fn dirty(&mut self) -> Dirty<P> {
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
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
        self.has_lost = false;
    }
}
