//! `undo` of `wit/files.wit`: what this session's calls changed by `files` is kept as it was, and put back where the grant admits the write. What
//! commands may change is kept by a checkpoint before they begin.

use super::Refusal;
use super::bindings::toolcrib::plugin::{files, files::Undone, types};
use super::files::{Over, judged};
use crate::reach::Reach;
use crate::sandbox::State;
use backend::Facts;
use backend::cell::Profile;
use backend::undo::Replaced;
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use file_access::New;
use futures_util::future::BoxFuture;
use policy::held;
use policy::writes::changes_of;
use std::path::Path;
use undo::checkpoints::{Checkpoints, Place, Side, Why};
use undo::{By, Entry, Kept, NotUndone};

/// Checkpoints of a session that are looked through.
const MOST_CHECKPOINTS: usize = 10;
/// Bytes of a file of which the difference is shown.
const MOST_COMPARED: usize = 8 << 20;

impl State {
    /// Keeps what a write took the place of; says so where that cannot be.
    pub(super) async fn keep_for_undo(&mut self, path: &Path, replaced: Replaced, left: [u8; 32]) {
        let (undo, scope, path) = (self.scope.services.undo.clone(), self.scope.clone(), path.to_owned());
        let kept = tokio::task::spawn_blocking(move || {
            let by = By { call: &scope.id, session: scope.session.id(), tool: &scope.tool };
            undo.keep(by, &path, replaced, left)
        });
        let why = match kept
            .await
            .map_err(|error| error.to_string())
            .and_then(|kept| kept.map_err(|error| error.to_string()))
        {
            Ok(Kept::Yes) => return,
            Ok(Kept::Unread) => "it had more than 8 MiB, or could not be read".to_owned(),
            Ok(Kept::Elsewhere) => "files are kept as they were on this machine only".to_owned(),
            Err(error) => error,
        };
        self.scope.guard.notice(format!("this change cannot be undone: {why}"));
    }

    pub(super) async fn put_back(&mut self, path: Option<String>) -> Result<Vec<Undone>, Refusal> {
        let grant = self.grants()?.files()?.clone();
        if !self.scope.backend.is_this_machine() {
            let message = "files are kept as they were on this machine only, and this call lands elsewhere";
            return Err(Failure::new(Kind::Unavailable, message)
                .hint("take the change back by `file_edit` or git")
                .into());
        }
        let path = match path {
            None => None,
            Some(path) => {
                self.meter.charge_bytes(path.len())?;
                let placed = self.placed(&path, true).await?;
                Some((path, self.scope.backend.resolve(&placed, &grant.roots()).await?.path))
            }
        };
        let mut undone = Vec::new();
        for entry in self.meant(path.as_ref().map(|(_, path)| path.as_path())).await? {
            let shown = entry.change.path.display().to_string();
            let refusal = match self.undone(entry, &shown).await {
                Ok(()) => None,
                Err(refusal) => Some(types::Host::convert_failure(self, refusal)?),
            };
            self.meter.charge_bytes(shown.len())?;
            undone.push(Undone { path: shown, refusal });
        }
        match (undone.is_empty(), path) {
            (false, _) => Ok(undone),
            (true, None) => Err(Failure::failed("no call of this session has changed a file by a file tool")
                .hint("name a file with `path`: one that a command changed is put back as well")
                .into()),
            (true, Some((given, path))) => Ok(vec![self.put_back_by_checkpoint(&given, &path).await?]),
        }
    }

    /// Puts one file back as the last checkpoint of this session has it in which it was another: an ordinary write, by all rules of one.
    async fn put_back_by_checkpoint(&mut self, given: &str, path: &Path) -> Result<Undone, Refusal> {
        let facts = self.scope.backend.facts().await?;
        let (undo, session) = (self.scope.services.undo.clone(), self.scope.session.id().to_owned());
        let of = path.to_owned();
        let then = tokio::task::spawn_blocking(move || was(undo.checkpoints(), &session, &facts, &of)).await;
        let then = then.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
        let Some(content) = then? else {
            let message = format!(
                "no call of this session has changed `{given}` by a file tool, and no checkpoint of this session has it otherwise"
            );
            return Err(Failure::failed(message).hint("ignored files are in no checkpoint; use git").into());
        };
        let shown = path.display().to_string();
        if let Some(above) = path.parent() {
            files::Host::make_directory(self, above.display().to_string()).await?;
        }
        self.write_over(shown.clone(), content, Over::Anything).await?;
        Ok(Undone { path: shown, refusal: None })
    }

    /// The changes of this session that are to be undone, the newest first: the last one of a file, or all of the last call.
    async fn meant(&mut self, path: Option<&Path>) -> Result<Vec<Entry>, Failure> {
        let undo = self.scope.services.undo.clone();
        let all = tokio::task::spawn_blocking(move || undo.list()).await;
        let all = all.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
        let all = all.map_err(|error| Failure::new(Kind::Unavailable, format!("changes cannot be read: {error}")))?;
        let session = self.scope.session.id();
        let mut own = all.into_iter().filter(|entry| entry.change.session == session);
        Ok(match path {
            Some(path) => own.find(|entry| entry.change.path == path).into_iter().collect(),
            None => match own.next() {
                None => Vec::new(),
                Some(last) => {
                    let call = last.change.call.clone();
                    [last].into_iter().chain(own.filter(|entry| entry.change.call == call)).collect()
                }
            },
        })
    }

    /// Puts one file back, if the grant and whoever has to be asked admit it.
    async fn undone(&mut self, entry: Entry, shown: &str) -> Result<(), Refusal> {
        let (undo, of) = (self.scope.services.undo.clone(), entry.clone());
        let before = tokio::task::spawn_blocking(move || undo.before(&of)).await;
        let before = before.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
        let before = before.map_err(|not| refusal(shown, not, None))?.unwrap_or_default();
        let grant = self.grants()?.files()?.clone();
        let resolved = self.scope.backend.resolve(shown, &grant.roots()).await;
        let rules = grant.clone();
        let wanted = judged(resolved, move |resolved| rules.admit_write(resolved)).await;
        let admitted = self.confirmed("undo", shown, &grant, wanted, New::Content(&before)).await?;
        if admitted.as_path() != entry.change.path {
            return Err(Failure::failed(format!("`{shown}` leads elsewhere by now")).into());
        }
        held::admit(&*self.scope.backend, admitted.as_path(), &before).await;
        let undo = self.scope.services.undo.clone();
        let undone = tokio::task::spawn_blocking(move || undo.undo(&entry)).await;
        self.scope.touch_state();
        let undone = undone.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
        let Err(not) = undone else { return Ok(()) };
        // Who may write a file need not be allowed to read it: the difference is shown only of what the grant lets be read.
        let now = match &not {
            NotUndone::Changed { now: Some(_), .. } => self.whole_file(shown, MOST_COMPARED).await.ok(),
            NotUndone::Changed { now: None, .. } | NotUndone::Gone | NotUndone::Failed(_) => None,
        };
        Err(refusal(shown, not, now).into())
    }
}

/// Returns what a file had in the last checkpoint of a session in which it was another.
fn was(checkpoints: &Checkpoints, session: &str, facts: &Facts, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let root = &facts.workspace.root;
    let Ok(below) = path.strip_prefix(root) else { return Ok(None) };
    let unavailable = |why: String| Failure::new(Kind::Unavailable, format!("a checkpoint cannot be read: {why}"));
    let all = checkpoints.list().map_err(|error| unavailable(error.to_string()))?;
    let own = all.iter().filter(|of| of.session == session && of.why == Why::Command && of.root == *root);
    for of in own.take(MOST_CHECKPOINTS) {
        let plan = checkpoints.compare(of, &facts.home).map_err(unavailable)?;
        let Some(one) = plan.differences.iter().find(|one| one.path == below) else { continue };
        return match (&one.then, &one.now) {
            (Side::File(..), Side::Nothing | Side::File(..)) => plan.content(&one.then).map_err(unavailable),
            (Side::Nothing, _) => {
                Err(Failure::failed(format!("`{}` was not there before", path.display())).hint("delete it yourself"))
            }
            _ => Err(Failure::failed(format!("`{}` is, or was, not a regular file", path.display()))
                .hint("put it back by run_shell")),
        };
    }
    Ok(None)
}

/// Takes a checkpoint of the workspace, if one is due, before something runs in this cell, or in none. The call is told if that cannot be.
pub(super) fn checkpoint<'a>(cell: Option<&'a Profile>, scope: &'a Reach) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        if !scope.backend.is_this_machine() {
            return;
        }
        let Ok(facts) = scope.backend.facts().await else { return };
        let root = &facts.workspace.root;
        let may_write =
            cell.is_none_or(|cell| cell.write.iter().any(|one| one.starts_with(root) || root.starts_with(one)));
        let checkpoints = scope.services.undo.checkpoints();
        if !may_write || !checkpoints.is_due(scope.session.id(), root) {
            return;
        }
        let _waiting = scope.clock.waiting();
        let (facts, undo, scope) = (facts.clone(), scope.services.undo.clone(), scope.scope.clone());
        let cancel = scope.cancel.clone();
        let taken = tokio::task::spawn_blocking(move || {
            let by = By { call: &scope.id, session: scope.session.id(), tool: &scope.tool };
            let place = Place { root: &facts.workspace.root, home: &facts.home };
            if let Some(told) = undo.checkpoints().take(by, place) {
                scope.guard.notice(sanitize::visible_line(&told));
            }
        });
        tokio::select! {
            _ = taken => {}
            () = cancel.cancelled() => {}
        }
    })
}

/// Why a file was left as it is; `now` is what it has, if the plugin may read it.
fn refusal(shown: &str, not: NotUndone, now: Option<Vec<u8>>) -> Failure {
    match not {
        NotUndone::Changed { now: None, .. } => {
            Failure::failed(format!("`{shown}` is gone, or another file by now; it was left as it is"))
        }
        NotUndone::Changed { before, now: Some(_) } => {
            let changed = Failure::failed(format!("`{shown}` has changed since; it was left as it is"));
            let Some(now) = now else { return changed.hint("make the change yourself") };
            let differs = changes_of(&now, before.as_deref().unwrap_or_default());
            let differs = sanitize::visible(&differs);
            changed.hint(format!("make the change yourself; to undo it would be:\n{differs}"))
        }
        NotUndone::Gone => Failure::failed(format!("`{shown}`, as it was before, is no longer kept")),
        NotUndone::Failed(why) => Failure::failed(format!("`{shown}` was left as it is: {why}")),
    }
}
