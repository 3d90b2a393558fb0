//! What the clients of ssh hold open: connections to a port, sockets that they listen on.

use std::collections::BTreeSet;
use std::path::PathBuf;
use toolcrib_tests::processes::pids;

/// The sockets of a process, by their numbers.
fn sockets(pid: u32) -> BTreeSet<String> {
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        let link = std::fs::read_link(entry.ok()?.path()).ok()?;
        Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
    };
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    entries.filter_map(number).collect()
}

/// Lines of a table of the kernel, in fields.
fn table(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/net/{name}")).expect("a table of sockets");
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// Processes of ssh that are connected to a port of this machine. A master renames itself, so its command line says nothing.
pub(crate) fn ssh_clients(port: u16) -> Vec<u32> {
    let end = format!(":{port:04X}");
    let is_there = |fields: &Vec<String>| fields.len() > 9 && fields[2].ends_with(&end) && fields[3] == "01";
    let connections: BTreeSet<String> =
        table("tcp").into_iter().filter(is_there).map(|mut fields| fields.swap_remove(9)).collect();
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let is_client = |pid: &u32| name(*pid).trim_end() == "ssh" && !sockets(*pid).is_disjoint(&connections);
    pids().filter(is_client).collect()
}

/// The files of the sockets that these processes listen on.
pub(crate) fn listening(pids: &[u32]) -> Vec<PathBuf> {
    let own: BTreeSet<String> = pids.iter().flat_map(|pid| sockets(*pid)).collect();
    let is_one = |fields: &Vec<String>| fields.len() == 8 && fields[3] == "00010000" && own.contains(&fields[6]);
    table("unix").into_iter().filter(is_one).map(|mut fields| PathBuf::from(fields.swap_remove(7))).collect()
}
