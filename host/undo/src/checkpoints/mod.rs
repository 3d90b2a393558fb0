//! Checkpoints: what a workspace was before commands that may write, as trees of git objects.
//!
//! They lie in Toolcrib's state, where no command gets: a record of each, and for each workspace a store of objects (`objects.rs`, `tree.rs`) with
//! what the system said of its files (`stats.rs`), so that only what has changed is read again (`walk.rs`). Nothing of the workspace's own
//! repository is touched, and no git runs. `restore.rs` puts a workspace back.

mod objects;
mod restore;
mod stats;
mod tree;
mod walk;

pub use restore::{Done, Plan};
pub use tree::{Difference, Side};

use crate::{By, KEPT, now_ms, unsynced};
use backend::search::Which;
use backend::search::rules::{Rules, excludes_file};
use base::disk::{DIRECTORY, OwnDir, open_itself};
use base::text::id::random_id;
use objects::{Batch, Id, Kind, Objects};
use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stats::Stats;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tree::sides;
use walk::{Look, Looked, Not};

/// Where records and stores lie in the state.
const RECORDS: &str = "checkpoints";
const STORES: &str = "trees";
/// Files of a store.
const LOCK: &str = "lock";
const STATS: &str = "stats";
const OFF: &str = "off";
const SLOW: &str = "slow";
/// When it was looked last what has to go.
const CLEARED: &str = "cleared";
const BETWEEN_LOOKS: Duration = Duration::from_secs(60 * 60);
/// What makes a git directory of it, so that git reads it: `git --git-dir=… cat-file -p TREE`.
const HEAD: &[u8] = b"ref: refs/heads/none\n";
const CONFIG: &[u8] = b"[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n";
/// Checkpoints of a workspace that are kept, and bytes of its objects.
const MOST: usize = 100;
const MOST_BYTES: u64 = 512 << 20;
/// Bytes of all workspaces.
const MOST_OF_ALL: u64 = 2 << 30;
/// Packs of a workspace, and those from which on its bytes count.
const MOST_PACKS: usize = 50;
const PACKS: usize = 8;
/// More than are kept, so that they are not cleared each time.
const SLACK: usize = 16;
/// A session has one at most so often.
const BETWEEN: Duration = Duration::from_secs(60);
/// An unchanged workspace has a new one after this time.
const ANEW: Duration = Duration::from_secs(24 * 60 * 60);
/// A workspace with too many files, or on a slow disk, is looked at again after this time.
const PAUSE_MS: u64 = 10 * 60 * 1000;
/// How long another program is waited for that looks at the same workspace.
const PATIENCE: Duration = Duration::from_secs(5);
/// Sessions that are remembered.
const MOST_SESSIONS: usize = 1000;
/// The user's own ignore file, in bytes.
const RULES_BYTES: u64 = 1 << 20;
/// Files that are named which are too large to be kept.
const MOST_NAMED: usize = 5;

/// Where a workspace is, and the home of its user.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// Absolute, without links.
    pub root: &'p Path,
    pub home: &'p Path,
}

/// Why there is a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A command that may write was about to run.
    Command,
    /// Files were about to be put back.
    Undo,
}

/// A workspace at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// In microseconds since 1970.
    at_us: u64,
    pub id: String,
    pub call: String,
    pub session: String,
    pub tool: String,
    pub why: Why,
    /// The workspace.
    pub root: PathBuf,
    tree: String,
}

impl Checkpoint {
    /// When it was taken, in milliseconds since 1970.
    pub fn at_ms(&self) -> u64 {
        self.at_us / 1000
    }

    fn tree(&self) -> Option<Id> {
        let mut id = Id::default();
        hex::decode_to_slice(&self.tree, &mut id).ok()?;
        Some(id)
    }

    fn is_old(&self) -> bool {
        now_ms().saturating_sub(self.at_ms()) > KEPT.as_millis() as u64
    }

    /// Its file. The name gives the order, and tells the workspace.
    fn name(&self) -> String {
        format!("{:016}-{}-{}", self.at_us, store_name(&self.root), self.id)
    }
}

/// When a session had its last one of a workspace, and what it was told then.
type Last = (Instant, Option<String>);

/// All checkpoints of this user.
pub struct Checkpoints {
    state: PathBuf,
    /// By session and workspace.
    last: Mutex<HashMap<(String, PathBuf), Last>>,
    /// Held while one is taken.
    taking: Mutex<()>,
}

/// The store of a workspace, which no other program changes meanwhile.
struct Store {
    own: OwnDir,
    objects: Objects,
    lock: File,
}

impl Checkpoints {
    /// `state` is the directory of all that can be undone.
    pub(crate) fn new(state: &Path) -> Self {
        Self { state: state.to_owned(), last: Mutex::default(), taking: Mutex::default() }
    }

    /// Whether a session that is about to write has to wait for a checkpoint.
    pub fn is_due(&self, session: &str, root: &Path) -> bool {
        let last = self.last.lock();
        // Who works in `/` works nowhere in particular.
        root.parent().is_some()
            && last.get(&(session.to_owned(), root.to_owned())).is_none_or(|(at, _)| at.elapsed() >= BETWEEN)
    }

    /// Takes a checkpoint if one is due; returns what has to be said. Where none can be taken the command runs all the same.
    pub fn take(&self, by: By<'_>, place: Place<'_>) -> Option<String> {
        // The command of another call waits for the same one.
        let taking = self.taking.lock();
        if !self.is_due(by.session, place.root) {
            return None;
        }
        let told = match self.taken(by, place) {
            Ok(left_out) => left_out_told(&left_out),
            Err(not) => {
                Some(format!("no checkpoint of the workspace was taken: {not}; what commands change cannot be undone"))
            }
        };
        drop(taking);
        let mut last = self.last.lock();
        if last.len() >= MOST_SESSIONS {
            last.retain(|_, (at, _)| at.elapsed() < BETWEEN);
        }
        let before = last.insert((by.session.to_owned(), place.root.to_owned()), (Instant::now(), told.clone()));
        told.filter(|told| before.is_none_or(|(_, before)| before.as_ref() != Some(told)))
    }

    fn taken(&self, by: By<'_>, place: Place<'_>) -> Result<Vec<PathBuf>, Not> {
        let store = self.store(place.root)?;
        if let Some(not) = store.is_off() {
            return Err(not);
        }
        let bytes = store.own.read(STATS)?.unwrap_or_default();
        let looked = store.look(&bytes, place, None, &self.state);
        if let Err(not @ (Not::TooMany | Not::Slow)) = &looked {
            let why = if matches!(not, Not::Slow) { SLOW } else { "" };
            let _ = store.put(OFF, format!("{} {why}", now_ms()).as_bytes());
        }
        match looked? {
            (Looked::Same(tree), _) => {
                let written = store.own.file(STATS)?.metadata()?.modified()?;
                if SystemTime::now().duration_since(written).is_ok_and(|age| age > ANEW) {
                    self.record(by, Why::Command, place.root, &tree)?;
                    store.put(STATS, &bytes)?;
                }
                Ok(Vec::new())
            }
            (Looked::Changed { tree, directories, left_out }, rules) => {
                let is_new = Stats::parse(&bytes).is_none_or(|stats| stats.tree != tree);
                let store = store.reopened()?;
                store.put(STATS, &stats::write(store.objects.packs(), &rules, &tree, &directories))?;
                if is_new {
                    self.record(by, Why::Command, place.root, &tree)?;
                    // It was taken, whatever comes of these.
                    let _ = self.clear(store, place.root);
                    let _ = self.clear_others();
                }
                Ok(left_out)
            }
        }
    }

    /// All checkpoints, the newest first.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn list(&self) -> io::Result<Vec<Checkpoint>> {
        let records = OwnDir::open(&self.state)?.below(RECORDS)?;
        let mut all: Vec<Checkpoint> = records
            .files()?
            .into_iter()
            .filter_map(|(name, _)| serde_json::from_slice(&records.read(name.to_str()?).ok()??).ok())
            .filter(|checkpoint: &Checkpoint| !checkpoint.is_old())
            .collect();
        all.sort_by_key(|checkpoint| Reverse(checkpoint.name()));
        Ok(all)
    }

    fn record(&self, by: By<'_>, why: Why, root: &Path, tree: &Id) -> io::Result<()> {
        let By { call, session, tool } = by;
        let checkpoint = Checkpoint {
            at_us: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64),
            id: random_id(),
            call: call.into(),
            session: session.into(),
            tool: tool.into(),
            why,
            root: root.to_owned(),
            tree: hex::encode(tree),
        };
        let records = OwnDir::open(&self.state)?.below(RECORDS)?;
        unsynced(&records, &checkpoint.name(), &serde_json::to_vec(&checkpoint)?)
    }

    fn store(&self, root: &Path) -> io::Result<Store> {
        Store::open(OwnDir::open(&self.state)?.below(STORES)?.below(&store_name(root))?)
    }

    /// Drops the oldest checkpoints of a workspace, and objects that no other needs.
    fn clear(&self, store: Store, root: &Path) -> io::Result<()> {
        let records = OwnDir::open(&self.state)?.below(RECORDS)?;
        let packs = store.objects.packs().count();
        let is_full = packs > PACKS && store.objects.bytes() > MOST_BYTES;
        let is_own = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.contains(&store_name(root)));
        let count = records.files()?.iter().filter(|(name, _)| is_own(name)).count();
        if count <= MOST + SLACK && packs <= MOST_PACKS && !is_full {
            return Ok(());
        }
        let all: Vec<Checkpoint> = self.list()?.into_iter().filter(|checkpoint| checkpoint.root == root).collect();
        let (mut live, mut bytes) = (HashMap::<Id, Kind>::new(), 0);
        for (number, checkpoint) in all.into_iter().enumerate() {
            let fits = number == 0 || number < MOST && bytes <= MOST_BYTES;
            let stays = fits && checkpoint.tree().is_some_and(|tree| store.needs(&tree, &mut live, &mut bytes).is_ok());
            if !stays {
                records.remove(checkpoint.name().as_ref())?;
            }
        }
        let (writer, mut batch) = (store.objects.rewriter(), Batch::default());
        for (id, kind) in &live {
            // One that is damaged is told when it is asked for.
            match writer.copy(&mut batch, *kind, id) {
                Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {}
                copied => copied?,
            }
        }
        writer.flush(&mut batch)?;
        let kept = writer.finish()?;
        drop(writer);
        store.objects.keep_only(kept.as_deref())?;
        let store = store.reopened()?;
        let stats = store.own.read(STATS)?.and_then(|bytes| stats::repacked(&bytes, store.objects.packs()));
        stats.map_or(Ok(()), |stats| store.put(STATS, &stats))
    }

    /// Removes what is kept of workspaces that have no checkpoint any more, and of the oldest where all are too much.
    fn clear_others(&self) -> io::Result<()> {
        let own = OwnDir::open(&self.state)?;
        let cleared = own.file(CLEARED).and_then(|file| file.metadata()?.modified()).ok();
        if cleared.is_some_and(|at| at.elapsed().is_ok_and(|age| age < BETWEEN_LOOKS)) {
            return Ok(());
        }
        own.append(CLEARED)?.set_modified(SystemTime::now())?;
        let (records, stores) = (own.below(RECORDS)?, own.below(STORES)?);
        let all = self.list()?;
        let names: HashSet<String> = all.iter().map(Checkpoint::name).collect();
        for (name, _) in records.files()? {
            if name.to_str().is_none_or(|name| !names.contains(name)) {
                records.remove(&name)?;
            }
        }
        let mut bytes = 0;
        let mut needed = HashSet::new();
        for checkpoint in &all {
            let name = store_name(&checkpoint.root);
            if !needed.contains(&name) && bytes <= MOST_OF_ALL {
                bytes += Objects::open(stores.below(&name)?.below("objects")?.below("pack")?)?.bytes();
                needed.insert(name);
            }
        }
        for entry in std::fs::read_dir(stores.path())? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| !needed.contains(name))
                && let Ok(_lock) = lock(&stores.below(&name.to_string_lossy())?, Duration::ZERO)
            {
                std::fs::remove_dir_all(stores.path().join(&name))?;
            }
        }
        Ok(())
    }
}

/// The directory of a workspace's store.
fn store_name(root: &Path) -> String {
    hex::encode(&Sha256::digest(root.as_os_str().as_bytes())[..16])
}

/// What is said of files that are too large to be kept.
fn left_out_told(left_out: &[PathBuf]) -> Option<String> {
    let named: Vec<String> = left_out.iter().take(MOST_NAMED).map(|path| format!("`{}`", path.display())).collect();
    let more = left_out.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!left_out.is_empty()).then(|| {
        format!("too large for a checkpoint, so that changes by commands cannot be undone: {}{more}", named.join(", "))
    })
}

/// Has a store for this program alone.
fn lock(own: &OwnDir, patience: Duration) -> io::Result<File> {
    let (file, until) = (own.append(LOCK)?, Instant::now() + patience);
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::other("another program looks at the same workspace"));
            }
            locked => {
                locked?;
                return Ok(file);
            }
        }
    }
}

impl Store {
    fn open(own: OwnDir) -> io::Result<Self> {
        let lock = lock(&own, PATIENCE)?;
        Self::locked(own, lock)
    }

    fn locked(own: OwnDir, lock: File) -> io::Result<Self> {
        if own.read("HEAD")?.is_none() {
            own.below("refs")?;
            unsynced(&own, "config", CONFIG).or_else(there)?;
            unsynced(&own, "HEAD", HEAD)?;
        }
        let objects = Objects::open(own.below("objects")?.below("pack")?)?;
        Ok(Self { own, objects, lock })
    }

    /// The same with the packs that were written meanwhile.
    fn reopened(self) -> io::Result<Self> {
        Self::locked(self.own, self.lock)
    }

    /// Why there was no checkpoint a short time ago, if it would be the same again.
    fn is_off(&self) -> Option<Not> {
        let text = String::from_utf8(self.own.read(OFF).ok()??).ok()?;
        let (at, why) = text.split_once(' ')?;
        let is_young = now_ms().saturating_sub(at.parse().ok()?) < PAUSE_MS;
        is_young.then_some(if why == SLOW { Not::Slow } else { Not::TooMany })
    }

    /// Replaces a file. It is not synced: after a crash what does not fit is passed over.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let passing = format!("{}.tmp", random_id());
        let put = unsynced(&self.own, &passing, bytes)
            .and_then(|()| std::fs::rename(self.own.reach(&passing), self.own.reach(name)));
        put.inspect_err(|_| {
            let _ = self.own.remove(passing.as_ref());
        })
    }

    /// Looks at a workspace; returns with it the digest of the rules that hold everywhere.
    fn look<'b>(
        &self,
        bytes: &'b [u8],
        place: Place<'_>,
        also: Option<&HashSet<PathBuf>>,
        own: &Path,
    ) -> Result<(Looked<'b>, Id), Not> {
        let user = user_rules(place.home);
        let digest = Id::from(Sha256::digest(user.as_deref().unwrap_or_default()));
        let user = user.as_deref().map(|text| (place.root, text));
        let rules = Rules::new(&everything(), place.root, user).map_err(|failure| io::Error::other(failure.message))?;
        let packs: HashSet<(&str, u64)> = self.objects.packs().collect();
        let old = Stats::parse(bytes);
        let old = old.filter(|old| old.rules == digest && old.packs.iter().all(|pack| packs.contains(pack)));
        let root: OwnedFd = rustix::fs::open(place.root, DIRECTORY, rustix::fs::Mode::empty())?;
        let own = own.parent().map_or(Ok((0, 0)), |state| {
            use std::os::unix::fs::MetadataExt;
            state.metadata().map(|found| (found.dev(), found.ino()))
        })?;
        let look = Look { root: &root, path: place.root, own, rules: &rules, old: old.as_ref(), also };
        Ok((look.look(&self.objects)?, digest))
    }

    /// Collects the objects of a tree.
    fn needs(&self, tree: &Id, live: &mut HashMap<Id, Kind>, bytes: &mut u64) -> io::Result<()> {
        let mut waiting = vec![(*tree, Kind::Tree)];
        while let Some((id, kind)) = waiting.pop() {
            if live.insert(id, kind).is_some() {
                continue;
            }
            *bytes += self.objects.size(&id).unwrap_or(0);
            if kind == Kind::Tree {
                waiting.extend(sides(&self.objects, &id)?.into_iter().filter_map(|side| match side {
                    Side::File(_, id) | Side::Link(id) => Some((id, Kind::Blob)),
                    Side::Directory(id) => Some((id, Kind::Tree)),
                    Side::Nothing | Side::Absent => None,
                }));
            }
        }
        Ok(())
    }
}

fn there(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

/// Hidden names as well; only ignore files leave anything out.
fn everything() -> Which {
    Which { hidden: true, ..Which::default() }
}

/// The user's own ignore file.
fn user_rules(home: &Path) -> Option<Vec<u8>> {
    let read = |path: &Path| open_itself(path).ok()?.read(RULES_BYTES).ok();
    let settings = [".gitconfig", ".config/git/config"];
    let named = settings.iter().find_map(|path| excludes_file(&read(&home.join(path))?));
    let named = named.unwrap_or_else(|| "~/.config/git/ignore".into());
    read(&named.strip_prefix("~/").map_or_else(|| PathBuf::from(&named), |below| home.join(below)))
}

#[cfg(test)]
mod tests;
