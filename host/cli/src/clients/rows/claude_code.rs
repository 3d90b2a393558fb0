//! Claude Code. A tool whose bare name is in `permissions.deny` is taken from the model; `mcp__SERVER` in `permissions.allow` is every tool of a
//! server. Sources: <https://code.claude.com/docs/en/tools-reference>, <https://code.claude.com/docs/en/permissions>,
//! <https://code.claude.com/docs/en/mcp>.

use super::super::plan::Scope;
use super::super::{Base, Client, PROJECT, Place};
use super::*;

pub(super) const ROW: Row = Row {
    client: Client::ClaudeCode,
    words: &["claude-code", "claude"],
    scope: Scope::User,
    scopes: BOTH,
    stays: None,
    asks: None,
    changes,
};

/// `Monitor` runs a command in the background.
const OWN: [(&str, &str); 11] = [
    (SHELL, "Bash"),
    (SHELL, "PowerShell"),
    (SHELL, "Monitor"),
    (EDIT, "Edit"),
    (EDIT, "Write"),
    (EDIT, "NotebookEdit"),
    (READ, "Read"),
    (READ, "Glob"),
    (READ, "Grep"),
    (WEB, "WebFetch"),
    (WEB, "WebSearch"),
];

fn changes(wish: &Wish) -> Changes {
    let (servers, settings) = match wish.scope {
        Scope::User => (Place(Base::Home, ".claude.json"), Place(Base::Home, ".claude/settings.json")),
        Scope::Project => (Place(Base::Here, PROJECT), Place(Base::Here, ".claude/settings.json")),
    };
    let arguments = wish.arguments_with_directory();
    let own = OWN.map(|(tools, name)| add(Purpose::Own(tools), &["permissions", "deny"], name));
    let allow = add(Purpose::Allow, &["permissions", "allow"], format!("mcp__{ENTRY}"));
    vec![
        (servers, vec![entry(&["mcpServers", ENTRY], usual(wish, &arguments))]),
        (settings, own.into_iter().chain([allow]).collect()),
    ]
}
