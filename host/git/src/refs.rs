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
pub(crate) const MOST_PACKED: u64 = 256 << 20;
const PATIENCE: Fail = Fail::AfterDurationWithBackoff(Duration::from_secs(2));

/// References by their full names, as they are or were.
pub(crate) type Refs = BTreeMap<String, Target>;
/// The same of those that a command changed; none where it removed one.
pub(crate) type Moves = BTreeMap<String, Option<Target>>;

/// All that a git directory has of its own, and which is checked out there.
pub(crate) fn all(real: &Real) -> Refs {
    let packed = real.read(Path::new("packed-refs"), MOST_PACKED).and_then(packed_in).unwrap_or_default();
    let mut all: Refs = packed.into_iter().map(|(name, id)| (name, Target::Object(id))).collect();
    let loose = real.files(Path::new("refs")).unwrap_or_default();
    for path in loose.into_iter().chain([PathBuf::from("HEAD")]) {
        // What is no reference cannot be moved either.
        let found = path.to_str().and_then(|name| {
            let content = real.read(&path, MOST_LOOSE).ok().flatten()?;
            Some((name.to_owned(), target(name, &content).ok()?))
        });
        all.extend(found);
    }
    all
}

/// Where the references of a git directory are.
pub(crate) struct Places<'p> {
    pub real: &'p Real,
    /// That of the repository, where this is a working tree's.
    pub common: Option<&'p Real>,
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

/// What commands made of references.
pub(crate) struct Made {
    moves: Moves,
    /// What is no reference.
    pub odd: Vec<String>,
}

/// Finds what commands made of references, by the entries that are about them, of which some were taken over before. `then` is what there was
/// when they began, where that is known.
pub(crate) fn made(entries: &[&Entry], upper: &Upper, places: &Places<'_>, then: Option<&Refs>) -> io::Result<Made> {
    let (mut moves, mut odd, mut done) = (Moves::new(), Vec::new(), BTreeSet::new());
    let is_packed = |entry: &&&Entry| entry.path == Path::new("packed-refs");
    let packed_entry = entries.iter().find(is_packed);
    let is_packed_anew = packed_entry.is_some_and(|entry| !entry.is_done);
    let own_packed = match packed_entry.map(|entry| entry.change) {
        None => None,
        Some(Change::File) => Some(packed_in(Some(upper.read(Path::new("packed-refs"), MOST_PACKED)?))?),
        Some(Change::Removed) => Some(BTreeMap::new()),
        Some(Change::Directory { .. } | Change::Odd) => return Err(io::Error::other("`packed-refs` is no file")),
    };
    let real_packed = packed_in(places.real.read(Path::new("packed-refs"), MOST_PACKED)?)?;
    let packed = own_packed.as_ref().unwrap_or(&real_packed);
    let packed_value = |name: &str| packed.get(name).copied().map(Target::Object);
    let gone_at = |name: &str| -> io::Result<BTreeSet<String>> {
        let then = then.into_iter().flat_map(Refs::keys).filter(|other| Path::new(other).starts_with(name));
        Ok(gone(places.real, Path::new(name))?.into_iter().chain(then.cloned()).collect())
    };
    for entry in entries.iter().filter(|entry| !is_packed(entry)) {
        let Some(name) = entry.path.to_str() else {
            odd.push(entry.path.display().to_string());
            continue;
        };
        match entry.change {
            Change::File => match read(upper, name) {
                Ok(target) => {
                    // It may be in the place of a directory of others.
                    for gone in gone_at(name)? {
                        moves.entry(gone.clone()).or_insert_with(|| packed_value(&gone));
                    }
                    moves.insert(name.to_owned(), Some(target));
                    if entry.is_done {
                        done.insert(name.to_owned());
                    }
                }
                Err(_) if entry.is_done => {}
                Err(_) => odd.push(name.to_owned()),
            },
            Change::Removed | Change::Directory { is_new: true } => {
                for gone in gone_at(name)? {
                    moves.entry(gone.clone()).or_insert_with(|| packed_value(&gone));
                    // What is packed now may be another value.
                    if entry.is_done && !is_packed_anew {
                        done.insert(gone);
                    }
                }
            }
            Change::Odd if !entry.is_done => odd.push(name.to_owned()),
            Change::Directory { is_new: false } | Change::Odd => {}
        }
    }
    if let Some(packed) = &own_packed {
        let before = then.map_or_else(|| real_packed.keys().collect::<BTreeSet<_>>(), |then| then.keys().collect());
        for name in before.into_iter().chain(packed.keys()).filter(|name| name.starts_with("refs/")) {
            // A loose one counts before it.
            if !moves.contains_key(name) && !places.real.has(Path::new(name)) {
                moves.insert(name.clone(), packed_value(name));
            }
        }
    }
    moves.retain(|name, new| !done.contains(name) && then.is_none_or(|then| then.get(name) != new.as_ref()));
    Ok(Made { moves, odd })
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

/// What came of moving references.
#[derive(Default)]
pub(crate) struct Moved {
    pub done: Moves,
    /// Somebody else moved them meanwhile, or holds their locks.
    pub refused: Moves,
}

/// Moves references in the real repository. `was_changed` says of a path whether somebody else wrote there meanwhile, where it is not known what
/// there was.
pub(crate) fn apply(
    made: Made,
    upper: &Upper,
    places: &Places<'_>,
    then: Option<&Refs>,
    was_changed: impl Fn(&Path) -> bool,
) -> io::Result<Moved> {
    let store = places.store();
    let mut moved = Moved::default();
    let mut edits = Vec::new();
    for (name, new) in made.moves {
        let full = full_name(&name)?;
        let now = store.try_find(&full).map_err(|error| io::Error::other(error.to_string()))?.map(|found| found.target);
        if now == new {
            moved.done.insert(name, new);
            continue;
        }
        let is_as_then = match then {
            Some(then) => then.get(&name) == now.as_ref(),
            None => !was_changed(Path::new(&name)),
        };
        let is_gone = now.is_none() && then.is_some_and(|then| then.contains_key(&name));
        let is_ours = is_as_then || !is_gone && began_with(upper, places.real, &name, now.as_ref());
        if !is_ours {
            moved.refused.insert(name, new);
            continue;
        }
        let expected = match now.clone() {
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
        edits.push((name, new, Step { edit: RefEdit::new(full, change), from: now }));
    }
    // What goes makes room for names below or above it.
    let (removed, set): (Vec<_>, Vec<_>) = edits.into_iter().partition(|(_, new, _)| new.is_none());
    for part in [removed, set] {
        if part.is_empty() {
            continue;
        }
        let all: Vec<&Step> = part.iter().map(|(.., step)| step).collect();
        if commit(places, &all).is_ok() {
            moved.done.extend(part.into_iter().map(|(name, new, _)| (name, new)));
            continue;
        }
        // One that cannot be moved does not keep the others.
        for (name, new, step) in part {
            // It may have been the one that was moved before another one could not be.
            let is_done = || places.store().try_find(&step.edit.name).is_ok_and(|now| now.map(|now| now.target) == new);
            let all = if commit(places, &[&step]).is_ok() || is_done() { &mut moved.done } else { &mut moved.refused };
            all.insert(name, new);
        }
    }
    Ok(moved)
}

/// One change of a reference, and the value that it is to have until then.
struct Step {
    edit: RefEdit,
    from: Option<Target>,
}

fn commit(places: &Places<'_>, steps: &[&Step]) -> io::Result<()> {
    let failed = |error: gix_error::Error| io::Error::other(error.to_string());
    let edits: Vec<RefEdit> = steps.iter().map(|step| step.edit.clone()).collect();
    let store = places.store();
    let prepared = store.transaction().prepare(edits, PATIENCE, PATIENCE).map_err(failed)?;
    // What is compared before each lock is held may have been packed, and moved, by then.
    let now = places.store();
    for Step { edit, from } in steps {
        if now.try_find(&edit.name).map_err(failed)?.map(|found| found.target) != *from {
            return Err(io::ErrorKind::WouldBlock.into());
        }
    }
    prepared.commit(None).map(drop).map_err(failed)
}

/// Whether what a command added to the log of a reference begins with this value: as git itself compares before it moves one.
fn began_with(upper: &Upper, real: &Real, name: &str, now: Option<&Target>) -> bool {
    let path = Path::new("logs").join(name);
    let Ok(log) = upper.read(&path, super::apply::MOST_LOG) else { return false };
    let real = real.read(&path, super::apply::MOST_LOG).ok().flatten().unwrap_or_default();
    let old = match now {
        None => ObjectId::null(HASH),
        Some(Target::Object(id)) => *id,
        Some(Target::Symbolic(_)) => return false,
    };
    log[super::apply::common_lines(&log, &real)..].starts_with(old.to_string().as_bytes())
}
