//! What a person says of what is held: keep it, drop it, or nothing; and that what is kept is what was held.

use super::{BEFORE, SHELL, TRACKED, assert_held, assert_nothing_held, held_at, is_there, mode, persons, text};
use crate::rig::{BOTH, Rig, Via, program, word};
use std::fs;
use std::path::Path;
use toolcrib_tests::Terminal;
use toolcrib_tests::outcome::stderr;
use toolcrib_tests::shell::command;

/// What is kept is there with its bytes and its mode, and a command may make the very same again.
#[test]
fn what_a_person_keeps_stays() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        let same = "printf 'a\\0b\\n' >plain; chmod 750 plain; mv plain a/.envrc";
        let notices = rig.notices(&format!("mkdir a; {same}"));
        assert_held(&rig, "a/.envrc", &notices, &format!("{via:?}"));
        let held = rig.only_held();
        let shown = rig.program.run(&["files", "held", "show", held["id"].as_str().expect("an id")]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains(SHELL), "{shown:?}");
        assert!(rig.decide("keep", &held).status.success());
        for text in [
            "true",
            "cat a/.envrc",
            "rm a/.envrc",
            same,
            "rm a/.envrc; printf 'a\\0b\\n' >a/.envrc; chmod 750 a/.envrc",
            "true",
        ] {
            let (status, said) = rig.run(text);
            assert_eq!(status, 0, "{via:?} {text}: {said}");
            assert_nothing_held(&rig, &format!("{via:?} {text}"));
            let is_removed = text == "rm a/.envrc";
            assert_eq!(is_there(&rig.work("a/.envrc")), !is_removed, "{via:?} {text}");
        }
        assert_eq!(fs::read(rig.work("a/.envrc")).expect("a file"), b"a\0b\n");
        assert_eq!(mode(&rig.work("a/.envrc")), 0o750);
        // The yes was about these bytes, at this place.
        let notices = rig.notices("mkdir b; cp a/.envrc b/.envrc");
        assert_held(&rig, "b/.envrc", &notices, &format!("{via:?}"));
        rig.run("echo other >a/.envrc");
        assert_eq!(held_at(&rig, "a/.envrc").len(), 1, "{via:?}");
        assert_eq!(fs::read(rig.work("a/.envrc")).expect("a file"), b"a\0b\n");
    }
}

#[test]
fn what_a_person_keeps_may_be_a_link() {
    let mut rig = Rig::new(Via::Process);
    let notices = rig.notices("mkdir a; ln -s ../elsewhere a/.envrc");
    assert_held(&rig, "a/.envrc", &notices, "a link");
    assert!(rig.decide("keep", &rig.only_held()).status.success());
    rig.run("rm a/.envrc; ln -s ../elsewhere a/.envrc");
    assert_nothing_held(&rig, "the same link");
    assert_eq!(fs::read_link(rig.work("a/.envrc")).expect("a link"), Path::new("../elsewhere"));
}

#[test]
fn what_a_person_drops_is_gone() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        rig.run("echo made >.envrc");
        assert!(rig.decide("drop", &rig.only_held()).status.success());
        rig.run("true");
        assert_nothing_held(&rig, "dropped");
        assert!(!is_there(&rig.work(".envrc")));
        let notices = rig.notices("echo made >.envrc");
        assert_held(&rig, ".envrc", &notices, "the same once more");
    }
}

/// Keeping one thing never overwrites another.
#[test]
fn keeping_fails_where_something_is_there_by_then() {
    let mut rig = Rig::new(Via::Process);
    rig.run("echo made >.envrc");
    rig.program.write("work/.envrc", "the person's\n");
    let held = rig.only_held();
    let said = stderr(&rig.decide("keep", &held));
    assert!(said.contains("something is there") && said.contains("toolcrib files held show"), "{said}");
    assert_eq!(fs::read_to_string(rig.work(".envrc")).expect("a file"), "the person's\n");
    assert_eq!(rig.only_held()["text"], "made\n");
    fs::rename(rig.work(".envrc"), rig.work("moved")).expect("a new name");
    assert!(rig.decide("keep", &held).status.success());
    assert_eq!(fs::read_to_string(rig.work(".envrc")).expect("a file"), "made\n");
}

/// Where a command has put a link in the way, nothing is written at its other end.
#[test]
fn keeping_does_not_follow_the_links_of_a_command() {
    let mut rig = Rig::new(Via::Process);
    rig.run("mkdir -p a/b; echo made >a/b/.envrc");
    let held = rig.only_held();
    let home = rig.program.path("home").canonicalize().expect("a directory");
    rig.run(&format!("rm -r a; mkdir -p {0}/b; ln -s {0} a", word(&home)));
    fs::create_dir_all(home.join("b")).expect("a directory");
    let kept = rig.decide("keep", &held);
    assert!(!is_there(&home.join("b/.envrc")), "{kept:?}");
    assert!(!kept.status.success() && rig.held().len() == 1, "{kept:?}");
}

/// Bytes that are shown alike are two things, of which none is lost.
#[test]
fn what_is_shown_alike_is_held_each_for_itself() {
    let mut rig = Rig::new(Via::Process);
    for octal in ["\\377", "\\376"] {
        rig.run(&format!("printf 'x{octal}\\n' >.envrc"));
    }
    assert_eq!(rig.held().len(), 2, "{:?}", rig.held());
}

/// Looks for two texts whose ids are the same, where an id is the first 40 bits of a digest: some million texts are enough.
const SAME_ID: &str = "import hashlib, os
path = os.path.realpath('.').encode() + b'/.envrc\\0'
start, seen = hashlib.sha256(path), {}
for number in range(8000000):
    one = start.copy()
    one.update(b'echo %d\\n' % number)
    id = one.digest()[:5]
    if id in seen:
        break
    seen[id] = number
for name, number in [('first', seen.get(id, 0)), ('second', number)]:
    open(name, 'w').write('echo %d\\n' % number)";

/// What a person reads under an id is what that id keeps: a command cannot put something else in its place.
#[test]
fn no_command_replaces_what_is_held_under_an_id() {
    let mut rig = Rig::new(Via::Process);
    fs::write(rig.work("same.py"), SAME_ID).expect("a file");
    assert_eq!(rig.run("python3 same.py").0, 0);
    rig.run("cp first .envrc");
    let read = rig.only_held();
    rig.run("cp second .envrc");
    assert!(rig.decide("keep", &read).status.success());
    assert_eq!(text(&rig, ".envrc"), read["text"].as_str().expect("text"));
}

const UNASKED: &str = "--set confine.mode=required --set confine.ask=leaving --set confine.network=none";

fn calls(text: &str) -> String {
    format!("$toolcrib {UNASKED} call run_shell {} >>out", word(command(text).to_string()))
}

fn shown(terminal: &Terminal) -> String {
    terminal.asked(1).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Ten files are one question. A yes puts them there, and the same call again does not ask.
#[test]
fn a_persons_yes_keeps_all_that_a_command_made() {
    for via in BOTH {
        let terminal = Terminal::idle(program(via));
        let text = "for i in 0 1 2 3 4 5 6 7 8 9; do mkdir -p d$i; rm -f d$i/.envrc; echo made $i >plain; mv plain d$i/.envrc; done";
        terminal.run(&format!("{}; {}", calls(text), calls(text)));
        let screen = shown(&terminal);
        assert!(screen.contains("keep 10 things that a command made"), "{via:?} {screen}");
        assert!(!terminal.has("d0/.envrc"), "it is not there while the question is open");
        terminal.press(&["y", "Enter"]);
        assert_eq!(terminal.ended(), 0, "{}", terminal.screen());
        terminal.asked(1);
        for number in 0..10 {
            let file = terminal.program.path(&format!("work/d{number}/.envrc"));
            assert_eq!(fs::read_to_string(file).expect("it is kept"), format!("made {number}\n"), "{via:?}");
        }
        let out = fs::read_to_string(terminal.program.path("work/out")).expect("results");
        assert!(out.contains("`d0/.envrc` is kept: a person said yes"), "{via:?} {out}");
    }
}

#[test]
fn a_persons_no_leaves_it_held() {
    let terminal = Terminal::idle(program(Via::Process));
    terminal.run(&calls("echo made >CLAUDE.md"));
    let screen = shown(&terminal);
    assert!(screen.contains("keep `CLAUDE.md`, which a command made") && screen.contains("made"), "{screen}");
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    assert!(!terminal.has("CLAUDE.md"));
    let listed = terminal.program.run(&["files", "held", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("CLAUDE.md"), "{listed:?}");
}

/// A yes to a changed file replaces what was there before.
#[test]
fn a_persons_yes_keeps_a_change() {
    let program = persons(Via::Process);
    let work = program.path("work");
    let terminal = Terminal::idle(program);
    terminal.run(&calls(&format!("echo changed >{TRACKED}")));
    shown(&terminal);
    assert_eq!(fs::read_to_string(work.join(TRACKED)).expect("a file"), BEFORE, "while the question is open");
    terminal.press(&["y", "Enter"]);
    assert_eq!(terminal.ended(), 0);
    let out = fs::read_to_string(work.join("out")).expect("a result");
    assert_eq!(fs::read_to_string(work.join(TRACKED)).expect("a file"), "changed\n", "{out}");
}
