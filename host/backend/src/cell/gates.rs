//! The gates of one cell: an overlay over each git directory that its commands reach, and what is done with what they wrote there.
//!
//! Commands see an ordinary git directory, and what they write lands beside it, in Toolcrib's state. The host takes it over by the rules of
//! `git::apply` when a command has ended. Then a new overlay is mounted, so that commands see the directory as it is by then.

use super::{Layout, MountTree};
use crate::spawn;
use base::disk::{OwnDir, Stamp};
use base::text::id::random_id;
use git::apply::{Act, Report, Side};
use git::bell::Bell;
use git::find::{self, Found, GitDir};
use git::fresh;
use git::had::Additions;
use git::moment::Moment;
use git::parts;
use git::real::Real;
use git::upper::{self, Change, Upper};
use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a generation of a gate consists of: where it is for, what is written, and what the kernel has for itself.
const TARGET: &str = "target";
const UPPER: &str = "upper";
const WORK: &str = "work";
/// Files that were written into the git directory from it, as they were then.
const OURS: &str = "ours";
/// Held by the host whose gates they are.
const LOCK: &str = "lock";
/// There while something is taken over.
const APPLYING: &str = "applying";
/// For how long git's locks are held by what takes over, at most: a few of them, each waited for.
const MOST_LOCKED: i64 = 10;
/// Changes with which a generation goes on after they were taken over: those that hide what is there, and all.
const MOST_KEPT: usize = 64;
const MOST_DONE: usize = 256;

/// The gates of one cell.
pub(crate) struct Gates {
    /// Where their generations are, and its name among those of the workspace.
    room: OwnDir,
    name: String,
    _lock: File,
    /// What all rooms of the workspace are in, as it is mounted in the cell, where it is open for the host alone.
    inside: Mutex<Option<OwnedFd>>,
    gates: Mutex<Vec<Gate>>,
    write: Vec<PathBuf>,
    additions: Additions,
    /// Tells that something was written.
    queue: Option<OwnedFd>,
    /// What is to be told by the next call that ends.
    untold: Mutex<Report>,
}

/// One of them.
struct Gate {
    directory: GitDir,
    real: Real,
    generation: Generation,
    /// The one before, which something that was left running may still write, and what there was when that began.
    last: Option<(Generation, Moment)>,
    begun: Moment,
    /// Why commands only read it, where it could not be mounted.
    closed: Option<String>,
}

impl Gate {
    /// Whether all that was written is taken over.
    fn has_nothing_new(&self) -> bool {
        let Generation { upper, done, .. } = &self.generation;
        let is_done = |entries: Vec<upper::Entry>| {
            entries.len() == done.len() && entries.iter().all(|entry| done.get(&entry.path) == Some(&entry.stamp))
        };
        upper.is_untouched() || upper.entries().is_ok_and(is_done)
    }
}

/// What commands write between two times at which it is taken over.
struct Generation {
    /// Its name in the room; none for one that a host before this one made.
    name: Option<String>,
    upper: Upper,
    /// What was taken over already, as it was then.
    done: HashMap<PathBuf, upper::Stamp>,
    /// A process was in the middle of something then.
    is_at_work: bool,
    /// [`OURS`]; none for one that a host before this one made.
    ours: Option<File>,
}

impl Generation {
    fn in_upper(upper: OwnDir) -> Self {
        Self { name: None, upper: Upper::new(upper.into()), done: HashMap::new(), is_at_work: false, ours: None }
    }
}

impl Gates {
    /// Gates for what was found, which are in no cell yet. `own` is where this workspace's are kept.
    pub(crate) fn new(own: &OwnDir, found: &Found, write: &[PathBuf]) -> io::Result<Self> {
        let name = random_id();
        let room = own.below(&name)?;
        let lock = room.create(LOCK)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let additions = Additions::beside(own)?;
        let (mut untold, left) = take_up(own, found, write, &additions);
        if found.is_cut {
            untold.told.push(
                "there are more directories here than are looked through for repositories: not all have a gate".into(),
            );
        }
        let gates = Self {
            room,
            name,
            _lock: lock,
            inside: Mutex::default(),
            gates: Mutex::default(),
            write: write.to_vec(),
            additions,
            queue: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok(),
            untold: Mutex::new(untold),
        };
        gates.follow(found);
        for Left { directory, generation, begun, .. } in left {
            if let Some(gate) = gates.gates.lock().iter_mut().find(|gate| gate.directory.path == directory) {
                gate.last = Some((generation, begun));
            }
        }
        Ok(gates)
    }

    /// Whether something was found that has no gate yet, and could have one.
    pub(crate) fn has_new(&self, found: &Found) -> bool {
        let gates = self.gates.lock();
        let is_new = |found: &&GitDir| !gates.iter().any(|gate| gate.directory.which == found.which);
        found.directories.iter().filter(|directory| directory.closed.is_none()).any(|found| is_new(&found))
    }

    /// Has gates for what was found, and no others. Returns whether there are new ones, which are to be mounted.
    fn follow(&self, found: &Found) -> bool {
        let mut gates = self.gates.lock();
        let is_found = |gate: &Gate| {
            let is_it = |found: &GitDir| found.which == gate.directory.which && found.path == gate.directory.path;
            found.directories.iter().any(is_it)
        };
        gates.retain(|gate| is_found(gate) || find::open(&gate.directory).is_ok());
        let mut has_new = false;
        for directory in found.directories.iter().filter(|directory| directory.closed.is_none()) {
            if gates.iter().any(|gate| gate.directory.which == directory.which) {
                continue;
            }
            let made =
                find::open(directory).and_then(|opened| Ok((Real::new(opened), self.generation(&directory.path)?)));
            // One that cannot be made leaves what lies over the directory: it is only read.
            let Ok((real, generation)) = made else { continue };
            let begun = Moment::default();
            gates.push(Gate { directory: directory.clone(), real, generation, last: None, begun, closed: None });
            has_new = true;
        }
        has_new
    }

    fn generation(&self, target: &Path) -> io::Result<Generation> {
        let name = random_id();
        let made = self.room.below(&name)?;
        made.below(WORK)?;
        let upper = made.below(UPPER)?;
        if let Some(queue) = &self.queue {
            // Whatever is written in it, the first of it is a file or a directory there.
            let events = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            let _ = add_watch(queue, upper.reach("."), events);
        }
        made.create(TARGET)?.write_all(target.as_os_str().as_encoded_bytes())?;
        let ours = Some(made.create(OURS)?);
        Ok(Generation { name: Some(name), ours, ..Generation::in_upper(upper) })
    }

    /// Mounts them all in a cell that has just been made, or was made by a host before this one.
    pub(crate) fn mount(&self, trees: &[MountTree]) -> io::Result<()> {
        // A gate, and what closes their room, lie over what lay there before.
        let is_mounted = |tree: &MountTree, place: &Path| tree.had(place) > 1;
        let is_closed = is_mounted(&trees[0], Path::new(git::ROOM));
        let opened = spawn::enter(&trees[0].namespaces, &Layout::opening_gates(is_closed)?)?;
        *self.inside.lock() = opened.into_iter().next();
        let mut gates = self.gates.lock();
        for gate in &mut *gates {
            let path = gate.directory.path.clone();
            self.lay(gate, trees, |tree| is_mounted(tree, &path));
        }
        // A command that its host left behind has gone on writing until now.
        let gated: Vec<PathBuf> = gates.iter().map(|gate| gate.directory.path.clone()).collect();
        let mut untold = self.untold.lock();
        for gate in &mut *gates {
            if let Some((generation, begun)) = &mut gate.last {
                let (directory, real) = (&gate.directory, &gate.real);
                Taking { directory, real, begun, write: &self.write, gated: &gated, additions: &self.additions }
                    .take_over(generation, &mut untold);
            }
            gate.begun.note(&gate.real);
        }
        Ok(())
    }

    /// Lays the present generation of a gate over its directory, in place of the one before where there is one.
    fn lay(&self, gate: &mut Gate, trees: &[MountTree], is_there: impl Fn(&MountTree) -> bool) {
        let inside = self.inside.lock();
        let laid = || -> io::Result<()> {
            let room = inside.as_ref().ok_or_else(|| io::Error::other("the room of gates is not open"))?;
            let generation = gate.generation.name.as_deref().unwrap_or_default();
            let place = |part: &str| format!("{}/{generation}/{part}", self.name);
            let target = &gate.directory.path;
            let (first, apart) = (&trees[0], &trees[1..]);
            let layout = Layout::gate(room.as_raw_fd(), &place(UPPER), &place(WORK), target, is_there(first))?;
            let layout = if apart.is_empty() { layout } else { layout.copied(target)? };
            let copies = spawn::enter(&first.namespaces, &layout)?;
            let Some(copy) = copies.first() else { return Ok(()) };
            for tree in apart {
                // Where it cannot be laid, the directory is only read there.
                let _ = Layout::same_gate(copy.as_raw_fd(), target, is_there(tree))
                    .and_then(|layout| spawn::enter(&tree.namespaces, &layout));
            }
            Ok(())
        };
        gate.closed = laid().err().map(|error| error.to_string());
    }

    /// A command is about to begin; `found` is what there is by now.
    pub(crate) fn begin(&self, found: &Found, trees: &[MountTree]) {
        if self.follow(found) {
            for gate in self.gates.lock().iter_mut().filter(|gate| gate.begun.is_new()) {
                self.lay(gate, trees, |_| false);
                gate.begun.note(&gate.real);
            }
        }
        for gate in &mut *self.gates.lock() {
            // Else something is on its way that began before.
            if gate.generation.is_at_work || !gate.has_nothing_new() {
                continue;
            }
            if !gate.begun.goes_on(&gate.real) {
                self.renew(gate, trees);
            }
        }
    }

    /// Rings when something is written; none where the system has no such bell left.
    pub(crate) fn bell(&self) -> Option<Bell> {
        Bell::new(self.queue.as_ref()?)
    }

    /// Whether all that was written is taken over.
    pub(crate) fn has_nothing_new(&self) -> bool {
        self.gates.lock().iter().all(|gate| gate.closed.is_some() || gate.has_nothing_new())
    }

    /// Takes over what was written between calls; the next call that ends tells what is to be told.
    pub(crate) fn settle_untold(&self, trees: &[MountTree]) {
        let report = self.settle(trees, When::Between);
        *self.untold.lock() = report;
    }

    /// Whether commands wrote nothing.
    pub(crate) fn is_quiet(&self) -> bool {
        self.untold.lock().is_empty()
            && self.gates.lock().iter().all(|gate| gate.last.is_none() && gate.has_nothing_new())
    }

    /// Takes over what commands wrote.
    pub(crate) fn settle(&self, trees: &[MountTree], when: When) -> Report {
        let mut all = std::mem::take(&mut *self.untold.lock());
        self.take_over(trees, when, &mut all);
        let new = std::mem::take(&mut all.new);
        if !new.is_empty() {
            let directories = new.iter().filter_map(|place| find::directory(place)).collect();
            self.begin(&Found::of(directories), trees);
            // What leads git there had to wait.
            self.take_over(trees, when, &mut all);
        }
        all
    }

    fn take_over(&self, trees: &[MountTree], when: When, all: &mut Report) {
        let mut gates = self.gates.lock();
        let gated: Vec<PathBuf> = gates.iter().map(|gate| gate.directory.path.clone()).collect();
        // Where there is no room for it, locks of a host that is killed are the person's to remove, as those of git.
        let _ = self.room.replace(APPLYING, b"");
        for gate in &mut *gates {
            if gate.closed.is_some() {
                continue;
            }
            // What was written there after it was taken over last.
            if let Some(mut last) = gate.last.take() {
                let Gate { directory, real, .. } = &*gate;
                let (generation, begun) = (&mut last.0, &mut last.1);
                Taking { directory, real, begun, write: &self.write, gated: &gated, additions: &self.additions }
                    .take_over(generation, all);
                self.remove(generation);
                gate.begun.follow(&last.1);
            }
            if gate.generation.upper.is_untouched() {
                continue;
            }
            let Gate { directory, real, begun, generation, .. } = gate;
            let taken =
                Taking { directory, real, begun, write: &self.write, gated: &gated, additions: &self.additions }
                    .take_over(generation, all);
            let is_renewed = match (taken, when) {
                (_, When::Among) => false,
                (Taken::GoesOn, When::Last) => false,
                (Taken::GoesOn, When::Between) | (Taken::ToRenew, When::Last | When::Between) => true,
            };
            if is_renewed && !gate.generation.is_at_work {
                self.renew(gate, trees);
            }
        }
        let _ = self.room.remove(APPLYING.as_ref());
    }

    /// Leaves of repositories that commands made what may be there; each is given by its `.git`.
    pub(crate) fn make_anew(&self, repositories: &[PathBuf], report: &mut Report) {
        let gated: Vec<PathBuf> = self.gates.lock().iter().map(|gate| gate.directory.path.clone()).collect();
        for place in repositories.iter().filter(|place| !gated.contains(place)) {
            let root = self.write.iter().find(|root| place.starts_with(root));
            let path = root.and_then(|root| place.parent()?.strip_prefix(root).ok());
            let (Some(root), Some(path)) = (root, path) else { continue };
            if let Err(error) = fresh::vouch(root, path, &self.write, &gated, report) {
                report.told.push(format!("`{}` could not be looked through: {error}", place.display()));
            }
        }
    }

    /// Has commands see the real directory again, and what they write from now on apart from what they wrote before.
    fn renew(&self, gate: &mut Gate, trees: &[MountTree]) {
        let Ok(next) = self.generation(&gate.directory.path) else { return };
        let next_begun = gate.begun.next();
        let last = std::mem::replace(&mut gate.generation, next);
        gate.last = Some((last, std::mem::replace(&mut gate.begun, next_begun)));
        self.lay(gate, trees, |_| true);
        gate.begun.note(&gate.real);
    }

    fn remove(&self, generation: &Generation) {
        // One of another host lies in the room of that.
        if let Some(name) = &generation.name {
            remove_generation(&self.room.path().join(name));
        }
    }

    /// Does what a person said yes to.
    pub(crate) fn make(&self, directory: &Path, act: &Act) -> Option<io::Result<()>> {
        let gates = self.gates.lock();
        let gate = gates.iter().find(|gate| directory.starts_with(&gate.directory.path))?;
        let within = directory.strip_prefix(&gate.directory.path).unwrap_or(Path::new(""));
        let real =
            if within == Path::new("") { find::open(&gate.directory).map(Real::new) } else { gate.real.below(within) };
        Some(real.and_then(|real| act.make(&real)))
    }
}

impl Gates {
    /// Nothing runs any more that could write there: what was written last is taken over, and nothing is left to the next host.
    pub(crate) fn end(&self) {
        let mut all = Report::default();
        let mut gates = self.gates.lock();
        let gated: Vec<PathBuf> = gates.iter().map(|gate| gate.directory.path.clone()).collect();
        for gate in &mut *gates {
            let Gate { directory, real, begun, generation, last, .. } = gate;
            let last = last.iter_mut().map(|(generation, begun)| (generation, begun));
            for (generation, begun) in last.chain([(generation, begun)]) {
                if !generation.upper.is_untouched() {
                    Taking { directory, real, begun, write: &self.write, gated: &gated, additions: &self.additions }
                        .take_over(generation, &mut all);
                }
            }
        }
        remove_generation(self.room.path());
    }
}

/// What one generation is taken over by.
struct Taking<'t> {
    directory: &'t GitDir,
    real: &'t Real,
    begun: &'t mut Moment,
    write: &'t [PathBuf],
    /// All git directories that have gates.
    gated: &'t [PathBuf],
    additions: &'t Additions,
}

impl Taking<'_> {
    /// Takes over what was written in a generation since that was done last.
    fn take_over(self, generation: &mut Generation, all: &mut Report) -> Taken {
        let Self { directory, real, begun, write, gated, additions } = self;
        let path = directory.path.as_path();
        let mut entries = match generation.upper.entries() {
            Ok(entries) => entries,
            Err(error) => {
                all.told.push(format!("nothing was taken over into `{}`: {error}", path.display()));
                return Taken::ToRenew;
            }
        };
        let at_work = |entry: &upper::Entry| entry.change == Change::File && parts::is_at_work(&entry.path);
        generation.is_at_work = entries.iter().any(at_work);
        // Directories of the real one may go with what is removed, and the kernel does not look for others in their place.
        let is_removed = |entry: &upper::Entry| {
            !entry.is_done && matches!(entry.change, Change::Removed | Change::Directory { is_new: true })
        };
        let now: HashMap<_, _> = entries.iter().map(|entry| (entry.path.clone(), entry.stamp)).collect();
        // What a command made and removed again leaves no trace where nothing lay below it.
        let gone = generation.done.iter().filter(|(path, _)| !now.contains_key(*path)).map(|(path, _)| path.clone());
        let gone = gone.map(|path| upper::Entry { path, change: Change::Removed, stamp: (0, 0, 0), is_done: false });
        entries.extend(gone.collect::<Vec<_>>());
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let shows = begun.shows(real);
        for entry in &mut entries {
            entry.is_done = generation.done.get(&entry.path) == Some(&entry.stamp);
        }
        generation.done = now;
        let removes = entries.iter().any(is_removed);
        let index = |path: &Path| path.file_name() == Some("index".as_ref());
        // Another one says in its settings where its working tree is, or has none.
        let tree = path.parent().filter(|_| path.ends_with(".git"));
        let (upper, at) = (&generation.upper, Path::new(""));
        let mut report = Report::default();
        let additions = Some(additions);
        Side { real, upper, path, at, common: None, write, is_new: false, tree, gated, begun, additions }
            .apply(&entries, &mut report);
        if !report.new.is_empty() {
            generation.done.retain(|path, _| !index(path));
        }
        begun.keep(&mut report, real);
        if let Some(file) = &generation.ours {
            // Where it cannot be written whole, a host after this one takes what was written here for another's, and lets it be.
            let _ = file.set_len(0).and_then(|()| file.write_all_at(&begun.ours_for_the_next(), 0));
        }
        let is_clean = report.is_empty() && report.new.is_empty();
        all.add(report);
        let hides = |path: &&PathBuf| !path.starts_with("objects");
        begun.kept = generation.done.keys().filter(hides).map(|path| (path.clone(), real.stamp(path))).collect();
        // Between the look and the end, others may have moved something.
        let is_ours = begun.is_ours(real);
        let is_small = begun.kept.len() <= MOST_KEPT && generation.done.len() <= MOST_DONE;
        if is_clean && shows && is_ours && is_small && !removes { Taken::GoesOn } else { Taken::ToRenew }
    }
}

/// When something is taken over.
#[derive(Clone, Copy)]
pub(crate) enum When {
    /// Commands of other calls may run.
    Among,
    /// The last command has ended.
    Last,
    /// Nothing has run for a while.
    Between,
}

/// Whether a generation goes on after it was taken over.
enum Taken {
    /// It shows what is there.
    GoesOn,
    /// It does not, or holds much.
    ToRenew,
}

/// Removes what a gate consists of. The kernel leaves a directory there that nobody may look into.
fn remove_generation(place: &Path) {
    let _ = rustix::fs::chmod(place.join(WORK).join("work"), rustix::fs::Mode::RWXU);
    for inner in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let _ = rustix::fs::chmod(inner.path().join(WORK).join("work"), rustix::fs::Mode::RWXU);
    }
    let _ = std::fs::remove_dir_all(place);
}

/// What a host before this one left, where commands that it left may write still.
struct Left {
    directory: PathBuf,
    since: (i64, i64),
    generation: Generation,
    begun: Moment,
}

/// Takes over what commands of hosts before this one had written when those ended. What still runs in their panes keeps what it has.
fn take_up(own: &OwnDir, found: &Found, write: &[PathBuf], additions: &Additions) -> (Report, Vec<Left>) {
    let (mut all, mut left) = (Report::default(), Vec::new());
    for room in std::fs::read_dir(own.path()).into_iter().flatten().flatten() {
        let Some(name) = room.file_name().to_str().map(str::to_owned) else { continue };
        let Ok(room) = own.below(&name) else { continue };
        let is_free = room
            .file(LOCK)
            .is_ok_and(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_free {
            let taken = take_up_room(&room, found, write, additions, &mut all);
            if is_mounted_somewhere(&name) {
                left.extend(taken);
            } else {
                remove_generation(room.path());
            }
        }
    }
    // The one that was mounted last comes last.
    left.sort_by_key(|left| left.since);
    (all, left)
}

/// Whether a process that is left still has a gate of this room: a pane whose host is gone.
fn is_mounted_somewhere(name: &str) -> bool {
    let mounts = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut mounts = mounts.filter_map(|process| std::fs::read_to_string(process.path().join("mountinfo")).ok());
    mounts.any(|mounts| mounts.contains(name))
}

fn take_up_room(room: &OwnDir, found: &Found, write: &[PathBuf], additions: &Additions, all: &mut Report) -> Vec<Left> {
    let mut all_left = Vec::new();
    let applying = room.file(APPLYING).and_then(|file| Ok(Stamp::of(&file.metadata()?).changed().0)).ok();
    for generation in std::fs::read_dir(room.path()).into_iter().flatten().flatten() {
        let Some(name) = generation.file_name().to_str().map(str::to_owned) else { continue };
        let mut taken = || -> io::Result<()> {
            let generation = room.below(&name)?;
            let target = generation.read(TARGET)?.ok_or(io::ErrorKind::NotFound)?;
            let since = generation.file(TARGET)?.metadata()?;
            let target = PathBuf::from(String::from_utf8(target).map_err(|_| io::ErrorKind::InvalidData)?);
            let directory = found.directories.iter().find(|found| found.path == target && found.closed.is_none());
            let Some(directory) = directory else { return Ok(()) };
            let real = Real::new(find::open(directory)?);
            // Its host was killed in the middle of it.
            if let Some(since) = applying {
                real.remove_locks(since..since + MOST_LOCKED);
            }
            let mut left = Generation::in_upper(generation.below(UPPER)?);
            let since = Stamp::of(&since).changed();
            let ours = generation.read(OURS).ok().flatten().unwrap_or_default();
            let mut begun = Moment::left(since, &ours);
            let gated: Vec<PathBuf> = found.directories.iter().map(|found| found.path.clone()).collect();
            Taking { directory, real: &real, begun: &mut begun, write, gated: &gated, additions }
                .take_over(&mut left, all);
            all_left.push(Left { directory: target, since, generation: left, begun });
            Ok(())
        };
        // What is no generation is nothing to take up.
        let _ = taken();
    }
    all_left
}
