//! One locked machine from its first day on: an agent over MCP sees what is admitted, the operator sees why the rest is not, and all of it
//! is on record.

use crate::signed::Deployment;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::sync::Arc;
use toolcrib_tests::mcp::{Client, ERAS, envelope, failure};
use toolcrib_tests::outcome::{code, json_of, stdout, with_a_section_more};
use toolcrib_tests::{Program, digest, eventually, guest, skip};

#[test]
fn a_machine_shows_its_agent_what_was_vetted_and_its_operator_why_not_the_rest() {
    for era in ERAS {
        let Some(deployment) = Deployment::new("grant = \"vetted\"\nbuiltin = [\"time\"]") else {
            skip!("there is no minisign")
        };
        for name in ["shell_echo", "requester"] {
            deployment.put(name, &fs::read(guest(name)).expect("a guest"));
            deployment.vet(name, &["--shell"]);
        }
        // One of the statements has ended, one plugin has other bytes than those that were listed.
        let expired = deployment.path("plugins/requester.vet.toml");
        let text = fs::read_to_string(&expired).expect("a statement");
        let line = text.lines().find(|line| line.starts_with("expires")).expect("its end");
        fs::write(&expired, text.replace(line, "expires = 2026-01-01T00:00:00Z")).expect("written");
        for name in ["shell_echo", "requester"] {
            deployment.sign(&format!("plugins/{name}.vet.toml"), &["alice", "bob"]);
        }
        deployment.list(&[]);
        let (list, signature) = (deployment.list_path(), format!("{}.alice.minisig", deployment.list_path()));
        let before = [&list, &signature].map(|file| fs::read(file).expect("a list"));
        deployment.put("shell_echo", &with_a_section_more(fs::read(guest("shell_echo")).expect("a guest")));
        let locked = &deployment.locked;
        locked.program.write("work/a.txt", "two words");
        let mut command = locked.program.command(&locked.under(&["serve"]));
        let mut agent = Client::start(&mut command, Arc::new(Program::new()), era, json!({}));
        agent.shake_hands();
        assert_eq!(agent.tools(), ["time", "word_count"]);
        let agent = RefCell::new(agent);
        let call = |tool: &str| agent.borrow_mut().call(tool, json!({ "path": "a.txt" }));
        assert_eq!(envelope(&call("word_count"))["result"]["words"], 2);
        assert!(failure(&call("shell_echo")).contains("{\"code\":\"other_bytes\"}"));
        // The operator, meanwhile.
        let check = stdout(&locked.run(&["policy", "check", "--json"]));
        let check: Value = serde_json::from_str(&check).expect("JSON");
        let code_of = |name: &str| {
            let refused = check["refused"].as_array().expect("a list").iter().find(|row| row["name"] == name);
            refused.map_or(Value::Null, |row| row["code"].clone())
        };
        assert_eq!([code_of("shell_echo"), code_of("requester")], ["other_bytes", "expired"]);
        // Taken back while it is served.
        let revocation =
            format!("toolcrib = \"revoke/1\"\nsha256 = \"{}\"\nissued = 2026-01-01T00:00:00Z\n", digest("word_count"));
        locked.program.write("plugins/word_count.revoke.toml", revocation);
        deployment.sign("plugins/word_count.revoke.toml", &["alice"]);
        eventually("it is revoked", || call("word_count").to_string().contains("revoked"));
        drop(agent);
        // A newer list, then the old one put back.
        fs::remove_file(deployment.path("plugins/word_count.revoke.toml")).expect("removed");
        deployment.put("shell_echo", &fs::read(guest("shell_echo")).expect("a guest"));
        deployment.list(&[]);
        assert_eq!(deployment.outcome(), "ok");
        for (file, bytes) in [&list, &signature].into_iter().zip(before) {
            fs::write(file, bytes).expect("written");
        }
        assert_eq!(deployment.outcome(), "rolled_back");
        // All of it is on record, and the record is whole.
        assert_eq!(json_of(&locked.run(&["audit", "verify", "--json"]))["whole"], true);
        let trail = fs::read_to_string(deployment.path("state/toolcrib/audit.jsonl")).expect("a trail");
        let refused: Vec<Value> = trail.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for expected in ["other_bytes", "expired", "revoked", "rolled_back"] {
            assert!(refused.iter().any(|line| line["code"] == expected), "{expected} is not on record:\n{trail}");
        }
        let text = trail.replacen("\"event\":\"refused\"", "\"event\":\"ignored\"", 1);
        fs::write(deployment.path("state/toolcrib/audit.jsonl"), text).expect("written");
        assert_eq!(code(&locked.run(&["audit", "verify"])), 1);
    }
}
