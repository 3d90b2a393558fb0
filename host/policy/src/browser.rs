//! What one plugin may do with a browser: which hosts its pages come from, which profiles, scripts and secrets it may use.
//!
//! What a page connects to is judged as requests are (`http.rs`), at each connection; `browser/` does what is granted here.

use super::connections::{Judge, denied};
use super::hosts::{AdmittedTarget, HostRules, check_encrypted, check_secret};
use super::http::HttpGrant;
use super::keys::Lender;
use super::own_cell::{CellPort, LOCALHOST};
use crate::exec::EVERY;
use crate::explain::words::{distinct, listed};
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::rules::KeptRules;
use crate::scope::Scope;
use crate::{Bound, Policy};
use audit::Action;
use backend::Backend;
use base::addresses::Special;
use base::capability::Capability;
use base::envelope::Failure;
use base::target::Target;
use base::text::sanitize;
use config::{BrowserRights, Config, HostList, HostPattern, Needed, Remedies};
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// What one plugin may do with a browser.
#[derive(Clone)]
pub struct BrowserGrant {
    plugin: String,
    sha256: String,
    rights: BrowserRights,
    http: HttpGrant,
    kept: Arc<KeptRules>,
    /// The hosts of every secret that settings name.
    secrets: BTreeMap<String, Vec<HostPattern>>,
    remedies: Remedies,
}

impl Grant for BrowserGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        let rights = bound.rights.browser.clone().ok_or_else(|| {
            policy.not_granted(
                plugin,
                bound,
                Capability::Browser,
                "browser.hosts = [\"*.example.com\"]",
                "--browse HOST",
            )
        })?;
        Ok(Self::new(plugin, rights, &bound.config, policy))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let clause = |name: &str, is_allowed: bool, detail: String| {
            let decided_by = explained.own(&format!("browser.{name}"));
            let verdict = if is_allowed { "allowed" } else { "denied" };
            Clause { subject: "browser", verdict, detail, decided_by }
        };
        let shown = |hosts: &HostList| match hosts {
            HostList::Any => "every host that requests may reach".to_owned(),
            HostList::Only(entries) => listed(entries, "no host"),
        };
        let hosts = distinct(self.hosts().iter().map(shown).collect()).join(", of these only ");
        let (profiles, secrets) = (self.profiles(), self.secrets());
        vec![
            clause("hosts", true, format!("pages, and all that they load, from: {hosts}")),
            clause("profiles", !profiles.is_empty(), format!("profiles that stay: {}", listed(&profiles, "none"))),
            clause("evaluate", self.evaluates(), "scripts of its own in pages".into()),
            clause("downloads", self.downloads(), "files that pages download are kept".into()),
            clause("uploads", self.uploads(), "files that it may read are given to pages".into()),
            clause("secrets", !secrets.is_empty(), format!("secrets in password fields: {}", listed(&secrets, "none"))),
        ]
    }
}

impl BrowserGrant {
    pub(super) fn new(plugin: &Manifest, rights: BrowserRights, config: &Config, policy: &Policy) -> Self {
        let secrets = config.secret.iter().map(|(name, section)| (name.clone(), section.hosts.clone())).collect();
        Self {
            plugin: plugin.name().into(),
            sha256: plugin.sha256().into(),
            http: HttpGrant::of_pages(plugin, rights.hosts.clone(), config, policy.confine.clone()),
            kept: policy.rules.clone(),
            rights,
            secrets,
            remedies: config.remedies(),
        }
    }

    /// Tells the browsers of one plugin from those of others.
    pub fn owner(&self) -> String {
        format!("{} {}", self.plugin, self.sha256)
    }

    /// The hosts that pages may connect to: within all of these.
    #[must_use]
    pub fn hosts(&self) -> &[HostList] {
        &self.rights.hosts
    }

    /// The profiles that stay which it may use.
    #[must_use]
    pub fn profiles(&self) -> Vec<String> {
        within_all(&self.rights.profiles)
    }

    /// The secrets that it may have put into fields.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        within_all(&self.rights.secrets)
    }

    /// Whether it may have pages run scripts of its own.
    #[must_use]
    pub fn evaluates(&self) -> bool {
        self.rights.evaluate
    }

    /// Whether files that its pages download are kept.
    #[must_use]
    pub fn downloads(&self) -> bool {
        self.rights.downloads
    }

    /// Whether it may give pages files that it may read.
    #[must_use]
    pub fn uploads(&self) -> bool {
        self.rights.uploads
    }

    /// Decides on the page that a tab is to go to, and returns it. A page of the session's own cell goes by `localhost`: browsers trust that name,
    /// and say of each request to it which site asks.
    pub fn admit_page<'a>(
        &'a self,
        target: Target,
        backend: &'a dyn Backend,
    ) -> BoxFuture<'a, Result<Target, Failure>> {
        Box::pin(async move {
            self.http.check_encrypted(&target)?;
            match self.http.cell_port(&target, backend).await? {
                // Whether something listens there is known when it is connected to.
                Some(_) => target.at_host(LOCALHOST),
                None => self.http.admit_connection(target.clone()).map(|_| target),
            }
        })
    }

    /// Decides on a profile that stays.
    pub fn admit_profile(&self, profile: &str) -> Result<(), Failure> {
        self.admit_name(profile, &self.rights.profiles, "profiles", "use the profile")
    }

    /// Decides on a script of its own in a page.
    pub fn admit_script(&self) -> Result<(), Failure> {
        self.admit_switch(self.rights.evaluate, "evaluate", "have pages run scripts")
    }

    /// Decides on a file that one of its pages downloads.
    pub fn admit_download(&self) -> Result<(), Failure> {
        self.admit_switch(self.rights.downloads, "downloads", "download files")
    }

    /// Decides on giving a page files. Which ones is decided as for reading them.
    pub fn admit_upload(&self) -> Result<(), Failure> {
        self.admit_switch(self.rights.uploads, "uploads", "give files to pages")
    }

    fn admit_switch(&self, is_on: bool, key: &str, what: &str) -> Result<(), Failure> {
        if is_on {
            return Ok(());
        }
        let (name, key) = (&self.plugin, format!("browser.{key}"));
        let line = format!("set `{key} = true` under [plugin.{name}]");
        let hint = self.remedies.hint(&format!("plugin.{name}.{key}"), &Needed::On, line);
        Err(Failure::denied(format!("`{name}` may not {what}")).hint(hint))
    }

    /// Decides on a secret for a field of the document that this URL names.
    pub fn admit_secret(&self, secret: &str, document: &Target) -> Result<(), Failure> {
        self.admit_name(secret, &self.rights.secrets, "secrets", "use the secret")?;
        // A script that is there before, or in a tab beside, would read it.
        if self.rights.evaluate {
            let message = format!("`{}` may have pages run scripts, and so gets no secret into them", self.plugin);
            return Err(
                Failure::denied(message).hint(format!("set `browser.evaluate = false` under [plugin.{}]", self.plugin))
            );
        }
        let hosts = self.secrets.get(secret).map(Vec::as_slice).unwrap_or_default();
        check_secret(secret, hosts, document.host())?;
        check_encrypted(secret, document)
    }

    fn admit_name(&self, wanted: &str, lists: &[Vec<String>], key: &str, what: &str) -> Result<(), Failure> {
        let has = |list: &Vec<String>| list.iter().any(|entry| entry == wanted || entry == EVERY);
        if lists.iter().all(has) {
            return Ok(());
        }
        let (name, shown) = (&self.plugin, sanitize::line(wanted));
        let line = format!("add \"{shown}\" to `browser.{key}` under [plugin.{name}]");
        let hint = self.remedies.hint(&format!("plugin.{name}.browser.{key}"), &Needed::Entry(wanted), line);
        Err(Failure::denied(format!("`{name}` may not {what} `{shown}`")).hint(hint))
    }

    /// Writes down what was done with a browser, or why it was not.
    pub fn record(what: String, decided: Result<(), &Failure>, scope: &Scope) {
        let decision = match decided {
            Ok(()) => "allowed".into(),
            Err(refusal) => format!("denied: {}", refusal.message),
        };
        scope.record(Action { capability: Capability::Browser, confinement: None, what, declaration: None, decision });
    }
}

impl Judge for BrowserGrant {
    /// A secret is put into fields, and no command has it.
    fn has_secret(&self) -> bool {
        false
    }

    fn lender(&self) -> Option<&Lender> {
        None
    }

    fn admits_plain(&self) -> bool {
        self.http.admits_plain()
    }

    fn admit<'a>(&'a self, target: Target, call: Option<&'a Scope>) -> BoxFuture<'a, Result<AdmittedTarget, Failure>> {
        Box::pin(async move {
            let server = target.server();
            let decided = match denied(&target, call, &self.kept).await {
                Some((refusal, _)) => Err(refusal),
                None => self.http.admit_connection(target),
            };
            if let Some(scope) = call {
                Self::record(format!("connect to {server}"), decided.as_ref().map(drop), scope);
            }
            decided
        })
    }

    fn cell_port<'a>(
        &'a self,
        target: &'a Target,
        backend: &'a dyn Backend,
    ) -> BoxFuture<'a, Result<Option<CellPort>, Failure>> {
        Box::pin(async move {
            match self.http.cell_port(target, backend).await? {
                // Which site asks is not said of requests to this name.
                Some(port) if port.is_named => {
                    let number = port.target.port();
                    let message = format!("pages reach `cell:{number}` by another name");
                    Err(Failure::denied(message).hint(format!("use `http://{LOCALHOST}:{number}`")))
                }
                port => Ok(port),
            }
        })
    }

    fn admit_to_cell<'a>(&'a self, port: &'a CellPort, call: Option<&'a Scope>) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let decided = denied(&port.target, call, &self.kept).await.map_or(Ok(()), |(refusal, _)| Err(refusal));
            if let Some(scope) = call {
                Self::record(format!("connect to {}", port.target.server()), decided.as_ref().copied(), scope);
            }
            decided
        })
    }

    fn rules(&self) -> &HostRules {
        self.http.rules()
    }

    fn kept(&self) -> &KeptRules {
        &self.kept
    }

    /// The hosts of its own pages bind it besides.
    fn admit_address(
        &self,
        target: &Target,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
    ) -> Result<(), Failure> {
        self.http.admit_address(target, address, special, is_own)
    }
}

/// The names that are in all of these lists.
fn within_all(lists: &[Vec<String>]) -> Vec<String> {
    let has = |list: &Vec<String>, name: &String| list.iter().any(|entry| entry == name || entry == EVERY);
    let named = lists.iter().flatten().filter(|name| lists.iter().all(|list| has(list, name)));
    let names: std::collections::BTreeSet<String> = named.cloned().collect();
    names.into_iter().collect()
}
