//! F-04: a slash or a dot behind the name of a link makes the system follow it where the name alone would not.
//! Outcome: what lies outside stays `denied`, and nothing is made or replaced through such a name.
//! Switched off: `check_confined` (`access/lib.rs`): the test failed at the first link with a slash.

use crate::files::{confined, read, tree, write};
use std::os::unix::fs::symlink;

#[test]
fn a_slash_behind_a_link_follows_it_nowhere() {
    let mut siege = confined();
    let (work, outside) = (siege.program.path("work"), siege.program.path("outside"));
    siege.program.write("work/dir/inside", "inside");
    for (target, name) in [
        ("../outside", "out"),
        ("../outside/secret", "leaf"),
        ("../outside/new", "dangling"),
        ("../../outside", "dir/out"),
        ("../../outside/secret", "dir/leaf"),
        ("../outside/", "slashed"),
    ] {
        symlink(target, work.join(name)).expect("a link");
    }
    let (before, planted) = (tree(&outside), tree(&work));
    for name in ["out", "leaf", "dangling", "dir/out", "dir/leaf", "slashed"] {
        for end in
            ["/", "//", "/.", "/./", "/secret", "/secret/", "/./secret", "//secret", "/new", "/../outside/secret"]
        {
            let path = format!("{name}{end}");
            for saw in [read(&mut siege, &path), write(&mut siege, &path)] {
                assert!(saw.starts_with("Err("), "{path}: {saw}");
            }
        }
    }
    assert_eq!((tree(&outside), tree(&work)), (before, planted));
    siege.lift();
}
