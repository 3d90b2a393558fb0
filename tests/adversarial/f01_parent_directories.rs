//! F-01: a guest climbs out of its directory by `..`.
//! Outcome: `denied` for reading and writing, whatever stands before the dots and however many there are.
//! Switched off: the list of granted directories (`access/lib.rs`, `check_confined`): the test failed at its first path outside.

use crate::files::{DENIED, confined, read, tree, write};

#[test]
fn no_number_of_parents_leads_out_of_the_grant() {
    let mut siege = confined();
    siege.program.write("work/a/b/inside", "inside");
    assert_eq!(read(&mut siege, "a/b/../../a/./b/inside"), "Ok(\"inside\")");
    let (before, root) = (tree(siege.program.root()), siege.program.root().display().to_string());
    let beyond = format!("{}{}", "../".repeat(200), root.trim_start_matches('/'));
    for to_outside in [
        "../outside",
        "a/../../outside",
        "a/b/../../../outside",
        "./.././outside",
        "..//outside/",
        "a//..//../outside",
        "../work/../outside",
        "../work/a/../../outside",
        "~/../outside",
        &format!("{beyond}/outside"),
    ] {
        for leaf in ["secret", "new", "../outside/secret"] {
            let path = format!("{to_outside}/{leaf}");
            assert_eq!(read(&mut siege, &path), DENIED, "read {path}");
            assert_eq!(write(&mut siege, &path), DENIED, "write {path}");
        }
    }
    // A directory that is not there does not make the dots behind it harmless text.
    assert_ne!(&read(&mut siege, "missing/../../outside/secret")[..2], "Ok");
    assert_ne!(&write(&mut siege, "missing/../../outside/secret")[..2], "Ok");
    let mut after = tree(siege.program.root());
    after.retain(|path, _| before.contains_key(path) || !path.starts_with(siege.program.path("state")));
    after.insert(
        siege.program.path("state/toolcrib/audit.jsonl"),
        before[&siege.program.path("state/toolcrib/audit.jsonl")].clone(),
    );
    assert_eq!(after, before);
    siege.lift();
}
