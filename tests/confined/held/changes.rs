//! What is there before a command changes it is there again afterwards.

use super::{AT_REST, BEFORE, DEEP, TRACKED, UNTIL_GO, above, assert_held, assert_nothing_held, mode, persons, text};
use crate::git::git;
use crate::rig::{BOTH, Rig, Via, program};
use std::fs;
use std::time::Duration;
use toolcrib_tests::eventually;

/// Ways to change the file that `F` names, whose directory is `D`, so that it has `M` in it.
const CHANGES: [&str; 12] = [
    "echo M >$F",
    "echo M >>$F",
    "echo M >plain; mv plain $F",
    "echo M >plain; cp plain $F",
    "echo M >plain; ln -f plain $F",
    "rm $F; echo M >$F",
    "sed -i s/.*/M/ $F",
    "mv $D moved; mkdir $D; echo M >$F; rm -r moved",
    "echo M >plain; python3 exchange.py plain $F; rm plain",
    "python3 mapped.py $F M",
    "(exec python3 open.py $F M) >/dev/null 2>&1 </dev/null & while [ ! -e written ]; do sleep 0.02; done; rm written",
    "ln $F plain; echo M >plain",
];
/// Writes into a file that it has mapped.
const MAPPED: &str = "import mmap, sys
with open(sys.argv[1], 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
    mapped[:len(sys.argv[2])] = sys.argv[2].encode()";
/// Writes into a file, and never closes it.
const OPEN: &str = "import sys, time
file = open(sys.argv[1], 'r+b', buffering=0)
file.write(sys.argv[2].encode())
open('written', 'w')
time.sleep(1000)";
/// Gives two files each other's names.
const EXCHANGE: &str = "import ctypes, sys
names = [name.encode() for name in sys.argv[1:]]
sys.exit(ctypes.CDLL(None).renameat2(-100, names[0], -100, names[1], 2))";

pub(super) fn write_scripts(rig: &Rig) {
    for (name, text) in [("mapped.py", MAPPED), ("open.py", OPEN), ("exchange.py", EXCHANGE)] {
        fs::write(rig.work(name), text).expect("a file");
    }
}

fn assert_put_back(rig: &Rig, file: &str, about: &str) {
    let found = fs::read_to_string(rig.work(file)).unwrap_or_else(|error| panic!("{about}: {error}"));
    assert_eq!(found, BEFORE, "{about}");
    assert_eq!(mode(&rig.work(file)), if file == TRACKED { 0o644 } else { 0o640 }, "{about}");
}

#[test]
fn what_a_command_changes_is_put_back() {
    for via in BOTH {
        let mut rig = Rig::of(persons(via), &[]);
        write_scripts(&rig);
        for (number, (file, change)) in
            [TRACKED, DEEP].into_iter().flat_map(|file| CHANGES.map(|change| (file, change))).enumerate()
        {
            let mark = format!("change-{number}");
            let text = format!("F={file}; D={}; {}", above(file), change.replace('M', &mark));
            let result = rig.result(&text);
            // What some write first beside the file is held there, and then they fail.
            assert!(result["exit_code"] == 0 || file == TRACKED, "{via:?} {text}: {result}");
            assert_put_back(&rig, file, &format!("{via:?} {text}: {result}"));
            let held = rig.held();
            let is_held = held.iter().any(|held| held["text"].as_str().is_some_and(|text| text.contains(&mark)));
            assert!(is_held, "{via:?} {text}: {held:?} {result}");
            assert!(result["notices"].to_string().contains("was held back"), "{via:?} {text}: {result}");
        }
        assert_eq!(git(&rig.work(""), &["status", "--porcelain", "--", ".vscode"]), "");
    }
}

/// Bytes that are the same are not a change.
#[test]
fn what_a_command_only_touches_is_not_held() {
    let mut failed = Vec::new();
    for via in BOTH {
        let mut rig = Rig::of(persons(via), &[]);
        for file in [TRACKED, DEEP] {
            for text in ["touch $F", "cat $F >plain; cat plain >$F", "cp -p $F plain; mv plain $F", "ln $F plain"] {
                let result = rig.result(&format!("rm -f plain; F={file}; {text}"));
                assert_put_back(&rig, file, &format!("{via:?} {text}: {result}"));
                for held in rig.held() {
                    failed.push(format!("{via:?} {file} {text}: {result}"));
                    rig.decide("drop", &held);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A file that was made executable, or that everybody may write, acts otherwise.
#[test]
fn a_mode_that_a_command_changes_is_put_back() {
    let mut failed = Vec::new();
    for via in BOTH {
        let mut rig = Rig::of(persons(via), &[]);
        for file in [TRACKED, DEEP] {
            let before = mode(&rig.work(file));
            rig.run(&format!("chmod 777 {file}"));
            if mode(&rig.work(file)) != before {
                failed.push(format!("{via:?} {file}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// A file that agents take for the person's word may be changed, which is told.
#[test]
fn a_change_of_what_agents_read_is_told() {
    for via in BOTH {
        let program = program(via);
        program.write("work/CLAUDE.md", BEFORE);
        let mut rig = Rig::of(program, &[]);
        let notices = rig.notices("echo changed >>CLAUDE.md");
        assert!(notices.contains("`CLAUDE.md` was changed: agents take it"), "{via:?} {notices}");
        assert_eq!(fs::read_to_string(rig.work("CLAUDE.md")).expect("a file"), format!("{BEFORE}changed\n"));
        assert_nothing_held(&rig, "a change of words");
    }
}

/// A process in a pane changes a file when no command runs, by ways that tell nobody.
#[test]
fn what_a_process_in_the_background_changes_is_put_back() {
    let changes = [
        "echo M >$F",
        "echo M >plain; mv plain $F",
        "python3 mapped.py $F M",
        "exec python3 open.py $F M",
        "echo M >other",
    ];
    let mut failed = Vec::new();
    for (number, (file, change)) in
        [TRACKED, DEEP].into_iter().flat_map(|file| changes.map(|change| (file, change))).enumerate()
    {
        let mut rig = Rig::of(persons(Via::Pane), &[]);
        write_scripts(&rig);
        let mark = format!("change-{number}");
        // The other name of the same file is made while the command runs.
        let link = if change.contains("other") { "ln $F other;" } else { "" };
        let change = change.replace('M', &mark);
        rig.run(&format!("F={file}; {link} ({UNTIL_GO}; touch began; {change}) & true"));
        rig.program.write("work/go", "");
        eventually("it began", || rig.work("began").exists());
        // Ten times as long as a file is let be that is being written.
        std::thread::sleep(Duration::from_secs(1));
        let meanwhile = text(&rig, file);
        rig.run("true");
        if meanwhile != BEFORE || text(&rig, file) != BEFORE {
            failed
                .push(format!("{file}: {change}: first {meanwhile:?}, after the next command {:?}", text(&rig, file)));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What a person deleted does not come back, whatever a command writes there.
#[test]
fn what_the_person_deleted_does_not_come_back() {
    for via in BOTH {
        let program = persons(via);
        program.write("work/CLAUDE.md", BEFORE);
        let mut rig = Rig::of(program, &[]);
        for name in [DEEP, "CLAUDE.md"] {
            rig.run("true");
            std::thread::sleep(AT_REST);
            fs::remove_file(rig.work(name)).expect("it was there");
            let notices = rig.notices(&format!("echo made >{name}"));
            assert_held(&rig, name, &notices, &format!("{via:?}"));
        }
    }
}
