//! Which directories something has happened in: the kernel tells (inotify), also of what was done in another mount namespace. Where nothing
//! happened nothing has to be looked at.

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Directories that are watched at most; a user has some ten thousand for all programs.
const MOST: usize = 16_384;
/// Bytes of events that are read at once.
const BUFFER: usize = 32 << 10;

/// What is told of directories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    /// Names that came into being or were moved there.
    Names,
    /// Those, and what was written, once it is closed.
    Changes,
}

impl Told {
    fn events(self) -> WatchFlags {
        let names = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        match self {
            Self::Names => names,
            Self::Changes => names | WatchFlags::CLOSE_WRITE,
        }
    }
}

/// The last that has happened to a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// It came into being, and may be written still.
    Created,
    /// It is being written.
    Written,
    /// It was moved there, or written and closed.
    Closed,
    /// It is a directory, which came into being or was moved there.
    Directory,
}

/// What has happened.
pub enum Dirty<P> {
    /// In these directories, to these names.
    Places(BTreeMap<P, BTreeMap<OsString, Event>>),
    /// More than the kernel tells.
    All,
}

/// The directories that are watched, each a place as who watches them knows it.
#[derive(Debug)]
pub struct Watches<P> {
    told: Told,
    queue: Option<OwnedFd>,
    /// By their numbers; with the name of one file in it where that alone is watched.
    places: HashMap<i32, (P, Option<OsString>)>,
    seen: BTreeMap<P, BTreeMap<OsString, Event>>,
    /// More has happened than the kernel told.
    has_lost: bool,
    /// A directory cannot be watched: everything is looked at each time.
    is_blind: bool,
}

impl<P: Clone + Ord> Watches<P> {
    /// Watches none yet.
    pub fn of(told: Told) -> Self {
        let (places, seen) = (HashMap::new(), BTreeMap::new());
        Self { told, queue: None, places, seen, has_lost: false, is_blind: false }
    }

    /// Watches an open directory from now on.
    pub fn add(&mut self, directory: impl AsFd, place: P) {
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
            Ok(number) => drop(self.places.insert(number, (place, None))),
            Err(_) => self.is_blind = true,
        }
    }

    /// Watches one file in a place, by whichever name it is written, and what it may be used for.
    pub fn add_file(&mut self, file: impl AsFd, place: P, name: &OsStr) {
        let Some(queue) = self.queue.as_ref().filter(|_| self.places.len() < MOST) else { return };
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let events = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB;
        if let Ok(number) = add_watch(queue, path, events) {
            self.places.insert(number, (place, Some(name.to_owned())));
        }
    }

    /// There are more directories than are watched.
    pub fn is_full(&self) -> bool {
        self.places.len() >= MOST
    }

    /// Whether nothing has happened since it was forgotten last.
    pub fn is_quiet(&mut self) -> bool {
        self.read();
        !self.has_lost && !self.is_blind && self.seen.is_empty()
    }

    /// All that has happened since it was forgotten last.
    pub fn dirty(&mut self) -> Dirty<P> {
        self.read();
        if self.has_lost || self.is_blind { Dirty::All } else { Dirty::Places(self.seen.clone()) }
    }

    fn read(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        if let Some(queue) = &self.queue {
            let mut reader = Reader::new(queue, &mut buffer);
            while let Ok(event) = reader.next() {
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    self.has_lost = true;
                } else if event.events().contains(ReadFlags::IGNORED) {
                    self.places.remove(&event.wd());
                } else if let Some((place, file)) = self.places.get(&event.wd()) {
                    let what = match event.events() {
                        events if events.contains(ReadFlags::ISDIR) => Event::Directory,
                        events if events.contains(ReadFlags::CREATE) => Event::Created,
                        // One that goes has this as well, and another one may be written under its name by then.
                        events if events.intersects(ReadFlags::MODIFY | ReadFlags::ATTRIB) => Event::Written,
                        _ => Event::Closed,
                    };
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
                    if let Some(name) = name.or_else(|| file.clone()) {
                        self.seen.entry(place.clone()).or_default().insert(name, what);
                    }
                }
            }
        }
    }

    /// The same, which is then forgotten.
    pub fn take(&mut self) -> Dirty<P> {
        self.read();
        let (seen, has_lost) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.has_lost));
        if has_lost || self.is_blind { Dirty::All } else { Dirty::Places(seen) }
    }

    /// What can be waited for until something happens; none where nothing is watched.
    pub fn queue(&self) -> Option<&OwnedFd> {
        self.queue.as_ref()
    }

    /// Forgets what has happened: it was looked at.
    pub fn forget(&mut self) {
        self.seen.clear();
        self.has_lost = false;
    }
}
