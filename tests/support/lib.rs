//! What the tests share: a host with directories of its own, the program as a child process, skips that are counted.

pub mod forge;
mod host;
mod program;
mod seat;
mod siege;
mod terminal;
mod web;

pub use host::{Asked, TestHost, digest, guest, plugin_source};
pub use program::{Program, Running, signal, without_terminal};
pub use seat::Seat;
pub use siege::{Preparation, Siege, compiled, reuse_code};
pub use terminal::{MORE, QUESTION, Terminal};
pub use web::serve;

/// Ends a test that cannot run here: says why, and leaves a line that `tests/run` counts.
///
/// # Panics
///
/// When the line cannot be left.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::note_skip(module_path!(), &format!($($reason)*));
        return;
    }};
}

/// Leaves the line of a skipped test; use [`skip!`].
///
/// # Panics
///
/// When the file that `TOOLCRIB_SKIPS` names cannot be written.
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
///
/// # Panics
///
/// When there is no such process.
#[must_use]
pub fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process in memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Waits until `is_so`, at most ten seconds.
///
/// # Panics
///
/// When it is not so by then.
pub fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "not within 10 s: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
