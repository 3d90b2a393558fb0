//! What the person writes is the person's.

use super::{AT_REST, BEFORE, DEEP, TRACKED, assert_nothing_held, mode, persons, text};
use crate::rig::{BOTH, Rig, Via};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

/// What the person writes while no command runs is theirs.
#[test]
fn what_the_person_writes_is_not_touched() {
    for via in BOTH {
        let mut rig = Rig::of(persons(via), &[]);
        rig.run("true");
        for round in 0..3 {
            // A pane has no event for this.
            std::thread::sleep(AT_REST);
            let new = format!("new-{round}/.envrc");
            let texts = [
                (&*new, "new\n"),
                (TRACKED, "changed by the person\n"),
                (DEEP, "so is this\n"),
                ("CLAUDE.md", "words\n"),
            ];
            let texts = texts.map(|(name, text)| (name, format!("{round} {text}")));
            for (name, text) in &texts {
                rig.program.write(&format!("work/{name}"), text);
            }
            let notices = rig.notices("true");
            for (name, text) in &texts {
                assert_eq!(&self::text(&rig, name), text, "{via:?} {round} {name}: {notices}");
            }
            assert_nothing_held(&rig, &format!("{via:?} {round}: {notices}"));
        }
        // What the person wrote is what is put back from now on.
        rig.run(&format!("echo changed >{DEEP}"));
        assert_eq!(fs::read_to_string(rig.work(DEEP)).expect("a file"), "2 so is this\n", "{via:?}");
    }
}

/// The kernel tells of a mode and of a file that stays open later than of others, or not at all.
#[test]
fn what_the_person_changes_without_closing_it_is_not_touched() {
    let mut failed = Vec::new();
    for via in BOTH {
        for file in [TRACKED, DEEP] {
            let mut rig = Rig::of(persons(via), &[]);
            rig.run("true");
            std::thread::sleep(AT_REST);
            let mut open = fs::File::options().append(true).open(rig.work(file)).expect("a file");
            open.write_all(b"more\n").expect("it is written");
            fs::set_permissions(rig.work(file), Permissions::from_mode(0o600)).expect("a mode");
            std::thread::sleep(AT_REST);
            let notices = rig.notices("true");
            if text(&rig, file) != format!("{BEFORE}more\n") || mode(&rig.work(file)) != 0o600 || !rig.held().is_empty()
            {
                failed.push(format!("{via:?} {file}: {:?} {:o}: {notices}", text(&rig, file), mode(&rig.work(file))));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// While a command is at work, nobody can tell whose a file is: one that is the person's may be held, and is not lost.
#[test]
fn what_the_person_writes_while_commands_run_is_not_lost() {
    let mut rig = Rig::of(persons(Via::Pane), &[]);
    rig.run("(while [ ! -e end ]; do :; done) & true");
    for round in 0..5 {
        let texts = [".envrc", TRACKED, DEEP, "CLAUDE.md"].map(|name| (name, format!("{name} {round}\n")));
        for (name, text) in &texts {
            rig.program.write(&format!("work/{name}"), text);
        }
        rig.run("true");
        let held = rig.held();
        for (name, text) in &texts {
            let is_here = fs::read_to_string(rig.work(name)).is_ok_and(|found| found == *text);
            assert!(is_here || held.iter().any(|held| held["text"] == *text.as_str()), "{round} {name}: {held:?}");
        }
    }
    rig.program.write("work/end", "");
}
