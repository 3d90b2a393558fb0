//! How cells end, and what is bounded in them.

use crate::rig::{BOTH, Rig, Via};
use std::fs;
use toolcrib_tests::{eventually, is_long};

fn sleeps(seconds: u32) -> bool {
    let line = format!("sleep\0{seconds}\0");
    let is_it =
        |process: fs::DirEntry| fs::read(process.path().join("cmdline")).is_ok_and(|said| said == line.as_bytes());
    fs::read_dir("/proc").expect("processes").flatten().any(is_it)
}

/// C-06, C-29, C-46: the end of a command is the end of all that it started, however it ends; the status is the shell's.
#[test]
fn a_cell_ends_with_its_command() {
    let mut rig = Rig::new(Via::Process);
    for (script, status) in [
        ("exit 3", 3),
        ("kill -9 $$", -1),
        ("kill -ABRT $$", -1),
        ("sh -c 'kill -9 $$'; exit $?", 137),
        ("exec /nothing-of-that-name", 127),
        // To all but the first process, which the kernel keeps from it, and the one that asks.
        ("sleep 71003 & kill -9 -1; exit 7", 7),
        ("setsid sh -c 'trap \"\" TERM HUP; sleep 71000' & (setsid sleep 71001 &) ; echo begun", 0),
    ] {
        assert_eq!(rig.run(script).0, status, "{script}");
    }
    let orphans = if is_long() { 10_000 } else { 100 };
    let (status, printed) = rig.run(&format!(
        "i=0; while [ $i -lt {orphans} ]; do (true &) ; i=$((i+1)); done; sleep 0.2; grep -h ^State /proc/[0-9]*/status | sort | uniq -c"
    ));
    assert!(status == 0 && !printed.contains("zombie"), "{printed}");
    assert!([71000, 71001, 71003].into_iter().all(|seconds| !sleeps(seconds)));
    let notices = rig.notices("sleep 71004 & sleep 71005 & true");
    assert!(notices.contains("2 processes that the command started ended with it"), "{notices}");
    let notices = rig.notices("sleep 71006 & kill $!; wait; true");
    assert!(!notices.contains("ended with it"), "{notices}");
}

/// C-45: without the host a plain command ends, and the shell of a pane goes on.
#[test]
fn a_cell_ends_with_its_host_but_in_a_pane() {
    for (via, seconds) in [(Via::Process, 72001), (Via::Pane, 72002)] {
        let mut rig = Rig::new(via);
        rig.run("true");
        rig.client.send("run_shell", toolcrib_tests::shell::command(&format!("sleep {seconds}")));
        eventually("it sleeps", || sleeps(seconds));
        rig.client.kill();
        match via {
            Via::Process => eventually("it ends", || !sleeps(seconds)),
            Via::Pane => {
                std::thread::sleep(std::time::Duration::from_millis(300));
                assert!(sleeps(seconds), "a pane outlives its host");
                let _ = rig.program.tmux(&["kill-server"]);
                eventually("it ends with its pane", || !sleeps(seconds));
            }
        }
    }
}

/// C-30: a command that starts others without end is stopped by the cell's bound, which counts the cell's own. It does not bind root without
/// a cgroup.
#[test]
fn processes_are_bounded() {
    if rustix::process::getuid().is_root() {
        return;
    }
    for via in BOTH {
        let mut rig = Rig::with(via, &["confine.processes=100"]);
        let (_, printed) =
            rig.run("(i=0; while [ $i -lt 300 ]; do sleep 5 & i=$((i+1)); done; echo reached-all) 2>&1; echo after");
        assert!(!printed.contains("reached-all"), "{via:?} {printed}");
    }
}

/// A cell is given up with its call: all in it ends.
#[test]
fn a_command_that_is_cancelled_takes_all_along() {
    let mut rig = Rig::new(Via::Process);
    let call = rig.client.send("run_shell", toolcrib_tests::shell::command("(setsid sleep 73001 &); sleep 73002"));
    eventually("it sleeps", || sleeps(73001) && sleeps(73002));
    rig.client.cancel(call);
    let answer = rig.client.answer_to(call);
    assert_eq!(answer["error"]["kind"], "cancelled", "{answer}");
    assert!(answer["error"]["data"]["survivors"].is_null(), "{answer}");
    eventually("all end", || !sleeps(73001) && !sleeps(73002));
}
