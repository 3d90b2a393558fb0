//! What is mounted where (proc_pid_mountinfo(5)): by which other paths the same files are seen.
//!
//! The kernel tells when something was mounted, so the table is read once and again only then.

use crate::text::octal;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Kinds of file systems that somebody else serves, as they begin.
const REMOTE: [&str; 7] = ["fuse", "nfs", "cifs", "smb", "9p", "ceph", "afs"];

/// A mount.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    /// As `statx` says it.
    pub id: u64,
    /// Major and minor number of the file system.
    pub device: (u32, u32),
    /// Which directory or file of the file system is seen.
    root: PathBuf,
    /// Where.
    pub at: PathBuf,
    kind: String,
}

/// All mounts at one time.
#[derive(Debug, Default)]
pub struct Table {
    /// Another one after each change.
    pub number: u64,
    mounts: Vec<Mount>,
}

/// The table as it is now; an empty one where the system has none.
pub fn table() -> Arc<Table> {
    static LAST: Mutex<Option<(File, Arc<Table>)>> = Mutex::new(None);
    let mut last = LAST.lock();
    if let Some((file, table)) = &*last
        && !has_changed(file)
    {
        return table.clone();
    }
    let number = last.as_ref().map_or(1, |(_, table)| table.number + 1);
    let Some((file, mounts)) = read(last.take().map(|(file, _)| file)) else { return Arc::default() };
    let table = Arc::new(Table { number, mounts });
    *last = Some((file, table.clone()));
    table
}

fn has_changed(file: &File) -> bool {
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(file, PollFlags::PRI)];
    // What cannot be told may have happened.
    poll(&mut polled, Some(&AT_ONCE)).map_or(true, |changed| changed > 0)
}

fn read(before: Option<File>) -> Option<(File, Vec<Mount>)> {
    let mut file = match before {
        Some(file) => file,
        None => File::open("/proc/self/mountinfo").ok()?,
    };
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some((file, text.lines().filter_map(Mount::parsed).collect()))
}

/// A path as `mountinfo` has it: blanks and the like are octal numbers behind a `\`.
pub fn unescaped(text: &str) -> PathBuf {
    OsString::from_vec(octal::unescape(text.as_bytes())).into()
}

impl Mount {
    fn parsed(line: &str) -> Option<Self> {
        let (mount, what) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let id = fields.next()?.parse().ok()?;
        let (major, minor) = fields.nth(1)?.split_once(':')?;
        let (root, at) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let device = (major.parse().ok()?, minor.parse().ok()?);
        Some(Self { id, device, root, at, kind: what.split(' ').next()?.to_owned() })
    }

    /// Whether it is a snapshot by its name in the file system. Those of other kinds are file systems of their own.
    fn is_snapshot(&self) -> bool {
        self.kind == "btrfs" && self.root.to_string_lossy().contains("snapshot")
    }

    /// Where in the file system a path of this mount is.
    fn inner(&self, path: &Path) -> Option<PathBuf> {
        Some(joined(&self.root, path.strip_prefix(&self.at).ok()?))
    }

    /// The path at which this mount shows a place of the file system; none where it does not.
    fn outer(&self, inner: &Path) -> Option<PathBuf> {
        Some(joined(&self.at, inner.strip_prefix(&self.root).ok()?))
    }
}

/// Without a slash at the end, which would follow a link.
fn joined(above: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { above.to_owned() } else { above.join(below) }
}

impl Table {
    #[cfg(test)]
    pub fn of(text: &str) -> Self {
        Self { number: 0, mounts: text.lines().filter_map(Mount::parsed).collect() }
    }

    /// All mounts, each after what it may lie over.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Where a directory or a file of a file system is mounted by itself. Those of other machines may not answer.
    pub fn single(&self) -> impl Iterator<Item = &Path> {
        let is_local = |mount: &&Mount| !REMOTE.iter().any(|kind| mount.kind.starts_with(kind));
        let single = self.mounts.iter().filter(|mount| mount.root != Path::new("/"));
        single.filter(is_local).map(|mount| mount.at.as_path())
    }

    /// The mount that a path without links lies in.
    fn holding(&self, path: &Path) -> Option<&Mount> {
        let holding = self.mounts.iter().filter(|mount| path.starts_with(&mount.at));
        // The last of several at the same place lies over the others.
        holding.max_by_key(|mount| mount.at.components().count())
    }

    /// Other paths at which the same is seen, for one without links: by mounts of the same file system.
    pub fn names(&self, path: &Path) -> Vec<PathBuf> {
        let Some(holding) = self.holding(path) else { return Vec::new() };
        let Some(inner) = holding.inner(path) else { return Vec::new() };
        let others = self.mounts.iter().filter(|mount| mount.device == holding.device);
        let mut names: Vec<PathBuf> =
            others.filter_map(|mount| mount.outer(&inner)).filter(|name| name != path).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Paths at which a copy of it may lie, or which it may be a copy of: in snapshots that are mounted.
    pub fn copies(&self, path: &Path) -> Vec<PathBuf> {
        let Some(holding) = self.holding(path) else { return Vec::new() };
        let Ok(below) = path.strip_prefix(&holding.at) else { return Vec::new() };
        let is_one = |mount: &&Mount| mount.is_snapshot() != holding.is_snapshot() && mount.device == holding.device;
        self.mounts.iter().filter(is_one).map(|mount| joined(&mount.at, below)).collect()
    }

    /// The names in a directory, given without links, at or below which something is mounted, or which are or hold what is mounted elsewhere by
    /// itself. For all other names each path below has the names of the directory, with the same rest.
    pub fn crossed(&self, path: &Path) -> Vec<OsString> {
        let first = |rest: &Path| rest.components().next().map(|name| name.as_os_str().to_owned());
        let inner = self.holding(path).and_then(|holding| Some((holding.device, holding.inner(path)?)));
        let crossed = self.mounts.iter().flat_map(|mount| {
            let over = mount.at.strip_prefix(path).ok().and_then(first);
            let elsewhere = inner.as_ref().filter(|(device, _)| *device == mount.device);
            let elsewhere = elsewhere.and_then(|(_, inner)| mount.root.strip_prefix(inner).ok().and_then(first));
            [over, elsewhere].into_iter().flatten()
        });
        crossed.collect()
    }

    /// Where parts of what lies below a path without links are mounted by themselves.
    pub fn parts<'t>(&'t self, path: &Path) -> impl Iterator<Item = &'t Path> {
        let inner = self.holding(path).and_then(|holding| Some((holding.device, holding.inner(path)?)));
        let is_part = move |mount: &&Mount| {
            inner.as_ref().is_some_and(|(device, inner)| mount.device == *device && mount.root.starts_with(inner))
        };
        let path = path.to_owned();
        self.mounts.iter().filter(is_part).map(|mount| mount.at.as_path()).filter(move |at| !at.starts_with(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:5 / /dev rw - devtmpfs dev rw
30 22 254:0 /home/u /media/the\\040alt rw shared:1 - ext4 /dev/vda rw
31 22 254:0 /home/u/.ssh/keys /mnt/keys rw - ext4 /dev/vda rw
32 22 254:16 / /srv rw - ext4 /dev/vdb rw
40 22 0:40 /@home /home2 rw - btrfs /dev/vdc rw
41 22 0:40 /@snapshots/3/home /mnt/snapshot rw - btrfs /dev/vdc rw
42 22 0:40 / /mnt/top rw - btrfs /dev/vdc rw
";

    fn names(path: &str) -> Vec<String> {
        let names = Table::of(TABLE).names(Path::new(path));
        names.iter().map(|name| name.display().to_string()).collect()
    }

    #[test]
    fn the_same_files_are_found_at_every_mount() {
        for (path, expected) in [
            ("/home/u/.ssh", vec!["/media/the alt/.ssh"]),
            ("/home/u", vec!["/media/the alt"]),
            ("/media/the alt/.ssh", vec!["/home/u/.ssh"]),
            ("/home/u/.ssh/keys/one", vec!["/media/the alt/.ssh/keys/one", "/mnt/keys/one"]),
            ("/mnt/keys/one", vec!["/home/u/.ssh/keys/one", "/media/the alt/.ssh/keys/one"]),
            ("/home/other/.ssh", vec![]),
            ("/srv/home/u/.ssh", vec![]),
            ("/home2/u/.ssh", vec!["/mnt/top/@home/u/.ssh"]),
        ] {
            assert_eq!(names(path), expected, "{path}");
        }
    }

    #[test]
    fn snapshots_hold_copies() {
        let copies = |path: &str| Table::of(TABLE).copies(Path::new(path));
        assert_eq!(copies("/home2/u/.ssh"), [Path::new("/mnt/snapshot/u/.ssh")]);
        assert_eq!(copies("/mnt/snapshot/u/.ssh"), ["/home2/u/.ssh", "/mnt/top/u/.ssh"].map(PathBuf::from));
        assert_eq!(copies("/home/u/.ssh"), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_mounted_of_a_place_is_part_of_it() {
        let table = Table::of(TABLE);
        let parts = |path: &str| table.parts(Path::new(path)).map(Path::to_owned).collect::<Vec<_>>();
        assert_eq!(parts("/home/u/.ssh"), [Path::new("/mnt/keys")]);
        assert_eq!(parts("/home/u/.ssh/keys"), [Path::new("/mnt/keys")]);
        assert_eq!(parts("/mnt/keys"), Vec::<PathBuf>::new());
        assert_eq!(parts("/home/u/.aws"), Vec::<PathBuf>::new());
        assert_eq!(parts("/srv/x"), Vec::<PathBuf>::new());
    }

    #[test]
    fn names_at_which_mounts_begin_or_lead_elsewhere_are_crossed() {
        let crossed = |path: &str| Table::of(TABLE).crossed(Path::new(path));
        assert_eq!(crossed("/home/u"), [".ssh"]);
        assert_eq!(crossed("/home/u/.ssh"), ["keys"]);
        assert_eq!(crossed("/mnt"), ["keys", "snapshot", "top"]);
        assert_eq!(crossed("/home/other"), Vec::<OsString>::new());
        assert!(crossed("/").contains(&"srv".into()));
    }

    #[test]
    fn the_table_of_this_system_is_read_once() {
        let first = table();
        assert!(first.mounts().iter().any(|mount| mount.at == Path::new("/")), "{first:?}");
        assert!(Arc::ptr_eq(&first, &table()) || table().number > first.number);
    }
}
