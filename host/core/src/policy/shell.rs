//! What one plugin may do with the shell: the denylist, then a person's approval; only what passed both can run.
//!
//! Reading a command is `command.rs`, asking is `approval.rs`, running is `capability/shell.rs`.

use super::approval::{ActionKind, By, Consent, Declaration, Landing, Question, Site};
use super::command::{Denylist, Destination, Held};
use super::confine::{Confine, Confinement};
use super::connections::Connections;
use super::typing::{AdmittedInput, Keyboard, Typing};
use crate::audit::Action;
use crate::backend::Backend;
use crate::backend::cell::Profile;
use crate::backend::terminals::Sitting;
use crate::call::scope::Scope;
use crate::call::session::ApprovalKey;
use crate::capability::Capability;
use crate::config::CellNetwork;
use crate::egress::Calling;
use crate::envelope::Failure;
use std::sync::Arc;
use std::time::Duration;

/// What one plugin may do with the shell.
#[derive(Clone)]
pub struct ShellGrant {
    pub(super) plugin: String,
    /// Digest of the component: what an approval for the session is bound to.
    pub(super) sha256: String,
    pub(super) confirm: bool,
    pub(super) approval_timeout: Duration,
    pub(super) denylist: Arc<Denylist>,
    pub(super) confine: Arc<Confine>,
    pub(super) environment: Vec<String>,
    /// Commands also run in panes, whose shell others have shaped; else why not.
    pub(super) pane: Result<(), Failure>,
}

/// A command that policy and, where asked, a person admitted. Made only here.
pub struct AdmittedCommand {
    text: String,
    /// The place that a person was shown.
    directory: Option<String>,
    environment: Vec<String>,
    cell: Option<Arc<Profile>>,
    connections: Option<Connections>,
    confine: Arc<Confine>,
}

impl AdmittedCommand {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    pub(crate) fn environment(&self) -> &[String] {
        &self.environment
    }

    /// What it is confined to.
    pub(crate) fn cell(&self) -> Option<&Arc<Profile>> {
        self.cell.as_ref()
    }

    /// Has the network of its cell served as long as what this returns lives; none where there is none to serve.
    ///
    /// # Errors
    ///
    /// When it cannot be.
    pub(crate) fn serve(&self, scope: &Arc<Scope>) -> Result<Option<Calling>, Failure> {
        let served = self.cell.as_ref().zip(self.connections.clone());
        served.map(|(cell, connections)| scope.egress.serve(cell, connections, scope)).transpose()
    }

    /// What is to be said of refusals in its cell, once it has ended with this status and printed this.
    pub(crate) async fn notices(&self, status: i32, printed: &str, backend: &dyn Backend) -> Vec<String> {
        match &self.cell {
            Some(cell) if status != 0 => match backend.facts().await {
                Ok(facts) => self.confine.notices(cell, &facts, printed),
                Err(_) => Vec::new(),
            },
            Some(_) | None => Vec::new(),
        }
    }
}

/// What is to be decided.
struct Wish<'w> {
    capability: Capability,
    confinement: &'w Confinement,
    /// The whole action, as people read it.
    shown: &'w str,
    held: Held,
    /// The pane, for what is typed.
    keyboard: Option<Keyboard>,
    site: &'w dyn Site,
}

/// What a person may be asked about.
struct Asked<'a> {
    capability: Capability,
    confinement: Option<&'a Confinement>,
    shown: &'a str,
    declaration: Option<&'a Declaration>,
    site: &'a dyn Site,
}

/// An action on panes that policy and, where asked, a person admitted. Made only here.
pub(crate) struct AdmittedAction {
    cell: Option<Arc<Profile>>,
}

impl AdmittedAction {
    /// What the shells of new panes are confined to.
    pub(crate) fn cell(&self) -> Option<&Arc<Profile>> {
        self.cell.as_ref()
    }
}

impl ShellGrant {
    /// What its commands may connect to in a cell; none where that has no such network.
    pub(crate) fn connections(&self, cell: &Profile) -> Option<Connections> {
        match cell.network {
            CellNetwork::None | CellNetwork::Full => None,
            CellNetwork::Egress => Some(Connections {
                reachable: self.confine.reachable(),
                plugin: self.plugin.clone(),
                sha256: self.sha256.clone(),
                approval_timeout: self.approval_timeout,
            }),
        }
    }

    /// Whether commands may run in panes.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub(crate) fn pane(&self) -> Result<(), Failure> {
        self.pane.clone()
    }

    /// Commands are shown to a person first.
    #[must_use]
    pub fn confirms(&self) -> bool {
        self.confirm
    }

    /// How commands run where a call lands.
    ///
    /// # Errors
    ///
    /// Where they have to be confined, and cannot be.
    pub(crate) async fn confinement(&self, scope: &Scope) -> Result<Confinement, Failure> {
        self.confine.at(&*scope.backend).await
    }

    /// How what is typed into the pane runs that this program was started in.
    ///
    /// # Errors
    ///
    /// Where it would have to be confined.
    pub(crate) fn confinement_of_own_pane(&self) -> Result<Confinement, Failure> {
        self.confine.in_own_pane()
    }

    /// Decides on a command that runs so, and records the decision.
    pub(crate) async fn admit(
        &self,
        text: String,
        declaration: Declaration,
        goes_to: Destination,
        confinement: &Confinement,
        site: &dyn Site,
        scope: &Scope,
    ) -> Result<AdmittedCommand, Failure> {
        let held = Held::Script(text.clone(), goes_to);
        let wish = Wish { capability: Capability::Shell, confinement, shown: &text, held, keyboard: None, site };
        let seen = self.decide(wish, declaration, scope).await?;
        Ok(AdmittedCommand {
            text,
            directory: seen.and_then(|landing| landing.directory),
            environment: self.environment.clone(),
            cell: confinement.cell().cloned(),
            connections: confinement.cell().and_then(|cell| self.connections(cell)),
            confine: self.confine.clone(),
        })
    }

    /// Decides on an action on sessions and panes, given as the command that it is, and records the decision.
    pub(crate) async fn admit_action(
        &self,
        command: &str,
        declaration: Declaration,
        site: &dyn Site,
        scope: &Scope,
    ) -> Result<AdmittedAction, Failure> {
        let confinement = self.confinement(scope).await?;
        let held = Held::Script(command.to_owned(), Destination::Program);
        let capability = Capability::Panes;
        let wish = Wish { capability, confinement: &confinement, shown: command, held, keyboard: None, site };
        self.decide(wish, declaration, scope).await?;
        Ok(AdmittedAction { cell: confinement.cell().cloned() })
    }

    /// Decides on what is typed into a pane, and records the decision.
    pub(crate) async fn admit_typing(
        &self,
        Typing { input, held, keyboard, shown }: Typing,
        declaration: Declaration,
        confinement: &Confinement,
        site: &dyn Site,
        scope: &Scope,
    ) -> Result<AdmittedInput, Failure> {
        let keyboard = Some(keyboard);
        let wish = Wish { capability: Capability::Panes, confinement, shown: &shown, held, keyboard, site };
        self.decide(wish, declaration, scope).await?;
        Ok(AdmittedInput(input))
    }

    /// Decides on a look at what is on a person's own screen, and records the decision.
    pub(crate) async fn admit_look(&self, shown: &str, site: &dyn Site, scope: &Scope) -> Result<(), Failure> {
        let look = Asked { capability: Capability::Panes, confinement: None, shown, declaration: None, site };
        let decided = self.confirm(ActionKind::Look, look, scope).await;
        scope.record(Action {
            capability: Capability::Panes,
            what: shown.to_owned(),
            confinement: None,
            declaration: None,
            decision: told(&decided),
        });
        decided.map(|_| ()).map_err(|(failure, _)| failure)
    }

    /// Returns the place that a person was shown, if one was asked.
    async fn decide(
        &self,
        wish: Wish<'_>,
        declaration: Declaration,
        scope: &Scope,
    ) -> Result<Option<Landing>, Failure> {
        let Wish { capability, confinement, shown, held, keyboard, site } = wish;
        let decided = match self.check(held, keyboard, scope.approver.is_read()).await {
            Ok(()) => {
                let (confinement, declaration) = (Some(confinement), Some(&declaration));
                let asked = Asked { capability, confinement, shown, declaration, site };
                self.confirm(ActionKind::Command, asked, scope).await
            }
            Err(refused) => Err(refused),
        };
        scope.record(Action {
            capability,
            what: shown.to_owned(),
            confinement: confinement.told(),
            declaration: Some(declaration),
            decision: told(&decided),
        });
        decided.map(|consent| consent.seen).map_err(|(failure, _)| failure)
    }

    /// Checks where keys would go, and the action against the denylist, on a thread that serves no other call: it takes milliseconds.
    async fn check(&self, held: Held, keyboard: Option<Keyboard>, is_asked: bool) -> Result<(), (Failure, By)> {
        let denylist = self.denylist.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let typed = keyboard.map_or(Ok(()), |keyboard| keyboard.check(is_asked, &Sitting::now()));
            typed.map_err(|failure| (failure, "the place where questions are answered"))?;
            held.check(&denylist).map_err(|failure| (failure, "tools.shell_denylist"))
        });
        checked.await.unwrap_or_else(|_| {
            let unchecked = Failure::denied("the command could not be checked against `tools.shell_denylist`");
            Err((unchecked, "tools.shell_denylist"))
        })
    }

    /// Returns who allowed it, or the refusal and who refused.
    async fn confirm(&self, kind: ActionKind, asked: Asked<'_>, scope: &Scope) -> Result<Consent, (Failure, By)> {
        let Asked { capability, confinement, shown, declaration, site } = asked;
        let asks = match confinement {
            None | Some(Confinement::Off | Confinement::Elsewhere) => self.confirm,
            Some(Confinement::Cell(profile)) => {
                let needs_more = declaration.is_none_or(|declaration| declaration.privesc);
                self.confirm && (self.confine.asks(profile) || needs_more)
            }
            Some(Confinement::Unconfined(_)) => true,
        };
        if !asks {
            return Ok(Consent::unasked(if self.confirm { "confine.ask" } else { "tools.shell_confirm" }));
        }
        let question = Question {
            key: ApprovalKey::new(&self.sha256, capability, kind, scope.backend.name()),
            plugin: &self.plugin,
            site,
            confinement,
            action: shown,
            details: None,
            declaration,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await
    }
}

/// The decision, for the audit trail.
fn told(decided: &Result<Consent, (Failure, By)>) -> String {
    match decided {
        Ok(consent) => format!("allowed by {}", consent.by),
        Err((_, by)) => format!("denied by {by}"),
    }
}
