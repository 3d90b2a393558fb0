//! What a plugin may have done at set times: the jobs and events that it may have at all.
//!
//! What is decided when one is saved is decided again each time it fires.

use super::embedder::EmbedderGrant;
use super::jobs::JobsGrant;
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::session::Session;
use crate::{Bound, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use config::Config;
use contract::manifest::Manifest;

/// The schedules of one plugin.
#[derive(Clone)]
pub struct SchedulesGrant {
    plugin: String,
    agent: String,
    is_builtin: bool,
    events: Result<EmbedderGrant, Failure>,
    jobs: Result<JobsGrant, Failure>,
}

impl Grant for SchedulesGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        if !bound.rights.schedules {
            return Err(policy.not_granted(plugin, bound, Capability::Schedules, "schedules = true", "--schedules"));
        }
        let (events, jobs) = (EmbedderGrant::of(policy, plugin, bound), JobsGrant::of(policy, plugin, bound));
        Ok(Self::new(plugin, events, jobs, &bound.config))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let most = explained.policy.config.schedules.most;
        let detail = format!("has jobs and events at set times, at most {most} of one agent");
        let decided_by = explained.own("schedules");
        let mut clauses = vec![Clause { subject: "schedules", verdict: "allowed", detail, decided_by }];
        clauses.extend(explained.granted(Capability::Embedder, self.events().map(|events| events.clauses(explained))));
        clauses.extend(explained.granted(Capability::Jobs, self.jobs().map(|jobs| jobs.clauses(explained))));
        clauses
    }
}

impl SchedulesGrant {
    pub(super) fn new(
        plugin: &Manifest,
        events: Result<EmbedderGrant, Failure>,
        jobs: Result<JobsGrant, Failure>,
        config: &Config,
    ) -> Self {
        let (is_builtin, agent) = (plugin.id.is_builtin(), config.agent.name.clone());
        Self { plugin: plugin.name().into(), agent, is_builtin, events, jobs }
    }

    /// The plugin.
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Whether it sees and changes what a plugin of this name has saved: those of this program see all of an agent's.
    pub fn has(&self, plugin: &str) -> bool {
        self.is_builtin || self.plugin == plugin
    }

    /// Whether it sees all of an agent's.
    pub fn has_all(&self) -> bool {
        self.is_builtin
    }

    /// Whose schedules a session of this program is about.
    pub fn agent(&self, session: &Session) -> String {
        session.agent(&self.agent)
    }

    /// The events that it may hand over.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn events(&self) -> Result<&EmbedderGrant, Failure> {
        self.events.as_ref().map_err(Failure::clone)
    }

    /// The tools of which it may have jobs.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn jobs(&self) -> Result<&JobsGrant, Failure> {
        self.jobs.as_ref().map_err(Failure::clone)
    }
}
