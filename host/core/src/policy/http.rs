//! What one plugin may ask of web servers: the rules of settings and section, then a person's approval; only what passed can be sent.
//!
//! Parsing, resolving and connecting is `egress/`, asking is `approval.rs`.

mod paths;

use super::approval::{ActionKind, By, Landing, Question};
use super::rights::HttpRights;
use crate::audit::Action;
use crate::call::scope::Scope;
use crate::call::session::ApprovalKey;
use crate::capability::Capability;
use crate::config::{Config, HostList, HostPattern, Needed, Remedies, requests};
use crate::egress::{Host, Request, Route, Special, Target};
use crate::envelope::Failure;
use crate::text::sanitize;
use crate::tools::manifest::Manifest;
use reqwest::Method;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;
use url::Url;

/// The plugin of this binary that `tools.search_enabled` switches, and that reaches the page of `tools.search_endpoint` alone.
const SEARCH: &str = "web_search";
/// Names that mean something else on every network (RFC 6761 and its registry, RFC 6762, RFC 7686, RFC 8375), and those that
/// routers and clusters use as if they were. `.example` is left to name servers, which know no such name.
#[rustfmt::skip]
const LOCAL_NAMES: [&str; 15] = [
    "localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa", "svc", "onion", "test",
    "invalid", "arpa",
];

/// Where requests leave from, whatever the backend.
const HERE: &str = "this machine";

/// What one plugin may ask of web servers.
#[derive(Clone)]
pub struct HttpGrant {
    plugin: String,
    label: String,
    sha256: String,
    rights: HttpRights,
    remedies: Remedies,
    base: Option<Url>,
    /// A host lies within every one of these.
    allowed: Vec<HostList>,
    /// Hosts that the user has named, and so opened where they are private.
    opened: Vec<HostPattern>,
    blocked: Vec<HostPattern>,
    /// Private addresses that are open: within each of these.
    private: Vec<Vec<HostPattern>>,
    /// Private addresses that can be open at all, where a policy says so: within each of these.
    private_bounds: Vec<Vec<HostPattern>>,
    ports: Vec<u16>,
    plain_http: bool,
    confirm: bool,
    approval_timeout: Duration,
    timeout: Duration,
}

/// A target that the rules for names, paths and methods admit. Made only here.
pub(crate) struct AdmittedTarget(Target);

impl AdmittedTarget {
    pub(crate) fn into_target(self) -> Target {
        self.0
    }
}

/// A route that a person, where asked, has admitted as well. Made only here.
pub(crate) struct ApprovedRoute(Route);

impl ApprovedRoute {
    pub(crate) fn route(&self) -> &Route {
        &self.0
    }

    pub(crate) fn target(&self) -> &Target {
        self.0.target()
    }
}

/// Whether a plugin's requests are those of `web_search`, which has settings of its own.
pub(super) fn is_search(plugin: &Manifest) -> bool {
    plugin.id.is_builtin() && plugin.name() == SEARCH
}

impl HttpGrant {
    pub(super) fn new(plugin: &Manifest, mut rights: HttpRights, config: &Config) -> Self {
        let mut base = rights.base.take().and_then(|base| Url::parse(&base).ok());
        if is_search(plugin) && base.is_none() {
            let endpoint = Url::parse(&config.tools.search_endpoint).expect("an endpoint was checked when it was read");
            rights.hosts.push(HostList::Only(exactly(&endpoint).into_iter().collect()));
            rights.paths.push(vec![endpoint.path().trim_end_matches('/').to_owned()]);
            base = Some(endpoint);
        }
        Self {
            plugin: plugin.name().into(),
            label: plugin.id.label(),
            sha256: plugin.sha256().into(),
            rights,
            remedies: config.remedies(),
            base,
            allowed: config.allowed_domains(),
            opened: config.opened_domains().to_vec(),
            blocked: config.tools.fetch_blocked_domains.clone(),
            private: config.private_ranges(),
            private_bounds: config.private_bounds(),
            ports: config.tools.fetch_ports.clone(),
            plain_http: config.tools.fetch_plain_http,
            confirm: config.tools.fetch_confirm,
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
            timeout: Duration::from_secs(config.network.fetch_timeout_secs),
        }
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
    pub(crate) fn base(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    /// How long a request may take with all its redirects.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The key under which connections are kept: no plugin uses those of another.
    pub(crate) fn client_key(&self) -> String {
        format!("{} {}", self.plugin, self.sha256)
    }

    /// Decides on a target before anybody is asked for its address. A refusal is recorded.
    pub(crate) fn admit(&self, method: &Method, target: Target, scope: &Scope) -> Result<AdmittedTarget, Failure> {
        let checked = self.check_request(method, &target).and_then(|()| self.check_host(&target));
        match checked {
            Ok(()) => Ok(AdmittedTarget(target)),
            Err(refusal) => {
                self.record(method, &target, Err(&refusal), scope);
                Err(refusal)
            }
        }
    }

    fn check_request(&self, method: &Method, target: &Target) -> Result<(), Failure> {
        let name = &self.plugin;
        if !target.is_encrypted() && !self.plain_http {
            return Err(Failure::denied(format!("`{target}` is not encrypted")).hint(self.remedies.hint(
                "tools.fetch_plain_http",
                &Needed::On,
                "use https://, or set `fetch_plain_http = true` under [tools]",
            )));
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

    fn check_host(&self, target: &Target) -> Result<(), Failure> {
        let host = target.host();
        if let Some(entry) = self.blocked.iter().find(|entry| covers(entry, host)) {
            return Err(blocked(host, entry));
        }
        for hosts in &self.rights.hosts {
            if !may_cover(hosts, host) {
                return Err(self.not_its_own(host));
            }
        }
        for allowed in &self.allowed {
            if !may_cover(allowed, host) {
                return Err(self.not_allowed(host));
            }
        }
        let Host::Name(name) = host else {
            // The address is judged when it is connected to, like those of names.
            return Ok(());
        };
        let is_opened = self.opened.iter().any(|entry| entry.covers_name(name));
        if !is_opened && (!name.contains('.') || LOCAL_NAMES.iter().any(|local| is_within(name, local))) {
            let line = format!(
                "`fetch_allowed_domains = [\"{name}\"]` under [tools] opens it, and closes what the list does not name"
            );
            return Err(Failure::denied(format!("`{name}` is a name of the local network, not of the Internet"))
                .hint(self.remedies.hint("tools.fetch_allowed_domains", &Needed::Entry(name), line)));
        }
        self.check_port(target)
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
    pub(crate) fn admit_address(
        &self,
        target: &Target,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
    ) -> Result<(), Failure> {
        let host = target.host();
        if let Some(entry) = self.blocked.iter().find(|entry| entry.covers_address(address)) {
            return Err(blocked(host, entry));
        }
        let lies_in = |list: &HostList| covered_name(list, host) || list.covers_address(address);
        if !self.rights.hosts.iter().all(lies_in) {
            return Err(self.not_its_own(host));
        }
        if !self.allowed.iter().all(lies_in) {
            return Err(self.not_allowed(host));
        }
        if self.is_open(address) {
            return Ok(());
        }
        let is_named = self.may_open(address)
            && matches!(host, Host::Name(name) if self.opened.iter().any(|entry| entry.covers_name(name)));
        match special {
            Some(special) if !(is_named && special.has_hosts) => {
                let Special { what, range, source, .. } = special;
                let message = format!("{} is not public: {what} ({range}, {source})", leads_to(host, address));
                Err(Failure::denied(message).hint(self.open_range(address)))
            }
            None if is_own => {
                Err(Failure::denied(format!("{} is an address of this machine", leads_to(host, address)))
                    .hint(self.open_range(address)))
            }
            // Names were held against the ports before.
            _ => self.check_port(target),
        }
    }

    /// The user named this very address or its range: all its ports are open.
    fn is_open(&self, address: IpAddr) -> bool {
        let by_range = !self.private.is_empty() && self.private.iter().all(|ranges| covered(ranges, address));
        by_range || covered(&self.opened, address) && self.may_open(address)
    }

    /// No policy keeps the address closed, whoever names it.
    fn may_open(&self, address: IpAddr) -> bool {
        self.private_bounds.iter().all(|ranges| covered(ranges, address))
    }

    fn not_its_own(&self, host: &Host) -> Failure {
        let name = &self.plugin;
        Failure::denied(format!("`{name}` may not reach `{host}`")).hint(self.remedies.hint(
            &format!("plugin.{name}.http.hosts"),
            &Needed::Entry(&host.to_string()),
            format!("add \"{host}\" to `http.hosts` under [plugin.{name}]"),
        ))
    }

    fn not_allowed(&self, host: &Host) -> Failure {
        let line = format!("add \"{host}\" to `fetch_allowed_domains` under [tools]");
        Failure::denied(format!("`{host}` is not in `tools.fetch_allowed_domains`")).hint(self.remedies.hint(
            "tools.fetch_allowed_domains",
            &Needed::Entry(&host.to_string()),
            line,
        ))
    }

    fn open_range(&self, address: IpAddr) -> String {
        let line = format!("`fetch_private_ranges = [\"{address}\"]` under [tools] opens it");
        self.remedies.hint("tools.fetch_private_ranges", &Needed::Entry(&address.to_string()), line)
    }

    /// Has a person admit the route, where settings ask for that: the first, and each one that goes to another server. A name
    /// is resolved again at each redirect, so the same name may lead to another server.
    pub(crate) async fn approve(
        &self,
        route: Route,
        request: &Request,
        last: Option<&ApprovedRoute>,
        scope: &Scope,
    ) -> Result<ApprovedRoute, Failure> {
        let target = route.target();
        let decided = if !self.confirm {
            Ok("tools.fetch_confirm")
        } else if last.is_some_and(|last| last.0.covers(&route)) {
            Ok("approval for the same server")
        } else {
            self.ask(&route, request, scope).await
        };
        self.record(&request.method, target, decided.as_ref().map(|by| *by).map_err(|(refusal, _)| refusal), scope);
        decided.map_err(|(refusal, _)| refusal)?;
        Ok(ApprovedRoute(route))
    }

    async fn ask(&self, route: &Route, request: &Request, scope: &Scope) -> Result<By, (Failure, By)> {
        let (line, details) = shown(route, request);
        let site = Landing { backend: HERE.into(), ..Landing::default() };
        let question = Question {
            key: ApprovalKey::new(&self.sha256, Capability::Http, ActionKind::Request, HERE),
            plugin: &self.label,
            site: &site,
            confinement: None,
            action: &line,
            details: Some(&details),
            declaration: None,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await.map(|consent| consent.by)
    }

    /// Writes down what became of a request, with who decided.
    pub(crate) fn record(&self, method: &Method, target: &Target, decided: Result<By, &Failure>, scope: &Scope) {
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

/// The whole request, as a person reads it: its line, then headers and body.
fn shown(route: &Route, request: &Request) -> (String, String) {
    let verb = if request.method == Method::GET { "fetch" } else { request.method.as_str() };
    let addresses: Vec<String> = route.addresses().iter().map(|address| address.ip().to_string()).collect();
    let line = format!("{verb} {} at {}", route.target().url(), addresses.join(", "));
    let mut details = String::new();
    for (name, value) in &request.headers {
        let _ = writeln!(details, "{name}: {}", readable(value.as_bytes()));
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
fn exactly(url: &Url) -> Option<HostPattern> {
    Some(match url.host()? {
        url::Host::Domain(name) => HostPattern::Exact(name.to_owned()),
        url::Host::Ipv4(address) => HostPattern::Range(IpAddr::from(address).into()),
        url::Host::Ipv6(address) => HostPattern::Range(IpAddr::from(address).into()),
    })
}

fn covers(entry: &HostPattern, host: &Host) -> bool {
    match host {
        Host::Name(name) => entry.covers_name(name),
        Host::Address(address) => entry.covers_address(*address),
    }
}

fn covered(entries: &[HostPattern], address: IpAddr) -> bool {
    entries.iter().any(|entry| entry.covers_address(address))
}

fn covered_name(list: &HostList, host: &Host) -> bool {
    matches!(host, Host::Name(name) if list.covers_name(name))
}

/// The list covers the host, or may cover the addresses that it turns out to have.
fn may_cover(list: &HostList, host: &Host) -> bool {
    match (list, host) {
        (HostList::Any, _) => true,
        (list, Host::Address(address)) => list.covers_address(*address),
        (HostList::Only(entries), Host::Name(name)) => {
            list.covers_name(name) || entries.iter().any(|entry| matches!(entry, HostPattern::Range(_)))
        }
    }
}

/// By whole labels.
fn is_within(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn blocked(host: &Host, entry: &HostPattern) -> Failure {
    Failure::denied(format!("`{host}` is blocked by `{entry}` of `tools.fetch_blocked_domains`"))
        .hint("`toolcrib config show --origin` says where the entry comes from")
}

fn leads_to(host: &Host, address: IpAddr) -> String {
    match host {
        Host::Name(name) => format!("`{name}` resolves to {address}, which"),
        Host::Address(address) => format!("`{address}`"),
    }
}

/// The method, if it is one that can be granted at all.
pub(crate) fn method(text: &str) -> Result<Method, Failure> {
    let known = requests::method(text).map_err(|refusal| Failure::invalid(sanitize::line(&refusal)))?;
    Ok(Method::from_bytes(known.as_bytes()).expect("the known ones are methods"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_by_whole_labels() {
        assert!(is_within("localhost", "localhost") && is_within("a.b.localhost", "localhost"));
        assert!(!is_within("notlocalhost", "localhost") && !is_within("localhost.example.com", "localhost"));
    }

    #[test]
    fn methods_of_proxies_and_other_cases_are_none() {
        for text in ["CONNECT", "TRACE", "get", "", "GET ", "G\r\nET"] {
            assert!(method(text).is_err(), "{text:?}");
        }
        assert_eq!(method("PATCH").unwrap(), Method::PATCH);
    }
}
