//! `[toolset.NAME]`: what a session has of the tools. `../toolset.rs` makes a toolset of it.

use super::absolute;
use super::narrow::is_tool_name;
use super::upstream::{BETWEEN, upstream_name_fault};
use super::variables::is_never_passed;
use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, PathBuf};
use toml::{Table, Value};

/// Constants of arguments: by tool, and by argument.
type Bound = BTreeMap<String, BTreeMap<String, Value>>;

/// `[toolset.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsetSection {
    /// Toolsets whose tools, constants and grants it has as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extends: Vec<String>,
    /// Tools that it has: names, and `SERVER__*` for all tools of another MCP server.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "members")]
    pub tools: Vec<String>,
    /// Tools that it has while a turn is open, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "members")]
    pub turn: Vec<String>,
    /// What whoever opens a session says of it, besides constants: events carry it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<String>,
    /// Arguments that are set here: models neither see nor give them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bind: Bound,
    /// Settings that narrow those of the host for calls in it.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub grant: Table,
    /// Texts for its agent, by name, in the order in which they are declared.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub context: IndexMap<String, Context>,
    /// Environment variables that `env_list` names: for each, what it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "variables")]
    pub environment: BTreeMap<String, String>,
    /// Directories of this machine under other names, for files and commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "mounts")]
    pub mount: BTreeMap<PathBuf, Mount>,
    /// Toolsets that sessions are opened on for work that it hands over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegates: Vec<String>,
}

/// A text that `context_list` names and `context_show` shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Where it lies on this machine: absolute. No answer has this path.
    #[serde(deserialize_with = "absolute")]
    pub file: PathBuf,
    /// What it is, in a sentence.
    pub about: String,
}

/// A directory that an agent knows under another name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// What it is on this machine: absolute. No answer has this path.
    #[serde(deserialize_with = "absolute")]
    pub path: PathBuf,
    /// What is there, in a sentence.
    pub about: String,
    /// Whether nothing is written there.
    #[serde(default = "yes")]
    pub read_only: bool,
}

fn yes() -> bool {
    true
}

/// Where something is mounted is named from `/` on, without anything that would lead elsewhere.
fn mounts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<PathBuf, Mount>, D::Error> {
    let all = BTreeMap::<PathBuf, Mount>::deserialize(deserializer)?;
    let is_odd = |at: &&PathBuf| {
        let parts: PathBuf = at.components().collect();
        let is_plain = at.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        !at.is_absolute() || at.parent().is_none() || !is_plain || parts.as_os_str() != at.as_os_str()
    };
    match all.keys().find(is_odd) {
        None => Ok(all),
        Some(odd) => {
            let shown = odd.display().to_string();
            Err(D::Error::custom(format!("`{}` is not a place for a mount: write it as `/data`", shown.escape_debug())))
        }
    }
}

/// Whether a variable may be an agent's to know: those that carry keys of models, and those that lead programs, are not.
#[must_use]
pub fn is_agent_variable(name: &str) -> bool {
    let is_key = ["_API_KEY", "_API_BASE"].iter().any(|end| name.ends_with(end));
    !is_never_passed(name) && name != "PATH" && !is_key
}

fn variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let all = BTreeMap::<String, String>::deserialize(deserializer)?;
    match all.keys().find(|name| !is_agent_variable(name)) {
        None => Ok(all),
        Some(odd) => Err(D::Error::custom(format!("`{}` is not a variable for an agent", odd.escape_debug()))),
    }
}

/// Returns how a toolset names all tools of another MCP server.
#[must_use]
pub fn all_of(server: &str) -> String {
    format!("{server}{BETWEEN}*")
}

/// Returns the server whose tools a member of a toolset names all; none if it names one tool.
#[must_use]
pub fn server_of(member: &str) -> Option<&str> {
    let server = member.strip_suffix('*')?.strip_suffix(BETWEEN)?;
    upstream_name_fault(server).is_none().then_some(server)
}

/// Names of tools, and of servers for all tools of each.
fn members<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let all = Vec::<String>::deserialize(deserializer)?;
    match all.iter().find(|member| !is_tool_name(member) && server_of(member).is_none()) {
        None => Ok(all),
        Some(odd) => Err(D::Error::custom(format!(
            "`{}` is not a tool: write its name (1 to 64 of A-Z, a-z, 0-9, `_`, `-`), or `SERVER{BETWEEN}*` for all tools of a server",
            odd.escape_debug()
        ))),
    }
}

pub(super) fn tool_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| !is_tool_name(name)) {
        None => Ok(names),
        Some(odd) => Err(D::Error::custom(format!("`{odd}` is no name of a tool: 1 to 64 of A-Z, a-z, 0-9, `_`, `-`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tools_of_a_server_are_named_by_its_whole_name() {
        for (member, server) in [
            ("git__*", Some("git")),
            ("mcp-time__*", Some("mcp-time")),
            ("a___*", Some("a_")),
            ("git__status", None),
            ("git*", None),
            ("git_*", None),
            ("__*", None),
            ("*", None),
            ("*__*", None),
            ("a__b__*", None),
            ("git__*x", None),
        ] {
            assert_eq!(server_of(member), server, "{member}");
        }
        assert_eq!(server_of(&all_of("git")), Some("git"));
    }

    #[test]
    fn a_star_stands_for_a_server_and_for_nothing_else() {
        let read = |tools: &str| toml::from_str::<ToolsetSection>(&format!("tools = [\"{tools}\"]"));
        assert!(read("time").is_ok() && read("git__*").is_ok());
        for odd in ["git*", "*", "a b", ""] {
            let error = read(odd).expect_err(odd).to_string();
            assert!(error.contains(&format!("`{odd}` is not a tool")), "{error}");
        }
    }
}
