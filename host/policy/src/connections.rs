//! What confined commands may connect to: the hosts that settings name, within what `[tools]` says of hosts, and those that a person allows.
//!
//! Catching connections and making them is `egress/cells/`.

use super::approval::{ActionKind, Also, By, Consent, Landing, Question};
use super::hosts::{AdmittedTarget, HostRules, Opens, covers};
use super::keys::Lender;
use super::own_cell::CellPort;
use super::shell::ShellGrant;
use crate::rules::{KeptRules, Subject};
use crate::scope::Scope;
use crate::session::{ApprovalKey, RefusalKey};
use audit::Action;
use backend::Backend;
use base::addresses::{Special, special};
use base::capability::Capability;
use base::envelope::Failure;
use base::target::{Host, Target};
use config::{Config, HostPattern, Needed, Remedies};
use futures_util::future::BoxFuture;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use together::{MOST, Others, Together};

mod together;

/// Where connections leave from.
const HERE: &str = "this machine";

/// Domains below which anybody can keep something, or has a server of his own: what a command sends there may be for somebody else.
#[rustfmt::skip]
const OPEN_TO_ALL: [&str; 26] = [
    "github.com", "githubusercontent.com", "github.io", "gitlab.com", "gitlab.io", "bitbucket.org", "codeberg.org", "sourceforge.net",
    "pastebin.com", "huggingface.co", "amazonaws.com", "cloudfront.net", "googleapis.com", "googleusercontent.com", "appspot.com", "web.app",
    "azureedge.net", "windows.net", "azurewebsites.net", "fastly.net", "akamaized.net", "workers.dev", "pages.dev", "vercel.app",
    "netlify.app", "herokuapp.com",
];

/// Those of hosts that serve everybody.
pub(super) fn open_to_all(hosts: &[HostPattern]) -> Vec<String> {
    let is_open = |name: &str| {
        let name = name.trim_start_matches("*.");
        OPEN_TO_ALL
            .iter()
            .any(|domain| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    hosts.iter().map(ToString::to_string).filter(|name| is_open(name)).collect()
}

/// Who decides on what is connected to from a cell.
pub trait Judge: Send + Sync {
    /// Whether what connects has a secret.
    fn has_secret(&self) -> bool;

    /// Who lends it keys; none where it gets none.
    fn lender(&self) -> Option<&Lender>;

    /// Whether what is not encrypted may pass.
    fn admits_plain(&self) -> bool;

    /// Decides on a host and a port before anybody is asked for an address. `call` is the one whose command or page connects, if one runs.
    fn admit<'a>(&'a self, target: Target, call: Option<&'a Scope>) -> BoxFuture<'a, Result<AdmittedTarget, Failure>>;

    /// The port of the session's own cell that a target means; none if it means a host, as for all that is in that cell itself.
    fn cell_port<'a>(
        &'a self,
        _target: &'a Target,
        _backend: &'a dyn Backend,
    ) -> BoxFuture<'a, Result<Option<CellPort>, Failure>> {
        Box::pin(async { Ok(None) })
    }

    /// Decides on a connection into the session's own cell, which the rules of the user may deny.
    fn admit_to_cell<'a>(&'a self, port: &'a CellPort, call: Option<&'a Scope>) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(
            async move { denied(&port.target, call, self.kept()).await.map_or(Ok(()), |(refusal, _)| Err(refusal)) },
        )
    }

    /// The rules for hosts that bind it.
    fn rules(&self) -> &HostRules;

    /// The rules that the user has made, which may deny hosts.
    fn kept(&self) -> &KeptRules;

    /// Decides on an address that the host has.
    fn admit_address(
        &self,
        target: &Target,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
    ) -> Result<(), Failure> {
        self.rules().admit_address(target, address, special, is_own)
    }
}

/// What `[confine]` and `[tools]` say of the network of confined commands.
pub(super) struct Reachable {
    rules: HostRules,
    /// A host is within each of these, or a person is asked.
    named: Vec<Vec<HostPattern>>,
    ports: Vec<u16>,
    remedies: Remedies,
}

impl Reachable {
    pub(super) fn new(config: &Config) -> Self {
        let named = config.cell_hosts();
        let user = named.get(1).or(named.first()).map_or(&[][..], Vec::as_slice);
        Self {
            rules: HostRules::new(config, Opens::Confine, user),
            ports: config.confine.ports.clone(),
            remedies: config.remedies(),
            named,
        }
    }

    /// The hosts that are reached without a question, as people read it.
    pub(super) fn shown(&self) -> String {
        let shown = |list: &Vec<HostPattern>| match list.is_empty() {
            true => "no host without a question".to_owned(),
            false => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        self.named.iter().map(shown).collect::<Vec<_>>().join(", of these only ")
    }

    /// The line that opens a port.
    pub(super) fn list_port(&self, port: u16) -> String {
        let line = format!("add {port} to `ports` under [confine]");
        self.remedies.hint("confine.ports", &Needed::Entry(&port.to_string()), line)
    }
}

/// What the commands of one plugin may connect to.
#[derive(Clone)]
pub struct Connections {
    reachable: Arc<Reachable>,
    kept: Arc<KeptRules>,
    /// The plugin as people read it.
    plugin: String,
    sha256: String,
    approval_timeout: Duration,
    /// The command has a secret: what it may send it to was said when it was allowed, and no more.
    has_secret: bool,
    /// None where its cell has no keys.
    lender: Option<Arc<Lender>>,
    together: Arc<Together>,
}

impl Connections {
    pub(super) fn new(grant: &ShellGrant, reachable: Arc<Reachable>, lender: Option<Arc<Lender>>) -> Self {
        Self {
            reachable,
            kept: grant.kept.clone(),
            plugin: grant.plugin.clone(),
            sha256: grant.sha256.clone(),
            approval_timeout: grant.approval_timeout,
            has_secret: false,
            lender,
            together: Arc::default(),
        }
    }

    /// The same for a command, which has a secret or has none.
    pub(super) fn of_command(self, text: &str, has_secret: bool) -> Self {
        Self { has_secret, together: Arc::new(Together::of_text(text)), ..self }
    }

    fn check(&self, target: &Target) -> Result<(), Failure> {
        let (host, port) = (target.host(), target.port());
        self.reachable.rules.check_host(host, || Ok(()))?;
        // Nobody is asked about what would be refused all the same.
        if let Host::Address(address) = host {
            self.admit_address(target, *address, special(*address), false)?;
        }
        if self.reachable.ports.contains(&port) {
            return Ok(());
        }
        let message = format!("port {port} of `{host}` is not in `ports` under [confine]");
        Err(Failure::denied(message).hint(self.reachable.list_port(port)))
    }

    fn is_named(&self, host: &Host) -> bool {
        self.reachable.named.iter().all(|list| list.iter().any(|entry| covers(entry, host)))
    }

    /// Asks a person who is there. Neither `--yes` nor an approval of commands counts: those say nothing of hosts.
    async fn ask(&self, target: &Target, call: Option<&Scope>) -> Result<By, (Failure, By)> {
        let (host, server) = (target.host().to_string(), target.server());
        let unnamed = || {
            let refusal = Failure::denied(format!("`{server}` is not in `hosts` under [confine]"));
            (refusal.hint(self.reachable.rules.name_it(&host)), "confine.hosts".into())
        };
        let is_forbidden = self.reachable.remedies.stands_against("confine.hosts", &Needed::Entry(&host));
        let Some(scope) = call.filter(|_| !is_forbidden && !self.has_secret()) else { return Err(unnamed()) };
        let subject = Subject::Host(target.clone());
        if !scope.approver.is_read() {
            // A rule also answers where nobody can.
            return scope.allowed_by_rule(&subject).await.ok_or_else(unnamed);
        }
        // What is answered without a person waits behind no question.
        if !self.is_to_be_asked(target, scope).await {
            return self.question(target, &[], &[], scope).await.map(|consent| consent.by);
        }
        let waiting = scope.clock.waiting();
        let mut turn = self.together.turn(target, &scope.id).await;
        if let Some(answer) = turn.answer() {
            return answer;
        }
        let Others { waiting: connecting, named } = turn.others().await;
        drop(waiting);
        let mut room = MOST - 1;
        let connecting = self.to_be_asked(connecting, &mut room, scope).await;
        let named = self.to_be_asked(named, &mut room, scope).await;
        let consent = self.question(target, &connecting, &named, scope).await;
        // What was allowed without a question says nothing of the others: nobody saw them.
        let is_of_all = consent.as_ref().map_or(true, |consent| consent.seen.is_some());
        let answer = consent.map(|consent| consent.by);
        let others = connecting.iter().chain(&named).filter(|_| is_of_all);
        [target].into_iter().chain(others).for_each(|target| turn.note(target, &answer));
        answer
    }

    /// Asks about a server, others to which the command connects, and those that only its text names. The answer is about all of them.
    async fn question(
        &self,
        target: &Target,
        connecting: &[Target],
        named: &[Target],
        scope: &Scope,
    ) -> Result<Consent, (Failure, By)> {
        let site = Landing { backend: HERE.into(), ..Landing::default() };
        let also = |other: &Target| Also { key: self.approval_key(other), subject: Subject::Host(other.clone()) };
        let lines =
            |servers: &mut dyn Iterator<Item = &Target>| servers.map(Target::server).collect::<Vec<_>>().join("\n");
        let (action, names) = (lines(&mut [target].into_iter().chain(connecting)), lines(&mut named.iter()));
        let question = Question {
            key: self.approval_key(target),
            plugin: &self.plugin,
            site: &site,
            confinement: None,
            lent: None,
            action: &action,
            details: Some(names.as_str()).filter(|names| !names.is_empty()),
            declaration: None,
            subject: Some(&Subject::Host(target.clone())),
            also: &connecting.iter().chain(named).map(also).collect::<Vec<_>>(),
            refused: None,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await
    }

    /// What an approval for the session covers.
    fn approval_key(&self, target: &Target) -> ApprovalKey {
        ApprovalKey::new(&self.sha256, Capability::Shell, ActionKind::Connection, &target.server())
    }

    /// Those of some servers about which a person has to be asked, as far as there is room.
    async fn to_be_asked(&self, servers: Vec<Target>, room: &mut usize, scope: &Scope) -> Vec<Target> {
        let mut asked = Vec::new();
        for server in servers {
            if *room > 0 && self.is_to_be_asked(&server, scope).await {
                *room -= 1;
                asked.push(server);
            }
        }
        asked
    }

    /// Whether a person still has to be asked about a server.
    async fn is_to_be_asked(&self, target: &Target, scope: &Scope) -> bool {
        let (host, subject) = (target.host(), Subject::Host(target.clone()));
        let needed = host.to_string();
        self.check(target).is_ok()
            && !self.is_named(host)
            && !self.reachable.remedies.stands_against("confine.hosts", &Needed::Entry(&needed))
            && !scope.session.is_approved(&self.approval_key(target))
            && !scope.session.is_refused(&RefusalKey::of_covered(&self.approval_key(target), &scope.principal))
            && scope.denied_by_rule(&subject).await.is_none()
            && scope.allowed_by_rule(&subject).await.is_none()
    }
}

impl Judge for Connections {
    fn has_secret(&self) -> bool {
        self.has_secret || self.lender().is_some_and(Lender::has_lent)
    }

    fn lender(&self) -> Option<&Lender> {
        self.lender.as_deref()
    }

    fn admits_plain(&self) -> bool {
        true
    }

    /// A name that is not named is not resolved before a person has allowed it.
    fn admit<'a>(&'a self, target: Target, call: Option<&'a Scope>) -> BoxFuture<'a, Result<AdmittedTarget, Failure>> {
        Box::pin(async move {
            let decided = match self.check(&target) {
                Err(refusal) => Err((refusal, "confine.hosts".into())),
                Ok(()) => match denied(&target, call, self.kept()).await {
                    Some(refused) => Err(refused),
                    None if self.is_named(target.host()) => Ok("confine.hosts".into()),
                    None => self.ask(&target, call).await,
                },
            };
            if let Some(scope) = call {
                let by = decided.as_ref().map(|by| &**by).map_err(|(refusal, by)| (refusal, &**by));
                record(&target, by, scope);
            }
            decided.map(|_| AdmittedTarget::new(target)).map_err(|(refusal, _)| refusal)
        })
    }

    fn rules(&self) -> &HostRules {
        &self.reachable.rules
    }

    fn kept(&self) -> &KeptRules {
        &self.kept
    }
}

/// The refusal of a server that a rule of the user's denies.
pub(super) async fn denied(target: &Target, call: Option<&Scope>, kept: &KeptRules) -> Option<(Failure, By)> {
    let subject = Subject::Host(target.clone());
    match call {
        Some(scope) => scope.denied_by_rule(&subject).await,
        None => kept.denied_of_no_call(&subject),
    }
}

/// Writes down what became of a connection, with who decided.
fn record(target: &Target, decided: Result<&str, (&Failure, &str)>, scope: &Scope) {
    let decision = match decided {
        Ok(by) => format!("allowed by {by}"),
        Err((refusal, by)) => format!("denied by {by}: {}", refusal.message),
    };
    scope.record(Action {
        capability: Capability::Shell,
        confinement: None,
        what: format!("connect to {}", target.server()),
        declaration: None,
        decision,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_serve_everybody_are_known_by_whole_labels() {
        let hosts = ["github.com", "*.githubusercontent.com", "notgithub.com", "example.com", "d1.cloudfront.net"];
        let hosts = hosts.map(|host| HostPattern::exact(host).expect("a host"));
        assert_eq!(open_to_all(&hosts), ["github.com", "*.githubusercontent.com", "d1.cloudfront.net"]);
    }
}
