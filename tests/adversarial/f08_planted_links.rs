//! F-08: a command plants links in the workspace, and a tool that may write only there is then told to write "inside" (CVE-2026-39861).
//! Outcome: `denied`; what the links lead to, Toolcrib's own settings and plugins among it, stays as it was.
//! Switched off: `tools.files_allowed_paths` and the list of Toolcrib's own places (`access/lib.rs`): both tests failed.

use crate::exec::run;
use crate::files::{tree, workspace};
use serde_json::json;
use toolcrib_tests::Preparation;

#[test]
fn a_link_that_a_command_planted_takes_no_tool_out_of_the_workspace() {
    let mut siege = workspace();
    let written = siege.call("write_file", json!({ "path": "first", "content": "first" }));
    assert!(written["result"].is_string(), "{written}");
    let plant = "ln -s ../outside out && ln -s ../outside/secret leaf && mkdir -p a/b && ln -s ../../../outside a/b/out && \
                 ln -s a/b/out twice && mkdir swapped && echo x > swapped/secret";
    assert_eq!(run(&mut siege, plant)["exit_code"], 0);
    let written = siege.call("write_file", json!({ "path": "swapped/secret", "content": "mine" }));
    assert!(written["result"].is_string(), "{written}");
    assert_eq!(run(&mut siege, "rm -r swapped && ln -s ../outside swapped")["exit_code"], 0);
    let before = tree(&siege.program.path("outside"));
    for path in ["out/secret", "out/new", "leaf", "a/b/out/secret", "twice/new", "swapped/secret", "swapped/new"] {
        let refused = siege.failure("write_file", json!({ "path": path, "content": "planted" }));
        assert!(refused.starts_with("denied: "), "{path}: {refused}");
    }
    assert_eq!(tree(&siege.program.path("outside")), before);
    siege.lift();
}

#[test]
fn a_link_that_a_command_planted_leads_no_tool_to_what_is_toolcribs_own() {
    let mut siege = Preparation::new().set("confine.mode=off").begin();
    siege.program.write("data/toolcrib/plugins/mine.txt", "a plugin");
    siege.program.write("home/.ssh/id", "a key");
    siege.program.write("config/toolcrib/toolcrib.toml", "");
    let plant = "ln -s ../config/toolcrib config && ln -s ../config up && ln -s ../state/toolcrib/audit.jsonl log && \
                 ln -s ../data/toolcrib/plugins plugins && ln -s ../home/.ssh keys && ln -s ../home/.bashrc login && \
                 touch ../home/.bashrc";
    assert_eq!(run(&mut siege, plant)["exit_code"], 0);
    for path in [
        "config/toolcrib.toml",
        "config/new",
        "up/toolcrib/toolcrib.toml",
        "log",
        "plugins/mine.txt",
        "plugins/new.wasm",
        "keys/id",
        "keys/authorized_keys",
        "login",
    ] {
        let refused = siege.failure("write_file", json!({ "path": path, "content": "planted" }));
        assert!(refused.starts_with("denied: "), "{path}: {refused}");
    }
    for path in ["keys/id", "log"] {
        let refused = siege.failure("read_file", json!({ "path": path }));
        assert!(refused.starts_with("denied: "), "{path}: {refused}");
    }
    let holding: Vec<_> = tree(siege.program.root()).into_iter().filter(|(_, content)| content == "planted").collect();
    assert!(holding.is_empty(), "{holding:?}");
    siege.lift();
}
