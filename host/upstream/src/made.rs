//! What a server makes where it may write, of what runs or is obeyed later. It goes on between calls, so it is watched from its start on, by a watch
//! of its own; how is `policy/held/`.

use audit::Action;
use backend::Backend;
use backend::cell::Profile;
use backend::local::Local;
use base::capability::Capability;
use policy::confine::Confine;
use policy::held::{self, Found, Look, Rules, Watch};
use policy::scope::Scope;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A server's doings.
pub(super) struct Makings {
    watch: Arc<Watch>,
    rules: Arc<Rules>,
    /// Its directories, without the home that it has in Toolcrib's state.
    profile: Arc<Profile>,
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
        // A server ends with its host.
        let (watch, rules) = (Arc::new(Watch::passing()), confine.rules(&facts));
        let makings = Self { watch, rules, profile, cell: cell.clone(), local: local.clone() };
        // It ends at once, so the first call tells what was made from here on.
        drop(makings.look().await);
        Some(makings)
    }

    async fn look(&self) -> Option<Look> {
        Look::new(self.watch.clone(), self.rules.clone(), self.profile.clone(), true, self.local.activity()).await
    }

    /// What the server has made since this was asked last, which goes on record.
    pub(super) async fn told(&self, server: &str, scope: &Scope) -> Vec<String> {
        let Some(look) = self.look().await else { return Vec::new() };
        let Found { told, taken, repositories } = look.found().await;
        for what in &told {
            scope.record(Action {
                capability: Capability::Upstream,
                what: what.clone(),
                confinement: None,
                declaration: None,
                decision: "told".into(),
            });
        }
        // Nobody is asked in the middle of a call of somebody else's server: what is held stays so.
        let visit = self.local.visit(&self.cell).ok().flatten();
        let notices = held::settle(visit, Found { told, taken, repositories }, None, scope).await;
        // Others may write there as well.
        let told = |made| format!("in a directory that the server `{server}` writes, {made}");
        notices.into_iter().map(told).collect()
    }
}
