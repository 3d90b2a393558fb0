//! The program as a user without special rights, for what the system never refuses to the superuser.

use serde_json::Value;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use toolcrib_tests::Program;

const NOBODY: u32 = 65534;

/// Calls a tool as somebody to whom the whole directory of `program` belongs; `None` where the program's file is out of their reach.
pub(crate) fn call(program: &Program, arguments: &[&str]) -> Option<(i32, Value)> {
    let mut command = program.command(&[&["call"], arguments].concat());
    if rustix::process::getuid().is_root() {
        give_away(program.root());
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = match command.stdin(Stdio::null()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return None,
        output => output.expect("the program starts"),
    };
    let envelope = serde_json::from_slice(&output.stdout).expect("an envelope");
    Some((output.status.code().expect("an exit code"), envelope))
}

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("the superuser gives files away");
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a directory") {
            give_away(&entry.expect("an entry").path());
        }
    }
}
