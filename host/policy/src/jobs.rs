//! Which tools a plugin may submit as jobs, and whose jobs it sees.
//!
//! What a job may do is decided as for any call of its tool; what a person is asked about it, when it is submitted.

use super::exec::has;
use crate::explain::words::{distinct, listed};
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::session::Session;
use crate::{Bound, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use base::text::sanitize;
use config::{Config, Needed, Remedies};
use contract::manifest::Manifest;

/// The tools that one plugin may submit as jobs.
#[derive(Clone)]
pub struct JobsGrant {
    plugin: String,
    agent: String,
    is_builtin: bool,
    /// Within every one of these lists.
    tools: Vec<Vec<String>>,
    remedies: Remedies,
}

impl Grant for JobsGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        if bound.rights.jobs.iter().any(Vec::is_empty) {
            return Err(policy.not_granted(plugin, bound, Capability::Jobs, "jobs = [\"jq\"]", "--job TOOL"));
        }
        Ok(Self::new(plugin, bound.rights.jobs.clone(), &bound.config))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let tools = distinct(self.tools().iter().map(|list| listed(list, "none")).collect());
        let unattended = listed(&explained.policy.config.tools.unattended, "none");
        let clause = |detail, decided_by| Clause { subject: "jobs", verdict: "allowed", detail, decided_by };
        vec![
            clause(format!("submits jobs of these tools: {}", tools.join(", of these only ")), explained.own("jobs")),
            clause(
                format!(
                    "a person is asked about commands when they are submitted; of other tools only these run as jobs: {unattended}"
                ),
                explained.decided("tools.unattended"),
            ),
        ]
    }
}

impl JobsGrant {
    pub(super) fn new(plugin: &Manifest, tools: Vec<Vec<String>>, config: &Config) -> Self {
        let (is_builtin, agent) = (plugin.id.is_builtin(), config.agent.name.clone());
        Self { plugin: plugin.name().into(), agent, is_builtin, tools, remedies: config.remedies() }
    }

    /// The lists in each of which a tool has to be.
    #[must_use]
    pub fn tools(&self) -> &[Vec<String>] {
        &self.tools
    }

    /// The plugin is part of this program.
    pub fn is_of_builtin(&self) -> bool {
        self.is_builtin
    }

    /// Whose jobs a session of this program is about.
    pub fn agent(&self, session: &Session) -> String {
        session.agent(&self.agent)
    }

    /// Whether it sees jobs of a tool.
    pub fn has(&self, tool: &str) -> bool {
        self.tools.iter().all(|list| has(list, tool))
    }

    /// Decides on a tool by its name.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn admit(&self, tool: &str) -> Result<(), Failure> {
        if self.has(tool) {
            return Ok(());
        }
        let (name, shown) = (&self.plugin, sanitize::line(tool));
        let key = format!("plugin.{name}.jobs");
        let line = format!("add {shown:?} to `jobs` under [plugin.{name}]");
        let hint = self.remedies.hint(&key, &Needed::Entry(tool), line);
        Err(Failure::denied(format!("`{name}` may not submit jobs of `{shown}`")).hint(hint))
    }
}
