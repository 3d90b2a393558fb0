//! Ctrl-C, SIGTERM and a terminal that goes: the first asks all calls to end, the second ends the program. SIGKILL ends the commands too.

#![expect(clippy::disallowed_methods, reason = "a test starts a command for a watcher")]

use serde_json::{Value, json};
use std::cell::RefCell;
use toolcrib_tests::client::request;
use toolcrib_tests::outcome::{NO_QUESTION, catches_signals, ended};
use toolcrib_tests::processes::lives;
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Program, Running, eventually, signal};

/// Waits for the end of what is cancelled as long as a loaded machine takes for it, so that its answer comes afterwards.
const PATIENT: [&str; 2] = ["--set", "limits.grace_ms=20000"];

/// What runs until it is ended, and is hard to end.
fn endless() -> Value {
    harmless("(trap '' TERM INT HUP; exec sleep 1000) & echo $! > pids; echo $$ >> pids; touch ready; wait")
}

fn begun(program: &Program) -> Vec<String> {
    eventually("the command runs", || program.path("work/ready").exists());
    let pids = std::fs::read_to_string(program.path("work/pids")).unwrap();
    let pids: Vec<String> = pids.lines().map(str::to_owned).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| lives(pid)));
    pids
}

fn none_lives(pids: &[String]) {
    assert!(!pids.iter().any(|pid| lives(pid)), "the command lives on");
}

fn call(program: &Program) -> Running {
    program.start(&[&NO_QUESTION[..], &PATIENT, &["call", "run_shell", &endless().to_string()]].concat())
}

#[test]
fn one_signal_cancels_a_call_which_still_gives_its_envelope() {
    for signal in ["INT", "TERM", "HUP"] {
        let program = Program::new().unconfined();
        let mut running = call(&program);
        let pids = begun(&program);
        running.signal(signal);
        assert_eq!(running.line()["error"]["kind"], "cancelled", "{signal}");
        assert_eq!(ended(&mut running), Some(130), "{signal}");
        none_lives(&pids);
        assert_eq!(running.said(), "cancelled: the call was cancelled\n");
    }
}

#[test]
fn one_signal_cancels_all_calls_of_a_run_and_ends_it() {
    for signal in ["INT", "TERM", "HUP"] {
        let program = Program::new().unconfined();
        let mut running = program.start(&[&NO_QUESTION[..], &PATIENT, &["run"]].concat());
        running.write(request(1, "run_shell", &endless()));
        let pids = begun(&program);
        running.signal(signal);
        let answer = running.line();
        assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(1), &json!("cancelled")), "{signal}");
        assert_eq!(ended(&mut running), Some(130), "{signal}");
        none_lives(&pids);
    }
}

/// Waits for the host's watcher, which its first command starts; another one than `before`.
fn watcher(host: u32, before: &str) -> String {
    let is_watcher = |pid: &String| {
        pid != before
            && std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"/proc/self/exe\0watch\0")
    };
    let found = RefCell::new(None);
    eventually("a watcher is there", || {
        let threads = std::fs::read_dir(format!("/proc/{host}/task")).unwrap();
        let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
        let children: Vec<String> =
            lists.flat_map(|list| list.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
        *found.borrow_mut() = children.into_iter().find(is_watcher);
        found.borrow().is_some()
    });
    found.into_inner().unwrap()
}

#[test]
fn a_host_that_is_killed_leaves_no_command_behind() {
    let program = Program::new().unconfined();
    let mut running = program.start(&[&NO_QUESTION[..], &["--no-tmux", "run"]].concat());
    running.write(request(1, "run_shell", &harmless("true")));
    running.line();
    running.write(request(2, "run_shell", &endless()));
    let pids = begun(&program);
    running.signal("KILL");
    ended(&mut running);
    eventually("the command has ended", || !pids.iter().any(|pid| lives(pid)));
}

#[test]
fn what_a_command_left_running_outlives_a_host_that_is_killed() {
    let program = Program::new().unconfined();
    let mut running = program.start(&[&NO_QUESTION[..], &["--no-tmux", "run"]].concat());
    running.write(request(1, "run_shell", &harmless("sleep 1000 >/dev/null 2>&1 & echo $! >left")));
    assert_eq!(running.line()["error"], json!(null));
    let left = std::fs::read_to_string(program.path("work/left")).unwrap();
    let watcher = watcher(running.pid(), "");
    running.signal("KILL");
    ended(&mut running);
    eventually("the watcher has ended", || !lives(&watcher));
    assert!(lives(&left));
    signal(&left, "KILL");
}

/// A user may end all processes of theirs but the host, or a command may.
#[test]
fn a_watcher_that_is_gone_or_stands_still_is_replaced_and_ends_nothing_that_runs() {
    let program = Program::new().unconfined();
    let mut running = program.start(&[&NO_QUESTION[..], &["--no-tmux", "run"]].concat());
    running.write(request(1, "run_shell", &harmless("true")));
    running.line();
    let first = watcher(running.pid(), "");
    signal(&first, "KILL");
    eventually("it has ended", || !lives(&first));
    running.write(request(2, "run_shell", &endless()));
    let pids = begun(&program);
    let second = watcher(running.pid(), &first);
    // A stopped one gets lines until its pipe is full, and is killed then: continued later, it would end what runs.
    signal(&second, "STOP");
    for id in 3..2503 {
        running.write(request(id, "run_shell", &harmless(":")));
        assert_eq!(running.line()["error"], json!(null));
    }
    watcher(running.pid(), &second);
    assert!(!lives(&second));
    assert!(pids.iter().all(|pid| lives(pid)));
    running.signal("KILL");
    ended(&mut running);
    eventually("the command has ended", || !pids.iter().any(|pid| lives(pid)));
}

#[test]
fn one_signal_ends_a_run_that_waits_for_input() {
    let program = Program::new();
    let mut running = program.start(&["run"]);
    catches_signals(running.pid());
    running.signal("INT");
    assert_eq!(ended(&mut running), Some(130));
}

#[test]
fn one_signal_ends_a_call_that_waits_for_its_arguments() {
    let program = Program::new();
    let mut running = program.start(&["call", "time", "-"]);
    catches_signals(running.pid());
    running.signal("INT");
    assert_eq!(ended(&mut running), Some(130));
}

/// Nobody reads the answers, so after the first signal the program waits to write them; the command's end shows that the
/// first signal has been heard.
#[test]
fn a_second_signal_ends_a_run_at_once() {
    let program = Program::new().unconfined();
    let mut running = program.start(&[&NO_QUESTION[..], &["run"]].concat());
    running.write(request("endless", "run_shell", &endless()));
    let pids = begun(&program);
    let long = harmless("yes | head -c 3000; touch last");
    (0..50).for_each(|id| running.write(request(id, "run_shell", &long)));
    eventually("more was answered than a pipe holds", || program.path("work/last").exists());
    let audit = || std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).unwrap();
    eventually("all short calls have ended", || audit().matches("\"outcome\":\"ok\"").count() == 50);

    running.signal("INT");
    eventually("the first signal was heard", || !pids.iter().any(|pid| lives(pid)));
    eventually("the call has its outcome", || audit().contains("\"outcome\":\"cancelled\""));
    assert!(running.ended(std::time::Duration::ZERO).is_none(), "it ended although its answers were not read");
    running.signal("INT");
    assert_eq!(ended(&mut running), Some(130));
}

#[test]
fn a_signal_ends_a_server_to_which_nobody_has_spoken() {
    for signal in ["INT", "TERM", "HUP"] {
        let program = Program::new();
        let mut running = program.start(&["serve"]);
        catches_signals(running.pid());
        running.signal(signal);
        assert_eq!(ended(&mut running), Some(130), "{signal}");
        assert_eq!(running.said(), "", "{signal}");
    }
}

/// The host is killed between the end of a command and the word of it; or a number that it told of is another's by then.
#[test]
fn what_a_command_left_running_outlives_a_host_that_had_no_time_to_tell_of_its_end() {
    use std::io::{Write, pipe};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    let program = Program::new().unconfined();
    let left = program.path("left");
    for is_another in [false, true] {
        let mut leader = Command::new("sh");
        leader.arg("-c").arg("sleep 1000 >/dev/null 2>&1 & echo $! >\"$0\"; read end").arg(&left);
        let mut leader = leader.process_group(0).stdin(Stdio::piped()).spawn().unwrap();
        eventually("it runs", || std::fs::read_to_string(&left).is_ok_and(|pid| lives(&pid)));
        let sleep = std::fs::read_to_string(&left).unwrap();
        let (noted, mut notes) = pipe().unwrap();
        let mut watcher = Command::new(Program::file());
        let mut watcher = watcher.arg("watch").stdin(Stdio::piped()).stdout(noted).spawn().unwrap();
        let mut told = watcher.stdin.take().unwrap();
        // In milliseconds since the system was started.
        let at = if is_another { 0 } else { u64::MAX };
        writeln!(notes, "+{} {at} c4115", leader.id()).unwrap();
        // What it has open only root can list; others see that it has read its notes.
        let handles = || std::fs::read_dir(format!("/proc/{}/fd", watcher.id()));
        let is_pidfd = |fd: std::fs::DirEntry| {
            std::fs::read_link(fd.path()).is_ok_and(|to| to.ends_with("anon_inode:[pidfd]") || to.starts_with("pidfd:"))
        };
        if is_another {
            drop((told, notes));
            assert!(watcher.wait().unwrap().success());
            assert!(leader.try_wait().unwrap().is_none());
            leader.kill().unwrap();
            leader.wait().unwrap();
        } else {
            writeln!(told).unwrap();
            let has_read = || rustix::io::ioctl_fionread(&notes).unwrap() == 0;
            eventually("the command is watched", || {
                handles().map_or_else(|_| has_read(), |open| open.flatten().any(is_pidfd))
            });
            drop(leader.stdin.take());
            leader.wait().unwrap();
            drop((told, notes));
            assert!(watcher.wait().unwrap().success());
        }
        assert!(lives(&sleep));
        signal(&sleep, "KILL");
        std::fs::remove_file(&left).unwrap();
    }
}
