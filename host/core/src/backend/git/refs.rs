//! References: what commands moved, as values, and how they are moved in the real repository.
//!
//! A value goes over only where the person's own git would let it: under its locks, and from the value that the command began with.

use super::real::Real;
use super::upper::{Change, Entry, Upper};
use gix_hash::{Kind, ObjectId};
use gix_lock::acquire::Fail;
use gix_ref::transaction::{Change as Edit, LogChange, PreviousValue, RefEdit, RefLog};
use gix_ref::{FullName, Target, file, packed, store::WriteReflog};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HASH: Kind = Kind::Sha1;
/// Bytes of a loose reference, and of the packed ones.
const MOST_LOOSE: u64 = 4096;
pub(super) const MOST_PACKED: u64 = 256 << 20;
const PATIENCE: Fail = Fail::AfterDurationWithBackoff(Duration::from_secs(2));
/// Lines of a log that are looked at for the value that a command began with.
const MOST_LINES: usize = 256;

/// References by their full names; none where a command removed one.
pub(super) type Moves = BTreeMap<String, Option<Target>>;

/// Where the references of a git directory are.
pub(super) struct Places<'p> {
    pub(super) real: &'p Real,
    /// That of the repository, where this is a working tree's.
    pub(super) common: Option<&'p Real>,
}

impl Places<'_> {
    fn store(&self) -> file::Store {
        let git = self.real.path().to_owned();
        let mut store = match self.common {
            Some(common) => file::Store::for_linked_worktree(git, common.path().to_owned(), HASH),
            None => file::Store::at(git, HASH),
        };
        // Logs are taken over as they were written.
        store.write_reflog = WriteReflog::Disable;
        store
    }
}

/// What commands made of references: by the entries that are about them.
pub(super) fn moves(entries: &[&Entry], upper: &Upper, places: &Places<'_>) -> io::Result<(Moves, Vec<String>)> {
    let (mut moves, mut odd) = (Moves::new(), Vec::new());
    let real_packed = packed_in(places.real.read(Path::new("packed-refs"), MOST_PACKED)?)?;
    let packed_entry = entries.iter().find(|entry| entry.path == Path::new("packed-refs"));
    let new_packed = match packed_entry.map(|entry| &entry.change) {
        None => None,
        Some(Change::File) => Some(packed_in(Some(upper.read(Path::new("packed-refs"), MOST_PACKED)?))?),
        Some(Change::Removed) => Some(BTreeMap::new()),
        Some(Change::Directory { .. } | Change::Odd) => return Err(io::Error::other("`packed-refs` is no file")),
    };
    let packed = new_packed.as_ref().unwrap_or(&real_packed);
    let packed_value = |name: &str| packed.get(name).copied().map(Target::Object);
    let mut loose_now = BTreeSet::new();
    for entry in entries.iter().filter(|entry| entry.path != Path::new("packed-refs")) {
        let Some(name) = entry.path.to_str() else {
            odd.push(entry.path.display().to_string());
            continue;
        };
        match &entry.change {
            Change::File => match read(upper, name) {
                Ok(target) => {
                    loose_now.insert(name.to_owned());
                    moves.insert(name.to_owned(), Some(target));
                }
                Err(_) => odd.push(name.to_owned()),
            },
            Change::Removed | Change::Directory { is_new: true } => {
                for gone in gone(places.real, &entry.path)? {
                    moves.entry(gone.clone()).or_insert_with(|| packed_value(&gone));
                }
            }
            Change::Directory { is_new: false } => {}
            Change::Odd => odd.push(name.to_owned()),
        }
    }
    if let Some(new) = &new_packed {
        let names: BTreeSet<&String> = new.keys().chain(real_packed.keys()).collect();
        for name in names.into_iter().filter(|name| new.get(*name) != real_packed.get(*name)) {
            // A loose one counts before it.
            let is_loose = loose_now.contains(name) || !moves.contains_key(name) && places.real.has(Path::new(name));
            if !is_loose {
                moves.insert(name.clone(), new.get(name).copied().map(Target::Object));
            }
        }
    }
    Ok((moves, odd))
}

/// The names of the loose references that were at or below a path.
fn gone(real: &Real, path: &Path) -> io::Result<Vec<String>> {
    let found = match real.look(path)? {
        Some(found) if found.is_dir() => real.files(path)?,
        Some(_) => vec![path.to_owned()],
        None => Vec::new(),
    };
    Ok(found.into_iter().filter_map(|path| path.to_str().map(str::to_owned)).collect())
}

fn read(upper: &Upper, name: &str) -> io::Result<Target> {
    let content = upper.read(Path::new(name), MOST_LOOSE)?;
    target(name, &content)
}

/// What the content of a loose reference says; where a symbolic one leads is a name of the same kind.
fn target(name: &str, content: &[u8]) -> io::Result<Target> {
    let odd = |error: gix_error::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let full = full_name(name)?;
    let target = file::loose::Reference::try_from_path(full, content, HASH).map_err(odd)?.target;
    match &target {
        Target::Symbolic(to) if !to.as_bstr().starts_with(b"refs/") => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a reference leads out of `refs`"))
        }
        Target::Symbolic(_) | Target::Object(_) => Ok(target),
    }
}

fn full_name(name: &str) -> io::Result<FullName> {
    FullName::try_from(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// The packed references that a file of them holds.
fn packed_in(bytes: Option<Vec<u8>>) -> io::Result<BTreeMap<String, ObjectId>> {
    let Some(bytes) = bytes else { return Ok(BTreeMap::new()) };
    let odd = |error: gix_error::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let buffer = packed::Buffer::from_bytes(&bytes, HASH).map_err(odd)?;
    let mut all = BTreeMap::new();
    for reference in buffer.iter().map_err(odd)? {
        let reference = reference.map_err(odd)?;
        all.insert(reference.name.as_bstr().to_string(), reference.target());
    }
    Ok(all)
}

/// What is known of the time since a command began.
pub(super) trait Meanwhile {
    /// Whether somebody else changed what is at a path of the real git directory.
    fn was_changed(&self, path: &Path) -> bool;
    /// The value that was set here last.
    fn set_last(&self, name: &str) -> Option<Option<Target>>;
}

/// What came of moving references.
#[derive(Default)]
pub(super) struct Moved {
    pub(super) done: Moves,
    /// Somebody else moved them meanwhile, or holds their locks.
    pub(super) refused: Moves,
}

/// Moves references in the real repository.
pub(super) fn apply(moves: Moves, upper: &Upper, places: &Places<'_>, meanwhile: &dyn Meanwhile) -> io::Result<Moved> {
    let store = places.store();
    let mut moved = Moved::default();
    let mut edits = Vec::new();
    for (name, new) in moves {
        let full = full_name(&name)?;
        let now = store.try_find(&full).map_err(|error| io::Error::other(error.to_string()))?.map(|found| found.target);
        if now == new {
            moved.done.insert(name, new);
            continue;
        }
        let path = PathBuf::from(&name);
        let is_ours = !meanwhile.was_changed(&path)
            || meanwhile.set_last(&name).is_some_and(|last| last == now)
            || began_with(upper, &name, now.as_ref());
        if !is_ours {
            moved.refused.insert(name, new);
            continue;
        }
        let expected = match now {
            Some(now) => PreviousValue::MustExistAndMatch(now),
            None => PreviousValue::MustNotExist,
        };
        let change = match &new {
            Some(target) => Edit::Update {
                log: LogChange { mode: RefLog::AndReference, force_create_reflog: false, message: "".into() },
                expected,
                new: target.clone(),
            },
            None => Edit::Delete { expected, log: RefLog::AndReference },
        };
        edits.push((name, new, RefEdit::new(full, change)));
    }
    // What goes makes room for names below or above it.
    let (removed, set): (Vec<_>, Vec<_>) = edits.into_iter().partition(|(_, new, _)| new.is_none());
    for part in [removed, set] {
        if part.is_empty() {
            continue;
        }
        let all = part.iter().map(|(.., edit)| edit.clone()).collect::<Vec<_>>();
        if commit(&store, all).is_ok() {
            moved.done.extend(part.into_iter().map(|(name, new, _)| (name, new)));
            continue;
        }
        // One that cannot be moved does not keep the others.
        for (name, new, edit) in part {
            match commit(&store, vec![edit]) {
                Ok(()) => moved.done.insert(name, new),
                Err(_) => moved.refused.insert(name, new),
            };
        }
    }
    Ok(moved)
}

fn commit(store: &file::Store, edits: Vec<RefEdit>) -> io::Result<()> {
    let failed = |error: gix_error::Error| io::Error::other(error.to_string());
    let prepared = store.transaction().prepare(edits, PATIENCE, PATIENCE).map_err(failed)?;
    prepared.commit(None).map(drop).map_err(failed)
}

/// Whether the log that a command wrote of a reference says that it began with this value: as git itself compares before it moves one.
fn began_with(upper: &Upper, name: &str, now: Option<&Target>) -> bool {
    let Ok(log) = upper.read(&Path::new("logs").join(name), super::apply::MOST_LOG) else { return false };
    let old = match now {
        None => ObjectId::null(HASH),
        Some(Target::Object(id)) => *id,
        Some(Target::Symbolic(_)) => return false,
    };
    let old = old.to_string();
    log.split(|byte| *byte == b'\n').rev().take(MOST_LINES).any(|line| line.starts_with(old.as_bytes()))
}
