//! What commands made that runs or is obeyed later. It was not there when they began, so it could not be protected.
//!
//! The kernel says where something has happened (`watches.rs`), and stamps each change of a file with a time that no process can set
//! (ctime): a look after a command (`made/walk.rs`) needs no picture of before it, except of repositories, which are as old as ever when they
//! are moved. What a command left running in a pane makes things when nobody waits for it: the next look tells those. What the names mean is
//! `policy/files/later.rs`.

mod walk;

use super::Confine;
use crate::backend::cell::Profile;
use crate::backend::{Backend, Facts};
use crate::text::sanitize;
use crate::watches::{Dirty, Told, Watches};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeSet, HashMap};
use std::fs::symlink_metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walk::{How, Made, Place, Repositories, Walk};

/// What of a repository acts by itself. In one that has a gate nothing of it changes but by the host.
const GIT: [&str; 2] = [".git/hooks", ".git/config"];
/// What one command is told of; more are counted.
const MOST_TOLD: usize = 3;

/// Seconds and nanoseconds, by the clock of file systems.
type Stamp = (i64, i64);

/// What is known between commands.
#[derive(Default)]
pub(crate) struct Watch(Mutex<Watched>);

struct Watched {
    /// Since when things may have been made that nobody has looked for.
    unseen: Option<Stamp>,
    /// Something may go on in a pane after its command.
    goes_on: bool,
    /// Since when each look has something to tell that has begun and not ended.
    open: Vec<Stamp>,
    watches: Watches<Place>,
    /// Those below each directory that can be written.
    repositories: HashMap<PathBuf, Repositories>,
    /// Directories on PATH in those that were missing when somebody looked last: nothing could be laid over them.
    missing: BTreeSet<PathBuf>,
    /// What was found, as long as a look can find it again: one may begin within a tick of that clock in which another ended.
    last: Vec<Made>,
}

impl Default for Watched {
    fn default() -> Self {
        let (unseen, goes_on, open, watches) = (None, false, Vec::new(), Watches::of(Told::Changes));
        let (repositories, missing, last) = (HashMap::new(), BTreeSet::new(), Vec::new());
        Self { unseen, goes_on, open, watches, repositories, missing, last }
    }
}

impl Watched {
    /// A look has ended that looked for things since then.
    fn close(&mut self, since: Stamp) {
        if let Some(index) = self.open.iter().position(|open| *open == since) {
            self.open.swap_remove(index);
        }
    }
}

impl Watch {
    /// What runs from now on may go on when nobody waits for it.
    pub(in crate::policy) fn go_on(&self) {
        let mut watched = self.0.lock();
        watched.goes_on = true;
        watched.unseen.get_or_insert_with(now);
    }
}

/// The time by which file systems stamp.
fn now() -> Stamp {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

/// A look at what a command makes. Where it does not come to its end, the next one tells what this one would have told.
pub(crate) struct Look {
    watch: Arc<Watch>,
    profile: Arc<Profile>,
    /// What is protected below each directory, where it exists.
    names: Arc<Vec<String>>,
    facts: Arc<Facts>,
    since: Stamp,
    has_ended: bool,
}

impl Confine {
    /// Begins to look for what a command makes in its cell; `goes_on` where what it starts may outlive it.
    pub(crate) async fn look(&self, profile: &Arc<Profile>, goes_on: bool, backend: &dyn Backend) -> Option<Look> {
        let facts = backend.facts().await.ok()?;
        let names = self.names.iter().cloned().chain(GIT.map(str::to_owned)).collect();
        Look::new(self.watch.clone(), Arc::new(names), profile.clone(), facts, goes_on).await
    }

    /// What is protected below each directory that can be written.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

impl Look {
    /// Begins to look for what is made of these names in the directories that a profile writes, since the looks before it by this watch.
    pub(crate) async fn new(
        watch: Arc<Watch>,
        names: Arc<Vec<String>>,
        profile: Arc<Profile>,
        facts: Arc<Facts>,
        goes_on: bool,
    ) -> Option<Self> {
        if goes_on {
            watch.go_on();
        }
        let since = now();
        let (since, is_known) = {
            let mut watched = watch.0.lock();
            let since = watched.unseen.map_or(since, |unseen| unseen.min(since));
            watched.open.push(since);
            let is_missing = |entry: &&PathBuf| profile.can_write(entry) && symlink_metadata(entry).is_err();
            watched.missing.extend(facts.surroundings.programs.iter().filter(is_missing).cloned());
            (since, profile.write.iter().all(|root| watched.repositories.contains_key(root)))
        };
        let look = Self { watch, profile, names, facts, since, has_ended: false };
        // Before the command can make anything.
        if is_known { Some(look) } else { tokio::task::spawn_blocking(|| look.begin()).await.ok() }
    }

    /// Has the directories watched that are new to this program, and notes which repositories there are.
    fn begin(self) -> Self {
        let mut watched = self.watch.0.lock();
        for root in &self.profile.write {
            if !watched.repositories.contains_key(root) {
                self.walk(&mut watched, root, |walk| walk.whole());
            }
        }
        drop(watched);
        self
    }

    /// Ends it; returns what is to be said, and the `.git` of each repository that was made or changed.
    pub(crate) async fn found(self) -> (Vec<String>, Vec<PathBuf>) {
        let watch = self.watch.clone();
        // Most commands make nothing, and that is known at once.
        if let Some(mut watched) = watch.0.try_lock()
            && self.is_quiet(&mut watched)
        {
            return self.told(&mut watched);
        }
        tokio::task::spawn_blocking(move || self.told(&mut watch.0.lock())).await.unwrap_or_default()
    }

    /// Nothing has happened where it would have to look.
    fn is_quiet(&self, watched: &mut Watched) -> bool {
        match watched.watches.dirty() {
            Dirty::All => false,
            Dirty::Places(places) => !places.keys().any(|place| self.profile.write.contains(&place.root)),
        }
    }

    fn told(mut self, watched: &mut Watched) -> (Vec<String>, Vec<PathBuf>) {
        self.has_ended = true;
        let mut notices = self.on_path(watched);
        let mut made = self.made(watched);
        let git = self.profile.git();
        made.retain(|made| !git.directories.iter().any(|found| made.path.starts_with(&found.path)));
        let repository = |made: &Made| made.path.ancestors().find(|above| above.ends_with(".git")).map(Path::to_owned);
        let repositories: BTreeSet<PathBuf> = made.iter().filter_map(repository).collect();
        let more = made.len().saturating_sub(MOST_TOLD);
        notices.extend(made.iter().take(MOST_TOLD).map(|made| self.notice(made)));
        if more > 0 {
            notices.push(format!("{more} more were made of what runs or is obeyed later"));
        }
        (notices, repositories.into_iter().collect())
    }

    /// What is to be said of directories on PATH that were made.
    fn on_path(&self, watched: &mut Watched) -> Vec<String> {
        let is_made = |entry: &PathBuf| self.profile.can_write(entry) && symlink_metadata(entry).is_ok();
        let made: Vec<PathBuf> = watched.missing.iter().filter(|entry| is_made(entry)).cloned().collect();
        watched.missing.retain(|entry| !made.contains(entry));
        let told = |entry: &PathBuf| {
            let name = self.name(entry);
            format!("`{name}` was created, which is on PATH: what is in it runs in the place of other programs")
        };
        made.iter().map(told).collect()
    }

    fn made(&self, watched: &mut Watched) -> Vec<Made> {
        let begun = now();
        let mut found = Vec::new();
        match watched.watches.dirty() {
            Dirty::All => {
                for root in &self.profile.write {
                    found.extend(self.walk(watched, root, |walk| walk.whole()));
                }
            }
            Dirty::Places(places) => {
                for (place, names) in places.iter().filter(|(place, _)| self.profile.write.contains(&place.root)) {
                    found.extend(self.walk(watched, &place.root, |walk| walk.part(place, names)));
                }
            }
        }
        watched.close(self.since);
        let has_missed = watched.unseen.is_some_and(|unseen| unseen < self.since);
        if !has_missed {
            watched.unseen = watched.goes_on.then_some(begun);
        }
        // Others that have begun before need to see it as well.
        if watched.open.is_empty() && !has_missed {
            watched.watches.forget();
        }
        let is_told = |made: &Made| watched.last.iter().any(|told| told.path == made.path && told.when == made.when);
        let news: Vec<Made> = found.into_iter().filter(|made| !is_told(made)).collect();
        // A look that is open, or the next one, which may begin within the same tick, finds those again.
        let oldest =
            watched.open.iter().chain(&watched.unseen).copied().min().map_or(begun, |oldest| oldest.min(begun));
        watched.last.retain(|made| made.when >= oldest);
        watched.last.extend(news.iter().cloned());
        news.into_iter().filter(|made| made.how != How::Within).collect()
    }

    /// Walks through a directory that can be written; returns what was made there.
    fn walk(&self, watched: &mut Watched, root: &PathBuf, walks: impl FnOnce(&mut Walk<'_>)) -> Vec<Made> {
        let before = watched.repositories.get(root).cloned();
        let Watched { watches, last, .. } = watched;
        let mut walk = Walk::new(root, &self.names, self.since, before.as_ref(), last, watches);
        walks(&mut walk);
        let Walk { made, repositories, .. } = walk;
        watched.repositories.insert(root.clone(), repositories);
        made
    }

    /// A path for notices: in the workspace, from there on.
    fn name(&self, path: &Path) -> String {
        let name = path.strip_prefix(&self.facts.workspace.root).unwrap_or(path);
        sanitize::visible_line(&name.to_string_lossy())
    }

    fn notice(&self, Made { path, how, .. }: &Made) -> String {
        let name = self.name(path);
        let what = self.facts.surroundings.later(path).map_or("`protect` under [confine] names it", |later| later.what);
        match how {
            How::Created | How::Within => format!("`{name}` was created: {what}"),
            How::Changed => format!("`{name}` was changed or moved there: {what}"),
            How::SetId => {
                format!("`{name}` is setuid or setgid now: whoever runs it gets the rights of its owner or group")
            }
        }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut watched = self.watch.0.lock();
            watched.close(self.since);
            watched.unseen = Some(watched.unseen.map_or(self.since, |unseen| unseen.min(self.since)));
        }
    }
}
