//! What a checkpoint of a workspace takes, beside git with an index of its own.

use crate::{quantile, quiet, ratio, row, search, time};
use std::path::Path;
use std::process::Command;
use toolcrib_tests::Program;
use undo::checkpoints::Place;
use undo::{By, Undo};

const FILES: usize = 10_000;
/// Runs in turn.
const TURNS: usize = 9;

pub(crate) fn checkpoints() {
    let program = Program::below(Path::new("/var/tmp"));
    let (root, home) = (program.path("work"), program.path("home"));
    search::make(&root, FILES);
    std::fs::remove_dir(root.join(".git")).expect("an empty directory");
    // What was written just now is read again the next time.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let store = program.path("git");
    let add = || {
        let mut git = Command::new("git");
        quiet(git.arg("-C").arg(&root).arg("--git-dir").arg(&store).args(["--work-tree=.", "add", "-A"]));
    };
    let place = Place { root: &root, home: &home };
    let session = std::cell::Cell::new(0);
    let take = |undo: &Undo| {
        session.set(session.get() + 1);
        let by = By { call: "bench", session: &session.get().to_string(), tool: "run_shell" };
        assert_eq!(undo.checkpoints().take(by, place), None);
    };
    let (mut first, mut gits) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let undo = Undo::new(&program.path(&format!("state/{turn}")));
        first.extend(time(1, || take(&undo)));
        let _ = std::fs::remove_dir_all(&store);
        quiet(Command::new("git").args(["init", "-q", "--bare"]).arg(&store));
        gits.extend(time(1, add));
    }
    first.sort();
    gits.sort();
    let (ours, bare) = (quantile(&first, 50), quantile(&gits, 50));
    let what = "a checkpoint of 10,000 files with 35 MB, the first";
    row(what, "<= 60 ms", &format!("{ours:.1?}"), &format!("`git add -A` {bare:.1?}"), &ratio(ours, bare));
    let undo = Undo::new(&program.path("state/0"));
    let (mut same, mut gits) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        same.extend(time(1, || take(&undo)));
        gits.extend(time(1, add));
    }
    same.sort();
    gits.sort();
    let (ours, bare) = (quantile(&same, 50), quantile(&gits, 50));
    row(
        "the same, if nothing has changed",
        "<= 5 ms",
        &format!("{ours:.2?}"),
        &format!("`git add -A` {bare:.1?}"),
        &ratio(ours, bare),
    );
    let mut changed = Vec::new();
    for turn in 0..TURNS {
        std::fs::write(root.join(format!("changed{turn}")), "x").expect("a file");
        changed.extend(time(1, || take(&undo)));
    }
    changed.sort();
    row("the same, if one file has changed", "", &format!("{:.1?}", quantile(&changed, 50)), "", "");
}
