//! The configuration: one struct with documented fields; `default.toml` beside it is the commented truth.
//!
//! `read.rs` reads the sources, `layers.rs` lays them over each other by the rules of `narrow.rs`; `policy/` makes
//! grants of it.

mod allowlist;
mod layers;
mod narrow;
mod read;

pub use allowlist::Allowlist;
pub use layers::{Origins, PolicySource, Settings, Sources};
pub use read::{ConfigError, Origin, Place};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
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
    /// How people are asked.
    pub approval: Approval,
    /// Where tools act.
    pub backend: Backend,
    /// How hosts are reached.
    pub ssh: Ssh,
    /// Panes that people can watch and join.
    pub tmux: Tmux,
    /// How much a call may use.
    pub limits: Limits,
    /// `[plugin.NAME]` by name; ask [`Config::plugin_rights`] what a plugin may do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugin: BTreeMap<String, PluginSection>,
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
    /// Whether tools may read and write files.
    pub files_enabled: bool,
    /// Where tools may write; [`Config::allowed_paths`] and [`Config::opened_paths`] decide on a path.
    pub files_allowed_paths: Allowlist,
}

/// `[backend]`; with neither container nor host it is this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Name or id of a container that runs.
    pub container: String,
    /// The program that runs it; the one that knows it when empty.
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
    /// Sessions of an agent, the default one among them.
    #[serde(deserialize_with = "between::<1, 100, _>")]
    pub max_sessions: u64,
    /// Panes of a session, the shared one among them.
    #[serde(deserialize_with = "between::<1, 100, _>")]
    pub max_panes: u64,
    /// The shell of new panes, by its path; empty means the login shell.
    pub default_shell: String,
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
    /// A command with `wait: true`; [`Limits::command`] also heeds `command_max_ms`.
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
    /// What a guest may hand the host in one host call.
    #[serde(deserialize_with = "between::<1, MEMORY_KIB, _>")]
    pub host_call_kib: u64,
    /// What a guest may hand the host in a whole call.
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
    /// Whether it may run commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<bool>,
    /// The directories it may read and write in.
    #[serde(default)]
    pub files: PluginFiles,
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

/// What the configuration lets a plugin do, once `[tools]` lets any plugin do it.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginRights {
    /// Whether it may run commands.
    pub shell: bool,
    /// Where it may read: within every one of these.
    pub read: Vec<Allowlist>,
    /// Where it may write: within every one of these.
    pub write: Vec<Allowlist>,
}

/// What the values themselves do not tell after they were narrowed.
///
/// Lists are intersected by spelling. A link below one directory may lead out of another, so a path whose links are
/// resolved has to be held against each list that took part.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bounds {
    /// By dotted key: the list before it was narrowed, if there was one, then each list that narrowed it.
    lists: BTreeMap<String, Vec<Allowlist>>,
    /// By plugin: the digests demanded of it; two different ones let no bytes pass.
    digests: BTreeMap<String, Vec<String>>,
}

impl Default for Config {
    fn default() -> Self {
        toml::from_str(DEFAULT_TOML).expect("default.toml has a valid line for every field")
    }
}

impl Config {
    /// Returns the lists within each of which a written file has to lie, links resolved on both sides.
    #[must_use]
    pub fn allowed_paths(&self) -> Vec<Allowlist> {
        self.with_bounds(self.tools.files_allowed_paths.clone(), "tools.files_allowed_paths")
    }

    /// Returns the directories that the user's own layers name: only these open sensitive directories.
    ///
    /// A list that a policy or an untrusted project puts in place of "no restriction" opens nothing.
    #[must_use]
    pub fn opened_paths(&self) -> &[PathBuf] {
        let before = self.bounds.lists.get("tools.files_allowed_paths").and_then(|lists| lists.first());
        match before.unwrap_or(&self.tools.files_allowed_paths) {
            Allowlist::Any => &[],
            Allowlist::Only(directories) => directories,
        }
    }

    /// Returns what the plugin `name` with these bytes may do; `embedded` says that they are part of this binary.
    ///
    /// Embedded bytes may do what no key denies; others what a section with their digest grants.
    #[must_use]
    pub fn plugin_rights(&self, name: &str, sha256: &str, embedded: bool) -> PluginRights {
        let section = self.plugin.get(name).cloned().unwrap_or_default();
        let named = section.sha256.as_ref().map_or(embedded, |digest| digest.eq_ignore_ascii_case(sha256));
        let mut demanded = self.bounds.digests.get(name).into_iter().flatten();
        let about_it = named && demanded.all(|digest| digest.eq_ignore_ascii_case(sha256));
        let lists = |directories: Option<Vec<PathBuf>>, key| match directories {
            _ if !about_it => vec![Allowlist::NOTHING],
            None if embedded => self.with_bounds(Allowlist::Any, &format!("plugin.{name}.files.{key}")),
            own => self.with_bounds(Allowlist::Only(own.unwrap_or_default()), &format!("plugin.{name}.files.{key}")),
        };
        PluginRights {
            shell: about_it && section.shell.unwrap_or(embedded),
            read: lists(section.files.read, "read"),
            write: lists(section.files.write, "write"),
        }
    }

    fn with_bounds(&self, effective: Allowlist, key: &str) -> Vec<Allowlist> {
        let mut lists = vec![effective];
        lists.extend(self.bounds.lists.get(key).into_iter().flatten().cloned());
        lists
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

fn denials<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<String>::deserialize(deserializer)?;
    let empty = entries.iter().any(|entry| entry.trim().is_empty());
    if empty { Err(D::Error::custom("an empty entry names no command")) } else { Ok(entries) }
}

fn environment_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| is_never_passed(name)) {
        Some(name) => Err(D::Error::custom(format!("`{}` is never passed", name.escape_debug()))),
        None => Ok(names),
    }
}

fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest { Ok(Some(text)) } else { Err(D::Error::custom("must be 64 hex digits")) }
}

/// Variables that the dynamic loader and the C library act on.
const LOADER_HOOKS: &str =
    "LD_* DYLD_* MALLOC_* GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH HOSTALIASES RES_OPTIONS LOCALDOMAIN";

/// Variables that shells act on.
const SHELL_HOOKS: &str = "BASH_ENV ENV BASH_FUNC_* SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND IFS CDPATH GLOBIGNORE \
    ZDOTDIR FPATH KSH_ENV fish_* INPUTRC HISTFILE SHELL";

/// Returns whether an environment variable never reaches a command: a hook of the loader or of a shell, or no name
/// at all.
#[must_use]
pub fn is_never_passed(name: &str) -> bool {
    let is_hook = |hook: &str| hook.strip_suffix('*').map_or(hook == name, |prefix| name.starts_with(prefix));
    let mut bytes = name.bytes();
    let is_name = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    !is_name
        || name == crate::backend::CALL_MARK
        || LOADER_HOOKS.split_whitespace().chain(SHELL_HOOKS.split_whitespace()).any(is_hook)
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
        let mut table = defaults();
        put(&mut table, key, value.into());
        table.try_into()
    }

    #[test]
    fn default_toml_is_the_default_configuration() {
        let config: Config = toml::from_str(DEFAULT_TOML).unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(toml::Table::try_from(&config).unwrap(), defaults());
        assert!(config.tools.shell_confirm && config.plugin.is_empty());
        assert_eq!(config.tools.shell_denylist, ["rm -rf /", "mkfs", "shutdown", "reboot", "dd if=", ":(){ :|:& };:"]);
        assert_eq!(
            (config.limits.guest_cpu_ms, config.limits.memory_mib, config.limits.kept_total_mib),
            (5000, 64, 256)
        );
    }

    #[test]
    fn every_setting_is_documented_in_default_toml() {
        for (key, _) in narrow::RULES {
            let name = key.trim_start_matches("plugin.*.");
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
        let nothing = PluginRights { shell: false, read: vec![Allowlist::NOTHING], write: vec![Allowlist::NOTHING] };
        let everything = PluginRights { shell: true, read: vec![Allowlist::Any], write: vec![Allowlist::Any] };
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

    #[test]
    fn loader_and_shell_hooks_are_never_passed() {
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
            "LOCPATH",
            "NLSPATH",
            "HOSTALIASES",
            "RES_OPTIONS",
            "LOCALDOMAIN",
            "MALLOC_CHECK_",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "BASH_FUNC_x",
            "SHELLOPTS",
            "BASHOPTS",
            "PS4",
            "PROMPT_COMMAND",
            "IFS",
            "CDPATH",
            "GLOBIGNORE",
            "ZDOTDIR",
            "FPATH",
            "KSH_ENV",
            "fish_function_path",
            "INPUTRC",
            "HISTFILE",
            "SHELL",
        ] {
            assert!(is_never_passed(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_never_passed() {
        for name in ["", "A=B", "A B", "A\n", "A\0", "1A", "Ä", "LD*"] {
            assert!(is_never_passed(name), "{name:?}");
        }
        for name in ["A", "_", "JAVA_HOME", "ENVIRONMENT", "OLD_PATH", "PS1", "http_proxy", "GITHUB_TOKEN"] {
            assert!(!is_never_passed(name), "{name:?}");
        }
    }
}
