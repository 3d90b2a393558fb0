//! Files as they were before a tool changed them, so that a person, or the tool `file_undo`, can put them back.
//!
//! A change is a small file of JSON in Toolcrib's state; the content from before it lies beside that, under its digest. The oldest changes go
//! when there are too many, and all that are older than seven days. What commands change is kept by `checkpoints/`.
//!
//! It depends on `backend`, which writes files and knows ignore rules, and on `base`. Whether a file may be written is not decided here: `guest` asks the grant, and a
//! person at a terminal needs none.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod checkpoints;

use backend::undo::{NotPutBack, Replaced, Was, put_back};
use base::disk::OwnDir;
use base::text::id::random_id;
use checkpoints::Checkpoints;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where changes lie in the state, and the contents from before them.
const CHANGES: &str = "changes";
const BEFORE: &str = "before";
/// Changes that are kept at most.
const MOST: usize = 2000;
/// Bytes of all contents.
const MOST_BYTES: u64 = 256 << 20;
/// How long a change can be undone.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// After so many changes it is looked what has to go.
const BETWEEN_LOOKS: u32 = 32;

/// One change of a file by a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// In milliseconds since 1970.
    pub at_ms: u64,
    pub call: String,
    pub session: String,
    pub tool: String,
    /// Absolute, without links.
    pub path: PathBuf,
    /// What was there before; none: there was no file.
    before: Option<Before>,
    /// The digest of what the tool left.
    left: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    sha256: String,
    mode: u32,
}

/// Who changed a file.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    pub call: &'a str,
    pub session: &'a str,
    pub tool: &'a str,
}

/// Whether a change can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Yes,
    /// The file had more than 8 MiB, or could not be read.
    Unread,
    /// The file is on another machine.
    Elsewhere,
}

/// Why a change was not undone.
#[derive(Debug)]
pub enum NotUndone {
    /// The file is no longer what the tool left: what undoing would make of it, and what it is now, if that can be read.
    Changed {
        before: Option<Vec<u8>>,
        now: Option<Vec<u8>>,
    },
    /// The content from before is no longer kept.
    Gone,
    Failed(String),
}

/// All changes that can be undone.
pub struct Undo {
    state: PathBuf,
    opened: Mutex<Option<Shelf>>,
    checkpoints: Checkpoints,
}

struct Shelf {
    changes: OwnDir,
    before: OwnDir,
    /// Changes since it was looked what has to go.
    since_look: u32,
}

/// A change with the name that it is kept under.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    name: String,
    pub change: Change,
}

impl Undo {
    /// Those of this state directory. Nothing is opened yet.
    pub fn new(state: &Path) -> Self {
        let state = state.join("undo");
        Self { checkpoints: Checkpoints::new(&state), state, opened: Mutex::default() }
    }

    /// What commands may have changed.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// Keeps what a write took the place of; `left` is the digest of what it left.
    ///
    /// # Errors
    ///
    /// What the system says. The write has happened all the same.
    pub fn keep(&self, by: By<'_>, path: &Path, replaced: Replaced, left: [u8; 32]) -> io::Result<Kept> {
        let was = match replaced {
            Replaced::Nothing => None,
            Replaced::File(was) => Some(was),
            Replaced::Unread => return Ok(Kept::Unread),
            Replaced::Elsewhere => return Ok(Kept::Elsewhere),
        };
        let mut opened = self.opened.lock();
        let shelf = shelf(&mut opened, &self.state)?;
        let before = was.map(|was| shelf.put(&was)).transpose()?;
        let By { call, session, tool } = by;
        let change = Change {
            at_ms: now_ms(),
            call: call.into(),
            session: session.into(),
            tool: tool.into(),
            path: path.to_owned(),
            before,
            left: hex::encode(left),
        };
        // Its name gives the order, also among changes of one millisecond.
        let name = format!("{:013}-{:08}-{}", change.at_ms, shelf.since_look, random_id());
        unsynced(&shelf.changes, &name, &serde_json::to_vec(&change)?)?;
        if shelf.since_look.is_multiple_of(BETWEEN_LOOKS) {
            shelf.clear()?;
        }
        shelf.since_look += 1;
        Ok(Kept::Yes)
    }

    /// The changes that can be undone, the newest first.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        let mut opened = self.opened.lock();
        let shelf = shelf(&mut opened, &self.state)?;
        let mut names: Vec<String> =
            shelf.changes.files()?.into_iter().filter_map(|(name, _)| name.into_string().ok()).collect();
        names.sort_unstable_by(|one, other| other.cmp(one));
        let entry = |name: String| {
            let change: Change = serde_json::from_slice(&shelf.changes.read(&name).ok()??).ok()?;
            let is_old = now_ms().saturating_sub(change.at_ms) > KEPT.as_millis() as u64;
            (!is_old).then_some(Entry { name, change })
        };
        Ok(names.into_iter().filter_map(entry).collect())
    }

    /// The content of a file before a change; none: there was no file.
    ///
    /// # Errors
    ///
    /// [`NotUndone::Gone`], or what the system says.
    pub fn before(&self, entry: &Entry) -> Result<Option<Vec<u8>>, NotUndone> {
        Ok(self.was(entry)?.map(|was| was.content))
    }

    fn was(&self, entry: &Entry) -> Result<Option<Was>, NotUndone> {
        let Some(before) = &entry.change.before else { return Ok(None) };
        let mut opened = self.opened.lock();
        let shelf = shelf(&mut opened, &self.state).map_err(|error| NotUndone::Failed(error.to_string()))?;
        let read = shelf.before.read(&before.sha256).map_err(|error| NotUndone::Failed(error.to_string()))?;
        // Somebody else's bytes under this name are not put anywhere.
        let content = read.filter(|content| hex::encode(Sha256::digest(content)) == before.sha256);
        Ok(Some(Was { content: content.ok_or(NotUndone::Gone)?, mode: before.mode }))
    }

    /// Puts a file back as it was before a change, and forgets the change.
    ///
    /// # Errors
    ///
    /// Why the file was not touched.
    pub fn undo(&self, entry: &Entry) -> Result<(), NotUndone> {
        let was = self.was(entry)?;
        let mut left = [0; 32];
        hex::decode_to_slice(&entry.change.left, &mut left).map_err(|_| NotUndone::Gone)?;
        put_back(&entry.change.path, left, was.as_ref()).map_err(|not| match not {
            NotPutBack::Changed(now) => NotUndone::Changed { before: was.map(|was| was.content), now },
            NotPutBack::Failed(failure) => NotUndone::Failed(failure.message),
        })?;
        let mut opened = self.opened.lock();
        let forgotten = shelf(&mut opened, &self.state).and_then(|shelf| shelf.changes.remove(entry.name.as_ref()));
        forgotten.map_err(|error| NotUndone::Failed(format!("the file was put back, but {error}")))
    }
}

fn shelf<'s>(opened: &'s mut Option<Shelf>, state: &Path) -> io::Result<&'s mut Shelf> {
    if opened.is_none() {
        let own = OwnDir::open(state)?;
        *opened = Some(Shelf { changes: own.below(CHANGES)?, before: own.below(BEFORE)?, since_look: 0 });
    }
    Ok(opened.as_mut().expect("it was opened"))
}

impl Shelf {
    fn put(&self, was: &Was) -> io::Result<Before> {
        let sha256 = hex::encode(Sha256::digest(&was.content));
        match unsynced(&self.before, &sha256, &was.content) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            put => put?,
        }
        Ok(Before { sha256, mode: was.mode })
    }

    /// Removes what is too old and too much, and contents that no change needs.
    fn clear(&self) -> io::Result<()> {
        let mut all: Vec<(String, Option<Change>)> = Vec::new();
        for (name, _) in self.changes.files()? {
            let Ok(name) = name.into_string() else { continue };
            let change = self.changes.read(&name)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            all.push((name, change));
        }
        all.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        let sizes: std::collections::BTreeMap<_, _> = self
            .before
            .files()?
            .into_iter()
            .filter_map(|(name, bytes)| Some((name.into_string().ok()?, bytes)))
            .collect();
        let (mut needed, mut bytes) = (BTreeSet::new(), 0);
        for (number, (name, change)) in all.into_iter().enumerate() {
            let stays = change.filter(|change| {
                let is_young = now_ms().saturating_sub(change.at_ms) <= KEPT.as_millis() as u64;
                is_young && number < MOST && bytes <= MOST_BYTES
            });
            match stays {
                Some(change) => {
                    if let Some(before) = change.before
                        && needed.insert(before.sha256.clone())
                    {
                        bytes += sizes.get(&before.sha256).copied().unwrap_or(0);
                    }
                }
                None => self.changes.remove(name.as_ref())?,
            }
        }
        for name in sizes.keys().filter(|name| !needed.contains(*name)) {
            self.before.remove(name.as_ref())?;
        }
        Ok(())
    }
}

/// Makes a file. It is not synced: the change that it is about is, and after a crash a content is known by its digest.
fn unsynced(directory: &OwnDir, name: &str, bytes: &[u8]) -> io::Result<()> {
    directory.create(name)?.write_all(bytes)
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: By<'static> = By { call: "c1", session: "s1", tool: "write_file" };

    fn digest(content: &[u8]) -> [u8; 32] {
        Sha256::digest(content).into()
    }

    fn was(content: &str) -> Replaced {
        Replaced::File(Was { content: content.into(), mode: 0o644 })
    }

    #[test]
    fn changes_are_listed_and_undone_the_newest_first() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("a directory");
        let (undo, file) = (Undo::new(&place), place.join("file"));
        for (before, after) in [("one", "two"), ("two", "three")] {
            assert_eq!(undo.keep(BY, &file, was(before), digest(after.as_bytes())).expect("kept"), Kept::Yes);
        }
        std::fs::write(&file, "three").expect("a file");
        for left in ["two", "one"] {
            let all = undo.list().expect("a list");
            undo.undo(&all[0]).expect("undone");
            assert_eq!(std::fs::read_to_string(&file).expect("a file"), left);
        }
        assert_eq!(undo.list().expect("a list"), []);
    }

    #[test]
    fn a_file_that_somebody_changed_since_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("a directory");
        let (undo, file) = (Undo::new(&place), place.join("file"));
        undo.keep(BY, &file, was("one"), digest(b"two")).expect("kept");
        std::fs::write(&file, "a person's").expect("a file");
        let entry = undo.list().expect("a list").remove(0);
        let Err(NotUndone::Changed { before, now }) = undo.undo(&entry) else { panic!("undone") };
        assert_eq!((before.as_deref(), now.as_deref()), (Some(&b"one"[..]), Some(&b"a person's"[..])));
        assert_eq!(undo.list().expect("a list"), [entry]);
    }

    #[test]
    fn what_cannot_be_kept_is_said() {
        let place = tempfile::tempdir().expect("a directory");
        let undo = Undo::new(place.path());
        assert_eq!(undo.keep(BY, Path::new("/f"), Replaced::Unread, digest(b"")).expect("told"), Kept::Unread);
        assert_eq!(undo.keep(BY, Path::new("/f"), Replaced::Elsewhere, digest(b"")).expect("told"), Kept::Elsewhere);
        assert_eq!(undo.list().expect("a list"), []);
    }

    #[test]
    fn the_oldest_go_and_contents_with_them() {
        let place = tempfile::tempdir().expect("a directory");
        let undo = Undo::new(place.path());
        for number in 0..MOST + 2 * BETWEEN_LOOKS as usize {
            undo.keep(BY, Path::new("/f"), was(&number.to_string()), digest(b"x")).expect("kept");
        }
        let all = undo.list().expect("a list");
        assert!((MOST..MOST + BETWEEN_LOOKS as usize).contains(&all.len()), "{}", all.len());
        assert_eq!(undo.before(&all[0]).expect("kept"), Some((MOST + 63).to_string().into_bytes()));
        let contents = std::fs::read_dir(place.path().join("undo/before")).expect("a directory").count();
        assert_eq!(contents, all.len());
    }

    #[test]
    fn other_bytes_under_a_digest_are_put_nowhere() {
        let place = tempfile::tempdir().expect("a directory");
        let place = place.path().canonicalize().expect("a directory");
        let (undo, file) = (Undo::new(&place), place.join("file"));
        undo.keep(BY, &file, was("one"), digest(b"two")).expect("kept");
        std::fs::write(&file, "two").expect("a file");
        let before =
            std::fs::read_dir(place.join("undo/before")).expect("a directory").next().expect("one").expect("one");
        std::fs::write(before.path(), "other").expect("a file");
        let entry = undo.list().expect("a list").remove(0);
        assert!(matches!(undo.undo(&entry), Err(NotUndone::Gone)));
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "two");
    }
}
