//! What acts by itself in the directories that commands write, and what becomes of it while they run.
//!
//! The kernel tells of each name that comes into being or is written (`watches.rs`), whichever mount namespace it was written in. While a command
//! runs, or what one left running may, that is taken for a command's: what is to be held is taken out at once (`take.rs`), and what was there before
//! is put back. At other times it is the person's, and known from then on. What names mean is `access/later.rs`.
//!
//! When is decided here; `tree/walk.rs` goes through directories, and `tree/judge.rs` says what becomes of a name.

mod judge;
mod place;
mod walk;

use super::gathered::Gathered;
use super::links::Links;
use super::rules::Rules;
use super::saved::{self, Left};
use super::store::Taken;
use super::take::{self, Content};
use backend::Active;
use backend::cell::{Activity, Means, Profile};
use base::disk::Stamp;
use base::watches::{Dirty, Event, Told, Watches};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use place::Place;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{Metadata, symlink_metadata};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use walk::open;

/// How often what came meanwhile is looked at before a look ends.
const MOST_ROUNDS: usize = 64;
/// How long a file is let be that a command has made and not closed.
const PATIENCE: Duration = Duration::from_millis(100);
/// After how long it is looked at again whether what commands left has come to rest, at first and at last.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(5);
/// For how long that is waited for when the host ends.
const LAST: Duration = Duration::from_millis(250);
/// How long nothing is looked at after a look: whoever writes many files would be slowed down if each of them woke this program.
const PAUSE: Duration = Duration::from_millis(1);

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
pub struct Watch(Mutex<Watched>);

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
pub struct Found {
    /// What is to be said.
    pub told: Vec<String>,
    /// What was taken out, and is held.
    pub taken: Vec<Taken>,
    /// The `.git` of each repository that was made.
    pub repositories: Vec<PathBuf>,
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
    pub fn passing() -> Self {
        Self(Mutex::new(Watched { is_passing: true, ..Watched::default() }))
    }

    /// What runs from now on may go on when nobody waits for it.
    pub fn go_on(&self) {
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
pub struct Look {
    watch: Arc<Watch>,
    profile: Arc<Profile>,
    has_ended: bool,
}

impl Look {
    /// Begins to look for what is made in the directories that a profile writes; `goes_on` where it may be made after the look's end, too.
    pub fn new(
        watch: Arc<Watch>,
        rules: Arc<Rules>,
        profile: Arc<Profile>,
        goes_on: bool,
        active: Option<Active>,
    ) -> BoxFuture<'static, Option<Self>> {
        Box::pin(async move {
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
        })
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
    pub fn found(mut self) -> BoxFuture<'static, Found> {
        Box::pin(async move {
            self.has_ended = true;
            let watch = self.watch.clone();
            // Most commands make nothing, and that is known at once.
            if let Some(mut watched) = watch.0.try_lock()
                && watched.is_quiet()
            {
                return self.end(&mut watched);
            }
            tokio::task::spawn_blocking(move || self.end(&mut watch.0.lock())).await.unwrap_or_default()
        })
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
            let Some((place, name, _)) = self.writing.remove(&path) else { continue };
            let Some(directory) = open(&place) else { continue };
            // Nothing is obeyed of an empty file, and on a slow machine git takes long to write one. It may be written by another name of it, which
            // nobody tells of here.
            if !is_last && take::is_begun(&directory, &name) {
                self.writing.insert(path, (place, name, now + PATIENCE));
                continue;
            }
            self.check(&directory, &place, &name, Event::Closed, true);
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
}
