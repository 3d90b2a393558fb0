//! What a layer that may only narrow does to each setting: one row a key, in the order of `default.toml`. Those of `[plugin.NAME]` are in
//! `plugins.rs`.
//!
//! Which layers may only narrow, and what is said about the rest, is decided in `layers.rs`.

use super::plugins;
use super::requests::lies_below;
use super::{Allowlist, HostList, HostPattern, MemoryBound, PluginShell};
use crate::EVERY;
use base::event_kind::KindPattern;
use base::text::names::is_slip;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::LazyLock;
use toml::Value;

/// How two values of a setting become one that allows no more than either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Nobody but the user sets it.
    Never,
    /// On only if both say so.
    And,
    /// On only if both say so; an untrusted project has no say, because off is not less than on.
    AndByPolicy,
    /// On if either says so.
    Or,
    /// The stricter word; all that there are, laxest first.
    Stricter(&'static [&'static str]),
    /// The smaller number.
    Min,
    /// The larger number.
    Max,
    /// The smaller size, where an empty one is no bound.
    Size,
    /// The entries of both.
    Union,
    /// The entries that both have.
    Intersect,
    /// What lies within both allowlists.
    Paths,
    /// What lies within both lists of directories; empty means nowhere.
    Directories,
    /// The same of directories and the workspace, which is written `.` and lies in no other.
    Roots,
    /// The places of both.
    Places,
    /// What lies within both lists of domains.
    Domains,
    /// What lies within both lists of addresses; empty means none.
    Ranges,
    /// What lies within both lists of a plugin's hosts; empty means none.
    Hosts,
    /// The methods that both have; empty means none.
    Methods,
    /// What lies within both lists of path prefixes; empty means none.
    Prefixes,
    /// The names that both have, where `*` is every name; empty means none.
    Names,
    /// What is meant by patterns of both lists of kinds of events; empty means none.
    Kinds,
    /// Commands, and panes, only if both say so.
    Shell,
    /// The bytes a plugin's section is about; sections about different bytes have nothing in common.
    Digest,
}

use Rule::{
    And, AndByPolicy, Digest, Directories, Domains, Hosts, Intersect, Kinds, Max, Methods, Min, Names, Never, Or,
    Paths, Places, Prefixes, Ranges, Roots, Shell, Size, Stricter, Union,
};

/// When a setting is looked at: whether a policy that changes under a running program can change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// When a host is made, which would have to be made anew for another value.
    AtStart,
    /// At each decision.
    EachTime,
}

use When::{AtStart, EachTime};

/// Which writes a person is asked about.
const CONFIRM: Rule = Stricter(&["never", "runs-later", "outside", "always"]);
/// Whether commands are confined, what counts as that, and how far the network of those reaches.
const MODE: Rule = Stricter(&["off", "auto", "required"]);
const FLOOR: Rule = Stricter(&["partial", "full"]);
const NETWORK: Rule = Stricter(&["full", "egress", "none"]);
/// What of that which commands make is held.
const HELD: Rule = Stricter(&["none", "opens", "words", "all"]);
/// What is on disk before a change of the store counts as made.
const SYNC: Rule = Stricter(&["normal", "full"]);
/// Which commands in a full cell a person is asked about.
const ASK: Rule = Stricter(&["leaving", "always"]);
/// Whether a person may let one out.
const UNCONFINED: Rule = Stricter(&["ask", "never"]);
/// What happens where a secret is found, and where something looks like one.
const LEAKS: Rule = Stricter(&["warn", "redact", "block"]);
const GATE: Rule = Stricter(&["warn", "block"]);
const SHAPES: Rule = Stricter(&["off", "warn", "block"]);

/// A key, what narrows it, and when it is looked at.
pub(super) type Row = (&'static str, Rule, When);

/// Every setting; `*` stands for the name of a plugin, of a program, of a secret, of a mail account, of a server or of a toolset.
pub(super) static RULES: LazyLock<Vec<Row>> = LazyLock::new(|| [SHARED, plugins::RULES, NAMED].concat());

/// Those that have a default.
const SHARED: &[Row] = &[
    ("agent.name", Never, AtStart),
    ("tools.shell_enabled", And, EachTime),
    ("tools.shell_confirm", Or, EachTime),
    ("tools.shell_denylist", Union, EachTime),
    ("tools.shell_env", Intersect, EachTime),
    ("tools.shell_secrets", Intersect, EachTime),
    ("tools.files_enabled", And, EachTime),
    ("tools.files_confirm", CONFIRM, EachTime),
    ("tools.files_read_paths", Paths, EachTime),
    ("tools.files_allowed_paths", Paths, EachTime),
    ("tools.fetch_enabled", And, EachTime),
    ("tools.browser_enabled", And, EachTime),
    ("tools.browser_program", Never, AtStart),
    ("tools.mail_enabled", And, EachTime),
    ("tools.fetch_confirm", Or, EachTime),
    ("tools.records_confirm", Or, EachTime),
    ("tools.fetch_plain_http", And, EachTime),
    ("tools.fetch_allowed_domains", Domains, EachTime),
    ("tools.fetch_blocked_domains", Union, EachTime),
    ("tools.fetch_private_ranges", Ranges, EachTime),
    ("tools.fetch_ports", Intersect, EachTime),
    ("tools.offer", Intersect, EachTime),
    ("tools.always", Intersect, EachTime),
    ("tools.equal_calls", Min, EachTime),
    ("tools.unattended", Intersect, EachTime),
    ("tools.search_enabled", And, EachTime),
    ("tools.search_provider", Never, EachTime),
    ("tools.search_endpoint", Never, EachTime),
    ("confine.mode", MODE, EachTime),
    ("confine.floor", FLOOR, EachTime),
    ("confine.write", Roots, EachTime),
    ("confine.read", Paths, EachTime),
    ("confine.hide", Places, EachTime),
    ("confine.caches", Intersect, EachTime),
    ("confine.protect", Union, EachTime),
    ("confine.held", HELD, EachTime),
    ("confine.keep", Intersect, EachTime),
    ("confine.network", NETWORK, EachTime),
    ("confine.hosts", Hosts, EachTime),
    ("confine.ports", Intersect, EachTime),
    ("confine.publish", Intersect, EachTime),
    ("confine.keys", Intersect, EachTime),
    ("confine.unix_sockets", And, EachTime),
    ("confine.debug", And, EachTime),
    ("confine.processes", Min, EachTime),
    ("confine.memory", Size, EachTime),
    ("confine.ask", ASK, EachTime),
    ("confine.unconfined", UNCONFINED, EachTime),
    ("leaks.results", LEAKS, EachTime),
    ("leaks.requests", GATE, EachTime),
    ("leaks.commands", GATE, EachTime),
    ("leaks.writes", GATE, EachTime),
    ("leaks.embedder", LEAKS, EachTime),
    ("leaks.shapes", SHAPES, EachTime),
    ("embedder.confirm", Union, EachTime),
    ("embedder.timeout_ms", Min, EachTime),
    ("embedder.max_pending", Min, AtStart),
    ("approval.allow_yes", And, EachTime),
    ("approval.rules", And, EachTime),
    ("approval.timeout_ms", Min, AtStart),
    ("approval.embedder", And, EachTime),
    ("approval.notify", Never, AtStart),
    ("audit.required", Or, AtStart),
    ("backend.container", Never, AtStart),
    ("backend.engine", Never, AtStart),
    ("backend.socket", Never, AtStart),
    ("backend.ssh", Never, AtStart),
    ("ssh.config_file", Never, AtStart),
    ("tmux.enabled", AndByPolicy, AtStart),
    ("tmux.max_sessions", Min, AtStart),
    ("tmux.max_panes", Min, AtStart),
    ("tmux.extra_panes", And, AtStart),
    ("tmux.default_shell", Never, AtStart),
    ("network.fetch_timeout_secs", Min, AtStart),
    ("network.dns_servers", Never, AtStart),
    ("network.ca_file", Never, AtStart),
    ("limits.guest_cpu_ms", Min, AtStart),
    ("limits.call_ms", Min, AtStart),
    ("limits.command_ms", Min, AtStart),
    ("limits.command_max_ms", Min, AtStart),
    ("limits.grace_ms", Min, AtStart),
    ("limits.memory_mib", Min, AtStart),
    ("limits.total_memory_mib", Min, AtStart),
    ("limits.table_elements", Min, AtStart),
    ("limits.tables", Min, AtStart),
    ("limits.memories", Min, AtStart),
    ("limits.instances", Min, AtStart),
    ("limits.host_call_kib", Min, AtStart),
    ("limits.call_kib", Min, AtStart),
    ("limits.result_kib", Min, AtStart),
    ("limits.handles", Min, AtStart),
    ("limits.host_calls", Min, AtStart),
    ("limits.events", Min, AtStart),
    ("limits.event_kib", Min, AtStart),
    ("limits.component_mib", Min, AtStart),
    ("limits.compile_ms", Min, AtStart),
    ("limits.compile_mib", Min, AtStart),
    ("limits.description_bytes", Min, AtStart),
    ("limits.schema_kib", Min, AtStart),
    ("limits.schema_depth", Min, AtStart),
    ("limits.upstream_name_chars", Min, AtStart),
    ("limits.concurrent_calls", Min, AtStart),
    ("limits.calls_per_minute", Min, AtStart),
    ("limits.kept_stream_mib", Min, AtStart),
    ("limits.kept_total_mib", Min, AtStart),
    ("store.item_kib", Min, AtStart),
    ("store.items", Min, AtStart),
    ("store.total_mib", Min, AtStart),
    ("store.sync", SYNC, AtStart),
    ("jobs.enabled", And, AtStart),
    ("jobs.pool", Min, AtStart),
    ("jobs.per_session", Min, AtStart),
    ("jobs.timeout_ms", Min, AtStart),
    ("jobs.max_ms", Min, AtStart),
    ("jobs.pending", Min, AtStart),
    ("jobs.keep_days", Min, AtStart),
    ("jobs.keep", Min, AtStart),
    ("jobs.output_mib", Min, AtStart),
    ("jobs.lease_ms", Min, AtStart),
    ("schedules.zone", Never, AtStart),
    ("schedules.shortest_ms", Max, AtStart),
    ("schedules.most", Min, AtStart),
    ("schedules.failures", Min, AtStart),
    ("embeddings.enabled", And, AtStart),
    ("embeddings.url", Never, AtStart),
    ("embeddings.headers", Never, AtStart),
    ("embeddings.command", Never, AtStart),
    ("embeddings.model", Never, AtStart),
];

/// Those of programs, secrets, mail accounts, servers and toolsets, which only the user's own settings have.
const NAMED: &[Row] = &[
    ("program.*.path", Never, AtStart),
    ("program.*.sha256", Never, AtStart),
    ("program.*.about", Never, AtStart),
    ("program.*.usage", Never, AtStart),
    ("program.*.arguments", Never, AtStart),
    ("program.*.environment", Never, AtStart),
    ("program.*.timeout_ms", Never, AtStart),
    ("program.*.result", Never, AtStart),
    ("secret.*.file", Never, AtStart),
    ("secret.*.command", Never, AtStart),
    ("secret.*.hosts", Never, AtStart),
    ("secret.*.env", Never, AtStart),
    ("mail.*.host", Never, AtStart),
    ("mail.*.port", Never, AtStart),
    ("mail.*.user", Never, AtStart),
    ("mail.*.secret", Never, AtStart),
    ("mail.*.token_command", Never, AtStart),
    ("mail.*.refresh", Never, AtStart),
    ("mail.*.login", Never, AtStart),
    ("mail.*.folders", Never, AtStart),
    ("mail.*.authority", Never, AtStart),
    ("upstream.*.command", Never, AtStart),
    ("upstream.*.url", Never, AtStart),
    ("upstream.*.headers", Never, AtStart),
    ("upstream.*.accepted", Never, AtStart),
    ("upstream.*.read", Never, AtStart),
    ("upstream.*.write", Never, AtStart),
    ("upstream.*.hosts", Never, AtStart),
    ("upstream.*.ports", Never, AtStart),
    ("upstream.*.names", Never, AtStart),
    ("upstream.*.variables", Never, AtStart),
    ("upstream.*.tools", Never, AtStart),
    ("upstream.*.reads", Never, AtStart),
    ("upstream.*.confirm", Never, AtStart),
    ("upstream.*.elicitation", Never, AtStart),
    ("upstream.*.timeout_ms", Never, AtStart),
    ("toolset.*.extends", Never, EachTime),
    ("toolset.*.tools", Never, EachTime),
    ("toolset.*.turn", Never, EachTime),
    ("toolset.*.session", Never, EachTime),
    ("toolset.*.bind", Never, EachTime),
    ("toolset.*.grant", Never, EachTime),
    ("toolset.*.context", Never, EachTime),
    ("toolset.*.environment", Never, EachTime),
    ("toolset.*.mount", Never, EachTime),
    ("toolset.*.delegates", Never, EachTime),
];

/// A list that took part in narrowing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Bound {
    /// Of directories.
    Paths(Allowlist),
    /// Of hosts.
    Hosts(HostList),
    /// Of addresses.
    Ranges(Vec<HostPattern>),
    /// Of methods or of path prefixes.
    Words(Vec<String>),
    /// Of kinds of events.
    Kinds(Vec<KindPattern>),
    /// Not a list: what a layer says of panes.
    Shell(PluginShell),
}

impl Bound {
    pub fn paths(&self) -> Option<&Allowlist> {
        if let Self::Paths(list) = self { Some(list) } else { None }
    }

    pub fn hosts(&self) -> Option<&HostList> {
        if let Self::Hosts(list) = self { Some(list) } else { None }
    }

    pub fn ranges(&self) -> Option<&Vec<HostPattern>> {
        if let Self::Ranges(list) = self { Some(list) } else { None }
    }

    pub fn shell(&self) -> Option<&PluginShell> {
        if let Self::Shell(shell) = self { Some(shell) } else { None }
    }

    pub fn kinds(&self) -> Option<&Vec<KindPattern>> {
        if let Self::Kinds(list) = self { Some(list) } else { None }
    }

    pub fn words(&self) -> Option<&Vec<String>> {
        if let Self::Words(list) = self { Some(list) } else { None }
    }
}

/// Returns the rule of a dotted key, if there is such a setting.
pub(super) fn rule_of(key: &str) -> Option<Rule> {
    RULES.iter().find(|(pattern, ..)| covers(pattern, key) && segments(pattern) == segments(key)).map(|row| row.1)
}

/// The keys of a plugin's section, with their rules.
pub(super) fn section_keys() -> impl Iterator<Item = (&'static str, Rule)> {
    RULES.iter().filter_map(|(key, rule, _)| Some((key.strip_prefix("plugin.*.")?, *rule)))
}

/// Returns whether settings lie below a dotted key.
pub(super) fn is_section(key: &str) -> bool {
    RULES.iter().any(|(pattern, ..)| covers(pattern, key) && segments(pattern) > segments(key))
}

/// Returns the setting whose key looks most like `key`. A key without a dot may also be a section's, or a setting's without its section.
pub(super) fn nearest(key: &str) -> Option<String> {
    let plugin = key.strip_prefix("plugin.").and_then(|rest| rest.split('.').next()).unwrap_or("NAME");
    let is_bare = !key.contains('.');
    let rated = RULES.iter().map(|row| row.0).flat_map(|pattern| {
        let (section, last) =
            (pattern.split('.').next().unwrap_or(pattern), pattern.rsplit('.').next().unwrap_or(pattern));
        let whole = pattern.replace('*', plugin);
        let bare =
            [(section, section.to_owned()), (last, whole.clone())].map(|(like, meant)| (likeness(key, like), meant));
        [(likeness(key, &whole), whole)].into_iter().chain(bare.into_iter().filter(move |_| is_bare))
    });
    // Of those that are as like, the first.
    let best =
        rated.filter(|(likeness, _)| *likeness > 0.85).reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, candidate)| candidate)
}

/// How alike two keys are; not at all, where one can hardly be a slip of the other.
fn likeness(one: &str, other: &str) -> f64 {
    if is_slip(one, other) { strsim::jaro_winkler(one, other) } else { 0.0 }
}

/// Returns whether `name` can be the name of a plugin.
pub(super) fn is_plugin_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Returns whether `name` can be the name of a tool, which is as plugins are called.
pub(super) fn is_tool_name(name: &str) -> bool {
    is_plugin_name(name)
}

/// Returns whether a setting is looked at when a host is made, and never again.
pub(super) fn is_set_up(key: &str) -> bool {
    RULES
        .iter()
        .any(|(pattern, _, when)| covers(pattern, key) && segments(pattern) == segments(key) && *when == AtStart)
}

fn segments(key: &str) -> usize {
    key.split('.').count()
}

fn covers(pattern: &str, key: &str) -> bool {
    let mut pattern = pattern.split('.');
    key.split('.').all(|segment| match pattern.next() {
        Some("*") => is_plugin_name(segment),
        known => known == Some(segment),
    })
}

impl Rule {
    /// Returns what remains of `base` under `by`; both are valid values of a setting with this rule.
    pub(super) fn narrow(self, base: &Value, by: &Value) -> Value {
        match self {
            Never | Digest => base.clone(),
            And | AndByPolicy => Value::Boolean(is_on(base) && is_on(by)),
            Or => Value::Boolean(is_on(base) || is_on(by)),
            Shell => written(shell(base).and(shell(by))),
            Stricter(order) => if rank(order, by) > rank(order, base) { by } else { base }.clone(),
            Min => if by.as_integer() < base.as_integer() { by } else { base }.clone(),
            Max => if by.as_integer() > base.as_integer() { by } else { base }.clone(),
            // As it is written: another spelling of the same size would count as one that was narrowed.
            Size => if size(by).is_within(size(base)) { by } else { base }.clone(),
            Union | Places => [entries(base), &picked(by, |entry| !entries(base).contains(entry))].concat().into(),
            Intersect | Methods => picked(base, |entry| entries(by).contains(entry)).into(),
            Paths => written(allowlist(base).intersect(&allowlist(by))),
            Directories | Roots => {
                written(common(&directories(base), &directories(by), |path, directory| path.starts_with(directory)))
            }
            Domains => written(domains(base).intersect(&domains(by))),
            Ranges => written(common(&ranges(base), &ranges(by), HostPattern::is_within)),
            Hosts => written(common(&hosts(base), &hosts(by), HostPattern::is_within)),
            Prefixes => written(common(&words(base), &words(by), |path, prefix| lies_below(path, prefix))),
            Names => written(common(&words(base), &words(by), |name, other| name == other || other == EVERY)),
            Kinds => written(common(&kinds(base), &kinds(by), KindPattern::is_within)),
        }
    }

    /// Returns whether a project that is not trusted may narrow such a setting.
    pub(super) fn applies_to_projects(self) -> bool {
        match self {
            Never | AndByPolicy => false,
            And | Or | Stricter(_) | Min | Max | Size | Union | Intersect | Paths | Directories | Roots | Places
            | Domains | Ranges | Hosts | Methods | Prefixes | Names | Kinds | Shell | Digest => true,
        }
    }

    /// Returns whether `value` takes away and gives nothing, whatever it meets.
    pub(super) fn gives_nothing(self, value: &Value) -> bool {
        match self {
            And | AndByPolicy => !is_on(value),
            Shell => !shell(value).commands,
            Directories | Roots | Hosts | Methods | Prefixes | Names | Kinds => entries(value).is_empty(),
            Never | Or | Stricter(_) | Min | Max | Size | Union | Places | Intersect | Paths | Domains | Ranges
            | Digest => false,
        }
    }

    /// Returns whether a project's list counts where no layer has granted anything: it binds what plugins of this
    /// binary may do without a grant.
    pub(super) fn caps(self) -> bool {
        matches!(self, Hosts | Methods | Prefixes | Names | Kinds | Shell)
    }

    /// Returns the list that a value is, for a rule that keeps every list that took part.
    pub(super) fn bound(self, value: &Value) -> Option<Bound> {
        match self {
            Paths => Some(Bound::Paths(allowlist(value))),
            Directories => Some(Bound::Paths(Allowlist::Only(directories(value)))),
            Domains => Some(Bound::Hosts(domains(value))),
            Hosts => Some(Bound::Hosts(HostList::Only(hosts(value)))),
            Ranges => Some(Bound::Ranges(ranges(value))),
            Methods | Prefixes | Names => Some(Bound::Words(words(value))),
            Kinds => Some(Bound::Kinds(kinds(value))),
            // One that closes panes binds also what plugins of this binary may do without a grant.
            Shell => Some(shell(value)).filter(|shell| shell.pane == Some(false)).map(Bound::Shell),
            // What a link in one leads to is looked at when a cell is laid out.
            Roots | Places => None,
            Never | And | AndByPolicy | Or | Stricter(_) | Min | Max | Size | Union | Intersect | Digest => None,
        }
    }
}

/// Returns each entry of either list that lies within an entry of the other.
pub(super) fn common<T: Clone + PartialEq>(ours: &[T], theirs: &[T], lies_within: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let within = |entry: &T, list: &[T]| list.iter().any(|other| lies_within(entry, other));
    let mut both: Vec<_> = ours.iter().filter(|entry| within(entry, theirs)).cloned().collect();
    both.extend(theirs.iter().filter(|entry| within(entry, ours) && !ours.contains(entry)).cloned());
    both
}

fn written(list: impl Serialize) -> Value {
    Value::try_from(list).expect("lists came from TOML")
}

fn picked(list: &Value, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    entries(list).iter().filter(|entry| is_wanted(entry)).cloned().collect()
}

pub(super) fn is_on(value: &Value) -> bool {
    value.as_bool().expect("a switch was checked when it was read")
}

pub(super) fn shell(value: &Value) -> PluginShell {
    PluginShell::deserialize(value.clone()).expect("`shell` was checked when it was read")
}

/// How strict a word is, beginning with 0.
pub(super) fn rank(order: &[&str], value: &Value) -> usize {
    let word = value.as_str();
    order.iter().position(|known| Some(*known) == word).expect("a setting was checked when it was read")
}

pub(super) fn size(value: &Value) -> MemoryBound {
    MemoryBound::deserialize(value.clone()).expect("a size was checked when it was read")
}

pub(super) fn entries(value: &Value) -> &[Value] {
    value.as_array().expect("a list was checked when it was read")
}

pub(super) fn allowlist(value: &Value) -> Allowlist {
    Allowlist::deserialize(value.clone()).expect("an allowlist was checked when it was read")
}

pub(super) fn directories(value: &Value) -> Vec<PathBuf> {
    Vec::deserialize(value.clone()).expect("a list was checked when it was read")
}

pub(super) fn domains(value: &Value) -> HostList {
    HostList::deserialize(value.clone()).expect("a list of domains was checked when it was read")
}

pub(super) fn ranges(value: &Value) -> Vec<HostPattern> {
    Vec::deserialize(value.clone()).expect("a list was checked when it was read")
}

pub(super) fn hosts(value: &Value) -> Vec<HostPattern> {
    let host = |text: &String| HostPattern::exact(text).expect("a host was checked when it was read");
    words(value).iter().map(host).collect()
}

pub(super) fn kinds(value: &Value) -> Vec<KindPattern> {
    Vec::deserialize(value.clone()).expect("a list of kinds was checked when it was read")
}

pub(super) fn words(value: &Value) -> Vec<String> {
    Vec::deserialize(value.clone()).expect("a list was checked when it was read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{defaults, get};
    use base::capability::Capability;
    use std::collections::BTreeSet;
    use toml::Table;

    fn leaves(above: &str, table: &Table) -> Vec<String> {
        let below = |(name, value): (&String, &Value)| match value {
            Value::Table(table) => leaves(&format!("{above}{name}."), table),
            _ => vec![format!("{above}{name}")],
        };
        table.iter().flat_map(below).collect()
    }

    #[test]
    fn every_setting_has_a_rule() {
        for key in leaves("", defaults()) {
            assert!(rule_of(&key).is_some(), "`{key}` has no rule");
        }
    }

    #[test]
    fn every_rule_is_of_a_setting_and_fits_its_type() {
        for (key, rule, _) in RULES.iter().filter(|(key, ..)| !key.contains('*')) {
            let value = get(defaults(), key).unwrap_or_else(|| panic!("`{key}` is not in default.toml"));
            let fits = match rule {
                And | AndByPolicy | Or => value.is_bool(),
                Min | Max => value.is_integer(),
                Stricter(order) => value.as_str().is_some_and(|word| order.contains(&word)),
                Never => value.is_str() || value.is_array() || value.is_table(),
                Digest | Size => value.is_str(),
                _ => value.is_array(),
            };
            assert!(fits, "`{key}` cannot be narrowed by {rule:?}");
        }
    }

    #[test]
    fn rules_are_in_the_order_of_the_default_file() {
        let text = crate::DEFAULT_TOML;
        let shared: Vec<_> = RULES.iter().filter(|(key, ..)| !key.contains('*')).collect();
        // Several sections may have a key of one name.
        let place = |key: &str| {
            let (section, name) = key.split_once('.').unwrap();
            let section = text.find(&format!("\n[{section}]"))?;
            Some(section + text[section..].find(&format!("\n{name} ="))?)
        };
        let places: Vec<_> = shared.iter().filter_map(|(key, ..)| place(key)).collect();
        assert_eq!(places.len(), shared.len());
        assert!(places.is_sorted());
    }

    #[test]
    fn narrowing_by_itself_changes_nothing() {
        for (key, rule, _) in RULES.iter().filter(|(key, ..)| !key.contains('*')) {
            let value = get(defaults(), key).unwrap().clone();
            assert_eq!(rule.narrow(&value, &value), value, "`{key}`");
        }
    }

    #[test]
    fn a_setting_that_asks_less_often_does_not_win() {
        let order = ["never", "runs-later", "outside", "always"];
        for (less, base) in order.iter().enumerate() {
            for (more, by) in order.iter().enumerate() {
                let narrowed = CONFIRM.narrow(&(*base).into(), &(*by).into());
                assert_eq!(narrowed.as_str(), Some(order[less.max(more)]), "{base} by {by}");
            }
        }
    }

    #[test]
    fn a_size_is_lowered_or_set_and_never_raised_or_emptied() {
        for (base, by, expected) in [
            ("", "4 GiB", "4 GiB"),
            ("4 GiB", "", "4 GiB"),
            ("4 GiB", "64 MiB", "64 MiB"),
            ("64 MiB", "4 GiB", "64 MiB"),
            ("", "1TiB", "1TiB"),
            ("1TiB", "", "1TiB"),
            ("4 GiB", "4096 MiB", "4096 MiB"),
        ] {
            assert_eq!(Size.narrow(&base.into(), &by.into()).as_str(), Some(expected), "{base} by {by}");
        }
    }

    #[test]
    fn plugins_are_named_by_letters_digits_underscores_and_dashes() {
        assert_eq!(rule_of("plugin.word-count_2.files.read"), Some(Directories));
        assert_eq!(rule_of("plugin.word-count_2.http.hosts"), Some(Hosts));
        for name in ["", "a b", "a/b", "ä", "*", &"x".repeat(65)] {
            assert_eq!(rule_of(&format!("plugin.{name}.shell")), None, "{name}");
        }
    }

    #[test]
    fn the_nearest_setting_is_found() {
        assert_eq!(nearest("tools.shell_confrim").as_deref(), Some("tools.shell_confirm"));
        assert_eq!(nearest("limits.memory_mb").as_deref(), Some("limits.memory_mib"));
        assert_eq!(nearest("plugin.x.files.reads").as_deref(), Some("plugin.x.files.read"));
        assert_eq!(nearest("plugin.x.http.host").as_deref(), Some("plugin.x.http.hosts"));
        assert_eq!(nearest("tools.fetch_allowed_domain").as_deref(), Some("tools.fetch_allowed_domains"));
        assert_eq!(nearest("shell_confirm").as_deref(), Some("tools.shell_confirm"));
        assert_eq!(nearest("shell_confrim").as_deref(), Some("tools.shell_confirm"));
        assert_eq!(nearest("tool").as_deref(), Some("tools"));
        for far in ["zzz", "tools.nope", "limits.x"] {
            assert_eq!(nearest(far), None, "{far}");
        }
    }

    #[test]
    fn every_key_of_a_plugins_section_is_about_a_capability_or_the_plugin_itself() {
        let about_the_plugin = ["source", "sha256", "definitions", "enabled", "config"];
        let of_capabilities = Capability::ALL.map(Capability::section);
        let of_capabilities = of_capabilities.iter().flat_map(|keys| keys.grants.iter().chain(keys.narrows));
        let told: BTreeSet<&str> = of_capabilities.copied().chain(about_the_plugin).collect();
        let known: BTreeSet<&str> = section_keys().map(|(key, _)| key).collect();
        assert_eq!(told, known);
    }
}
