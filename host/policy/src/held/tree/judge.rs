//! What is to become of one name: whether it acts, whose it is, and whether it is known, told or taken out.

use super::place::Place;
use super::{Known, Leads, PATIENCE, Watched};
use crate::held::fetched::Within;
use crate::held::rules::{Acts, PROGRAM, Verdict};
use crate::held::store::{Shelf, Taken};
use crate::held::take::{self, Content};
use base::disk::Stamp;
use base::text::sanitize;
use base::watches::Event;
use std::ffi::OsStr;
use std::fs::symlink_metadata;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of what is put back where a command changes it: of one file, and of all.
const MOST_BEFORE: u64 = 256 << 10;
const MOST_KEPT: usize = 32 << 20;

impl Watched {
    /// Looks at one name: if it acts, what is to become of it.
    pub(super) fn check(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, event: Event, is_theirs: bool) {
        let rules = self.rules.clone();
        let program = || {
            let directory = place.root.join(&place.at);
            self.links.is_on_path(&directory).then(|| rules.program(&directory, name))
        };
        let named = place.acts_in(name, &rules, &self.links);
        let Some(acts) = named.or_else(program) else { return };
        if take::is_passing(name) {
            return;
        }
        let path = place.path(name);
        // One that is gone is known until the next look begins: a command may put another one in its place.
        let Some((found, stamp)) = take::look(directory, name) else { return };
        let was = self.known.get(&path);
        if was.is_some_and(|known| known.stamp == stamp) {
            return;
        }
        if place.is_passed && !self.links.lead_to(&path) {
            if is_theirs {
                self.found.passed.insert(path);
            }
            return;
        }
        if !is_theirs {
            self.know(directory, place, name, acts);
            return;
        }
        let is_change = was.is_some();
        // Whatever else it is, it runs nothing.
        if !found.is_file() && !found.is_symlink() {
            self.know(directory, place, name, acts);
            self.found.told.insert(path, (told(is_change), acts.what));
            return;
        }
        let may_be_written = match event {
            // What has another name besides is there already.
            Event::Created => found.is_file() && take::links(&found) == 1,
            Event::Written => true,
            Event::Closed | Event::Directory => false,
        };
        if may_be_written {
            let until = Instant::now() + PATIENCE;
            self.writing.entry(path).or_insert_with(|| (place.clone(), name.to_owned(), until));
            return;
        }
        self.writing.remove(&path);
        self.judge(directory, place, name, acts, is_change);
    }

    /// Decides on a file that acts and that a command has written to its end.
    fn judge(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, acts: Acts, is_change: bool) {
        let path = place.path(name);
        let content = take::read_any(directory, name);
        let before = self.known.get(&path).and_then(|known| known.before.as_ref());
        if before == Some(&content) {
            return self.know(directory, place, name, acts);
        }
        let is_other_mode = before.is_some_and(|before| before.blob() == content.blob());
        if self.rules.was_allowed(&path, &content) {
            return self.know(directory, place, name, acts);
        }
        let verdict = self.rules.verdict(acts, &place.at.join(name), is_change);
        // Only its mode changed, which is not for a command to say.
        if verdict == Verdict::Held && is_other_mode {
            return self.take(directory, place, name, acts);
        }
        if self.came_from_history(&path, &content) {
            self.know(directory, place, name, acts);
            self.found.let_through.insert(path);
            return;
        }
        match verdict {
            Verdict::Held => self.take(directory, place, name, acts),
            Verdict::Told => {
                self.know(directory, place, name, acts);
                if acts == PROGRAM {
                    self.found.programs.insert(path);
                } else {
                    self.found.told.insert(path, (told(is_change), acts.what));
                }
            }
        }
    }

    /// The person's repository had these bytes at this place.
    fn came_from_history(&self, path: &Path, content: &Content) -> bool {
        let had = |Within { link, below, .. }: Within, blob| git::had(&self.rules.state, &link, &below, &blob);
        self.within(path).zip(content.blob()).is_some_and(|(within, blob)| had(within, blob))
    }

    /// The person's repository of whose working tree a path is.
    fn within(&self, path: &Path) -> Option<Within> {
        let link = path.ancestors().skip(1).map(|above| above.join(".git")).find(|link| symlink_metadata(link).is_ok());
        let is_persons = |link: &PathBuf| {
            let now = symlink_metadata(link).map(|found| Leads::of(&found, Stamp::of(&found)));
            now.is_ok_and(|now| {
                self.repositories.get(link).is_some_and(|(known, is_theirs)| !is_theirs && *known == now)
            })
        };
        // Where a repository has no gate, commands may have written all of it.
        let link = link.filter(|link| self.has_gates && is_persons(link))?;
        let below = path.strip_prefix(link.parent()?).ok()?.to_owned();
        let write = self.roots.iter().map(|root| root.to_path_buf()).collect();
        Some(Within { link, below, write })
    }

    /// Takes something out, and puts back what was there before.
    fn take(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, acts: Acts) {
        let path = place.path(name);
        let before = self.forget(&path);
        let held = Shelf::open(&self.rules.state).and_then(|shelf| {
            take::out(directory, name, |content| {
                shelf.hold_file(&place.root, &place.at.join(name), content, acts.what, before.as_ref())
            })
        });
        let shown = self.rules.name(&path);
        match held {
            Ok(Some(taken)) => {
                let within = self.within(&path);
                self.found.taken.push(Taken { within, ..taken });
            }
            // It was gone by then.
            Ok(None) => {}
            Err(error) => {
                let line = format!(
                    "`{shown}` could not be held back, as {}: {}",
                    acts.what,
                    sanitize::visible_line(&error.to_string())
                );
                self.found.lines.insert(line);
            }
        }
        if let Some(before) = before {
            match take::put(directory, name, &before) {
                Ok(()) => self.know(directory, place, name, acts),
                Err(error) => {
                    self.found.lines.insert(format!("`{shown}` could not be put back as it was: {error}"));
                }
            }
        }
    }

    /// Nobody has to be asked about it from now on.
    fn know(&mut self, directory: &OwnedFd, place: &Place, name: &OsStr, acts: Acts) {
        let path = place.path(name);
        self.forget(&path);
        let Some((found, stamp)) = take::look(directory, name) else { return };
        if found.is_symlink() && acts != PROGRAM && !self.rules.is_kept(&place.at.join(name)) {
            self.links.insert(path.clone(), Some(acts));
        }
        let is_put_back = self.rules.verdict(acts, &place.at.join(name), true) == Verdict::Held;
        let is_kept = is_put_back && self.kept_bytes < MOST_KEPT;
        let before = is_kept.then(|| take::read(directory, name, MOST_BEFORE).ok()).flatten();
        if let Some(file) = before.as_ref().and_then(|_| take::open(directory, name)) {
            // It may have other names besides.
            self.watches.add_file(&file, place.clone(), name);
        }
        self.kept_bytes += before.as_ref().map_or(0, Content::bytes);
        self.known.insert(path, Known { stamp, before });
    }

    pub(super) fn forget(&mut self, path: &Path) -> Option<Content> {
        self.has_news = true;
        let before = self.known.remove(path)?.before;
        self.kept_bytes -= before.as_ref().map_or(0, Content::bytes);
        before
    }
}

/// What a command did to a name.
fn told(is_change: bool) -> &'static str {
    if is_change { "changed" } else { "created" }
}
