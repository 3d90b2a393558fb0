//! F-12: the last part of a path is `.`, `..`, nothing, a slash, or holds a NUL.
//! Outcome: refused before anything is made or replaced.
//! Switched off: refusing a slash at the end of a new name (`backend/files.rs`, `resolve_new`): the test failed at `new/`.

use crate::files::{confined, read, tree, write};

#[test]
fn a_path_that_ends_in_no_name_makes_nothing() {
    let mut siege = confined();
    siege.program.write("work/dir/inside", "inside");
    siege.program.write("work/file", "old");
    let before = tree(&siege.program.path("work"));
    for path in [
        "",
        " ",
        "\t\n",
        ".",
        "..",
        "/",
        "//",
        "./",
        "../",
        "./.",
        "dir",
        "dir/",
        "dir/.",
        "dir/..",
        "dir/../",
        "file/",
        "file/.",
        "file/..",
        "file/x",
        "new/",
        "new/.",
        "new/./",
        "new/..",
        "new/x",
        "dir/new/",
        "dir/new/.",
        "\0",
        "new\0",
        "file\0x",
        "dir/\0",
        "~",
        "~/",
        "~/.",
        "dir/inside/../../new/.",
    ] {
        let saw = write(&mut siege, path);
        assert!(saw.starts_with("Err("), "write {path:?}: {saw}");
        assert_eq!(tree(&siege.program.path("work")), before, "{path:?}");
        let saw = read(&mut siege, path);
        assert!(saw.starts_with("Err("), "read {path:?}: {saw}");
    }
    // Names that only look like those.
    for name in ["...", ". ", "-", "..new", " file"] {
        assert_eq!(write(&mut siege, name), "Ok(7)", "{name:?}");
        assert_eq!(read(&mut siege, name), "Ok(\"planted\")", "{name:?}");
    }
    siege.lift();
}
