//! A host, or all that runs in its cells, is killed at any moment while commands commit: no reported commit is lost, and nothing is torn.

use crate::git::{git, repository};
use crate::rig::{Rig, Via};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use toolcrib_tests::client::request;
use toolcrib_tests::processes::kill;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{Client, PATIENCE, is_long};

/// Files of one commit: enough for the host to be killed while it takes them over.
const FILES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    Host,
    /// All that the host started.
    Cell,
}

/// When.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after the first commit, at most.
    Within(Duration),
    /// So long after the host has begun to take a commit over, at most.
    TakingOver(Duration),
}

fn random(most: Duration) -> Duration {
    most.mul_f64(RandomState::new().hash_one(0) as f64 / u64::MAX as f64)
}

/// A command that commits files under this subject.
fn commit(subject: &str) -> String {
    format!(
        "mkdir -p d; i=0; while [ $i -lt {FILES} ]; do echo {subject}-$i >d/$i; i=$((i+1)); done; \
         git add d && git commit -q -m {subject}"
    )
}

/// Sends a command to a host. Returns its answer; none when the host was killed before.
fn answer(client: &mut Client, id: u64, text: &str) -> Option<Value> {
    let mut arguments = command(text);
    let answer = ask(client, id, "run_shell", &arguments)?;
    // A pane whose host was killed while it typed may wait for the rest for ever: then what the hint says works.
    if answer["error"]["kind"] == "busy" {
        arguments["pane"] = format!("other-{id}").into();
        ask(client, id, "tmux-create-pane", &declared(json!({ "pane": arguments["pane"] })))?;
        return ask(client, id, "run_shell", &arguments);
    }
    Some(answer)
}

fn ask(client: &mut Client, id: u64, tool: &str, arguments: &Value) -> Option<Value> {
    client.write(request(id, tool, arguments));
    loop {
        let line = client.try_line("answer")?;
        let line: Value = serde_json::from_str(&line).expect("a whole line is JSON");
        if !line["event"].is_object() {
            return Some(line);
        }
    }
}

fn objects(git: &Path) -> usize {
    let inner = std::fs::read_dir(git.join("objects")).into_iter().flatten().flatten();
    inner.map(|entry| std::fs::read_dir(entry.path()).map_or(0, Iterator::count)).sum()
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> =
        children.flat_map(|all| all.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    let below: Vec<u32> = children.iter().flat_map(|child| self::children(*child)).collect();
    [children, below].concat()
}

/// Waits for the moment, then kills.
fn wait_and_kill(host: u32, git: &Path, killed: Killed, moment: Moment, is_over: &AtomicBool) {
    let wait = match moment {
        Moment::Within(most) => random(most),
        Moment::TakingOver(most) => {
            let before = objects(git);
            while objects(git) == before && !is_over.load(Ordering::Relaxed) {}
            random(most)
        }
    };
    std::thread::sleep(wait);
    match killed {
        Killed::Host => kill(&[host]),
        Killed::Cell => kill(&children(host)),
    }
}

/// The locks that are left in a git directory: with one of them there the person's git does nothing.
fn locks(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let (inner, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension() == Some("lock".as_ref()));
    files.chain(inner.iter().flat_map(|inner| locks(inner))).collect()
}

fn killed_at_any_moment(via: Via, killed: Killed) {
    let rounds = if is_long() { 30 } else { 6 };
    let mut program = repository(via);
    let (mut number, mut reported) = (0, BTreeSet::new());
    for round in 0..rounds {
        let moment = match round % 2 {
            0 => Moment::TakingOver(Duration::from_millis(60)),
            _ => Moment::Within(Duration::from_millis(400)),
        };
        let mut rig = Rig::of(program, &[]);
        let work = rig.work("");
        let git_directory = work.join(".git");
        let mut one = |client: &mut Client, reported: &mut BTreeSet<String>| {
            number += 1;
            let subject = format!("commit-{number}");
            let answer = answer(client, number, &commit(&subject))?;
            let is_done = answer["result"]["exit_code"] == 0;
            if is_done {
                reported.insert(subject);
            }
            Some((is_done, answer))
        };
        let first = one(&mut rig.client, &mut reported);
        assert!(
            first.as_ref().is_some_and(|(is_done, _)| *is_done),
            "{via:?} {round}: {first:?}: {:?}",
            locks(&git_directory)
        );
        let is_over = AtomicBool::new(false);
        let host = rig.client.pid();
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| wait_and_kill(host, &git_directory, killed, moment, &is_over));
            // What runs in a cell that was killed has failed, or is not there any more.
            while !killer.is_finished() && one(&mut rig.client, &mut reported).is_some() {}
            is_over.store(true, Ordering::Relaxed);
        });
        match killed {
            Killed::Host => _ = rig.client.ended(PATIENCE).expect("it has ended"),
            Killed::Cell => {}
        }
        drop(rig.client);
        let left = locks(&git_directory);
        // The next host, in the same place.
        let mut rig = Rig::of(rig.program, &[]);
        let next = one(&mut rig.client, &mut reported);
        let locks = locks(&git_directory);
        assert!(
            next.as_ref().is_some_and(|(is_done, _)| *is_done),
            "{via:?} {round} {moment:?}: {next:?} {left:?} {locks:?}"
        );
        drop(rig.client);
        git(&work, &["fsck", "--strict", "--no-dangling"]);
        let log = git(&work, &["log", "--format=%s"]);
        let log: BTreeSet<String> = log.lines().map(str::to_owned).collect();
        let lost: Vec<_> = reported.difference(&log).collect();
        assert!(lost.is_empty(), "{via:?} {round} {moment:?}: {lost:?} of {}: {next:?} {locks:?}", reported.len());
        assert!(locks.is_empty(), "{via:?} {round} {moment:?}: {locks:?}");
        assert_eq!(git(&work, &["status", "--porcelain"]), "", "{via:?} {round} {moment:?}: {next:?}");
        program = rig.program;
    }
    println!("{via:?} {killed:?}: {rounds} kills, {} commits reported", reported.len());
}

#[test]
fn a_host_that_is_killed_loses_no_reported_commit() {
    killed_at_any_moment(Via::Process, Killed::Host);
}

#[test]
fn a_host_of_panes_that_is_killed_loses_no_reported_commit() {
    killed_at_any_moment(Via::Pane, Killed::Host);
}

#[test]
fn a_cell_that_is_killed_loses_no_reported_commit() {
    killed_at_any_moment(Via::Process, Killed::Cell);
}
