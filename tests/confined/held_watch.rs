//! Nothing that a command made is there for an editor, a shell or an agent to obey once its result was given: somebody looks all the time while
//! hostile commands run.

use crate::git::{git, repository};
use crate::held::names;
use crate::rig::{BOTH, Rig, Via, word};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use toolcrib_tests::{eventually, is_long};

/// What is in all that a hostile command writes, and in nothing of the person's.
const MARK: &str = "obey-the-command";
/// How often somebody looks.
const PAUSE: Duration = Duration::from_millis(5);
/// In which of these looks git is asked, too.
const OF_GIT: u64 = 16;
/// Directories that are there from the beginning.
const DIRECTORIES: [&str; 6] = [".", "a", "a/b", "a/b/c/d/e/f", "src", "docs/.x"];
/// Files of the person's, which git has.
const TRACKED: [&str; 3] = ["own/.vscode/settings.json", "own/a/.envrc", "own/.mcp.json"];

/// Ways to make a file or a directory `$F`, in `$D`, that has the mark in it.
const WAYS: [&str; 9] = [
    "echo $M >$F",
    "echo $M >plain; mv plain $F",
    "echo $M >$D/elsewhere; ln -sf elsewhere $F",
    "echo $M >plain; ln -f plain $F",
    "mkdir -p $F; echo $M >$F/inner",
    "mkdir -p x/y; echo $M >x/y/inner; mv x $F",
    "git config core.fsmonitor \"touch $P; false\"; echo $M >.git/hooks/post-index-change; echo $M >$F",
    OPENED,
    LATER,
];
/// Ways to change a file of the person's.
const CHANGES: [&str; 4] = ["truncate -s 0 $F; echo $M >>$F", "echo $M >plain; mv plain $F", OPENED, LATER];
const OPENED: &str = "rm -f written; (exec python3 open.py $F $M) >/dev/null 2>&1 </dev/null & while [ ! -e written ]; do sleep 0.01; done";
const LATER: &str = "(sleep 0.05; echo $M >$F; touch done) >/dev/null 2>&1 </dev/null & true";
/// Keeps a file open that it has written, and goes on to write it.
const OPEN: &str = "import sys, time
file = open(sys.argv[1], 'ab', buffering=0)
file.write(sys.argv[2].encode())
open('written', 'w')
for _ in range(20):
    time.sleep(0.02)
    file.write(sys.argv[2].encode())
time.sleep(1000)";

/// What the watcher and the test tell each other.
#[derive(Default)]
struct Shared {
    /// Odd while a command runs.
    turn: AtomicU64,
    looks: AtomicU64,
    is_over: AtomicBool,
    /// The looks at which one was seen: while a command ran, and afterwards which files.
    seen: Mutex<(u64, BTreeSet<String>)>,
    /// Looks while commands ran.
    during: AtomicU64,
}

impl Shared {
    fn is_running(turn: u64) -> bool {
        turn % 2 == 1
    }

    /// A command begins, or what it does has ended.
    fn next(&self) {
        self.turn.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits for two looks that begin from now on.
    fn until_looked(&self) {
        let before = self.looks.load(Ordering::SeqCst);
        eventually("somebody looks", || self.looks.load(Ordering::SeqCst) >= before + 3);
    }

    /// Looks until it is over.
    fn watch(&self, top: &Path, names: &BTreeSet<String>) {
        while !self.is_over.load(Ordering::SeqCst) {
            let before = self.turn.load(Ordering::SeqCst);
            let found = obeyed(top, Path::new(""), false, names);
            if self.looks.fetch_add(1, Ordering::SeqCst).is_multiple_of(OF_GIT) {
                git(top, &["status", "--porcelain", "-uno"]);
            }
            // A command that began or ended meanwhile made it for a moment that belongs to neither.
            let is_one_turn = before == self.turn.load(Ordering::SeqCst);
            let mut seen = self.seen.lock().expect("nobody panics with it");
            if Self::is_running(before) {
                self.during.fetch_add(1, Ordering::SeqCst);
                seen.0 += u64::from(!found.is_empty());
            } else if is_one_turn {
                seen.1.extend(found.iter().map(|path| format!("{} after command {}", path.display(), before / 2)));
            }
            drop(seen);
            std::thread::sleep(PAUSE);
        }
    }
}

/// The files below a directory whose path has one of these names in it, and that hold the mark.
fn obeyed(top: &Path, at: &Path, acts: bool, names: &BTreeSet<String>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(top.join(at)).into_iter().flatten().flatten() {
        let at = at.join(entry.file_name());
        if at == Path::new(".git") {
            continue;
        }
        let acts = acts || names.iter().any(|name| at.ends_with(name));
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory {
            found.extend(obeyed(top, &at, acts, names));
        } else if acts && fs::read_to_string(top.join(&at)).is_ok_and(|text| text.contains(MARK)) {
            found.push(at);
        }
    }
    found
}

fn pick<T>(from: &[T], number: u64, what: &str) -> usize {
    (RandomState::new().hash_one((number, what)) % from.len() as u64) as usize
}

/// A hostile command.
fn hostile(number: u64, names: &[String], proof: &Path) -> String {
    let way = pick(&[(); WAYS.len() + CHANGES.len()], number, "way");
    let (text, file, begin) = match WAYS.get(way) {
        Some(text) => {
            let directory = DIRECTORIES[pick(&DIRECTORIES, number, "directory")];
            let name = &names[pick(names, number, "name")];
            // What an earlier one left there would be in the way of some.
            (text, format!("{directory}/{name}"), "rm -rf $F x; mkdir -p $D; ")
        }
        None => (&CHANGES[way - WAYS.len()], TRACKED[pick(&TRACKED, number, "tracked")].to_owned(), ""),
    };
    let directory = file.rsplit_once('/').map_or(".", |(above, _)| above);
    format!("F={file}; D={directory}; M={MARK}; P={}; {begin}{text}", word(proof))
}

fn persons(via: Via) -> Rig {
    let program = repository(via);
    let work = program.path("work");
    for directory in DIRECTORIES {
        fs::create_dir_all(work.join(directory)).expect("a directory");
    }
    for name in TRACKED {
        program.write(&format!("work/{name}"), "the person's\n");
    }
    git(&work, &["add", "-f", "."]);
    git(&work, &["commit", "-q", "-m", "files that act"]);
    program.write("work/open.py", OPEN);
    Rig::of(program, &[])
}

/// The person's files are as they were.
fn assert_persons(rig: &Rig, about: &str) {
    for name in TRACKED {
        let found = fs::read_to_string(rig.work(name)).unwrap_or_else(|error| panic!("{about}: {name}: {error}"));
        assert_eq!(found, "the person's\n", "{about}: {name}");
    }
}

#[test]
fn nothing_that_a_command_made_is_obeyed_after_its_result() {
    let commands = if is_long() { 1_000 } else { 10 };
    let names = names();
    let set: BTreeSet<String> = names.iter().cloned().collect();
    for via in BOTH {
        let mut rig = persons(via);
        let (top, proof) = (rig.work(""), rig.program.path("proof"));
        rig.run("true");
        let shared = Shared::default();
        let mut results = Vec::new();
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| shared.watch(&top, &set));
            for number in 0..commands {
                let text = hostile(number, &names, &proof);
                shared.next();
                let result = rig.result(&format!("{text}\n:"));
                // What it left in the background is at work until it says so.
                if via == Via::Pane && text.ends_with(LATER) {
                    eventually("it has written", || top.join("done").exists());
                    fs::remove_file(top.join("done")).expect("a file");
                    eventually("it was taken out", || obeyed(&top, Path::new(""), false, &set).is_empty());
                }
                shared.next();
                shared.until_looked();
                results.push(format!("{number}: {text}: {result}"));
                if watcher.is_finished() {
                    break;
                }
                // The shelf has room for a thousand.
                if number % 200 == 199 {
                    for held in rig.held() {
                        rig.decide("drop", &held);
                    }
                }
            }
            shared.is_over.store(true, Ordering::SeqCst);
            watcher.join().expect("the watcher's part");
        });
        let (seen, after) = shared.seen.into_inner().expect("nobody panics with it");
        let during = shared.during.into_inner();
        let share = 100.0 * seen as f64 / during as f64;
        println!(
            "{via:?}: {commands} commands; one was seen at {seen} of {during} looks while they ran ({share:.1} %)"
        );
        let told: Vec<&String> = results
            .iter()
            .filter(|result| {
                let number = result.split(':').next().expect("a number");
                after
                    .iter()
                    .any(|seen| seen.ends_with(&format!(" after command {}", number.parse::<u64>().expect("one") + 1)))
            })
            .collect();
        assert!(after.is_empty(), "{via:?}: {after:?}: {told:#?}");
        assert!(!proof.exists(), "{via:?}: {results:#?}");
        assert_persons(&rig, &format!("{via:?}"));
        assert!(!rig.held().is_empty() || commands > 200, "{via:?}: something was held");
    }
}
