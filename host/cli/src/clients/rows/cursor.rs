//! Cursor. The lists of permissions that take tools away are those of its command line; the editor reads `permissions.json`, which only allows.
//! Sources: <https://cursor.com/docs/cli/reference/permissions>, <https://cursor.com/docs/reference/permissions>, <https://cursor.com/docs/mcp>.

use super::super::plan::Scope;
use super::super::{Base, Client, Place};
use super::*;

pub(super) const ROW: Row = Row {
    client: Client::Cursor,
    words: &["cursor"],
    // A project's file knows the project's directory by `${workspaceFolder}`.
    scope: Scope::Project,
    scopes: BOTH,
    stays: Some("all tools of the editor, as only Cursor's command line has a setting for them"),
    asks: None,
    changes,
};

const OWN: [(&str, &str); 6] = [
    (SHELL, "Shell(*)"),
    (EDIT, "Write(**)"),
    (EDIT, "Write(/**)"),
    (READ, "Read(**)"),
    (READ, "Read(/**)"),
    (WEB, "WebFetch(*)"),
];

fn changes(wish: &Wish) -> Changes {
    let [servers, allowed, line] = match wish.scope {
        Scope::User if wish.is_cursor_in_config => [
            Place(Base::Home, ".cursor/mcp.json"),
            Place(Base::Home, ".cursor/permissions.json"),
            Place(Base::Config, "cursor/cli-config.json"),
        ],
        Scope::User => [".cursor/mcp.json", ".cursor/permissions.json", ".cursor/cli-config.json"]
            .map(|path| Place(Base::Home, path)),
        Scope::Project => {
            [".cursor/mcp.json", ".cursor/permissions.json", ".cursor/cli.json"].map(|path| Place(Base::Here, path))
        }
    };
    let own = OWN.map(|(tools, rule)| add(Purpose::Own(tools), &["permissions", "deny"], rule));
    let allow = add(Purpose::Allow, &["permissions", "allow"], format!("Mcp({ENTRY}:*)"));
    vec![
        (servers, vec![entry(&["mcpServers", ENTRY], usual(wish, &wish.arguments_in("${workspaceFolder}")))]),
        (allowed, vec![add(Purpose::Allow, &["mcpAllowlist"], format!("{ENTRY}:*"))]),
        (line, own.into_iter().chain([allow]).collect()),
    ]
}
