//! What one plugin may read of the user's mail: which accounts, and of these the folders that settings name.
//!
//! Where an account's server is, settings say; what is connected to is judged as requests are (`hosts.rs`). `mail/` does what is granted here.

use super::hosts::{AdmittedTarget, HostRules, Opens, check_secret};
use crate::exec::EVERY;
use crate::explain::words::listed;
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::scope::Scope;
use crate::{Bound, Policy};
use audit::Action;
use base::addresses::Special;
use base::capability::Capability;
use base::envelope::{Failure, Kind};
use base::target::{Host, Target};
use base::text::sanitize;
use config::{Config, HostPattern, MailRefresh, MailSection, Needed, Remedies};
use contract::manifest::Manifest;
use secrets;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What one plugin may read of the user's mail.
#[derive(Clone)]
pub struct MailGrant {
    plugin: String,
    sha256: String,
    /// The accounts that it may read: in every one of these.
    names: Vec<Vec<String>>,
    accounts: BTreeMap<String, MailSection>,
    /// The hosts that each secret of an account may go to.
    secrets: BTreeMap<String, Vec<HostPattern>>,
    rules: HostRules,
    remedies: Remedies,
}

impl Grant for MailGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        if bound.rights.mail.iter().any(Vec::is_empty) {
            return Err(policy.not_granted(plugin, bound, Capability::Mail, "mail = [\"work\"]", "--mail NAME"));
        }
        Ok(Self::new(plugin, bound.rights.mail.clone(), &bound.config))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let detail =
            format!("reads the mail of these accounts, and changes nothing: {}", listed(&self.accounts(), "none"));
        vec![Clause { subject: "mail", verdict: "allowed", detail, decided_by: explained.own("mail") }]
    }
}

impl MailGrant {
    pub(super) fn new(plugin: &Manifest, names: Vec<Vec<String>>, config: &Config) -> Self {
        let lent = config.mail.values().flat_map(MailSection::lent);
        let hosts = lent.filter_map(|(secret, _)| {
            let hosts = config.secret.get(&secret)?.hosts.clone();
            Some((secret, hosts))
        });
        Self {
            plugin: plugin.name().into(),
            sha256: plugin.sha256().into(),
            names,
            secrets: hosts.collect(),
            accounts: config.mail.clone(),
            rules: HostRules::new(config, Opens::Fetch, config.opened_domains()),
            remedies: config.remedies(),
        }
    }

    /// Tells the connections of one plugin from those of others.
    pub fn owner(&self) -> String {
        format!("{} {}", self.plugin, self.sha256)
    }

    /// The accounts that it may read.
    #[must_use]
    pub fn accounts(&self) -> Vec<String> {
        self.accounts.keys().filter(|name| self.is_named(name)).cloned().collect()
    }

    fn is_named(&self, account: &str) -> bool {
        self.names.iter().all(|list| list.iter().any(|entry| entry == account || entry == EVERY))
    }

    /// Decides on an account; none stands for the only one.
    pub fn admit_account(&self, account: Option<&str>) -> Result<(&str, &MailSection), Failure> {
        let granted = self.accounts();
        let account = match (account, &granted[..]) {
            (Some(account), _) => account,
            (None, [only]) => only,
            (None, []) => return Err(self.no_account()),
            (None, several) => {
                return Err(Failure::invalid("there are several accounts: say which")
                    .hint(format!("`account` is one of: {}", several.join(", "))));
            }
        };
        let shown = sanitize::beginning(account, 64);
        match self.accounts.get_key_value(account) {
            Some((name, section)) if self.is_named(name) => Ok((name, section)),
            Some(_) => {
                let key = format!("plugin.{}.mail", self.plugin);
                let line = format!("add \"{shown}\" to `mail` under [plugin.{}]", self.plugin);
                let hint = self.remedies.hint(&key, &Needed::Entry(account), line);
                Err(Failure::denied(format!("`{}` may not read the account `{shown}`", self.plugin)).hint(hint))
            }
            None if granted.is_empty() => Err(self.no_account()),
            None => Err(Failure::invalid(format!("there is no account `{shown}`"))
                .hint(format!("`account` is one of: {}", granted.join(", ")))),
        }
    }

    /// Why it can read no mail at all; none if it can.
    #[must_use]
    pub fn lacks_account(&self) -> Option<Failure> {
        self.accounts().is_empty().then(|| self.no_account())
    }

    fn no_account(&self) -> Failure {
        if self.accounts.is_empty() {
            return Failure::denied("settings name no mail account")
                .hint("write a section [mail.NAME] with `host`, `user` and `secret` into your settings");
        }
        let line = format!("name accounts by `mail` under [plugin.{}]", self.plugin);
        Failure::denied(format!("`{}` may read no mail account", self.plugin)).hint(line)
    }

    /// Decides on a folder.
    pub fn admit_folder(&self, account: &str, folder: &str) -> Result<(), Failure> {
        let listed = self.accounts.get(account).map(|section| section.folders.as_slice()).unwrap_or_default();
        if is_listed(folder, listed) {
            return Ok(());
        }
        let shown = sanitize::beginning(folder, 100);
        Err(Failure::denied(format!("the folder `{shown}` of `{account}` is not one that may be read"))
            .hint(format!("add \"{shown}\" to `folders` under [mail.{account}]")))
    }

    /// The secret that an account logs in with, by its name.
    pub fn login_secret(&self, account: &str, section: &MailSection) -> Result<String, Failure> {
        let Some(secret) = &section.secret else {
            return Ok(secrets::of_account(account));
        };
        let target = Target::of_server(&section.host, section.port)?;
        self.admit_secret(secret, target.host())?;
        Ok(secret.clone())
    }

    fn admit_secret(&self, secret: &str, host: &Host) -> Result<(), Failure> {
        check_secret(secret, self.secrets.get(secret).map(Vec::as_slice).unwrap_or_default(), host)
    }

    /// Decides on the token server of an account, and on the secrets that it gets.
    pub fn admit_token_server(&self, target: Target, refresh: &MailRefresh) -> Result<AdmittedTarget, Failure> {
        refresh.secrets().try_for_each(|secret| self.admit_secret(secret, target.host()))?;
        self.rules.check_host(target.host(), || match target.is_encrypted() {
            true => Ok(()),
            false => Err(Failure::new(Kind::Internal, "a refresh token would go out without encryption")),
        })?;
        Ok(AdmittedTarget::new(target))
    }

    /// Decides on the server of an account, whose port its section has opened.
    pub fn admit_server(&self, target: Target, port: u16) -> Result<AdmittedTarget, Failure> {
        self.rules.check_host(target.host(), || match target.port() == port {
            true => Ok(()),
            false => Err(Failure::new(Kind::Internal, "the connection would go to another port")),
        })?;
        Ok(AdmittedTarget::new(target))
    }

    /// Decides on an address that either server has.
    pub fn admit_address(
        &self,
        target: &Target,
        address: IpAddr,
        special: Option<Special>,
        is_own: bool,
    ) -> Result<(), Failure> {
        self.rules.admit_address(target, address, special, is_own)
    }

    /// Writes down what was done with mail, or why it was not.
    pub fn record(what: String, decided: Result<(), &Failure>, scope: &Scope) {
        let decision = match decided {
            Ok(()) => "allowed".into(),
            Err(refusal) => format!("{}: {}", refusal.kind.name(), refusal.message),
        };
        scope.record(Action { capability: Capability::Mail, confinement: None, what, declaration: None, decision });
    }
}

/// What settings write for all folders.
pub const EVERY_FOLDER: &str = "*";
/// The folder that every account has; its name is the same in any case.
pub const INBOX: &str = "INBOX";

/// Whether a folder is one of those that are listed.
fn is_listed(folder: &str, listed: &[String]) -> bool {
    listed.iter().any(|other| other == EVERY_FOLDER || is_same_folder(other, folder))
}

/// Whether two names are of one folder.
pub fn is_same_folder(one: &str, other: &str) -> bool {
    one == other || (one.eq_ignore_ascii_case(INBOX) && other.eq_ignore_ascii_case(INBOX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_known_by_their_names_and_the_inbox_in_any_case() {
        let listed = ["INBOX".to_owned(), "Archive".to_owned()];
        assert!(is_listed("inbox", &listed) && is_listed("Archive", &listed));
        assert!(!is_listed("archive", &listed) && !is_listed("Archive/2024", &listed));
        assert!(is_listed("anything", &["*".to_owned()]));
    }
}
