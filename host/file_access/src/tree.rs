//! Which files a plugin may read below a directory: decided as for each file alone, once for all that cannot differ.
//!
//! Opening is the backend's, and only what was admitted here can be opened. Of a directory it is found out which names in it, or below which
//! names, another rule may hold: a credential, a mount, a snapshot. Those are judged as any path is. For all others the directory was judged.

use super::credentials::{self, below_a_home};
use super::protected::Identity;
use super::{Facts, FilesGrant, KERNEL, ReadPath, Resolved, Rules, TooMany, is_confined, names};
use base::envelope::Failure;
use base::mountinfo::{self, Table};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long nobody looks again where credentials lead.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// A change may have happened so long after the time that the system writes down for it: clocks of file systems are coarse.
const COARSE: Duration = Duration::from_millis(20);

/// A directory, or a single file, that policy admitted for reading with what is below it. Made only here.
#[derive(Clone)]
pub struct ReadTree {
    walk: Arc<Walk>,
    path: Arc<Path>,
    /// The names in it that are judged by themselves.
    near: Arc<Near>,
    /// What was known of this machine when it was judged.
    look: u64,
}

/// A name in an admitted directory that may be opened, with no link followed. Made only here.
pub struct ReadEntry<'t> {
    tree: &'t ReadTree,
    name: &'t OsStr,
    /// The names in it that are judged by themselves, where it is a directory.
    near: Option<Arc<Near>>,
    look: u64,
}

/// What a backend says of a file that it has opened.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    pub device: u64,
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// When its names were changed last.
    pub changed: SystemTime,
}

/// What all of one walk have in common.
struct Walk {
    rules: Rules,
    facts: Arc<Facts>,
    root: ReadPath,
    look: Mutex<Arc<Look>>,
    /// The closed files that have several names.
    linked: Mutex<Option<Arc<Linked>>>,
}

/// What is known of this machine at one time.
struct Look {
    /// Another one after each change.
    number: u64,
    mounts: Arc<Table>,
    /// Where credentials are or lead to.
    closed: HashSet<Identity>,
    at: Instant,
}

struct Linked {
    /// Too many to be known.
    files: Option<HashSet<Identity>>,
    at: SystemTime,
}

/// Names in a directory.
#[derive(Debug, PartialEq)]
enum Near {
    All,
    These(HashSet<OsString>),
}

impl Near {
    fn has(&self, name: &OsStr) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(name),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::These(names) if names.is_empty())
    }
}

impl FilesGrant {
    /// Decides on reading below a directory: see [`ReadTree`].
    ///
    /// # Errors
    ///
    /// As [`admit_read`](Self::admit_read) of the directory.
    pub fn admit_tree(&self, resolved: &Resolved) -> Result<ReadTree, Failure> {
        let rules = self.rules(resolved)?.into_owned();
        let root = rules.admit_read(resolved)?;
        let look = Arc::new(Look::taken(&rules, 0));
        let near = Arc::new(near(&rules, &look.mounts, &resolved.path));
        let (number, path) = (look.number, resolved.path.as_path().into());
        let walk =
            Walk { rules, facts: resolved.facts.clone(), root, look: Mutex::new(look), linked: Mutex::default() };
        Ok(ReadTree { walk: Arc::new(walk), path, near, look: number })
    }
}

impl ReadTree {
    pub fn as_path(&self) -> &Path {
        &self.path
    }

    /// Where the walk begins, as any file is read.
    pub fn root(&self) -> &ReadPath {
        &self.walk.root
    }

    /// What the place is like.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.walk.facts
    }

    /// Judges a file beside those of the tree, such as one with rules for the walk; none where it may not be read.
    pub fn beside(&self, resolved: &Resolved) -> Option<ReadPath> {
        self.walk.rules.admit_read(resolved).ok()
    }

    /// Judges a name in the directory; none where it may not be opened.
    pub fn entry<'t>(&'t self, name: &'t OsStr) -> Option<ReadEntry<'t>> {
        // Known to lie as it is; a walk that asks for what changes must not ask for each file.
        if !self.near.has(name) {
            return Some(ReadEntry { tree: self, name, near: None, look: self.look });
        }
        let look = self.walk.look();
        self.judged(name, &look)
    }

    fn judged<'t>(&'t self, name: &'t OsStr, look: &Look) -> Option<ReadEntry<'t>> {
        let path = self.path.join(name);
        self.walk.admits(&path).then(|| {
            let near = Some(Arc::new(near(&self.walk.rules, &look.mounts, &path)));
            ReadEntry { tree: self, name, near, look: look.number }
        })
    }
}

impl ReadEntry<'_> {
    pub fn name(&self) -> &OsStr {
        self.name
    }

    /// The directory that was opened by this name; none where it is closed after all.
    pub fn directory(self, device: u64, inode: u64) -> Option<ReadTree> {
        let (tree, look) = (self.tree, self.tree.walk.look());
        if look.closed.contains(&(device, inode)) {
            return None;
        }
        // Something was mounted, or a credential leads elsewhere: what was known of the directories above may hold no more.
        let judged = if look.number == self.look { self } else { tree.judged(self.name, &look)? };
        let nothing = || if tree.near.is_empty() { tree.near.clone() } else { Arc::new(Near::These(HashSet::new())) };
        Some(ReadTree {
            walk: tree.walk.clone(),
            path: tree.path.join(judged.name).into(),
            near: judged.near.unwrap_or_else(nothing),
            look: look.number,
        })
    }

    /// Whether the file that was opened by this name may be read.
    pub fn is_readable(&self, opened: &Opened) -> bool {
        let walk = &self.tree.walk;
        let file = (opened.device, opened.inode);
        !walk.look.lock().closed.contains(&file) && (opened.links <= 1 || walk.may_have_names(file, opened.changed))
    }
}

impl Walk {
    /// Judges a path without links as a single file that is read.
    fn admits(&self, path: &Path) -> bool {
        let (given, path) = (path.to_owned(), path.to_owned());
        let there = None;
        self.rules.admit_read(&Resolved { given, path, absent: None, facts: self.facts.clone(), there }).is_ok()
    }

    /// What is known of this machine now.
    fn look(&self) -> Arc<Look> {
        let mut last = self.look.lock();
        if !self.rules.protected.is_here() {
            return last.clone();
        }
        let is_same = mountinfo::table().number == last.mounts.number;
        if !is_same || last.at.elapsed() >= LOOK_PAUSE {
            let mut new = Look::taken(&self.rules, last.number);
            new.number += u64::from(!is_same || new.closed != last.closed);
            *last = Arc::new(new);
        }
        last.clone()
    }

    /// Whether a file with several names has none that is closed, as far as anybody may know.
    fn may_have_names(&self, file: Identity, changed: SystemTime) -> bool {
        if is_confined(&self.rules.read) || is_confined(&self.rules.bounds) {
            return false;
        }
        let protected = &self.rules.protected;
        let is_known = |linked: &Linked| changed + COARSE < linked.at;
        let mut linked = self.linked.lock();
        // Whoever gives a closed file a name changes the file.
        let known = match linked.clone().filter(|linked| is_known(linked)) {
            Some(known) => known,
            None => {
                let at = SystemTime::now();
                let new = Arc::new(Linked { files: protected.linked().ok(), at });
                *linked = Some(new.clone());
                new
            }
        };
        drop(linked);
        match &known.files {
            Some(files) if is_known(&known) => !files.contains(&file),
            Some(_) => matches!(protected.holding(file), Ok(None)),
            None => false,
        }
    }
}

impl Look {
    fn taken(rules: &Rules, number: u64) -> Self {
        let at = Instant::now();
        if !rules.protected.is_here() {
            return Self { number, mounts: Arc::default(), closed: HashSet::new(), at };
        }
        Self { number, mounts: mountinfo::table(), closed: rules.protected.led(), at }
    }
}

/// The names in an admitted directory for which, or below which, another rule may hold than for itself.
fn near(rules: &Rules, mounts: &Table, path: &Path) -> Near {
    let protected = &rules.protected;
    let Some(known_as) = protected.names(mounts, path) else { return Near::All };
    let mut near = HashSet::new();
    let mut add = |above: &Path, below: &Path| {
        let name = below.strip_prefix(above).ok().and_then(|rest| rest.components().next());
        near.extend(name.map(|name| name.as_os_str().to_owned()));
    };
    for name in &known_as {
        if ["/", "/home", "/Users"].iter().any(|above| name == Path::new(above)) {
            return Near::All;
        }
        protected.closed().for_each(|root| add(name, root));
        KERNEL.iter().for_each(|root| add(name, Path::new(root)));
        if let Some(below) = below_a_home(name) {
            credentials::below_homes().for_each(|place| add(below, Path::new(place)));
        }
    }
    near.extend(mounts.crossed(path));
    if protected.is_here() && !near.is_empty() {
        near.extend(names::snapshot_names().map(OsString::from));
    }
    Near::These(near)
}

impl super::Protected {
    /// All names of what a path without links names; none where that cannot be told.
    fn names(&self, mounts: &Table, path: &Path) -> Option<Vec<PathBuf>> {
        if !self.is_here() {
            return Some(vec![path.to_owned()]);
        }
        names::all(mounts, path)
    }

    /// The closed files that have several names, by their identities.
    fn linked(&self) -> Result<HashSet<Identity>, TooMany> {
        let mut found = HashSet::new();
        self.each_closed(|file, links| {
            if links > 1 {
                found.insert(file);
            }
            false
        })?;
        Ok(found)
    }
}
