//! Gemini CLI. A name in `tools.exclude` also hides an MCP server's tool of that name, but a class name does not (`isActiveTool` of
//! `packages/core/src/tools/tool-registry.ts`): so `read_file` and `write_file`, which Toolcrib has too, are named by their classes.
//! Sources: <https://geminicli.com/docs/reference/configuration>,
//! <https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md>.

use super::super::plan::Scope;
use super::super::{Base, Client, Place};
use super::*;

pub(super) const ROW: Row = Row {
    client: Client::Gemini,
    words: &["gemini", "gemini-cli"],
    scope: Scope::User,
    scopes: BOTH,
    stays: None,
    asks: None,
    changes,
};

const OWN: [(&str, &str); 11] = [
    (SHELL, "run_shell_command"),
    (EDIT, "WriteFileTool"),
    (EDIT, "replace"),
    (READ, "ReadFileTool"),
    (READ, "read_many_files"),
    (READ, "list_directory"),
    (READ, "glob"),
    (READ, "grep_search"),
    (READ, "search_file_content"),
    (WEB, "web_fetch"),
    (WEB, "google_web_search"),
];

fn changes(wish: &Wish) -> Changes {
    let file = match wish.scope {
        Scope::User => Place(Base::Home, ".gemini/settings.json"),
        Scope::Project => Place(Base::Here, ".gemini/settings.json"),
    };
    let mut server = usual(wish, &wish.arguments);
    if let Some(directory) = &wish.directory {
        server["cwd"] = directory.as_str().into();
    }
    let entries = [entry(&["mcpServers", ENTRY], server), set(Purpose::Allow, &["mcpServers", ENTRY, "trust"], true)];
    let own = OWN.map(|(tools, name)| add(Purpose::Own(tools), &["tools", "exclude"], name));
    vec![(file, entries.into_iter().chain(own).collect())]
}
