//! Servers of others on a locked machine: each is there by the digest of what is accepted of it, and by nothing else.

use crate::rig::{Locked, MESSAGE};
use crate::signed::Deployment;
use serde_json::{Value, json};
use std::path::Path;
use toolcrib_tests::outcome::{code, json_of, stderr, stdout};
use toolcrib_tests::skip;

const PINS: &str = "[lock]\nplugins = \"pins\"\nmessage = \"MESSAGE\"\n";

/// The arguments that add a server whose program is this file.
fn adding(file: &str) -> [&str; 10] {
    ["--yes", "upstream", "add", "jotter", "--confirm", "none", "--read", file, "--", "/usr/bin/python3"]
}

fn server() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream/server.py").display().to_string()
}

/// What a user gets on a machine of these policies, and the digest by which the operator can name it.
fn add(locked: &Locked) -> (i32, String) {
    let file = server();
    let output = locked.run(&[&adding(&file)[..], &[&file, "plain"]].concat());
    (code(&output), stdout(&output) + &stderr(&output))
}

/// What is accepted of that server, as a user without a lock accepts it.
fn digest_of_it() -> String {
    let open = Locked::by(&[]);
    assert_eq!(add(&open).0, 0);
    let settings = std::fs::read_to_string(open.program.path("config/toolcrib/toolcrib.toml")).expect("settings");
    let line = settings.lines().find_map(|line| line.strip_prefix("accepted = ")).expect("it is accepted");
    line.trim_matches('"').to_owned()
}

fn named(name: &str, digest: &str) -> String {
    format!("[lock.upstream.{name}]\nsha256 = \"{digest}\"\n")
}

fn echo(locked: &Locked) -> (i32, Value) {
    locked.call(&["jotter__echo", &json!({ "text": "here" }).to_string()])
}

/// A person can accept nothing that the list lacks (case 10): nothing is written, and whoever answers for the list reads what it lacks.
#[test]
fn what_a_lock_lacks_nobody_can_accept() {
    let digest = digest_of_it();
    for (pins, why) in [
        (String::new(), "it was not vetted"),
        (named("jotter", &"0".repeat(64)), "it has other bytes than those that were vetted"),
        (named("other", &digest), "it was vetted under another name, `other`"),
        (format!("[lock.plugin.jotter]\nsha256 = \"{digest}\"\n"), "it was not vetted"),
    ] {
        let locked = Locked::by(&[&format!("{PINS}{pins}")]);
        let (exit, said) = add(&locked);
        assert_eq!(exit, 5, "{said}");
        assert!(said.contains(why) && said.contains(MESSAGE), "{said}");
        let tells = said.contains(&format!("`[lock.upstream.jotter]`, `sha256 = \"{digest}\"`"));
        assert_eq!(tells, !pins.contains("other"), "{said}");
        assert!(!locked.program.path("config/toolcrib/upstream").exists(), "{said}");
        let settings = std::fs::read_to_string(locked.program.path("config/toolcrib/toolcrib.toml"));
        assert!(!settings.unwrap_or_default().contains("jotter"), "{said}");
    }
}

/// What the list has is there, and is gone when it is taken back, or when the list has another one; `list` says so.
#[test]
fn what_a_lock_names_is_there_as_it_was_accepted() {
    let digest = digest_of_it();
    let locked = Locked::by(&[&format!("{PINS}{}", named("jotter", &digest))]);
    let (exit, said) = add(&locked);
    assert_eq!(exit, 0, "{said}");
    let (exit, envelope) = echo(&locked);
    assert_eq!((exit, &envelope["result"]), (0, &json!("here")), "{envelope}");
    assert!(json_of(&locked.run(&["upstream", "list", "--json"]))[0]["problem"].is_null());
    for (pins, expected) in [
        (String::new(), "not_vetted"),
        (format!("{}[lock.revoked]\nplugins = [{digest:?}]\n", named("jotter", &digest)), "revoked"),
    ] {
        locked.program.write("policy0.toml", format!("{PINS}{pins}"));
        let (exit, envelope) = echo(&locked);
        assert_eq!((exit, &envelope["error"]["data"]["code"]), (5, &json!(expected)), "{envelope}");
        assert!(!locked.tools().iter().any(|tool| tool.starts_with("jotter")));
        let listed = json_of(&locked.run(&["upstream", "list", "--json"]));
        assert!(listed[0]["problem"].as_str().is_some_and(|why| why.contains("was refused")), "{listed}");
        let doctor = stdout(&locked.run(&["doctor"]));
        assert!(doctor.contains("`jotter` cannot be used"), "{doctor}");
    }
}

/// Nobody signs statements about servers: with signed lists the policy itself names them.
#[test]
fn where_plugins_are_signed_a_server_is_named_by_the_policy() {
    for (pins, is_there) in [(String::new(), false), (named("jotter", &digest_of_it()), true)] {
        let Some(deployment) = Deployment::new(&pins) else { skip!("there is no `minisign`") };
        let (exit, said) = add(&deployment.locked);
        assert_eq!(exit, if is_there { 0 } else { 5 }, "{said}");
        if is_there {
            assert_eq!(echo(&deployment.locked).0, 0);
        }
    }
}
