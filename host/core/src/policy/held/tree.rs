//! What acts by itself in the directories that commands write, and what becomes of it while they run.
//!
//! The kernel tells of each name that comes into being or is written (`watches.rs`), whichever mount namespace it was written in. While a command
//! runs, or what one left running may, that is taken for a command's: what is to be held is taken out at once (`take.rs`), and what was there before
//! is put back. At other times it is the person's, and known from then on. What names mean is `policy/files/later.rs`.

use super::fetched::Within;
use super::gathered::Gathered;
use super::links::Links;
use super::place::Place;
use super::rules::{Acts, PROGRAM, Rules, Verdict};
use super::saved::{self, Left};
use super::store::{Shelf, Taken};
use super::take::{self, Content};
use crate::backend::Active;
use crate::backend::cell::{Activity, Means, Profile};
use crate::backend::git;
use crate::disk::{DIRECTORY, Stamp, open_below};
use crate::text::sanitize;
use crate::watches::{Dirty, Event, Told, Watches};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, openat, statat};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{Metadata, symlink_metadata};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Directories that one look goes through.
const MOST_DIRECTORIES: usize = 100_000;
/// How often what came meanwhile is looked at before a look ends.
const MOST_ROUNDS: usize = 64;
/// Repositories that are known.
const MOST_REPOSITORIES: usize = 4096;
/// Bytes of what is put back where a command changes it: of one file, and of all.
const MOST_BEFORE: u64 = 256 << 10;
const MOST_KEPT: usize = 32 << 20;
/// How long a file is let be that a command has made and not closed.
const PATIENCE: Duration = Duration::from_millis(100);
/// After how long it is looked at again whether what commands left has come to rest, at first and at last.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(5);
/// For how long that is waited for when the host ends.
const LAST: Duration = Duration::from_millis(250);
/// How long nothing is looked at after a look: whoever writes many files would be slowed down if each of them woke this program.
const PAUSE: Duration = Duration::from_millis(1);
/// Directories in a repository that hold what it stores, and others of it that are watched.
const STORED: [&str; 3] = ["objects", "refs", "logs"];
const MOST_WITHIN: usize = 256;

/// Something that acts and that nobody has to be asked about.
#[derive(Serialize, Deserialize)]
pub(super) struct Known {
    stamp: Stamp,
    /// What is put back where a command changes it.
    before: Option<Content>,
}

/// What leads git to a repository: the directory itself, whatever is done in it, or a file as it is.
#[derive(PartialEq)]
enum Leads {
    Directory(u64),
    File(Stamp),
}

impl Leads {
    fn of(found: &Metadata, stamp: Stamp) -> Self {
        if found.is_dir() { Self::Directory(found.ino()) } else { Self::File(stamp) }
    }
}

/// What is known between commands.
#[derive(Default)]
pub(crate) struct Watch(Mutex<Watched>);

struct Watched {
    watches: Watches<Place>,
    /// Wakes the thread that looks at what happens, and ends it with this.
    thread: Option<PipeWriter>,
    rules: Arc<Rules>,
    /// What commands write into git directories reaches those by gates alone.
    has_gates: bool,
    roots: BTreeSet<Arc<Path>>,
    known: HashMap<PathBuf, Known>,
    kept_bytes: usize,
    /// What is known is not what was saved last for the next host; and what had run then.
    has_news: bool,
    saved: Option<Activity>,
    /// All that runs ends with this host.
    is_passing: bool,
    /// What the host before this one left.
    left: Option<Left>,
    /// What leads git to repositories, by its path, and whether a command made it.
    repositories: HashMap<PathBuf, (Leads, bool)>,
    /// Commands that run, by how often somebody looks for what they make.
    open: usize,
    /// Something may go on in a pane after its command.
    goes_on: bool,
    /// A command did not come to its end, and what it made was not all looked at.
    has_missed: bool,
    /// What tells whether anything ran that commands left, as it was when nothing was left to be looked at; and when that is looked at again.
    active: Option<Active>,
    idle: Option<Activity>,
    again: Option<(Instant, Duration)>,
    /// What a command has made and may be writing, and until when it is let be.
    writing: HashMap<PathBuf, (Place, OsString, Instant)>,
    /// Directories that commands made and closed to their user.
    closed: BTreeSet<Place>,
    /// Links in those that commands write, and what settings of git name there.
    links: Links,
    found: Gathered,
}

/// What came of a look.
#[derive(Default)]
pub(crate) struct Found {
    /// What is to be said.
    pub(crate) told: Vec<String>,
    /// What was taken out, and is held.
    pub(crate) taken: Vec<Taken>,
    /// The `.git` of each repository that was made.
    pub(crate) repositories: Vec<PathBuf>,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            watches: Watches::of(Told::Changes),
            thread: None,
            rules: Arc::default(),
            has_gates: false,
            roots: BTreeSet::new(),
            known: HashMap::new(),
            kept_bytes: 0,
            has_news: true,
            saved: None,
            is_passing: false,
            left: None,
            repositories: HashMap::new(),
            open: 0,
            goes_on: false,
            has_missed: false,
            active: None,
            idle: None,
            again: None,
            writing: HashMap::new(),
            links: Links::default(),
            closed: BTreeSet::new(),
            found: Gathered::default(),
        }
    }
}

impl Watch {
    /// One of what ends with this host, so that the next one has nothing to look at.
    pub(crate) fn passing() -> Self {
        Self(Mutex::new(Watched { is_passing: true, ..Watched::default() }))
    }

    /// What runs from now on may go on when nobody waits for it.
    pub(in crate::policy) fn go_on(&self) {
        let mut watched = self.0.lock();
        watched.look(false);
        watched.goes_on = true;
        watched.save();
    }

    /// Looks at what happens while a command runs, as long as this lives.
    fn attend(watch: &Weak<Self>, queue: &OwnedFd, mut woken: PipeReader) {
        let (mut deadline, mut last): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            let waits = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let waits = waits.and_then(|waits| Timespec::try_from(waits + Duration::from_millis(1)).ok());
            let mut polled = [PollFd::new(queue, PollFlags::IN), PollFd::new(&woken, PollFlags::IN)];
            match poll(&mut polled, waits.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let (is_woken, is_over) =
                (polled[1].revents().contains(PollFlags::IN), polled[1].revents().contains(PollFlags::HUP));
            if is_woken {
                let _ = woken.read(&mut [0; 64]);
            } else if is_over {
                return;
            }
            if last.is_some_and(|last| last.elapsed() < PAUSE) {
                std::thread::sleep(PAUSE);
            }
            let Some(watch) = watch.upgrade() else { return };
            let mut watched = watch.0.lock();
            watched.look(false);
            last = Some(Instant::now());
            watched.save();
            let again = watched.again.map(|(when, _)| when);
            let closed = (!watched.closed.is_empty()).then(|| Instant::now() + PATIENCE);
            deadline = watched.writing.values().map(|(.., until)| *until).chain(again).chain(closed).min();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.get_mut().rest();
    }
}

/// A look at what a command makes. Where it does not come to its end, the next one tells what this one would have told.
pub(crate) struct Look {
    watch: Arc<Watch>,
    profile: Arc<Profile>,
    has_ended: bool,
}

impl Look {
    /// Begins to look for what is made in the directories that a profile writes; `goes_on` where it may be made after the look's end, too.
    pub(crate) async fn new(
        watch: Arc<Watch>,
        rules: Arc<Rules>,
        profile: Arc<Profile>,
        goes_on: bool,
        active: Option<Active>,
    ) -> Option<Self> {
        let look = Self { watch: watch.clone(), profile, has_ended: false };
        if let Some(mut watched) = watch.0.try_lock()
            && watched.is_ready_for(&look.profile)
            && (watched.saved.is_some() || !goes_on)
        {
            look.begin(&mut watched, rules, active, true);
            watched.goes_on |= goes_on;
            drop(watched);
            return Some(look);
        }
        tokio::task::spawn_blocking(move || {
            let mut watched = watch.0.lock();
            look.begin(&mut watched, rules, active, false);
            watched.goes_on |= goes_on;
            watched.save();
            watched.start_thread(&watch);
            drop(watched);
            look
        })
        .await
        .ok()
    }

    /// Before the command can make anything: what is there now is the person's. `is_quiet` where nothing has happened since the last look.
    fn begin(&self, watched: &mut Watched, rules: Arc<Rules>, active: Option<Active>, is_quiet: bool) {
        watched.rules = rules;
        watched.active = active;
        watched.has_gates = self.profile.by == Means::Namespaces && (watched.has_gates || watched.roots.is_empty());
        if !is_quiet {
            watched.look(false);
            watched.accept();
        }
        if watched.roots.is_empty() {
            watched.take_up();
        }
        for root in &self.profile.write {
            if !watched.roots.contains(root.as_path()) {
                let named = watched.rules.named(&self.profile.write);
                watched.links.name(named, &watched.rules.path);
                let root: Arc<Path> = root.as_path().into();
                watched.roots.insert(root.clone());
                watched.walk(Place::top(&root), false);
                watched.follow(false);
                watched.catch_up(&root);
            }
        }
        watched.open += 1;
    }

    /// Ends it, when the command has ended.
    pub(crate) async fn found(mut self) -> Found {
        self.has_ended = true;
        let watch = self.watch.clone();
        // Most commands make nothing, and that is known at once.
        if let Some(mut watched) = watch.0.try_lock()
            && watched.is_quiet()
        {
            return self.end(&mut watched);
        }
        tokio::task::spawn_blocking(move || self.end(&mut watch.0.lock())).await.unwrap_or_default()
    }

    fn end(&self, watched: &mut Watched) -> Found {
        watched.look(true);
        watched.open = watched.open.saturating_sub(1);
        watched.has_missed &= watched.open > 0;
        watched.idle = None;
        watched.look_again(false);
        if watched.again.is_some()
            && let Some(wakes) = &mut watched.thread
        {
            // It waits for events alone until it hears of this.
            let _ = wakes.write(&[0]);
        }
        let rules = watched.rules.clone();
        let gathered = std::mem::take(&mut watched.found);
        let git = self.profile.git();
        let is_gated = |path: &PathBuf| git.directories.iter().any(|found| path.starts_with(&found.path));
        let told = gathered.told(&rules);
        let repositories: Vec<_> = gathered.repositories.into_iter().filter(|path| !is_gated(path)).collect();
        Found { told, taken: gathered.taken, repositories }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut watched = self.watch.0.lock();
            watched.look(false);
            watched.open = watched.open.saturating_sub(1);
            watched.has_missed = true;
        }
    }
}

impl Watched {
    /// Whether what has happened by now is a command's, or of what one left; and what ran by now, where that is how it is known.
    fn whose(&self) -> (bool, Option<Activity>) {
        if self.open > 0 || self.has_missed {
            return (true, None);
        }
        if !self.goes_on {
            return (false, None);
        }
        let now = self.active.as_ref().filter(|_| self.has_gates).and_then(Active::now);
        (now.is_none() || now != self.idle, now)
    }

    /// Has it looked at again whether what commands left has come to rest.
    fn look_again(&mut self, has_run: bool) {
        let wait = match self.again {
            Some((_, wait)) if has_run => (wait * 2).min(LONGEST),
            Some(_) | None => SHORTEST,
        };
        let is_done = !has_run && self.idle.is_some();
        self.again = (self.open == 0 && self.goes_on && !is_done).then(|| (Instant::now() + wait, wait));
    }

    /// Saves what is known for the next host, where something may go on without this one: before that begins, and whenever it has come to rest.
    fn save(&mut self) {
        let Some(active) = self.active.as_ref().filter(|_| self.goes_on && !self.is_passing) else { return };
        let idle = self.idle.as_ref().filter(|_| self.open == 0 && self.again.is_none());
        let (now, was_idle) = (idle.cloned().unwrap_or_else(|| active.cells()), idle.is_some());
        let is_due = match &self.saved {
            None => true,
            Some(saved) if was_idle => self.has_news || *saved != now,
            // What ran more often than that is looked at.
            Some(saved) => !saved.is_of_cells_of(&now),
        };
        if !is_due {
            return;
        }
        let known = self.has_news.then_some(&self.known);
        // Where it cannot be, the next host takes what it finds for the person's, or looks at more than it had to.
        if saved::save(self.rules.place(), known, &now, was_idle).is_ok() {
            (self.has_news, self.saved) = (false, Some(now));
        }
    }

    /// Waits until what commands left has come to rest, but not for long: this host ends.
    fn rest(&mut self) {
        let until = Instant::now() + LAST;
        while self.goes_on && !self.is_passing && self.active.is_some() && Instant::now() < until {
            self.look(false);
            self.save();
            if self.idle.is_some() && self.again.is_none() {
                return;
            }
            std::thread::sleep(SHORTEST / 2);
        }
    }

    /// Takes up what a host before this one left: its cells that are there still count as this one's.
    fn take_up(&mut self) {
        let (state, workspace) = self.rules.place();
        self.left = if self.is_passing { None } else { saved::left(state, workspace) };
        let active = self.left.as_ref().and_then(|left| left.active.as_ref());
        if let (Some(before), Some(active)) = (active, &self.active) {
            active.count(before);
            self.goes_on = true;
        }
    }

    /// Looks at what came into a directory while no host was there, and commands went on.
    fn catch_up(&mut self, root: &Path) {
        let Some(Left { known: Some(before), until, done, .. }) = &mut self.left else { return };
        let is_other = |(path, known): &(&PathBuf, &Known)| {
            let is_theirs = until.is_none_or(|until| known.stamp.changed().0 < until);
            let was = before.get(*path).map(|known| &known.stamp);
            is_theirs && path.starts_with(root) && was != Some(&known.stamp) && !done.contains(*path)
        };
        let other: Vec<PathBuf> = self.known.iter().filter(is_other).map(|(path, _)| path.clone()).collect();
        done.extend(other.iter().cloned());
        let other: Vec<_> = other.into_iter().map(|path| (before.remove(&path), path)).collect();
        for (was, path) in other {
            let Some((place, name)) = self.place(&path) else { continue };
            self.forget(&path);
            if let Some(was) = was {
                self.kept_bytes += was.before.as_ref().map_or(0, Content::bytes);
                self.known.insert(path, was);
            }
            if let Some(directory) = open(&place) {
                self.check(&directory, &place, &name, Event::Closed, true);
            }
        }
    }

    /// Nothing has happened that would have to be looked at.
    fn is_quiet(&mut self) -> bool {
        let is_there = |path: &PathBuf| symlink_metadata(path).is_ok();
        self.watches.is_quiet()
            && self.writing.is_empty()
            && self.closed.is_empty()
            && !self.watches.is_full()
            && self.known.keys().all(is_there)
            && self.changed().is_empty()
    }

    fn is_ready_for(&mut self, profile: &Profile) -> bool {
        self.thread.is_some() && self.is_quiet() && profile.write.iter().all(|root| self.roots.contains(root.as_path()))
    }

    fn start_thread(&mut self, watch: &Arc<Watch>) {
        let Some(queue) = self.watches.queue().filter(|_| self.thread.is_none()) else { return };
        let (Ok(queue), Ok((woken, wakes))) = (queue.try_clone(), io::pipe()) else { return };
        let watch = Arc::downgrade(watch);
        let attend = move || Watch::attend(&watch, &queue, woken);
        let started = std::thread::Builder::new().name("held".into()).spawn(attend);
        self.thread = started.is_ok().then_some(wakes);
    }

    /// Looks at all that has happened; `is_last` where who wrote has ended, so that nothing is waited for.
    fn look(&mut self, is_last: bool) {
        let is_due = is_last || self.again.is_some_and(|(when, _)| when <= Instant::now());
        let mut is_theirs = self.open > 0 || self.has_missed;
        for round in 0..MOST_ROUNDS {
            let dirty = self.watches.take();
            let is_nothing = matches!(&dirty, Dirty::Places(places) if places.is_empty());
            if is_nothing && !(is_due && round == 0) {
                break;
            }
            // After what has happened was taken: who did it has run by now.
            let (whose, now) = self.whose();
            is_theirs |= whose;
            let is_all = matches!(dirty, Dirty::All);
            match dirty {
                Dirty::All => {
                    for root in self.roots.clone() {
                        self.walk(Place::top(&root), is_theirs);
                    }
                }
                Dirty::Places(places) => {
                    for (place, names) in places {
                        self.happened(&place, names, is_theirs);
                    }
                }
            }
            // Nothing has come since: whoever runs from now on has run more often than this says.
            if is_all || self.watches.is_quiet() {
                self.idle = now;
                self.look_again(whose);
                break;
            }
        }
        for place in std::mem::take(&mut self.closed) {
            self.walk(place, true);
        }
        if is_last {
            let closed = std::mem::take(&mut self.closed);
            let told = |place: &Place| {
                let name = self.rules.name(&place.root.join(&place.at));
                format!("`{name}` cannot be looked into: what is in it may act by itself")
            };
            self.found.lines.extend(closed.iter().map(told));
        }
        if is_last && self.watches.is_full() {
            for root in self.roots.clone() {
                self.walk(Place::top(&root), true);
            }
        }
        self.follow(is_theirs);
        let now = Instant::now();
        let due = |(path, (.., until)): (&PathBuf, &(Place, OsString, Instant))| {
            (is_last || *until <= now).then(|| path.clone())
        };
        let due: Vec<PathBuf> = self.writing.iter().filter_map(due).collect();
        for path in due {
            if let Some((place, name, _)) = self.writing.remove(&path)
                && let Some(directory) = open(&place)
            {
                self.check(&directory, &place, &name, Event::Closed, true);
            }
        }
        // What is open for a long time, or is mapped, is closed late.
        if is_last || is_due && is_theirs {
            for (place, name) in self.changed() {
                if let Some(directory) = open(&place) {
                    self.check(&directory, &place, &name, Event::Closed, true);
                }
            }
        }
    }

    /// What is there now is the person's, as nothing of a command's runs.
    fn accept(&mut self) {
        let (is_theirs, _) = self.whose();
        if is_theirs {
            return;
        }
        self.known.retain(|path, _| symlink_metadata(path).is_ok());
        self.has_news = true;
        for (place, name) in self.changed() {
            if let Some(directory) = open(&place) {
                self.check(&directory, &place, &name, Event::Closed, false);
            }
        }
        if self.watches.is_full() {
            for root in self.roots.clone() {
                self.walk(Place::top(&root), false);
            }
        }
        self.follow(false);
    }

    /// What is known and is not what it was.
    fn changed(&self) -> Vec<(Place, OsString)> {
        let is_other = |(path, known): &(&PathBuf, &Known)| {
            known.before.is_some() && symlink_metadata(path).is_ok_and(|found| Stamp::of(&found) != known.stamp)
        };
        self.known.iter().filter(is_other).filter_map(|(path, _)| self.place(path)).collect()
    }

    /// Where something lies, by its path.
    fn place(&self, path: &Path) -> Option<(Place, OsString)> {
        let root = self.roots.iter().find(|root| path.starts_with(root))?;
        let (above, name) = (path.parent()?.strip_prefix(root).ok()?, path.file_name()?);
        Some((Place::at(root, above, &self.rules, &self.links), name.to_owned()))
    }

    /// Looks at names in one directory that something has happened to.
    fn happened(&mut self, place: &Place, names: BTreeMap<OsString, Event>, is_theirs: bool) {
        let Some(directory) = self.open(place, is_theirs) else { return };
        if let Some(git) = place.repository() {
            if is_theirs {
                self.found.repositories.insert(place.root.join(git));
            }
            return self.within_repository(place.root.clone(), git.to_owned());
        }
        for (name, event) in names {
            match event {
                _ if name == ".git" => self.repository(&directory, place, &name, is_theirs),
                Event::Directory => {
                    self.walk(place.below(&name, &self.rules, &self.links), is_theirs);
                }
                Event::Created | Event::Written | Event::Closed => {
                    self.link(&directory, place, &name);
                    self.check(&directory, place, &name, event, is_theirs);
                }
            }
        }
    }

    /// Opens a directory; one that a command closed to its own user is opened to that one, or looked at again later.
    fn open(&mut self, place: &Place, is_theirs: bool) -> Option<OwnedFd> {
        let opened = open(place).or_else(|| is_theirs.then(|| unclose(place)).flatten());
        if opened.is_none() && is_theirs && symlink_metadata(place.root.join(&place.at)).is_ok() {
            self.closed.insert(place.clone());
        }
        opened
    }

    /// Looks at a directory and all below it, and has them watched.
    fn walk(&mut self, from: Place, is_theirs: bool) {
        let (mut waiting, mut last) = (VecDeque::from([from]), VecDeque::new());
        for _ in 0..MOST_DIRECTORIES {
            let Some(place) = waiting.pop_front().or_else(|| last.pop_front()) else { return };
            let Some(directory) = self.open(&place, is_theirs) else { continue };
            // First: what is made from now on is told by the watch.
            self.watches.add(&directory, place.clone());
            let Ok(listed) = Dir::read_from(&directory) else { continue };
            for entry in listed.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                if name == ".git" {
                    self.repository(&directory, &place, name, is_theirs);
                    continue;
                }
                // Not every file system says it in its lists.
                let kind = match entry.file_type() {
                    FileType::Unknown => match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => FileType::from_raw_mode(found.st_mode),
                        Err(_) => continue,
                    },
                    kind => kind,
                };
                if kind == FileType::Directory {
                    let below = place.below(name, &self.rules, &self.links);
                    if below.is_passed {
                        last.push_back(below)
                    } else {
                        waiting.push_back(below)
                    }
                    continue;
                }
                if kind == FileType::Symlink {
                    self.link(&directory, &place, name);
                }
                self.check(&directory, &place, name, Event::Created, is_theirs);
            }
        }
    }

    /// Knows a link by which an ordinary name leads somewhere. One that acts is known when it is admitted.
    fn link(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr) {
        let is_link = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
        if !is_link {
            return;
        }
        let path = place.path(name);
        let is_passed = place.below(name, &self.rules, &self.links).is_passed && !self.links.lead_by(&path);
        if !is_passed && place.acts_in(name, &self.rules, &self.links).is_none() {
            self.links.insert(path, None);
        }
    }

    /// Looks at what links lead to that they did not before.
    fn follow(&mut self, is_theirs: bool) {
        for _ in 0..MOST_ROUNDS {
            let reached = self.links.follow();
            if reached.is_empty() {
                return;
            }
            for path in reached {
                self.reach(&path, is_theirs);
            }
        }
    }

    fn reach(&mut self, path: &Path, is_theirs: bool) {
        // What lies in a git directory is for its gate to decide.
        let Some((place, name)) =
            self.place(path).filter(|(place, name)| place.repository().is_none() && name != ".git")
        else {
            return;
        };
        let Some(directory) = self.open(&place, is_theirs) else { return };
        match take::look(&directory, &name) {
            Some((found, _)) if found.is_dir() => self.walk(place.below(&name, &self.rules, &self.links), is_theirs),
            Some(_) => self.check(&directory, &place, &name, Event::Closed, is_theirs),
            None => {}
        }
    }

    /// What leads git to a repository. New ones are looked through when the command has ended.
    fn repository(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, is_theirs: bool) {
        let path = place.path(name);
        let Some((found, stamp)) = take::look(directory, name) else {
            self.repositories.remove(&path);
            return;
        };
        let leads = Leads::of(&found, stamp);
        let is_known = self.repositories.get(&path).is_some_and(|(known, _)| *known == leads);
        if is_known || self.repositories.len() >= MOST_REPOSITORIES {
            return;
        }
        self.repositories.insert(path.clone(), (leads, is_theirs));
        if is_theirs {
            let known = self.repositories.iter().filter(|(_, (_, is_theirs))| !is_theirs).map(|(path, _)| path);
            git::note_made(&self.rules.state, &path, known);
            self.found.repositories.insert(path);
            if found.is_dir() {
                self.within_repository(place.root.clone(), place.at.join(name));
            }
        }
    }

    /// Has all in a repository watched that commands made, but for what it stores: it has no gate until the next cell is made.
    fn within_repository(&mut self, root: Arc<Path>, at: PathBuf) {
        let mut waiting = vec![at];
        for _ in 0..MOST_WITHIN {
            let Some(at) = waiting.pop() else { return };
            let place = Place { root: root.clone(), at, acts: None, is_passed: false };
            let Some(directory) = open(&place) else { continue };
            self.watches.add(&directory, place.clone());
            for entry in Dir::read_from(&directory).into_iter().flatten().flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let is_stored = STORED.iter().any(|stored| *stored == name);
                if entry.file_type() == FileType::Directory && name != "." && name != ".." && !is_stored {
                    waiting.push(place.at.join(name));
                }
            }
        }
    }

    /// Looks at one name: if it acts, what is to become of it.
    fn check(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, event: Event, is_theirs: bool) {
        let rules = self.rules.clone();
        let program = || {
            let directory = place.root.join(&place.at);
            self.links.is_on_path(&directory).then(|| rules.program(&directory, name))
        };
        let named = place.acts_in(name, &rules, &self.links);
        let Some(acts) = named.or_else(program) else { return };
        if take::is_passing(name) {
            return;
        }
        let path = place.path(name);
        // One that is gone is known until the next look begins: a command may put another one in its place.
        let Some((found, stamp)) = take::look(directory, name) else { return };
        let was = self.known.get(&path);
        if was.is_some_and(|known| known.stamp == stamp) {
            return;
        }
        if place.is_passed && !self.links.lead_to(&path) {
            if is_theirs {
                self.found.passed.insert(path);
            }
            return;
        }
        if !is_theirs {
            self.know(directory, place, name, acts);
            return;
        }
        let is_change = was.is_some();
        let verdict = rules.verdict(acts, &place.at.join(name), is_change);
        let told = if is_change { "changed" } else { "created" };
        // Whatever else it is, it runs nothing.
        let is_file = found.is_file() || found.is_symlink();
        if !is_file {
            self.know(directory, place, name, acts);
            self.found.told.insert(path, (told, acts.what));
            return;
        }
        let may_be_written = match event {
            // What has another name besides is there already.
            Event::Created => found.is_file() && take::links(&found) == 1,
            Event::Written => true,
            Event::Closed | Event::Directory => false,
        };
        if may_be_written {
            let until = Instant::now() + PATIENCE;
            self.writing.entry(path).or_insert_with(|| (place.clone(), name.to_owned(), until));
            return;
        }
        self.writing.remove(&path);
        let content = take::read_any(directory, name);
        let before = self.known.get(&path).and_then(|known| known.before.as_ref());
        if before == Some(&content) {
            return self.know(directory, place, name, acts);
        }
        let is_other_mode = before.is_some_and(|before| before.blob() == content.blob());
        if rules.was_allowed(&path, &content) {
            return self.know(directory, place, name, acts);
        }
        // Only its mode changed, which is not for a command to say.
        if verdict == Verdict::Held && is_other_mode {
            return self.take(directory, place, name, acts);
        }
        if self.came_from_history(&path, &content) {
            self.know(directory, place, name, acts);
            self.found.let_through.insert(path);
            return;
        }
        match verdict {
            Verdict::Held => self.take(directory, place, name, acts),
            Verdict::Told => {
                self.know(directory, place, name, acts);
                if acts == PROGRAM {
                    self.found.programs.insert(path);
                } else {
                    self.found.told.insert(path, (told, acts.what));
                }
            }
        }
    }

    /// The person's repository had these bytes at this place.
    fn came_from_history(&self, path: &Path, content: &Content) -> bool {
        let had = |Within { link, below, .. }: Within, blob| git::had(&self.rules.state, &link, &below, blob);
        self.within(path).zip(content.blob()).is_some_and(|(within, blob)| had(within, blob))
    }

    /// The person's repository of whose working tree a path is.
    fn within(&self, path: &Path) -> Option<Within> {
        let link = path.ancestors().skip(1).map(|above| above.join(".git")).find(|link| symlink_metadata(link).is_ok());
        let is_persons = |link: &PathBuf| {
            let now = symlink_metadata(link).map(|found| Leads::of(&found, Stamp::of(&found)));
            now.is_ok_and(|now| {
                self.repositories.get(link).is_some_and(|(known, is_theirs)| !is_theirs && *known == now)
            })
        };
        // Where a repository has no gate, commands may have written all of it.
        let link = link.filter(|link| self.has_gates && is_persons(link))?;
        let below = path.strip_prefix(link.parent()?).ok()?.to_owned();
        let write = self.roots.iter().map(|root| root.to_path_buf()).collect();
        Some(Within { link, below, write })
    }

    /// Takes something out, and puts back what was there before.
    fn take(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, acts: Acts) {
        let path = place.path(name);
        let before = self.forget(&path);
        let held = Shelf::open(&self.rules.state).and_then(|shelf| {
            take::out(directory, name, |content| {
                shelf.hold_file(&place.root, &place.at.join(name), content, acts.what, before.as_ref())
            })
        });
        let shown = self.rules.name(&path);
        match held {
            Ok(Some(taken)) => {
                let within = self.within(&path);
                self.found.taken.push(Taken { within, ..taken });
            }
            // It was gone by then.
            Ok(None) => {}
            Err(error) => {
                let line = format!(
                    "`{shown}` could not be held back, as {}: {}",
                    acts.what,
                    sanitize::visible_line(&error.to_string())
                );
                self.found.lines.insert(line);
            }
        }
        if let Some(before) = before {
            match take::put(directory, name, &before) {
                Ok(()) => self.know(directory, place, name, acts),
                Err(error) => {
                    self.found.lines.insert(format!("`{shown}` could not be put back as it was: {error}"));
                }
            }
        }
    }

    /// Nobody has to be asked about it from now on.
    fn know(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, acts: Acts) {
        let path = place.path(name);
        self.forget(&path);
        let Some((found, stamp)) = take::look(directory, name) else { return };
        if found.is_symlink() && acts != PROGRAM && !self.rules.is_kept(&place.at.join(name)) {
            self.links.insert(path.clone(), Some(acts));
        }
        let is_put_back = self.rules.verdict(acts, &place.at.join(name), true) == Verdict::Held;
        let is_kept = is_put_back && self.kept_bytes < MOST_KEPT;
        let before = is_kept.then(|| take::read(directory, name, MOST_BEFORE).ok()).flatten();
        if let Some(file) = before.as_ref().and_then(|_| take::open(directory, name)) {
            // It may have other names besides.
            self.watches.add_file(&file, place.clone(), name);
        }
        self.kept_bytes += before.as_ref().map_or(0, Content::bytes);
        self.known.insert(path, Known { stamp, before });
    }

    fn forget(&mut self, path: &Path) -> Option<Content> {
        self.has_news = true;
        let before = self.known.remove(path)?.before;
        self.kept_bytes -= before.as_ref().map_or(0, Content::bytes);
        before
    }
}

/// Opens a directory that a command has closed to its own user, and lets it be read.
fn unclose(place: &Place) -> Option<OwnedFd> {
    let above = place.at.parent()?;
    let top = openat(CWD, &*place.root, DIRECTORY, Mode::empty()).ok()?;
    let directory = open_below(&top, above, DIRECTORY).ok()?;
    take::unclose(&directory, place.at.file_name()?);
    open(place)
}

fn open(place: &Place) -> Option<OwnedFd> {
    let top = openat(CWD, &*place.root, DIRECTORY, Mode::empty()).ok()?;
    open_below(&top, &place.at, DIRECTORY).ok()
}
