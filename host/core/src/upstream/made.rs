//! What a server makes where it may write, of what runs or is obeyed later. It goes on between calls, so it is watched from its start on, by a watch
//! of its own; how is `policy/confine/made.rs`.

use crate::audit::Action;
use crate::backend::cell::Profile;
use crate::backend::local::Local;
use crate::backend::{Backend, Facts};
use crate::call::scope::Scope;
use crate::capability::Capability;
use crate::policy::confine::{Confine, Look, Watch};
use crate::policy::files::LATER;
use crate::policy::held;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a repository is led and run by; the table of what runs later has all of it by the name of its directory.
const GIT: [&str; 7] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info",
    ".git/modules",
    ".git/worktrees",
];
/// How names of that table begin or end that are not those of one file or directory.
const PATTERNS: [char; 4] = ['*', '~', '/', '$'];

/// A server's doings.
pub(super) struct Makings {
    watch: Arc<Watch>,
    names: Arc<Vec<String>>,
    /// Its directories, without the home that it has in Toolcrib's state.
    profile: Arc<Profile>,
    facts: Arc<Facts>,
    /// The cell that it runs in, and where that is.
    cell: Arc<Profile>,
    local: Arc<Local>,
}

impl Makings {
    /// Begins to watch a server that is about to be started; none where it writes in its home alone.
    pub(super) async fn of(cell: &Arc<Profile>, home: &Path, confine: &Confine, local: &Arc<Local>) -> Option<Self> {
        let (profile, facts) = (cell, local.facts().await.ok()?);
        let write: Vec<PathBuf> = profile.write.iter().filter(|root| *root != home).cloned().collect();
        if write.is_empty() {
            return None;
        }
        let profile = Arc::new(Profile { write, ..Profile::closed() });
        let (watch, names) = (Arc::default(), Arc::new(names(confine)));
        let makings = Self { watch, names, profile, facts, cell: cell.clone(), local: local.clone() };
        // It ends at once, so the first call tells what was made from here on.
        drop(makings.look().await);
        Some(makings)
    }

    async fn look(&self) -> Option<Look> {
        let Self { watch, names, profile, facts, .. } = self;
        Look::new(watch.clone(), names.clone(), profile.clone(), facts.clone(), true).await
    }

    /// What the server has made since this was asked last, which goes on record.
    pub(super) async fn told(&self, server: &str, scope: &Scope) -> Vec<String> {
        let Some(look) = self.look().await else { return Vec::new() };
        // Others may write there as well.
        let told = |made| format!("in a directory that the server `{server}` writes, {made}");
        let (made, repositories) = look.found().await;
        let made: Vec<String> = made.into_iter().map(told).collect();
        for what in &made {
            scope.record(Action {
                capability: Capability::Upstream,
                what: what.clone(),
                confinement: None,
                declaration: None,
                decision: "told".into(),
            });
        }
        // Nobody is asked in the middle of a call of somebody else's server: what acts in a git directory is held back.
        let git = match self.local.visit(&self.cell).ok().flatten() {
            Some(visit) => held::settle(visit, repositories, None, scope).await,
            None => Vec::new(),
        };
        made.into_iter().chain(git.into_iter().map(told)).collect()
    }
}

/// The names that are looked for.
fn names(confine: &Confine) -> Vec<String> {
    let is_plain = |place: &&str| !place.contains('/') && !place.starts_with(PATTERNS) && !place.ends_with(PATTERNS);
    let later = LATER.iter().flat_map(|later| later.places.iter().copied()).filter(is_plain);
    let all = later.chain(GIT).map(str::to_owned).chain(confine.names().iter().cloned());
    all.collect::<BTreeSet<_>>().into_iter().collect()
}
