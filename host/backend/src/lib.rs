//! Where effects land: a backend starts processes, can end their whole tree, and reads and writes files.
//!
//! Only this crate starts processes. What may be done at all is decided before, in `policy`; which paths are opened, in `file_access`.
//!
//! - `local.rs` is this machine, `cell/` what confines a command there, with a gate before each git directory (what is taken over from it is
//!   decided in the crate `git`);
//! - `terminals.rs` says which terminals people may be sitting at;
//! - `own.rs` starts what settings name for the host itself;
//! - `watcher.rs` ends the commands of a host that was killed;
//! - `search/` finds files and lines below a directory;
//! - `remote.rs` is all that other places have in common: commands between marks, their end, files by scripts; `container.rs` and `ssh.rs`
//!   are the ways there.
//!
//! It depends on `file_access`, `base`, `config`, `git` and `leaks`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod cell;
pub mod container;
mod environment;
pub mod files;
pub mod local;
pub mod osc133;
pub mod own;
mod remote;
pub mod sealed;
pub mod search;
mod spawn;
pub mod ssh;
mod temporary;
pub mod terminals;
mod tree;
pub mod undo;
mod watcher;

pub use base::environment::Environment;
pub use environment::{DEFAULT_PATH, Toolchains, toolchain_names};
pub use files::{PathFault, absolute, path_fault};
pub use spawn::commands_write;

use async_trait::async_trait;
use base::envelope::{Failure, Kind};
use cell::{Activity, Listeners, Met, PaneCell, Profile, Visit};
pub use file_access::{
    Expected, Facts, Place, ReadPath, ReadTree, Resolved, Surroundings, TmuxThere, Wanted, WritePath,
};
use futures_util::future::BoxFuture;
use leaks::Value;
use parking_lot::Mutex;
use sealed::Sealed;
use search::{Find, Found, Search, Watch};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWrite;
use undo::Replaced;

/// Time since the system was started: no clock that is set changes it. It stands still while the system sleeps, as all that counts it does on
/// this machine.
pub fn uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// What tells how much ran in cells so far; none where it cannot.
#[derive(Clone, Default)]
pub struct Active(Arc<Mutex<BTreeSet<u64>>>);

impl Active {
    /// How much ran in all cells so far; none where something runs now.
    pub fn now(&self) -> Option<Activity> {
        Activity::of(&self.0.lock())
    }

    /// The cells alone.
    pub fn cells(&self) -> Activity {
        Activity::in_cells(&self.0.lock())
    }

    /// Counts the cells of a host before this one as well.
    pub fn count(&self, other: &Activity) {
        self.0.lock().extend(other.users());
    }

    /// Counts the cell of this user namespace from now on.
    fn add(&self, user: u64) {
        self.0.lock().insert(user);
    }
}

/// A place where tools act.
#[async_trait]
pub trait Backend: Send + Sync {
    /// What approvals, audit lines and messages call it.
    fn name(&self) -> &str;

    /// Starts a process with closed standard input, an environment built from nothing, and no controlling terminal. Whether it runs is for
    /// [`Process::begun`] to say.
    async fn start(&self, process: ProcessSpec) -> Result<Box<dyn Process>, Failure>;

    /// Starts a process with an open standard input, which lives on beside the calls: a client of a server.
    async fn open(&self, process: ProcessSpec) -> Result<(Box<dyn Process>, Input), Failure>;

    /// What there is to know of the place, found out once.
    async fn facts(&self) -> Result<Arc<Facts>, Failure>;

    /// Finds what a path names on this backend, following links; nothing is opened yet. Where paths are not this machine's, the `roots` by
    /// which policy decides are found there too.
    async fn resolve(&self, path: &str, roots: &[PathBuf]) -> Result<Resolved, Failure>;

    /// Reads at most `max_bytes` from a regular file, and says how large it is.
    async fn read(&self, path: &ReadPath, offset: u64, max_bytes: usize) -> Result<FileText, Failure>;

    /// The first entries of a directory, at most `max`, and how many it has.
    async fn list(&self, path: &ReadPath, max: usize) -> Result<Listing, Failure>;

    /// What a path leads to.
    async fn stat(&self, path: &Place) -> Result<Entry, Failure>;

    /// Searches the files of a tree for lines.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` for a query that cannot be; `unavailable` for a place that cannot search.
    async fn search(&self, _tree: &ReadTree, _search: &Search, _watch: Arc<Watch>) -> Result<Found, Failure> {
        Err(cannot_search(self.name()))
    }

    /// Searches a tree for the names of files.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    async fn find(&self, _tree: &ReadTree, _find: &Find, _watch: Arc<Watch>) -> Result<Found, Failure> {
        Err(cannot_search(self.name()))
    }

    /// Makes a directory, and those above it that are missing; false where it was there.
    async fn make_directory(&self, path: &WritePath) -> Result<bool, Failure>;

    /// Looks at a regular file that is to be replaced, for the question to a person: it is read when it has at most `max_bytes`.
    async fn look(&self, path: &Wanted, max_bytes: usize) -> Result<Before, Failure>;

    /// Replaces a regular file whole or not at all, and only what the path expects. Returns what was there.
    async fn write(&self, path: &WritePath, content: Vec<u8>) -> Result<Replaced, Failure>;

    /// The program of a file, as it is now, where nobody can change it any more.
    ///
    /// # Errors
    ///
    /// `unavailable`, also where programs cannot be held so.
    async fn seal(&self, _: &Path) -> Result<Arc<Sealed>, Failure> {
        let message = format!("declared programs run on this machine alone, and calls land on {}", self.name());
        Err(Failure::new(Kind::Unavailable, message).hint("`exec` starts programs there"))
    }

    /// Runs a short script of ours in `/bin/sh`; it does no harm when it is run twice. Returns status and standard output.
    async fn run_script(&self, text: &str, arguments: &[OsString]) -> Result<(i32, Vec<u8>), Failure> {
        let argv = ["/bin/sh", "-c", text, "sh"].map(OsString::from).into_iter().chain(arguments.iter().cloned());
        let mut process = self.start(ProcessSpec::own(argv.collect())).await?;
        process.begun().await?;
        let Finished { status, stdout, .. } = finish(process)
            .await
            .map_err(|error| Failure::new(Kind::Unavailable, format!("{}: {error}", self.name())))?;
        Ok((status, stdout))
    }

    /// Returns, with the reason, once what runs there can never end; does not return where that cannot happen.
    async fn lost(&self) -> Failure {
        std::future::pending().await
    }

    /// The command line that takes a person's terminal to a program there.
    async fn terminal(&self, argv: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
        Ok(argv)
    }

    /// Whether commands can be confined so: that is tried, once.
    ///
    /// # Errors
    ///
    /// Why not.
    async fn confines(&self, _: &Profile) -> Result<(), String> {
        Err(format!("{} is not this machine", self.name()))
    }

    /// Where another program finds the cell that commands of this profile join. It is made where there is none; `found` is a process in one.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn cell(&self, _: &Profile, _found: Option<&str>) -> Result<String, String> {
        Err(format!("{} is not this machine", self.name()))
    }

    /// A call begins whose commands run in a cell of this profile; none where nothing stands between those and git directories.
    ///
    /// # Errors
    ///
    /// Why there is no cell.
    fn visit(&self, _: &Profile) -> Result<Option<Visit>, String> {
        Ok(None)
    }

    /// Tells whether what runs in cells has run between two moments; none where that cannot be told.
    fn activity(&self) -> Option<Active> {
        None
    }

    /// What waits for the connections of the cell that commands of this profile join; none where that was handed out, or another host has it.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn listeners(&self, _: &Profile) -> Result<Option<Listeners>, String> {
        Ok(None)
    }

    /// Unconnected sockets in the network of the cell that commands of this profile join, for one connection to its loopback: IPv4 first, then IPv6
    /// if the system has it. None if no command has made that cell, or it has no network of its own.
    ///
    /// # Errors
    ///
    /// Why there are none.
    fn cell_sockets(&self, _: &Profile) -> Result<Option<Vec<OwnedFd>>, String> {
        Ok(None)
    }

    /// The cell of this profile that the shell of a pane is in, by the process that waits for that shell; none if it is in no such cell.
    fn pane_cell(&self, _: &Profile, _waiter: &str) -> Option<PaneCell> {
        None
    }

    /// Whether a process is bounded at this moment as this profile says, by this host: what another host has started is not.
    fn bounds(&self, profile: &Profile, _process: &str) -> bool {
        profile.memory.is_none()
    }

    /// How often what runs in cells of this profile has met their bounds, as far as that is counted.
    fn met(&self, _: &Profile) -> Met {
        Met::default()
    }

    /// What runs there are processes of this machine, with its terminals.
    fn is_this_machine(&self) -> bool {
        false
    }

    /// What `toolcrib doctor` says of the way there.
    async fn inspect(&self) -> Result<String, Failure> {
        Ok(self.name().to_owned())
    }

    /// Lets go of what is held open, because this program ends.
    fn close(&self) {}
}

fn cannot_search(name: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("{name} cannot be searched")).hint("search there by run_shell")
}

/// What a file is that is to be replaced.
pub enum Before {
    /// There is none.
    New,
    /// There is one.
    There {
        /// In bytes.
        size: u64,
        /// None where it is too large, closed, or cannot be read.
        content: Option<Vec<u8>>,
        /// Marks this file with this content; empty where it could not be marked.
        stamp: String,
    },
}

impl Before {
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::New => None,
            Self::There { size, .. } => Some(*size),
        }
    }

    /// What the path has to hold when it is written.
    pub fn expected(&self) -> Expected {
        match self {
            Self::New => Expected::New,
            Self::There { stamp, .. } if stamp.is_empty() => Expected::Anything,
            Self::There { stamp, .. } => Expected::Marked(stamp.clone()),
        }
    }
}

/// A process to start.
pub struct ProcessSpec {
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// It is a script. If the person's own shell is bash, bash reads it in place of `sh`.
    pub is_script: bool,
    /// What is executed in place of the file that the first of these names.
    pub sealed: Option<Arc<Sealed>>,
    /// Names of variables that are passed beside the standard ones.
    pub environment: Vec<String>,
    /// Whether it gets the variables by which toolchains are found, too.
    pub toolchains: Toolchains,
    /// Variables that the call sets.
    pub variables: Vec<(String, String)>,
    /// Where it begins, as an absolute path; none for where commands begin.
    pub directory: Option<PathBuf>,
    /// What is on its standard input before that ends.
    pub input: Vec<u8>,
    /// Secrets that it gets as variables.
    pub secrets: Vec<(String, Value)>,
    /// The call that the process belongs to; found again in its environment as [`CALL_MARK`](config::CALL_MARK). None for what outlives calls.
    pub call: Option<String>,
    /// What it is confined to; none for what has all that the user has.
    pub cell: Option<Arc<Profile>>,
}

/// Where a process's standard input is written.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;

impl ProcessSpec {
    /// A script for the system's `sh`, or for bash where that is the person's shell, as one process.
    #[must_use]
    pub fn shell(script: &str, environment: Vec<String>, call: &str) -> Self {
        let argv = ["/bin/sh", "-c", "--", script].map(OsString::from).into();
        Self { is_script: true, environment, call: Some(call.into()), ..Self::own(argv) }
    }

    /// A program of ours, such as the client of a server, with the usual environment.
    #[must_use]
    pub fn own(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            is_script: false,
            sealed: None,
            environment: Vec::new(),
            toolchains: Toolchains::None,
            variables: Vec::new(),
            directory: None,
            input: Vec::new(),
            secrets: Vec::new(),
            call: None,
            cell: None,
        }
    }
}

/// Returns when the commands that were given up have ended, as far as that takes a bearable time: a program that ends waits for that.
pub fn ended() -> BoxFuture<'static, ()> {
    Box::pin(async move {
        remote::ended().await;
    })
}

/// A running process.
#[async_trait]
pub trait Process: Send {
    /// Returns when the process is known to run; fails when it was not started, or when that cannot be known. Comes first.
    async fn begun(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the next thing that happens; `Exited` comes last, after all output that the process itself wrote.
    async fn next(&mut self) -> io::Result<ProcessEvent>;

    /// Ends the process and all of its descendants; returns how many could not be ended, none when that could not be found out.
    async fn end(&mut self) -> Option<usize>;

    /// Processes that the command started and left running.
    async fn left_running(&mut self) -> Vec<u32>;

    /// How many processes that the command started were ended with it, as its cell was. Asked once, after its end.
    fn ended_with_it(&self) -> usize {
        0
    }
}

/// What a process does.
#[derive(Debug, PartialEq)]
pub enum ProcessEvent {
    /// A piece of standard output.
    Stdout(Vec<u8>),
    /// A piece of standard error.
    Stderr(Vec<u8>),
    /// The exit status; -1 for a death by signal.
    Exited(i32),
}

/// A process that has come to its end.
pub struct Finished {
    /// The exit status; -1 for a death by signal.
    pub status: i32,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

/// Follows a process of ours, which says little, to its end.
pub fn finish(mut process: Box<dyn Process>) -> BoxFuture<'static, io::Result<Finished>> {
    Box::pin(async move {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match process.next().await? {
                ProcessEvent::Stdout(bytes) => stdout.extend(bytes),
                ProcessEvent::Stderr(bytes) => stderr.extend(bytes),
                ProcessEvent::Exited(status) => return Ok(Finished { status, stdout, stderr }),
            }
        }
    })
}

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular one.
    File,
    /// What has entries itself.
    Directory,
    /// One that was not followed.
    Link,
    /// A device, a socket, a pipe …
    Other,
}

/// What a directory has under one name.
#[derive(Debug)]
pub struct Entry {
    /// Without its directory.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a file, 0 for all others.
    pub size: u64,
    /// When it was changed last, in milliseconds since 1970, where that is known.
    pub modified_ms: Option<u64>,
}

/// What a directory has.
#[derive(Debug)]
pub struct Listing {
    /// The first of them, in the order of the bytes of their names.
    pub entries: Vec<Entry>,
    /// How many there are.
    pub total: u64,
}

/// A piece of a file.
pub struct FileText {
    /// The bytes at the offset.
    pub bytes: Vec<u8>,
    /// Size of the whole file, in bytes.
    pub size: u64,
}
