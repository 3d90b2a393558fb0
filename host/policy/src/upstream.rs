//! What may be called of the tools of other people's servers, what a person is asked about, and what such a server connects to.
//!
//! A section `[upstream.NAME]` decides; what a server says of its own tools does not. `upstream/` does what is granted here.

use super::approval::{ActionKind, By, Landing, Question};
use super::confine::Confine;
use super::connections::{Judge, denied};
use super::hosts::{AdmittedTarget, HostRules, Opens, check_encrypted, check_secret, covers, is_local_name};
use super::keys::Lender;
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::rules::{KeptRules, Subject};
use crate::scope::Scope;
use crate::session::ApprovalKey;
use crate::{Bound, Policy};
use audit::Action;
use base::addresses::special;
use base::capability::Capability;
use base::envelope::Failure;
use base::target::{Host, Target};
use config::{HostPattern, UpstreamConfirm, UpstreamSection};
use contract::manifest::PluginId;
use contract::manifest::{Manifest, Origin};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
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
    hosts: Vec<HostPattern>,
    ports: Vec<u16>,
    /// The hosts that each secret may go to that it is started with.
    secrets: Vec<(String, Vec<HostPattern>)>,
    rules: HostRules,
    confine: Arc<Confine>,
    kept: Arc<KeptRules>,
    approval_timeout: Duration,
}

impl Grant for Arc<UpstreamGrant> {
    fn of(policy: &Policy, plugin: &Manifest, _: &Bound) -> Result<Self, Failure> {
        let name = plugin.name();
        let section = policy.config.upstream.get(name).filter(|_| plugin.id.is_upstream());
        let gone = || Failure::denied(format!("there is no [upstream.{name}] in the settings any more"));
        let section = section.ok_or_else(gone)?;
        Ok(Self::new(UpstreamGrant::new(&plugin.id, section, policy)))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let (section, name) = (self.section(), explained.plugin.name());
        let asked = match section.confirm {
            UpstreamConfirm::None => "without a question".to_owned(),
            UpstreamConfirm::Writes if section.reads.is_empty() => "a person is asked about each call".to_owned(),
            UpstreamConfirm::Writes => format!("a person is asked about each call but of {}", section.reads.join(", ")),
            UpstreamConfirm::All => "a person is asked about each call".to_owned(),
        };
        let clause = |subject, detail, key: &str| {
            let decided_by = explained.decided(&format!("upstream.{name}.{key}"));
            Clause { subject, verdict: "allowed", detail, decided_by }
        };
        let calls = clause("calls of the server", asked, "confirm");
        if !section.url.is_empty() {
            let detail = format!("it is elsewhere, and gets what it is sent: {}", section.url);
            return vec![calls, clause("place of the server", detail, "url")];
        }
        let hosts: Vec<String> = section.hosts.iter().map(ToString::to_string).collect();
        let hosts = if hosts.is_empty() { "no host".to_owned() } else { hosts.join(", ") };
        let paths =
            |list: &[PathBuf]| list.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let files = match (section.read.is_empty(), section.write.is_empty()) {
            (true, true) => "its own home".to_owned(),
            (false, true) => format!("its own home, and reads {}", paths(&section.read)),
            (true, false) => format!("its own home, and writes {}", paths(&section.write)),
            (false, false) => {
                format!("its own home, reads {} and writes {}", paths(&section.read), paths(&section.write))
            }
        };
        vec![
            calls,
            clause("network of the server", format!("confined, it reaches {hosts}"), "hosts"),
            clause("files of the server", format!("confined, it sees what the system brings and {files}"), "write"),
        ]
    }
}

impl Policy {
    /// What a server has that is only looked at: what its section says, and nobody calls a tool.
    pub fn upstream_to_look_at(&self, name: &str, section: &UpstreamSection) -> UpstreamGrant {
        let origin = Origin::Upstream { command: section.place(), declared: String::new() };
        let id = PluginId { name: name.to_owned(), sha256: String::new(), origin };
        UpstreamGrant::new(&id, section, self)
    }
}

impl UpstreamGrant {
    pub(super) fn new(id: &PluginId, section: &UpstreamSection, policy: &Policy) -> Self {
        let config = &policy.config;
        let bound = |secret: &str| config.secret.get(secret).map(|found| found.hosts.clone()).unwrap_or_default();
        let (hosts, ports) = section.reachable();
        Self {
            name: id.name.clone(),
            label: id.label(),
            bound_to: id.approved_as().into(),
            secrets: section.secrets().map(|secret| (secret.to_owned(), bound(secret))).collect(),
            rules: HostRules::new(config, Opens::Fetch, &local(&hosts)),
            hosts,
            ports,
            section: section.clone(),
            confine: policy.confine.clone(),
            kept: policy.rules.clone(),
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
        }
    }

    /// What the server is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its section says.
    #[must_use]
    pub fn section(&self) -> &UpstreamSection {
        &self.section
    }

    /// What keeps it from more than its section says.
    pub fn confine(&self) -> &Confine {
        &self.confine
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
    pub fn admit<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a str,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let decided = match (self.section.offers(tool), self.asks(tool)) {
                (false, _) => {
                    let line = format!("add \"{tool}\" to `tools` under [upstream.{}]", self.name);
                    Err((
                        Failure::denied(format!("`{tool}` of `{}` is not offered", self.name)).hint(line),
                        "its section".into(),
                    ))
                }
                (true, true) => self.ask(tool, arguments, scope).await,
                (true, false) => Ok("its section".into()),
            };
            self.record_decided(
                format!("call {tool} with {}", scope.guard.beginning(arguments, RECORDED)),
                decided,
                scope,
            )
        })
    }

    async fn ask(&self, tool: &str, arguments: &str, scope: &Scope) -> Result<By, (Failure, By)> {
        let action = format!("call `{tool}` of the server `{}`", self.name);
        let details = serde_json::from_str::<serde_json::Value>(arguments).ok();
        let details = details.and_then(|arguments| serde_json::to_string_pretty(&arguments).ok());
        // A yes for one tool is none for another.
        self.question(ActionKind::ToolCall, tool, &action, details.as_deref(), scope).await
    }

    /// Decides on the answer to what the server wants to know, with its own words and what it proposes.
    pub fn admit_answer<'a>(
        &'a self,
        words: &'a str,
        answer: Option<&'a str>,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            // A yes is for this very question.
            let which = hex::encode(Sha256::digest(format!("{words}\0{}", answer.unwrap_or_default())));
            let decided = self.question(ActionKind::Answer, &which, words, answer, scope).await;
            self.record_decided(
                format!("answer the question: {}", scope.guard.beginning(words, RECORDED)),
                decided,
                scope,
            )
        })
    }

    async fn question(
        &self,
        kind: ActionKind,
        what: &str,
        action: &str,
        details: Option<&str>,
        scope: &Scope,
    ) -> Result<By, (Failure, By)> {
        let site = Landing { backend: format!("the server {}", self.name), ..Landing::default() };
        let question = Question {
            key: ApprovalKey::new(&self.bound_to, Capability::Upstream, kind, what),
            plugin: &self.label,
            site: &site,
            confinement: None,
            lent: None,
            action,
            details,
            declaration: None,
            subject: Some(&Subject::Call).filter(|_| kind == ActionKind::ToolCall),
            also: &[],
            refused: None,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await.map(|consent| consent.by)
    }

    /// Writes down what became of a connection.
    pub fn record_connection(&self, server: &str, decided: Result<(), &Failure>, scope: &Scope) {
        let decision = match decided {
            Ok(()) => "allowed by its section".to_owned(),
            Err(refusal) => format!("denied: {}", refusal.message),
        };
        self.record(format!("connect to {server}"), decision, scope);
    }

    fn record_decided(&self, what: String, decided: Result<By, (Failure, By)>, scope: &Scope) -> Result<(), Failure> {
        let decision = match &decided {
            Ok(by) => format!("allowed by {by}"),
            Err((_, by)) => format!("denied by {by}"),
        };
        self.record(what, decision, scope);
        decided.map(drop).map_err(|(refusal, _)| refusal)
    }

    fn record(&self, what: String, decision: String, scope: &Scope) {
        scope.record(Action { capability: Capability::Upstream, confinement: None, what, declaration: None, decision });
    }

    /// Decides on the address of a server that is elsewhere.
    pub fn admit_url(&self, target: &Target) -> Result<AdmittedTarget, Failure> {
        self.check(target)?;
        self.secrets.iter().try_for_each(|(secret, _)| check_encrypted(secret, target))?;
        Ok(AdmittedTarget::new(target.clone()))
    }

    fn check(&self, target: &Target) -> Result<(), Failure> {
        let (host, name) = (target.host(), &self.name);
        self.rules.check_host(host, || {
            if self.hosts.iter().any(|entry| covers(entry, host)) {
                return Ok(());
            }
            let message = format!("the server `{name}` may not reach `{host}`");
            Err(Failure::denied(message).hint(format!("add \"{host}\" to `hosts` under [upstream.{name}]")))
        })?;
        if let Host::Address(address) = host {
            self.admit_address(target, *address, special(*address), false)?;
        }
        // It may send all that it was given to wherever it connects.
        self.secrets.iter().try_for_each(|(secret, hosts)| check_secret(secret, hosts, host))?;
        let port = target.port();
        if self.ports.contains(&port) {
            return Ok(());
        }
        let message = format!("the server `{name}` may not reach port {port} of `{host}`");
        Err(Failure::denied(message).hint(format!("add {port} to `ports` under [upstream.{name}]")))
    }
}

/// Those of the hosts that are private by their very names, or addresses. Any other name opens no private address: it belongs to others, who
/// would point it at one.
fn local(hosts: &[HostPattern]) -> Vec<HostPattern> {
    let is_local = |host: &&HostPattern| match host {
        HostPattern::Exact(name) | HostPattern::Below(name) | HostPattern::Domain(name) => is_local_name(name),
        HostPattern::Range(_) => true,
    };
    hosts.iter().filter(is_local).cloned().collect()
}

impl Judge for UpstreamGrant {
    fn has_secret(&self) -> bool {
        !self.secrets.is_empty()
    }

    fn lender(&self) -> Option<&Lender> {
        None
    }

    fn admits_plain(&self) -> bool {
        true
    }

    fn admit<'a>(&'a self, target: Target, call: Option<&'a Scope>) -> BoxFuture<'a, Result<AdmittedTarget, Failure>> {
        Box::pin(async move {
            let server = target.server();
            let decided = match denied(&target, call, &self.kept).await {
                Some((refusal, _)) => Err(refusal),
                None => self.check(&target),
            };
            if let Some(scope) = call {
                self.record_connection(&server, decided.as_ref().copied(), scope);
            }
            decided.map(|()| AdmittedTarget::new(target))
        })
    }

    fn rules(&self) -> &HostRules {
        &self.rules
    }

    fn kept(&self) -> &KeptRules {
        &self.kept
    }
}
