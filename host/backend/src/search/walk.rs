//! The walk over this machine's files: directories by the handle of the one above, several threads, no link followed.

use super::lines::Looker;
use super::rules::{self, Level, Rules, Texts};
use super::{Find, First, Found, FoundFile, Looked, MOST_BINARY, Pattern, Search, Watch, Which};
use crate::files;
use base::envelope::{Failure, Kind};
use file_access::{Opened, ReadEntry, ReadTree, Resolved};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use parking_lot::{Condvar, Mutex, RwLock};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Threads of one search.
const MOST_THREADS: usize = 8;
/// Threads of all searches, for each processor.
const THREADS_EACH: usize = 2;
/// Files that a thread takes at once.
const AT_ONCE: usize = 64;
/// Bytes of names that are read at once.
const NAMES_BYTES: usize = 32 << 10;
/// Names that a directory may have.
const MOST_NAMES: usize = 2_000_000;
/// How deep below the root a directory may lie: on the way to it, a handle is open for each that is not done.
const DEEPEST: usize = 256;
/// The largest ignore file, in bytes.
const RULES_BYTES: usize = 1 << 20;
/// How directories and files are opened. Opening a pipe must not wait for its other end.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Searches for lines.
pub(crate) async fn search(tree: &ReadTree, search: &Search, watch: Arc<Watch>) -> Result<Found, Failure> {
    let matcher = search.pattern.matcher()?;
    let job = Job::Lines { matcher, search: search.clone() };
    walked(tree, &search.which, job, search.skip, search.max, watch).await
}

/// Searches for names.
pub(crate) async fn find(tree: &ReadTree, find: &Find, watch: Arc<Watch>) -> Result<Found, Failure> {
    let path = find.path.as_ref().map(Pattern::matcher).transpose()?;
    let job = Job::Names { path, directories: find.directories };
    walked(tree, &find.which, job, find.skip, find.max, watch).await
}

/// What is done with each file.
enum Job {
    Lines { matcher: RegexMatcher, search: Search },
    Names { path: Option<RegexMatcher>, directories: bool },
}

/// A walk that threads share.
struct Walk {
    job: Job,
    rules: Rules,
    tasks: Mutex<Tasks>,
    ready: Condvar,
    watch: Arc<Watch>,
    first: Mutex<First>,
    /// What lies behind this path does not count any more.
    bound: RwLock<Option<PathBuf>>,
    is_bound: AtomicBool,
    wanted: usize,
    /// What was looked at, and binary files that have the pattern.
    looked: Mutex<(Looked, Vec<String>)>,
}

/// What is still to be done. The last comes first, so that few directories are open at a time.
struct Tasks {
    waiting: Vec<Task>,
    /// Threads that may add some.
    busy: usize,
}

enum Task {
    Root { tree: ReadTree, level: Option<Arc<Level>> },
    Directory { above: Arc<Place>, name: OsString },
    Files { place: Arc<Place>, names: Arc<Names>, range: Range<usize> },
}

/// An open directory.
struct Place {
    handle: OwnedFd,
    tree: ReadTree,
    /// Its path below the root.
    below: PathBuf,
    depth: usize,
    level: Option<Arc<Level>>,
}

/// Names in one piece of memory.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    /// Where each is, and whether it is that of a directory.
    each: Vec<(Range<usize>, bool)>,
}

impl Names {
    fn name(&self, at: usize) -> &OsStr {
        OsStr::from_bytes(&self.bytes[self.each[at].0.clone()])
    }

    fn push(&mut self, name: &[u8], is_directory: bool) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.each.push((from..self.bytes.len(), is_directory));
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.each.sort_unstable_by(|(one, _), (other, _)| bytes[one.clone()].cmp(&bytes[other.clone()]));
    }
}

async fn walked(
    tree: &ReadTree,
    which: &Which,
    job: Job,
    skip: u32,
    max: u32,
    watch: Arc<Watch>,
) -> Result<Found, Failure> {
    let _leash = watch.leash();
    let permits = threads().await;
    let (tree, which) = (tree.clone(), which.clone());
    let made = move || {
        let (rules, level) = rules_of(&tree, &which)?;
        let first = First::new(skip, max);
        Ok(Walk {
            job,
            rules,
            tasks: Mutex::new(Tasks { waiting: vec![Task::Root { tree, level }], busy: 0 }),
            ready: Condvar::new(),
            watch,
            wanted: first.wanted(),
            first: Mutex::new(first),
            bound: RwLock::default(),
            is_bound: AtomicBool::new(false),
            looked: Mutex::default(),
        })
    };
    let walk: Arc<Walk> = Arc::new(tokio::task::spawn_blocking(made).await.map_err(fault)??);
    let thread = |permit: OwnedSemaphorePermit| {
        let walk = walk.clone();
        tokio::task::spawn_blocking(move || {
            // Also one that nobody waits for any more counts until it ends.
            let _permit = permit;
            walk.work()
        })
    };
    let threads: Vec<_> = permits.into_iter().map(thread).collect();
    for thread in threads {
        thread.await.map_err(fault)??;
    }
    let first = std::mem::replace(&mut *walk.first.lock(), First::new(0, 0));
    let (files, more) = first.into_files(skip, max);
    let (looked, mut binary) = std::mem::take(&mut *walk.looked.lock());
    binary.sort_unstable();
    binary.truncate(MOST_BINARY);
    Ok(Found { files, more, binary, looked, notices: Vec::new() })
}

fn fault(error: tokio::task::JoinError) -> Failure {
    Failure::new(Kind::Internal, format!("a search did not end: {error}"))
}

/// What threads of a search hold: at least one, and as many as are free.
async fn threads() -> Vec<OwnedSemaphorePermit> {
    static ALL: LazyLock<(usize, Arc<Semaphore>)> = LazyLock::new(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (processors.min(MOST_THREADS), Arc::new(Semaphore::new(processors * THREADS_EACH)))
    });
    let (most, all) = &*ALL;
    let first = all.clone().acquire_owned().await.expect("nobody closes it");
    let others = std::iter::from_fn(|| all.clone().try_acquire_owned().ok());
    [first].into_iter().chain(others.take(most - 1)).collect()
}

/// The rules of a walk, and those of the directories above its root.
fn rules_of(tree: &ReadTree, which: &Which) -> Result<(Rules, Option<Arc<Level>>), Failure> {
    if which.ignored {
        return Ok((Rules::new(which, tree.as_path(), None)?, None));
    }
    let facts = tree.facts();
    let read = |path: &str| {
        let admitted = tree.beside(&files::resolve(path, facts.clone()).ok()?)?;
        files::read(&admitted, 0, RULES_BYTES).ok().map(|file| file.bytes)
    };
    let named = ["~/.gitconfig", "~/.config/git/config"].iter().find_map(|path| rules::excludes_file(&read(path)?));
    let user = read(named.as_deref().unwrap_or("~/.config/git/ignore"));
    let user = user.as_deref().map(|text| (facts.directory.as_path(), text));
    let rules = Rules::new(which, tree.as_path(), user)?;
    let mut above: Vec<&Path> = tree.as_path().ancestors().skip(1).collect();
    above.reverse();
    let level = above.into_iter().fold(None, |level, directory| {
        let there = |name: &str| directory.join(name).symlink_metadata().ok();
        let read = |name: &str| {
            let path = directory.join(name);
            path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
            let (given, facts) = (path.clone(), facts.clone());
            let admitted = tree.beside(&Resolved { given, path, absent: None, facts, there: None })?;
            files::read(&admitted, 0, RULES_BYTES).ok().map(|file| file.bytes)
        };
        let texts = Texts {
            rgignore: read(rules::RGIGNORE),
            ignore: read(rules::IGNORE),
            git: read(rules::GITIGNORE),
            exclude: read(&[rules::GIT, rules::INFO, rules::EXCLUDE].join("/")),
            has_git: there(rules::GIT).is_some() || there(rules::JJ).is_some(),
        };
        Level::below(level, directory, &texts)
    });
    Ok((rules, level))
}

/// Opens a name in a directory that was admitted, as a directory.
fn open_directory(above: &Place, entry: &ReadEntry<'_>) -> Result<(OwnedFd, Stat), Errno> {
    let handle = openat(&above.handle, entry.name(), DIRECTORY, Mode::empty())?;
    let found = fstat(&handle)?;
    Ok((handle, found))
}

/// Opens a name in a directory that was admitted, as a regular file. How many names it has counts only together with this one: see
/// `open_regular` of `files.rs`.
fn open_file(place: &Place, entry: &ReadEntry<'_>) -> Result<Option<(File, u64)>, Fault> {
    let handle = openat(&place.handle, entry.name(), FILE, Mode::empty())?;
    let opened = fstat(&handle)?;
    if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
        return Err(Fault::Irregular);
    }
    let named = statat(&place.handle, entry.name(), AtFlags::SYMLINK_NOFOLLOW)?;
    if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino) {
        return Err(Fault::Gone);
    }
    let seconds = Duration::from_secs(u64::try_from(named.st_ctime).unwrap_or_default());
    let changed = SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(named.st_ctime_nsec);
    let file = Opened { device: named.st_dev, inode: named.st_ino, links: named.st_nlink, changed };
    let size = u64::try_from(opened.st_size).unwrap_or_default();
    Ok(entry.is_readable(&file).then(|| (File::from(handle), size)))
}

/// Why something was not opened.
enum Fault {
    /// It is something else by now, or nothing.
    Gone,
    Link,
    Irregular,
    Unreadable,
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR => Self::Gone,
            Errno::LOOP => Self::Link,
            Errno::NXIO | Errno::NODEV => Self::Irregular,
            _ => Self::Unreadable,
        }
    }
}

impl Walk {
    /// Does what there is to do until there is nothing left.
    fn work(&self) -> Result<(), Failure> {
        let looker = match &self.job {
            Job::Lines { matcher, search } => Some(Looker::new(matcher, search, self.wanted, &self.watch)),
            Job::Names { .. } => None,
        };
        let (looked, binary, buffer) = (Looked::default(), Vec::new(), Vec::with_capacity(NAMES_BYTES));
        let mut worker = Worker { walk: self, looker, looked, binary, buffer, path: Vec::new() };
        let mut outcome = Ok(());
        while let Some(task) = self.next() {
            let _busy = Busy(self);
            match task {
                Task::Root { tree, level } => outcome = worker.root(tree, level),
                Task::Directory { above, name } => worker.directory(&above, &name),
                Task::Files { place, names, range } => worker.files(&place, &names, range),
            }
        }
        worker.looked.timed_out = self.watch.is_late();
        let mut looked = self.looked.lock();
        looked.0.add(&worker.looked);
        looked.1.append(&mut worker.binary);
        outcome
    }

    fn next(&self) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        loop {
            if self.watch.is_over() {
                tasks.waiting.clear();
            }
            if let Some(task) = tasks.waiting.pop() {
                tasks.busy += 1;
                return Some(task);
            }
            if tasks.busy == 0 {
                self.ready.notify_all();
                return None;
            }
            self.ready.wait(&mut tasks);
        }
    }

    /// Adds what is to be done in this order.
    fn add(&self, new: Vec<Task>) {
        let count = new.len();
        self.tasks.lock().waiting.extend(new.into_iter().rev());
        if count > 1 {
            self.ready.notify_all();
        }
    }

    /// Whether a path below the root comes behind all that counts.
    fn is_past(&self, directory: &Path, name: &OsStr) -> bool {
        self.is_bound.load(Ordering::Relaxed)
            && self.bound.read().as_ref().is_some_and(|bound| directory.join(name) > *bound)
    }

    fn found(&self, path: PathBuf, file: FoundFile, finds: usize) {
        let mut first = self.first.lock();
        if let Some(bound) = first.add(path, file, finds) {
            *self.bound.write() = Some(bound.to_owned());
            self.is_bound.store(true, Ordering::Relaxed);
        }
    }
}

/// A thread that may add tasks.
struct Busy<'w>(&'w Walk);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut tasks = self.0.tasks.lock();
        tasks.busy -= 1;
        if tasks.busy == 0 {
            self.0.ready.notify_all();
        }
    }
}

/// One thread of a walk.
struct Worker<'w> {
    walk: &'w Walk,
    looker: Option<Looker<'w>>,
    looked: Looked,
    binary: Vec<String>,
    /// For names as the system tells them.
    buffer: Vec<u8>,
    /// For the path that is judged.
    path: Vec<u8>,
}

impl Worker<'_> {
    fn root(&mut self, tree: ReadTree, level: Option<Arc<Level>>) -> Result<(), Failure> {
        let shown = tree.root().shown();
        let fail = |error: io::Error| files::failure(&shown, &error);
        match files::open_directory(tree.as_path()) {
            Ok(directory) => {
                let handle = openat(&directory, ".", DIRECTORY, Mode::empty()).map_err(|error| fail(error.into()))?;
                self.enter(Place { handle, tree, below: PathBuf::new(), depth: 0, level });
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => self.only(&tree),
            Err(error) => Err(fail(error)),
        }
    }

    /// Looks into the single file that was named.
    fn only(&mut self, tree: &ReadTree) -> Result<(), Failure> {
        let (file, size) = files::opened(tree.root())?;
        if self.looker.is_some() {
            self.look(file, size, PathBuf::new());
        } else {
            self.walk.found(PathBuf::new(), FoundFile::default(), 1);
            self.looked.files += 1;
        }
        Ok(())
    }

    fn fault(&mut self, fault: &Fault) {
        match fault {
            Fault::Gone => {}
            Fault::Link => self.looked.links += 1,
            Fault::Irregular => self.looked.irregular += 1,
            Fault::Unreadable => self.looked.unreadable += 1,
        }
    }

    fn directory(&mut self, above: &Place, name: &OsStr) {
        if self.walk.is_past(&above.below, name) {
            return;
        }
        if above.depth == DEEPEST {
            self.looked.deep += 1;
            return;
        }
        if let Some(place) = self.below(above, name) {
            self.enter(place);
        }
    }

    /// Opens a directory in another; none where it cannot be.
    fn below(&mut self, above: &Place, name: &OsStr) -> Option<Place> {
        let Some(entry) = above.tree.entry(name) else {
            self.looked.refused += 1;
            return None;
        };
        let (handle, found) = open_directory(above, &entry).map_err(|error| self.fault(&error.into())).ok()?;
        let Some(tree) = entry.directory(found.st_dev, found.st_ino) else {
            self.looked.refused += 1;
            return None;
        };
        let (below, depth, level) = (above.below.join(name), above.depth + 1, above.level.clone());
        Some(Place { handle, tree, below, depth, level })
    }

    /// Sees to all that a directory has.
    fn enter(&mut self, mut place: Place) {
        let (mut names, has_rules) = self.names(&place);
        if has_rules && self.walk.rules.reads_ignore_files() {
            let texts = self.texts(&place, &names);
            place.level = Level::below(place.level.take(), place.tree.as_path(), &texts);
        }
        self.leave_out(&place, &mut names);
        names.sort();
        let has_directories = names.each.iter().any(|(_, is_directory)| *is_directory);
        match &self.walk.job {
            Job::Names { path, directories } => {
                self.name(&place, &names, path.as_ref(), *directories);
                if has_directories {
                    let above = Arc::new(place);
                    let directories = (0..names.each.len()).filter(|at| names.each[*at].1);
                    let task = |at: usize| Task::Directory { above: above.clone(), name: names.name(at).to_owned() };
                    self.walk.add(directories.map(task).collect());
                }
            }
            Job::Lines { .. } if !has_directories && names.each.len() <= AT_ONCE => {
                self.files(&place, &names, 0..names.each.len());
            }
            Job::Lines { .. } => {
                let (place, names) = (Arc::new(place), Arc::new(names));
                let (mut tasks, mut from) = (Vec::new(), 0);
                let files = |range: Range<usize>| {
                    let (place, names) = (place.clone(), names.clone());
                    (!range.is_empty()).then_some(Task::Files { place, names, range })
                };
                for (at, (_, is_directory)) in names.each.iter().enumerate() {
                    if *is_directory {
                        tasks.extend(files(from..at));
                        tasks.push(Task::Directory { above: place.clone(), name: names.name(at).to_owned() });
                        from = at + 1;
                    } else if at - from == AT_ONCE {
                        tasks.extend(files(from..at));
                        from = at;
                    }
                }
                tasks.extend(files(from..names.each.len()));
                self.walk.add(tasks);
            }
        }
    }

    /// The files and directories that a directory has, and whether one of them holds rules.
    fn names(&mut self, place: &Place) -> (Names, bool) {
        let (mut names, mut has_rules) = (Names::default(), false);
        let mut entries = RawDir::new(&place.handle, self.buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else {
                self.looked.unreadable += 1;
                break;
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&place.handle, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
                kind => kind,
            };
            let name = name.to_bytes();
            if name.starts_with(b".") {
                let rules = [rules::RGIGNORE, rules::IGNORE, rules::GITIGNORE, rules::GIT, rules::JJ];
                has_rules |= rules.iter().any(|rules| rules.as_bytes() == name);
            }
            match kind {
                FileType::RegularFile => names.push(name, false),
                FileType::Directory => names.push(name, true),
                FileType::Symlink => self.looked.links += 1,
                FileType::Unknown => {}
                _ => self.looked.irregular += 1,
            }
            if names.each.len() >= MOST_NAMES || names.each.len().is_multiple_of(4096) && self.walk.watch.is_over() {
                self.looked.unreadable += u64::from(names.each.len() >= MOST_NAMES);
                break;
            }
        }
        (names, has_rules)
    }

    /// Reads the rules that a directory has.
    fn texts(&mut self, place: &Place, names: &Names) -> Texts {
        let mut texts = Texts::default();
        for at in 0..names.each.len() {
            match (names.name(at).to_str(), names.each[at].1) {
                (Some(rules::RGIGNORE), false) => texts.rgignore = rules_in(place, rules::RGIGNORE),
                (Some(rules::IGNORE), false) => texts.ignore = rules_in(place, rules::IGNORE),
                (Some(rules::GITIGNORE), false) => texts.git = rules_in(place, rules::GITIGNORE),
                (Some(rules::JJ), true) => texts.has_git = true,
                (Some(rules::GIT), is_directory) => {
                    texts.has_git = true;
                    let info = is_directory.then(|| self.below(place, rules::GIT.as_ref())).flatten();
                    let info = info.and_then(|git| self.below(&git, rules::INFO.as_ref()));
                    texts.exclude = info.and_then(|info| rules_in(&info, rules::EXCLUDE));
                }
                _ => {}
            }
        }
        texts
    }

    /// Takes out what the rules leave out.
    fn leave_out(&mut self, place: &Place, names: &mut Names) {
        let (rules, bytes, path) = (&self.walk.rules, &names.bytes, &mut self.path);
        path.clear();
        path.extend_from_slice(place.tree.as_path().as_os_str().as_bytes());
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        let length = path.len();
        names.each.retain(|(name, is_directory)| {
            let name = &bytes[name.clone()];
            path.truncate(length);
            path.extend_from_slice(name);
            !rules.skips(place.level.as_deref(), Path::new(OsStr::from_bytes(path)), name, *is_directory)
        });
    }

    /// Takes the names of a directory that are looked for.
    fn name(&mut self, place: &Place, names: &Names, pattern: Option<&RegexMatcher>, directories: bool) {
        for at in 0..names.each.len() {
            let (name, is_directory) = (names.name(at), names.each[at].1);
            if is_directory && !directories {
                continue;
            }
            self.looked.files += 1;
            let path = place.below.join(name);
            let is_found = pattern.is_none_or(|pattern| pattern.is_match(path.as_os_str().as_bytes()).unwrap_or(false));
            if !is_found || self.walk.is_past(&place.below, name) {
                continue;
            }
            // A directory that is closed is counted when it is entered.
            if place.tree.entry(name).is_none() {
                self.looked.refused += u64::from(!is_directory);
                continue;
            }
            let shown = self.shown(&path);
            self.walk.found(path, FoundFile { path: shown, lines: Vec::new() }, 1);
        }
        self.walk.watch.count(names.each.len() as u64);
    }

    fn shown(&mut self, path: &Path) -> String {
        let shown = path.to_string_lossy();
        self.looked.not_utf8 += u64::from(matches!(shown, std::borrow::Cow::Owned(_)));
        shown.into_owned()
    }

    fn files(&mut self, place: &Place, names: &Names, range: Range<usize>) {
        self.walk.watch.count(range.len() as u64);
        for at in range {
            let name = names.name(at);
            if self.walk.watch.is_over() {
                return;
            }
            if self.walk.is_past(&place.below, name) {
                continue;
            }
            let Some(entry) = place.tree.entry(name) else {
                self.looked.refused += 1;
                continue;
            };
            match open_file(place, &entry) {
                Ok(Some((file, size))) => self.look(file, size, place.below.join(name)),
                Ok(None) => self.looked.refused += 1,
                Err(fault) => self.fault(&fault),
            }
        }
    }

    /// Looks into a file that may be read.
    fn look(&mut self, mut file: File, size: u64, path: PathBuf) {
        let Some(looker) = &mut self.looker else { return };
        let Ok(content) = looker.look(&mut file, size) else {
            self.looked.unreadable += 1;
            return;
        };
        self.looked.files += 1;
        self.looked.binary += u64::from(content.is_binary);
        self.looked.long += u64::from(content.is_long);
        if content.has_find {
            let shown = self.shown(&path);
            if content.is_binary {
                self.binary.push(shown);
            } else {
                self.walk.found(path, FoundFile { path: shown, lines: content.lines }, content.finds);
            }
        }
    }
}

/// The text of an ignore file in a directory; none where it is no file that may be read.
fn rules_in(place: &Place, name: &str) -> Option<Vec<u8>> {
    let entry = place.tree.entry(name.as_ref())?;
    let (file, _) = open_file(place, &entry).ok()??;
    let mut text = Vec::new();
    file.take(RULES_BYTES as u64).read_to_end(&mut text).ok()?;
    Some(text)
}
