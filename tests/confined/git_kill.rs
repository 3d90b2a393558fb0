//! A host, or all that runs in its cells, is killed at any moment while commands commit: no reported commit is lost, and nothing is torn.

use crate::git::{git, repository};
use crate::rig::{Rig, Via};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use toolcrib_tests::client::request;
use toolcrib_tests::processes::kill;
use toolcrib_tests::shell::{command, declared};
use toolcrib_tests::{Client, PATIENCE, Program, eventually, is_long};

/// Files of one commit: enough for the host to be killed while it takes them over.
const FILES: usize = 40;

/// Commits within which a host is killed.
const MOST_COMMITS: usize = 200;

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
    // A pane whose host was killed while it typed may wait for the rest for ever: then what the hint says works. So may the other one by now.
    if answer["error"]["kind"] == "busy" {
        arguments["pane"] = "other".into();
        for tool in ["tmux-kill-pane", "tmux-create-pane"] {
            ask(client, id, tool, &declared(json!({ "pane": "other" })))?;
        }
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

/// Nothing of these commits was lost, nothing is torn, and the person's git can go on.
fn assert_whole(work: &Path, commits: &BTreeSet<String>, about: &str) {
    git(work, &["fsck", "--strict", "--no-dangling"]);
    let log = git(work, &["log", "--format=%s"]);
    let log: BTreeSet<String> = log.lines().map(str::to_owned).collect();
    let lost: Vec<_> = commits.difference(&log).collect();
    let locks = locks(&work.join(".git"));
    assert!(lost.is_empty(), "{about}: {lost:?} of {} {locks:?}", commits.len());
    assert!(locks.is_empty(), "{about}: {locks:?}");
    assert_eq!(git(work, &["status", "--porcelain"]), "", "{about}");
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
            for _ in 0..MOST_COMMITS {
                if killer.is_finished() || one(&mut rig.client, &mut reported).is_none() {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        match killed {
            Killed::Host => _ = rig.client.ended(PATIENCE).expect("it has ended"),
            Killed::Cell => {}
        }
        drop(rig.client);
        // The next host, in the same place.
        let mut rig = Rig::of(rig.program, &[]);
        let next = one(&mut rig.client, &mut reported);
        assert!(next.as_ref().is_some_and(|(is_done, _)| *is_done), "{via:?} {round} {moment:?}: {next:?}");
        drop(rig.client);
        assert_whole(&work, &reported, &format!("{via:?} {round} {moment:?}: {next:?}"));
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

/// The system calls by which the host changes a file or its name: before each of them it is killed, as often as a thread makes them while a commit
/// of one file is taken over (a note of it, three objects, the branch, the index, the note again), and once more.
const STEPS: [(&str, usize); 5] =
    [("renameat", 4), ("renameat2", 4), ("unlinkat", 3), ("ftruncate", 2), ("fdatasync", 2)];
/// Kills at least when the commit was made.
const LEAST: usize = 5;
/// The commits that a command made, by their subjects. The person's git does not look at it.
const MADE: &str = "made";

/// A tracer that kills a host.
struct Killer(std::process::Child);

impl Killer {
    /// It kills where a thread that the host has by now is about to make such a call for so many times from now on. What the host starts is not
    /// traced.
    #[expect(clippy::disallowed_methods, reason = "a tracer for a host of these tests")]
    fn at(step: &str, times: usize, host: u32) -> Self {
        let kill = format!("inject={step}:signal=KILL:when={times}");
        let tasks: Vec<PathBuf> = std::fs::read_dir(format!("/proc/{host}/task"))
            .expect("its threads")
            .flatten()
            .map(|task| task.path())
            .collect();
        let mut strace = std::process::Command::new("strace");
        strace.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={step}"), "-e", &kill]);
        strace.args(tasks.iter().flat_map(|task| [OsStr::new("-p"), task.file_name().expect("a number")]));
        let strace = strace.spawn().expect("`strace` is installed");
        let is_traced = |task: &PathBuf| {
            let status = std::fs::read_to_string(task.join("status")).unwrap_or_default();
            !status.lines().any(|line| line == "TracerPid:\t0")
        };
        eventually("its threads are traced", || tasks.iter().all(is_traced));
        Self(strace)
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        // The kernel lets go of whom it did not kill. Asked to end, it may wait for a thread that is gone for ever.
        self.0.kill().and_then(|()| self.0.wait()).expect("it has ended");
    }
}

/// A host is killed at a step of taking a commit over, and the next one has all commits, also that one if it was made: a host that is killed
/// sooner has not started the command. Returns whether it was killed when the commit was made.
fn killed_at(via: Via, step: &str, times: usize, program: Program) -> (Program, bool) {
    let mut rig = Rig::of(program, &[]);
    let work = rig.work("");
    let mut id = 0;
    let mut one = |client: &mut Client, name: &str| {
        let subject = format!("{step}-{times}-{name}");
        let text =
            format!("echo {subject} >file && git add file && git commit -q -m {subject} && echo {subject} >>{MADE}");
        id += 1;
        answer(client, id, &text)
    };
    let first = one(&mut rig.client, "first");
    let killer = Killer::at(step, times, rig.client.pid());
    let killed = one(&mut rig.client, "killed");
    drop(killer);
    drop(rig.client);
    // The next host, in the same place.
    let mut rig = Rig::of(rig.program, &[]);
    let next = one(&mut rig.client, "next");
    drop(rig.client);
    let is_done = |answer: &Option<Value>| answer.as_ref().is_some_and(|answer| answer["result"]["exit_code"] == 0);
    let about = format!("{via:?}, {step} {times}: {first:?} {killed:?} {next:?}");
    assert!(is_done(&first) && is_done(&next), "{about}");
    let made = std::fs::read_to_string(work.join(MADE)).expect("commits were made");
    let made: BTreeSet<String> = made.lines().map(str::to_owned).collect();
    let is_made = made.contains(&format!("{step}-{times}-killed"));
    assert_whole(&work, &made, &about);
    (rig.program, is_made && !is_done(&killed))
}

fn killed_at_any_step(via: Via) {
    let (mut program, mut steps) = (repository(via), 0);
    std::fs::write(program.path("work/.git/info/exclude"), MADE).expect("written");
    for (step, most) in STEPS {
        for times in 1..=most {
            let is_killed;
            (program, is_killed) = killed_at(via, step, times, program);
            steps += usize::from(is_killed);
        }
    }
    assert!(steps >= LEAST, "{via:?}: only {steps} kills");
    println!("{via:?}: {steps} kills");
}

#[test]
fn a_host_that_is_killed_at_any_step_of_taking_over_loses_no_commit() {
    if !rustix::process::getuid().is_root() {
        toolcrib_tests::skip!("only root can trace a host");
    }
    killed_at_any_step(Via::Process);
}

#[test]
fn a_host_of_panes_that_is_killed_at_any_step_of_taking_over_loses_no_commit() {
    if !rustix::process::getuid().is_root() {
        toolcrib_tests::skip!("only root can trace a host");
    }
    killed_at_any_step(Via::Pane);
}
