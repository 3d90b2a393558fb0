//! What a git directory was like when a command began, so that what the command did there is told from what others did meanwhile.

use super::apply::{Begun, Report};
use super::real::Real;
use super::refs::{self, Refs};
use base::disk::Stamp;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::iter;
use std::path::{Path, PathBuf};

/// Files that git replaces whole, whose state when a command begins is kept.
const WHOLE: [&str; 5] = ["HEAD", "config", "config.worktree", "index", "packed-refs"];
/// What is changed in a git directory by whoever moves a reference or an object, with the directories below `refs`.
const TELLING: [&str; 2] = ["objects", "objects/pack"];
/// So many of these are compared; where there are more, it is as if one had changed.
const MOST_TELLING: usize = 256;

/// What a git directory was like when a command began.
#[derive(Default)]
pub struct Moment {
    since: (i64, i64),
    /// Of files that git replaces whole.
    stamps: HashMap<PathBuf, Option<Stamp>>,
    configs: HashMap<PathBuf, Vec<u8>>,
    /// By where their git directory is.
    refs: HashMap<PathBuf, Refs>,
    /// Files that were written here, as they were then.
    ours: HashMap<PathBuf, Option<Stamp>>,
    /// What the real directory has where a generation that goes on lies over it.
    pub kept: HashMap<PathBuf, Option<Stamp>>,
    /// What is changed by whoever moves a reference or an object.
    telling: Vec<(PathBuf, Option<Stamp>)>,
}

impl Begun for Moment {
    fn was_changed(&self, real: &Real, at: &Path, path: &Path) -> bool {
        let (whole, now) = (at.join(path), real.stamp(path));
        if self.ours.get(&whole).is_some_and(|ours| *ours == now) {
            return false;
        }
        match self.stamps.get(&whole) {
            Some(then) => now != *then,
            None => now.is_some_and(|now| now.has_changed_since(self.since)),
        }
    }

    fn refs(&self, at: &Path) -> Option<&Refs> {
        self.refs.get(at)
    }

    fn config(&self, path: &Path) -> Option<&[u8]> {
        self.configs.get(path).map(Vec::as_slice)
    }
}

impl Moment {
    /// The moment of a generation that an earlier host left. `ours` is what that host wrote, by `ours_for_the_next`.
    pub fn left(since: (i64, i64), ours: &[u8]) -> Self {
        Self { since, ours: serde_json::from_slice(ours).unwrap_or_default(), ..Self::default() }
    }

    /// What was written here, but for objects, which nobody changes.
    pub fn ours_for_the_next(&self) -> Vec<u8> {
        let ours = self.ours.iter().filter(|(path, _)| !path.starts_with("objects")).take(MOST_TELLING);
        serde_json::to_vec(&ours.collect::<HashMap<_, _>>()).unwrap_or_default()
    }

    /// One for what lies over the real directory from now on.
    pub fn next(&self) -> Self {
        Self { ours: self.ours.clone(), ..Self::default() }
    }

    /// What another one wrote here meanwhile is ours as well.
    pub fn follow(&mut self, other: &Self) {
        self.ours.extend(other.ours.iter().map(|(path, stamp)| (path.clone(), stamp.clone())));
    }

    /// Nothing was noted yet.
    pub fn is_new(&self) -> bool {
        self.telling.is_empty()
    }

    /// Notes what a gate shows that was laid just now.
    pub fn note(&mut self, real: &Real) {
        self.since = now();
        self.telling = telling(real);
        self.refs = refs_of(real);
        self.note_whole(real);
    }

    /// A command begins where a gate goes on; `false` where that does not show what is there. Nothing is noted anew: what somebody does from now on,
    /// the command may not see.
    pub fn goes_on(&mut self, real: &Real) -> bool {
        let since = now();
        let goes_on = !self.is_new() && self.shows(real);
        if goes_on {
            self.since = since;
        }
        goes_on
    }

    /// Changes were taken over. Returns whether nobody else has changed anything since the command began: then it goes on from here.
    pub fn is_ours(&mut self, real: &Real) -> bool {
        let (telling, refs) = (telling(real), refs_of(real));
        let is_same = |(path, now): &(PathBuf, Option<Stamp>)| {
            let then = self.ours.get(path).or_else(|| self.stamps.get(path));
            then.is_none_or(|then| then == now)
        };
        let is_ours = refs == self.refs && telling.iter().all(is_same);
        if is_ours {
            self.telling = telling;
            self.note_whole(real);
        }
        is_ours
    }

    fn note_whole(&mut self, real: &Real) {
        for (path, stamp) in self.telling.iter().filter(|(path, _)| WHOLE.iter().any(|whole| path == Path::new(whole)))
        {
            let is_config = path.to_string_lossy().starts_with("config");
            if is_config && self.stamps.get(path) != Some(stamp) {
                let bytes = real.read(path, super::config::MOST_BYTES).ok().flatten();
                self.configs.insert(path.clone(), bytes.unwrap_or_default());
            }
            self.stamps.insert(path.clone(), stamp.clone());
        }
    }

    fn is_told_nothing(&self, real: &Real) -> bool {
        self.telling.len() <= MOST_TELLING && self.telling.iter().all(|(path, then)| real.stamp(path) == *then)
    }

    /// Whether the gate still shows what is there: the kernel promises nothing of what changed below it.
    pub fn shows(&self, real: &Real) -> bool {
        self.kept.iter().all(|(path, then)| real.stamp(path) == *then) && self.is_told_nothing(real)
    }

    pub fn keep(&mut self, report: &mut Report, real: &Real) {
        let written = std::mem::take(&mut report.written);
        for path in written {
            let stamp = real.stamp(&path);
            self.ours.insert(path, stamp);
        }
        for ((at, name), value) in std::mem::take(&mut report.set) {
            let Some(refs) = self.refs.get_mut(&at) else { continue };
            match value {
                Some(value) => refs.insert(name, value),
                None => refs.remove(&name),
            };
        }
    }
}

/// The time by which file systems stamp.
fn now() -> (i64, i64) {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

/// What tells of others in a git directory and those within it.
fn telling(real: &Real) -> Vec<(PathBuf, Option<Stamp>)> {
    let mut paths = Vec::new();
    for at in iter::once(PathBuf::new()).chain(real.within(MOST_TELLING)) {
        paths.extend(TELLING.iter().chain(&WHOLE).map(|name| at.join(name)));
        let refs = at.join("refs");
        paths.extend(real.directories_below(&refs, MOST_TELLING));
        paths.push(refs);
    }
    paths.into_iter().map(|path| (path.clone(), real.stamp(&path))).collect()
}

/// The references of a git directory and those within it.
fn refs_of(real: &Real) -> HashMap<PathBuf, Refs> {
    let within = real.within(MOST_TELLING).into_iter();
    let within = within.filter_map(|at| Some((at.clone(), refs::all(&real.below(&at).ok()?))));
    iter::once((PathBuf::new(), refs::all(real))).chain(within).collect()
}
