//! VS Code. Its chat has a picker of tools, which no setting of a file replaces (microsoft/vscode#333134 asks for one, #250078 says where servers
//! start). Source: <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>.

use super::super::plan::Scope;
use super::super::{Base, Client, Place};
use super::*;

pub(super) const ROW: Row = Row {
    client: Client::Vscode,
    words: &["vscode", "vs-code", "code"],
    // It starts the servers of the user's own file in the home.
    scope: Scope::Project,
    scopes: BOTH,
    stays: Some("all tools of the chat: switch them off with the button `Configure Tools` in the chat"),
    asks: Some("VS Code asks before each tool until you allow it there"),
    changes,
};

fn changes(wish: &Wish) -> Changes {
    let file = match wish.scope {
        Scope::User => Place(Base::Config, "Code/User/mcp.json"),
        Scope::Project => Place(Base::Here, ".vscode/mcp.json"),
    };
    let mut server = usual(wish, &wish.arguments_in("${workspaceFolder}"));
    server["type"] = "stdio".into();
    vec![(file, vec![entry(&["servers", ENTRY], server)])]
}
