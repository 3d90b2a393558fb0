//! What a command left that acts by itself: a person is asked about it, and until somebody says yes it is kept aside.
//!
//! What counts as such in a git directory is decided in `backend/git/`; what is kept aside lies in `store.rs`.

mod store;

pub use store::{Held, Shelf};

use super::confine::{Confine, Look};
use crate::audit::Action;
use crate::backend::Backend;
use crate::backend::cell::{Profile, Visit};
use crate::backend::git::{Ask, Report};
use crate::call::scope::Scope;
use crate::call::session::ApprovalKey;
use crate::capability::Capability;
use crate::policy::approval::{ActionKind, Landing, Question};
use crate::text::sanitize;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What one command is told of; more are counted.
const MOST_TOLD: usize = 5;
/// What a person is shown of one thing that is held.
const MOST_SHOWN: usize = 16 << 10;

/// For whom a person is asked.
#[derive(Clone)]
pub(crate) struct Asker {
    /// The plugin as people read it, and its digest.
    pub(crate) plugin: String,
    pub(crate) sha256: String,
    pub(crate) timeout: Duration,
}

/// What is looked after while a command runs.
pub(crate) struct Watched {
    /// What stands between it and git directories.
    visit: Option<Visit>,
    look: Option<Look>,
}

impl Watched {
    /// Begins; `goes_on` where what the command starts may outlive it.
    pub(super) async fn begin(confine: &Confine, profile: &Arc<Profile>, goes_on: bool, backend: &dyn Backend) -> Self {
        Self { visit: None, look: confine.look(profile, goes_on, backend).await }
    }

    /// The cell that the command is to run in is known: for a pane, only when that was found.
    pub(super) fn enter(&mut self, profile: &Profile, backend: &dyn Backend) {
        // Where there is no cell the command says why.
        self.visit = backend.visit(profile).ok().flatten();
    }

    /// Ends it; returns what is to be said.
    pub(crate) async fn end(self, asker: &Asker, scope: &Scope) -> Vec<String> {
        let (told, repositories) = match self.look {
            Some(look) => look.found().await,
            None => (Vec::new(), Vec::new()),
        };
        match self.visit {
            Some(visit) => [settle(visit, repositories, Some(asker), scope).await, told].concat(),
            None => told,
        }
    }
}

/// Takes over what the commands of a call wrote into git directories, makes `repositories` of theirs anew, and asks about what acts there; where
/// nobody is to be asked, it is held back. Returns what the call is told.
pub(crate) async fn settle(
    visit: Visit,
    repositories: Vec<PathBuf>,
    asker: Option<&Asker>,
    scope: &Scope,
) -> Vec<String> {
    if visit.is_quiet() && repositories.is_empty() {
        return Vec::new();
    }
    let visit = Arc::new(visit);
    let settling = visit.clone();
    let settled = tokio::task::spawn_blocking(move || settling.settle(&repositories)).await;
    let Report { told, asks, .. } = settled.unwrap_or_default();
    let more = told.len().saturating_sub(MOST_TOLD);
    let mut notices: Vec<String> = told.into_iter().take(MOST_TOLD).map(|told| sanitize::visible_line(&told)).collect();
    if more > 0 {
        notices.push(format!("{more} more changes in git directories were not taken over"));
    }
    record(&notices, "not taken over", scope);
    if !asks.is_empty() {
        notices.extend(ask(asks, &visit, asker, scope).await);
    }
    notices
}

/// Asks one question about all that is held.
async fn ask(asks: Vec<Ask>, visit: &Visit, asker: Option<&Asker>, scope: &Scope) -> Vec<String> {
    let shown: Vec<String> = asks.iter().map(shown).collect();
    let names: Vec<String> = asks.iter().map(name).collect();
    let is_kept = match asker.filter(|_| scope.approver.is_read()) {
        Some(asker) => consent(&names, &shown.join("\n"), asker, scope).await,
        None => false,
    };
    let mut notices = Vec::new();
    let shelf = match scope.backend.facts().await {
        Ok(facts) => Shelf::open(&facts.own).ok(),
        Err(_) => None,
    };
    for (ask, name) in asks.into_iter().zip(names) {
        let what = ask.what.clone();
        let notice = match is_kept {
            true => match visit.make(&ask) {
                Ok(()) => format!("`{name}` is kept: a person said yes"),
                Err(error) => format!("`{name}` could not be kept: {error}"),
            },
            false => match shelf.as_ref().map(|shelf| shelf.hold(ask, &scope.id)) {
                Some(Ok(id)) => format!("`{name}` was held back, as {what}: `toolcrib files held keep {id}` keeps it"),
                Some(Err(_)) | None => format!("`{name}` was not kept, as {what}"),
            },
        };
        record(std::slice::from_ref(&notice), if is_kept { "allowed by a person" } else { "held back" }, scope);
        notices.push(notice);
    }
    notices
}

async fn consent(names: &[String], details: &str, asker: &Asker, scope: &Scope) -> bool {
    let action = match names {
        [name] => format!("keep `{name}`, which a command made"),
        names => format!("keep {} things that a command made", names.len()),
    };
    // No answer for the session covers what another command makes.
    let place = format!("{} {}", scope.backend.name(), hex::encode(Sha256::digest(details)));
    let question = Question {
        key: ApprovalKey::new(&asker.sha256, Capability::Shell, ActionKind::Held, &place),
        plugin: &asker.plugin,
        site: &Landing { backend: scope.backend.name().to_owned(), ..Landing::default() },
        confinement: None,
        lent: None,
        action: &action,
        details: Some(details),
        declaration: None,
        refused: None,
        timeout: asker.timeout,
    };
    question.ask(scope).await.is_ok()
}

/// The file that something is in, as people read it.
fn name(ask: &Ask) -> String {
    sanitize::visible_line(&ask.directory.join(ask.act.file()).to_string_lossy())
}

fn shown(ask: &Ask) -> String {
    let text = ask.act.text();
    let end = text.floor_char_boundary(MOST_SHOWN);
    let more =
        if end < text.len() { format!("\n({} more bytes are not shown)", text.len() - end) } else { String::new() };
    format!("{}: {}\n{}{more}", name(ask), ask.what, &text[..end])
}

fn record(notices: &[String], decision: &str, scope: &Scope) {
    for notice in notices {
        scope.record(Action {
            capability: Capability::Shell,
            what: notice.clone(),
            confinement: None,
            declaration: None,
            decision: decision.to_owned(),
        });
    }
}
