//! The configuration: one struct with documented fields; `default.toml` beside it is the commented truth.
//!
//! `read.rs` reads the sources, `layers.rs` lays them over each other by the rules of `narrow.rs`.
//!
//! It depends on `base`. `policy` turns the settings into grants.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod allowlist;
mod confine;
mod embeddings;
pub mod headers;
mod hosts;
mod layers;
mod level;
mod limits;
mod mail;
mod narrow;
mod plugins;
mod policy_file;
mod programs;
mod read;
mod remedy;
pub mod requests;
mod rules;
mod secrets;
mod shell;
mod size;
pub mod source;
mod toolset;
pub mod trail;
mod upstream;
mod variables;
mod vetting;

pub use allowlist::Allowlist;
pub use confine::{
    Ask, CellNetwork, Confine, ConfineFloor, ConfineMode, HeldFiles, Keys, PROXY_PORT, Unconfined, WORKSPACE,
};
pub use embeddings::Embeddings;
pub use hosts::{HostList, HostPattern};
pub use layers::{Origins, PolicySource, Settings, Sources};
pub use level::Level;
pub use limits::Limits;
pub use mail::{MailLogin, MailRefresh, MailSection, account as mail_account};
pub use plugins::{
    BrowserRights, HttpRights, PluginBrowser, PluginEmbedder, PluginExec, PluginFiles, PluginHttp, PluginRights,
    PluginSection, declared, program,
};
pub use policy_file::Lock;
pub use policy_file::{LockMode, Pin};
pub use programs::{ProgramResult, ProgramSection};
pub use read::project_sha256;
pub use read::{ConfigError, Origin, Place};
pub use remedy::{Needed, Remedies};
pub use rules::{RuleLine, RuleSection, Verdict};
pub use secrets::{LeakAction, LeakGate, Leaks, Part, SecretSection, ShapeAction, Template};
pub use shell::PluginShell;
pub use size::MemoryBound;
pub use size::written as size;
pub use toolset::{Context, Mount, ToolsetSection, all_of, is_agent_variable, server_of};
pub use upstream::BETWEEN;
pub use upstream::{UpstreamConfirm, UpstreamElicitation, UpstreamSection, upstream_name_fault};
pub use variables::{CALL_MARK, TOKEN_VARIABLE, is_never_passed, is_variable_name, loads_code};
pub use vetting::{Ceiling, DAY, GrantBy, Key, Revoked, Role, Signed, seconds};

use base::event_kind::KindPattern;
use base::text::names::is_name;
pub use narrow::Bound;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Matches every name.
pub const EVERY: &str = "*";

/// Every setting with its default, as a commented file.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// A year; timers hold little more.
const YEAR_MS: u64 = 31_536_000_000;
const DAY_MS: u64 = 86_400_000;

/// The effective configuration. Fields are what `toolcrib config show` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Who acts.
    pub agent: Agent,
    /// What tools may do, whichever plugin they are in.
    pub tools: Tools,
    /// What commands reach.
    pub confine: Confine,
    /// What happens where a secret would get out.
    pub leaks: Leaks,
    /// How events go to the program around this one.
    pub embedder: Embedder,
    /// How people are asked.
    pub approval: Approval,
    /// The record of calls.
    pub audit: Audit,
    /// Where tools act.
    pub backend: Backend,
    /// How hosts are reached.
    pub ssh: Ssh,
    /// Panes that people can watch and join.
    pub tmux: Tmux,
    /// How web servers are reached.
    pub network: Network,
    /// How much a call may use.
    pub limits: Limits,
    /// How much stays from one call to the next.
    pub store: Store,
    /// Calls that outlive their caller.
    pub jobs: Jobs,
    /// Jobs and events at set times.
    pub schedules: Schedules,
    /// What makes vectors of what stays.
    pub embeddings: Embeddings,
    /// `[plugin.NAME]` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugin: BTreeMap<String, PluginSection>,
    /// `[program.NAME]` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub program: BTreeMap<String, ProgramSection>,
    /// `[secret.NAME]` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret: BTreeMap<String, SecretSection>,
    /// `[mail.NAME]` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mail: BTreeMap<String, MailSection>,
    /// `[upstream.NAME]` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream: BTreeMap<String, UpstreamSection>,
    /// `[toolset.NAME]` by name; `toolset.rs` makes toolsets of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolset: BTreeMap<String, ToolsetSection>,
    #[serde(skip)]
    bounds: Bounds,
}

/// `[agent]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// What the agent is called wherever it is named to people: 1 to 64 characters.
    #[serde(deserialize_with = "label")]
    pub name: String,
}

/// `[tools]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Whether tools may run commands at all.
    pub shell_enabled: bool,
    /// Whether a person is asked before a command runs.
    pub shell_confirm: bool,
    /// Commands that never run; an entry's words match the first words of a command.
    #[serde(deserialize_with = "denials")]
    pub shell_denylist: Vec<String>,
    /// Environment variables that commands get besides the usual ones.
    #[serde(deserialize_with = "environment_names")]
    pub shell_env: Vec<String>,
    /// Secrets that commands get as variables where they name them.
    #[serde(deserialize_with = "secrets::variables")]
    pub shell_secrets: Vec<String>,
    /// Whether tools may read and write files.
    pub files_enabled: bool,
    /// Which writes a person is asked about.
    pub files_confirm: FilesConfirm,
    /// Where tools may read; [`Config::read_paths`] decides on a path.
    pub files_read_paths: Allowlist,
    /// Where tools may write; [`Config::allowed_paths`] and [`Config::opened_paths`] decide on a path.
    pub files_allowed_paths: Allowlist,
    /// Whether tools may make requests to web servers at all, `web_search` not counted.
    pub fetch_enabled: bool,
    /// Whether tools may use a browser at all.
    pub browser_enabled: bool,
    /// The browser's program; empty for the first that is found.
    pub browser_program: String,
    /// Whether tools may read the user's mail at all.
    pub mail_enabled: bool,
    /// Whether a person is asked before a request is made.
    pub fetch_confirm: bool,
    /// Whether a person is asked before the changes of what is kept that a plugin wants approved.
    pub records_confirm: bool,
    /// Whether requests may go without encryption.
    pub fetch_plain_http: bool,
    /// The hosts that may be reached; [`Config::allowed_domains`] and [`Config::opened_domains`] decide on a host.
    pub fetch_allowed_domains: HostList,
    /// Hosts that are never reached.
    pub fetch_blocked_domains: Vec<HostPattern>,
    /// Addresses that may be reached besides public ones, ranges all; [`Config::private_ranges`] decides on one.
    #[serde(deserialize_with = "ranges")]
    pub fetch_private_ranges: Vec<HostPattern>,
    /// The ports of public addresses that may be reached.
    #[serde(deserialize_with = "ports")]
    pub fetch_ports: Vec<u16>,
    /// Families of tools that are listed besides those that always are.
    #[serde(deserialize_with = "families")]
    pub offer: Vec<String>,
    /// Tools that `serve --lazy` lists besides its own two.
    #[serde(deserialize_with = "toolset::tool_names")]
    pub always: Vec<String>,
    /// How often a session may call a tool with the same arguments while nothing else changes anything.
    #[serde(deserialize_with = "between::<1, 1_000_000, _>")]
    pub equal_calls: u64,
    /// Tools that jobs may run though nobody is there to be asked.
    #[serde(deserialize_with = "toolset::tool_names")]
    pub unattended: Vec<String>,
    /// Whether `web_search` is available.
    pub search_enabled: bool,
    /// The plugin that searches, of those that offer `web_search`.
    #[serde(deserialize_with = "plugin_name")]
    pub search_provider: String,
    /// The URL that the plugin `web_search` asks: of the web, without user, query and fragment, and with a `/` at its end.
    #[serde(deserialize_with = "base")]
    pub search_endpoint: String,
}

/// Which writes a person is asked about, from none to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesConfirm {
    /// None.
    Never,
    /// Those of files that somebody's program runs or obeys later, unasked.
    RunsLater,
    /// These, and all outside the workspace.
    Outside,
    /// All.
    Always,
}

/// `[backend]`; with neither container nor host it is this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Name or id of a running container.
    pub container: String,
    /// The program that runs it; empty means whichever of docker and podman has it.
    #[serde(deserialize_with = "engine")]
    pub engine: String,
    /// Path of the engine's socket; its default one when empty.
    pub socket: String,
    /// `user@host:port`, or a name of the user's ssh configuration.
    pub ssh: String,
}

/// `[ssh]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssh {
    /// Takes the place of `~/.ssh/config`.
    pub config_file: String,
}

/// `[tmux]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tmux {
    /// Whether commands run in panes where tmux is there.
    pub enabled: bool,
    /// Sessions of an agent, including the default one.
    #[serde(deserialize_with = "between::<1, 100, _>")]
    pub max_sessions: u64,
    /// Panes of a session, including the shared one.
    #[serde(deserialize_with = "between::<1, 100, _>")]
    pub max_panes: u64,
    /// A command that names no pane gets one for itself where it is not waited for, or the shared pane is busy.
    pub extra_panes: bool,
    /// The shell of new panes, by its path; empty means the login shell.
    pub default_shell: String,
}

/// `[network]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// How long a request may take, with all its redirects.
    #[serde(deserialize_with = "between::<1, 3600, _>")]
    pub fetch_timeout_secs: u64,
    /// Name servers to ask instead of the system's, as they are written; [`Network::dns_servers`] reads them.
    #[serde(deserialize_with = "name_servers")]
    pub dns_servers: Vec<String>,
    /// A PEM file with certificates to trust in addition to the system's.
    pub ca_file: String,
}

/// `[store]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The longest document, in KiB.
    #[serde(deserialize_with = "between::<1, 4096, _>")]
    pub item_kib: u64,
    /// Documents of one plugin of an agent.
    #[serde(deserialize_with = "between::<1, 100_000_000, _>")]
    pub items: u64,
    /// All documents together, in MiB.
    #[serde(deserialize_with = "between::<1, 1_048_576, _>")]
    pub total_mib: u64,
    /// What is on disk before a change counts as made.
    pub sync: StoreSync,
}

/// `[jobs]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Whether programs that stay run jobs.
    pub enabled: bool,
    /// Jobs that one program runs at one time.
    #[serde(deserialize_with = "between::<1, 1000, _>")]
    pub pool: u64,
    /// The same of one session.
    #[serde(deserialize_with = "between::<1, 1000, _>")]
    pub per_session: u64,
    /// How long a job may take where its submission does not say.
    #[serde(deserialize_with = "between::<1, DAY_MS, _>")]
    pub timeout_ms: u64,
    /// The most that a submission may say.
    #[serde(deserialize_with = "between::<1, DAY_MS, _>")]
    pub max_ms: u64,
    /// Jobs of one agent that may wait.
    #[serde(deserialize_with = "between::<1, 1_000_000, _>")]
    pub pending: u64,
    /// How many days an ended job is kept.
    #[serde(deserialize_with = "between::<1, 3650, _>")]
    pub keep_days: u64,
    /// How many ended jobs of one agent are kept.
    #[serde(deserialize_with = "between::<1, 1_000_000, _>")]
    pub keep: u64,
    /// Output of ended jobs in all, in MiB.
    #[serde(deserialize_with = "between::<1, 1_048_576, _>")]
    pub output_mib: u64,
    /// How long a worker that is not heard of is waited for, in milliseconds.
    #[serde(deserialize_with = "between::<2000, 3_600_000, _>")]
    pub lease_ms: u64,
}

/// `[schedules]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedules {
    /// The time zone where a schedule names none; empty: this machine's.
    #[serde(deserialize_with = "zone")]
    pub zone: String,
    /// The shortest time between two due times, in milliseconds.
    #[serde(deserialize_with = "between::<1000, DAY_MS, _>")]
    pub shortest_ms: u64,
    /// Schedules of one agent.
    #[serde(deserialize_with = "between::<1, 10_000, _>")]
    pub most: u64,
    /// Failures one after another that disable a schedule.
    #[serde(deserialize_with = "between::<1, 1000, _>")]
    pub failures: u64,
}

/// What is on disk before a change counts as made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreSync {
    /// Enough for this program, or the system, to be killed; where power fails, the last changes may be gone.
    Normal,
    /// All of it.
    Full,
}

/// `[embedder]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedder {
    /// The kinds of events that a person is asked about first.
    pub confirm: Vec<KindPattern>,
    /// How long an answer is waited for, in milliseconds.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub timeout_ms: u64,
    /// How many events may wait for an answer at one time.
    #[serde(deserialize_with = "between::<1, 10_000, _>")]
    pub max_pending: u64,
}

/// `[approval]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Whether `--yes` may answer in advance.
    pub allow_yes: bool,
    /// Whether the user's `[[allow]]` rules may answer.
    pub rules: bool,
    /// How long a person is waited for, in milliseconds.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub timeout_ms: u64,
    /// Whether the program around the host may answer.
    pub embedder: bool,
    /// A program that tells the user of an open question, with its arguments, or nothing.
    pub notify: Vec<String>,
}

/// `[audit]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Whether a call that cannot be recorded is refused.
    pub required: bool,
}

/// What the values themselves do not show after they were narrowed.
///
/// Lists are intersected by spelling. A link below one directory may lead out of another, and a name to an address of
/// another list, so what they resolve to has to be checked against each list that took part.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bounds {
    /// By dotted key: the list before it was narrowed, if there was one, then each list that narrowed it.
    lists: BTreeMap<String, Vec<Bound>>,
    /// By plugin: the digests demanded of it; two different ones let no bytes pass.
    digests: BTreeMap<String, Vec<String>>,
    /// What narrows, for hints.
    remedies: Remedies,
}

impl Default for Config {
    fn default() -> Self {
        toml::from_str(DEFAULT_TOML).expect("default.toml has a valid line for every field")
    }
}

impl Config {
    /// Returns the lists within each of which a file that is read has to lie, links resolved on both sides.
    #[must_use]
    pub fn read_paths(&self) -> Vec<Allowlist> {
        self.with_bounds(Some(self.tools.files_read_paths.clone()), "tools.files_read_paths", Bound::paths)
    }

    /// Returns the lists within each of which a written file has to lie, links resolved on both sides.
    #[must_use]
    pub fn allowed_paths(&self) -> Vec<Allowlist> {
        self.with_bounds(Some(self.tools.files_allowed_paths.clone()), "tools.files_allowed_paths", Bound::paths)
    }

    /// Returns the directories that the user's own layers name: only these open sensitive directories.
    ///
    /// A list that a policy or an untrusted project puts in place of "no restriction" opens nothing.
    #[must_use]
    pub fn opened_paths(&self) -> &[PathBuf] {
        let before = self.bounds.first("tools.files_allowed_paths").and_then(Bound::paths);
        match before.unwrap_or(&self.tools.files_allowed_paths) {
            Allowlist::Any => &[],
            Allowlist::Only(directories) => directories,
        }
    }

    /// Returns the lists in each of which a host has to be: the effective one, then those that it was narrowed from.
    #[must_use]
    pub fn allowed_domains(&self) -> Vec<HostList> {
        self.with_bounds(Some(self.tools.fetch_allowed_domains.clone()), "tools.fetch_allowed_domains", Bound::hosts)
    }

    /// Returns the lists in each of which a host has to be that confined commands reach without a question.
    #[must_use]
    pub fn cell_hosts(&self) -> Vec<Vec<HostPattern>> {
        let hosts = |bound: &Bound| {
            bound.hosts().map(|list| match list {
                HostList::Any => Vec::new(),
                HostList::Only(patterns) => patterns.clone(),
            })
        };
        let bounds = self.bounds.lists.get("confine.hosts").into_iter().flatten().filter_map(hosts);
        [self.confine.hosts.clone()].into_iter().chain(bounds).collect()
    }

    /// Returns the hosts that the user's own layers name: only these open private addresses.
    ///
    /// A list that a policy or an untrusted project puts in place of "no restriction" opens nothing.
    #[must_use]
    pub fn opened_domains(&self) -> &[HostPattern] {
        let before = self.bounds.first("tools.fetch_allowed_domains").and_then(Bound::hosts);
        match before.unwrap_or(&self.tools.fetch_allowed_domains) {
            HostList::Any => &[],
            HostList::Only(patterns) => patterns,
        }
    }

    /// Returns the lists of private addresses, the effective one first: open is what each of them covers.
    #[must_use]
    pub fn private_ranges(&self) -> Vec<Vec<HostPattern>> {
        self.with_bounds(Some(self.tools.fetch_private_ranges.clone()), "tools.fetch_private_ranges", Bound::ranges)
    }

    /// Returns the lists of private addresses that a policy or an untrusted project has set: what one of them does not cover stays closed,
    /// also where a host is named.
    #[must_use]
    pub fn private_bounds(&self) -> Vec<Vec<HostPattern>> {
        let lists = self.bounds.lists.get("tools.fetch_private_ranges").into_iter().flatten();
        // The first is the user's own.
        lists.skip(1).filter_map(Bound::ranges).cloned().collect()
    }

    /// Returns what a hint can promise under these settings.
    pub fn remedies(&self) -> Remedies {
        self.bounds.remedies.clone()
    }

    /// Returns whether the tools of a plugin are available.
    #[must_use]
    pub fn is_enabled(&self, name: &str) -> bool {
        self.plugin.get(name).is_none_or(|section| section.enabled != Some(false))
    }

    /// Returns the digests that layers which only narrow demand of a plugin.
    pub fn demanded_digests(&self, name: &str) -> &[String] {
        self.bounds.digests.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns what each layer that only narrows says of a plugin's commands.
    pub fn shell_bounds(&self, name: &str) -> impl Iterator<Item = &PluginShell> {
        self.bounds.lists.get(&format!("plugin.{name}.shell")).into_iter().flatten().filter_map(Bound::shell)
    }

    /// Returns the effective list of a setting, if it has one, with each list that bounds it.
    pub fn with_bounds<T: Clone>(&self, effective: Option<T>, key: &str, list: fn(&Bound) -> Option<&T>) -> Vec<T> {
        let bounds = self.bounds.lists.get(key).into_iter().flatten();
        effective.into_iter().chain(bounds.filter_map(list).cloned()).collect()
    }
}

impl Bounds {
    /// Returns the list of a setting before it was narrowed, or the first that bounds it where there was none.
    fn first(&self, key: &str) -> Option<&Bound> {
        self.lists.get(key)?.first()
    }
}

impl Network {
    /// Returns the name servers that are asked instead of the system's, with their ports.
    #[must_use]
    pub fn dns_servers(&self) -> Vec<SocketAddr> {
        let server = |text: &String| requests::name_server(text).expect("a name server was checked when it was read");
        self.dns_servers.iter().map(server).collect()
    }
}

fn between<'de, const MIN: u64, const MAX: u64, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let no_number = |_| D::Error::custom(format!("must be a whole number from {MIN} to {MAX}"));
    let number = i64::deserialize(deserializer).map_err(no_number)?;
    let fits = u64::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
    fits.ok_or_else(|| D::Error::custom(format!("must be {MIN} to {MAX}, not {number}")))
}

fn zone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_known = name.is_empty() || jiff::tz::TimeZone::get(&name).is_ok();
    if is_known { Ok(name) } else { Err(D::Error::custom("must be a time zone such as Europe/Berlin, or empty")) }
}

fn label<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let fits = (1..=64).contains(&name.chars().count()) && !name.contains(char::is_control);
    if fits { Ok(name) } else { Err(D::Error::custom("must be 1 to 64 characters, none of them a control character")) }
}

fn engine<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let engine = String::deserialize(deserializer)?;
    let is_one = ["", "docker", "podman"].contains(&engine.as_str());
    if is_one { Ok(engine) } else { Err(D::Error::custom("must be \"docker\", \"podman\" or empty")) }
}

/// The families of tools that are listed on request. Which tools are of one, the package of their plugin says.
pub const FAMILIES: [&str; 15] = [
    "files",
    "exec",
    "browser",
    "mail",
    "introspect",
    "jobs",
    "schedules",
    "memory",
    "notes",
    "agent",
    "fleet",
    "factory",
    "goals",
    "tasks",
    "transcripts",
];

fn families<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| !FAMILIES.contains(&name.as_str())) {
        None => Ok(names),
        Some(odd) => {
            let known = FAMILIES.join(", ");
            Err(D::Error::custom(format!("there is no family of tools `{odd}`: there is {known}")))
        }
    }
}

fn denials<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(deserializer)?;
    let empty = entries.iter().any(|entry| entry.trim().is_empty());
    if empty { Err(D::Error::custom("an empty entry is not a command")) } else { Ok(entries) }
}

fn absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    let refused = || D::Error::custom(format!("`{}` is not an absolute path", path.display()));
    if path.is_absolute() { Ok(path) } else { Err(refused()) }
}

fn environment_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| is_never_passed(name)) {
        Some(name) => Err(D::Error::custom(format!("`{}` is never passed", name.escape_debug()))),
        None => Ok(names),
    }
}

/// Reads each entry of a list by `read`.
fn each<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, D::Error> {
    let entries = Vec::<String>::deserialize(deserializer)?;
    entries.iter().map(|entry| read(entry).map_err(D::Error::custom)).collect()
}

fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostPattern>, D::Error> {
    each(deserializer, HostPattern::range)
}

fn ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    let port = |number: i64| {
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        port.ok_or_else(|| D::Error::custom(format!("a port must be 1 to 65535, not {number}")))
    };
    Vec::<i64>::deserialize(deserializer)?.into_iter().map(port).collect()
}

fn name_servers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, |text| requests::name_server(text).map(|_| text.to_owned()))
}

fn base<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    requests::base(&text).map(|_| text).map_err(D::Error::custom)
}

fn plugin_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    match is_name(&name) {
        true => Ok(name),
        false => {
            let shown = name.escape_debug();
            Err(D::Error::custom(format!(
                "`{shown}` is not a valid plugin name: use 1 to 64 of A-Z, a-z, 0-9, `_`, `-`"
            )))
        }
    }
}

/// Returns a SHA-256 digest in lower case, if the text is one in hex.
fn sha256_hex(text: &str) -> Option<String> {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use read::{defaults, put};

    /// Returns the line of each setting with the comment above it.
    fn documented() -> Vec<(String, String, String)> {
        let (mut section, mut comment, mut settings) = (String::new(), String::new(), Vec::new());
        for line in DEFAULT_TOML.lines() {
            if let Some(text) = line.strip_prefix("# ") {
                comment = format!("{comment} {text}");
            } else if let Some((key, value)) = line.split_once(" = ") {
                settings.push((format!("{section}.{key}"), value.to_owned(), std::mem::take(&mut comment)));
            } else {
                section = line.trim_matches(['[', ']']).to_owned();
                comment.clear();
            }
        }
        settings
    }

    fn with(key: &str, value: i64) -> Result<Config, toml::de::Error> {
        let mut table = defaults().clone();
        put(&mut table, key, value.into());
        table.try_into()
    }

    #[test]
    fn default_toml_is_the_default_configuration() {
        let config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(&toml::Table::try_from(&config).unwrap(), defaults());
        assert!(config.tools.shell_confirm && config.plugin.is_empty());
        assert_eq!(config.tools.shell_denylist, ["rm -rf /", "mkfs", "shutdown", "reboot", "dd if=", ":(){ :|:& };:"]);
        assert_eq!(
            (config.limits.guest_cpu_ms, config.limits.memory_mib, config.limits.kept_total_mib),
            (5000, 64, 256)
        );
        assert!(config.tools.fetch_enabled && !config.tools.fetch_confirm && config.tools.search_enabled);
        assert_eq!(config.allowed_domains(), [HostList::Any]);
        assert_eq!(config.private_ranges(), [Vec::<HostPattern>::new()]);
        assert!(config.opened_domains().is_empty() && config.network.dns_servers().is_empty());
    }

    #[test]
    fn every_setting_is_documented_in_default_toml() {
        for (key, ..) in narrow::RULES.iter() {
            let name = key.trim_start_matches("plugin.*.");
            let name =
                name.trim_start_matches("secret.*.").trim_start_matches("mail.*.").trim_start_matches("toolset.*.");
            let name = name.trim_start_matches("program.*.").trim_start_matches("upstream.*.");
            let line = DEFAULT_TOML.lines().find(|line| line.starts_with(&format!("# {name} = ")));
            let is_documented = match key.contains('*') {
                true => line.is_some_and(|line| line.contains("     # ")),
                false => documented().iter().any(|(documented, _, comment)| documented == key && !comment.is_empty()),
            };
            assert!(is_documented, "`{key}` has no comment in default.toml");
        }
    }

    #[test]
    fn every_documented_range_is_the_enforced_one() {
        for (key, value, comment) in documented() {
            if value.parse::<u64>().is_err() {
                continue;
            }
            let range = comment.rsplit(": ").next().unwrap();
            let mut bounds = range.split(" to ").map(|text| {
                text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<i64>().expect(&comment)
            });
            let (least, most) = (bounds.next().unwrap(), bounds.next().unwrap());
            assert!(with(&key, least).is_ok() && with(&key, most).is_ok(), "`{key}`: {range}");
            assert!(with(&key, least - 1).is_err() && with(&key, most + 1).is_err(), "`{key}`: {range}");
        }
    }
}
