//! F-14: a guest that may only read opens files for writing, which truncates them before anybody looks (GHSA-2r75).
//! Outcome: `denied`; length and content stay, and nothing new appears.
//! Switched off: `check_confined` (`access/lib.rs`): the file was replaced and the test failed.

use crate::files::{DENIED, begun, read, tree, write};
use toolcrib_tests::Siege;

#[test]
fn a_grant_to_read_truncates_and_makes_nothing() {
    let prepared = Siege::with("hostile").allowing("hostile").set("plugin.hostile.files.write=[]");
    let mut siege = begun(prepared);
    siege.program.write("work/file", "old");
    siege.program.write("work/dir/file", "old");
    let before = tree(&siege.program.path("work"));
    for path in ["file", "dir/file", "./dir/../file", "new", "dir/new"] {
        assert_eq!(write(&mut siege, path), DENIED, "{path}");
    }
    assert_eq!(tree(&siege.program.path("work")), before);
    assert_eq!((read(&mut siege, "file"), read(&mut siege, "dir/file")), ("Ok(\"old\")".into(), "Ok(\"old\")".into()));
    siege.lift();
}

#[test]
fn a_grant_to_write_reads_nothing() {
    let mut siege = begun(Siege::with("hostile").allowing("hostile").set("plugin.hostile.files.read=[]"));
    siege.program.write("work/file", "old");
    for path in ["file", "../outside/secret"] {
        assert_eq!(read(&mut siege, path), DENIED, "{path}");
    }
    assert_eq!(write(&mut siege, "file"), "Ok(7)");
    siege.lift();
}
