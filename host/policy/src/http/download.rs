//! What a person's own command may fetch: from the host that they typed, and from hosts that they admit besides.
//!
//! A registry sends its clients on: to the host that gives tokens, and to whoever stores its files. Those it names, not the person, so a person
//! has to admit each of them, and to be admitted opens no address of the local network to a name. All that bounds requests of plugins bounds
//! these as well, but for `fetch_confirm`: a person has asked.

use super::{Asker, HttpGrant, check_enabled, exactly};
use crate::hosts::{HostRules, Opens};
use ::http::Method;
use base::envelope::Failure;
use base::target::Host;
use config::{Config, HostList, HostPattern, HttpRights};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// Who asks, as connections are kept.
const NAME: &str = "plugin add";
/// How long a file may take: the largest component that settings can allow, at 2 MB in a second. A person who waits can end it.
const PATIENCE: Duration = Duration::from_secs(600);

impl HttpGrant {
    /// What may be fetched for a person who has typed a URL: from its host, which typing it opens, and from `hosts`, of which addresses are
    /// opened, and names are not. `most_bytes` is the longest body.
    ///
    /// # Errors
    ///
    /// `denied` where no requests are made at all.
    pub fn of_download(
        typed: &Url,
        hosts: &[HostPattern],
        most_bytes: usize,
        config: &Config,
    ) -> Result<Self, Failure> {
        check_enabled(config)?;
        let own: Vec<HostPattern> = exactly(typed).into_iter().collect();
        let addresses = hosts.iter().filter(|host| matches!(host, HostPattern::Range(_)));
        let opened: Vec<_> = config.opened_domains().iter().chain(&own).chain(addresses).cloned().collect();
        Ok(Self {
            plugin: NAME.into(),
            label: NAME.into(),
            sha256: String::new(),
            rights: HttpRights {
                hosts: vec![HostList::Only(own.iter().chain(hosts).cloned().collect())],
                methods: vec![vec![Method::GET.to_string()]],
                paths: Vec::new(),
                base: None,
                headers: BTreeMap::new(),
            },
            headers: Vec::new(),
            lent: Vec::new(),
            remedies: config.remedies(),
            base: None,
            rules: HostRules::new(config, Opens::Fetch, &opened),
            ports: config.tools.fetch_ports.iter().copied().chain(typed.port_or_known_default()).collect(),
            // What was typed is encrypted, or of this machine: `config/source.rs`, `reference.rs`.
            plain_http: typed.scheme() == "http",
            confirm: false,
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
            timeout: PATIENCE,
            most_bytes,
            asker: Asker::Person,
            confine: None,
        })
    }
}

/// Whether a host is among those that a person has named. A name is not asked for because it might lead to an address that was typed.
pub(super) fn names(hosts: &HostList, host: &Host) -> bool {
    match host {
        Host::Name(name) => hosts.covers_name(name),
        Host::Address(address) => hosts.covers_address(*address),
    }
}

/// The refusal of a host that the person has not named, with that host as its data: whoever can ask the person does so.
pub(super) fn not_named(host: &Host) -> Failure {
    Failure::denied(format!("`{host}` is not the host that you named"))
        .hint(format!("add `--host {host}` if this plugin may come from there, too"))
        .data(json!({ "host": host.to_string() }))
}
