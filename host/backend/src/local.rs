//! This machine: `sh -c` in a session of its own, and files by directory handles.
//!
//! Starting is `spawn.rs`, the process tree `tree.rs`, the environment `environment.rs`, files `files.rs`. What runs is `local/process.rs`, and a
//! pane's side of a cell `local/pane.rs`.

mod pane;
mod process;

pub use pane::{answer_to_cell, cell_program, has_made_way, run_cell};

use super::cell::{self, Bwrap, Domain, Group, Listeners, Living, Means, Met, PaneCell, Profile, Visit, Walls};
use super::sealed::{Sealed, SealedPrograms};
use super::search::{self, Find, Found, Search, Watch};
use super::{
    Active, Backend, Before, Entry, Facts, FileText, Input, Listing, Process, ProcessSpec, TmuxThere, environment,
    files, finish, spawn, tree, watcher,
};
use crate::undo::Replaced;
use async_trait::async_trait;
use base::disk::OwnDir;
use base::envelope::{Failure, Kind};
use base::environment::Environment;
use base::paths::canonical;
use base::text::id::random_id;
use base::workspace::Workspace;
use config::CellNetwork;
use file_access::{Place, ReadPath, ReadTree, Resolved, Surroundings, Wanted, WritePath};
use futures_util::future::BoxFuture;
use pane::shell_behind;
use parking_lot::Mutex;
use process::LocalProcess;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::unix::pipe;
use tokio::sync::OnceCell;

/// What a pipe to or from a server holds: a message that fits costs no turns of both.
const ROOM: usize = 256 << 10;

/// How often a cell is made at most that another program makes: what lies there may vanish before it is covered.
const TIMES: u32 = 3;
/// Where the cell is that no other program joins.
const NO_ADDRESS: &str = "-";
/// What stands between where a cell is and its cgroup, where it has one.
const IN_GROUP: char = '@';

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
            // A cell shows Toolcrib's own files that commands need by their true name alone.
            facts: Arc::new(Facts { directory, home, own: canonical(&own), tmux, workspace, surroundings }),
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
        let found = environment::toolchains(&self.environment, &spec.toolchains, &spec.environment);
        let bash = if spec.is_script { environment::own_bash(&found) } else { None };
        environment::set(&mut environment, found.into_iter());
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
        let with_bash = bash.map(|bash| [&[bash], &spec.argv[1..]].concat());
        let argv = with_bash.as_ref().unwrap_or(&spec.argv);
        let started = started(argv, spec.sealed.as_deref(), &environment, directory, input, walls.as_ref())?;
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

    fn cell_sockets(&self, profile: &Profile) -> Result<Option<Vec<OwnedFd>>, String> {
        if !profile.has_own_network() {
            return Ok(None);
        }
        let living = self.living.lock().get(profile.digest()).cloned();
        living.map(|living| living.sockets()).transpose().map_err(|error| error.to_string())
    }

    fn pane_cell(&self, profile: &Profile, waiter: &str) -> Option<PaneCell> {
        let shell = shell_behind(waiter).filter(|_| profile.has_own_network())?;
        PaneCell::of(profile, shell).ok()
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

    async fn search(&self, tree: &ReadTree, query: &Search, watch: Arc<Watch>) -> Result<Found, Failure> {
        search::search(tree, query, watch).await
    }

    async fn find(&self, tree: &ReadTree, query: &Find, watch: Arc<Watch>) -> Result<Found, Failure> {
        search::find(tree, query, watch).await
    }

    async fn make_directory(&self, path: &WritePath) -> Result<bool, Failure> {
        let path = path.clone();
        blocking(move || files::make_directory(&path)).await
    }

    async fn look(&self, path: &Wanted, max_bytes: usize) -> Result<Before, Failure> {
        let path = path.clone();
        blocking(move || files::look(&path, max_bytes)).await
    }

    async fn write(&self, path: &WritePath, content: Vec<u8>) -> Result<Replaced, Failure> {
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
pub fn end_at(call: &str, until: Option<std::time::Duration>) {
    watcher::end_at(call, until);
}

/// Ends what may be left of a call that another program has made.
pub fn end_call(call: &str) -> BoxFuture<'_, ()> {
    Box::pin(async move {
        tree::end_call(call).await;
    })
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
pub fn start_helper(argv: &[OsString], input: OwnedFd) -> io::Result<Box<dyn Process>> {
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
