//! What may be called of the tools of other people's servers, what a person is asked about, and what such a server connects to.
//!
//! A section `[upstream.NAME]` decides; what a server says of its own tools does not. `upstream/` does what is granted here.

use super::approval::{ActionKind, By, Landing, Question};
use super::connections::Judge;
use super::hosts::{AdmittedTarget, HostRules, Opens, covers};
use crate::audit::Action;
use crate::call::scope::Scope;
use crate::call::session::ApprovalKey;
use crate::capability::Capability;
use crate::config::{Config, HostPattern, UpstreamConfirm, UpstreamSection};
use crate::egress::{Host, Special, Target, special};
use crate::envelope::Failure;
use crate::text::sanitize;
use crate::tools::manifest::PluginId;
use async_trait::async_trait;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Characters of arguments that the record has.
const RECORDED: usize = 200;

/// What may be done with one server.
#[derive(Clone)]
pub struct UpstreamGrant {
    name: String,
    /// The plugin as people read it, and what an approval is bound to.
    label: String,
    bound_to: String,
    section: UpstreamSection,
    /// The hosts that each secret may go to that it is started with.
    secrets: Vec<(String, Vec<HostPattern>)>,
    rules: HostRules,
    hidden: Arc<Vec<PathBuf>>,
    approval_timeout: Duration,
}

impl UpstreamGrant {
    pub(super) fn new(id: &PluginId, section: &UpstreamSection, hidden: &[PathBuf], config: &Config) -> Self {
        let hosts = |secret: &str| config.secret.get(secret).map(|found| found.hosts.clone()).unwrap_or_default();
        Self {
            name: id.name.clone(),
            label: id.label(),
            bound_to: id.approved_as().into(),
            secrets: section.secrets().map(|secret| (secret.to_owned(), hosts(secret))).collect(),
            rules: HostRules::new(config, Opens::Fetch, &section.hosts),
            section: section.clone(),
            hidden: Arc::new(hidden.to_vec()),
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
        }
    }

    /// What its section says.
    #[must_use]
    pub fn section(&self) -> &UpstreamSection {
        &self.section
    }

    /// What it never sees.
    pub(crate) fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    /// Whether a person is asked about a tool.
    #[must_use]
    pub fn asks(&self, tool: &str) -> bool {
        match self.section.confirm {
            UpstreamConfirm::None => false,
            UpstreamConfirm::Writes => !self.section.only_reads(tool),
            UpstreamConfirm::All => true,
        }
    }

    /// Decides on a call of a tool by its server's own name, with these arguments.
    pub(crate) async fn admit(&self, tool: &str, arguments: &str, scope: &Scope) -> Result<(), Failure> {
        let decided = match (self.section.offers(tool), self.asks(tool)) {
            (false, _) => {
                let line = format!("add \"{tool}\" to `tools` under [upstream.{}]", self.name);
                Err((Failure::denied(format!("`{tool}` of `{}` is not offered", self.name)).hint(line), "its section"))
            }
            (true, false) => Ok("its section"),
            (true, true) => self.ask(tool, arguments, scope).await,
        };
        let shown: String = sanitize::line(arguments).chars().take(RECORDED).collect();
        let decision = match &decided {
            Ok(by) => format!("allowed by {by}"),
            Err((_, by)) => format!("denied by {by}"),
        };
        self.record(format!("call {tool} with {shown}"), decision, scope);
        decided.map(drop).map_err(|(refusal, _)| refusal)
    }

    async fn ask(&self, tool: &str, arguments: &str, scope: &Scope) -> Result<By, (Failure, By)> {
        let site = Landing { backend: format!("the server {}", self.name), ..Landing::default() };
        let action = format!("call `{tool}` of the server `{}`", self.name);
        let details = serde_json::from_str::<serde_json::Value>(arguments).ok();
        let details = details.and_then(|arguments| serde_json::to_string_pretty(&arguments).ok());
        let question = Question {
            // A yes for one tool is none for another.
            key: ApprovalKey::new(&self.bound_to, Capability::Upstream, ActionKind::ToolCall, tool),
            plugin: &self.label,
            site: &site,
            confinement: None,
            lent: None,
            action: &action,
            details: details.as_deref(),
            declaration: None,
            refused: None,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await.map(|consent| consent.by)
    }

    /// Writes down what became of a connection.
    pub(crate) fn record_connection(&self, server: &str, decided: Result<(), &Failure>, scope: &Scope) {
        let decision = match decided {
            Ok(()) => "allowed by its section".to_owned(),
            Err(refusal) => format!("denied: {}", refusal.message),
        };
        self.record(format!("connect to {server}"), decision, scope);
    }

    fn record(&self, what: String, decision: String, scope: &Scope) {
        scope.record(Action { capability: Capability::Upstream, confinement: None, what, declaration: None, decision });
    }

    fn check(&self, target: &Target) -> Result<(), Failure> {
        let (host, name) = (target.host(), &self.name);
        self.rules.check_host(host, || {
            if self.section.hosts.iter().any(|entry| covers(entry, host)) {
                return Ok(());
            }
            let message = format!("the server `{name}` may not reach `{host}`");
            Err(Failure::denied(message).hint(format!("add \"{host}\" to `hosts` under [upstream.{name}]")))
        })?;
        if let Host::Address(address) = host {
            self.admit_address(target, *address, special(*address), false)?;
        }
        let astray = self.secrets.iter().find(|(_, hosts)| !hosts.iter().any(|entry| covers(entry, host)));
        if let Some((secret, _)) = astray {
            let message = format!("the server `{name}` has the secret `{secret}`, which may not go to `{host}`");
            return Err(Failure::denied(message)
                .hint(format!("`hosts` under [secret.{secret}] names the hosts that it may go to")));
        }
        let port = target.port();
        if self.section.ports.contains(&port) {
            return Ok(());
        }
        let message = format!("the server `{name}` may not reach port {port} of `{host}`");
        Err(Failure::denied(message).hint(format!("add {port} to `ports` under [upstream.{name}]")))
    }
}

#[async_trait]
impl Judge for UpstreamGrant {
    fn has_secret(&self) -> bool {
        !self.secrets.is_empty()
    }

    fn admits_plain(&self) -> bool {
        true
    }

    async fn admit(&self, target: Target, call: Option<&Scope>) -> Result<AdmittedTarget, Failure> {
        let (server, decided) = (target.server(), self.check(&target));
        if let Some(scope) = call {
            self.record_connection(&server, decided.as_ref().copied(), scope);
        }
        decided.map(|()| AdmittedTarget::new(target))
    }

    fn admit_address(
        &self,
        target: &Target,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
    ) -> Result<(), Failure> {
        self.rules.check_address(target.host(), address, special, is_own, || Ok(())).map(drop)
    }
}
