//! Listeners of Toolcrib programs on this machine: doors, pages and published ports. Nothing in a cell connects to one, whatever settings open.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{read_dir, read_link, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The state of a socket that waits for connections (`TCP_LISTEN` of net/tcp_states.h), as the kernel's lists have it.
const LISTEN: &str = "0A";
/// How this program is called, whichever version it is.
const NAME: &str = "toolcrib";

/// Whether a Toolcrib program of this user listens on a port of this machine.
pub(super) fn is_ours(port: u16) -> bool {
    let lists = ["tcp", "tcp6"].map(|name| read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default());
    let sockets: BTreeSet<String> =
        lists.iter().flat_map(|list| list.lines()).filter_map(|line| socket(line, port)).collect();
    if sockets.is_empty() {
        return false;
    }
    // Another program that has the library within it may have servers of its own, which are like any other.
    let is_toolcrib = backend::local::cell_program().is_ok();
    let own = std::fs::metadata("/proc/self/exe").ok().filter(|_| is_toolcrib);
    let own = own.map(|program| (program.dev(), program.ino()));
    let processes = read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    processes.filter(|process| is_program(process, own)).any(|process| {
        let files = read_dir(process.join("fd")).into_iter().flatten().flatten();
        files
            .filter_map(|file| read_link(file.path()).ok())
            .any(|to| to.to_str().is_some_and(|to| sockets.contains(to)))
    })
}

/// Whether a process runs this program, or one of its name.
fn is_program(process: &Path, own: Option<(u64, u64)>) -> bool {
    let exe = process.join("exe");
    let is_own = std::fs::metadata(&exe).is_ok_and(|program| own == Some((program.dev(), program.ino())));
    // An upgrade has replaced its file: then the kernel adds to its name.
    is_own
        || read_link(exe).is_ok_and(|program| {
            let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.trim_end_matches(" (deleted)") == NAME
        })
}

/// The socket of a line of `/proc/net/tcp` that waits for connections on a port, as links to it read.
fn socket(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, _, _, _, _, _, inode, ..] = fields[..] else { return None };
    let (_, number) = local.rsplit_once(':')?;
    let is_meant = state == LISTEN && u16::from_str_radix(number, 16) == Ok(port);
    is_meant.then(|| format!("socket:[{inode}]"))
}
