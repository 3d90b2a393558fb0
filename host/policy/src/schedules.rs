//! What a plugin may have done at set times: the jobs and events that it may have at all.
//!
//! What is decided when one is saved is decided again each time it fires.

use super::embedder::EmbedderGrant;
use super::jobs::JobsGrant;
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

impl Policy {
    pub(super) fn schedules_grant(&self, plugin: &Manifest, bound: &Bound) -> Result<SchedulesGrant, Failure> {
        if !bound.rights.schedules {
            return Err(self.not_granted(plugin, bound, Capability::Schedules, "schedules = true", "--schedules"));
        }
        let (events, jobs) = (self.embedder_grant(plugin, bound), self.jobs_grant(plugin, bound));
        Ok(SchedulesGrant::new(plugin, events, jobs, &bound.config))
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
