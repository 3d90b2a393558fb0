//! What one plugin may do with the shell: the denylist, then a person's approval; only what passed both can run.
//!
//! Reading a command is `command.rs`, asking is `approval.rs`, running is `capability/shell.rs`.

use super::approval::{ActionKind, By, Consent, Declaration, Landing, Question, Site};
use super::command::{self, Denylist, Destination};
use crate::audit::Action;
use crate::envelope::Failure;
use crate::scope::Scope;
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
    pub(super) environment: Vec<String>,
    /// Commands also run in panes, whose shell others have shaped; else why not.
    pub(super) pane: Result<(), Failure>,
}

/// A command that policy and, where asked, a person admitted. Made only here.
pub struct AdmittedCommand {
    text: String,
    /// Where a person was told that it runs.
    directory: Option<String>,
    environment: Vec<String>,
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
}

/// What a plugin wants to do to panes.
pub(crate) struct PaneAction {
    /// The whole action, as people read it.
    pub(crate) shown: String,
    /// What the denylist is held against: the command that it is, or the text that is typed.
    pub(crate) script: String,
}

/// What is to be decided.
struct Wish<'w> {
    capability: &'static str,
    /// The whole action, as people read it.
    shown: &'w str,
    /// What the denylist is held against.
    script: &'w str,
    goes_to: Destination,
    site: &'w dyn Site,
}

/// An action on panes that policy and, where asked, a person admitted. Made only here.
pub(crate) struct AdmittedAction(());

impl ShellGrant {
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

    /// Decides on a command, and records the decision.
    pub(crate) async fn admit(
        &self,
        text: String,
        declaration: Declaration,
        goes_to: Destination,
        site: &dyn Site,
        scope: &Scope,
    ) -> Result<AdmittedCommand, Failure> {
        let wish = Wish { capability: "shell", shown: &text, script: &text, goes_to, site };
        let seen = self.decide(wish, declaration, scope).await?;
        Ok(AdmittedCommand {
            text,
            directory: seen.and_then(|landing| landing.directory),
            environment: self.environment.clone(),
        })
    }

    /// Decides on an action on panes, and records the decision.
    pub(crate) async fn admit_action(
        &self,
        action: PaneAction,
        declaration: Declaration,
        site: &dyn Site,
        scope: &Scope,
    ) -> Result<AdmittedAction, Failure> {
        let PaneAction { shown, script } = &action;
        let wish = Wish { capability: "panes", shown, script, goes_to: Destination::Program, site };
        self.decide(wish, declaration, scope).await?;
        Ok(AdmittedAction(()))
    }

    /// Returns where a person was told that it lands, if one was asked.
    async fn decide(
        &self,
        wish: Wish<'_>,
        declaration: Declaration,
        scope: &Scope,
    ) -> Result<Option<Landing>, Failure> {
        let Wish { capability, shown, .. } = wish;
        let decided = match self.check(&wish).await {
            Ok(()) => self.confirm(&wish, &declaration, scope).await,
            Err(failure) => Err((failure, "tools.shell_denylist")),
        };
        let decision = match &decided {
            Ok(consent) => format!("allowed by {}", consent.by),
            Err((_, by)) => format!("denied by {by}"),
        };
        scope.record(Action { capability, what: shown.to_owned(), declaration: Some(declaration), decision });
        decided.map(|consent| consent.seen).map_err(|(failure, _)| failure)
    }

    /// Holds the command against the denylist, off the threads that serve other calls: a long script takes milliseconds.
    async fn check(&self, wish: &Wish<'_>) -> Result<(), Failure> {
        let (text, denylist, goes_to) = (wish.script.to_owned(), self.denylist.clone(), wish.goes_to);
        let checked = tokio::task::spawn_blocking(move || command::check(&text, &denylist, goes_to)).await;
        checked
            .unwrap_or_else(|_| Err(Failure::denied("the command could not be checked against `tools.shell_denylist`")))
    }

    /// Returns who allowed it, or the refusal and who refused.
    async fn confirm(
        &self,
        wish: &Wish<'_>,
        declaration: &Declaration,
        scope: &Scope,
    ) -> Result<Consent, (Failure, By)> {
        if !self.confirm {
            return Ok(Consent::unasked("tools.shell_confirm"));
        }
        let question = Question {
            kind: ActionKind::Command,
            plugin: &self.plugin,
            sha256: &self.sha256,
            capability: wish.capability,
            backend: scope.backend.name(),
            site: wish.site,
            action: wish.shown,
            details: None,
            declaration: Some(declaration),
            timeout: self.approval_timeout,
        };
        question.ask(scope).await
    }
}
