//! What a workspace was when it was last looked at: each file with what the system says of it, and the object that it is.
//!
//! A directory that has not changed is not listed again, a file that has not changed is not read again. It is a file of ours beside the objects.
//! One that does not fit to them is passed over: all is read again.

use super::objects::{ID_BYTES, Id};
use rustix::fs::Stat;
use std::borrow::Cow;
use std::collections::HashMap;

const MARK: &[u8; 16] = b"toolcrib stats 1";

/// By what it is known that something has not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    pub(super) size: u64,
    modified: i64,
    pub(super) changed: i64,
}

impl Stamp {
    pub(super) fn of(found: &Stat) -> Self {
        let time = |seconds: i64, nanos: u64| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos.cast_signed());
        Self {
            inode: found.st_ino,
            size: found.st_size.cast_unsigned(),
            modified: time(found.st_mtime, found.st_mtime_nsec),
            changed: time(found.st_ctime, found.st_ctime_nsec),
        }
    }

    /// The same, if a later change would have another one: nothing changed since this time. Otherwise one that nothing has.
    pub(super) fn settled(self, since: i64) -> Self {
        if self.changed < since { self } else { Self { inode: 0, ..self } }
    }
}

/// What something is, as trees have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// With its permissions.
    File(u16),
    Link,
    Directory,
    /// A file or directory that is there, and not kept.
    Absent,
}

/// One name of a directory.
#[derive(Clone, Debug)]
pub(super) struct Item<'b> {
    pub(super) name: Cow<'b, [u8]>,
    pub(super) what: What,
    pub(super) stamp: Stamp,
    /// Of a file or a link.
    pub(super) id: Id,
}

/// The files by which names are left out: `.rgignore`, `.ignore`, `.gitignore`, and `info/exclude` of a repository.
pub(super) type RuleStamps = [Option<Stamp>; 4];

/// A directory.
#[derive(Clone, Debug)]
pub(super) struct Directory<'b> {
    /// Below the workspace.
    pub(super) path: Cow<'b, [u8]>,
    pub(super) stamp: Stamp,
    pub(super) has_git: bool,
    pub(super) rules: RuleStamps,
    pub(super) items: Vec<Item<'b>>,
}

/// All of it.
pub(super) struct Stats<'b> {
    /// The packs that the objects are in, by name and size.
    pub(super) packs: Vec<(&'b str, u64)>,
    /// The digest of the rules that hold everywhere.
    pub(super) rules: Id,
    pub(super) tree: Id,
    /// Where each directory is, by its path.
    directories: HashMap<&'b [u8], &'b [u8]>,
}

impl<'b> Stats<'b> {
    pub(super) fn parse(bytes: &'b [u8]) -> Option<Self> {
        let mut from = Reader(bytes.strip_prefix(MARK)?);
        let count = from.u32()?;
        let packs = (0..count)
            .map(|_| {
                let length = from.u16()?;
                Some((std::str::from_utf8(from.take(length.into())?).ok()?, from.u64()?))
            })
            .collect::<Option<_>>()?;
        let (rules, tree) = (from.id()?, from.id()?);
        let count = from.u32()?;
        let mut directories = HashMap::with_capacity(count.min(1 << 20) as usize);
        for _ in 0..count {
            let length = from.u32()?;
            let mut directory = Reader(from.take(length as usize)?);
            let path = directory.u16()?;
            let path = directory.take(path.into())?;
            directories.insert(path, directory.0);
        }
        from.0.is_empty().then_some(Self { packs, rules, tree, directories })
    }

    /// How many directories there were.
    pub(super) fn count(&self) -> usize {
        self.directories.len()
    }

    pub(super) fn directory(&self, path: &[u8]) -> Option<Directory<'b>> {
        let (&path, &bytes) = self.directories.get_key_value(path)?;
        let mut from = Reader(bytes);
        let (stamp, has_git) = (from.stamp()?, from.u8()? != 0);
        let mut rules = RuleStamps::default();
        for rule in &mut rules {
            *rule = if from.u8()? == 0 { None } else { Some(from.stamp()?) };
        }
        let count = from.u32()?;
        let mut items = Vec::with_capacity(count.min(1 << 20) as usize);
        for _ in 0..count {
            let what = match (from.u8()?, from.u16()?) {
                (0, mode) => What::File(mode),
                (1, _) => What::Link,
                (2, _) => What::Directory,
                (3, _) => What::Absent,
                _ => return None,
            };
            let (stamp, id, length) = (from.stamp()?, from.id()?, from.u16()?);
            items.push(Item { name: from.take(length.into())?.into(), what, stamp, id });
        }
        Some(Directory { path: Cow::Borrowed(path), stamp, has_git, rules, items })
    }
}

/// The same as bytes.
pub(super) fn write<'s>(
    packs: impl Iterator<Item = (&'s str, u64)>,
    rules: &Id,
    tree: &Id,
    directories: &[Directory<'_>],
) -> Vec<u8> {
    let mut rest = Vec::new();
    rest.extend(rules);
    rest.extend(tree);
    rest.extend((directories.len() as u32).to_le_bytes());
    for directory in directories {
        let at = rest.len();
        rest.extend([0; 4]);
        text(&directory.path, &mut rest);
        stamp(&directory.stamp, &mut rest);
        rest.push(directory.has_git.into());
        for rule in &directory.rules {
            rest.push(rule.is_some().into());
            if let Some(rule) = rule {
                stamp(rule, &mut rest);
            }
        }
        rest.extend((directory.items.len() as u32).to_le_bytes());
        for item in &directory.items {
            let (what, mode) = match item.what {
                What::File(mode) => (0, mode),
                What::Link => (1, 0),
                What::Directory => (2, 0),
                What::Absent => (3, 0),
            };
            rest.push(what);
            rest.extend(u16::to_le_bytes(mode));
            stamp(&item.stamp, &mut rest);
            rest.extend(item.id);
            text(&item.name, &mut rest);
        }
        let length = (rest.len() - at - 4) as u32;
        rest[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    with_packs(packs, &rest)
}

/// The same with other packs.
pub(super) fn repacked<'s>(bytes: &[u8], packs: impl Iterator<Item = (&'s str, u64)>) -> Option<Vec<u8>> {
    let mut from = Reader(bytes.strip_prefix(MARK)?);
    for _ in 0..from.u32()? {
        let length = from.u16()?;
        from.take(length.into())?;
        from.u64()?;
    }
    Some(with_packs(packs, from.0))
}

fn with_packs<'s>(packs: impl Iterator<Item = (&'s str, u64)>, rest: &[u8]) -> Vec<u8> {
    let packs: Vec<_> = packs.collect();
    let mut bytes = MARK.to_vec();
    bytes.extend((packs.len() as u32).to_le_bytes());
    for (name, size) in packs {
        text(name.as_bytes(), &mut bytes);
        bytes.extend(size.to_le_bytes());
    }
    bytes.extend(rest);
    bytes
}

/// A name or path: the kernel has none that is longer.
fn text(text: &[u8], to: &mut Vec<u8>) {
    to.extend((text.len() as u16).to_le_bytes());
    to.extend(&text[..usize::from(text.len() as u16)]);
}

fn stamp(stamp: &Stamp, to: &mut Vec<u8>) {
    for part in [stamp.inode, stamp.size, stamp.modified.cast_unsigned(), stamp.changed.cast_unsigned()] {
        to.extend(part.to_le_bytes());
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn id(&mut self) -> Option<Id> {
        self.array::<ID_BYTES>()
    }

    fn stamp(&mut self) -> Option<Stamp> {
        let (inode, size) = (self.u64()?, self.u64()?);
        Some(Stamp { inode, size, modified: self.u64()?.cast_signed(), changed: self.u64()?.cast_signed() })
    }
}
