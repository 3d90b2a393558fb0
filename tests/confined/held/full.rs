//! A shelf that is full: what has no place there stays out of its place all the same, is told, and is not lost.

use super::{BEFORE, TRACKED, held_at, is_there, persons, text};
use crate::rig::{BOTH, Rig, program};
use std::fs;
use std::path::PathBuf;

/// Takes all room that is left.
fn fill(rig: &Rig) {
    let shelf = rig.program.path("state/toolcrib/held");
    for number in 0..1000 {
        fs::write(shelf.join(format!("other-{number}")), "{}").expect("a file");
    }
}

/// What lies in a directory under names that are given there.
fn beside(rig: &Rig, directory: &str) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(rig.work(directory)).expect("a directory").flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".held-"));
    entries.filter(is_one).map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect()
}

#[test]
fn what_has_no_room_on_the_shelf_does_not_act_and_is_told() {
    for via in BOTH {
        let mut rig = Rig::of(persons(via), &[]);
        rig.run("mkdir a; echo made >a/.mcp.json");
        assert_eq!(held_at(&rig, "a/.mcp.json").len(), 1);
        fill(&rig);
        let notices =
            rig.notices("for d in 1 2 3 4 5; do mkdir -p $d/.roo/rules; echo made $d >$d/.roo/rules/a.md; done");
        for number in 1..=5 {
            let directory = format!("{number}/.roo/rules");
            assert!(!is_there(&rig.work(&directory).join("a.md")), "{via:?} {notices}");
            let lies = beside(&rig, &directory);
            // Roo reads all in this directory but for a few ends of names.
            let [(path, text)] = &lies[..] else { panic!("{via:?} {lies:?} {notices}") };
            assert!(
                *text == format!("made {number}\n") && path.extension().is_some_and(|end| end == "tmp"),
                "{path:?}"
            );
        }
        assert!(notices.contains("`1/.roo/rules/a.md` could not be held back"), "{via:?} {notices}");
        assert!(
            notices.contains("lies beside its place as `.held-") && notices.contains("so it was with 2 more"),
            "{notices}"
        );
        // What is held already takes no room.
        let notices = rig.notices("echo made >a/.mcp.json");
        assert!(notices.contains("toolcrib files held keep") && beside(&rig, "a").is_empty(), "{via:?} {notices}");
        let notices = rig.notices(&format!("echo changed >{TRACKED}"));
        assert_eq!(text(&rig, TRACKED), BEFORE, "{via:?} {notices}");
        assert_eq!(beside(&rig, ".vscode").len(), 1, "{via:?} {notices}");
        let notices = rig.notices("echo made >.git/hooks/pre-commit");
        assert!(notices.contains("was not kept") && notices.contains("things are held already"), "{via:?} {notices}");
        rig.run("true");
        assert!(!is_there(&rig.work(".git/hooks/pre-commit")) && !is_there(&rig.work("1/.roo/rules/a.md")), "{via:?}");
    }
}

/// The next host finds it as it was left.
#[test]
fn what_lies_beside_its_place_is_not_put_back_by_the_next_host() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        rig.run("echo made >.mcp.json");
        fill(&rig);
        rig.run("echo made >.envrc");
        let Rig { client, program } = rig;
        drop(client);
        let mut rig = Rig::of(program, &[]);
        rig.run("true");
        assert!(!is_there(&rig.work(".envrc")) && beside(&rig, "").len() == 1, "{via:?}");
    }
}

#[test]
fn room_is_made_by_what_a_person_drops() {
    let mut rig = Rig::of(program(crate::rig::Via::Process), &[]);
    rig.run("echo made >.mcp.json");
    let held = rig.only_held();
    fill(&rig);
    for number in 1..1000 {
        fs::remove_file(rig.program.path(&format!("state/toolcrib/held/other-{number}"))).expect("a file");
    }
    rig.decide("drop", &held);
    rig.run("echo made >.envrc");
    assert_eq!(held_at(&rig, ".envrc").len(), 1);
}
