//! `directories`: where plugins are read from, in place of what a user names.

use crate::rig::{Locked, word_count};
use toolcrib_tests::outcome::stderr;

/// L-34: neither the user's own directory nor one of `--plugins` is read, and it is said.
#[test]
fn plugins_come_from_the_policys_directories_alone() {
    let locked = Locked::by(&[]);
    let vetted = locked.program.path("vetted").display().to_string();
    let policy = format!("[lock]\nplugins = \"off\"\ndirectories = [\"{vetted}\"]\n");
    let under = Locked::by(&[&policy]);
    for file in ["data/toolcrib/plugins/mine.wasm", "given/yours.wasm"] {
        under.program.write(file, word_count());
    }
    let given = under.program.path("given").display().to_string();
    assert!(!under.tools().contains(&"word_count".to_owned()));
    let output = under.run(&["--plugins", &given, "tools"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("word_count"));
    for unread in [given, under.program.path("data/toolcrib/plugins").display().to_string()] {
        let notice = format!("`{unread}` is not read: the policy names the directories of plugins ({})", under.line(2));
        assert!(stderr(&output).contains(&notice), "{}", stderr(&output));
    }
    locked.program.write("vetted/word_count.wasm", word_count());
    assert!(under.tools().contains(&"word_count".to_owned()));
}

/// Two lists leave what is in both.
#[test]
fn a_second_list_of_directories_adds_none() {
    let place = Locked::by(&[]);
    place.program.write("one/word_count.wasm", word_count());
    let list = |names: &[&str]| {
        let paths: Vec<_> = names.iter().map(|name| place.program.path(name).display().to_string()).collect();
        format!("[lock]\nplugins = \"off\"\ndirectories = {paths:?}\n")
    };
    let has_it = |texts: &[&str]| Locked::by(texts).tools().contains(&"word_count".to_owned());
    assert!(has_it(&[&list(&["one"]), &list(&["two", "one"])]));
    assert!(!has_it(&[&list(&["one"]), &list(&["two"])]));
    assert!(!has_it(&[&list(&[]), &list(&["one"])]));
}
