//! `[plugin.NAME]`: what a section may say of a plugin, and the rights that come of it: for the bytes that it names, within all that bounds it.
//!
//! A right is a field of [`PluginSection`], its row in `RULES`, its word in the table of a pin, and a field of [`PluginRights`] with the line that
//! resolves it. How values are read is in `entries.rs`. Grants are made of rights in `policy`, where the switches of `[tools]` count as well.

mod entries;

use super::narrow::Row;
use super::narrow::Rule::{And, Digest, Directories, Hosts, Kinds, Methods, Names, Never, Prefixes, Shell};
use super::narrow::When::EachTime;
use super::secrets::{self, Template};
use super::shell::PluginShell;
use crate::requests::READING_METHODS;
use crate::{Allowlist, Bound, Config, EVERY, HostList, HostPattern};
use base::event_kind::KindPattern;
use entries::{
    accounts, declared_names, digest, methods, own_base, plugin_hosts, prefixes, profiles, programs, set_names, source,
    values,
};
pub use entries::{declared, program};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::{Spanned, Table, Value};

/// `[plugin.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginSection {
    /// Where its file was fetched from: a URL, or an artifact of a registry with its digest. `plugin update` looks there again; it gives nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "source")]
    pub source: Option<String>,
    /// The bytes that the section is about, as 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "digest")]
    pub sha256: Option<String>,
    /// The digest of the tool definitions of these bytes when they were allowed; they may not change them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "digest")]
    pub definitions: Option<String>,
    /// Whether its tools are available at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it may run commands, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<PluginShell>,
    /// The directories it may read and write in.
    #[serde(default)]
    pub files: PluginFiles,
    /// The requests it may make.
    #[serde(default)]
    pub http: PluginHttp,
    /// What it may do with a browser.
    #[serde(default)]
    pub browser: PluginBrowser,
    /// The mail accounts it may read; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "accounts")]
    pub mail: Option<Vec<String>>,
    /// The programs it may start.
    #[serde(default)]
    pub exec: PluginExec,
    /// The declared programs it may run; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared_names")]
    pub programs: Option<Vec<String>>,
    /// The events it may hand over.
    #[serde(default)]
    pub embedder: PluginEmbedder,
    /// The tools that it may submit as jobs; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "declared_names")]
    pub jobs: Option<Vec<String>>,
    /// Whether it may have jobs and events at set times, as far as it may have such jobs and events at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedules: Option<bool>,
    /// Whether it may keep documents from one call to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<bool>,
    /// Whether it may look at settings, and at what toolsets declare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspect: Option<bool>,
    /// Values for it, by their names. It gets words that stand for the secrets in them, and requests of it to their hosts the secrets.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "values")]
    pub config: Option<BTreeMap<String, Template>>,
}

/// What narrows each key of a section.
pub(super) const RULES: &[Row] = &[
    ("plugin.*.source", Never, EachTime),
    ("plugin.*.sha256", Digest, EachTime),
    ("plugin.*.definitions", Never, EachTime),
    ("plugin.*.enabled", And, EachTime),
    ("plugin.*.shell", Shell, EachTime),
    ("plugin.*.files.read", Directories, EachTime),
    ("plugin.*.files.write", Directories, EachTime),
    ("plugin.*.http.hosts", Hosts, EachTime),
    ("plugin.*.http.methods", Methods, EachTime),
    ("plugin.*.http.paths", Prefixes, EachTime),
    ("plugin.*.http.base", Never, EachTime),
    ("plugin.*.http.headers", Never, EachTime),
    ("plugin.*.browser.hosts", Hosts, EachTime),
    ("plugin.*.browser.profiles", Names, EachTime),
    ("plugin.*.browser.evaluate", And, EachTime),
    ("plugin.*.browser.downloads", And, EachTime),
    ("plugin.*.browser.uploads", And, EachTime),
    ("plugin.*.browser.secrets", Names, EachTime),
    ("plugin.*.mail", Names, EachTime),
    ("plugin.*.exec.programs", Names, EachTime),
    ("plugin.*.exec.environment", Names, EachTime),
    ("plugin.*.programs", Names, EachTime),
    ("plugin.*.embedder.kinds", Kinds, EachTime),
    ("plugin.*.records", And, EachTime),
    ("plugin.*.jobs", Names, EachTime),
    ("plugin.*.schedules", And, EachTime),
    ("plugin.*.introspect", And, EachTime),
    ("plugin.*.config", Never, EachTime),
];

/// The table of a pin, with each right as a field and by its name.
macro_rules! pin_table {
    ($($right:ident)+) => {
        /// `[lock.plugin.NAME]` as it is written.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct PinTable {
            pub(super) sha256: Spanned<String>,
            pub(super) definitions_sha256: Option<Spanned<String>>,
            $($right: Option<Value>,)+
        }

        impl PinTable {
            /// Takes out the rights that are written.
            pub(super) fn rights(&mut self) -> Table {
                let rights = [$((stringify!($right), self.$right.take())),+];
                rights.into_iter().filter_map(|(right, value)| Some((right.to_owned(), value?))).collect()
            }
        }
    };
}

pin_table!(shell files http browser mail exec programs embedder records jobs schedules introspect);

/// What the configuration lets a plugin do, once `[tools]` lets any plugin do it.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginRights {
    /// Whether it may run commands.
    pub shell: bool,
    /// Whether they may also run in panes, and panes be looked at and typed into.
    pub pane: bool,
    /// Where it may read: within every one of these.
    pub read: Vec<Allowlist>,
    /// Where it may write: within every one of these.
    pub write: Vec<Allowlist>,
    /// The requests it may make; `None` where it has no right to any.
    pub http: Option<HttpRights>,
    /// What it may do with a browser; `None` where it may not use one.
    pub browser: Option<BrowserRights>,
    /// The mail accounts it may read: in every one of these.
    pub mail: Vec<Vec<String>>,
    /// The programs it may start: in every one of these.
    pub programs: Vec<Vec<String>>,
    /// The variables it may set for them: in every one of these.
    pub variables: Vec<Vec<String>>,
    /// The tools that it may submit as jobs: in every one of these.
    pub jobs: Vec<Vec<String>>,
    /// Whether it may have such jobs, and events that it may hand over, at set times.
    pub schedules: bool,
    /// The declared programs it may run: in every one of these.
    pub declared: Vec<Vec<String>>,
    /// The kinds of events it may hand over: meant by every one of these lists.
    pub kinds: Vec<Vec<KindPattern>>,
    /// Whether it may keep documents from one call to the next.
    pub records: bool,
    /// Whether it may look at settings, and at what toolsets declare.
    pub introspect: bool,
    /// Values for it, by name; secrets in them reach it as words that stand for them.
    pub config: BTreeMap<String, Template>,
}

impl Config {
    /// Returns the digest that the tool definitions of a plugin with these bytes must have, if it was pinned.
    #[must_use]
    pub fn pinned_definitions(&self, name: &str, sha256: &str) -> Option<&str> {
        let section = self.plugin.get(name)?;
        let is_about_it = section.sha256.as_deref().is_some_and(|digest| digest.eq_ignore_ascii_case(sha256));
        section.definitions.as_deref().filter(|_| is_about_it)
    }

    /// Returns whether a section is about a plugin with these bytes.
    pub fn is_about(&self, name: &str, sha256: &str) -> bool {
        let digest = self.plugin.get(name).and_then(|section| section.sha256.as_deref());
        digest.is_some_and(|digest| digest.eq_ignore_ascii_case(sha256))
    }

    /// Returns what the plugin `name` with these bytes may do; `embedded` says that they are part of this binary.
    ///
    /// Embedded bytes may do what no key denies; others what a section with their digest grants.
    #[must_use]
    pub fn plugin_rights(&self, name: &str, sha256: &str, embedded: bool) -> PluginRights {
        let section = self.plugin.get(name).cloned().unwrap_or_default();
        let named = section.sha256.as_ref().map_or(embedded, |digest| digest.eq_ignore_ascii_case(sha256));
        let demanded = self.demanded_digests(name);
        let about_it = named && demanded.iter().all(|digest| digest.eq_ignore_ascii_case(sha256));
        let lists = |directories: Option<Vec<PathBuf>>, key| {
            let own = match directories {
                _ if !about_it => return vec![Allowlist::NOTHING],
                None if embedded => Allowlist::Any,
                own => Allowlist::Only(own.unwrap_or_default()),
            };
            self.with_bounds(Some(own), &format!("plugin.{name}.files.{key}"), Bound::paths)
        };
        PluginRights {
            shell: about_it && section.shell.map_or(embedded, |shell| shell.commands),
            pane: about_it && self.reaches_panes(name, section.shell, embedded),
            read: lists(section.files.read, "read"),
            write: lists(section.files.write, "write"),
            http: if about_it { self.http_rights(name, section.http, embedded) } else { None },
            browser: if about_it { self.browser_rights(name, section.browser, embedded) } else { None },
            mail: self.names(name, "mail", section.mail.filter(|_| about_it), embedded && about_it),
            programs: self.names(
                name,
                "exec.programs",
                section.exec.programs.clone().filter(|_| about_it),
                embedded && about_it,
            ),
            variables: {
                // A variable may lead a program to another one: where these are listed, none is set unless that is listed, too.
                let is_open = embedded && about_it && section.exec.programs.is_none();
                self.names(name, "exec.environment", section.exec.environment.filter(|_| about_it), is_open)
            },
            declared: self.names(name, "programs", section.programs.filter(|_| about_it), embedded && about_it),
            jobs: self.names(name, "jobs", section.jobs.filter(|_| about_it), embedded && about_it),
            schedules: about_it && section.schedules.unwrap_or(embedded),
            records: about_it && section.records.unwrap_or(embedded),
            introspect: about_it && section.introspect.unwrap_or(embedded),
            config: section.config.filter(|_| about_it).unwrap_or_default(),
            kinds: self.kinds(name, section.embedder.kinds.filter(|_| about_it), embedded && about_it),
        }
    }

    /// Returns whether the section of a plugin and all that bounds it let it into panes.
    fn reaches_panes(&self, name: &str, own: Option<PluginShell>, embedded: bool) -> bool {
        let is_closed = self.shell_bounds(name).any(|shell| shell.pane == Some(false));
        !is_closed && own.and_then(|shell| shell.pane).unwrap_or(embedded)
    }

    /// Returns the names of programs or variables that a plugin has whose section says `own`.
    fn names(&self, plugin: &str, key: &str, own: Option<Vec<String>>, is_open: bool) -> Vec<Vec<String>> {
        let otherwise = if is_open { vec![EVERY.to_owned()] } else { Vec::new() };
        self.with_bounds(Some(own.unwrap_or(otherwise)), &format!("plugin.{plugin}.{key}"), Bound::words)
    }

    /// Returns the kinds of events that a plugin may hand over whose section says `own`.
    fn kinds(&self, name: &str, own: Option<Vec<KindPattern>>, embedded: bool) -> Vec<Vec<KindPattern>> {
        let otherwise = if embedded { vec![KindPattern::All] } else { Vec::new() };
        self.with_bounds(Some(own.unwrap_or(otherwise)), &format!("plugin.{name}.embedder.kinds"), Bound::kinds)
    }

    /// Returns what a plugin may request whose section `own` is in.
    fn http_rights(&self, name: &str, own: PluginHttp, embedded: bool) -> Option<HttpRights> {
        let key = |key| format!("plugin.{name}.http.{key}");
        let hosts = match own.hosts {
            None if embedded => HostList::Any,
            hosts => HostList::Only(hosts.unwrap_or_default()),
        };
        let hosts = self.with_bounds(Some(hosts), &key("hosts"), Bound::hosts);
        let methods = own.methods.unwrap_or_else(|| READING_METHODS.map(str::to_owned).into());
        let may_reach = !hosts.contains(&HostList::NOTHING);
        may_reach.then(|| HttpRights {
            hosts,
            methods: self.with_bounds(Some(methods), &key("methods"), Bound::words),
            paths: self.with_bounds(own.paths, &key("paths"), Bound::words),
            base: own.base,
            headers: own.headers.unwrap_or_default(),
        })
    }

    /// Returns what a plugin may do with a browser whose section `own` is in.
    fn browser_rights(&self, name: &str, own: PluginBrowser, embedded: bool) -> Option<BrowserRights> {
        let hosts = match own.hosts {
            None if embedded => HostList::Any,
            hosts => HostList::Only(hosts.unwrap_or_default()),
        };
        let hosts = self.with_bounds(Some(hosts), &format!("plugin.{name}.browser.hosts"), Bound::hosts);
        (!hosts.contains(&HostList::NOTHING)).then(|| BrowserRights {
            hosts,
            profiles: self.names(name, "browser.profiles", own.profiles, false),
            evaluate: own.evaluate.unwrap_or(false),
            downloads: own.downloads.unwrap_or(false),
            uploads: own.uploads.unwrap_or(false),
            secrets: self.names(name, "browser.secrets", own.secrets, false),
        })
    }
}

/// `[plugin.NAME.files]`; an empty list means nowhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginFiles {
    /// Where it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<PathBuf>>,
    /// Where it may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<PathBuf>>,
}

/// `[plugin.NAME.http]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginHttp {
    /// The hosts it may reach.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "plugin_hosts")]
    pub hosts: Option<Vec<HostPattern>>,
    /// The methods its requests may have; GET and HEAD unless set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "methods")]
    pub methods: Option<Vec<String>>,
    /// The path prefixes it may reach, by whole segments; all unless set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "prefixes")]
    pub paths: Option<Vec<String>>,
    /// What its relative URLs start from.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "own_base")]
    pub base: Option<String>,
    /// Headers of its requests that hold secrets, by their names in lower case; it cannot set these itself.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "secrets::headers")]
    pub headers: Option<BTreeMap<String, Template>>,
}

/// `[plugin.NAME.browser]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginBrowser {
    /// The hosts that its pages, and all that these load, may come from.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "plugin_hosts")]
    pub hosts: Option<Vec<HostPattern>>,
    /// The profiles that it may use which stay.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "profiles")]
    pub profiles: Option<Vec<String>>,
    /// Whether it may have pages run scripts of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluate: Option<bool>,
    /// Whether files that its pages download are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<bool>,
    /// Whether it may give pages files that it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploads: Option<bool>,
    /// The secrets that it may have put into password fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
}

/// `[plugin.NAME.exec]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginExec {
    /// The programs it may start without a shell, by name or path; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "programs")]
    pub programs: Option<Vec<String>>,
    /// The variables it may set for them; `*` means all that may be set.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "set_names")]
    pub environment: Option<Vec<String>>,
}

/// `[plugin.NAME.embedder]`; an empty list means none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginEmbedder {
    /// The kinds of events it may hand over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<KindPattern>>,
}

/// The requests that a plugin may make, as far as its section tells.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRights {
    /// The hosts it may reach: within every one of these.
    pub hosts: Vec<HostList>,
    /// The methods its requests may have: in every one of these.
    pub methods: Vec<Vec<String>>,
    /// The path prefixes it may reach: below an entry of every one of these; all paths where there is no list.
    pub paths: Vec<Vec<String>>,
    /// What its relative URLs start from.
    pub base: Option<String>,
    /// The headers that the host adds, by name.
    pub headers: BTreeMap<String, Template>,
}

/// What a plugin may do with a browser, as far as its section tells.
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserRights {
    /// The hosts that pages may connect to: within every one of these.
    pub hosts: Vec<HostList>,
    /// The profiles that stay which it may use: in every one of these.
    pub profiles: Vec<Vec<String>>,
    /// Whether it may have pages run scripts of its own.
    pub evaluate: bool,
    /// Whether files that its pages download are kept.
    pub downloads: bool,
    /// Whether it may give pages files that it may read.
    pub uploads: bool,
    /// The secrets that it may have put into fields: in every one of these.
    pub secrets: Vec<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_configuration_leaves_embedded_plugins_alone_and_gives_others_nothing() {
        let (nowhere, everywhere) = (vec![Allowlist::NOTHING], vec![Allowlist::Any]);
        let nothing = PluginRights {
            config: BTreeMap::new(),
            shell: false,
            pane: false,
            read: nowhere.clone(),
            write: nowhere,
            http: None,
            browser: None,
            mail: vec![Vec::new()],
            programs: vec![Vec::new()],
            variables: vec![Vec::new()],
            declared: vec![Vec::new()],
            jobs: vec![Vec::new()],
            schedules: false,
            kinds: vec![Vec::new()],
            introspect: false,
            records: false,
        };
        let reading = HttpRights {
            hosts: vec![HostList::Any],
            methods: vec![vec!["GET".into(), "HEAD".into()]],
            paths: vec![],
            base: None,
            headers: BTreeMap::new(),
        };
        let everything = PluginRights {
            config: BTreeMap::new(),
            shell: true,
            pane: true,
            read: everywhere.clone(),
            write: everywhere,
            http: Some(reading),
            browser: Some(BrowserRights {
                hosts: vec![HostList::Any],
                profiles: vec![Vec::new()],
                evaluate: false,
                downloads: false,
                uploads: false,
                secrets: vec![Vec::new()],
            }),
            mail: vec![vec!["*".into()]],
            programs: vec![vec!["*".into()]],
            variables: vec![vec!["*".into()]],
            declared: vec![vec!["*".into()]],
            jobs: vec![vec!["*".into()]],
            schedules: true,
            kinds: vec![vec![KindPattern::All]],
            introspect: true,
            records: true,
        };
        assert_eq!(Config::default().plugin_rights("x", &"a".repeat(64), true), everything);
        assert_eq!(Config::default().plugin_rights("x", &"a".repeat(64), false), nothing);
    }
}
