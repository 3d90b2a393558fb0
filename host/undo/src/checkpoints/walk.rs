//! Looks at a workspace: what has changed since the last look is read, and becomes objects.
//!
//! Directories and files are opened below the workspace's own descriptor; no link is followed, no other file system entered, and only regular files
//! are read. Ignore files count as for a search (`backend/search/rules.rs`); `.gitignore` also where there is no repository. Several threads share it.

use super::objects::{Batch, Id, Kind, Objects, Writer};
use super::stats::{Directory, Item, RuleStamps, Stamp, Stats, What};
use super::tree::{self, DEEPEST, MODE, Side, is_closed};
use backend::search::rules::{EXCLUDE, GIT, GITIGNORE, IGNORE, INFO, Level, RGIGNORE, Rules, Texts};
use base::disk::{DIRECTORY, open_below};
use parking_lot::{Condvar, Mutex};
use rustix::fs::{AtFlags, FileType, OFlags, RawDir, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Files and links of a workspace at most, and directories.
pub(super) const MOST_FILES: usize = 100_000;
/// Bytes of one file, and of all that are new in a checkpoint.
const MOST_BYTES: u64 = 32 << 20;
const MOST_NEW_BYTES: u64 = 200 << 20;
/// How long one look may take: a command waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_THREADS: usize = 8;
/// Files that a thread takes at once.
const AT_ONCE: usize = 64;
const NAMES_BYTES: usize = 32 << 10;
/// The largest ignore file, in bytes.
const RULES_BYTES: u64 = 1 << 20;
/// File systems here count time in steps of at most so many nanoseconds.
const STEP: i64 = 20_000_000;
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Why there is no checkpoint.
#[derive(Debug, thiserror::Error)]
pub(super) enum Not {
    #[error("the workspace has more than {} files that are not ignored", MOST_FILES)]
    TooMany,
    #[error("it would take more than {} s", PATIENCE.as_secs())]
    Slow,
    #[error("{}", super::objects::shown(.0))]
    System(#[from] io::Error),
}

impl From<Errno> for Not {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// What is looked at.
pub(super) struct Look<'l, 'b> {
    pub(super) root: &'l OwnedFd,
    pub(super) path: &'l Path,
    /// A directory that is passed over: our own.
    pub(super) own: (u64, u64),
    pub(super) rules: &'l Rules,
    /// What was there the last time, if the rules were the same then.
    pub(super) old: Option<&'l Stats<'b>>,
    /// Paths that count also where rules leave them out.
    pub(super) also: Option<&'l HashSet<PathBuf>>,
}

/// What came of it.
pub(super) enum Looked<'b> {
    /// Nothing has changed.
    Same(Id),
    Changed {
        tree: Id,
        directories: Vec<Directory<'b>>,
        /// Files that are too large to be kept, and were not told before.
        left_out: Vec<PathBuf>,
    },
}

/// A directory that has ignore files, whose text is read when it is first needed.
struct Ruled {
    above: Option<Arc<Ruled>>,
    path: Vec<u8>,
    has_git: bool,
    has: [bool; 4],
    level: OnceLock<Option<Arc<Level>>>,
}

struct Task {
    path: Vec<u8>,
    depth: usize,
    ruled: Option<Arc<Ruled>>,
    /// The rules above it are what they were.
    is_same: bool,
    /// It counts only for paths that do in any case.
    is_left_out: bool,
}

#[derive(Default)]
struct Tasks {
    waiting: Vec<Task>,
    busy: usize,
    failed: Option<Not>,
}

/// A directory as it was found.
struct Found<'b> {
    directory: Directory<'b>,
    is_same: bool,
    /// Items whose content is not known.
    unread: Vec<usize>,
}

impl<'b> Look<'_, 'b> {
    /// Looks, and writes what is new.
    pub(super) fn look(&self, objects: &Objects) -> Result<Looked<'b>, Not> {
        let until = Instant::now() + PATIENCE;
        let since = now() - STEP;
        let walk = Walk {
            look: self,
            until,
            tasks: Mutex::new(Tasks {
                waiting: vec![Task { path: Vec::new(), depth: 0, ruled: None, is_same: true, is_left_out: false }],
                ..Tasks::default()
            }),
            ready: Condvar::new(),
            counts: Default::default(),
            closed: Mutex::default(),
            since,
        };
        let mut found: Vec<Found<'b>> = on_threads(|| walk.work()).into_iter().flatten().collect();
        let closed = walk.closed.into_inner();
        if let Some(not) = walk.tasks.into_inner().failed {
            return Err(not);
        }
        if let Some(old) = self.old
            && old.count() == found.len()
            && found.iter().all(|found| found.is_same)
        {
            return Ok(Looked::Same(old.tree));
        }
        let left_out = leave_out(&mut found);
        let writer = objects.writer();
        self.read(&mut found, &writer, until, since)?;
        let tree = trees(&mut found, &closed, &writer)?;
        writer.finish()?;
        let directories = found.into_iter().map(|found| found.directory).collect();
        Ok(Looked::Changed { tree, directories, left_out })
    }

    /// Reads files into objects.
    fn read(&self, found: &mut [Found<'_>], writer: &Writer<'_>, until: Instant, since: i64) -> Result<(), Not> {
        let pieces: Vec<(usize, &[usize])> = found
            .iter()
            .enumerate()
            .flat_map(|(at, found)| found.unread.chunks(AT_ONCE).map(move |items| (at, items)))
            .collect();
        let next = AtomicUsize::new(0);
        let all = &*found;
        let thread = || -> Result<Vec<_>, Not> {
            let (mut batch, mut content, mut read) = (Batch::default(), Vec::new(), Vec::new());
            while let Some((at, items)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                if Instant::now() > until {
                    return Err(Not::Slow);
                }
                let directory = &all[*at].directory;
                let opened = open_below(self.root, Path::new(OsStr::from_bytes(&directory.path)), DIRECTORY).ok();
                for number in *items {
                    let item = &directory.items[*number];
                    let one = match opened.as_ref().map(|opened| one(opened, item, &mut content, since)) {
                        // It is gone by now, or something else.
                        None | Some(Ok(None)) => None,
                        Some(Ok(Some((What::Absent, _)))) | Some(Err(_)) => {
                            Some((What::Absent, item.stamp, Id::default()))
                        }
                        Some(Ok(Some((what, stamp)))) => {
                            Some((what, stamp, writer.add(&mut batch, Kind::Blob, &content)?))
                        }
                    };
                    read.push((*at, *number, one));
                }
            }
            writer.flush(&mut batch)?;
            Ok(read)
        };
        let read = on_threads(thread).into_iter().collect::<Result<Vec<_>, Not>>()?;
        let mut gone: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, number, one) in read.into_iter().flatten() {
            match one {
                Some((what, stamp, id)) => {
                    let item = &mut found[at].directory.items[number];
                    (item.what, item.stamp, item.id) = (what, stamp, id);
                }
                None => gone.entry(at).or_default().push(number),
            }
        }
        for (at, mut numbers) in gone {
            numbers.sort_unstable();
            for number in numbers.into_iter().rev() {
                found[at].directory.items.remove(number);
            }
            // It has to be listed again.
            found[at].directory.stamp = Stamp::default();
        }
        Ok(())
    }
}

/// Reads one file or link whole; none where it is neither by now.
fn one(directory: &OwnedFd, item: &Item<'_>, content: &mut Vec<u8>, since: i64) -> io::Result<Option<(What, Stamp)>> {
    content.clear();
    let name = OsStr::from_bytes(&item.name);
    match item.what {
        What::Directory | What::Absent => Ok(None),
        What::Link => {
            *content = match readlinkat(directory, name, std::mem::take(content)) {
                Err(Errno::NOENT | Errno::INVAL) => return Ok(None),
                to => to?.into_bytes(),
            };
            Ok(Some((What::Link, item.stamp.settled(since))))
        }
        What::File(_) => {
            let opened = match openat(directory, name, FILE, rustix::fs::Mode::empty()) {
                Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NODEV | Errno::NOTDIR) => return Ok(None),
                opened => opened?,
            };
            let before = fstat(&opened)?;
            if !FileType::from_raw_mode(before.st_mode).is_file() {
                return Ok(None);
            }
            let (mode, stamp) = (before.st_mode as u16 & MODE, Stamp::of(&before));
            let mut file = File::from(opened);
            if stamp.size <= MOST_BYTES {
                content.reserve(stamp.size as usize + 1);
                (&mut file).take(MOST_BYTES + 1).read_to_end(content)?;
            }
            if stamp.size.max(content.len() as u64) > MOST_BYTES {
                return Ok(Some((What::Absent, stamp)));
            }
            // What changed while it was read is read again the next time.
            let is_whole = content.len() as u64 == stamp.size && Stamp::of(&fstat(&file)?) == stamp;
            Ok(Some((What::File(mode), if is_whole { stamp.settled(since) } else { Stamp::default() })))
        }
    }
}

/// Marks what is too large to be kept, the largest first; returns the paths.
fn leave_out(found: &mut [Found<'_>]) -> Vec<PathBuf> {
    let size = |found: &Found<'_>, number: usize| match found.directory.items[number].what {
        What::File(_) => found.directory.items[number].stamp.size,
        What::Link | What::Directory | What::Absent => 0,
    };
    let mut large: Vec<(u64, usize, usize)> = Vec::new();
    let mut new = 0u64;
    for (at, one) in found.iter().enumerate() {
        for number in &one.unread {
            let bytes = size(one, *number);
            new = new.saturating_add(bytes);
            large.push((bytes, at, *number));
        }
    }
    large.sort_unstable_by(|one, other| other.cmp(one));
    let mut paths = Vec::new();
    for (bytes, at, number) in large {
        if new <= MOST_NEW_BYTES && bytes <= MOST_BYTES {
            break;
        }
        new -= bytes;
        let Found { directory, unread, .. } = &mut found[at];
        unread.retain(|unread| *unread != number);
        directory.items[number].what = What::Absent;
        paths
            .push(Path::new(OsStr::from_bytes(&directory.path)).join(OsStr::from_bytes(&directory.items[number].name)));
    }
    paths
}

/// Makes the trees, from the deepest directory up; returns that of the workspace.
fn trees(found: &mut [Found<'_>], closed: &HashSet<Vec<u8>>, writer: &Writer<'_>) -> Result<Id, Not> {
    // A directory comes after all that lie in it.
    found.sort_unstable_by(|one, other| other.directory.path.cmp(&one.directory.path));
    let mut made: HashMap<Vec<u8>, Id> = HashMap::new();
    let mut batch = Batch::default();
    for Found { directory, .. } in &mut *found {
        let path = &directory.path;
        directory.items.retain_mut(|item| {
            if item.what != What::Directory || made.contains_key(&below(path, &item.name)) {
                return true;
            }
            item.what = What::Absent;
            closed.contains(&below(path, &item.name))
        });
        let side = |item: &Item<'_>| match item.what {
            What::File(mode) => Side::File(mode, item.id),
            What::Link => Side::Link(item.id),
            What::Directory => Side::Directory(made[&below(path, &item.name)]),
            What::Absent => Side::Absent,
        };
        let mut entries: Vec<(&[u8], Side)> = directory.items.iter().map(|item| (&*item.name, side(item))).collect();
        let id = writer.add(&mut batch, Kind::Tree, &tree::write(&mut entries))?;
        made.insert(path.to_vec(), id);
    }
    writer.flush(&mut batch)?;
    made.get(b"".as_slice()).copied().ok_or_else(|| Not::System(io::ErrorKind::NotFound.into()))
}

fn below(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}

/// Does the same on several threads.
fn on_threads<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let own = work();
        let others = others.into_iter().map(|other| other.join().expect("it does not panic"));
        std::iter::once(own).chain(others).collect()
    })
}

/// The time as file systems have it, in nanoseconds.
fn now() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}

/// A walk that threads share.
struct Walk<'w, 'l, 'b> {
    look: &'w Look<'l, 'b>,
    until: Instant,
    tasks: Mutex<Tasks>,
    ready: Condvar,
    /// Files and links so far, and directories.
    counts: [AtomicUsize; 2],
    /// Directories that cannot be looked into.
    closed: Mutex<HashSet<Vec<u8>>>,
    since: i64,
}

impl<'b> Walk<'_, '_, 'b> {
    fn work(&self) -> Vec<Found<'b>> {
        let (mut done, mut buffer) = (Vec::new(), Vec::with_capacity(NAMES_BYTES));
        while let Some(task) = self.next() {
            let found = if Instant::now() > self.until { Err(Not::Slow) } else { self.enter(&task, &mut buffer) };
            let mut tasks = self.tasks.lock();
            match found {
                Ok(Some((found, below))) => {
                    let count = below.len();
                    tasks.waiting.extend(below);
                    if count > 1 {
                        self.ready.notify_all();
                    }
                    done.push(found);
                }
                // It is gone, or closed.
                Ok(None) => {}
                Err(not) => tasks.failed = Some(not),
            }
            tasks.busy -= 1;
            if tasks.busy == 0 || tasks.failed.is_some() {
                self.ready.notify_all();
            }
        }
        done
    }

    fn next(&self) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        loop {
            if tasks.failed.is_some() {
                return None;
            }
            if let Some(task) = tasks.waiting.pop() {
                tasks.busy += 1;
                return Some(task);
            }
            if tasks.busy == 0 {
                return None;
            }
            self.ready.wait(&mut tasks);
        }
    }

    /// Sees to one directory; returns it, and those that lie in it.
    fn enter(&self, task: &Task, buffer: &mut Vec<u8>) -> Result<Option<(Found<'b>, Vec<Task>)>, Not> {
        let path = Path::new(OsStr::from_bytes(&task.path));
        let opened = match open_below(self.look.root, path, DIRECTORY) {
            Ok(opened) => opened,
            Err(error) if task.depth == 0 => return Err(error.into()),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(_) => {
                self.closed.lock().insert(task.path.clone());
                return Ok(None);
            }
        };
        let found = fstat(&opened)?;
        if (found.st_dev, found.st_ino) == self.look.own || task.depth > DEEPEST {
            self.closed.lock().insert(task.path.clone());
            return Ok(None);
        }
        let stamp = Stamp::of(&found);
        let old = self.look.old.and_then(|old| old.directory(&task.path));
        let known = old.filter(|old| task.is_same && self.look.also.is_none() && old.stamp == stamp);
        if let Some(old) = known
            && old.rules == rule_stamps(&opened, old.has_git, Some(&old.rules))
        {
            return self.known(task, &opened, old).map(Some);
        }
        self.listed(task, &opened, stamp.settled(self.since), buffer).map(Some)
    }

    /// A directory that has the names that it had.
    fn known(&self, task: &Task, opened: &OwnedFd, mut old: Directory<'b>) -> Result<(Found<'b>, Vec<Task>), Not> {
        let ruled = self.ruled(task, &old);
        let (mut is_same, mut unread, mut below) = (true, Vec::new(), Vec::new());
        let mut kept = Vec::with_capacity(old.items.len());
        for mut item in std::mem::take(&mut old.items) {
            if item.what == What::Directory {
                below.push(task.below(&item.name, &ruled, true, false));
                kept.push(item);
                continue;
            }
            let Ok(found) = statat(opened, OsStr::from_bytes(&item.name), AtFlags::SYMLINK_NOFOLLOW) else {
                is_same = false;
                continue;
            };
            // It was closed, or deeper than is looked.
            if FileType::from_raw_mode(found.st_mode).is_dir() {
                below.push(task.below(&item.name, &ruled, true, false));
                kept.push(Item { what: What::Directory, ..item });
                continue;
            }
            let stamp = Stamp::of(&found);
            if stamp != item.stamp {
                is_same = false;
                let Some(what) = what(&found) else { continue };
                (item.what, item.stamp) = (what, stamp);
                unread.push(kept.len());
            }
            kept.push(item);
        }
        self.count(kept.len() - below.len(), below.len())?;
        old.items = kept;
        Ok((Found { directory: old, is_same, unread }, below))
    }

    /// A directory whose names are read.
    fn listed(
        &self,
        task: &Task,
        opened: &OwnedFd,
        stamp: Stamp,
        buffer: &mut Vec<u8>,
    ) -> Result<(Found<'b>, Vec<Task>), Not> {
        let mut names: Vec<(Vec<u8>, bool)> = Vec::new();
        let (mut has_git, mut stamp) = (task.depth == 0, stamp);
        let mut entries = RawDir::new(opened, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else {
                stamp = Stamp::default();
                break;
            };
            let name = entry.file_name();
            has_git |= name == c".git";
            if is_closed(name.to_bytes()) {
                continue;
            }
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Unknown => statat(opened, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir()),
                _ => false,
            };
            names.push((name.to_bytes().to_vec(), is_directory));
            if names.len().is_multiple_of(4096) && Instant::now() > self.until {
                return Err(Not::Slow);
            }
        }
        let rules = rule_stamps(opened, has_git, None);
        let old = self.look.old.and_then(|old| old.directory(&task.path));
        let is_same = task.is_same && old.as_ref().is_some_and(|old| (old.rules, old.has_git) == (rules, has_git));
        let (path, rules) = (Cow::Owned(task.path.clone()), rules.map(|rule| Some(rule?.settled(self.since))));
        let mut directory = Directory { path, stamp, has_git, rules, items: Vec::new() };
        let ruled = self.ruled(task, &directory);
        let level = ruled.as_ref().and_then(|ruled| ruled.level(self.look));
        let old: HashMap<&[u8], &Item<'b>> =
            old.iter().flat_map(|old| &old.items).map(|item| (&*item.name, item)).collect();
        let (mut unread, mut below) = (Vec::new(), Vec::new());
        let mut whole = self.look.path.join(OsStr::from_bytes(&task.path)).into_os_string().into_encoded_bytes();
        if !whole.ends_with(b"/") {
            whole.push(b'/');
        }
        let length = whole.len();
        for (name, is_directory) in names {
            whole.truncate(length);
            whole.extend(&name);
            let is_left_out = task.is_left_out
                || self.look.rules.skips(level.as_deref(), Path::new(OsStr::from_bytes(&whole)), &name, is_directory);
            let counts =
                |also: &HashSet<PathBuf>| also.contains(Path::new(OsStr::from_bytes(&self::below(&task.path, &name))));
            if is_left_out && !self.look.also.is_some_and(counts) {
                continue;
            }
            if is_directory {
                below.push(task.below(&name, &ruled, is_same, is_left_out));
                let (what, stamp, id) = (What::Directory, Stamp::default(), Id::default());
                directory.items.push(Item { name: Cow::Owned(name), what, stamp, id });
                continue;
            }
            let Ok(found) = statat(opened, OsStr::from_bytes(&name), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let Some(what) = what(&found) else { continue };
            let stamp = Stamp::of(&found);
            match old.get(&name[..]).filter(|old| old.stamp == stamp) {
                Some(old) => directory.items.push((*old).clone()),
                None => {
                    unread.push(directory.items.len());
                    directory.items.push(Item { name: Cow::Owned(name), what, stamp, id: Id::default() });
                }
            }
        }
        self.count(directory.items.len() - below.len(), below.len())?;
        Ok((Found { directory, is_same: false, unread }, below))
    }

    fn count(&self, files: usize, directories: usize) -> Result<(), Not> {
        let is_within =
            |(count, more): (&AtomicUsize, usize)| count.fetch_add(more, Ordering::Relaxed) + more <= MOST_FILES;
        if self.counts.iter().zip([files, directories]).all(is_within) { Ok(()) } else { Err(Not::TooMany) }
    }

    /// The rules that hold in a directory.
    fn ruled(&self, task: &Task, directory: &Directory<'_>) -> Option<Arc<Ruled>> {
        let has = directory.rules.map(|rule| rule.is_some());
        if !directory.has_git && !has.contains(&true) {
            return task.ruled.clone();
        }
        let (above, path, has_git) = (task.ruled.clone(), task.path.clone(), directory.has_git);
        Some(Arc::new(Ruled { above, path, has_git, has, level: OnceLock::new() }))
    }
}

impl Task {
    fn below(&self, name: &[u8], ruled: &Option<Arc<Ruled>>, is_same: bool, is_left_out: bool) -> Self {
        Self { path: below(&self.path, name), depth: self.depth + 1, ruled: ruled.clone(), is_same, is_left_out }
    }
}

impl Ruled {
    fn level(&self, look: &Look<'_, '_>) -> Option<Arc<Level>> {
        let made = self.level.get_or_init(|| {
            let above = self.above.as_ref().and_then(|above| above.level(look));
            let path = Path::new(OsStr::from_bytes(&self.path));
            let text = |has: bool, name: &Path| has.then(|| text(look.root, &path.join(name))).flatten();
            let [rgignore, ignore, git, exclude] = self.has;
            let texts = Texts {
                rgignore: text(rgignore, Path::new(RGIGNORE)),
                ignore: text(ignore, Path::new(IGNORE)),
                git: text(git, Path::new(GITIGNORE)),
                exclude: text(exclude, &exclude_path()),
                has_git: self.has_git,
            };
            Level::below(above, &look.path.join(path), &texts)
        });
        made.clone()
    }
}

fn exclude_path() -> PathBuf {
    [GIT, INFO, EXCLUDE].iter().collect()
}

/// Reads an ignore file, if it is a regular one.
fn text(root: &OwnedFd, path: &Path) -> Option<Vec<u8>> {
    let file = open_below(root, path, FILE).ok()?;
    FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file().then_some(())?;
    let mut text = Vec::new();
    File::from(file).take(RULES_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The ignore files that a directory has; with `old`, only those that it had are looked for among its own.
fn rule_stamps(opened: &OwnedFd, has_git: bool, old: Option<&RuleStamps>) -> RuleStamps {
    let found = |path: &Path| {
        let found = statat(opened.as_fd(), path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        FileType::from_raw_mode(found.st_mode).is_file().then(|| Stamp::of(&found))
    };
    let mut stamps = RuleStamps::default();
    for (at, name) in [RGIGNORE, IGNORE, GITIGNORE].iter().enumerate() {
        if old.is_none_or(|old| old[at].is_some()) {
            stamps[at] = found(Path::new(name));
        }
    }
    stamps[3] = has_git.then(|| found(&exclude_path())).flatten();
    stamps
}

/// What is kept of this; none of a pipe, a socket or a device.
fn what(found: &rustix::fs::Stat) -> Option<What> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Some(What::File(found.st_mode as u16 & MODE)),
        FileType::Symlink => Some(What::Link),
        _ => None,
    }
}
