//! goose. Its shell and its edits are the extension `developer`; `computercontroller` reads pages and runs scripts. Sources:
//! <https://block.github.io/goose/docs/guides/config-files>, <https://block.github.io/goose/docs/getting-started/using-extensions>.

use super::super::plan::Scope;
use super::super::{Base, Client, Place};
use super::*;
use serde_json::json;

pub(super) const ROW: Row = Row {
    client: Client::Goose,
    words: &["goose"],
    scope: Scope::User,
    scopes: &[Scope::User],
    stays: Some("extensions that its file does not list: `goose configure` shows them"),
    asks: Some("goose asks as its `GOOSE_MODE` says"),
    changes,
};

/// Seconds that a call may take; a person may be asked during it.
const TIMEOUT: u64 = 600;

fn changes(wish: &Wish) -> Changes {
    let server = json!({
        "enabled": true, "type": "stdio", "name": ENTRY, "description": "Sandboxed tools",
        "cmd": wish.program, "args": wish.arguments_with_directory(), "timeout": TIMEOUT,
    });
    let own = [(SHELL, "developer"), (WEB, "computercontroller")]
        .map(|(tools, name)| set(Purpose::OwnIfThere(tools), &["extensions", name, "enabled"], false));
    let entry = entry(&["extensions", ENTRY], server);
    vec![(Place(Base::Config, "goose/config.yaml"), [entry].into_iter().chain(own).collect())]
}
