//! What the tests share: a host with directories of its own, the program as a child process and its clients, skips that are counted.
//!
//! What is asked for here and does not come is a panic: the test has failed.

pub mod browser;
pub mod canary;
pub mod certificate;
pub mod client;
pub mod embedder;
pub mod envelope;
pub mod forge;
mod host;
pub mod http;
mod jotter;
pub mod mail;
pub mod mcp;
mod names;
pub mod official;
pub mod outcome;
pub mod processes;
mod program;
pub mod registry;
mod running;
mod seat;
pub mod shell;
mod siege;
mod terminal;
mod wait;
mod web;

pub use client::Client;
pub use host::{Asked, TestHost, digest, guest, plugin_source};
pub use jotter::Jotter;
pub use names::{names, names_by};
pub use program::{LANDLOCK, MOUNT, MOUNT_SETATTR, Program, on_path, write_program};
pub use running::{PATIENCE, Running, signal, without_terminal};
pub use seat::Seat;
pub use siege::{Preparation, Siege, compiled, reuse_code};
pub use terminal::{MORE, QUESTION, Terminal};
pub use wait::{ended, eventually};
pub use web::serve;

/// Ends a test that cannot run here: says why, and leaves a line that `tests/run` counts.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::note_skip(module_path!(), &format!($($reason)*));
        return;
    }};
}

/// Leaves the line of a skipped test; use [`skip!`].
pub fn note_skip(test: &str, reason: &str) {
    use std::io::Write;
    println!("SKIPPED {test}: {reason}");
    if let Some(path) = std::env::var_os("TOOLCRIB_SKIPS") {
        let mut file = std::fs::File::options().append(true).create(true).open(path).expect("the list of skips");
        writeln!(file, "{test}: {reason}").expect("a line in the list of skips");
    }
}

/// The full figures are wanted: `tests/run --long`.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("TOOLCRIB_LONG").is_some()
}

/// Resident memory of a process, in KiB.
#[must_use]
pub fn resident_kib(pid: u32) -> u64 {
    memory_kib(pid, "VmRSS")
}

/// What the kernel says of a process's memory under such a name, in KiB; `VmHWM` is the most that was resident.
#[must_use]
pub fn memory_kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a process in memory").trim().trim_end_matches(" kB").parse().expect("a number")
}
