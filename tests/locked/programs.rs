//! Declared programs on a locked machine: each is there by a digest in the policy, and by nothing else.

use crate::rig::{Locked, word_count};
use crate::signed::Deployment;
use backend::sealed::program_sha256;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toolcrib_tests::outcome::stderr;
use toolcrib_tests::{digest, guest, on_path, skip};

const PINS: &str = "[lock]\nplugins = \"pins\"\n";

/// A program of the user's own.
fn own(locked: &Locked, text: &str) -> PathBuf {
    locked.program.write_program("work/tool", text);
    locked.program.path("work/tool")
}

fn call(locked: &Locked, tool: &str) -> (i32, Value) {
    locked.call(&["--yes", tool, &json!({ "args": ["-"], "stdin": "text" }).to_string()])
}

fn pin(name: &str, file: &std::path::Path) -> String {
    format!("[lock.program.{name}]\nsha256 = \"{}\"\n", program_sha256(file).expect("a program"))
}

/// Why a call is refused.
fn code(locked: &Locked, tool: &str) -> Value {
    let (exit, envelope) = call(locked, tool);
    assert_eq!(exit, 5, "{envelope}");
    envelope["error"]["data"]["code"].clone()
}

#[test]
fn a_program_is_there_by_a_digest_in_the_policy() {
    let (cat, tee) = (on_path("cat"), on_path("tee"));
    for (pins, expected) in [
        (String::new(), Some("not_vetted")),
        (pin("cat", &tee), Some("other_bytes")),
        (pin("tool", &cat), Some("renamed")),
        (pin("cat", &cat), None),
    ] {
        let locked = Locked::by(&[&format!("{PINS}{pins}")]);
        locked.program.declares("cat", &cat, "");
        match expected {
            Some(expected) => {
                assert_eq!(code(&locked, "cat"), expected, "{pins}");
                assert!(!locked.tools().contains(&"cat".to_owned()));
            }
            None => assert_eq!(call(&locked, "cat").1["result"]["stdout"], "text"),
        }
    }
    let revoked =
        format!("{PINS}{}[lock.revoked]\nplugins = [{:?}]\n", pin("cat", &cat), program_sha256(&cat).unwrap());
    let locked = Locked::by(&[&revoked]);
    locked.program.declares("cat", &cat, "");
    assert_eq!(code(&locked, "cat"), "revoked");
}

/// A user who declares the digest of the policy for another file gets neither.
#[test]
fn a_digest_that_is_only_claimed_runs_nothing() {
    let cat = on_path("cat");
    let locked = Locked::by(&[&format!("{PINS}{}", pin("tool", &cat))]);
    let file = own(&locked, "#!/bin/sh\n: >ran\n");
    let sha256 = program_sha256(&cat).unwrap();
    let section = format!("[program.tool]\npath = {file:?}\nsha256 = {sha256:?}\nabout = \"Mine.\"\n");
    locked.program.write("config/toolcrib/toolcrib.toml", section);
    let (exit, envelope) = call(&locked, "tool");
    assert_eq!((exit, &envelope["error"]["data"]["declared"]), (5, &json!(sha256)), "{envelope}");
    assert!(!locked.program.path("work/ran").exists());
}

/// What a plugin may run is bound likewise.
#[test]
fn a_plugin_runs_no_program_that_the_policy_does_not_name() {
    let cat = on_path("cat");
    let starter = format!("{PINS}[lock.plugin.starter]\nsha256 = \"{}\"\n", digest("starter"));
    let given = json!({ "run": ["cat"], "declared": true, "stdin": "text" }).to_string();
    for (pins, is_there) in [(starter.clone(), false), (format!("{starter}{}", pin("cat", &cat)), true)] {
        let locked = Locked::by(&[&pins]);
        locked.installed_with("starter", &fs::read(guest("starter")).unwrap(), &["--program", "cat"]);
        locked.program.declares("cat", &cat, "");
        let (_, envelope) = locked.call(&["--yes", "start", &given]);
        match is_there {
            true => assert_eq!(envelope["result"]["stdout"], "text", "{envelope}"),
            false => assert_eq!(envelope["error"]["data"]["code"], "not_vetted", "{envelope}"),
        }
    }
}

/// Nobody signs statements about programs: where plugins need signatures, programs need the policy's own word.
#[test]
fn where_plugins_are_signed_a_program_is_named_by_the_policy() {
    let cat = on_path("cat");
    for (pins, is_there) in [(String::new(), false), (pin("cat", &cat), true)] {
        let Some(deployment) = Deployment::new(&pins) else { skip!("there is no `minisign`") };
        let locked = &deployment.locked;
        locked.program.declares("cat", &cat, "");
        match is_there {
            true => assert_eq!(call(locked, "cat").1["result"]["stdout"], "text"),
            false => assert_eq!(code(locked, "cat"), "not_vetted"),
        }
    }
}

/// A plugin's section names no program, nor a program's a plugin; and a lock that looks at nothing names none.
#[test]
fn programs_and_plugins_are_named_apart() {
    let cat = on_path("cat");
    let locked = Locked::by(&[&format!("{PINS}{}", pin("cat", &cat).replace("program", "plugin"))]);
    locked.program.declares("cat", &cat, "");
    assert_eq!(code(&locked, "cat"), "not_vetted");
    let locked = Locked::by(&[&format!("{PINS}[lock.program.word_count]\nsha256 = \"WORD_COUNT\"\n")]);
    let file = locked.program.path("data/toolcrib/plugins/word_count.wasm");
    locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    assert!(file.exists());
    let (exit, envelope) = locked.call(&["word_count", "path=a.txt"]);
    assert_eq!((exit, &envelope["error"]["data"]["code"]), (5, &json!("not_vetted")));
    let off = Locked::by(&[&format!("[lock]\nplugins = \"off\"\n{}", pin("cat", &cat))]);
    let said = stderr(&off.run(&["tools"]));
    assert!(said.contains("programs are named here, and `plugins = \"off\"` looks at none"), "{said}");
}
