//! What a command left that acts by itself: a person is asked about it, and until somebody says yes it is kept aside.
//!
//! What counts as such in a git directory is decided in the crate `git`. `tree.rs` knows what there is of it in the directories that commands
//! write, with `links.rs` for what links lead to and `fetched.rs` for what came from a remote. It takes out by `take.rs` what `rules.rs` says is to
//! be held. What is kept aside lies in `store.rs`; `saved.rs` keeps for the next host what is known.

mod fetched;
mod gathered;
mod links;
mod rules;
mod saved;
mod store;
mod take;
mod tree;

pub use rules::Rules;
pub use store::Taken;
pub use store::{Held, Shelf};
pub use tree::{Found, Look, Watch};

use super::confine::Confine;
use crate::approval::{ActionKind, Landing, Question};
use crate::scope::Scope;
use crate::session::ApprovalKey;
use ::keys::Keyring;
use audit::Action;
use backend::cell::{Profile, Visit};
use backend::{Backend, Facts};
use base::capability::Capability;
use base::text::sanitize;
use futures_util::future::BoxFuture;
use git::{Ask, Report};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What one command is told of; more are counted.
const MOST_TOLD: usize = 5;
const MOST_HELD_TOLD: usize = 20;
/// What a person is shown of one thing that is held.
const MOST_SHOWN: usize = 16 << 10;

/// For whom a person is asked.
#[derive(Clone)]
pub struct Asker {
    /// The plugin as people read it, and its digest.
    pub plugin: String,
    pub sha256: String,
    pub timeout: Duration,
    /// What asks remotes of the person's; none where commands have no network.
    pub keyring: Option<Keyring>,
}

/// What is looked after while a command runs.
pub struct Watched {
    /// What stands between it and git directories.
    visit: Option<Visit>,
    look: Option<Look>,
}

impl Watched {
    /// Begins; `goes_on` where what the command starts may outlive it.
    pub(super) async fn begin(confine: &Confine, profile: &Arc<Profile>, goes_on: bool, backend: &dyn Backend) -> Self {
        let look = match backend.facts().await {
            Ok(facts) => {
                Look::new(confine.watch(), confine.rules(&facts), profile.clone(), goes_on, backend.activity()).await
            }
            Err(_) => None,
        };
        Self { visit: None, look }
    }

    /// The cell that the command is to run in is known: for a pane, only when that was found.
    pub(super) fn enter(&mut self, profile: &Profile, backend: &dyn Backend) {
        // Where there is no cell the command says why.
        self.visit = backend.visit(profile).ok().flatten();
    }

    /// Ends it; returns what is to be said.
    pub fn end<'a>(self, asker: &'a Asker, scope: &'a Scope) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            let found = match self.look {
                Some(look) => look.found().await,
                None => Found::default(),
            };
            settle(self.visit, found, Some(asker), scope).await
        })
    }
}

/// A file tool is about to write this, as settings or a person admitted: it is no command's.
pub fn admit<'a>(backend: &'a dyn Backend, path: &'a Path, bytes: &'a [u8]) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let Ok(facts) = backend.facts().await else { return };
        if backend.is_this_machine() && facts.surroundings.later(path).is_some() {
            // Without it the file is held, and a person is asked again.
            let _ = Shelf::open(&facts.own).and_then(|shelf| shelf.allow(path, bytes));
        }
    })
}

/// Takes over what the commands of a call wrote into git directories, makes repositories of theirs anew, and asks about what acts there and what
/// was found besides; where nobody is to be asked, it stays held. Returns what the call is told.
pub fn settle<'a>(
    visit: Option<Visit>,
    found: Found,
    asker: Option<&'a Asker>,
    scope: &'a Scope,
) -> BoxFuture<'a, Vec<String>> {
    Box::pin(async move {
        let Found { told, taken, repositories } = found;
        let visit = visit.filter(|visit| !visit.is_quiet() || !repositories.is_empty()).map(Arc::new);
        let settled = match visit.clone() {
            Some(settling) => {
                tokio::task::spawn_blocking(move || settling.settle(&repositories)).await.unwrap_or_default()
            }
            None => Report::default(),
        };
        // Only now is there what git fetched.
        let (taken, let_through) = match asker.and_then(|asker| asker.keyring.as_ref()) {
            Some(keyring) => fetched::let_through(taken, keyring, scope).await,
            None => (taken, Vec::new()),
        };
        let things: Vec<Thing> =
            taken.into_iter().map(Thing::File).chain(settled.asks.into_iter().map(Thing::Git)).collect();
        let mut notices = not_taken_over(settled.told, scope);
        notices.extend(told.into_iter().chain(let_through));
        if !things.is_empty() {
            notices.extend(ask(things, visit.as_deref(), asker, scope).await);
        }
        notices
    })
}

/// What is said of changes in git directories.
fn not_taken_over(told: Vec<String>, scope: &Scope) -> Vec<String> {
    let more = told.len().saturating_sub(MOST_TOLD);
    let mut notices: Vec<String> = told.into_iter().take(MOST_TOLD).map(|told| sanitize::visible_line(&told)).collect();
    if more > 0 {
        notices.push(format!("{more} more changes in git directories were not taken over"));
    }
    record(&notices, "not taken over", scope);
    notices
}

/// What a person may still say yes to.
enum Thing {
    /// What git would do.
    Git(Ask),
    /// A file, which lies on the shelf.
    File(Taken),
}

impl Thing {
    /// The file that it is, or is in.
    fn path(&self) -> PathBuf {
        match self {
            Self::Git(ask) => ask.directory.join(ask.act.file()),
            Self::File(taken) => taken.path.clone(),
        }
    }

    fn what(&self) -> &str {
        match self {
            Self::Git(ask) => &ask.what,
            Self::File(taken) => taken.what,
        }
    }

    /// What would be there.
    fn text(&self) -> String {
        match self {
            Self::Git(ask) => ask.act.text(),
            Self::File(taken) => taken.text.clone(),
        }
    }

    /// Does what a person said yes to.
    fn keep(&self, visit: Option<&Visit>, shelf: Option<&Shelf>) -> std::io::Result<()> {
        match self {
            Self::Git(ask) => visit.map_or_else(|| git::make(&ask.directory, &ask.act), |visit| visit.make(ask)),
            Self::File(taken) => shelf.ok_or(std::io::ErrorKind::NotFound)?.keep_id(&taken.id),
        }
    }

    /// Holds it; returns its id.
    fn hold(self, shelf: &Shelf, call: &str) -> std::io::Result<String> {
        match self {
            Self::Git(ask) => shelf.hold(ask, call),
            Self::File(taken) => {
                shelf.made_by(&taken.id, call)?;
                Ok(taken.id)
            }
        }
    }

    /// What is said besides.
    fn more(&self) -> &'static str {
        match self {
            Self::File(Taken { was_there: true, .. }) => "; what was there before is there again",
            Self::File(_) | Self::Git(_) => "",
        }
    }
}

/// Asks one question about all that is held.
async fn ask(things: Vec<Thing>, visit: Option<&Visit>, asker: Option<&Asker>, scope: &Scope) -> Vec<String> {
    let facts = scope.backend.facts().await.ok();
    let names: Vec<String> = things.iter().map(|thing| name(&thing.path(), facts.as_deref())).collect();
    let shown: Vec<String> = things.iter().zip(&names).map(|(thing, name)| shown(thing, name)).collect();
    let is_kept = match asker.filter(|_| scope.approver.is_read()) {
        Some(asker) => consent(&names, &shown.join("\n"), asker, scope).await,
        None => false,
    };
    let mut notices = Vec::new();
    let shelf = facts.as_ref().and_then(|facts| Shelf::open(&facts.own).ok());
    for (thing, name) in things.into_iter().zip(names) {
        let (what, more) = (thing.what().to_owned(), thing.more());
        let notice = match is_kept {
            true => match thing.keep(visit, shelf.as_ref()) {
                Ok(()) => format!("`{name}` is kept: a person said yes"),
                Err(error) => format!("`{name}` could not be kept: {error}"),
            },
            false => match shelf.as_ref().map(|shelf| thing.hold(shelf, &scope.id)) {
                Some(Ok(id)) => {
                    format!(
                        "`{name}` was held back, as {what}: `toolcrib files held keep {}` keeps it{more}",
                        store::short(&id)
                    )
                }
                Some(Err(error)) => format!("`{name}` was not kept, as {what}: {error}"),
                None => format!("`{name}` was not kept, as {what}"),
            },
        };
        record(std::slice::from_ref(&notice), if is_kept { "allowed by a person" } else { "held back" }, scope);
        notices.push(notice);
    }
    let more = notices.len().saturating_sub(MOST_HELD_TOLD);
    if more > 0 {
        notices.truncate(MOST_HELD_TOLD);
        notices.push(format!("so it was with {more} more: `toolcrib files held list` shows what is held"));
    }
    notices
}

/// A path as people read it.
fn name(path: &Path, facts: Option<&Facts>) -> String {
    let below = facts.and_then(|facts| path.strip_prefix(&facts.workspace.root).ok());
    sanitize::visible_line(&below.unwrap_or(path).to_string_lossy())
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
        subject: None,
        also: &[],
        refused: None,
        timeout: asker.timeout,
    };
    question.ask(scope).await.is_ok()
}

fn shown(thing: &Thing, name: &str) -> String {
    let text = thing.text();
    let end = text.floor_char_boundary(MOST_SHOWN);
    let more =
        if end < text.len() { format!("\n({} more bytes are not shown)", text.len() - end) } else { String::new() };
    format!("{name}: {}\n{}{more}", thing.what(), &text[..end])
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
