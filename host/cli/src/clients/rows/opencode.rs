//! opencode. `permission.edit` also stands for `write` and `patch`; of rules that match, the last wins. Sources:
//! <https://opencode.ai/docs/permissions/>, <https://opencode.ai/docs/mcp-servers/>.

use super::super::plan::Scope;
use super::super::{Base, Client, Place};
use super::*;
use serde_json::json;

pub(super) const ROW: Row = Row {
    client: Client::Opencode,
    words: &["opencode"],
    scope: Scope::User,
    scopes: BOTH,
    stays: None,
    asks: None,
    changes,
};

const OWN: [(&str, &str); 7] = [
    (SHELL, "bash"),
    (EDIT, "edit"),
    (READ, "read"),
    (READ, "glob"),
    (READ, "grep"),
    (WEB, "webfetch"),
    (WEB, "websearch"),
];

fn changes(wish: &Wish) -> Changes {
    let file = match wish.scope {
        Scope::User => Place(Base::Config, "opencode/opencode.json"),
        Scope::Project => Place(Base::Here, "opencode.json"),
    };
    let command: Vec<String> = [wish.program.clone()].into_iter().chain(wish.arguments_with_directory()).collect();
    let server = json!({ "type": "local", "command": command, "enabled": true });
    let own = OWN.map(|(tools, name)| set(Purpose::Own(tools), &["permission", name], "deny"));
    let allow = set(Purpose::Allow, &["permission", &format!("{ENTRY}_*")], "allow");
    vec![(file, [entry(&["mcp", ENTRY], server)].into_iter().chain(own).chain([allow]).collect())]
}
