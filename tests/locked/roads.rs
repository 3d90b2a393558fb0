//! Every road by which a user, a project or an environment could add a plugin to a locked machine, or drop the lock.

use crate::rig::{Locked, word_count};
use serde_json::json;
use std::fs;
use toolcrib_tests::outcome::{code, stderr, with_a_section_more};

const NONE: &str = "[lock]\nplugins = \"pins\"\n";
const CALL: [&str; 2] = ["word_count", "path=a.txt"];

/// L-36: nothing is written.
#[test]
fn what_was_not_vetted_is_neither_added_nor_allowed() {
    let locked = Locked::by(&[NONE]);
    let file = locked.program.path("word_count.wasm").display().to_string();
    locked.program.write("word_count.wasm", word_count());
    for arguments in [&["plugin", "add", &file][..], &["plugin", "allow", &file, "--read", "."]] {
        let output = locked.run(arguments);
        assert_eq!(code(&output), 5, "{}", stderr(&output));
        assert!(stderr(&output).contains("it was not vetted") && stderr(&output).contains(&locked.line(2)));
    }
    assert!(!locked.program.path("data/toolcrib/plugins/word_count.wasm").exists());
    assert!(!locked.program.path("config/toolcrib/toolcrib.toml").exists());
}

/// L-33 to L-35 and L-37: flags, variables, other directories and a trusted project change nothing.
#[test]
fn no_flag_variable_or_file_of_a_user_opens_a_lock() {
    let locked = Locked::by(&[NONE]);
    let file = locked.installed("word_count", &word_count());
    let directory = std::path::Path::new(&file).parent().unwrap().display().to_string();
    let digest = toolcrib_tests::digest("word_count");
    let set = format!("plugin.word_count.sha256={digest}");
    for flags in
        [&["--yes"][..], &["--plugins", &directory], &["--set", "plugin.word_count.enabled=true"], &["--set", &set]]
    {
        let (exit, envelope) = locked.call(&[flags, &CALL].concat());
        assert_eq!((exit, &envelope["error"]["data"]["code"]), (5, &json!("not_vetted")), "{flags:?}: {envelope}");
    }
    let data = locked.program.path("data").display().to_string();
    for variables in [&[("TOOLCRIB_LOCK_PLUGINS", "off")][..], &[("XDG_DATA_HOME", &data), ("HOME", &data)]] {
        let mut command = locked.program.command(&locked.under(&["call", "word_count", "path=a.txt"]));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(code(&output), 5, "{variables:?}: {}", stderr(&output));
    }
    // A project that the user trusts is one more layer of settings.
    fs::write(locked.program.path("work/toolcrib.toml"), "[plugin.word_count]\nshell = true\n").unwrap();
    assert_eq!(code(&locked.run(&["trust"])), 0);
    assert_eq!(locked.call(&CALL).0, 5);
    // And no file of settings has a lock, to open or to close.
    fs::write(locked.program.path("work/toolcrib.toml"), "[lock]\nplugins = \"off\"\n").unwrap();
    let output = locked.run(&["tools"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("toolcrib.toml:1:2: `lock` is not a setting"), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_swapped_after_it_was_admitted_is_judged_anew() {
    let pinned = format!("{NONE}[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n");
    let locked = Locked::by(&[&pinned]);
    let file = locked.installed("word_count", &word_count());
    assert_eq!(locked.call(&CALL).0, 0);
    fs::write(file, with_a_section_more(word_count())).unwrap();
    assert_eq!(locked.call(&CALL).1["error"]["data"]["code"], "other_bytes");
}
