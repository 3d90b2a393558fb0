//! `[toolset.NAME]`: what a session has of the tools. `../toolset.rs` makes a toolset of it.

use super::narrow::is_tool_name;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
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
    /// Tools that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "tool_names")]
    pub tools: Vec<String>,
    /// Tools that it has while a turn is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "tool_names")]
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
    /// Toolsets that sessions are opened on for work that it hands over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegates: Vec<String>,
}

fn tool_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| !is_tool_name(name)) {
        None => Ok(names),
        Some(odd) => Err(D::Error::custom(format!("`{odd}` is no name of a tool: 1 to 64 of A-Z, a-z, 0-9, `_`, `-`"))),
    }
}
