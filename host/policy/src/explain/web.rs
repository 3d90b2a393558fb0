//! What a plugin may reach: by requests, with a browser, and as a server of others.

use super::words::{below, distinct, listed, reached};
use super::{BUILT_IN, Clause, Explained};
use crate::browser::BrowserGrant;
use crate::http::HttpGrant;
use crate::upstream::UpstreamGrant;
use base::builtin::SearchBase;
use config::{HostList, UpstreamConfirm};
use std::path::PathBuf;

impl Explained<'_> {
    /// What binds its requests.
    pub(super) fn http(&self, grant: &HttpGrant) -> Vec<Clause> {
        let clause = |verdict, detail, decided_by| Clause { subject: "http", verdict, detail, decided_by };
        let own = |name: &str| self.own(&format!("http.{name}"));
        let base = own("base");
        let hosts = match self.plugin.search.map(|server| server.base) {
            Some(SearchBase::Endpoint) if base == BUILT_IN => self.decided("tools.search_endpoint"),
            Some(SearchBase::Endpoint | SearchBase::Fixed(_) | SearchBase::Named { .. }) => base,
            None => own("hosts"),
        };
        let (verdict, asked) = if grant.confirms() {
            ("asks", "a person is shown every request first")
        } else {
            ("allowed", "requests are made without a question")
        };
        let mut clauses = vec![
            clause("allowed", format!("requests to {}", reached(grant.hosts())), hosts),
            clause("allowed", format!("methods: {}", listed(&grant.methods(), "none")), own("methods")),
            clause("allowed", below(grant.paths()), own("paths")),
            clause(verdict, asked.into(), self.decided("tools.fetch_confirm")),
        ];
        let headers: Vec<_> = grant.headers().collect();
        if !headers.is_empty() {
            clauses.push(clause("allowed", format!("the host adds: {}", headers.join("; ")), own("headers")));
        }
        clauses.extend(self.targets());
        clauses
    }

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

    /// What it may do with a browser. What binds its connections besides is said of requests.
    pub(super) fn browser(&self, grant: &BrowserGrant) -> Vec<Clause> {
        let clause = |name: &str, is_allowed: bool, detail: String| {
            let decided_by = self.own(&format!("browser.{name}"));
            let verdict = if is_allowed { "allowed" } else { "denied" };
            Clause { subject: "browser", verdict, detail, decided_by }
        };
        let shown = |hosts: &HostList| match hosts {
            HostList::Any => "every host that requests may reach".to_owned(),
            HostList::Only(entries) => listed(entries, "no host"),
        };
        let hosts = distinct(grant.hosts().iter().map(shown).collect()).join(", of these only ");
        let (profiles, secrets) = (grant.profiles(), grant.secrets());
        vec![
            clause("hosts", true, format!("pages, and all that they load, from: {hosts}")),
            clause("profiles", !profiles.is_empty(), format!("profiles that stay: {}", listed(&profiles, "none"))),
            clause("evaluate", grant.evaluates(), "scripts of its own in pages".into()),
            clause("downloads", grant.downloads(), "files that pages download are kept".into()),
            clause("uploads", grant.uploads(), "files that it may read are given to pages".into()),
            clause("secrets", !secrets.is_empty(), format!("secrets in password fields: {}", listed(&secrets, "none"))),
        ]
    }

    /// What a server's tools may do, and what it reaches itself.
    pub(super) fn upstream(&self, grant: &UpstreamGrant) -> Vec<Clause> {
        let (section, name) = (grant.section(), self.plugin.name());
        let asked = match section.confirm {
            UpstreamConfirm::None => "without a question".to_owned(),
            UpstreamConfirm::Writes if section.reads.is_empty() => "a person is asked about each call".to_owned(),
            UpstreamConfirm::Writes => format!("a person is asked about each call but of {}", section.reads.join(", ")),
            UpstreamConfirm::All => "a person is asked about each call".to_owned(),
        };
        let clause = |subject, detail, key: &str| {
            let decided_by = self.decided(&format!("upstream.{name}.{key}"));
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
