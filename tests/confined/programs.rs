//! `shell`, `exec` and commands of plugins that set a directory, variables or an input: in cells as `run_shell`'s are.

use crate::rig::{BOTH, Rig};
use serde_json::{Value, json};
use std::fs;

#[test]
fn programs_reach_no_more_than_commands() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        fs::create_dir(rig.work("lib")).expect("a directory");
        let outside = rig.program.path("outside.txt");
        let key = rig.program.path("home/.ssh/id").display().to_string();
        let shown = outside.display().to_string();
        let mut call = |tool: &str, arguments: Value| rig.client.result(tool, arguments);
        for (tool, arguments) in [
            ("exec", json!({ "program": "touch", "args": [shown] })),
            ("exec", json!({ "program": "tee", "args": [shown], "stdin": "x", "working_dir": "lib" })),
            ("exec", json!({ "program": "cat", "args": [key] })),
            ("shell", json!({ "command": format!("touch {shown}") })),
            (
                "shell",
                json!({ "command": format!("cat {key}"), "working_dir": "lib", "env": [{ "key": "A", "value": "b" }] }),
            ),
        ] {
            let result = call(tool, arguments.clone());
            assert_ne!(result["exit_code"], 0, "{via:?} {arguments}");
            assert!(!result["stdout"].as_str().expect("text").contains("private"), "{via:?} {result}");
        }
        let made = call("exec", json!({ "program": "tee", "args": ["made"], "stdin": "in", "working_dir": "lib" }));
        assert_eq!((&made["exit_code"], &made["stdout"]), (&json!(0), &json!("in")), "{via:?} {made}");
        let spaces = "readlink /proc/self/ns/user";
        let inside = call("exec", json!({ "program": "readlink", "args": ["/proc/self/ns/user"] }))["stdout"].clone();
        assert_eq!(inside, call("shell", json!({ "command": spaces }))["stdout"], "one cell for all of them");
        assert!(!outside.exists());
        assert_eq!(fs::read_to_string(rig.work("lib/made")).expect("a file"), "in");
    }
}
