//! What goes on in a pane while no host runs: the next host looks at what came of it.

use super::{AT_REST, BEFORE, DEEP, TRACKED, assert_nothing_held, held_at, is_there, persons, text};
use crate::rig::{BOTH, Rig, Via};
use std::fs;
use toolcrib_tests::eventually;

/// Ends the host, and begins another one once something has happened.
fn another(rig: Rig, meanwhile: impl FnOnce(&Rig)) -> Rig {
    let Rig { mut client, program } = rig;
    client.kill();
    client.ended(toolcrib_tests::PATIENCE).expect("it has ended");
    let rig = Rig { client, program };
    meanwhile(&rig);
    Rig::of(rig.program, &[])
}

#[test]
fn what_a_pane_makes_while_no_host_runs_is_held() {
    for waits in ["while [ ! -e go ]; do sleep 0.02; done", "read x <fifo", "while [ ! -e go ]; do :; done"] {
        let mut rig = Rig::of(persons(Via::Pane), &[]);
        rig.run("mkfifo fifo");
        let made = format!(
            "echo made >.envrc; echo changed >{TRACKED}; echo changed >plain; mv plain {DEEP}; mkdir -p a/.claude; echo x >a/.claude/s"
        );
        rig.run(&format!("({waits}; {made}; touch gone) & true"));
        std::thread::sleep(AT_REST);
        let mut rig = another(rig, |rig| {
            fs::write(rig.work("go"), "").expect("a file");
            if waits.contains("fifo") {
                fs::write(rig.work("fifo"), "go\n").expect("it is read");
            }
            eventually("it was made", || rig.work("gone").exists());
        });
        let notices = rig.notices("true");
        for name in [".envrc", "a/.claude/s"] {
            assert!(!is_there(&rig.work(name)) && held_at(&rig, name).len() == 1, "{waits} {name}: {notices}");
            assert!(notices.contains(&format!("`{name}` was held back")), "{waits}: {notices}");
        }
        for name in [TRACKED, DEEP] {
            assert_eq!(text(&rig, name), BEFORE, "{waits}: {notices}");
            assert_eq!(held_at(&rig, name).len(), 1, "{waits} {name}: {notices}");
        }
    }
}

/// Where all of a pane slept, or there was none, it was the person.
#[test]
fn what_the_person_writes_while_no_host_runs_is_not_touched() {
    for via in BOTH {
        let mut rig = Rig::of(persons(via), &[]);
        rig.run("true");
        for round in 0..3 {
            std::thread::sleep(AT_REST);
            let own = format!("the person's {round}\n");
            rig = another(rig, |rig| {
                for name in [".envrc", TRACKED, DEEP, "new/.mcp.json"] {
                    rig.program.write(&format!("work/{name}"), &own);
                }
            });
            let notices = rig.notices("true");
            for name in [".envrc", TRACKED, DEEP, "new/.mcp.json"] {
                assert_eq!(text(&rig, name), own, "{via:?} {round} {name}: {notices}");
            }
            assert_nothing_held(&rig, &format!("{via:?} {round}: {notices}"));
            if round == 1 {
                rig.run("true");
            }
        }
    }
}

/// What a host knew and a person kept is no question for the next.
#[test]
fn what_was_kept_is_not_held_by_the_next_host() {
    let mut rig = Rig::of(persons(Via::Pane), &[]);
    rig.run("(while [ ! -e go ]; do sleep 0.02; done) & echo made >.mcp.json");
    assert!(rig.decide("keep", &rig.only_held()).status.success());
    let mut rig = another(rig, |_| {});
    let notices = rig.notices("true");
    assert_eq!(text(&rig, ".mcp.json"), "made\n", "{notices}");
    assert_nothing_held(&rig, &notices);
    rig.program.write("work/go", "");
}
