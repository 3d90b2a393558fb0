//! What needs a cgroup: `memory_is_bounded_in_a_cgroup_of_its_own` runs these tests where there is one, as root and as another user.

use super::group::{self, Group, read, started_in, through};
use super::{ALL, MEMORY, text};
use crate::modes::{NEEDS, call, remedy};
use crate::rig::{BOTH, REQUIRED, Rig, Via, program, word};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use toolcrib_tests::processes::{sleeping, unique_seconds};
use toolcrib_tests::shell::{command, declared, with};
use toolcrib_tests::{Client, Program, Running, eventually};

/// What takes more than 64 MiB in memory of its own.
const TAKES_MUCH: [&str; 2] = ["python3 -c 'print(len(b\"x\" * (200 << 20)))'", "head -c 200M /dev/zero | tail"];
const TOLD: &str = "reached `memory` under [confine] (64 MiB)";
/// Forks until it cannot, or 400 times; then says how often, and ends what it forked.
const FORKS: &str = include_str!("forks.py");
/// Tries to open each file that bounds something or moves processes, and to make cgroups.
const LEAVES: &str = include_str!("leaves.sh");

/// A host in this cgroup, with these settings.
fn client(cgroup: &Path, program: &Program, settings: &[&str]) -> Client {
    let set = [REQUIRED].iter().chain(settings).flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["--yes"].into_iter().chain(set).chain(["run"]).collect();
    Client::of(Running::start(&mut started_in(cgroup, &program.command(&arguments))))
}

fn host(cgroup: &Path, via: Via, settings: &[&str]) -> Rig {
    let program = program(via);
    let client = client(cgroup, &program, settings);
    Rig { client, program }
}

/// Whether it was ended by the kernel: as the shell has it, or as the shell itself.
fn was_ended(status: &Value) -> bool {
    *status == 137 || *status == -1
}

/// Each command and each shell is in the cgroup of its cell before it runs. One that does not enter it is in that of the host.
#[test]
#[ignore = "needs a cgroup"]
fn commands_are_in_the_cgroup_of_their_cell() {
    for via in BOTH {
        let group = Group::new();
        let mut rig = host(group.path(), via, &[MEMORY]);
        // A host takes its time to start in an emulated machine. This needs no cell.
        rig.client.result("time", json!({}));
        if via == Via::Pane {
            rig.client.result("tmux-create-pane", declared(json!({ "pane": "new" })));
        }
        // The first makes the cell or its pane, the next ones join, the last ones have a process that was there before.
        for number in 0..4 {
            let seconds = unique_seconds();
            let asleep = command(&format!("sleep {seconds}; true"));
            let is_other = via == Via::Pane && number % 2 == 1;
            let call = rig.client.send("run_shell", if is_other { with(asleep, "pane", "new") } else { asleep });
            eventually("it sleeps", || !sleeping(&seconds).is_empty());
            let found = group::of(&sleeping(&seconds)[0].to_string());
            assert!(group.cells().contains(&found), "{via:?} {number}: {found:?} {:?}", group.cells());
            assert_eq!(read(&found, "memory.max"), (64 << 20).to_string());
            assert_eq!(read(&found, "memory.swap.max"), "0");
            assert_eq!(read(&found, "pids.max"), "512");
            rig.client.cancel(call);
            rig.client.answer_to(call);
        }
    }
}

/// A command that takes more than the bound dies, the result names the setting, and all else goes on. Without `memory.max` it succeeds.
#[test]
#[ignore = "needs a cgroup"]
fn what_takes_too_much_memory_dies_alone() {
    for via in BOTH {
        let (group, other) = (Group::new(), Group::new());
        let mut rig = host(group.path(), via, &[MEMORY]);
        let mut beside = host(other.path(), Via::Process, &[MEMORY]);
        // A host takes its time to start in an emulated machine, and to make a cell.
        assert_eq!(beside.run("true"), (0, String::new()));
        let seconds = unique_seconds();
        let asleep = beside.client.send("run_shell", command(&format!("sleep {seconds}; true")));
        eventually("it sleeps", || !sleeping(&seconds).is_empty());
        rig.run("kept=here");
        for text in TAKES_MUCH {
            let result = rig.result(text);
            assert!(was_ended(&result["exit_code"]), "{via:?} {text}: {result}");
            assert!(result["notices"].to_string().contains(TOLD), "{via:?} {text}: {result}");
            assert_eq!(rig.run("echo there"), (0, "there\n".into()), "{via:?} {text}");
        }
        if via == Via::Pane {
            assert_eq!(rig.run("echo $kept"), (0, "here\n".into()), "the shell lives on");
        }
        assert!(!sleeping(&seconds).is_empty(), "another workspace is not touched");
        beside.client.cancel(asleep);
        beside.client.answer_to(asleep);
    }
}

/// C-31: what is written into the cell's own places counts. A command that fills them fails, and the next one can remove it. Without `memory.max`
/// it succeeds, as there is room for more.
#[test]
#[ignore = "needs a cgroup"]
fn what_is_written_into_places_of_the_cell_counts() {
    for via in BOTH {
        for place in ["/tmp", "/dev/shm"] {
            let group = Group::new();
            let mut rig = host(group.path(), via, &[MEMORY]);
            rig.run("kept=here");
            let result = rig.result(&format!("head -c 200M /dev/zero >{place}/big"));
            assert_ne!(result["exit_code"], 0, "{via:?} {place}: {result}");
            let said = result.to_string();
            assert!(said.contains(TOLD) || said.contains("No space left"), "{via:?} {place}: {result}");
            let removed = rig.run(&format!("rm -f {place}/big; echo there"));
            assert_eq!(removed, (0, "there\n".into()), "{via:?} {place}");
            if via == Via::Pane {
                assert_eq!(rig.run("echo $kept"), (0, "here\n".into()), "{place}: the shell lives on");
            }
        }
    }
}

/// Two cells of one host have a bound each, and what dies in one leaves the other alone. With one cgroup for both there is but one part.
#[test]
#[ignore = "needs a cgroup"]
fn each_cell_has_a_bound_of_its_own() {
    let group = Group::new();
    let program = program(Via::Process);
    let toolset = "[toolset.alone]\ntools = [\"run_shell\"]\n[toolset.alone.grant]\nconfine.network = \"none\"\n";
    program.write("toolsets.toml", toolset);
    let config = program.path("toolsets.toml").display().to_string();
    let given = ["--yes", "--config", &config, "--set", REQUIRED, "--set", MEMORY, "run"];
    let mut running = Running::start(&mut started_in(group.path(), &program.command(&given)));
    let mut ask = |line: Value| {
        running.write(format!("{line}\n"));
        running.line()
    };
    let opened = ask(json!({ "id": 1, "open": { "toolset": "alone" } }));
    assert_eq!(opened["result"]["session"], "s1", "{opened}");
    let mut run = |session: Option<&str>, text: &str| {
        let mut line = json!({ "id": 2, "tool": "run_shell", "arguments": command(text) });
        if let Some(session) = session {
            line["session"] = session.into();
        }
        ask(line)["result"].clone()
    };
    for session in [None, Some("s1")] {
        let result = run(session, "head -c 8M /dev/zero >/tmp/kept");
        assert_eq!(result["exit_code"], 0, "{session:?} {result}");
    }
    eventually("two cells are in use", || group.used() == 2);
    assert!(group.cells().iter().all(|cell| read(cell, "memory.max") == (64 << 20).to_string()));
    let result = run(None, TAKES_MUCH[0]);
    assert!(was_ended(&result["exit_code"]), "{result}");
    let result = run(Some("s1"), "wc -c </tmp/kept");
    assert_eq!(result["stdout"], format!("{}\n", 8 << 20), "{result}");
    drop(running);
    eventually("no cell is left", || group.cells().is_empty());
}

/// C-30, also as root: a cell has so many processes at once. A fork bomb is stopped, hosts go on, and nothing is left of it. Without `pids.max`
/// root forks 400 times.
#[test]
#[ignore = "needs a cgroup"]
fn a_fork_bomb_stops_at_the_bound_of_processes() {
    let bounded = ["confine.processes=64", "confine.memory=\"256 MiB\""];
    for via in BOTH {
        let (group, other) = (Group::new(), Group::new());
        let mut rig = host(group.path(), via, &bounded);
        fs::write(rig.work("forks.py"), FORKS).expect("a file");
        let result = rig.result("python3 forks.py");
        let said = result.to_string();
        let forked = said.split("forked ").nth(1).and_then(|rest| rest.split("\\n").next()?.parse::<u32>().ok());
        assert!(forked.is_some_and(|forked| (20..64).contains(&forked)), "{via:?} {result}");
        assert!(said.contains("may have 64 processes at once"), "{via:?} {result}");
        assert_eq!(rig.run("echo there"), (0, "there\n".into()), "{via:?}");
        // In a pane it would go on until that is closed.
        if via == Via::Process {
            let mut beside = host(other.path(), Via::Process, &bounded);
            let bomb = rig.client.send("run_shell", command("b() { b | b & }; b; sleep 1; true"));
            let time = rig.client.send("time", json!({}));
            assert!(rig.client.answer_to(time)["error"].is_null(), "the host goes on");
            assert_eq!(beside.run("echo there"), (0, "there\n".into()), "the neighbour goes on");
            rig.client.answer_to(bomb);
            // What keeps the cell, and what the next command is started by.
            eventually("nothing is left", || group.processes() <= 2);
            assert_eq!(rig.run("echo there"), (0, "there\n".into()));
        }
    }
}

/// C-33: no command raises its bound or leaves its cgroup. What keeps it from that is that it may write no such file.
#[test]
#[ignore = "needs a cgroup"]
fn no_command_raises_its_bound_or_leaves() {
    for via in BOTH {
        let group = Group::new();
        let mut rig = host(group.path(), via, &[MEMORY]);
        fs::write(rig.work("leaves.sh"), LEAVES).expect("a file");
        let (_, printed) = rig.run(&format!("sh leaves.sh {ALL}"));
        let tried = printed.strip_prefix("tried ").and_then(|rest| rest.trim().parse::<u32>().ok());
        assert!(tried.is_some_and(|tried| tried > 20), "{via:?} {printed}");
        for cell in group.cells() {
            assert_eq!(read(&cell, "memory.max"), (64 << 20).to_string(), "{via:?}");
            assert_eq!(read(&cell, "pids.max"), "512", "{via:?}");
        }
    }
}

/// Cgroups go with the host that made them; those of a host that was killed, when the next one comes.
#[test]
#[ignore = "needs a cgroup"]
fn no_cgroup_outlives_what_it_is_for() {
    for via in BOTH {
        let group = Group::new();
        let mut rig = host(group.path(), via, &[MEMORY]);
        rig.run("true");
        assert!(!group.cells().is_empty() && group.hosts().len() == 1, "{via:?}");
        // Panes would live on, and what bounds them with them.
        let _ = rig.program.tmux(&["kill-server"]);
        let part = group.hosts().pop().expect("that of the host");
        // The host, and what watches over its commands.
        eventually("panes are gone", || read(&part, "cgroup.procs").lines().count() <= 2 && group.processes() <= 2);
        assert!(rig.client.end(Duration::from_secs(10)).is_some(), "{via:?} it ends");
        eventually("all is removed", || group.cells().is_empty() && group.hosts().is_empty());
        drop(rig);

        let mut killed = host(group.path(), via, &[MEMORY]);
        killed.run("true");
        killed.client.kill();
        let _ = killed.program.tmux(&["kill-server"]);
        let left = [group.cells(), group.hosts()].concat();
        assert!(left.len() >= 2, "{via:?} {left:?}");
        eventually("what ran there ends", || left.iter().all(|part| read(part, "cgroup.procs").is_empty()));
        group.gather();
        let mut next = host(group.path(), via, &[MEMORY]);
        next.run("true");
        assert!(left.iter().all(|part| !part.exists()), "{via:?} {left:?}");
    }
}

/// A pane that outlives its host stays in its cgroup, and the next host gives it a new shell, in a cgroup of its own. By its mark alone it would be
/// used as it is.
#[test]
#[ignore = "needs a cgroup"]
fn a_pane_that_outlives_its_host_stays_bounded() {
    let group = Group::new();
    let mut rig = host(group.path(), Via::Pane, &[MEMORY]);
    rig.run("kept=here");
    rig.client.kill();
    let in_cgroup = |rig: &Rig| {
        let pane = rig.program.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]);
        group::of(pane.lines().next().expect("a pane"))
    };
    let cell = in_cgroup(&rig);
    assert!(group.cells().contains(&cell), "{cell:?}");
    assert_eq!(read(&cell, "memory.max"), (64 << 20).to_string());
    // As a program that the one before has started.
    let part = group.hosts().pop().expect("that of the host");
    rig.client = client(&part, &rig.program, &[MEMORY]);
    assert_eq!(rig.run("echo kept $kept"), (0, "kept\n".into()), "it has a new shell");
    let next = in_cgroup(&rig);
    assert!(next != cell && group.cells().contains(&next), "{next:?}");
    let result = rig.result(TAKES_MUCH[0]);
    assert!(was_ended(&result["exit_code"]), "{result}");
}

/// Where the controllers were taken back, what was bounded is not used any more, and what is started next is bounded anew.
#[test]
#[ignore = "needs a cgroup"]
fn what_lost_its_bound_is_not_used() {
    for via in BOTH {
        let group = Group::new();
        let mut rig = host(group.path(), via, &[MEMORY]);
        rig.run("kept=here");
        group.gather();
        let result = rig.result(TAKES_MUCH[0]);
        assert!(was_ended(&result["exit_code"]), "{via:?} {result}");
        assert_eq!(rig.run("echo kept $kept"), (0, "kept\n".into()), "{via:?}");
    }
}

/// A program of Toolcrib that another one has started divides the same cgroup: both bound their cells.
#[test]
#[ignore = "needs a cgroup"]
fn two_programs_share_a_cgroup() {
    let group = Group::new();
    let mut first = host(group.path(), Via::Process, &[MEMORY]);
    first.run("true");
    let part = group.hosts().pop().expect("that of the first");
    let mut second = host(&part, Via::Process, &[MEMORY]);
    second.run("true");
    eventually("two cells are in use", || group.used() == 2);
    for (rig, other) in [(&mut first, 0), (&mut second, 1)] {
        let result = rig.result(TAKES_MUCH[0]);
        assert!(was_ended(&result["exit_code"]), "{other} {result}");
    }
    assert_eq!(first.run("echo there"), (0, "there\n".into()));
    assert_eq!(second.run("echo there"), (0, "there\n".into()));
    // Whichever ends first takes nothing from the other.
    drop(first);
    let result = second.result(TAKES_MUCH[0]);
    assert!(was_ended(&result["exit_code"]), "{result}");
    drop(second);
    eventually("no cell is left", || group.cells().is_empty());
}

/// C-43: a cgroup with other processes, one without controllers, and one that the user may not change cannot be divided.
#[test]
#[ignore = "needs a cgroup"]
fn what_cannot_be_divided_bounds_nothing() {
    let group = Group::new();
    let enters = format!("echo 0 >{}", word(group.path().join("cgroup.procs")));
    // No child of the host, which would take it along.
    let shared = format!("{enters}; (sleep 1000 </dev/null >/dev/null 2>&1 &); exec \"$@\"");
    nothing_runs(|given| through(&shared, given), " is in `");

    let group = Group::new();
    let part = group.path().join("part");
    fs::create_dir(&part).expect("a cgroup");
    nothing_runs(|given| started_in(&part, given), "lacks the controllers");

    let group = Group::new();
    let fixed = if rustix::process::getuid().is_root() {
        // Nothing but such a mount keeps root from it.
        let enters = format!("echo 0 >{}", word(group.path().join("cgroup.procs")));
        format!("{enters} && exec unshare --mount sh -c 'mount -o remount,bind,ro {ALL} && exec \"$@\"' sh \"$@\"")
    } else {
        format!("echo 0 >{} && exec \"$@\"", word(group::given().join("fixed/cgroup.procs")))
    };
    nothing_runs(|given| through(&fixed, given), "cannot be changed");
}

/// Checks a host that cannot bound memory, for the reason `why`: a command runs only with `mode = "off"`, or without a bound.
fn nothing_runs(started: impl Fn(&Command) -> Command, why: &str) {
    let program = program(Via::Process);
    let arguments = command("touch ran").to_string();
    let ran = || fs::remove_file(program.path("work/ran")).is_ok();
    let run = |mode: &str, memory: &str| {
        let mode = format!("confine.mode={mode}");
        let given = ["--set", &mode, "--set", memory, "--yes", "call", "run_shell", &arguments];
        call(started(&program.command(&given)))
    };
    for mode in ["auto", "required"] {
        let refused = run(mode, MEMORY);
        let said = refused.to_string();
        assert_eq!(refused["error"]["kind"], "unavailable", "{mode}: {said}");
        assert!(said.contains(why) && said.contains(NEEDS) && said.contains(remedy()), "{mode}: {said}");
        assert!(!ran(), "{mode}");
    }
    // It is this setting that cannot be kept.
    let confined = run("required", "confine.memory=\"\"");
    assert!(confined["error"].is_null() && ran(), "{confined}");
    let mut doctor = started(&program.command(&["--set", MEMORY, "doctor"]));
    let said = text(&doctor.stdin(Stdio::null()).output().expect("it starts"));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(why) && said.contains(NEEDS) && said.contains(remedy()), "{said}");
}
