//! `memory` under [confine]: what the commands of a cell take together is bounded by a cgroup, and so are their processes, also root's. Where
//! there is none that can be divided nothing is confined.
#![expect(clippy::disallowed_methods, reason = "the program started by others, and these tests themselves once more")]

mod group;
mod inside;

use crate::modes::call;
use crate::rig::{Via, program, word};
use rustix::fs::{Access, access};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use toolcrib_tests::shell::command;
use toolcrib_tests::{QUESTION, Terminal, is_long, skip};

/// The bound of most tests.
const MEMORY: &str = "confine.memory=\"64 MiB\"";
const NEEDS: &str = "`memory` under [confine] needs a cgroup";
const REMEDY: &str = "systemd-run --user --scope -p Delegate=yes";
/// What the names of the tests begin with that need a cgroup.
const INSIDE: &str = "memory::inside::";
/// The one of them that is always run; an emulated processor takes ten minutes for all.
const FIRST: &str = "memory::inside::what_takes_too_much_memory_dies_alone";
/// What has to be there of cgroups.
const ALL: &str = "/sys/fs/cgroup";

/// C-30, C-31: the tests in `inside`, as root and as a user without privileges. They run here where root can make a cgroup with these
/// controllers, else in a virtual machine, and there all of them under `tests/run --long` alone.
#[test]
fn memory_is_bounded_in_a_cgroup_of_its_own() {
    let tests = std::env::current_exe().expect("these tests");
    let (wanted, least) = if is_long() || can_be_made_here() { (INSIDE, 8) } else { (FIRST, 1) };
    let names = names(&tests, wanted);
    assert!(names.len() >= least, "{names:?}");
    let delegated = script("delegated");
    let mut command = if can_be_made_here() {
        Command::new(delegated)
    } else {
        let machine = tests.ancestors().nth(3).expect("tests lie in TARGET/PROFILE/deps").join("machine");
        if !machine.join("kernel").exists() {
            skip!("no cgroup bounds memory here, and there is no virtual machine (tests/run fetches it)");
        }
        let mut command = Command::new(script("run"));
        command.arg(machine).arg(delegated);
        command
    };
    let output = command.arg(&tests).arg(wanted).stdin(Stdio::null()).output().expect("bash");
    let said = text(&output);
    for user in ["0", "1000"] {
        let heading = format!("== user {user}\n");
        let section = said.split(&heading).nth(1).unwrap_or_else(|| panic!("nothing of user {user}: {said}"));
        let section = section.split("\n== user ").next().unwrap_or_default();
        for name in &names {
            assert!(section.contains(&format!("test {name} ... ok")), "{name} as user {user}: {said}");
        }
    }
    assert!(output.status.success() && !said.contains("SKIPPED"), "{said}");
}

/// Without a cgroup of its own, as a test starts it: nothing is confined, `required` refuses, and the reason and the remedy are told.
#[test]
fn without_a_cgroup_of_its_own_nothing_is_confined() {
    // Beside others in the root of all, which needs no other one.
    if is_root_of_all() {
        return;
    }
    nothing_is_confined(|given| group::through("exec \"$@\"", given), NEEDS);
}

/// A person is asked about an unconfined command, and sees why it is.
#[test]
fn a_person_sees_why_a_command_is_unconfined() {
    if is_root_of_all() {
        return;
    }
    let terminal = Terminal::idle(program(Via::Process));
    let set = format!("--set confine.mode=auto --set {}", word(MEMORY));
    terminal.run(&format!("$toolcrib {set} call run_shell {} >out", word(command("touch ran").to_string())));
    let screen = terminal.shows(QUESTION).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("wants to run on local, unconfined,"), "{screen}");
    assert!(screen.contains("needs a cgroup"), "{screen}");
    terminal.press(&["n", "Enter"]);
    assert_eq!(terminal.ended(), 5);
    assert!(!terminal.has("ran"));
}

/// Where a host that is `started` so can bound no memory, no answer in advance lets a command run, and everybody is told `why`.
fn nothing_is_confined(started: impl Fn(&Command) -> Command, why: &str) {
    let program = program(Via::Process);
    let arguments = command("touch ran").to_string();
    let ran = || fs::remove_file(program.path("work/ran")).is_ok();
    let run = |mode: &str, memory: &str| {
        let mode = format!("confine.mode={mode}");
        let given = ["--set", &mode, "--set", memory, "--yes", "call", "run_shell", &arguments];
        call(started(&program.command(&given)))
    };
    let denied = run("auto", MEMORY);
    let trail = fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    let said = format!("{denied}\n{trail}");
    assert!(denied.to_string().contains("cannot be confined here"), "{denied}");
    assert!(said.contains(why) && said.contains(NEEDS), "{said}");
    let refused = run("required", MEMORY);
    let said = refused.to_string();
    assert_eq!(refused["error"]["kind"], "unavailable", "{said}");
    assert!(said.contains(why) && said.contains(NEEDS) && said.contains(REMEDY), "{said}");
    assert!(!ran());
    // It is this setting that cannot be kept.
    let confined = run("required", "confine.memory=\"\"");
    assert!(confined["error"].is_null() && ran(), "{confined}");
    let mut doctor = started(&program.command(&["--set", MEMORY, "doctor"]));
    let said = text(&doctor.stdin(Stdio::null()).output().expect("it starts"));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(why) && said.contains(NEEDS) && said.contains(REMEDY), "{said}");
}

/// The tests that need a cgroup, by their names.
fn names(tests: &Path, wanted: &str) -> Vec<String> {
    let listed = Command::new(tests).args(["--list", "--ignored", wanted]).output().expect("these tests");
    text(&listed).lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("confined/machine").join(name)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Whether root can make cgroups here whose memory and processes are counted.
fn can_be_made_here() -> bool {
    let controllers = fs::read_to_string(format!("{ALL}/cgroup.subtree_control")).unwrap_or_default();
    let has = |name| controllers.split_whitespace().any(|controller| controller == name);
    rustix::process::getuid().is_root() && has("memory") && has("pids") && access(ALL, Access::WRITE_OK).is_ok()
}

/// Whether these tests are in the one cgroup that needs not be left to be divided.
fn is_root_of_all() -> bool {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let controllers = fs::read_to_string(format!("{ALL}/cgroup.controllers")).unwrap_or_default();
    let is_root = own.trim() == "0::/" && !Path::new(ALL).join("cgroup.events").exists();
    is_root && controllers.contains("memory") && access(ALL, Access::WRITE_OK).is_ok()
}
