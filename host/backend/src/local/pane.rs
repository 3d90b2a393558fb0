//! A pane's side of a cell: this program starts its shell there, and makes way for it.

use super::{IN_GROUP, TIMES, walls};
use crate::cell::{self, Cell, Domain, Means, Namespaces, Profile, Walls};
use crate::spawn;
use base::disk::OwnDir;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this program answers to `cell`.
static ANSWERS_TO_CELL: AtomicBool = AtomicBool::new(false);
/// By which a program finds the pane that it is in, and its server.
const TMUX_VARIABLES: [&str; 2] = ["TMUX", "TMUX_PANE"];

/// Declares that this program answers to `cell` with [`run_cell`], so that shells of panes can be confined.
pub fn answer_to_cell() {
    ANSWERS_TO_CELL.store(true, Ordering::Relaxed);
}

/// How this program is started to be a pane's, before the file of the profile.
pub fn cell_program() -> Result<Vec<OsString>, String> {
    if !ANSWERS_TO_CELL.load(Ordering::Relaxed) {
        return Err("this program does not answer to `cell`".into());
    }
    let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    Ok(vec![program.into_os_string(), "cell".into()])
}

/// Runs a shell on the terminal of a pane, in the cell at this address and with this profile. This process becomes a small program that waits
/// for the shell; where there is no cell, it becomes the shell itself. Returns only if that failed.
pub fn run_cell(profile: &Path, address: &str, directory: &Path, argv: &[OsString]) -> io::Error {
    match start_shell(profile, address, directory, argv) {
        Ok(started) => become_waiter(&started),
        Err(error) => error,
    }
}

fn start_shell(profile: &Path, address: &str, directory: &Path, argv: &[OsString]) -> io::Result<spawn::Started> {
    let (profiles, name) = OwnDir::of_file(profile)?;
    let text = profiles.read(&name)?.ok_or(io::ErrorKind::NotFound)?;
    let profile: Profile = serde_json::from_slice(&text)?;
    // The file is named after the digest of its content: if they differ, somebody has changed the file.
    if name.strip_suffix(".json") != Some(profile.digest()) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the profile is not the one that it is named after"));
    }
    let (address, group) = match address.split_once(IN_GROUP) {
        Some((address, group)) => (address, Some(Path::new(group))),
        None => (address, None),
    };
    // First of all: what is started from here on comes along.
    cell::enter(&profile, group)?;
    // The server that a pane is in is not there for what runs in it.
    let mut environment: Vec<_> =
        std::env::vars_os().filter(|(name, _)| !TMUX_VARIABLES.iter().any(|own| name == own)).collect();
    profile.add_variables(&mut environment);
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let mut time = 1;
    loop {
        let cell = || Cell::joining(&profile, Arc::new(Namespaces::at(&profile, address)?)).map(Walls::Cell);
        let walls = walls(&profile, None, cell)?;
        if let Walls::Domain(domain) = &walls {
            return Err(become_shell(domain, &environment, directory, argv));
        }
        let started = spawn::spawn(&spawn::Program {
            standard: [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
            argv,
            sealed: None,
            environment: &environment,
            directory,
            walls: Some(&walls),
            terminal: spawn::Terminal::Ours,
        })?;
        match walls {
            Walls::Bwrap(_) if time < TIMES && !is_made(&started)? => time += 1,
            Walls::Bwrap(_) | Walls::Cell(_) | Walls::Living(_) | Walls::Domain(_) => return Ok(started),
        }
    }
}

/// Waits until the first process of a cell is there that another program makes.
fn is_made(started: &spawn::Started) -> io::Result<bool> {
    let Some(lifeline) = &started.lifeline else { return Ok(true) };
    rustix::event::poll(&mut [PollFd::new(lifeline, PollFlags::IN)], None)?;
    Ok(spawn::Started::says_it_is_there(lifeline))
}

/// Becomes the shell of a pane, in a domain: nothing is left for which somebody would have to wait.
#[expect(clippy::disallowed_methods, reason = "this module starts processes, and this call replaces the present one")]
fn become_shell(
    domain: &Domain,
    environment: &[(OsString, OsString)],
    directory: &Path,
    argv: &[OsString],
) -> io::Error {
    use std::os::unix::process::CommandExt;
    let mut shell = std::process::Command::new(&argv[0]);
    shell.args(&argv[1..]).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    if let Err(error) = std::env::set_current_dir(directory) {
        return error;
    }
    #[expect(unsafe_code, reason = "a domain is entered by system calls")]
    // SAFETY: what becomes the shell of a pane has one thread.
    match unsafe { domain.enter() } {
        Ok(()) => shell.exec(),
        Err(error) => io::Error::from_raw_os_error(error),
    }
}

#[expect(clippy::disallowed_methods, reason = "this module starts processes, and this call replaces the present one")]
fn become_waiter(started: &spawn::Started) -> io::Error {
    use std::os::unix::process::CommandExt;
    // The copy stays open in what this becomes: when that ends, so does the cell.
    let kept = match started.lifeline.as_ref().map(rustix::io::dup) {
        Some(Ok(kept)) => kept,
        Some(Err(error)) => return error.into(),
        None => return io::ErrorKind::Unsupported.into(),
    };
    let words = [kept.as_raw_fd().to_string(), "wait".into(), started.pid.to_string()];
    let init = match cell::init() {
        Ok(init) => init,
        Err(error) => return error,
    };
    let mut waiter = std::process::Command::new(format!("/proc/self/fd/{init}"));
    waiter.arg0("toolcrib-init").args(words).exec()
}

/// Whether a process is what this program becomes once the shell of a cell was started.
fn waits_for_cell(process: &str) -> bool {
    let program = std::fs::read_link(format!("/proc/{process}/exe"));
    program.is_ok_and(|program| program.as_os_str().as_bytes().starts_with(b"/memfd:toolcrib-init"))
}

/// Whether this program has made way for the shell in a process of a pane.
pub fn has_made_way(profile: &Profile, process: &str) -> bool {
    match profile.by {
        Means::Namespaces | Means::Bwrap(_) => waits_for_cell(process),
        Means::Landlock => {
            let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe"));
            // If the link cannot be read, the process is not this program.
            program(process).map_or(true, |running| program("self").is_ok_and(|own| own != running))
        }
    }
}

/// The shell that a process of a pane waits for, which is in a cell: it is the one that the first process there started.
pub(super) fn shell_behind(waiter: &str) -> Option<String> {
    let words = std::fs::read(format!("/proc/{waiter}/cmdline")).ok().filter(|_| waits_for_cell(waiter))?;
    let first = String::from_utf8(words.split(|byte| *byte == 0).nth(3)?.to_vec()).ok()?;
    let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children")).ok()?;
    children.split(' ').next().filter(|child| !child.is_empty()).map(str::to_owned)
}
