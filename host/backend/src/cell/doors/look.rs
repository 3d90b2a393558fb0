//! A look for sockets and pipes in directories that are in sight. It is bounded, crosses no mount, and is repeated only where the kernel says that
//! something happened.

use super::{Profile, is_door};
use base::disk::{DIRECTORY, open_below};
use base::watches::{Dirty, Told, Watches};
use rustix::fs::{CWD, Dir, FileType, Mode, openat};
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::symlink_metadata;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// How many levels are looked through.
const LEVELS: usize = 3;
/// Directories and entries of each root, the upper ones first.
const MOST_DIRECTORIES: usize = 256;
const MOST_ENTRIES: usize = 4096;
/// Directories that programs fill, and nobody works in.
const PASSED: [&str; 6] = ["node_modules", "target", "__pycache__", ".venv", ".tox", ".cache"];

/// A directory below a root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    root: PathBuf,
    /// Relative to the root.
    at: PathBuf,
    /// 1 for the root itself.
    level: usize,
}

impl Place {
    fn below(&self, name: &OsStr) -> Self {
        Self { root: self.root.clone(), at: self.at.join(name), level: self.level + 1 }
    }

    fn path(&self) -> PathBuf {
        self.root.join(&self.at)
    }
}

/// What was found.
#[derive(Debug)]
pub(super) struct Look {
    has_begun: bool,
    watches: Watches<Place>,
    found: BTreeSet<PathBuf>,
}

impl Default for Look {
    fn default() -> Self {
        Self { has_begun: false, watches: Watches::of(Told::Names), found: BTreeSet::new() }
    }
}

impl Look {
    /// What there is below the directories that a profile writes, and around them. Some of it may be gone.
    pub(super) fn found(&mut self, profile: &Profile) -> &BTreeSet<PathBuf> {
        match self.watches.dirty() {
            Dirty::Places(places) if self.has_begun => {
                for (place, names) in places {
                    for name in names.keys().take(MOST_ENTRIES) {
                        self.look_at(profile, &place, name);
                    }
                }
            }
            Dirty::Places(_) | Dirty::All => {
                self.has_begun = true;
                self.found.clear();
                for root in profile.write.iter().chain(&profile.around) {
                    let (root, at) = (root.clone(), PathBuf::new());
                    self.levels(profile, Place { root, at, level: 1 });
                }
            }
        }
        self.watches.forget();
        self.found.retain(|path| symlink_metadata(path).is_ok_and(|there| is_door(there.file_type())));
        &self.found
    }

    /// Looks at a name that something happened to.
    fn look_at(&mut self, profile: &Profile, place: &Place, name: &OsStr) {
        let path = place.path().join(name);
        let Ok(there) = symlink_metadata(&path) else { return };
        if is_door(there.file_type()) {
            self.found.insert(path);
        } else if there.is_dir() && enters(profile, place, name) {
            self.levels(profile, place.below(name));
        }
    }

    /// Looks at a directory and those in it, and has them watched.
    fn levels(&mut self, profile: &Profile, from: Place) {
        let Ok(top) = openat(CWD, &from.root, DIRECTORY, Mode::empty()) else { return };
        let (mut waiting, mut entries) = (VecDeque::from([from]), 0);
        for _ in 0..MOST_DIRECTORIES {
            let Some(place) = waiting.pop_front() else { return };
            let Ok(directory) = open_below(&top, &place.at, DIRECTORY) else { continue };
            // First: what is made from now on is told by the watch.
            self.watches.add(&directory, place.clone());
            let Ok(listed) = Dir::read_from(&directory) else { continue };
            for entry in listed.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                entries += 1;
                if entries > MOST_ENTRIES {
                    return;
                }
                match entry.file_type() {
                    FileType::Directory if enters(profile, &place, name) => waiting.push_back(place.below(name)),
                    FileType::Socket | FileType::Fifo => _ = self.found.insert(place.path().join(name)),
                    // Not every file system says it in its lists.
                    FileType::Unknown => match symlink_metadata(place.path().join(name)) {
                        Ok(there) if is_door(there.file_type()) => _ = self.found.insert(place.path().join(name)),
                        Ok(there) if there.is_dir() && enters(profile, &place, name) => {
                            waiting.push_back(place.below(name));
                        }
                        Ok(_) | Err(_) => {}
                    },
                    FileType::Directory
                    | FileType::RegularFile
                    | FileType::Symlink
                    | FileType::CharacterDevice
                    | FileType::BlockDevice => {}
                }
            }
        }
    }

    /// Nothing has happened since the last look.
    #[cfg(test)]
    pub(super) fn is_quiet(&mut self) -> bool {
        self.has_begun && self.watches.is_quiet()
    }
}

/// Whether a directory is looked into. Those that can be written are roots themselves, and what is hidden is not in sight.
fn enters(profile: &Profile, place: &Place, name: &OsStr) -> bool {
    if place.level >= LEVELS || PASSED.iter().any(|passed| *passed == name) {
        return false;
    }
    let path = place.path().join(name);
    let is_root = profile.write.iter().chain(&profile.around).any(|root| *root == path);
    !is_root && profile.hide.binary_search(&path).is_err()
}
