//! What lies in the state directory of a locked machine, where a user's own commands can write: it is checked, never believed.

use crate::rig::{Locked, word_count};
use crate::signed::Deployment;
use std::fs;
use std::path::PathBuf;
use toolcrib_tests::outcome::{code, stdout};
use toolcrib_tests::shell::command;
use toolcrib_tests::{digest, guest, skip};

const CALL: [&str; 2] = ["word_count", "path=a.txt"];

/// A machine with two vetted plugins, each of which was called, and the files that were kept of them.
fn warm() -> (Locked, Vec<(PathBuf, Vec<u8>)>) {
    let pin = |name: &str| format!("[lock.plugin.{name}]\nsha256 = \"{}\"\n", digest(name));
    let pins = [pin("word_count"), pin("hostile")].concat();
    let locked = Locked::by(&[&format!("[lock]\nplugins = \"pins\"\nbuiltin = [\"run_shell\"]\n{pins}")]);
    locked.installed("word_count", &word_count());
    locked.installed("hostile", &fs::read(guest("hostile")).expect("a guest that was built"));
    work(&locked);
    let kept = fs::read_dir(locked.program.path("state/toolcrib/code")).expect("compiled code");
    let of_one = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        ["word_count", "hostile"].iter().any(|plugin| name.starts_with(&digest(plugin)))
    };
    let kept = kept.map(|file| file.expect("an entry").path()).filter(of_one);
    let kept: Vec<_> = kept.map(|path| (path.clone(), fs::read(path).expect("bytes"))).collect();
    assert_eq!(kept.len(), 2);
    (locked, kept)
}

/// Both plugins are themselves.
fn work(locked: &Locked) {
    let (_, counted) = locked.call(&CALL);
    assert_eq!(counted["result"]["words"], 2, "{counted}");
    let (_, said) = locked.call(&["hostile", "{\"how\":\"say\",\"text\":\"here\"}"]);
    assert!(said["error"].is_null() && said.to_string().contains("here"), "{said}");
}

/// L-11 and L-12: definitions and compiled code that somebody changed are made anew from the bytes that were vetted.
#[test]
fn what_was_changed_in_the_cache_is_not_believed() {
    let (locked, kept) = warm();
    for (path, good) in &kept {
        for at in [0, 40, good.len() / 2, good.len() - 1] {
            let mut forged = good.clone();
            forged[at] ^= 1;
            fs::write(path, forged).expect("written");
            work(&locked);
            assert!(fs::read(path).expect("bytes") == *good, "byte {at} of {} is still changed", path.display());
        }
    }
}

/// L-13: what was kept of one plugin is not believed of another, and what a policy let in before is not in under the next.
#[test]
fn what_was_kept_of_another_plugin_or_policy_is_not_believed() {
    let (locked, kept) = warm();
    for (number, (path, _)) in kept.iter().enumerate() {
        fs::write(path, &kept[(number + 1) % kept.len()].1).expect("written");
    }
    work(&locked);
    let closed = locked.and("[lock]\nplugins = \"pins\"\n");
    let (exit, envelope) = closed.call(&CALL);
    assert_eq!((exit, envelope["error"]["data"]["code"].as_str()), (5, Some("not_vetted")), "{envelope}");
}

/// L-13: that signatures hold is kept from one start to the next, and admits nothing by itself: the bytes, the signatures and the policy of
/// the moment decide. What a command wrote there is not believed.
#[test]
fn signatures_that_were_checked_before_admit_nothing() {
    let Some(deployment) = Deployment::new("grant = \"vetted\"") else { skip!("there is no minisign") };
    let file = deployment.path("state/toolcrib/signatures");
    let kept = |signatures: usize| {
        let bytes = fs::read(&file).expect("what is kept");
        assert_eq!(bytes.len(), 32 + 32 * signatures, "a MAC, and the name of each");
        bytes
    };
    assert_eq!(deployment.outcome(), "ok");
    let good = kept(3);
    assert_eq!(deployment.outcome(), "ok");
    assert!(kept(3) == good, "nothing was checked anew");
    // A command of the user's adds to it, or takes something away.
    for forged in [[&good[..], &[0; 32]].concat(), good[..64].to_vec(), Vec::new()] {
        fs::write(&file, forged).expect("written");
        assert_eq!(deployment.outcome(), "ok");
        kept(3);
    }
    // Other bytes under the signatures of these.
    let (statement, policy) = ("plugins/word_count.vet.toml", deployment.path("policy0.toml"));
    let before = fs::read(deployment.path(statement)).expect("a statement");
    deployment.change(statement, "version = \"1\"", "version = \"2\"");
    deployment.list(&[]);
    assert_eq!(deployment.outcome(), "too_few_signatures");
    kept(4);
    fs::write(deployment.path(statement), before).expect("written");
    deployment.list(&[]);
    assert_eq!(deployment.outcome(), "ok");
    // A policy that wants more, and one that does not know a key any more.
    let text = fs::read_to_string(&policy).expect("a policy");
    for (from, to) in [("vet = 2", "vet = 3"), ("[lock.keys.bob]", "[lock.keys.bob]\nnot_after = 2020-01-01")] {
        assert!(text.contains(from));
        fs::write(&policy, text.replace(from, to)).expect("written");
        assert_eq!(deployment.outcome(), "too_few_signatures", "{to}");
    }
    fs::write(&policy, text).expect("written");
    assert_eq!(deployment.outcome(), "ok");
}

/// L-40: at level 1 a command can write the trail. It cannot make a good one of it that says something else: the lines themselves, and of
/// what was cut off a head that was noted, tell.
#[test]
fn a_command_that_edits_the_trail_is_found_out() {
    let (locked, _) = warm();
    let key = stdout(&locked.run(&["audit", "init"])).lines().next().expect("a key").to_owned();
    locked.program.write("key", key);
    locked.call(&CALL);
    let noted = stdout(&locked.run(&["audit", "show", "--head"])).trim().to_owned();
    let trail = locked.program.path("state/toolcrib/audit.jsonl").display().to_string();
    let key = locked.program.path("key").display().to_string();
    let verify = |arguments: &[&str]| {
        let output = locked.run(&[&["audit", "verify", "--json"], arguments].concat());
        (code(&output), stdout(&output))
    };
    // One that is confined does not find it.
    let confined = locked.call(&["--yes", "run_shell", &command(&format!("cat {trail}")).to_string()]).1;
    assert_eq!(confined["result"]["exit_code"], 1, "{confined}");
    let run = |text: &str| {
        let arguments = command(text).to_string();
        let (exit, envelope) = locked.call(&["--yes", "--set", "confine.mode=off", "run_shell", &arguments]);
        assert_eq!((exit, &envelope["result"]["exit_code"]), (0, &0.into()), "{envelope}");
    };
    assert_eq!(verify(&["--key", &key]).0, 0);
    let whole = fs::read(&trail).expect("a trail");
    run(&format!("sed -i s/word_count/word_cnut/ {trail}"));
    let (exit, told) = verify(&[]);
    assert!(exit == 1 && told.contains("one of them was changed"), "{told}");
    fs::write(&trail, &whole).expect("written");
    run(&format!("sed -i 4q {trail}"));
    let (exit, told) = verify(&["--since", &noted]);
    assert!(exit == 1, "{told}");
    let (exit, told) = verify(&["--key", &key]);
    assert!(exit == 1, "{told}");
}
