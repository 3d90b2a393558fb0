//! The configuration: one struct with documented fields; `default.toml` beside it is the commented truth.
//!
//! `read.rs` reads the sources, `layers.rs` lays them over each other by the rules of `narrow.rs`; `policy/` makes
//! grants of it.

mod allowlist;
mod hosts;
mod layers;
mod narrow;
mod policy_file;
mod read;
mod remedy;
pub mod requests;
mod secrets;
mod shell;
mod toolset;
mod variables;
mod vetting;

pub use allowlist::Allowlist;
pub use hosts::{HostList, HostPattern};
pub use layers::{Origins, PolicySource, Settings, Sources};
pub use policy_file::Lock;
pub(crate) use policy_file::{LockMode, Pin};
pub use read::project_sha256;
pub use read::{ConfigError, Origin, Place};
pub(crate) use remedy::{Needed, Remedies};
pub use secrets::{LeakAction, LeakGate, Leaks, Part, SecretSection, ShapeAction, Template};
pub use shell::PluginShell;
pub use toolset::{Context, ToolsetSection};
pub use variables::{CALL_MARK, TOKEN_VARIABLE, is_never_passed, is_variable_name};
pub(crate) use vetting::{Ceiling, DAY, GrantBy, Key, Revoked, Role, Signed, seconds};

use crate::embedder::KindPattern;
use crate::policy::exec::EVERY;
use crate::tools::listing;
pub(crate) use narrow::Bound;
#[cfg(test)]
pub(crate) use narrow::section_keys;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Every setting with its default, as a commented file.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// A year; timers hold little more.
const YEAR_MS: u64 = 31_536_000_000;
/// As much as the memory of a 32-bit guest can hold.
const MEMORY_KIB: u64 = 4_194_304;

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
    /// `[plugin.NAME]` by name; `policy/rights.rs` makes rights of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugin: BTreeMap<String, PluginSection>,
    /// `[secret.NAME]` by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret: BTreeMap<String, SecretSection>,
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
    /// Whether a person is asked before a request is made.
    pub fetch_confirm: bool,
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
    /// How often a session may call a tool with the same arguments while nothing else changes anything.
    #[serde(deserialize_with = "between::<1, 1_000_000, _>")]
    pub equal_calls: u64,
    /// Whether `web_search` is available.
    pub search_enabled: bool,
    /// The URL that `web_search` asks: of the web, without user, query and fragment, and with a `/` at its end.
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

/// `[confine]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confine {
    /// Whether commands run confined.
    pub mode: ConfineMode,
    /// What counts as confined.
    pub floor: ConfineFloor,
    /// Directories that they may write in: absolute ones, and [`WORKSPACE`].
    pub write: Vec<PathBuf>,
    /// What of the home is there for them.
    pub read: Allowlist,
    /// What is not there for them, besides what is hidden from all.
    pub hide: Vec<PathBuf>,
    /// Directories of the home of which they have copies to write in.
    #[serde(deserialize_with = "paths_below")]
    pub caches: Vec<String>,
    /// What they cannot write in each of these directories, where it exists.
    #[serde(deserialize_with = "paths_below")]
    pub protect: Vec<String>,
    /// What network they have.
    pub network: CellNetwork,
    /// The hosts that they may reach by [`CellNetwork::Egress`].
    #[serde(deserialize_with = "exact_hosts")]
    pub hosts: Vec<HostPattern>,
    /// The ports of those.
    #[serde(deserialize_with = "few_ports")]
    pub ports: Vec<u16>,
    /// Whether they can have sockets of files and names among themselves.
    pub unix_sockets: bool,
    /// Whether they can look into processes of their own, as debuggers do.
    pub debug: bool,
    /// How many processes there can be at once.
    #[serde(deserialize_with = "between::<8, 1_000_000, _>")]
    pub processes: u64,
    /// Whether a person is asked also before commands that are confined without this machine's network.
    pub ask: bool,
    /// Whether a person may let a command out of its cell that was refused something there.
    pub unconfined: Unconfined,
}

/// Where in a cell the proxy listens, on its loopback.
pub const PROXY_PORT: u16 = 3128;

/// What stands for the workspace in lists of directories.
pub const WORKSPACE: &str = ".";

/// Whether commands run confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfineMode {
    /// They do not: they have all rights of the user.
    Off,
    /// Where the system can do it; elsewhere a person is asked about each.
    Auto,
    /// Or they do not run.
    Required,
}

/// Whether a person may let single commands out of their cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unconfined {
    /// They are asked about one that is called again after its cell refused it something.
    Ask,
    /// Nobody may.
    Never,
}

/// What counts as confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfineFloor {
    /// Bounded writes and no network, by Landlock, where nobody may make namespaces.
    Partial,
    /// Namespaces alone.
    Full,
}

/// The network that confined commands have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellNetwork {
    /// The machine's, with all that listens there.
    Full,
    /// A loopback of their own, and the hosts that are named or that a person allows.
    Egress,
    /// A loopback of their own.
    None,
}

impl CellNetwork {
    /// As people read it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::None => "without a network",
            Self::Egress => "with named hosts only",
            Self::Full => "with this machine's network",
        }
    }
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
    /// How long a person is waited for, in milliseconds.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub timeout_ms: u64,
}

/// `[audit]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Whether a call that cannot be recorded is refused.
    pub required: bool,
}

/// `[limits]`; each name ends with its unit, counts have none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU time of a plugin in one call; time inside the host does not count.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub guest_cpu_ms: u64,
    /// A whole call, waits for commands and approvals not counted.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub call_ms: u64,
    /// A command with `wait: true`; [`Limits::command`] also applies `command_max_ms`.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub command_ms: u64,
    /// The longest time that a call may ask to wait for a command.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub command_max_ms: u64,
    /// How long a cancelled call may wind down.
    #[serde(deserialize_with = "between::<0, 600_000, _>")]
    pub grace_ms: u64,
    /// Memory of an instance, summed over all its memories.
    #[serde(deserialize_with = "between::<1, 4096, _>")]
    pub memory_mib: u64,
    /// Memory of all instances together.
    #[serde(deserialize_with = "between::<1, 1_048_576, _>")]
    pub total_memory_mib: u64,
    /// Elements in all tables of an instance.
    #[serde(deserialize_with = "between::<1, 10_000_000, _>")]
    pub table_elements: u64,
    /// Tables of an instance.
    #[serde(deserialize_with = "between::<1, 1000, _>")]
    pub tables: u64,
    /// Memories of an instance.
    #[serde(deserialize_with = "between::<1, 100, _>")]
    pub memories: u64,
    /// Core instances within a component.
    #[serde(deserialize_with = "between::<1, 1000, _>")]
    pub instances: u64,
    /// How much a guest may pass to the host in one host call.
    #[serde(deserialize_with = "between::<1, MEMORY_KIB, _>")]
    pub host_call_kib: u64,
    /// How much a guest may pass to the host in a whole call.
    #[serde(deserialize_with = "between::<1, 1_073_741_824, _>")]
    pub call_kib: u64,
    /// The result of a call.
    #[serde(deserialize_with = "between::<1, MEMORY_KIB, _>")]
    pub result_kib: u64,
    /// Component handles at one time.
    #[serde(deserialize_with = "between::<1, 1_000_000, _>")]
    pub handles: u64,
    /// Host calls within one call.
    #[serde(deserialize_with = "between::<1, 1_000_000_000, _>")]
    pub host_calls: u64,
    /// Events that a guest itself sends in one call.
    #[serde(deserialize_with = "between::<0, 1_000_000, _>")]
    pub events: u64,
    /// Text of these events.
    #[serde(deserialize_with = "between::<0, 1_048_576, _>")]
    pub event_kib: u64,
    /// A component's file; the parser accepts none above 1 GiB.
    #[serde(deserialize_with = "between::<1, 1024, _>")]
    pub component_mib: u64,
    /// CPU time for compiling a component that is not part of this binary.
    #[serde(deserialize_with = "between::<1000, YEAR_MS, _>")]
    pub compile_ms: u64,
    /// Memory for the same.
    #[serde(deserialize_with = "between::<64, 1_048_576, _>")]
    pub compile_mib: u64,
    /// The description of a tool as models read it.
    #[serde(deserialize_with = "between::<1, 1_048_576, _>")]
    pub description_bytes: u64,
    /// Each schema of a tool.
    #[serde(deserialize_with = "between::<1, 16_384, _>")]
    pub schema_kib: u64,
    /// Nesting of a schema; `serde_json` accepts none above 128.
    #[serde(deserialize_with = "between::<1, 128, _>")]
    pub schema_depth: u64,
    /// Calls at one time.
    #[serde(deserialize_with = "between::<1, 10_000, _>")]
    pub concurrent_calls: u64,
    /// Calls of one caller in a minute.
    #[serde(deserialize_with = "between::<1, 1_000_000_000, _>")]
    pub calls_per_minute: u64,
    /// Output of a command kept for later, each stream.
    #[serde(deserialize_with = "between::<0, 1_048_576, _>")]
    pub kept_stream_mib: u64,
    /// Output kept in all.
    #[serde(deserialize_with = "between::<0, 1_048_576, _>")]
    pub kept_total_mib: u64,
}

/// `[plugin.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginSection {
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
    /// The programs it may start.
    #[serde(default)]
    pub exec: PluginExec,
    /// The events it may hand over.
    #[serde(default)]
    pub embedder: PluginEmbedder,
    /// Whether it may look at settings, and at what toolsets declare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspect: Option<bool>,
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
    pub(crate) fn remedies(&self) -> Remedies {
        self.bounds.remedies.clone()
    }

    /// Returns whether the tools of a plugin are available.
    #[must_use]
    pub fn is_enabled(&self, name: &str) -> bool {
        self.plugin.get(name).is_none_or(|section| section.enabled != Some(false))
    }

    /// Returns the digests that layers which only narrow demand of a plugin.
    pub(crate) fn demanded_digests(&self, name: &str) -> &[String] {
        self.bounds.digests.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns what each layer that only narrows says of a plugin's commands.
    pub(crate) fn shell_bounds(&self, name: &str) -> impl Iterator<Item = &PluginShell> {
        self.bounds.lists.get(&format!("plugin.{name}.shell")).into_iter().flatten().filter_map(Bound::shell)
    }

    /// Returns the effective list of a setting, if it has one, with each list that bounds it.
    pub(crate) fn with_bounds<T: Clone>(
        &self,
        effective: Option<T>,
        key: &str,
        list: fn(&Bound) -> Option<&T>,
    ) -> Vec<T> {
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

impl Limits {
    /// Returns how long a command with `wait: true` may take.
    #[must_use]
    pub fn command(&self) -> Duration {
        self.explicit_wait(self.command_ms)
    }

    /// Returns how long a command is waited for when a call asks for `wait_ms`.
    #[must_use]
    pub fn explicit_wait(&self, wait_ms: u64) -> Duration {
        Duration::from_millis(wait_ms.min(self.command_max_ms))
    }
}

fn between<'de, const MIN: u64, const MAX: u64, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let no_number = |_| D::Error::custom(format!("must be a whole number from {MIN} to {MAX}"));
    let number = i64::deserialize(deserializer).map_err(no_number)?;
    let fits = u64::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
    fits.ok_or_else(|| D::Error::custom(format!("must be {MIN} to {MAX}, not {number}")))
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

fn families<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| !listing::is_family(name)) {
        None => Ok(names),
        Some(odd) => {
            let known: Vec<&str> = listing::families().collect();
            Err(D::Error::custom(format!("there is no family of tools `{odd}`: there is {}", known.join(", "))))
        }
    }
}

fn denials<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(deserializer)?;
    let empty = entries.iter().any(|entry| entry.trim().is_empty());
    if empty { Err(D::Error::custom("an empty entry is not a command")) } else { Ok(entries) }
}

/// Paths that are to be looked up below directories: relative, and leading out of none.
fn paths_below<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, |text| {
        let mut parts = Path::new(text).components();
        let is_below = !text.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
        let refused = || format!("`{}` is not a path below a directory, such as `.git/hooks`", text.escape_debug());
        is_below.then(|| text.to_owned()).ok_or_else(refused)
    })
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

/// As a cell takes each of them.
fn few_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    const MOST: usize = 32;
    // What a cell has for itself.
    const TAKEN: [u16; 2] = [53, PROXY_PORT];
    let ports = ports(deserializer)?;
    if ports.len() > MOST {
        return Err(D::Error::custom(format!("{} ports are too many (limit: {MOST})", ports.len())));
    }
    match ports.iter().find(|port| TAKEN.contains(port)) {
        Some(taken) => Err(D::Error::custom(format!("port {taken} serves something else in a cell"))),
        None => Ok(ports),
    }
}

fn exact_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostPattern>, D::Error> {
    each(deserializer, HostPattern::exact)
}

fn name_servers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, |text| requests::name_server(text).map(|_| text.to_owned()))
}

fn base<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    requests::base(&text).map(|_| text).map_err(D::Error::custom)
}

fn own_base<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    base(deserializer).map(Some)
}

fn plugin_hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<HostPattern>>, D::Error> {
    each(deserializer, HostPattern::exact).map(Some)
}

fn methods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, requests::method).map(Some)
}

fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, requests::prefix).map(Some)
}

fn programs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    each(deserializer, program).map(Some)
}

/// Reads the name of a program: one that is found on `PATH`, or an absolute path.
///
/// # Errors
/// A fragment that says what to write instead.
pub fn program(text: &str) -> Result<String, String> {
    let is_name = !text.contains('/') && !["", ".", ".."].contains(&text);
    let is_path = Path::new(text).is_absolute() && !text.ends_with('/');
    let fits = (is_name || is_path) && !text.contains(|char: char| char.is_control());
    let refused = || format!("`{}` is not a program: write `git`, `/usr/bin/git`, or `*`", text.escape_debug());
    fits.then(|| text.to_owned()).ok_or_else(refused)
}

/// Names of variables that calls may set.
fn set_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let names = each(deserializer, |text| match text == EVERY || !is_never_passed(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{}` is never passed", text.escape_debug())),
    });
    names.map(Some)
}

fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    sha256_hex(&text).map(|_| Some(text)).ok_or_else(|| D::Error::custom("must be 64 hex digits"))
}

/// Returns a SHA-256 digest in lower case, if the text is one in hex.
fn sha256_hex(text: &str) -> Option<String> {
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rights::{HttpRights, PluginRights};
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
        for (key, ..) in narrow::RULES {
            let name = key.trim_start_matches("plugin.*.");
            let name = name.trim_start_matches("secret.*.").trim_start_matches("toolset.*.");
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

    #[test]
    fn a_default_configuration_leaves_embedded_plugins_alone_and_gives_others_nothing() {
        let (nowhere, everywhere) = (vec![Allowlist::NOTHING], vec![Allowlist::Any]);
        let nothing = PluginRights {
            shell: false,
            pane: false,
            read: nowhere.clone(),
            write: nowhere,
            http: None,
            programs: vec![Vec::new()],
            variables: vec![Vec::new()],
            kinds: vec![Vec::new()],
            introspect: false,
        };
        let reading = HttpRights {
            hosts: vec![HostList::Any],
            methods: vec![vec!["GET".into(), "HEAD".into()]],
            paths: vec![],
            base: None,
            headers: BTreeMap::new(),
        };
        let everything = PluginRights {
            shell: true,
            pane: true,
            read: everywhere.clone(),
            write: everywhere,
            http: Some(reading),
            programs: vec![vec!["*".into()]],
            variables: vec![vec!["*".into()]],
            kinds: vec![vec![KindPattern::All]],
            introspect: true,
        };
        assert_eq!(Config::default().plugin_rights("x", &"a".repeat(64), true), everything);
        assert_eq!(Config::default().plugin_rights("x", &"a".repeat(64), false), nothing);
    }

    #[test]
    fn waits_for_commands_are_capped() {
        let mut limits = Config::default().limits;
        limits.command_max_ms = 1000;
        assert_eq!((limits.command(), limits.explicit_wait(10)), (Duration::from_secs(1), Duration::from_millis(10)));
        assert_eq!(limits.explicit_wait(u64::MAX), Duration::from_secs(1));
    }
}
