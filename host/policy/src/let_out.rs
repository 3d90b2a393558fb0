//! Letting one command out of its cell: what the session remembers of a refusal, and when a person is asked because of it.
//!
//! What a refusal looks like is `confine/signs.rs`, the question itself `approval/question.rs`. A model has no argument for any of this, and
//! nothing answers it in advance.

use super::confine::Confinement;
use super::shell::{AdmittedCommand, ShellGrant};
use crate::scope::Scope;
use crate::session::CommandKey;
use base::envelope::Failure;
use command::Destination;

/// How the record says that a command ran.
pub(super) const LET_OUT: &str = "unconfined: a person let it out of its cell, once";
/// What a model is told after a refusal.
const CALL_AGAIN: &str = "if the command needs that, call it again with the very same text: a person is asked whether it may run unconfined, once";

impl ShellGrant {
    /// What makes a command the same when it is called again.
    pub(super) fn command_key(&self, text: &[u8], scope: &Scope) -> CommandKey {
        CommandKey::new(&scope.principal, &self.sha256, scope.backend.name(), text)
    }

    /// What its cell refused the command when it ran last, where a person may let it out because of that, and somebody reads the question. Each
    /// refusal is asked about once.
    pub(super) async fn refused_before(
        &self,
        key: &CommandKey,
        goes_to: Destination,
        confinement: &Confinement,
        scope: &Scope,
    ) -> Result<Option<String>, Failure> {
        if confinement.cell().is_none() || !self.confine.lets_out() || !scope.approver.is_read() {
            return Ok(None);
        }
        let Some(refused) = scope.session.take_refused(key) else { return Ok(None) };
        Ok(Some(match goes_to {
            Destination::Process => refused,
            Destination::Pane | Destination::Program => {
                let directory = scope.backend.facts().await?.directory.display().to_string();
                format!("{refused}\nunconfined it would be a process of its own in `{directory}`")
            }
        }))
    }
}

impl AdmittedCommand {
    /// Remembers what its cell refused it; returns what comes of calling it again, where a person may let it out.
    pub fn remember(&self, refusals: &[String], scope: &Scope) -> Option<String> {
        if self.cell().is_none() || refusals.is_empty() || !self.lets_out() || !scope.approver.is_read() {
            return None;
        }
        // A no of a person's is no reason to ask for more.
        if scope.was_refused() {
            return None;
        }
        scope.session.remember_refused(self.key().clone(), refusals.join("\n"));
        Some(CALL_AGAIN.into())
    }
}
