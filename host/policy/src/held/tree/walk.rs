//! Goes through the directories that commands write, has them watched, and finds the names there that are to be looked at.
//!
//! What is to become of a name that acts is `judge.rs`.

use super::place::Place;
use super::{Leads, MOST_ROUNDS, Watched};
use crate::held::take;
use base::disk::{DIRECTORY, open_below};
use base::watches::Event;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, openat, statat};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::symlink_metadata;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories that one look goes through.
const MOST_DIRECTORIES: usize = 100_000;
/// Repositories that are known.
const MOST_REPOSITORIES: usize = 4096;
/// Directories in a repository that hold what it stores, and others of it that are watched.
const STORED: [&str; 3] = ["objects", "refs", "logs"];
const MOST_WITHIN: usize = 256;

impl Watched {
    /// Looks at names in one directory that something has happened to.
    pub(super) fn happened(&mut self, place: &Place, names: BTreeMap<OsString, Event>, is_theirs: bool) {
        let Some(directory) = self.open(place, is_theirs) else { return };
        if let Some(git) = place.repository() {
            if is_theirs {
                self.found.repositories.insert(place.root.join(git));
            }
            return self.within_repository(place.root.clone(), git.to_owned());
        }
        for (name, event) in names {
            match event {
                _ if name == ".git" => self.repository(&directory, place, &name, is_theirs),
                Event::Directory => {
                    self.walk(place.below(&name, &self.rules, &self.links), is_theirs);
                }
                Event::Created | Event::Written | Event::Closed => {
                    self.link(&directory, place, &name);
                    self.check(&directory, place, &name, event, is_theirs);
                }
            }
        }
    }

    /// Opens a directory; one that a command closed to its own user is opened to that one, or looked at again later.
    fn open(&mut self, place: &Place, is_theirs: bool) -> Option<OwnedFd> {
        let opened = open(place).or_else(|| is_theirs.then(|| unclose(place)).flatten());
        if opened.is_none() && is_theirs && symlink_metadata(place.root.join(&place.at)).is_ok() {
            self.closed.insert(place.clone());
        }
        opened
    }

    /// Looks at a directory and all below it, and has them watched.
    pub(super) fn walk(&mut self, from: Place, is_theirs: bool) {
        let (mut waiting, mut last) = (VecDeque::from([from]), VecDeque::new());
        for _ in 0..MOST_DIRECTORIES {
            let Some(place) = waiting.pop_front().or_else(|| last.pop_front()) else { return };
            let Some(directory) = self.open(&place, is_theirs) else { continue };
            // First: what is made from now on is told by the watch.
            self.watches.add(&directory, place.clone());
            let Ok(listed) = Dir::read_from(&directory) else { continue };
            for entry in listed.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                if name == ".git" {
                    self.repository(&directory, &place, name, is_theirs);
                    continue;
                }
                // Not every file system says it in its lists.
                let kind = match entry.file_type() {
                    FileType::Unknown => match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => FileType::from_raw_mode(found.st_mode),
                        Err(_) => continue,
                    },
                    kind => kind,
                };
                if kind == FileType::Directory {
                    let below = place.below(name, &self.rules, &self.links);
                    if below.is_passed {
                        last.push_back(below)
                    } else {
                        waiting.push_back(below)
                    }
                    continue;
                }
                if kind == FileType::Symlink {
                    self.link(&directory, &place, name);
                }
                self.check(&directory, &place, name, Event::Created, is_theirs);
            }
        }
    }

    /// Knows a link by which an ordinary name leads somewhere. One that acts is known when it is admitted.
    fn link(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr) {
        let is_link = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
        if !is_link {
            return;
        }
        let path = place.path(name);
        let is_passed = place.below(name, &self.rules, &self.links).is_passed && !self.links.lead_by(&path);
        if !is_passed && place.acts_in(name, &self.rules, &self.links).is_none() {
            self.links.insert(path, None);
        }
    }

    /// Looks at what links lead to that they did not before.
    pub(super) fn follow(&mut self, is_theirs: bool) {
        for _ in 0..MOST_ROUNDS {
            let reached = self.links.follow();
            if reached.is_empty() {
                return;
            }
            for path in reached {
                self.reach(&path, is_theirs);
            }
        }
    }

    fn reach(&mut self, path: &Path, is_theirs: bool) {
        // What lies in a git directory is for its gate to decide.
        let Some((place, name)) =
            self.place(path).filter(|(place, name)| place.repository().is_none() && name != ".git")
        else {
            return;
        };
        let Some(directory) = self.open(&place, is_theirs) else { return };
        match take::look(&directory, &name) {
            Some((found, _)) if found.is_dir() => self.walk(place.below(&name, &self.rules, &self.links), is_theirs),
            Some(_) => self.check(&directory, &place, &name, Event::Closed, is_theirs),
            None => {}
        }
    }

    /// What leads git to a repository. New ones are looked through when the command has ended.
    fn repository(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, is_theirs: bool) {
        let path = place.path(name);
        let Some((found, stamp)) = take::look(directory, name) else {
            self.repositories.remove(&path);
            return;
        };
        let leads = Leads::of(&found, stamp);
        let is_known = self.repositories.get(&path).is_some_and(|(known, _)| *known == leads);
        if is_known || self.repositories.len() >= MOST_REPOSITORIES {
            return;
        }
        self.repositories.insert(path.clone(), (leads, is_theirs));
        if is_theirs {
            let known = self.repositories.iter().filter(|(_, (_, is_theirs))| !is_theirs).map(|(path, _)| path);
            git::note_made(&self.rules.state, &path, known);
            self.found.repositories.insert(path);
            if found.is_dir() {
                self.within_repository(place.root.clone(), place.at.join(name));
            }
        }
    }

    /// Has all in a repository watched that commands made, but for what it stores: it has no gate until the next cell is made.
    fn within_repository(&mut self, root: Arc<Path>, at: PathBuf) {
        let mut waiting = vec![at];
        for _ in 0..MOST_WITHIN {
            let Some(at) = waiting.pop() else { return };
            let place = Place { root: root.clone(), at, acts: None, is_passed: false };
            let Some(directory) = open(&place) else { continue };
            self.watches.add(&directory, place.clone());
            for entry in Dir::read_from(&directory).into_iter().flatten().flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                let is_stored = STORED.iter().any(|stored| *stored == name);
                if entry.file_type() == FileType::Directory && name != "." && name != ".." && !is_stored {
                    waiting.push(place.at.join(name));
                }
            }
        }
    }
}

/// Opens a directory that a command has closed to its own user, and lets it be read.
fn unclose(place: &Place) -> Option<OwnedFd> {
    let above = place.at.parent()?;
    let top = openat(CWD, &*place.root, DIRECTORY, Mode::empty()).ok()?;
    let directory = open_below(&top, above, DIRECTORY).ok()?;
    take::unclose(&directory, place.at.file_name()?);
    open(place)
}

pub(super) fn open(place: &Place) -> Option<OwnedFd> {
    let top = openat(CWD, &*place.root, DIRECTORY, Mode::empty()).ok()?;
    open_below(&top, &place.at, DIRECTORY).ok()
}
