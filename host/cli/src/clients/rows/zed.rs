//! Zed. `always_deny` goes before all other rules; tools that read have none. Servers start in the project (zed-industries/zed#35271). Sources:
//! <https://zed.dev/docs/ai/tool-permissions>, <https://zed.dev/docs/ai/mcp>.

use super::super::plan::Scope;
use super::super::{Base, Client, Place};
use super::*;
use serde_json::json;

pub(super) const ROW: Row = Row {
    client: Client::Zed,
    words: &["zed"],
    scope: Scope::User,
    scopes: &[Scope::User],
    stays: Some("its tools that read files; a profile of `agent: manage profiles` can leave them out"),
    asks: None,
    changes,
};

const OWN: [(&str, &str); 10] = [
    (SHELL, "terminal"),
    (EDIT, "edit_file"),
    (EDIT, "delete_path"),
    (EDIT, "move_path"),
    (EDIT, "copy_path"),
    (EDIT, "create_directory"),
    (EDIT, "restore_file_from_disk"),
    (EDIT, "save_file"),
    (WEB, "fetch"),
    (WEB, "web_search"),
];

fn changes(wish: &Wish) -> Changes {
    let rules = ["agent", "tool_permissions", "tools"];
    let mut server = usual(wish, &wish.arguments_with_directory());
    // Versions of 2025 want it said.
    server["source"] = "custom".into();
    let entry = entry(&["context_servers", ENTRY], server);
    let all = json!({ "pattern": ".*" });
    let own = OWN.map(|(tools, name)| {
        add(Purpose::Own(tools), &[rules[0], rules[1], rules[2], name, "always_deny"], all.clone())
    });
    let allow = wish.tools.iter().map(|tool| {
        let name = format!("mcp:{ENTRY}:{tool}");
        set(Purpose::Allow, &[rules[0], rules[1], rules[2], &name, "default"], "allow")
    });
    vec![(Place(Base::Config, "zed/settings.json"), [entry].into_iter().chain(own).chain(allow).collect())]
}
