//! What the settings let each plugin do: its section, for the bytes that it names, within all that bounds it.
//!
//! Grants are made of these rights in `mod.rs`, where the switches of `[tools]` count as well.

use crate::EVERY;
use crate::requests::READING_METHODS;
use crate::{Allowlist, Bound, Config, HostList, PluginBrowser, PluginHttp, PluginShell, Template};
use base::event_kind::KindPattern;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
