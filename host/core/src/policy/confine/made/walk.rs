//! A look at directories that commands write in: what has changed there since a time, of all that matters later.
//!
//! It is bounded, so that it takes no longer than commands do, and follows no link: what a command left running may swap names meanwhile.

use super::Stamp;
use crate::disk::{DIRECTORY, open_below};
use crate::watches::Watches;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, Statx, StatxFlags, StatxTimestamp, openat, statx};
use rustix::io;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How many levels are looked through.
const LEVELS: usize = 3;
/// Directories and entries that one look reads, the upper ones first.
const MOST_DIRECTORIES: usize = 256;
const MOST_ENTRIES: usize = 4096;
/// Entries that are looked at of a directory which matters as a whole.
const MOST_WITHIN: usize = 64;
/// Repositories that are known.
const MOST_REPOSITORIES: usize = 4096;
/// Directories that programs fill, and nobody works in.
const PASSED: [&[u8]; 6] = [b"node_modules", b"target", b"__pycache__", b".venv", b".tox", b".cache"];
const SET_ID: u16 = 0o6000;

/// A directory in one that can be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) root: PathBuf,
    /// Relative to the root.
    pub(super) at: PathBuf,
    /// 1 for the root itself.
    pub(super) level: usize,
}

/// The inodes of repositories, by their paths.
pub(super) type Repositories = HashMap<PathBuf, u64>;

/// What was made.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) path: PathBuf,
    pub(super) how: How,
    pub(super) when: Stamp,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum How {
    Created,
    /// It is older than that, and so was moved there or changed where it is.
    Changed,
    /// Whoever runs it gets rights of others.
    SetId,
    /// Something that it lies in says it all.
    Within,
}

/// A look at one directory that can be written, and what it has found so far.
pub(super) struct Walk<'w> {
    root: &'w Path,
    /// What matters, relative to each directory.
    names: &'w [String],
    since: Stamp,
    /// The repositories that there were before, where that is known.
    before: Option<&'w Repositories>,
    /// What looks before this one found.
    last: &'w [Made],
    watches: &'w mut Watches<Place>,
    directories: usize,
    entries: usize,
    pub(super) made: Vec<Made>,
    pub(super) repositories: Repositories,
}

impl<'w> Walk<'w> {
    pub(super) fn new(
        root: &'w Path,
        names: &'w [String],
        since: Stamp,
        before: Option<&'w Repositories>,
        last: &'w [Made],
        watches: &'w mut Watches<Place>,
    ) -> Self {
        let (made, repositories) = (Vec::new(), before.cloned().unwrap_or_default());
        Self { root, names, since, before, last, watches, directories: 0, entries: 0, made, repositories }
    }

    /// Looks at all that is there.
    pub(super) fn whole(&mut self) {
        if let Ok(top) = openat(CWD, self.root, DIRECTORY, Mode::empty()) {
            self.levels(&top, PathBuf::from("."), 1);
        }
    }

    /// Looks at these names in one directory, and at what matters there.
    pub(super) fn part(&mut self, Place { at, level, .. }: &Place, names: &BTreeSet<OsString>) {
        let Ok(top) = openat(CWD, self.root, DIRECTORY, Mode::empty()) else { return };
        let Ok(directory) = open_below(&top, at, DIRECTORY) else { return };
        self.named(&directory, at, *level);
        for name in names.iter().take(MOST_ENTRIES) {
            if self.matters(name.as_bytes()) {
                continue;
            }
            let Ok(found) = look_at(&directory, name) else { continue };
            match FileType::from_raw_mode(found.stx_mode.into()) {
                FileType::Directory if enters(name.as_bytes(), *level) => self.levels(&top, at.join(name), level + 1),
                FileType::RegularFile => self.set_id(at, name, &found),
                FileType::Directory
                | FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
        }
    }

    /// Looks at a directory and those in it, as far as levels and bounds go, and has them watched.
    fn levels(&mut self, top: &OwnedFd, from: PathBuf, level: usize) {
        let mut waiting = VecDeque::from([(from, level)]);
        while let Some((at, level)) = waiting.pop_front().filter(|_| self.directories < MOST_DIRECTORIES) {
            self.directories += 1;
            let Ok(directory) = open_below(top, &at, DIRECTORY) else { continue };
            // First: what is made from now on is told by the watch.
            self.watches.add(&directory, self.place(&at, level), false);
            // By name, so that none is missed where there are too many others.
            self.named(&directory, &at, level);
            let Ok(listed) = Dir::read_from(&directory) else { continue };
            for entry in listed.flatten() {
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." || self.matters(name) {
                    continue;
                }
                self.entries += 1;
                if self.entries > MOST_ENTRIES {
                    break;
                }
                match entry.file_type() {
                    FileType::Directory if enters(name, level) => {
                        waiting.push_back((at.join(OsStr::from_bytes(name)), level + 1));
                    }
                    // Nothing is to be told yet where this is the first look.
                    FileType::RegularFile | FileType::Unknown if self.before.is_some() => {
                        let name = OsStr::from_bytes(name);
                        if let Ok(found) = look_at(&directory, name) {
                            self.set_id(&at, name, &found);
                        }
                    }
                    FileType::RegularFile
                    | FileType::Unknown
                    | FileType::Directory
                    | FileType::Symlink
                    | FileType::Fifo
                    | FileType::Socket
                    | FileType::CharacterDevice
                    | FileType::BlockDevice => {}
                }
            }
        }
    }

    /// Whether a name is one that matters, or the directory of some.
    fn matters(&self, name: &[u8]) -> bool {
        self.names.iter().any(|other| first(other).as_bytes() == name)
    }

    /// A file that gives rights to whoever runs it.
    fn set_id(&mut self, at: &Path, name: &OsStr, found: &Statx) {
        if found.stx_mode & SET_ID != 0 && FileType::from_raw_mode(found.stx_mode.into()).is_file() {
            let how = self.has_changed(found).map(|_| How::SetId);
            self.note(at, Path::new(name), found, how);
        }
    }

    /// What matters by its name in one directory.
    fn named(&mut self, directory: &OwnedFd, at: &Path, level: usize) {
        for name in self.names {
            let holder = first(name);
            let is_told = match holder == name {
                true => false,
                false => match self.holder(directory, at, level, holder) {
                    Some(is_new) => is_new,
                    None => continue,
                },
            };
            let Ok(found) = look_at(directory, name) else { continue };
            let is_directory = FileType::from_raw_mode(found.stx_mode.into()).is_dir();
            let how = self.has_changed(&found).map(|how| match how {
                _ if is_told => How::Within,
                How::Created if is_directory && self.is_known(at, name, &found) => How::Changed,
                how => how,
            });
            let says_all = is_told || how == Some(How::Created);
            // A directory has changed as well when something was made in it.
            if !is_directory || !self.within(directory, at, level, name, says_all) || says_all {
                self.note(at, Path::new(name), &found, how);
            }
        }
    }

    /// Whether what holds names that matter is new, where it is there: a `.git`, which may be a file or a link, too. That says it all.
    fn holder(&mut self, directory: &OwnedFd, at: &Path, level: usize, name: &str) -> Option<bool> {
        let found = look_at(directory, name).ok()?;
        let place = at.join(name);
        let is_other = self.before.is_some_and(|before| before.get(&place) != Some(&found.stx_ino));
        if self.repositories.len() < MOST_REPOSITORIES || self.repositories.contains_key(&place) {
            self.repositories.insert(place, found.stx_ino);
        }
        let is_directory = FileType::from_raw_mode(found.stx_mode.into()).is_dir();
        if is_directory && let Ok(inner) = open_below(directory, Path::new(name), DIRECTORY) {
            self.watches.add(&inner, self.place(at, level), true);
        }
        // What is written in a directory changes it, too.
        let is_new = |how: &How| *how == How::Created && !self.is_known(at, name, &found);
        let how = self.has_changed(&found).filter(|how| is_new(how) || is_other || !is_directory);
        self.note(at, Path::new(name), &found, how);
        Some(how.is_some())
    }

    /// What was changed in a directory that matters as a whole; `is_told` where that is said of the directory itself. Returns whether anything was.
    fn within(&mut self, directory: &OwnedFd, at: &Path, level: usize, name: &str, is_told: bool) -> bool {
        let Ok(inner) = open_below(directory, Path::new(name), DIRECTORY) else { return false };
        self.watches.add(&inner, self.place(at, level), true);
        let Ok(listed) = Dir::read_from(&inner) else { return false };
        let mut is_any = false;
        for entry in listed.flatten().take(MOST_WITHIN) {
            let file = OsStr::from_bytes(entry.file_name().to_bytes());
            if file != "."
                && file != ".."
                && let Ok(found) = look_at(&inner, file)
            {
                let how = self.has_changed(&found).map(|how| if is_told { How::Within } else { how });
                is_any |= how.is_some();
                self.note(at, &Path::new(name).join(file), &found, how);
            }
        }
        is_any
    }

    fn place(&self, at: &Path, level: usize) -> Place {
        Place { root: self.root.to_owned(), at: at.to_owned(), level }
    }

    fn has_changed(&self, found: &Statx) -> Option<How> {
        let knows_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        if stamp(found.stx_ctime) < self.since {
            None
        } else if knows_birth && stamp(found.stx_btime) >= self.since {
            Some(How::Created)
        } else {
            Some(How::Changed)
        }
    }

    /// Whether a look before has found this directory, and not one that was there under its name: that it is new was told, and says no more
    /// what is made in it.
    fn is_known(&self, at: &Path, name: &str, found: &Statx) -> bool {
        let path = self.path(at, Path::new(name));
        self.last.iter().any(|made| made.path == path && stamp(found.stx_btime) <= made.when)
    }

    fn path(&self, at: &Path, name: &Path) -> PathBuf {
        self.root.join(at.strip_prefix(".").unwrap_or(at)).join(name)
    }

    fn note(&mut self, at: &Path, name: &Path, found: &Statx, how: Option<How>) {
        if let Some(how) = how {
            let (path, when) = (self.path(at, name), stamp(found.stx_ctime));
            // A directory may be looked at twice: by what happened in it, and in the one above.
            if !self.made.iter().any(|made| made.path == path) {
                self.made.push(Made { path, how, when });
            }
        }
    }
}

fn first(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// Whether a directory of this name is looked into, in one of this level.
fn enters(name: &[u8], level: usize) -> bool {
    level < LEVELS && !PASSED.contains(&name)
}

fn stamp(at: StatxTimestamp) -> Stamp {
    (at.tv_sec, i64::from(at.tv_nsec))
}

fn look_at(directory: impl AsFd, name: impl rustix::path::Arg) -> io::Result<Statx> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::CTIME | StatxFlags::BTIME;
    statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    fn made(root: &Path, since: Stamp) -> Vec<PathBuf> {
        let (names, mut watches) = ([".envrc".to_owned()], Watches::of(crate::watches::Told::Changes));
        let mut walk = Walk::new(root, &names, since, None, &[], &mut watches);
        walk.whole();
        walk.made.into_iter().map(|made| made.path).collect()
    }

    /// A look that begins within the tick in which the one before ended finds the repository again, and that it is new.
    #[test]
    fn what_is_told_already_does_not_say_what_was_made_in_it_since() {
        let root = tempfile::tempdir().expect("a directory");
        let (names, mut watches) = ([".git/hooks".to_owned()], Watches::of(crate::watches::Told::Changes));
        let mut look = |last: &[Made]| {
            let mut walk = Walk::new(root.path(), &names, (0, 0), None, last, &mut watches);
            walk.whole();
            walk.made
        };
        create_dir_all(root.path().join(".git/hooks")).expect("a directory");
        write(root.path().join(".git/hooks/sample"), "").expect("a file");
        let first = look(&[]);
        write(root.path().join(".git/hooks/own"), "").expect("a file");
        let again = look(&first);
        let told = |made: &[Made], name: &str| {
            let path = root.path().join(name);
            made.iter().find(|made| made.path == path).map(|made| made.how == How::Created)
        };
        assert_eq!(told(&first, ".git"), Some(true));
        assert_eq!(told(&again, ".git"), None);
        assert_eq!(told(&first, ".git/hooks/sample"), Some(false));
        assert_eq!(told(&again, ".git/hooks/own"), Some(true));
        // Another one under its name was told by nobody.
        let latest = first.iter().map(|made| made.when).max().expect("it found something");
        while crate::policy::confine::made::now() <= latest {
            std::thread::yield_now();
        }
        remove_dir_all(root.path().join(".git")).expect("a directory");
        create_dir_all(root.path().join(".git/hooks")).expect("a directory");
        assert_eq!(told(&look(&first), ".git"), Some(true));
    }

    #[test]
    fn a_tree_is_looked_at_no_further_than_the_bound() {
        let root = tempfile::tempdir().expect("a directory");
        for number in 0..2 * MOST_DIRECTORIES {
            create_dir_all(root.path().join(number.to_string())).expect("a directory");
            write(root.path().join(format!("{number}/.envrc")), "").expect("a file");
        }
        for number in 0..2 * MOST_ENTRIES {
            write(root.path().join(format!("file-{number}")), "").expect("a file");
        }
        write(root.path().join(".envrc"), "").expect("a file");
        let found = made(root.path(), (0, 0));
        assert!(found.contains(&root.path().join(".envrc")));
        assert!(found.len() <= MOST_DIRECTORIES, "{}", found.len());
        assert!(made(root.path(), (i64::MAX, 0)).is_empty());
    }

    #[test]
    fn a_link_is_not_followed() {
        let root = tempfile::tempdir().expect("a directory");
        let elsewhere = tempfile::tempdir().expect("a directory");
        create_dir_all(elsewhere.path().join("deep")).expect("a directory");
        write(elsewhere.path().join(".envrc"), "").expect("a file");
        write(elsewhere.path().join("deep/.envrc"), "").expect("a file");
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("link")).expect("a link");
        assert!(made(root.path(), (0, 0)).is_empty());
    }
}
