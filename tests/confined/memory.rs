//! `memory` under [confine]: what the commands of a cell take together is bounded by a cgroup, and so are their processes, also root's. What
//! happens where there is none that can be divided is in `modes.rs` as well.
#![expect(clippy::disallowed_methods, reason = "the program started by others, and these tests themselves once more")]

mod group;
mod inside;

use rustix::fs::{Access, access};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use toolcrib_tests::{is_long, skip};

/// The bound of most tests.
const MEMORY: &str = "confine.memory=\"64 MiB\"";
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
