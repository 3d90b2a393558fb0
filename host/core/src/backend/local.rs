//! This machine: `sh -c` in a session of its own, and files by directory handles.
//!
//! Starting is `spawn.rs`, the process tree `tree.rs`, the environment `environment.rs`, files `files.rs`.

use super::cell::{
    self, Bwrap, Cell, Domain, Group, Joined, Listeners, Living, Means, Met, Namespaces, Profile, Visit, Walls,
};
use super::environment::Environment;
use super::sealed::{Sealed, SealedPrograms};
use super::spawn::CellEnd;
use super::{
    Active, Backend, Before, Entry, Facts, FileText, Input, Listing, Process, ProcessEvent, ProcessSpec, TmuxThere,
    environment, files, finish, git, spawn, tree, watcher,
};
use crate::config::CellNetwork;
use crate::disk::OwnDir;
use crate::envelope::{Failure, Kind};
use crate::policy::files::{Place, ReadPath, Resolved, Surroundings, Wanted, WritePath, canonical};
use crate::text::id::random_id;
use crate::workspace::Workspace;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::process::{WaitId, WaitIdOptions};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::OnceCell;

/// What a pipe to or from a server holds: a message that fits costs no turns of both.
const ROOM: usize = 256 << 10;
/// How much is read from a stream at a time.
const CHUNK: usize = 64 << 10;

/// Whether this program answers to `cell`.
static ANSWERS_TO_CELL: AtomicBool = AtomicBool::new(false);
/// How often a cell is made at most that another program makes: what lies there may vanish before it is covered.
const TIMES: u32 = 3;
/// Where the cell is that no other program joins.
const NO_ADDRESS: &str = "-";
/// What stands between where a cell is and its cgroup, where it has one.
const IN_GROUP: char = '@';
/// By which a program finds the pane that it is in, and its server.
const TMUX_VARIABLES: [&str; 2] = ["TMUX", "TMUX_PANE"];

/// Cells that live at once. A host has one for each workspace and profile that its commands have; those that panes are in live on by them.
const MOST_CELLS: usize = 8;

/// The variable in which the user's `PATH` is where another one is given.
const USERS_PATH: &str = "TOOLCRIB_USERS_PATH";

/// What came of trying a cell, once it was tried; else why it cannot be made.
type Tried = Arc<OnceCell<Result<(), String>>>;

/// The machine that the host runs on, as the user who runs it.
pub struct Local {
    facts: Arc<Facts>,
    environment: Environment,
    /// Which cells could be made, by the digests of their profiles.
    tried: Mutex<HashMap<String, Tried>>,
    /// The cells that commands join, by the digests of their profiles.
    living: Mutex<HashMap<String, Arc<Living>>>,
    /// The user namespaces of all that there were.
    users: Active,
    /// Their cgroups, where their memory is bounded. They go after the cells, when there are too many.
    groups: Mutex<HashMap<String, Arc<Group>>>,
    sealed: Arc<SealedPrograms>,
}

impl Local {
    /// Relative paths and commands start in `directory`; Toolcrib's own files are in `own`. Of `environment` commands get what the settings
    /// let pass.
    #[must_use]
    pub fn new(directory: PathBuf, home: PathBuf, own: PathBuf, environment: Environment) -> Self {
        tree::become_subreaper();
        let passed = environment::build(&environment, &[], None);
        let workspace = Workspace::find(&directory, &home);
        // Nobody writes in all of a home.
        if !canonical(&home).starts_with(&workspace.root) {
            spawn::commands_write(std::slice::from_ref(&workspace.root));
        }
        let mut without = passed.clone();
        keep_to_own_programs(&mut without);
        let has_tmux = spawn::find(OsStr::new("tmux"), &without).is_ok();
        let tmux = if has_tmux { TmuxThere::Yes } else { TmuxThere::No };
        let path = passed.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        let path = std::env::split_paths(path.unwrap_or_default()).map(|entry| directory.join(entry));
        let path: Vec<PathBuf> = path.collect();
        let programs = path.iter().map(|entry| canonical(entry)).collect();
        let program = std::env::current_exe().ok().map(|program| canonical(&program));
        let surroundings = Surroundings { home: canonical(&home), programs, path, program };
        Self {
            facts: Arc::new(Facts { directory, home, own, tmux, workspace, surroundings }),
            environment,
            tried: Mutex::default(),
            living: Mutex::default(),
            users: Active::default(),
            groups: Mutex::default(),
            sealed: Arc::default(),
        }
    }

    /// Makes the directory where the shells of panes read what they are to run: a cell has what is there when it is made.
    fn make_room(&self) -> io::Result<()> {
        OwnDir::open(&self.facts.tmux())?.below(&self.facts.workspace.digest()).map(drop)
    }

    /// The cgroup of all cells of this profile; none where their memory is not bounded. Where one no longer bounds it, there is another.
    fn group(&self, profile: &Profile) -> io::Result<Option<Arc<Group>>> {
        if profile.memory.is_none() {
            return Ok(None);
        }
        let mut all = self.groups.lock();
        if let Some(group) = all.get(profile.digest()).filter(|group| group.bounds(profile)) {
            return Ok(Some(group.clone()));
        }
        if all.len() >= MOST_CELLS {
            all.retain(|_, group| Arc::strong_count(group) > 1 || group.is_used());
        }
        let group = Group::of(profile)?;
        all.extend(group.clone().map(|group| (profile.digest().to_owned(), group)));
        Ok(group)
    }

    /// Where a pane finds a cell of this profile, and its cgroup.
    fn address(&self, profile: &Profile, found: Option<&str>) -> io::Result<String> {
        let mut address = match profile.by {
            Means::Namespaces => self.living(profile, found)?.address(profile)?,
            Means::Bwrap(_) | Means::Landlock => {
                self.make_room()?;
                NO_ADDRESS.to_owned()
            }
        };
        if let Some(group) = self.group(profile)? {
            let odd = || io::Error::new(io::ErrorKind::InvalidData, "the path of its cgroup is not UTF-8");
            address.push(IN_GROUP);
            address += group.path().to_str().ok_or_else(odd)?;
        }
        Ok(address)
    }

    /// The cell that commands of this profile join: the one that there is, that of the process `found`, or a new one.
    fn living(&self, profile: &Profile, found: Option<&str>) -> io::Result<Arc<Living>> {
        let group = self.group(profile)?;
        let mut all = self.living.lock();
        if let Some(living) = all.get(profile.digest()).filter(|living| living.holds(group.as_ref())) {
            return Ok(living.clone());
        }
        self.make_room()?;
        let own = self.room_of_gates(profile);
        let adopted = found.and_then(|waiter| {
            let shell = shell_behind(waiter)?;
            let is_there = || shell_behind(waiter).as_ref() == Some(&shell);
            Some(Living::of_process(profile, group.clone(), own.as_ref(), &shell, is_there))
        });
        let living = match adopted {
            Some(Ok(living)) => living,
            // It has ended meanwhile, or is another's.
            Some(Err(_)) | None => Living::make(profile, group, own.as_ref())?,
        };
        let living = Arc::new(living);
        self.users.add(living.user()?);
        living.attend();
        if all.len() >= MOST_CELLS {
            all.clear();
        }
        all.insert(profile.digest().to_owned(), living.clone());
        Ok(living)
    }

    /// Where this workspace's gates are kept; none where commands write nothing.
    fn room_of_gates(&self, profile: &Profile) -> Option<OwnDir> {
        if profile.write.is_empty() {
            return None;
        }
        let own = OwnDir::open(&self.facts.own).and_then(|own| own.below(git::ROOMS));
        own.and_then(|own| own.below(&self.facts.workspace.digest())).ok()
    }

    fn spawn(&self, spec: &ProcessSpec, input: BorrowedFd<'_>) -> io::Result<LocalProcess> {
        let mut environment = environment::build(&self.environment, &spec.environment, spec.call.as_deref());
        let given = spec.variables.iter().map(|(name, value)| (name.into(), value.into()));
        environment::set(&mut environment, given);
        let secrets = spec.secrets.iter().map(|(name, value)| (name.into(), value.expose().into()));
        environment::set(&mut environment, secrets);
        if let Some(profile) = &spec.cell {
            profile.add_variables(&mut environment);
        }
        let join = |profile: &Arc<Profile>| self.living(profile, None)?.join(profile).map(Walls::Living);
        let walls = spec.cell.as_ref().map(|profile| walls(profile, self.group(profile)?, || join(profile)));
        let walls = walls.transpose()?;
        let directory = spec.directory.as_deref().unwrap_or(&self.facts.directory);
        if spec.cell.is_none() && spec.call.is_none() {
            keep_to_own_programs(&mut environment);
        }
        let started = started(&spec.argv, spec.sealed.as_deref(), &environment, directory, input, walls.as_ref())?;
        LocalProcess::new(started, spec.call.clone().unwrap_or_else(random_id), walls.as_ref())
    }
}

/// Has a process that is the host's own find no program that a command may have put there. Scripts that begin something for the user find there
/// what the user's `PATH` is.
fn keep_to_own_programs(environment: &mut Vec<(OsString, OsString)>) {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let Some(path) = path else { return };
    let own = spawn::own_path(&path);
    if own != path {
        environment::set(environment, [("PATH".into(), own), (USERS_PATH.into(), path)].into_iter());
    }
}

/// What a command of this profile is confined by, and enters this cgroup for; `cell` joins one that lives, which has the same.
pub(super) fn walls(
    profile: &Profile,
    group: Option<Arc<Group>>,
    cell: impl FnOnce() -> io::Result<Walls>,
) -> io::Result<Walls> {
    match &profile.by {
        Means::Namespaces => cell(),
        Means::Bwrap(program) => Bwrap::of(profile, program, group).map(Walls::Bwrap),
        Means::Landlock => Domain::of(profile, group).map(Walls::Domain),
    }
}

/// A process with the ends of its output.
struct Piped {
    started: spawn::Started,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Starts a program that has no terminal; what it prints is read here.
fn started(
    argv: &[OsString],
    sealed: Option<&Sealed>,
    environment: &[(OsString, OsString)],
    directory: &Path,
    input: BorrowedFd<'_>,
    walls: Option<&Walls>,
) -> io::Result<Piped> {
    let ((stdout, stdout_end), (stderr, stderr_end)) = (io::pipe()?, io::pipe()?);
    let standard = [input, stdout_end.as_fd(), stderr_end.as_fd()];
    let terminal = spawn::Terminal::None;
    let program = spawn::Program { argv, sealed, environment, directory, standard, walls, terminal };
    let begun = match walls {
        // The process that waits there takes paths of programs, no descriptors.
        Some(Walls::Living(joined)) if sealed.is_none() => joined.begin(&program),
        None | Some(Walls::Cell(_) | Walls::Living(_) | Walls::Bwrap(_) | Walls::Domain(_)) => None,
    };
    let started = begun.map_or_else(|| tree::born(|| spawn::spawn(&program)), Ok)?;
    Ok(Piped { started, stdout: stdout.into(), stderr: stderr.into() })
}

#[async_trait]
impl Backend for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn is_this_machine(&self) -> bool {
        true
    }

    async fn confines(&self, profile: &Profile) -> Result<(), String> {
        let tried = self.tried.lock().entry(profile.digest().to_owned()).or_default().clone();
        tried.get_or_init(async || try_cell(profile).await.map_err(|error| error.to_string())).await.clone()
    }

    fn cell(&self, profile: &Profile, found: Option<&str>) -> Result<String, String> {
        self.address(profile, found).map_err(|error| error.to_string())
    }

    fn activity(&self) -> Option<Active> {
        Some(self.users.clone())
    }

    fn visit(&self, profile: &Profile) -> Result<Option<Visit>, String> {
        match profile.by {
            Means::Namespaces => {
                let living = self.living(profile, None).map_err(|error| error.to_string())?;
                Ok(living.visit(profile))
            }
            Means::Bwrap(_) | Means::Landlock => Ok(None),
        }
    }

    fn bounds(&self, profile: &Profile, process: &str) -> bool {
        let groups = self.groups.lock();
        let is_bounded = |group: &Arc<Group>| group.bounds(profile) && group.has(process);
        profile.memory.is_none() || groups.get(profile.digest()).is_some_and(is_bounded)
    }

    fn met(&self, profile: &Profile) -> Met {
        self.groups.lock().get(profile.digest()).map_or_else(Met::default, |group| group.met())
    }

    fn close(&self) {
        self.living.lock().clear();
        self.groups.lock().clear();
        cell::leave();
    }

    fn listeners(&self, profile: &Profile) -> Result<Option<Listeners>, String> {
        let listeners = self.living(profile, None).and_then(|living| living.listeners(profile));
        listeners.map_err(|error| error.to_string())
    }

    async fn start(&self, spec: ProcessSpec) -> Result<Box<dyn Process>, Failure> {
        if let Some(missing) = spec.directory.as_ref().filter(|directory| !directory.is_dir()) {
            return Err(Failure::failed(format!("`{}` is not a directory", missing.display())));
        }
        let program = Path::new(&spec.argv[0]);
        if spec.sealed.is_none() && program.is_absolute() && !program.exists() {
            return Err(start_failure(&spec.argv[0], &io::ErrorKind::NotFound.into()));
        }
        let start = || match input(&spec.input)? {
            Some(input) => self.spawn(&spec, input.as_fd()),
            None => self.spawn(&spec, spawn::nothing()?),
        };
        let mut time = 1;
        loop {
            let started = match &spec.call {
                Some(call) => watcher::watched(call, start, |process| process.leader),
                None => start(),
            };
            let mut process = started.map_err(|error| start_failure(&spec.argv[0], &error))?;
            process.alone = spec.call.is_none();
            match process.begun().await {
                Ok(()) => return Ok(Box::new(process)),
                Err(failure) if time == TIMES => return Err(failure),
                Err(_) => time += 1,
            }
        }
    }

    async fn open(&self, spec: ProcessSpec) -> Result<(Box<dyn Process>, Input), Failure> {
        let open = || {
            let (input, writer) = io::pipe()?;
            let mut process = self.spawn(&spec, input.as_fd())?;
            process.alone = true;
            // Where it cannot have that, it has less.
            let _ = rustix::pipe::fcntl_setpipe_size(&writer, ROOM);
            process.stdout.receiver.iter().for_each(|stdout| _ = rustix::pipe::fcntl_setpipe_size(stdout, ROOM));
            let writer = pipe::Sender::from_owned_fd(writer.into())?;
            Ok((Box::new(process) as Box<dyn Process>, Box::new(writer) as Input))
        };
        open().map_err(|error: io::Error| start_failure(&spec.argv[0], &error))
    }

    async fn seal(&self, path: &Path) -> Result<Arc<Sealed>, Failure> {
        let (path, sealed) = (path.to_owned(), self.sealed.clone());
        blocking(move || {
            sealed.open(&path).map_err(|error| {
                Failure::new(Kind::Unavailable, format!("`{}` cannot be run: {}", path.display(), error))
            })
        })
        .await
    }

    async fn facts(&self) -> Result<Arc<Facts>, Failure> {
        Ok(self.facts.clone())
    }

    /// Policy knows where its roots are on this machine.
    async fn resolve(&self, path: &str, _roots: &[PathBuf]) -> Result<Resolved, Failure> {
        let (path, facts) = (path.to_owned(), self.facts.clone());
        blocking(move || files::resolve(&path, facts)).await
    }

    async fn read(&self, path: &ReadPath, offset: u64, max_bytes: usize) -> Result<FileText, Failure> {
        let path = path.clone();
        blocking(move || files::read(&path, offset, max_bytes)).await
    }

    async fn list(&self, path: &ReadPath, max: usize) -> Result<Listing, Failure> {
        let path = path.clone();
        blocking(move || files::list(&path, max)).await
    }

    async fn stat(&self, path: &Place) -> Result<Entry, Failure> {
        let path = path.clone();
        blocking(move || files::stat(&path)).await
    }

    async fn make_directory(&self, path: &WritePath) -> Result<bool, Failure> {
        let path = path.clone();
        blocking(move || files::make_directory(&path)).await
    }

    async fn look(&self, path: &Wanted, max_bytes: usize) -> Result<Before, Failure> {
        let path = path.clone();
        blocking(move || files::look(&path, max_bytes)).await
    }

    async fn write(&self, path: &WritePath, content: Vec<u8>) -> Result<(), Failure> {
        let path = path.clone();
        blocking(move || files::write(&path, &content)).await
    }
}

/// Declares that this program starts no processes but commands, so that every child that has ended may be reaped.
pub fn own_children() {
    tree::own_children();
}

/// Declares that this program answers to `watch` with [`watch`], so that its commands end with it even if it is killed.
pub fn answer_to_watch() {
    watcher::answer();
}

/// Has the commands of a call end at this time since the system was started, whatever becomes of this program; none: there is no such time.
pub(crate) fn end_at(call: &str, until: Option<std::time::Duration>) {
    watcher::end_at(call, until);
}

/// Ends what may be left of a call that another program has made.
pub(crate) async fn end_call(call: &str) {
    tree::end_call(call).await;
}

/// Declares that this program answers to `cell` with [`run_cell`], so that shells of panes can be confined.
pub fn answer_to_cell() {
    ANSWERS_TO_CELL.store(true, Ordering::Relaxed);
}

/// How this program is started to be a pane's, before the file of the profile.
pub(crate) fn cell_program() -> Result<Vec<OsString>, String> {
    if !ANSWERS_TO_CELL.load(Ordering::Relaxed) {
        return Err("this program does not answer to `cell`".into());
    }
    let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    Ok(vec![program.into_os_string(), "cell".into()])
}

/// A pane's side: starts a shell in the cell at this address, with this profile, on this program's terminal, and becomes a small program that
/// waits for it; or becomes that shell, where there is no cell. Returns only why it could not.
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
    // It is named after what it says: what was written there since is another one.
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
pub(crate) fn has_made_way(profile: &Profile, process: &str) -> bool {
    match profile.by {
        Means::Namespaces | Means::Bwrap(_) => waits_for_cell(process),
        Means::Landlock => {
            let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe"));
            // One that is not ours to read is not this program.
            program(process).map_or(true, |running| program("self").is_ok_and(|own| own != running))
        }
    }
}

/// The shell that a process of a pane waits for, which is in a cell: it is the one that the first process there started.
fn shell_behind(waiter: &str) -> Option<String> {
    let words = std::fs::read(format!("/proc/{waiter}/cmdline")).ok().filter(|_| waits_for_cell(waiter))?;
    let first = String::from_utf8(words.split(|byte| *byte == 0).nth(3)?.to_vec()).ok()?;
    let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children")).ok()?;
    children.split(' ').next().filter(|child| !child.is_empty()).map(str::to_owned)
}

/// The watcher's side: returns when the host that started it is gone and its commands have ended.
pub fn watch() -> io::Result<()> {
    watcher::serve()
}

/// Declares that this program leaves no core dump, which would show its memory. Commands leave theirs as before.
pub fn leave_no_core() {
    spawn::leave_no_core();
}

/// Becomes another program, which takes over this terminal; returns only why it could not.
#[expect(clippy::disallowed_methods, reason = "this module starts processes, and this call replaces the present one")]
pub fn become_program(argv: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;
    spawn::leave_core_again();
    std::process::Command::new(&argv[0]).args(&argv[1..]).exec()
}

/// Starts a program of Toolcrib's own on this machine, wherever calls land, with an empty environment.
pub(crate) fn start_helper(argv: &[OsString], input: OwnedFd) -> io::Result<Box<dyn Process>> {
    let started = started(argv, None, &[], Path::new("/"), input.as_fd(), None)?;
    Ok(Box::new(LocalProcess::new(started, random_id(), None)?))
}

/// Starts a program that the person at this machine has asked for by name, such as a compiler: with all that they have in their
/// environment, and with nothing on its standard input. A relative directory begins where this program does.
///
/// # Errors
///
/// What the system says.
pub fn start_for_person(argv: &[OsString], directory: &Path) -> io::Result<Box<dyn Process>> {
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let started = started(argv, None, &environment, &std::path::absolute(directory)?, spawn::nothing()?, None)?;
    Ok(Box::new(LocalProcess::new(started, random_id(), None)?))
}

/// Starts a program that is confined.
pub(super) fn start_in(
    walls: &Walls,
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    directory: &Path,
) -> io::Result<Box<dyn Process>> {
    let started = started(argv, None, environment, directory, spawn::nothing()?, Some(walls))?;
    Ok(Box::new(LocalProcess::new(started, random_id(), Some(walls))?))
}

/// Tries whether commands can be confined on this machine: runs `true` as this profile says, in a cell with its network where that is one.
///
/// # Errors
///
/// What the machine does not let us do.
pub fn try_cell(profile: &Profile) -> BoxFuture<'_, io::Result<()>> {
    Box::pin(async move {
        let mut time = 1;
        loop {
            match try_once(profile).await {
                Err(_) if time < TIMES && matches!(profile.by, Means::Bwrap(_)) => time += 1,
                tried => return tried,
            }
        }
    })
}

async fn try_once(profile: &Profile) -> io::Result<()> {
    let group = Group::of(profile)?;
    let walls = walls(profile, group.clone(), || {
        let living = Arc::new(Living::make(profile, group, None)?);
        match profile.network {
            CellNetwork::Egress => drop(living.listeners(profile)?),
            CellNetwork::None | CellNetwork::Full => {}
        }
        living.join(&Arc::new(profile.clone())).map(Walls::Living)
    })?;
    let path = (OsString::from("PATH"), OsString::from("/usr/bin:/bin"));
    let finished = finish(start_in(&walls, &["true".into()], &[path], Path::new("/"))?).await?;
    match (finished.status, &walls) {
        (0, _) => Ok(()),
        (_, Walls::Bwrap(_)) if !finished.stderr.is_empty() => Err(io::Error::other(first_line(&finished.stderr))),
        (status, _) => Err(io::Error::other(format!("`true` exits with {status} there"))),
    }
}

/// What bubblewrap says of what it could not do.
fn first_line(printed: &[u8]) -> String {
    let said = String::from_utf8_lossy(printed);
    let line = said.lines().next().unwrap_or_default();
    line.strip_prefix("bwrap: ").unwrap_or(line).to_owned()
}

/// What a program reads that is to read just this: a file without a name, so that nobody has to write while it runs. None where that is nothing.
fn input(bytes: &[u8]) -> io::Result<Option<File>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut file = File::from(rustix::fs::memfd_create("toolcrib-input", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(Some(file))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    let failed = |error| Failure::new(Kind::Internal, format!("file work did not end: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

fn start_failure(program: &std::ffi::OsStr, error: &io::Error) -> Failure {
    let message = format!("`{}` could not be started: {error}", program.display());
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            Failure::new(Kind::Limit, "the command is longer than the system accepts (128 KiB an argument)")
                .hint("write the script to a file and run that")
        }
        io::ErrorKind::WouldBlock => Failure::new(Kind::Busy, message).hint("end some processes, then try again"),
        _ => Failure::new(Kind::Unavailable, message),
    }
}

struct LocalProcess {
    leader: u32,
    end: End,
    call: String,
    /// It starts nothing that would have to end with it.
    alone: bool,
    stdout: Stream,
    stderr: Stream,
    /// Held as long as the cell is to live that another program makes.
    lifeline: Option<OwnedFd>,
    /// The cell that it has joined.
    joined: Option<Joined>,
    /// The first process of a cell, which told how its command ended, and is not gone yet.
    told_by: Option<OwnedFd>,
    /// Another program makes its cell, which may yet fail.
    is_made_yet: bool,
    ended_with_it: usize,
    exited: Option<i32>,
}

/// By what its end is known. These are waited for, so they may pass for pipes.
enum End {
    /// A pidfd.
    Process(pipe::Receiver),
    /// The lifeline of a cell: its first process tells by it how the command ended when all else is gone, some time before the kernel has
    /// taken the cell apart. It is held as long as that is to live.
    Cell { lifeline: pipe::Receiver, first: OwnedFd },
}

impl End {
    fn source(&self) -> &pipe::Receiver {
        match self {
            Self::Process(source) | Self::Cell { lifeline: source, .. } => source,
        }
    }
}

/// Takes the status of the first process of a cell when that has ended, too.
async fn bury_first(leader: u32, first: OwnedFd) {
    let first = pipe::Receiver::from_owned_fd_unchecked(first);
    if let Ok(first) = &first {
        let _ = first.readable().await;
    }
    let reap =
        |first: &pipe::Receiver| _ = rustix::process::waitid(WaitId::PidFd(first.as_fd()), WaitIdOptions::EXITED);
    tree::bury_leader(leader, || first.as_ref().ok().map(reap));
}

impl LocalProcess {
    fn new(Piped { started, stdout, stderr }: Piped, call: String, walls: Option<&Walls>) -> io::Result<Self> {
        let spawn::Started { pid: leader, handle, lifeline } = started;
        let (end, lifeline) = match (walls, lifeline) {
            (Some(Walls::Cell(_) | Walls::Living(_)), Some(lifeline)) => {
                (End::Cell { lifeline: pipe::Receiver::from_owned_fd_unchecked(lifeline)?, first: handle }, None)
            }
            (None | Some(_), lifeline) => (End::Process(pipe::Receiver::from_owned_fd_unchecked(handle)?), lifeline),
        };
        let (stdout, stderr) = (Stream::new(stdout)?, Stream::new(stderr)?);
        let is_made_yet = matches!(walls, Some(Walls::Bwrap(_)));
        let joined = match walls {
            Some(Walls::Living(joined)) => Some(joined.clone()),
            None | Some(Walls::Cell(_) | Walls::Bwrap(_) | Walls::Domain(_)) => None,
        };
        let (alone, told_by, ended_with_it, exited) = (false, None, 0, None);
        Ok(Self {
            leader,
            end,
            call,
            alone,
            stdout,
            stderr,
            lifeline,
            joined,
            told_by,
            is_made_yet,
            ended_with_it,
            exited,
        })
    }

    /// Waits until the first process of a cell is there that another program makes.
    async fn is_made(&mut self) -> io::Result<bool> {
        let Some(lifeline) = self.lifeline.as_ref().filter(|_| self.is_made_yet) else { return Ok(true) };
        let lifeline = pipe::Receiver::from_owned_fd_unchecked(lifeline.try_clone()?)?;
        lifeline.readable().await?;
        self.is_made_yet = false;
        Ok(spawn::Started::says_it_is_there(&lifeline))
    }

    /// Waits for output or for the end, whichever comes first.
    async fn wait(&mut self) -> io::Result<Option<ProcessEvent>> {
        tokio::select! {
            bytes = self.stdout.receive() => Ok(Some(ProcessEvent::Stdout(bytes?))),
            bytes = self.stderr.receive() => Ok(Some(ProcessEvent::Stderr(bytes?))),
            ended = self.end.source().readable() => {
                ended?;
                self.reap()?;
                self.stdout.mark_end()?;
                self.stderr.mark_end()?;
                Ok(None)
            }
        }
    }

    /// Takes a piece of what a leader that has ended left in its pipes.
    fn rest(&mut self) -> io::Result<Option<ProcessEvent>> {
        if let Some(bytes) = self.stdout.rest()? {
            return Ok(Some(ProcessEvent::Stdout(bytes)));
        }
        Ok(self.stderr.rest()?.map(ProcessEvent::Stderr))
    }

    /// Takes the status of a leader that has ended.
    fn reap(&mut self) -> io::Result<()> {
        let told = match &self.end {
            End::Cell { lifeline, first } => match CellEnd::read(lifeline) {
                Some(end) => {
                    self.told_by = Some(first.try_clone()?);
                    Some(end)
                }
                // It was ended itself.
                None => {
                    let reap = || rustix::process::waitid(WaitId::PidFd(first.as_fd()), WaitIdOptions::EXITED);
                    tree::bury_leader(self.leader, reap)?;
                    None
                }
            },
            End::Process(handle) => {
                let reap = || rustix::process::waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED);
                let status = tree::bury_leader(self.leader, reap)?;
                let lifeline = self.lifeline.take();
                if let Some(lifeline) = lifeline.as_ref().filter(|_| self.is_made_yet) {
                    self.is_made_yet = !spawn::Started::says_it_is_there(lifeline);
                }
                let of_cell = lifeline.and_then(CellEnd::read);
                of_cell.or_else(|| Some(CellEnd { left: 0, status: status?.exit_status() }))
            }
        };
        self.ended_with_it = told.as_ref().map_or(0, |end| end.left as usize);
        self.exited = Some(told.and_then(|end| end.status).unwrap_or(-1));
        Ok(())
    }
}

#[async_trait]
impl Process for LocalProcess {
    async fn begun(&mut self) -> Result<(), Failure> {
        let unavailable =
            |why: String| Failure::new(Kind::Unavailable, format!("the command cannot be confined: {why}"));
        if self.is_made().await.map_err(|error| unavailable(error.to_string()))? {
            return Ok(());
        }
        let mut said = Vec::new();
        while let Ok(event) = self.next().await {
            match event {
                ProcessEvent::Stderr(bytes) => said.extend(bytes),
                ProcessEvent::Stdout(_) => {}
                ProcessEvent::Exited(_) => break,
            }
        }
        Err(unavailable(first_line(&said)))
    }

    async fn next(&mut self) -> io::Result<ProcessEvent> {
        loop {
            let event = match self.exited {
                None => self.wait().await?,
                Some(status) => Some(self.rest()?.unwrap_or(ProcessEvent::Exited(status))),
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    async fn end(&mut self) -> Option<usize> {
        if self.exited.is_some() {
            return Some(0);
        }
        let (ended, left) = tree::end(self.leader, &self.call).await;
        // It was killed: this does not wait long.
        let _ = self.end.source().readable().await;
        let _ = self.reap();
        tree::bury(&ended);
        Some(left)
    }

    async fn left_running(&mut self) -> Vec<u32> {
        tree::adopt(self.leader, &self.call)
    }

    fn ended_with_it(&self) -> usize {
        self.ended_with_it
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        match self.exited {
            Some(_) => {}
            // A client of a server: killed at once, it would leave what it started at the other side; and a container's engine has a
            // process below it that must reap what ends there.
            None if self.alone => tree::end_alone(self.leader),
            None => tree::end_at_once(self.leader, &self.call),
        }
        // Nobody waits for what is left to do; done before, it would hold up who wants to know what came of the command.
        let (Some(first), Ok(runtime)) = (self.told_by.take(), tokio::runtime::Handle::try_current()) else { return };
        let (bury, joined, after) = (bury_first(self.leader, first), self.joined.take(), runtime.clone());
        drop(runtime.spawn_blocking(move || {
            joined.iter().for_each(Joined::prepare);
            after.spawn(bury);
        }));
    }
}

/// The reading end of a child's pipe.
struct Stream {
    receiver: Option<pipe::Receiver>,
    /// Bytes that stood in the pipe when the child exited. What comes later is written by others, who may never stop.
    left: usize,
}

impl Stream {
    fn new(pipe: std::os::fd::OwnedFd) -> io::Result<Self> {
        // The runtime would ask whether it is a pipe, and how it is read.
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Self { receiver: Some(pipe::Receiver::from_owned_fd_unchecked(pipe)?), left: 0 })
    }

    /// Waits for bytes; never returns for a stream that has ended.
    async fn receive(&mut self) -> io::Result<Vec<u8>> {
        while let Some(receiver) = &mut self.receiver {
            // Many wait here, and nothing is held for them meanwhile.
            receiver.readable().await?;
            let mut buffer = Vec::with_capacity(CHUNK);
            // The runtime takes a buffer that was not filled for a pipe that is empty, and does not look again.
            match receiver.read_buf(&mut buffer).await? {
                0 => self.receiver = None,
                _ => return Ok(buffer),
            }
        }
        std::future::pending().await
    }

    fn mark_end(&mut self) -> io::Result<()> {
        if let Some(receiver) = &self.receiver {
            self.left = usize::try_from(rustix::io::ioctl_fionread(receiver)?).unwrap_or(usize::MAX);
        }
        Ok(())
    }

    /// Returns a piece of what stood in the pipe at the end. Read straight from the descriptor: the runtime may not know of it yet.
    fn rest(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(receiver) = self.receiver.as_ref().filter(|_| self.left > 0) else { return Ok(None) };
        let mut buffer = vec![0; CHUNK.min(self.left)];
        let length = rustix::io::read(receiver, &mut buffer)?;
        self.left -= length;
        buffer.truncate(length);
        Ok(Some(buffer))
    }
}
