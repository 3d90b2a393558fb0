//! Which documents a plugin may keep, and which changes of them a person is asked about: those that the plugin says.
//!
//! Keeping them is `capability/records.rs`.

use super::approval::{ActionKind, By, Landing, Question};
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::scope::Scope;
use crate::session::ApprovalKey;
use crate::{Bound, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use config::Config;
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// Where changes land, whatever the backend, as people read it.
const THERE: &str = "the store";

/// Which documents one plugin may keep: those of the agent, under its name.
#[derive(Clone)]
pub struct RecordsGrant {
    agent: String,
    plugin: String,
    label: String,
    sha256: String,
    confirm: bool,
    approval_timeout: Duration,
}

impl Grant for RecordsGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        match bound.rights.records {
            true => Ok(Self::new(plugin, &bound.config)),
            false => Err(policy.not_granted(plugin, bound, Capability::Records, "records = true", "--records")),
        }
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let clause = |verdict, detail: &str, key| Clause {
            subject: "records",
            verdict,
            detail: detail.into(),
            decided_by: explained.decided(key),
        };
        let (verdict, asked) = match self.confirms() {
            true => ("asks", "a person is shown the changes that it wants approved"),
            false => ("allowed", "nobody is asked about changes"),
        };
        vec![
            clause("allowed", "keeps documents of its own for the agent, within limits", "store.items"),
            clause(verdict, asked, "tools.records_confirm"),
        ]
    }
}

impl RecordsGrant {
    pub(super) fn new(plugin: &Manifest, config: &Config) -> Self {
        Self {
            agent: config.agent.name.clone(),
            plugin: plugin.name().into(),
            label: plugin.id.label(),
            sha256: plugin.sha256().into(),
            confirm: config.tools.records_confirm,
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
        }
    }

    /// Whose they are where the session does not say.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The plugin.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Whether a person is asked where the plugin wants it.
    #[must_use]
    pub fn confirms(&self) -> bool {
        self.confirm
    }

    /// Has a person admit what the plugin wants approved. Returns who or what allowed it.
    ///
    /// # Errors
    ///
    /// `denied` where they say no, or nobody can be asked.
    pub fn approve<'a>(
        &'a self,
        action: &'a str,
        details: &'a str,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            if !self.confirm {
                return Ok("tools.records_confirm".into());
            }
            let question = Question {
                key: ApprovalKey::new(&self.sha256, Capability::Records, ActionKind::Change, THERE),
                plugin: &self.label,
                site: &Landing { backend: THERE.into(), ..Landing::default() },
                confinement: None,
                lent: None,
                action,
                details: Some(details).filter(|details| !details.is_empty()),
                declaration: None,
                subject: None,
                also: &[],
                refused: None,
                timeout: self.approval_timeout,
            };
            let answer: Result<_, (Failure, By)> = question.ask(scope).await;
            answer.map(|consent| consent.by.into_owned()).map_err(|(refusal, _)| refusal)
        })
    }
}
