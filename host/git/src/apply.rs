//! What commands did to a git directory, taken over into the real one: part by part, by the rule of each, in an order in which nothing that
//! is already there ever names what is not.
//!
//! Objects come first, then references and their logs, then what operations leave and settings, and the index last. Ended in between, it
//! is a repository in which some of that has happened; doing it again does the rest.

use super::config::{self, Rules};
use super::fresh::{self, Leads};
use super::had::{self, Additions};
use super::parts::{Part, is_state, part};
use super::real::Real;
use super::refs::{self, Places, Refs};
use super::todo;
use super::upper::{Change, Entry, Upper, read_most};
use super::whole;
use bstr::BStr;
use filetime::FileTime;
use gix_ref::Target;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Bytes of a log, of what operations leave, and of an index, at most.
pub(crate) const MOST_LOG: u64 = 64 << 20;
const MOST_STATE: u64 = 64 << 20;
const MOST_INDEX: u64 = 512 << 20;
/// Bytes of what a person is asked about.
const MOST_ASKED: u64 = 256 << 10;

/// What a person may still say yes to.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The git directory, as it lies on this machine.
    pub directory: PathBuf,
    /// What git would do by itself.
    pub what: String,
    pub act: Act,
}

/// What is done on a yes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// Sets a key of a file of settings.
    Set { file: PathBuf, change: config::Change },
    /// Writes a file.
    Write { file: PathBuf, content: Vec<u8>, is_program: bool },
}

impl Act {
    /// The file that it is about, in its git directory.
    pub fn file(&self) -> &Path {
        match self {
            Self::Set { file, .. } | Self::Write { file, .. } => file,
        }
    }

    /// What would be there, as a person reads it.
    pub fn text(&self) -> String {
        match self {
            Self::Set { change, .. } => {
                let value = |value: &bstr::BString| format!("{} = {value}", change.key);
                match &change.after[..] {
                    [] => format!("{} is removed", change.key),
                    values => values.iter().map(value).collect::<Vec<_>>().join("\n"),
                }
            }
            Self::Write { content, .. } => String::from_utf8_lossy(content).into_owned(),
        }
    }

    /// Does it.
    pub fn make(&self, real: &Real) -> io::Result<()> {
        match self {
            Self::Set { file, change } => {
                let made = real.replace_if(file, || {
                    let bytes = real.read(file, config::MOST_BYTES)?.unwrap_or_default();
                    let mut parsed = config::parse(&bytes)?;
                    let now = config::values(&parsed);
                    Ok(config::make(&mut parsed, change, &now)?.then(|| parsed.to_bstring().into()))
                })?;
                if made { Ok(()) } else { Err(io::Error::other("it was changed meanwhile")) }
            }
            Self::Write { file, content, is_program } => {
                real.replace(file, content)?;
                if *is_program { real.make_executable(file) } else { Ok(()) }
            }
        }
    }
}

/// What came of taking changes over.
#[derive(Debug, Default)]
pub struct Report {
    /// What was not taken over, and why.
    pub told: Vec<String>,
    pub asks: Vec<Ask>,
    /// Git directories that commands made, and that an index leads git into: it goes over when each of them has a gate.
    pub new: Vec<PathBuf>,
    /// References that were moved, by where their git directory is in the gate, and their names.
    pub set: BTreeMap<(PathBuf, String), Option<Target>>,
    /// Files of the real directory that were written.
    pub written: BTreeSet<PathBuf>,
}

impl Report {
    /// Adds what came of another one.
    pub fn add(&mut self, mut other: Self) {
        self.told.append(&mut other.told);
        self.asks.append(&mut other.asks);
        self.new.append(&mut other.new);
    }

    /// There is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty() && self.asks.is_empty()
    }
}

/// One git directory: the real one, and what commands wrote over it.
pub struct Side<'s> {
    pub real: &'s Real,
    pub upper: &'s Upper,
    /// Where the real one lies.
    pub path: &'s Path,
    /// Where it lies in the gate.
    pub at: &'s Path,
    /// The repository, where this is a linked working tree's.
    pub common: Option<&'s Real>,
    /// Directories that commands write.
    pub write: &'s [PathBuf],
    /// Commands made it.
    pub is_new: bool,
    /// Its working tree, where its index is looked at for what git would enter there.
    pub tree: Option<&'s Path>,
    /// Git directories that have gates.
    pub gated: &'s [PathBuf],
    pub begun: &'s dyn Begun,
    /// Where it is noted what is added; none where commands made all of it, which is noted as a whole.
    pub additions: Option<&'s Additions>,
}

/// What the real directory was like when the command began, by paths in the gate.
pub trait Begun {
    fn was_changed(&self, real: &Real, at: &Path, path: &Path) -> bool;
    /// The references of then, where they are known.
    fn refs(&self, at: &Path) -> Option<&Refs>;
    /// The settings of then, where they are known.
    fn config(&self, path: &Path) -> Option<&[u8]>;
}

impl Side<'_> {
    /// Whether somebody else changed what is at a path of the real git directory.
    fn was_changed(&self, path: &Path) -> bool {
        !self.is_new && self.begun.was_changed(self.real, self.at, path)
    }

    /// Takes over what is to be taken over.
    pub fn apply(&self, entries: &[Entry], report: &mut Report) {
        if entries.iter().all(|entry| entry.is_done) {
            return;
        }
        if self.was_taken_apart(entries) {
            let message = format!("`{}` was removed or made anew: nothing of that was taken over", self.path.display());
            report.told.push(message);
            return;
        }
        let (within, all): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| is_within(&entry.path));
        let own: Vec<&Entry> = all.iter().copied().filter(|entry| !entry.is_done).collect();
        if !self.objects(&own, report) {
            // A reference or an index would name an object that is missing.
            return;
        }
        self.modules(&within, report);
        self.worktrees(&within, report);
        let refused = self.references(&all, report);
        self.logs(&own, &refused, report);
        self.rest(&own, report);
        self.index(&own, report);
    }

    /// What is no repository any more, or another one.
    fn was_taken_apart(&self, entries: &[Entry]) -> bool {
        let is_gone = |name: &str| {
            entries.iter().any(|entry| {
                entry.path == Path::new(name)
                    && match entry.change {
                        Change::Removed | Change::Odd => true,
                        Change::Directory { is_new } => is_new && self.real.has(Path::new(name)),
                        Change::File => false,
                    }
            })
        };
        ["HEAD", "objects", "refs", "config"].into_iter().any(is_gone)
    }

    fn tell(&self, path: &Path, why: impl std::fmt::Display, report: &mut Report) {
        report.told.push(format!("`{}` was not taken over: {why}", self.path.join(path).display()));
    }

    /// Adds objects; `false` where one of them could not be.
    fn objects(&self, own: &[&Entry], report: &mut Report) -> bool {
        let of =
            |wanted: Part| own.iter().filter(move |entry| part(&entry.path) == wanted && entry.change == Change::File);
        let mut packs: Vec<_> = of(Part::Pack).collect();
        // What makes a pack count comes last.
        packs.sort_by_key(|entry| is_index(&entry.path));
        let noted = self.note(of(Part::Object), &packs);
        let indexes = match noted {
            Ok(indexes) => indexes,
            Err(error) => {
                self.tell(Path::new("objects"), error, report);
                return false;
            }
        };
        // Files of packs whose index is not there yet.
        let mut begun: Vec<&Path> = Vec::new();
        for path in of(Part::Object).chain(packs).map(|entry| entry.path.as_path()) {
            if self.real.has(path) {
                continue;
            }
            let added = match (self.is_new, is_index(path), indexes.get(path)) {
                (true, ..) => self.real.move_in(self.upper, path),
                (false, true, index) => index.map_or(Ok(()), |index| self.add_index(path, index)),
                (false, false, _) => self.add_object(path),
            };
            if let Err(error) = added {
                for path in begun {
                    let _ = self.real.remove(path);
                }
                self.tell(path, error, report);
                return false;
            }
            if is_index(path) {
                begun.retain(|other| other.file_stem() != path.file_stem());
            } else if !self.is_new && part(path) == Part::Pack {
                begun.push(path);
            }
        }
        true
    }

    /// Adds a loose object, or a file of a pack, which counts only once its index is there.
    fn add_object(&self, path: &Path) -> io::Result<()> {
        // As git does it by itself: git-config(1), core.fsync.
        let is_synced = part(path) == Part::Pack;
        let check = |file: &mut File| match had::loose(path) {
            Some(name) if !is_synced => whole::loose(file, name),
            Some(_) | None => Ok(()),
        };
        self.real.add(path, self.upper.open(path)?, is_synced, check)
    }

    fn add_index(&self, path: &Path, index: &[u8]) -> io::Result<()> {
        let pack = path.with_extension("pack");
        whole::pack(&self.real.path().join(&pack), index)?;
        self.real.add(path, index, true, |_| Ok(()))
    }

    /// Notes which objects are about to be added; returns the indexes of packs by which it is known.
    fn note<'e>(
        &self,
        loose: impl Iterator<Item = &'e &'e Entry>,
        packs: &[&&Entry],
    ) -> io::Result<HashMap<PathBuf, Vec<u8>>> {
        let Some(additions) = self.additions else { return Ok(HashMap::new()) };
        let is_new = |entry: &&&Entry| !self.real.has(&entry.path);
        let mut objects: Vec<_> = loose.filter(is_new).filter_map(|entry| had::loose(&entry.path)).collect();
        let mut indexes = HashMap::new();
        for index in packs.iter().filter(|entry| is_index(&entry.path)) {
            if !self.real.has(&index.path) {
                let bytes = self.upper.read(&index.path, MOST_INDEX)?;
                objects.extend(had::missing(self.real, had::packed(&bytes)?));
                indexes.insert(index.path.clone(), bytes);
            }
        }
        additions.note(self.path, &objects)?;
        Ok(indexes)
    }

    /// Repositories of submodules, each by the same rules.
    fn modules(&self, within: &[&Entry], report: &mut Report) {
        let mut roots = BTreeSet::new();
        for entry in within.iter().filter(|entry| entry.path.starts_with("modules")) {
            let above = entry.path.ancestors().skip(1).filter(|above| *above != Path::new("modules"));
            // References and logs have a `HEAD`, too.
            let is_root = |above: &&Path| {
                let (head, objects) = (above.join("HEAD"), above.join("objects"));
                (self.real.has(&head) || self.upper.open(&head).is_ok())
                    && (self.real.has(&objects) || self.upper.below(&objects).is_ok())
            };
            roots.extend(above.filter(|above| above.starts_with("modules")).find(is_root).map(Path::to_owned));
        }
        for root in roots {
            self.nested(&root, within, None, report);
        }
    }

    fn worktrees(&self, within: &[&Entry], report: &mut Report) {
        let names: BTreeSet<PathBuf> = within
            .iter()
            .filter(|entry| entry.path.starts_with("worktrees"))
            .filter_map(|entry| entry.path.components().nth(1))
            .map(|name| Path::new("worktrees").join(name))
            .collect();
        for at in names {
            let removed = within.iter().find(|entry| entry.path == at && entry.change == Change::Removed);
            if let Some(removed) = removed {
                if !removed.is_done {
                    self.remove_worktree(&at, report);
                }
                continue;
            }
            if let Err(why) = self.begin_worktree(&at) {
                self.tell(&at, why, report);
                continue;
            }
            self.nested(&at, within, Some(self.real), report);
        }
        let is_gone = |entry: &&Entry| entry.path == Path::new("worktrees") && entry.change == Change::Removed;
        if within.iter().copied().any(|entry| is_gone(&entry) && !entry.is_done) {
            for name in self.real.directories(Path::new("worktrees")) {
                self.remove_worktree(&Path::new("worktrees").join(name), report);
            }
        }
    }

    /// Has what leads from a working tree to its repository and back, where a command made one in a place that commands write.
    fn begin_worktree(&self, at: &Path) -> io::Result<()> {
        if self.real.has(&at.join("HEAD")) {
            return Ok(());
        }
        let odd = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        let common = self.upper.read(&at.join("commondir"), 4096)?;
        if common.trim_ascii_end() != b"../.." {
            return Err(odd("its `commondir` leads elsewhere"));
        }
        let leads = self.upper.read(&at.join("gitdir"), 4096)?;
        let path = std::str::from_utf8(leads.trim_ascii_end()).map_err(|_| odd("its `gitdir` is no text"))?;
        let tree = Path::new(path)
            .parent()
            .filter(|_| path.ends_with("/.git"))
            .ok_or_else(|| odd("its `gitdir` is no `.git`"))?;
        let tree = tree.canonicalize()?;
        if !self.write.iter().any(|root| tree.starts_with(root)) {
            return Err(odd("its working tree lies where commands do not write"));
        }
        self.real.replace(&at.join("commondir"), b"../..\n")?;
        self.real.replace(&at.join("gitdir"), format!("{}\n", tree.join(".git").display()).as_bytes())
    }

    /// Forgets a working tree that is gone.
    fn remove_worktree(&self, at: &Path, report: &mut Report) {
        let leads = self.real.read(&at.join("gitdir"), 4096).ok().flatten().unwrap_or_default();
        let is_there = std::str::from_utf8(leads.trim_ascii_end()).is_ok_and(|path| Path::new(path).exists());
        if is_there {
            self.tell(at, "its working tree is still there", report);
        } else if let Err(error) = self.real.remove(at) {
            self.tell(at, error, report);
        }
    }

    /// A git directory within this one.
    fn nested(&self, root: &Path, within: &[&Entry], common: Option<&Real>, report: &mut Report) {
        let is_new = !self.real.has(&root.join("HEAD"));
        let mut done = || -> io::Result<()> {
            let (real, upper) = (self.real.make(root)?, self.upper.below(root)?);
            let (path, at) = (self.path.join(root), self.at.join(root));
            let inner = |entry: &&Entry| {
                let path = entry.path.strip_prefix(root).ok().filter(|path| *path != Path::new(""))?;
                Some(Entry { path: path.to_owned(), ..**entry })
            };
            let entries: Vec<Entry> = within.iter().filter_map(inner).collect();
            let leads = common.and_then(|_| real.read(Path::new("gitdir"), 4096).ok().flatten());
            let leads = leads.and_then(|leads| String::from_utf8(leads).ok());
            let tree = leads.and_then(|leads| Some(Path::new(leads.trim_end()).parent()?.to_owned()));
            let side = Side {
                real: &real,
                upper: &upper,
                path: &path,
                at: &at,
                common,
                write: self.write,
                is_new: self.is_new || is_new,
                tree: tree.as_deref(),
                gated: self.gated,
                begun: self.begun,
                additions: self.additions,
            };
            if is_new && common.is_none() {
                // Git takes what has none of these for no repository.
                real.make(Path::new("objects"))?;
                real.make(Path::new("refs"))?;
            }
            side.apply(&entries, report);
            Ok(())
        };
        if let Err(error) = done() {
            self.tell(root, error, report);
        }
    }

    /// Moves references, then what says which is checked out. Returns the names of those that stay. What one entry means is said by the
    /// others, also by those that are done.
    fn references(&self, all: &[&Entry], report: &mut Report) -> BTreeSet<String> {
        let places = Places { real: self.real, common: self.common };
        let mut refused = BTreeSet::new();
        let is_ref = |entry: &&&Entry| {
            [Part::Ref, Part::PackedRefs].contains(&part(&entry.path)) || entry.path.starts_with("refs")
        };
        let is_head = |entry: &&&Entry| part(&entry.path) == Part::Head;
        let refs: Vec<&Entry> = all.iter().filter(is_ref).copied().collect();
        let heads: Vec<&Entry> = all.iter().filter(is_head).copied().collect();
        for entries in [refs, heads] {
            if entries.iter().all(|entry| entry.is_done) {
                continue;
            }
            let then = self.begun.refs(self.at).filter(|_| !self.is_new);
            let moved = refs::made(&entries, self.upper, &places, then).and_then(|made| {
                made.odd.iter().for_each(|name| self.tell(Path::new(name), "it is no reference", report));
                refs::apply(made, self.upper, &places, then, |path| self.was_changed(path))
            });
            match moved {
                Ok(moved) => {
                    report.set.extend(moved.done.into_iter().map(|(name, new)| ((self.at.to_owned(), name), new)));
                    for (name, new) in moved.refused {
                        let wanted = new.map(|new| format!("; the command set it to {new}")).unwrap_or_default();
                        self.tell(Path::new(&name), format!("it was changed meanwhile{wanted}"), report);
                        refused.insert(name);
                    }
                }
                Err(error) => self.tell(Path::new("refs"), error, report),
            }
        }
        // As git has them also where they are empty.
        for kept in ["refs/heads", "refs/tags"].map(Path::new) {
            if self.common.is_none()
                && let Err(error) = self.real.make(kept)
            {
                self.tell(kept, error, report);
            }
        }
        refused
    }

    fn logs(&self, own: &[&Entry], refused: &BTreeSet<String>, report: &mut Report) {
        for entry in own.iter().filter(|entry| part(&entry.path) == Part::Log) {
            let name = entry.path.strip_prefix("logs").ok().and_then(Path::to_str).unwrap_or_default();
            if refused.contains(name) || name == "HEAD" && !refused.is_empty() {
                continue;
            }
            let done = match entry.change {
                Change::File => self.log(&entry.path).map(|()| _ = report.written.insert(self.at.join(&entry.path))),
                Change::Removed if self.was_changed(&entry.path) => Ok(()),
                Change::Removed => self.real.remove(&entry.path),
                Change::Directory { .. } => Ok(()),
                Change::Odd => Err(io::Error::other("it is no file")),
            };
            if let Err(error) = done {
                self.tell(&entry.path, error, report);
            }
        }
    }

    /// Adds what a command added to a log.
    fn log(&self, path: &Path) -> io::Result<()> {
        let new = self.upper.read(path, MOST_LOG)?;
        match self.real.read(path, MOST_LOG)? {
            Some(now) if now == new => Ok(()),
            Some(now) if now.starts_with(&new) && self.was_changed(path) => Ok(()),
            Some(now) if new.starts_with(&now) => self.real.append(path, &new[now.len()..]),
            None => self.real.append(path, &new),
            // Both added to what was there.
            Some(now) if self.was_changed(path) => self.real.append(path, &new[common_lines(&new, &now)..]),
            Some(_) => self.real.replace(path, &new),
        }
    }

    /// What operations leave, settings, and what acts.
    fn rest(&self, own: &[&Entry], report: &mut Report) {
        for entry in own {
            let path = &entry.path;
            let done = match part(path) {
                Part::State | Part::Strategy | Part::Options | Part::Words | Part::Todo => self.state(entry, report),
                Part::Config => self.config(entry, report),
                Part::Hook => self.hook(entry, report),
                // Said of what leads elsewhere where it is made as well as where it is removed.
                Part::Refused(_) if self.is_new || self.common.is_some() && is_way(path) => self.way(entry, report),
                Part::Refused(why) => Err(io::Error::other(why)),
                Part::Unknown => match entry.change {
                    Change::Directory { is_new: true } if is_state(path) => self.real.remove(path),
                    Change::Removed if is_state(path) => self.real.remove(path),
                    Change::Directory { .. } => Ok(()),
                    Change::File | Change::Removed | Change::Odd => {
                        Err(io::Error::other("it is no part of a repository"))
                    }
                },
                Part::Object | Part::Pack | Part::Ref | Part::PackedRefs | Part::Head => Ok(()),
                Part::Log | Part::Index | Part::Derived => Ok(()),
            };
            if let Err(error) = done {
                self.tell(path, error, report);
            }
        }
    }

    /// What leads from a linked working tree to its repository stays as it is.
    fn way(&self, entry: &Entry, report: &mut Report) -> io::Result<()> {
        let same = |path: &Path| -> io::Result<bool> {
            let now = self.real.read(path, 4096)?.unwrap_or_default();
            Ok(now.trim_ascii_end() == self.upper.read(path, 4096)?.trim_ascii_end())
        };
        let is_same = entry.change == Change::File && same(&entry.path)?;
        if !is_same && let Part::Refused(why) = part(&entry.path) {
            self.tell(&entry.path, why, report);
        }
        Ok(())
    }

    fn state(&self, entry: &Entry, report: &mut Report) -> io::Result<()> {
        let path = &entry.path;
        match entry.change {
            Change::File => {}
            Change::Removed | Change::Directory { is_new: true } => return self.real.remove(path),
            Change::Directory { is_new: false } => return Ok(()),
            Change::Odd => return Err(io::Error::other("it is no file")),
        }
        let new = self.upper.read(path, MOST_STATE)?;
        if self.real.read(path, MOST_STATE)?.as_ref() == Some(&new) {
            return Ok(());
        }
        match todo::checked(part(path), &new) {
            Ok(None) => self.real.replace(path, &new),
            // Without the commands in it.
            Ok(Some(without)) => {
                self.ask(path, "git runs the commands in it when the rebase goes on", new, false, report);
                self.real.replace(path, &without)
            }
            Err(why) => Err(io::Error::other(why)),
        }
    }

    fn ask(&self, path: &Path, what: &str, content: Vec<u8>, is_program: bool, report: &mut Report) {
        let act = Act::Write { file: path.to_owned(), content, is_program };
        report.asks.push(Ask { directory: self.path.to_owned(), what: what.to_owned(), act });
    }

    fn hook(&self, entry: &Entry, report: &mut Report) -> io::Result<()> {
        match entry.change {
            Change::File => {
                let content = self.upper.read(&entry.path, MOST_ASKED)?;
                if self.real.read(&entry.path, MOST_ASKED)?.as_ref() != Some(&content) {
                    self.ask(&entry.path, "git runs it by itself", content, true, report);
                }
                Ok(())
            }
            Change::Removed => Err(io::Error::other("a hook is removed by you alone")),
            Change::Directory { .. } => Ok(()),
            Change::Odd => Err(io::Error::other("it is no file")),
        }
    }

    fn config(&self, entry: &Entry, report: &mut Report) -> io::Result<()> {
        let path = &entry.path;
        if entry.change != Change::File {
            return Err(io::Error::other("settings are changed key by key"));
        }
        let new = self.upper.read(path, config::MOST_BYTES)?;
        let real = self.real.read(path, config::MOST_BYTES)?.unwrap_or_default();
        if new == real {
            return Ok(());
        }
        let is_ours = !self.was_changed(path);
        let before = self.begun.config(&self.at.join(path)).filter(|_| !is_ours).unwrap_or(&real);
        let changes = config::changes(&config::values(&config::parse(before)?), &config::values(&config::parse(&new)?));
        let is_bare = self.is_new && self.path.file_name().is_some_and(|name| name != ".git");
        let rules = Rules { directory: self.path, write: self.write, is_new: self.is_new, is_bare };
        let (admitted, asked): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| rules.admits(change));
        for change in asked {
            let what = format!("git obeys `{}` by itself", change.key);
            let act = Act::Set { file: path.clone(), change };
            report.asks.push(Ask { directory: self.path.to_owned(), what, act });
        }
        if admitted.is_empty() && self.real.has(path) {
            return Ok(());
        }
        if let Some(additions) = self.additions {
            let set = admitted.iter().map(|change| (change.key.clone(), change.after.clone())).collect();
            let there = config::values(&config::parse(&real)?);
            let is_new = |url: &&BStr| !config::remotes(&there).any(|(_, known)| known == *url);
            let new: Vec<&BStr> = config::remotes(&set).map(|(_, url)| url).filter(is_new).collect();
            additions.note_remotes(self.path, &new)?;
        }
        let mut kept = Vec::new();
        self.real.replace_if(path, || {
            let bytes = self.real.read(path, config::MOST_BYTES)?.unwrap_or_default();
            let mut parsed = config::parse(&bytes)?;
            let now = config::values(&parsed);
            for change in &admitted {
                if !config::make(&mut parsed, change, &now)? {
                    kept.push(change.key.to_string());
                }
            }
            Ok(Some(parsed.to_bstring().into()))
        })?;
        report.written.insert(self.at.join(path));
        for key in kept {
            self.tell(path, format!("`{key}` was changed meanwhile"), report);
        }
        Ok(())
    }

    /// Has nothing of a command's be where git goes by the new gitlinks of an index. Returns whether the index has to wait for gates.
    fn vouch_for_gitlinks(&self, index: &[u8], report: &mut Report) -> io::Result<bool> {
        let links = fresh::gitlinks(index)?;
        if links.is_empty() {
            return Ok(false);
        }
        let Some(tree) = self.tree else {
            return Err(io::Error::other("it names repositories, and its working tree is not known"));
        };
        for link in links {
            let place = tree.join(&link).join(".git");
            if self.gated.contains(&place) {
                continue;
            }
            match fresh::leads(tree, &link)? {
                Leads::Nowhere => {}
                Leads::File(to) if self.gated.iter().any(|gated| to.starts_with(gated)) => {}
                Leads::File(to) => {
                    let message = format!("`{}` leads to `{}`, which has no gate", place.display(), to.display());
                    return Err(io::Error::other(message));
                }
                Leads::New => {
                    fresh::make_anew(tree, &link, self.write, report)?;
                    report.new.push(place);
                }
            }
        }
        Ok(!report.new.is_empty())
    }

    fn index(&self, own: &[&Entry], report: &mut Report) {
        let Some(entry) = own.iter().find(|entry| part(&entry.path) == Part::Index) else { return };
        let path = &entry.path;
        let mut done = || -> io::Result<()> {
            match entry.change {
                Change::File => {}
                Change::Removed if !self.was_changed(path) => return self.real.remove(path),
                Change::Removed | Change::Directory { .. } | Change::Odd => {
                    return Err(io::Error::other("it is no file, or was changed meanwhile"));
                }
            }
            let mut file = self.upper.open(path)?;
            let modified = FileTime::from_last_modification_time(&file.metadata()?);
            let new = read_most(&mut file, MOST_INDEX)?;
            if self.vouch_for_gitlinks(&new, report)? {
                return Ok(());
            }
            // Git looks into files that are no older than the index.
            let done = self.real.replace_at(path, || {
                if self.real.read(path, MOST_INDEX)?.as_ref() == Some(&new) {
                    return Ok(None);
                }
                if self.was_changed(path) {
                    return Err(io::Error::other("it was changed meanwhile; `git add` does it again"));
                }
                Ok(Some((new, modified)))
            });
            done?;
            // Also where it was there already as the command wrote it.
            report.written.insert(self.at.join(path));
            Ok(())
        };
        if let Err(error) = done() {
            self.tell(path, error, report);
        }
    }
}

/// Whether a file is the index of a pack.
fn is_index(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "idx")
}

/// Where two logs begin to differ.
pub(crate) fn common_lines(one: &[u8], other: &[u8]) -> usize {
    let common = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    one[..common].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// Whether a path belongs to a git directory within this one.
fn is_within(path: &Path) -> bool {
    let mut names = path.components();
    let first = names.next();
    let is_holder =
        first == Some(Component::Normal("modules".as_ref())) || first == Some(Component::Normal("worktrees".as_ref()));
    is_holder && (names.next().is_some() || path == Path::new("worktrees") || path == Path::new("modules"))
}

/// Whether a file leads from a working tree to its repository or back.
fn is_way(path: &Path) -> bool {
    path == Path::new("commondir") || path == Path::new("gitdir")
}
