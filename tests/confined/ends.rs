//! How cells end, and what is bounded in them.

use crate::rig::{BOTH, Rig, Via};
use toolcrib_tests::processes::{sleeping, unique_seconds};
use toolcrib_tests::{eventually, is_long};

fn sleeps(seconds: &str) -> bool {
    !sleeping(seconds).is_empty()
}

/// C-06, C-29, C-46: the end of a command is the end of all that it started, however it ends; the status is the shell's.
#[test]
fn a_cell_ends_with_its_command() {
    let mut rig = Rig::new(Via::Process);
    let [killed, stubborn, orphaned] = [(); 3].map(|()| unique_seconds());
    for (script, status) in [
        ("exit 3", 3),
        ("kill -9 $$", -1),
        ("kill -ABRT $$", -1),
        ("sh -c 'kill -9 $$'; exit $?", 137),
        ("exec /nothing-of-that-name", 127),
        // To all but the first process, which the kernel keeps from it, and the one that asks.
        (&format!("sleep {killed} & kill -9 -1; exit 7"), 7),
        (&format!("setsid sh -c 'trap \"\" TERM HUP; sleep {stubborn}' & (setsid sleep {orphaned} &) ; echo begun"), 0),
    ] {
        assert_eq!(rig.run(script).0, status, "{script}");
    }
    let orphans = if is_long() { 10_000 } else { 100 };
    // The first process has ten seconds to take leave of them.
    let (status, printed) = rig.run(&format!(
        "i=0; while [ $i -lt {orphans} ]; do (true &) ; i=$((i+1)); done\n\
         i=0; while grep -q '^State.*zombie' /proc/[0-9]*/status 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done\n\
         grep -h ^State /proc/[0-9]*/status | sort | uniq -c"
    ));
    assert!(status == 0 && !printed.contains("zombie"), "{printed}");
    assert!([killed, stubborn, orphaned].iter().all(|seconds| !sleeps(seconds)));
    let notices = rig.notices("sleep 71004 & sleep 71005 & true");
    assert!(notices.contains("2 processes that the command started ended with it"), "{notices}");
    let notices = rig.notices("sleep 71006 & kill $!; wait; true");
    assert!(!notices.contains("ended with it"), "{notices}");
}

/// C-45: without the host a plain command ends, and the shell of a pane goes on.
#[test]
fn a_cell_ends_with_its_host_but_in_a_pane() {
    for via in BOTH {
        let (mut rig, seconds) = (Rig::new(via), unique_seconds());
        rig.run("true");
        rig.client.send("run_shell", toolcrib_tests::shell::command(&format!("sleep {seconds}")));
        eventually("it sleeps", || sleeps(&seconds));
        rig.client.kill();
        match via {
            Via::Process => eventually("it ends", || !sleeps(&seconds)),
            Via::Pane => {
                std::thread::sleep(std::time::Duration::from_millis(300));
                assert!(sleeps(&seconds), "a pane outlives its host");
                let _ = rig.program.tmux(&["kill-server"]);
                eventually("it ends with its pane", || !sleeps(&seconds));
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
    let [behind, front] = [(); 2].map(|()| unique_seconds());
    let text = format!("(setsid sleep {behind} &); sleep {front}");
    let call = rig.client.send("run_shell", toolcrib_tests::shell::command(&text));
    eventually("they sleep", || sleeps(&behind) && sleeps(&front));
    rig.client.cancel(call);
    let answer = rig.client.answer_to(call);
    assert_eq!(answer["error"]["kind"], "cancelled", "{answer}");
    assert!(answer["error"]["data"]["survivors"].is_null(), "{answer}");
    eventually("all end", || !sleeps(&behind) && !sleeps(&front));
}
