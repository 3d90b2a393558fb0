//! F-02: a guest names an absolute path, or one whose text begins like that of its directory.
//! Outcome: `denied` but where the path lies in the granted directory by whole components.
//! Switched off: `check_confined` (`access/lib.rs`): the neighbours of the directory were read and the test failed.

use crate::files::{DENIED, SECRET, confined, read, tree, write};

#[test]
fn an_absolute_path_counts_by_its_components_and_not_by_its_text() {
    let mut siege = confined();
    let root = siege.program.root().display().to_string();
    siege.program.write("work/inside", "inside");
    for neighbour in ["work-evil/secret", "workshop/secret", "wor/secret", "WORK/secret", "work /secret"] {
        siege.program.write(neighbour, SECRET);
    }
    let name = "work";
    for path in [
        format!("{root}/{name}/inside"),
        format!("//{root}//{name}/./inside"),
        format!("{root}/{name}/../{name}/inside"),
    ] {
        assert_eq!(read(&mut siege, &path), "Ok(\"inside\")", "{path}");
    }
    let outside = tree(siege.program.root());
    for path in [
        "work-evil/secret",
        "workshop/secret",
        "wor/secret",
        "WORK/secret",
        "work /secret",
        "work-new",
        "outside/secret",
        "work/../outside/secret",
        "home/../outside/secret",
    ] {
        for path in [format!("{root}/{path}"), format!("//{root}/{path}"), format!("/.//{root}/{path}")] {
            assert_eq!(read(&mut siege, &path), DENIED, "read {path}");
            assert_eq!(write(&mut siege, &path), DENIED, "write {path}");
        }
    }
    for path in ["/etc/passwd", "/", "//", "/tmp", "/.", "/..", "~", "~/.bashrc"] {
        assert_eq!(read(&mut siege, path), DENIED, "read {path}");
        assert_eq!(write(&mut siege, path), DENIED, "write {path}");
    }
    // What other systems take for absolute is a name here, and nothing of that name is there.
    for path in
        [format!("file://{root}/outside/secret"), "C:\\outside\\secret".into(), format!("\\\\?\\{root}\\outside")]
    {
        assert_ne!(&read(&mut siege, &path)[..2], "Ok", "read {path}");
    }
    let after = tree(siege.program.root());
    for (path, content) in outside.iter().filter(|(path, _)| !path.starts_with(siege.program.path("state"))) {
        assert_eq!(after.get(path), Some(content), "{}", path.display());
    }
    siege.lift();
}
