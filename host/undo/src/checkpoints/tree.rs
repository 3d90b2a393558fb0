//! Trees as git has them (gitformat-pack(5), git-mktree(1)): names in order, each with a mode and an object; and how two of them differ.
//!
//! A file has its own permissions there, and one that is not kept is a commit that nobody has, as a repository within another is. No name leads
//! out of its directory, or into a git directory, whatever a tree says.

use super::objects::{ID_BYTES, Id, Kind, Objects};
use backend::search::rules::{GITIGNORE, IGNORE, Level, RGIGNORE, Rules, Texts};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DIRECTORY: u32 = 0o040_000;
const COMMIT: u32 = 0o160_000;
/// Permissions that are kept. None of them gives rights of others.
pub(super) const MODE: u16 = 0o777;
/// How deep a tree may be.
pub(super) const DEEPEST: usize = 256;

/// What has a name in a workspace at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Nothing,
    /// With its permissions.
    File(u16, Id),
    Link(Id),
    Directory(Id),
    /// It is there, and not kept.
    Absent,
}

/// What is no name of a file that is kept, or put back.
pub(super) fn is_closed(name: &[u8]) -> bool {
    name.is_empty()
        || name == b"."
        || name == b".."
        || name.eq_ignore_ascii_case(b".git")
        || name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Writes a tree of these.
pub(super) fn write(entries: &mut [(&[u8], Side)]) -> Vec<u8> {
    let key = |(name, side): &(&[u8], Side)| {
        let mut key = name.to_vec();
        key.extend(matches!(side, Side::Directory(_)).then_some(b'/'));
        key
    };
    entries.sort_by_cached_key(key);
    let mut tree = Vec::new();
    for (name, side) in entries {
        let (mode, id) = match side {
            Side::Nothing => continue,
            Side::File(mode, id) => (FILE | u32::from(*mode), *id),
            Side::Link(id) => (LINK, *id),
            Side::Directory(id) => (DIRECTORY, *id),
            Side::Absent => (COMMIT, Kind::Blob.id(b"not kept")),
        };
        tree.extend(format!("{mode:o} ").bytes());
        tree.extend(*name);
        tree.push(0);
        tree.extend(id);
    }
    tree
}

/// Reads a tree, by name.
fn parse(tree: &[u8]) -> io::Result<Vec<(&[u8], Side)>> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let (mut rest, mut entries) = (tree, Vec::new());
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(bad)?;
        let (head, after) = rest.split_at(end);
        let space = head.iter().position(|byte| *byte == b' ').ok_or_else(bad)?;
        let mode = std::str::from_utf8(&head[..space]).ok().and_then(|mode| u32::from_str_radix(mode, 8).ok());
        let (name, mode) = (&head[space + 1..], mode.ok_or_else(bad)?);
        let (id, after) = after[1..].split_at_checked(ID_BYTES).ok_or_else(bad)?;
        let id: Id = id.try_into().map_err(|_| bad())?;
        let side = match mode & 0o170_000 {
            FILE => Side::File(mode as u16 & MODE, id),
            LINK => Side::Link(id),
            DIRECTORY => Side::Directory(id),
            COMMIT => Side::Absent,
            _ => return Err(bad()),
        };
        if is_closed(name) {
            return Err(bad());
        }
        entries.push((name, side));
        rest = after;
    }
    entries.sort_unstable_by_key(|(name, _)| *name);
    if entries.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(bad());
    }
    Ok(entries)
}

/// What has another content, or is there only at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Below the workspace.
    pub path: PathBuf,
    /// In the checkpoint.
    pub then: Side,
    pub now: Side,
}

/// What a tree has, without what lies deeper.
pub(super) fn sides(objects: &Objects, tree: &Id) -> io::Result<Vec<Side>> {
    let tree = objects.read(tree, Kind::Tree)?;
    Ok(parse(&tree)?.into_iter().map(|(_, side)| side).collect())
}

/// Calls with each path of a tree that is kept.
pub(super) fn each(objects: &Objects, tree: &Id, visit: &mut dyn FnMut(PathBuf, Side)) -> io::Result<()> {
    each_below(objects, tree, Path::new(""), 0, visit)
}

fn each_below(
    objects: &Objects,
    tree: &Id,
    path: &Path,
    depth: usize,
    visit: &mut dyn FnMut(PathBuf, Side),
) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    for (name, side) in parse(&objects.read(tree, Kind::Tree)?)? {
        let path = path.join(OsStr::from_bytes(name));
        if let Side::Directory(id) = side {
            each_below(objects, &id, &path, depth + 1, visit)?;
        }
        visit(path, side);
    }
    Ok(())
}

/// Compares two trees. A file that the rules of the first leave out is not said to be new in the second.
pub(super) struct Compared<'o> {
    pub(super) objects: &'o Objects,
    pub(super) rules: &'o Rules,
    /// Where the workspace is.
    pub(super) root: &'o Path,
    pub(super) found: Vec<Difference>,
}

impl Compared<'_> {
    pub(super) fn trees(&mut self, then: &Id, now: &Id) -> io::Result<()> {
        self.directories(Path::new(""), Some(then), Some(now), None, 0)
    }

    fn directories(
        &mut self,
        path: &Path,
        then: Option<&Id>,
        now: Option<&Id>,
        level: Option<Arc<Level>>,
        depth: usize,
    ) -> io::Result<()> {
        if then == now {
            return Ok(());
        }
        if depth > DEEPEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let objects = self.objects;
        let read = |id: Option<&Id>| id.map_or(Ok(Vec::new()), |id| objects.read(id, Kind::Tree));
        let (then, now) = (read(then)?, read(now)?);
        let (then, now) = (parse(&then)?, parse(&now)?);
        let level = self.level(path, &then, level)?;
        let find = |entries: &[(&[u8], Side)], name: &[u8]| {
            let at = entries.binary_search_by_key(&name, |(name, _)| *name);
            at.map_or(Side::Nothing, |at| entries[at].1)
        };
        let mut names: Vec<&[u8]> = then.iter().chain(&now).map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (then, now) = (find(&then, name), find(&now, name));
            // One that was not kept, or is not, is left as it is.
            if then == now || then == Side::Absent || now == Side::Absent {
                continue;
            }
            let below = path.join(OsStr::from_bytes(name));
            let is_directory = matches!(now, Side::Directory(_));
            let whole = self.root.join(&below);
            if then == Side::Nothing && self.rules.skips(level.as_deref(), &whole, name, is_directory) {
                continue;
            }
            let is_one = |side: Side| if let Side::Directory(id) = side { Some(id) } else { None };
            match (is_one(then), is_one(now)) {
                (None, None) => self.found.push(Difference { path: below, then, now }),
                (Some(then), Some(now)) => {
                    self.directories(&below, Some(&then), Some(&now), level.clone(), depth + 1)?;
                }
                (then_id, now_id) => {
                    self.directories(&below, then_id.as_ref(), now_id.as_ref(), level.clone(), depth + 1)?;
                    self.found.push(Difference { path: below, then, now });
                }
            }
        }
        Ok(())
    }

    /// The rules of a directory as they were.
    fn level(&self, path: &Path, then: &[(&[u8], Side)], above: Option<Arc<Level>>) -> io::Result<Option<Arc<Level>>> {
        let text = |wanted: &str| {
            let found = then.iter().find(|(name, _)| *name == wanted.as_bytes());
            match found {
                Some((_, Side::File(_, id))) => self.objects.read(id, Kind::Blob).map(Some),
                _ => Ok(None),
            }
        };
        let texts = Texts {
            rgignore: text(RGIGNORE)?,
            ignore: text(IGNORE)?,
            git: text(GITIGNORE)?,
            exclude: None,
            has_git: path.as_os_str().is_empty(),
        };
        Ok(Level::below(above, &self.root.join(path), &texts))
    }
}
