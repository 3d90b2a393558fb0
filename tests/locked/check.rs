//! `toolcrib policy check`: how far a machine is locked, and what the locks refuse of what is installed.

use crate::rig::{Locked, word_count};
use serde_json::{Value, json};
use toolcrib_tests::outcome::{code, stdout, with_a_section_more};

fn check(locked: &Locked) -> (i32, Value) {
    let output = locked.run(&["policy", "check", "--json"]);
    (code(&output), serde_json::from_str(&stdout(&output)).expect("JSON"))
}

#[test]
fn a_machine_without_a_lock_says_so() {
    let (code, seen) = check(&Locked::by(&["[tools]\nshell_enabled = false\n"]));
    assert_eq!((code, &seen["level"], &seen["locks"], &seen["refused"]), (0, &json!(0), &json!([]), &json!([])));
    assert_eq!(seen["why"], "no policy has a lock: every plugin of a user is there");
}

#[test]
fn what_is_refused_and_what_is_missing_is_named() {
    let pins = "[lock]\nplugins = \"pins\"\nbuiltin = [\"time\"]\n[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n\
                [lock.plugin.absent]\nsha256 = \"WORD_COUNT\"\n";
    let locked = Locked::by(&[pins]);
    locked.program.write("data/toolcrib/plugins/word_count.wasm", with_a_section_more(word_count()));
    let (exit, seen) = check(&locked);
    assert_eq!((exit, &seen["level"], &seen["missing"]), (1, &json!(0), &json!(["absent"])));
    assert!(seen["why"].as_str().unwrap().contains("`--policy`"), "{seen}");
    assert_eq!(seen["locks"][0]["place"], locked.line(2));
    assert_eq!(seen["locks"][0]["what"], "plugins: 2 by their bytes; built in: time");
    let refused = seen["refused"].as_array().unwrap();
    assert_eq!(
        (refused.len(), &refused[0]["code"], &refused[0]["name"]),
        (1, &json!("other_bytes"), &json!("word_count"))
    );

    locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    locked.program.write("policy0.toml", pins.replace("WORD_COUNT", &toolcrib_tests::digest("word_count")));
    let output = locked.run(&["policy", "check"]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    assert!(stdout(&output).contains("level 0: "), "{}", stdout(&output));
    assert!(stdout(&output).contains("absent: vetted, and in no directory of plugins"), "{}", stdout(&output));
}

/// What cannot be known before a plugin was asked.
#[test]
fn other_definitions_are_found_by_asking() {
    let policy = format!(
        "[lock]\nplugins = \"pins\"\n[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\ndefinitions_sha256 = \"{}\"\n",
        "0".repeat(64)
    );
    let locked = Locked::by(&[&policy]);
    locked.program.write("data/toolcrib/plugins/word_count.wasm", word_count());
    let (exit, seen) = check(&locked);
    assert_eq!((exit, &seen["refused"][0]["code"]), (1, &json!("definitions_changed")), "{seen}");
}

/// `plugin check` runs nothing that a lock keeps away, and does not tell how to add it.
#[test]
fn a_component_that_a_lock_refuses_is_not_run_to_be_checked() {
    let locked = Locked::by(&["[lock]\nplugins = \"pins\"\nmessage = \"MESSAGE\"\n"]);
    locked.program.write("work/word_count.wasm", word_count());
    let code_of = || std::fs::read_dir(locked.program.path("state/toolcrib/code")).map_or(0, |entries| entries.count());
    let before = code_of();
    let output = locked.run(&["plugin", "check", "word_count.wasm", "--json"]);
    let seen: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((code(&output), &seen["ok"]), (1, &json!(false)), "{seen}");
    let checks = seen["checks"].as_array().expect("a list");
    let lock = checks.last().expect("a finding");
    assert_eq!((&lock["verdict"], &lock["check"]), (&json!("bad"), &json!("lock")), "{seen}");
    assert!(lock["found"].as_str().is_some_and(|found| found.contains("word_count")), "{seen}");
    assert!(
        checks.iter().all(|check| !["load", "definitions"].contains(&check["check"].as_str().unwrap_or(""))),
        "{seen}"
    );
    assert_eq!(code_of(), before, "it was compiled");
    assert!(!stdout(&locked.run(&["plugin", "check", "word_count.wasm"])).contains("plugin add"));
    // Once it is vetted, it is checked as ever.
    let pinned = Locked::by(&["[lock]\nplugins = \"pins\"\n[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n"]);
    pinned.program.write("work/word_count.wasm", word_count());
    let output = pinned.run(&["plugin", "check", "word_count.wasm"]);
    assert!(stdout(&output).contains("definitions"), "{}", stdout(&output));
}

/// A file that was vetted and was changed so that it is no plugin any more is there, and broken: that is not what is missing.
#[test]
fn a_vetted_file_that_is_broken_is_named_with_its_fault() {
    let locked = Locked::by(&["[lock]\nplugins = \"pins\"\n[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n"]);
    let file = "data/toolcrib/plugins/word_count.wasm";
    locked.program.write(file, [word_count(), vec![0]].concat());
    let (exit, seen) = check(&locked);
    assert_eq!((exit, &seen["missing"], &seen["broken"][0]["name"]), (1, &json!([]), &json!("word_count")), "{seen}");
    let place = locked.program.path(file).display().to_string();
    let said = stdout(&locked.run(&["policy", "check"]));
    assert!(said.contains(&format!("{place}: vetted as `word_count`, and cannot be used: ")), "{said}");
    locked.program.write(file, word_count());
    assert_eq!(check(&locked).0, 0);
}
