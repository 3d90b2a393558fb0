//! The mount namespaces of a cell that an earlier host made, and whose panes are still there.
//!
//! Each pane has a copy of the mounts of its cell, and new mounts of the cell reach it as long as a host keeps the cell. After that, a mount in
//! one pane reaches no other pane: the next host mounts in each of them.

use super::Profile;
use super::living::Namespaces;
use base::text::octal;
use std::fs::{metadata, read, read_dir};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// A mount namespace that no mounts of another one reach: that of a cell, or of a pane which an earlier host made.
pub(crate) struct MountTree {
    pub(crate) namespaces: Arc<Namespaces>,
    mounted: Mounted,
}

impl MountTree {
    /// The mount namespace of a new cell.
    pub(super) fn new(namespaces: Namespaces) -> Self {
        Self { namespaces: Arc::new(namespaces), mounted: Mounted::default() }
    }

    /// How many mounts were over a place when the namespace was found.
    pub(crate) fn had(&self, place: &Path) -> usize {
        let place = place.as_os_str().as_encoded_bytes();
        self.mounted.places.iter().filter(|over| *over == place).count()
    }
}

/// The mounts that a process sees, as mountinfo lists them.
#[derive(Default)]
struct Mounted {
    places: Vec<Vec<u8>>,
    /// The peer groups of its root (mount_namespaces(7)): the one that it shares mounts with, and the one that it gets mounts from.
    shares: Option<String>,
    follows: Option<String>,
}

impl Mounted {
    fn of(pid: &str) -> io::Result<Self> {
        let mut all = Self::default();
        for line in read(format!("/proc/{pid}/mountinfo"))?.split(|byte| *byte == b'\n') {
            let mut fields = line.split(|byte| *byte == b' ').skip(4);
            let Some(place) = fields.next() else { continue };
            if place == b"/" {
                let marks: Vec<&[u8]> = fields.skip(1).take_while(|field| *field != b"-").collect();
                let mark = |name: &str| marks.iter().find_map(|mark| mark.strip_prefix(name.as_bytes()));
                let number = |name| mark(name).map(|number| String::from_utf8_lossy(number).into_owned());
                (all.shares, all.follows) = (number("shared:"), number("master:"));
            }
            all.places.push(octal::unescape(place));
        }
        Ok(all)
    }
}

/// A process, and its mounts.
struct Seen {
    pid: String,
    mounts: u64,
    mounted: Mounted,
}

impl Seen {
    fn follows(&self, other: &Self) -> bool {
        self.mounted.follows.is_some() && self.mounted.follows == other.mounted.shares
    }
}

/// The mount namespaces of the cell that a process is in. The first one is what commands join. `is_there` says whether the number is still that
/// process's.
pub(super) fn trees(profile: &Profile, pid: &str, is_there: impl FnOnce() -> bool) -> io::Result<Vec<MountTree>> {
    let given = Namespaces::of(profile, pid)?;
    // The number is still that process's, so what was opened before belongs to it.
    if !is_there() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let user = given.user()?;
    let mut seen = vec![Seen { pid: pid.to_owned(), mounts: inode(pid, "mnt")?, mounted: Mounted::of(pid)? }];
    for pid in read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let is_of_cell = inode(&pid, "user").is_ok_and(|found| found == user);
        // A process that has just ended has no mounts.
        let mounts = inode(&pid, "mnt").ok().filter(|_| is_of_cell);
        let Some(mounts) = mounts.filter(|mounts| seen.iter().all(|seen| seen.mounts != *mounts)) else { continue };
        seen.extend(Mounted::of(&pid).map(|mounted| Seen { pid, mounts, mounted }));
    }
    let mut first = 0;
    for _ in 0..seen.len() {
        first = seen.iter().position(|other| seen[first].follows(other)).unwrap_or(first);
    }
    seen.swap(0, first);
    let is_apart = |one: &Seen| !seen.iter().any(|other| one.follows(other));
    let apart: Vec<bool> = seen.iter().map(is_apart).collect();
    let mut trees = Vec::new();
    for (number, Seen { pid, mounted, .. }) in seen.into_iter().enumerate().filter(|(number, _)| apart[*number]) {
        // The number of a process may be another one's by now.
        let opened = Namespaces::of(profile, &pid).and_then(|opened| match opened.user()? == user {
            true => Ok(opened),
            false => Err(io::ErrorKind::NotFound.into()),
        });
        match opened {
            Ok(namespaces) => trees.push(MountTree { namespaces: Arc::new(namespaces), mounted }),
            Err(error) if number == 0 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(trees)
}

fn inode(pid: &str, kind: &str) -> io::Result<u64> {
    Ok(metadata(format!("/proc/{pid}/ns/{kind}"))?.ino())
}
