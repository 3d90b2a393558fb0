//! What one plugin may ask of web servers: the rules of settings and section, then a person's approval; only what passed can be sent.
//!
//! Parsing, resolving and connecting is `egress/`, asking is `approval.rs`.

mod download;
mod paths;

use super::approval::{ActionKind, By, Landing, Question};
use super::confine::Confine;
use super::hosts::Route;
use super::hosts::{
    AdmittedTarget, Found, HostRules, Opens, check_encrypted, check_secret, covers, encrypt, is_local_name, lies_in,
    may_cover,
};
use super::own_cell::{CellPort, Covered};
use super::search::{self, server_hint};
use crate::explain::words::{below, listed, reached};
use crate::explain::{BUILT_IN, Clause, Explained};
use crate::grants::Grant;
use crate::rules::Subject;
use crate::scope::Scope;
use crate::session::ApprovalKey;
use crate::{Bound, Policy};
use ::http::header::HeaderName;
use ::http::{HeaderMap, Method};
use audit::Action;
use backend::Backend;
use base::addresses::{Special, special};
use base::builtin::{SearchBase, SearchServer};
use base::capability::Capability;
use base::envelope::Failure;
use base::target::{Host, Target};
use base::text::sanitize;
use config::{Config, HostList, HostPattern, HttpRights, Needed, Remedies, Template, requests};
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The longest body that is handed on to a plugin.
pub const BODY_BYTES: usize = 8 << 20;

/// A request that a guest has put together.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Bytes of the answer's body to hand on.
    pub limit: usize,
}

/// Who asks the endpoint of `[embeddings]`.
const EMBEDDINGS: &str = "embeddings";
/// Where requests leave from, whatever the backend.
const HERE: &str = "this machine";

/// What one plugin may ask of web servers.
#[derive(Clone)]
pub struct HttpGrant {
    plugin: String,
    label: String,
    sha256: String,
    rights: HttpRights,
    headers: Vec<OwnHeader>,
    /// The secrets for which the plugin has words, each with the hosts that may see it.
    lent: Vec<(String, Vec<HostPattern>)>,
    remedies: Remedies,
    base: Option<Url>,
    rules: HostRules,
    ports: Vec<u16>,
    plain_http: bool,
    confirm: bool,
    approval_timeout: Duration,
    timeout: Duration,
    most_bytes: usize,
    asker: Asker,
    /// How commands are confined; none if the requests are not those of a session, so that they mean no cell.
    confine: Option<Arc<Confine>>,
}

/// Who asks: it decides what a refusal tells people to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    /// A plugin, or the host for the endpoint that a setting names.
    Settings,
    /// A provider of `web_search` that came with this program, which has one server.
    Search(SearchServer),
    /// A person, by a command of their own.
    Person,
    /// A page in a browser.
    Page,
}

/// A header that settings write, and the hosts that may see it.
#[derive(Clone)]
pub struct OwnHeader {
    pub name: HeaderName,
    pub template: Template,
    /// Those of each secret in it.
    hosts: Vec<Vec<HostPattern>>,
}

impl OwnHeader {
    fn new(name: &str, template: Template, config: &Config) -> Self {
        let hosts = template.secrets().map(|secret| hosts_of(secret, config)).collect();
        let name = HeaderName::from_bytes(name.as_bytes()).expect("the name was checked when it was read");
        Self { name, template, hosts }
    }

    fn is_for(&self, host: &Host) -> bool {
        self.hosts.iter().all(|hosts| hosts.iter().any(|entry| covers(entry, host)))
    }

    fn is_secret(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Decides on a host that its secrets would go to.
    pub(super) fn check_secrets(&self, host: &Host) -> Result<(), Failure> {
        self.template.secrets().zip(&self.hosts).try_for_each(|(secret, hosts)| check_secret(secret, hosts, host))
    }
}

/// The hosts that may see a secret. One that has no section goes nowhere.
fn hosts_of(secret: &str, config: &Config) -> Vec<HostPattern> {
    config.secret.get(secret).map(|section| section.hosts.clone()).unwrap_or_default()
}

/// A route that a person, where asked, has admitted as well. Made only here.
pub struct ApprovedRoute(Route);

impl ApprovedRoute {
    pub fn route(&self) -> &Route {
        &self.0
    }

    pub fn target(&self) -> &Target {
        self.0.target()
    }
}

impl Grant for HttpGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        let mut rights = bound.rights.http.clone().ok_or_else(|| {
            policy.not_granted(plugin, bound, Capability::Http, "http.hosts = [\"api.example.com\"]", "--host HOST")
        })?;
        let (name, server) = (plugin.name(), plugin.search);
        server.map_or(Ok(()), |server| search::confine(server, name, &mut rights, &bound.config))?;
        let lent = bound.rights.config.values().flat_map(Template::secrets);
        let grant = Self::new(plugin, rights, lent, &bound.config);
        let grant = Self { confine: Some(policy.confine.clone()), ..grant };
        server.map_or(Ok(()), |server| search::check_key(server, name, &grant))?;
        Ok(grant)
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let clause = |verdict, detail, decided_by| Clause { subject: "http", verdict, detail, decided_by };
        let own = |name: &str| explained.own(&format!("http.{name}"));
        let base = own("base");
        let hosts = match explained.plugin.search.map(|server| server.base) {
            Some(SearchBase::Endpoint) if base == BUILT_IN => explained.decided("tools.search_endpoint"),
            Some(SearchBase::Endpoint | SearchBase::Fixed(_) | SearchBase::Named { .. }) => base,
            None => own("hosts"),
        };
        let (verdict, asked) = if self.confirms() {
            ("asks", "a person is shown every request first")
        } else {
            ("allowed", "requests are made without a question")
        };
        let mut clauses = vec![
            clause("allowed", format!("requests to {}", reached(self.hosts())), hosts),
            clause("allowed", format!("methods: {}", listed(&self.methods(), "none")), own("methods")),
            clause("allowed", below(self.paths()), own("paths")),
            clause(verdict, asked.into(), explained.decided("tools.fetch_confirm")),
        ];
        let headers: Vec<_> = self.headers().collect();
        if !headers.is_empty() {
            clauses.push(clause("allowed", format!("the host adds: {}", headers.join("; ")), own("headers")));
        }
        clauses.extend(explained.targets());
        clauses
    }
}

impl Explained<'_> {
    /// What binds the requests of all plugins.
    fn targets(&self) -> Vec<Clause> {
        let tools = &self.policy.config.tools;
        let clause = |key: &str, is_allowed: bool, detail: String| {
            let verdict = if is_allowed { "allowed" } else { "denied" };
            Clause { subject: "http", verdict, detail, decided_by: self.decided(&format!("tools.{key}")) }
        };
        let (domains, ranges, ports) = (&tools.fetch_allowed_domains, &tools.fetch_private_ranges, &tools.fetch_ports);
        let allowed = match domains {
            HostList::Any => "every public host".into(),
            HostList::Only(entries) => listed(entries, "no host"),
        };
        let private = match ranges.is_empty() {
            true => "private addresses, except those of hosts that `fetch_allowed_domains` names".into(),
            false => format!("private addresses: {}", listed(ranges, "none")),
        };
        vec![
            clause("fetch_allowed_domains", *domains != HostList::NOTHING, allowed),
            clause("fetch_blocked_domains", false, listed(&tools.fetch_blocked_domains, "no host")),
            clause("fetch_private_ranges", !ranges.is_empty(), private),
            clause("fetch_ports", !ports.is_empty(), format!("ports of public addresses: {}", listed(ports, "none"))),
            clause("fetch_plain_http", tools.fetch_plain_http, "requests without encryption".into()),
        ]
    }
}

impl HttpGrant {
    /// `lent` are the names of secrets for which the plugin has words.
    pub(super) fn new<'s>(
        plugin: &Manifest,
        mut rights: HttpRights,
        lent: impl Iterator<Item = &'s str>,
        config: &Config,
    ) -> Self {
        let base = rights.base.take().and_then(|base| Url::parse(&base).ok());
        let headers = std::mem::take(&mut rights.headers);
        let headers = headers.into_iter().map(|(name, template)| OwnHeader::new(&name, template, config)).collect();
        Self {
            plugin: plugin.name().into(),
            label: plugin.id.label(),
            sha256: plugin.sha256().into(),
            rights,
            headers,
            lent: lent.map(|secret| (secret.to_owned(), hosts_of(secret, config))).collect(),
            remedies: config.remedies(),
            base,
            rules: HostRules::new(config, Opens::Fetch, config.opened_domains()),
            ports: config.tools.fetch_ports.clone(),
            plain_http: config.tools.fetch_plain_http,
            confirm: config.tools.fetch_confirm,
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
            timeout: Duration::from_secs(config.network.fetch_timeout_secs),
            most_bytes: BODY_BYTES,
            asker: plugin.search.map_or(Asker::Settings, Asker::Search),
            confine: None,
        }
    }

    /// What pages of a browser may connect to.
    pub(super) fn of_pages(plugin: &Manifest, hosts: Vec<HostList>, config: &Config, confine: Arc<Confine>) -> Self {
        let confine = Some(confine);
        let (methods, paths, base, headers) = (Vec::new(), Vec::new(), None, BTreeMap::new());
        let rights = HttpRights { hosts, methods, paths, base, headers };
        Self { asker: Asker::Page, base: None, confine, ..Self::new(plugin, rights, std::iter::empty(), config) }
    }

    /// What the host itself may ask of the endpoint of `[embeddings]`: that page, which the setting opens, and no other.
    ///
    /// # Errors
    ///
    /// `denied` where no requests are made at all.
    pub fn of_embeddings(endpoint: &Url, config: &Config) -> Result<Self, Failure> {
        check_enabled(config)?;
        let host: Vec<HostPattern> = exactly(endpoint).into_iter().collect();
        let opened: Vec<_> = config.opened_domains().iter().chain(&host).cloned().collect();
        let is_local = match endpoint.host() {
            Some(url::Host::Domain(name)) => is_local_name(name),
            Some(url::Host::Ipv4(address)) => special(address.into()).is_some(),
            Some(url::Host::Ipv6(address)) => special(address.into()).is_some(),
            None => false,
        };
        let headers = config.embeddings.headers.iter();
        Ok(Self {
            plugin: EMBEDDINGS.into(),
            label: EMBEDDINGS.into(),
            sha256: String::new(),
            rights: HttpRights {
                hosts: vec![HostList::Only(host)],
                methods: vec![vec![Method::POST.to_string()]],
                paths: vec![vec![endpoint.path().trim_end_matches('/').to_owned()]],
                base: None,
                headers: BTreeMap::new(),
            },
            headers: headers.map(|(name, template)| OwnHeader::new(name, template.clone(), config)).collect(),
            lent: Vec::new(),
            remedies: config.remedies(),
            base: None,
            rules: HostRules::new(config, Opens::Fetch, &opened),
            ports: config.tools.fetch_ports.iter().copied().chain(endpoint.port_or_known_default()).collect(),
            // Between here and a public server others would read along.
            plain_http: config.tools.fetch_plain_http || is_local,
            confirm: false,
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
            timeout: Duration::from_secs(config.network.fetch_timeout_secs),
            most_bytes: BODY_BYTES,
            asker: Asker::Settings,
            confine: None,
        })
    }

    /// A request is shown to a person first.
    #[must_use]
    pub fn confirms(&self) -> bool {
        self.confirm
    }

    /// The hosts that the plugin itself may reach: within all of these.
    #[must_use]
    pub fn hosts(&self) -> &[HostList] {
        &self.rights.hosts
    }

    /// The methods that it may use.
    #[must_use]
    pub fn methods(&self) -> Vec<&str> {
        let mut lists = self.rights.methods.iter();
        let first = lists.next().map(Vec::as_slice).unwrap_or_default();
        let rest: Vec<_> = lists.collect();
        first.iter().filter(|method| rest.iter().all(|list| list.contains(method))).map(String::as_str).collect()
    }

    /// The path prefixes that it may reach: one of each of these; none means all.
    #[must_use]
    pub fn paths(&self) -> &[Vec<String>] {
        &self.rights.paths
    }

    /// What relative URLs of the plugin start at.
    pub fn base(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    /// The headers that the host adds to a request for this target.
    pub fn headers_for(&self, target: &Target) -> impl Iterator<Item = &OwnHeader> {
        self.headers.iter().filter(move |header| header.is_for(target.host()))
    }

    /// The headers that the host adds, and to which hosts, as people read it.
    pub fn headers(&self) -> impl Iterator<Item = String> {
        self.headers.iter().map(|OwnHeader { name, template, hosts }| {
            let shown = |hosts: &Vec<HostPattern>| match hosts.is_empty() {
                true => "no host".to_owned(),
                false => hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            };
            let hosts: Vec<_> = hosts.iter().map(shown).collect();
            let to = if hosts.is_empty() { "every host".to_owned() } else { hosts.join(", of these only ") };
            format!("`{name}: {template}` to {to}")
        })
    }

    /// Whether settings write a header, so that the plugin cannot.
    pub fn writes_header(&self, name: &str) -> bool {
        self.own_header(name).is_some()
    }

    /// The header of this name that settings write.
    pub(super) fn own_header(&self, name: &str) -> Option<&OwnHeader> {
        self.headers.iter().find(|header| header.name.as_str().eq_ignore_ascii_case(name))
    }

    /// Decides on a secret whose word is in a request for this target.
    pub fn admit_secret(&self, secret: &str, target: &Target) -> Result<(), Failure> {
        let hosts = self.lent.iter().find(|(lent, _)| lent == secret).map(|(_, hosts)| hosts.as_slice());
        check_secret(secret, hosts.unwrap_or_default(), target.host())?;
        check_encrypted(secret, target)
    }

    /// How long a request may take with all its redirects.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Bytes of an answer's body that are handed on at most.
    pub fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// The key under which connections are kept: no plugin uses those of another.
    pub fn client_key(&self) -> String {
        format!("{} {}", self.plugin, self.sha256)
    }

    /// Decides on a target before anybody is asked for its address. A refusal is recorded.
    pub fn admit(&self, method: &Method, target: Target, scope: &Scope) -> Result<AdmittedTarget, Failure> {
        let checked = self.check_request(method, &target).and_then(|()| self.check_host(&target));
        match checked {
            Ok(()) => Ok(AdmittedTarget::new(target)),
            Err(refusal) => {
                self.record(method, &target, Err(&refusal), scope);
                Err(refusal)
            }
        }
    }

    fn check_request(&self, method: &Method, target: &Target) -> Result<(), Failure> {
        let name = &self.plugin;
        self.check_encrypted(target)?;
        if !target.is_encrypted()
            && let Some(header) = self.headers_for(target).find(|header| header.is_secret())
        {
            let message =
                format!("`{target}` would get the header `{}`, whose secret goes over HTTPS alone", header.name);
            return Err(Failure::denied(message).hint(encrypt(target)));
        }
        if !self.methods().contains(&method.as_str()) {
            return Err(Failure::denied(format!("`{name}` may not send {method}")).hint(self.remedies.hint(
                &format!("plugin.{name}.http.methods"),
                &Needed::Entry(method.as_str()),
                format!("add \"{method}\" to `http.methods` under [plugin.{name}]"),
            )));
        }
        let path = target.url().path();
        for prefixes in &self.rights.paths {
            if !prefixes.iter().any(|prefix| paths::is_below(path, prefix)) {
                return Err(Failure::denied(format!(
                    "`{name}` may not reach `{target}`: its path is not an allowed one"
                ))
                .hint(format!("the allowed paths are `http.paths` under [plugin.{name}]: {}", prefixes.join(", "))));
            }
        }
        Ok(())
    }

    /// Decides on what a page connects to, before anybody is asked for its address.
    pub(super) fn admit_connection(&self, target: Target) -> Result<AdmittedTarget, Failure> {
        self.check_host(&target).map(|()| AdmittedTarget::new(target))
    }

    /// The rules for hosts that bind it.
    pub(super) fn rules(&self) -> &HostRules {
        &self.rules
    }

    /// Whether what is not encrypted may be sent.
    pub(super) fn admits_plain(&self) -> bool {
        self.plain_http
    }

    /// Refuses what is not encrypted.
    ///
    /// # Errors
    ///
    /// `denied`, with the line that opens it.
    pub(super) fn check_encrypted(&self, target: &Target) -> Result<(), Failure> {
        if target.is_encrypted() || self.plain_http {
            return Ok(());
        }
        Err(Failure::denied(format!("`{target}` is not encrypted")).hint(self.remedies.hint(
            "tools.fetch_plain_http",
            &Needed::On,
            "use https://, or set `fetch_plain_http = true` under [tools]",
        )))
    }

    fn check_host(&self, target: &Target) -> Result<(), Failure> {
        let host = target.host();
        let may_reach = |hosts: &HostList| match self.asker {
            Asker::Settings | Asker::Search(_) | Asker::Page => may_cover(hosts, host),
            Asker::Person => download::names(hosts, host),
        };
        self.rules.check_host(host, || match self.rights.hosts.iter().all(may_reach) {
            true => Ok(()),
            false => Err(self.not_its_own(host)),
        })?;
        match host {
            Host::Name(_) => self.check_port(target),
            // The address is judged when it is connected to, like those of names.
            Host::Address(_) => Ok(()),
        }
    }

    fn check_port(&self, target: &Target) -> Result<(), Failure> {
        let port = target.port();
        if self.ports.contains(&port) {
            return Ok(());
        }
        Err(Failure::denied(format!("port {port} of `{}` is not allowed", target.host())).hint(self.remedies.hint(
            "tools.fetch_ports",
            &Needed::Entry(&port.to_string()),
            format!("add {port} to `fetch_ports` under [tools]"),
        )))
    }

    /// Decides on an address that the target has. `special` says why it is not a public one, `is_own` that it is this machine's.
    pub fn admit_address(
        &self,
        target: &Target,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
    ) -> Result<(), Failure> {
        let host = target.host();
        let own = || match self.rights.hosts.iter().all(|hosts| lies_in(hosts, host, address)) {
            true => Ok(()),
            false => Err(self.not_its_own(host)),
        };
        match self.rules.check_address(host, address, special, is_own, own)? {
            // All its ports are open.
            Found::Open => Ok(()),
            // Names were held against the ports before.
            Found::Public => self.check_port(target),
        }
    }

    /// The port of the session's own cell that a target means; none if it means a host.
    ///
    /// # Errors
    ///
    /// `denied` if the target names the cell and it may not be reached.
    pub fn cell_port<'a>(
        &'a self,
        target: &'a Target,
        backend: &'a dyn Backend,
    ) -> BoxFuture<'a, Result<Option<CellPort>, Failure>> {
        Box::pin(async move {
            let Some(confine) = &self.confine else { return Ok(None) };
            let covered = Covered { confine, rules: &self.rules, hosts: &self.rights.hosts };
            covered.port(target, backend, |cell| self.not_its_own(cell)).await
        })
    }

    /// Decides on a request to a port of the session's own cell. A refusal is recorded.
    pub fn admit_to_cell(&self, method: &Method, port: &CellPort, scope: &Scope) -> Result<Route, Failure> {
        let checked = self.check_request(method, &port.target);
        checked.inspect_err(|refusal| self.record(method, &port.target, Err(refusal), scope))?;
        Ok(Route::into_cell(port))
    }

    fn not_its_own(&self, host: &Host) -> Failure {
        let name = &self.plugin;
        let refusal = Failure::denied(format!("`{name}` may not reach `{host}`"));
        let list = match self.asker {
            Asker::Person => return download::not_named(host),
            Asker::Search(server) => return refusal.hint(server_hint(server, name)),
            Asker::Settings => "http.hosts",
            Asker::Page => "browser.hosts",
        };
        refusal.hint(self.remedies.hint(
            &format!("plugin.{name}.{list}"),
            &Needed::Entry(&host.to_string()),
            format!("add \"{host}\" to `{list}` under [plugin.{name}]"),
        ))
    }

    /// Has a person admit the route, where settings ask for that: the first, and each one that goes to another server. A name
    /// is resolved again at each redirect, so the same name may lead to another server.
    pub fn approve<'a>(
        &'a self,
        route: Route,
        request: &'a Request,
        last: Option<&'a ApprovedRoute>,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<ApprovedRoute, Failure>> {
        Box::pin(async move {
            let target = route.target();
            let decided = if let Some(refused) = scope.denied_by_rule(&Subject::Host(target.clone())).await {
                Err(refused)
            } else if !self.confirm {
                Ok("tools.fetch_confirm".into())
            } else if last.is_some_and(|last| last.0.covers(&route)) {
                Ok("approval for the same server".into())
            } else {
                self.ask(&route, request, scope).await
            };
            self.record(
                &request.method,
                target,
                decided.as_ref().map(|by| &**by).map_err(|(refusal, _)| refusal),
                scope,
            );
            decided.map_err(|(refusal, _)| refusal)?;
            Ok(ApprovedRoute(route))
        })
    }

    async fn ask(&self, route: &Route, request: &Request, scope: &Scope) -> Result<By, (Failure, By)> {
        let (line, details) = shown(route, request, self);
        let site = Landing { backend: HERE.into(), ..Landing::default() };
        let question = Question {
            key: ApprovalKey::new(&self.sha256, Capability::Http, ActionKind::Request, HERE),
            plugin: &self.label,
            site: &site,
            confinement: None,
            lent: None,
            action: &line,
            details: Some(&details),
            declaration: None,
            subject: Some(&Subject::Host(route.target().clone())),
            also: &[],
            refused: None,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await.map(|consent| consent.by)
    }

    /// Writes down what became of a request, with who decided.
    pub fn record(&self, method: &Method, target: &Target, decided: Result<&str, &Failure>, scope: &Scope) {
        let decision = match decided {
            Ok(by) => format!("allowed by {by}"),
            Err(refusal) => format!("{}: {}", refusal.kind.name(), refusal.message),
        };
        scope.record(Action {
            capability: Capability::Http,
            confinement: None,
            what: format!("{method} {target}"),
            declaration: None,
            decision,
        });
    }
}

/// Whether there are requests at all.
fn check_enabled(config: &Config) -> Result<(), Failure> {
    if config.tools.fetch_enabled {
        return Ok(());
    }
    let line = "set `fetch_enabled = true` under [tools]";
    let hint = config.remedies().hint("tools.fetch_enabled", &Needed::On, line);
    Err(Failure::denied("requests are switched off").hint(hint))
}

/// The whole request, as a person reads it: its line, then headers and body.
fn shown(route: &Route, request: &Request, grant: &HttpGrant) -> (String, String) {
    let verb = if request.method == Method::GET { "fetch" } else { request.method.as_str() };
    let addresses: Vec<String> = route.addresses().iter().map(|address| address.ip().to_string()).collect();
    let place = if route.is_into_cell() { "this session's own cell".into() } else { addresses.join(", ") };
    let line = format!("{verb} {} at {place}", route.target().url());
    let mut details = String::new();
    for (name, value) in &request.headers {
        let _ = writeln!(details, "{name}: {}", readable(value.as_bytes()));
    }
    for OwnHeader { name, template, .. } in grant.headers_for(route.target()) {
        let _ = writeln!(details, "{name}: {template}");
    }
    if !request.body.is_empty() {
        let _ = write!(details, "\n{}", readable(&request.body));
    }
    (line, details)
}

/// Text as it is, and each other byte as `\xff`: two requests that differ do not read the same.
fn readable(bytes: &[u8]) -> String {
    bytes.utf8_chunks().fold(String::new(), |mut text, chunk| {
        text += chunk.valid();
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
        text
    })
}

/// The host of a URL and no other.
pub(super) fn exactly(url: &Url) -> Option<HostPattern> {
    Some(match url.host()? {
        url::Host::Domain(name) => HostPattern::Exact(name.to_owned()),
        url::Host::Ipv4(address) => HostPattern::Range(IpAddr::from(address).into()),
        url::Host::Ipv6(address) => HostPattern::Range(IpAddr::from(address).into()),
    })
}

/// The method, if it is one that can be granted at all.
pub fn method(text: &str) -> Result<Method, Failure> {
    let known = requests::method(text).map_err(|refusal| Failure::invalid(sanitize::line(&refusal)))?;
    Ok(Method::from_bytes(known.as_bytes()).expect("the known ones are methods"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_proxies_and_other_cases_are_none() {
        for text in ["CONNECT", "TRACE", "get", "", "GET ", "G\r\nET"] {
            assert!(method(text).is_err(), "{text:?}");
        }
        assert_eq!(method("PATCH").unwrap(), Method::PATCH);
    }
}
