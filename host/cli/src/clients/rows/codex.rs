//! Codex. `features.shell_tool` takes the shell away (openai/codex#6481). Nothing takes `apply_patch` away (openai/codex#8161, open): with
//! `sandbox_mode = "read-only"` each patch is asked about. `default_tools_approval_mode` is openai/codex#17843; `web_search` and `cwd` are in
//! <https://developers.openai.com/codex/config-reference>.

use super::super::plan::Scope;
use super::super::{Base, Client, Place};
use super::*;

pub(super) const ROW: Row = Row {
    client: Client::Codex,
    words: &["codex"],
    scope: Scope::User,
    scopes: BOTH,
    stays: Some("`apply_patch`, which Codex asks about in its read-only sandbox"),
    asks: None,
    changes,
};

fn changes(wish: &Wish) -> Changes {
    let file = match wish.scope {
        Scope::User => Place(Base::Codex, "config.toml"),
        // Codex reads it only in a project that its user trusts.
        Scope::Project => Place(Base::Here, ".codex/config.toml"),
    };
    let mut server = usual(wish, &wish.arguments);
    if let Some(directory) = &wish.directory {
        server["cwd"] = directory.as_str().into();
    }
    vec![(
        file,
        vec![
            entry(&["mcp_servers", ENTRY], server),
            set(Purpose::Allow, &["mcp_servers", ENTRY, "default_tools_approval_mode"], "approve"),
            set(Purpose::Own(SHELL), &["features", "shell_tool"], false),
            set(Purpose::Own(EDIT), &["sandbox_mode"], "read-only"),
            set(Purpose::Own(WEB), &["web_search"], "disabled"),
        ],
    )]
}
