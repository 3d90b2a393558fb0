//! F-03: links within the directory of a guest lead out of it: relative, absolute, in chains, in circles, to nowhere.
//! Outcome: `denied`; a circle, and a link to what is not there, fail without being followed.
//! Switched off: `check_confined` (`access/lib.rs`): the secret came through the first link and the test failed.

use crate::files::{DENIED, confined, read, tree, write};
use std::os::unix::fs::symlink;

#[test]
fn no_link_leads_out_of_the_grant_however_long_the_chain() {
    let mut siege = confined();
    let (work, outside) = (siege.program.path("work"), siege.program.path("outside"));
    let link = |target: &str, name: &str| symlink(target, work.join(name)).expect("a link");
    siege.program.write("work/inside", "inside");
    link("inside", "good");
    link("../outside/secret", "relative");
    link(&outside.join("secret").display().to_string(), "absolute");
    link("../outside", "directory");
    link("../outside/new", "dangling");
    link("..", "up");
    for (name, length) in [("short", 39), ("long", 41)] {
        link("../outside/secret", &format!("{name}0"));
        (1..length).for_each(|step| link(&format!("{name}{}", step - 1), &format!("{name}{step}")));
    }
    link("circle2", "circle1");
    link("circle1", "circle2");
    link("self", "self");
    let (before, planted) = (tree(&outside), tree(&work));
    assert_eq!(read(&mut siege, "good"), "Ok(\"inside\")");
    for path in
        ["relative", "absolute", "short38", "directory/secret", "up/outside/secret", "directory/../outside/secret"]
    {
        assert_eq!(read(&mut siege, path), DENIED, "read {path}");
        assert_eq!(write(&mut siege, path), DENIED, "write {path}");
    }
    for path in ["directory/new", "up/new", "up/outside/new"] {
        assert_eq!(write(&mut siege, path), DENIED, "write {path}");
    }
    for path in ["dangling", "long40", "circle1", "self", "circle1/x", "self/x"] {
        for saw in [read(&mut siege, path), write(&mut siege, path)] {
            assert_eq!(saw, "Err(\"execution_failed\")", "{path}");
        }
    }
    assert_eq!((tree(&outside), tree(&work)), (before, planted));
    siege.lift();
}
