//! The use of keys and passwords of the user's by commands in a cell: each one a person is asked about who is there.
//!
//! Neither `--yes` nor an approval of commands counts: those say nothing of keys. What has them is asked by `keys/`.

use super::approval::{ActionKind, By, Landing, Question};
use super::confine::Confine;
use crate::scope::Scope;
use crate::session::ApprovalKey;
use ::keys::{Keyring, Wanted, What};
use audit::Action;
use base::capability::Capability;
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where the keys are.
const HERE: &str = "this machine";

/// Lends keys to the commands of one call.
pub struct Lender {
    pub(super) confine: Arc<Confine>,
    /// The plugin as people read it.
    pub(super) plugin: String,
    pub(super) sha256: String,
    pub(super) approval_timeout: Duration,
    /// They have a password.
    pub(super) has_lent: AtomicBool,
}

impl Lender {
    pub fn keyring(&self) -> Keyring {
        self.confine.keyring().clone()
    }

    /// Whether the commands have got a password: they reach no host then that a person is asked about.
    pub(super) fn has_lent(&self) -> bool {
        self.has_lent.load(Ordering::Acquire)
    }

    pub fn note_lent(&self) {
        self.has_lent.store(true, Ordering::Release);
    }

    /// Asks a person who is there, and writes down what came of it.
    pub fn ask<'a>(&'a self, wanted: &'a Wanted, scope: &'a Scope) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let decided = self.decide(wanted, scope).await;
            let decision = match &decided {
                Ok(by) => format!("allowed by {by}"),
                Err((refusal, by)) => format!("denied by {by}: {}", refusal.message),
            };
            scope.record(Action {
                capability: Capability::Shell,
                confinement: None,
                what: wanted.action.replace('\n', " "),
                declaration: None,
                decision,
            });
            decided.map(drop).map_err(|(refusal, _)| refusal)
        })
    }

    async fn decide(&self, wanted: &Wanted, scope: &Scope) -> Result<By, (Failure, By)> {
        if !scope.approver.is_read() {
            let refusal = Failure::denied("a person has to allow each use of a key, and nobody can be asked");
            let hint = "call it where somebody answers questions; `keys = []` under [confine] has none asked for";
            return Err((refusal.hint(hint), "confine.keys".into()));
        }
        let (kind, details) = match wanted.what {
            What::Signature => (ActionKind::Signature, wanted.details.clone()),
            What::Password => {
                let reached = self.confine.reachable().shown();
                (ActionKind::Password, Some(format!("The command gets it, and reaches besides: {reached}")))
            }
        };
        let site = Landing { backend: HERE.into(), ..Landing::default() };
        let question = Question {
            key: ApprovalKey::new(&self.sha256, Capability::Shell, kind, &wanted.covers),
            plugin: &self.plugin,
            site: &site,
            confinement: None,
            lent: None,
            action: &wanted.action,
            details: details.as_deref(),
            declaration: None,
            subject: None,
            also: &[],
            refused: None,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await.map(|consent| consent.by)
    }
}
