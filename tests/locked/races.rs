//! Files that are changed over and over while programs read them: what counts is what was read, and nothing between.

use crate::rig::{Locked, machine, word_count};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use toolcrib_tests::is_long;
use toolcrib_tests::outcome::{code, stderr, stdout, with_a_section_more};

const PINNED: &str = "[lock]\nplugins = \"pins\"\n[lock.plugin.word_count]\nsha256 = \"WORD_COUNT\"\n";

fn rounds() -> usize {
    if is_long() { 3000 } else { 30 }
}

/// Has `change` done over and over, with a number that grows, while `look` runs.
fn meanwhile(change: impl Fn(usize) + Sync, look: impl FnOnce()) {
    struct Over<'o>(&'o AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..).take_while(|_| !is_over.load(Ordering::Relaxed)).for_each(&change));
        // Also when a look fails: the scope waits for the other thread.
        let _over = Over(&is_over);
        look();
    });
}

/// L-01 and L-02: a file that is swapped, and one that is written over in its place, is judged by the bytes that are compiled.
#[test]
fn what_runs_is_what_was_judged_whoever_writes_the_file_meanwhile() {
    let vetted = word_count();
    let (mut other, more) = (vetted.clone(), with_a_section_more(word_count()));
    // Of the same length, and other in its last byte only: no reader sees a file that is short.
    *other.last_mut().expect("bytes") ^= 1;
    let swapped = |file: &Path, round: usize| {
        let next = file.with_extension("next");
        fs::write(&next, [&vetted, &more][round % 2]).expect("written");
        fs::rename(next, file).expect("renamed");
    };
    let written_over = |file: &Path, round: usize| {
        let mut file = fs::OpenOptions::new().write(true).open(file).expect("opened");
        file.write_all([&vetted, &other][round % 2]).expect("written");
    };
    type Change<'c> = &'c (dyn Fn(&Path, usize) + Sync);
    for change in [&swapped as Change<'_>, &written_over] {
        let locked = Locked::by(&[PINNED]);
        let file = locked.installed("word_count", &vetted);
        let (mut ran, mut refused) = (0, 0);
        meanwhile(
            |round| {
                change(Path::new(&file), round);
                // Long enough for a program to find either.
                std::thread::sleep(Duration::from_millis(7));
            },
            || {
                for _ in 0..rounds() {
                    let (exit, envelope) = locked.call(&["word_count", "path=a.txt"]);
                    match &envelope["error"] {
                        error if error.is_null() => {
                            assert_eq!((exit, &envelope["result"]["words"]), (0, &2.into()), "{envelope}");
                            ran += 1;
                        }
                        error => {
                            assert_eq!((exit, &error["data"]["code"]), (5, &"other_bytes".into()), "{envelope}");
                            refused += 1;
                        }
                    }
                }
            },
        );
        assert!(ran > 0 && refused > 0, "{ran} ran, {refused} were refused: nothing was met between");
    }
}

/// L-31: a policy that is swapped for one that others can write is obeyed or refused whole, by the file that was opened.
#[test]
fn a_policy_that_is_swapped_is_the_one_that_was_looked_at() {
    let machine = machine!("[lock]\nplugins = \"off\"\nbuiltin = [\"time\"]\n");
    let [policy, other] = ["etc/policy.toml", "etc/other.toml"].map(|name| machine.program.path(name));
    machine.program.write("etc/other.toml", "[lock]\nplugins = \"off\"\n");
    fs::set_permissions(&other, Permissions::from_mode(0o666)).expect("a mode");
    let (mut obeyed, mut refused) = (0, 0);
    meanwhile(
        |round| {
            renameat_with(CWD, &policy, CWD, &other, RenameFlags::EXCHANGE).expect("they change names");
            // Mostly as fast as can be; now and then a whole start finds one of them, each of the two in turn.
            if round % 1001 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
        },
        || {
            for _ in 0..rounds() {
                let output = machine.command(&["tools"]).output().expect("it runs");
                let shown = stdout(&output);
                match code(&output) {
                    0 => {
                        assert!(shown.contains("time") && !shown.contains("run_shell"), "{shown}");
                        obeyed += 1;
                    }
                    exit => {
                        assert_eq!((exit, shown.as_str()), (2, ""), "{}", stderr(&output));
                        let told = "can be written by others (mode 0666)";
                        assert!(stderr(&output).contains(told), "{}", stderr(&output));
                        refused += 1;
                    }
                }
            }
        },
    );
    assert!(obeyed > 0 && refused > 0, "{obeyed} obeyed, {refused} refused: nothing was met between");
}
