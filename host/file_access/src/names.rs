//! By which other names a file is known on this machine: where its file system is mounted a second time, and what a snapshot is one of.

use base::mountinfo::{self, Table};
use std::path::{Component, Path, PathBuf};

/// Directories that hold snapshots of the directory that they lie in, and how many names lead to one of them: snapper, ZFS, servers of NFS.
const SNAPSHOTS: [(&str, usize); 3] = [(".snapshots", 2), (".zfs", 2), (".snapshot", 1)];
/// The one that commands in cells do not see. The others are made up by file systems, and nothing can be laid over them.
const HIDDEN: &str = ".snapshots";

/// What a path without links names, by this name or by that of another mount.
pub(crate) fn find<T>(path: &Path, find: impl Fn(&Path) -> Option<T>) -> Option<T> {
    find(path).or_else(|| mountinfo::table().names(path).iter().find_map(|name| find(name)))
}

/// The same, also where it is a copy in a snapshot.
pub(crate) fn find_copy<T>(path: &Path, look: impl Fn(&Path) -> Option<T>) -> Option<T> {
    find(path, &look)
        .or_else(|| mountinfo::table().copies(path).iter().find_map(|name| look(name)))
        .or_else(|| look(&original(path)?))
}

/// All names of what a path without links names, and of what it is a copy of; none for what may hold copies of anything.
pub(crate) fn all(mounts: &Table, path: &Path) -> Option<Vec<PathBuf>> {
    let original = original(path);
    if original.is_none() && snapshot_names().any(|name| path.components().any(|part| part.as_os_str() == name)) {
        return None;
    }
    let others = [mounts.names(path), mounts.copies(path)].into_iter().flatten();
    Some([path.to_owned()].into_iter().chain(others).chain(original).collect())
}

/// The names of directories that hold snapshots.
pub(crate) fn snapshot_names() -> impl Iterator<Item = &'static str> {
    SNAPSHOTS.iter().map(|(name, _)| *name)
}

/// Where snapshots of a home may lie.
pub(crate) fn snapshots(home: &Path) -> impl Iterator<Item = PathBuf> {
    home.ancestors().map(|above| above.join(HIDDEN))
}

/// What a path in a snapshot is a copy of.
fn original(path: &Path) -> Option<PathBuf> {
    let mut above = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        let is_one = |(name, _): &&(&str, usize)| part == Component::Normal(name.as_ref());
        if let Some((_, names)) = SNAPSHOTS.iter().find(is_one) {
            parts.nth(names - 1)?;
            return Some(above.join(parts.as_path()));
        }
        above.push(part);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_snapshot_is_what_it_is_a_copy_of() {
        for (path, expected) in [
            ("/home/.snapshots/7/snapshot/u/.ssh/id", Some("/home/u/.ssh/id")),
            ("/.snapshots/7/snapshot/etc/shadow", Some("/etc/shadow")),
            ("/home/u/.zfs/snapshot/daily/.ssh/id", Some("/home/u/.ssh/id")),
            ("/home/.snapshot/hourly.1/u/.netrc", Some("/home/u/.netrc")),
            ("/home/.snapshots", None),
            ("/home/u/.ssh/id", None),
        ] {
            assert_eq!(original(Path::new(path)), expected.map(PathBuf::from), "{path}");
        }
    }
}
