//! Starting a process without copying this one.
//!
//! A fork copies the host's page tables, which grow with its pool of instances: 1 to 3 ms a command. So on Linux the child shares the
//! host's memory until it executes, as `posix_spawn` does; the standard library's form of that has no way to make a session.

use super::cell::Cell;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Resource, Rlimit};
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The size of core dumps as this program was given it, once it has given up its own.
static CORE: OnceLock<Rlimit> = OnceLock::new();

/// Makes this program leave no core dump; what it starts may leave one as before.
pub(super) fn leave_no_core() {
    let given = *CORE.get_or_init(|| rustix::process::getrlimit(Resource::Core));
    // Not 0: a program that the kernel pipes dumps to gets them whatever the limit is, but for 1, which the kernel takes as "not at all".
    let least = given.maximum.map_or(1, |most| most.min(1));
    // A limit that is below what it was can always be set.
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(least), ..given });
}

/// Takes [`leave_no_core`] back, for what takes this program's place.
pub(super) fn leave_core_again() {
    if let Some(given) = CORE.get() {
        let _ = rustix::process::setrlimit(Resource::Core, *given);
    }
}

/// What to execute.
pub(super) struct Program<'p> {
    /// Standard input, output and error.
    pub(super) standard: [BorrowedFd<'p>; 3],
    pub(super) argv: &'p [OsString],
    pub(super) environment: &'p [(OsString, OsString)],
    pub(super) directory: &'p Path,
    /// The cell that it runs in; none for what has all that the user has.
    pub(super) cell: Option<&'p Cell>,
    pub(super) terminal: Terminal,
}

/// Which terminal a program can ask people on.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Terminal {
    /// None: it is a session of its own.
    None,
    /// That of this process. In a cell the program becomes the foreground there.
    Ours,
}

/// A process that was started, with no descriptors but the three standard ones.
pub(super) struct Started {
    pub(super) pid: u32,
    /// Becomes readable when the process ends.
    pub(super) handle: OwnedFd,
    /// What its cell lives by: closed, the kernel ends all that runs there. It tells how the program ended, as [`CellEnd`] reads it.
    pub(super) lifeline: Option<OwnedFd>,
}

/// How the program of a cell ended.
pub(super) struct CellEnd {
    /// Processes that it left, and that ended with it.
    pub(super) left: u32,
    /// A signal ended it.
    pub(super) by_signal: bool,
}

impl CellEnd {
    /// What the first process of a cell that has ended said; nothing where it was ended itself.
    pub(super) fn read(lifeline: OwnedFd) -> Option<Self> {
        let mut said = [0; 2 * size_of::<u32>()];
        let told = rustix::io::read(lifeline, &mut said).ok()?;
        let (left, signal) = said.split_first_chunk().filter(|_| told == said.len())?;
        Some(Self { left: u32::from_ne_bytes(*left), by_signal: signal != [0; 4] })
    }
}

/// Starts a process.
pub(super) fn spawn(program: &Program<'_>) -> io::Result<Started> {
    let name = program.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    let file = find(name, program.environment)?.into_os_string();
    // In a cell its first process comes before.
    let group = if program.terminal == Terminal::Ours { "own" } else { "-" };
    let before =
        program.cell.map(|_| ["toolcrib-init".into(), LIFELINE.to_string().into(), group.into(), file.clone()]);
    let argv = before.into_iter().flatten().chain(program.argv.iter().cloned());
    let (file, argv) = (text(file)?, argv.map(text).collect::<io::Result<Vec<_>>>()?);
    let variables =
        program.environment.iter().map(|(name, value)| text([name.as_os_str(), value].join(OsStr::new("="))));
    let variables = variables.collect::<io::Result<Vec<_>>>()?;
    let directory = text(program.directory.as_os_str().to_owned())?;
    let image = Image { file, argv, variables, directory, terminal: program.terminal };
    let lifeline = program.cell.map(|_| UnixStream::pair()).transpose()?;
    let (theirs, lifeline) = lifeline.unzip();
    let cell = program.cell.zip(theirs.as_ref().map(AsFd::as_fd));
    let (pid, handle) = start(&image, program.standard, cell)?;
    Ok(Started { pid, handle, lifeline: lifeline.map(OwnedFd::from) })
}

/// Finds the program's file: as given when it names a path, else on the `PATH` that the program will have.
pub(super) fn find(name: &OsStr, environment: &[(OsString, OsString)]) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let mut candidates = std::env::split_paths(path.unwrap_or_default()).map(|directory| directory.join(name));
    candidates
        .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn text(text: OsString) -> io::Result<CString> {
    CString::new(text.into_vec()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte"))
}

/// Everything that the child needs, made before it exists: it must not allocate.
struct Image {
    file: CString,
    argv: Vec<CString>,
    variables: Vec<CString>,
    directory: CString,
    terminal: Terminal,
}

/// What the child reads, and where it leaves the reason why it could not execute.
struct Shared {
    file: *const libc::c_char,
    argv: Vec<*const libc::c_char>,
    variables: Vec<*const libc::c_char>,
    directory: *const libc::c_char,
    standard: [libc::c_int; 3],
    terminal: Terminal,
    core: Option<libc::rlimit>,
    cell: Option<Walls>,
    error: libc::c_int,
}

/// The cell that the child makes.
struct Walls {
    cell: *const Cell,
    slots: Vec<libc::c_int>,
    lifeline: libc::c_int,
    /// The step that failed; none where the cell was made.
    failed: Option<usize>,
}

/// The descriptor by which the first process of a cell knows that the host is there.
const LIFELINE: libc::c_int = 3;
/// Where descriptors are out of the way of those that the program has.
const ASIDE: libc::c_int = 10;

/// Bytes of stack for the child's few system calls.
const CHILD_STACK: usize = 64 << 10;

#[expect(unsafe_code, reason = "a child that shares memory until it executes has no safe form")]
fn start(
    image: &Image,
    standard: [BorrowedFd<'_>; 3],
    cell: Option<(&Cell, BorrowedFd<'_>)>,
) -> io::Result<(u32, OwnedFd)> {
    use std::os::fd::{AsRawFd, FromRawFd};
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
    let mut shared = Shared {
        file: image.file.as_ptr(),
        argv: pointers(&image.argv),
        variables: pointers(&image.variables),
        directory: image.directory.as_ptr(),
        standard: standard.map(|fd| fd.as_raw_fd()),
        terminal: image.terminal,
        core: CORE.get().map(|given| libc::rlimit {
            rlim_cur: given.current.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: given.maximum.unwrap_or(libc::RLIM_INFINITY),
        }),
        cell: cell.map(|(cell, lifeline)| Walls {
            cell,
            slots: cell.slots(),
            lifeline: lifeline.as_raw_fd(),
            failed: None,
        }),
        error: 0,
    };
    let mut stack = vec![0_u128; CHILD_STACK / size_of::<u128>()];
    let mut handle: libc::c_int = -1;
    let namespaces = cell.map_or(0, |(cell, _)| cell.namespaces);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | namespaces;
    // SAFETY: the child runs `child` on a stack of its own while this thread stands still, so `shared`, `stack` and `image` outlive it.
    // No signal handler runs in it: all signals are blocked until it has executed. The kernel sets `handle` to a descriptor of ours.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid =
            libc::clone(child, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut shared).cast(), &raw mut handle);
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if pid < 0 {
            return Err(if cell.is_some() { io::Error::other(format!("making namespaces: {error}")) } else { error });
        }
        let handle = OwnedFd::from_raw_fd(handle);
        if shared.error != 0 {
            let _ = rustix::process::waitid(
                rustix::process::WaitId::PidFd(handle.as_fd()),
                rustix::process::WaitIdOptions::EXITED,
            );
            let error = io::Error::from_raw_os_error(shared.error);
            let failed = shared.cell.as_ref().and_then(|walls| walls.failed).zip(cell);
            return Err(match failed {
                Some((step, (cell, _))) => io::Error::other(format!("{}: {error}", cell.described(step))),
                None => error,
            });
        }
        Ok((pid.cast_unsigned(), handle))
    }
}

/// Runs in the child, in the host's memory: system calls only.
#[expect(unsafe_code, reason = "a child that shares memory until it executes has no safe form")]
extern "C" fn child(shared: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Shared` that outlives this function and is not touched meanwhile.
    unsafe {
        let shared = &mut *shared.cast::<Shared>();
        if let Some(walls) = &mut shared.cell
            && let Err((step, error)) = (*walls.cell).make(&mut walls.slots)
        {
            (walls.failed, shared.error) = (Some(step), error);
            libc::_exit(125);
        }
        if shared.terminal == Terminal::None {
            libc::setsid();
        }
        // Orphans of the command stay below it (`tree.rs`).
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        for (target, source) in shared.standard.into_iter().enumerate() {
            libc::dup2(source, i32::try_from(target).unwrap_or_default());
        }
        let mut init = -1;
        if let Some(walls) = &shared.cell {
            let lifeline = libc::fcntl(walls.lifeline, libc::F_DUPFD_CLOEXEC, ASIDE);
            init = libc::fcntl((*walls.cell).init(), libc::F_DUPFD_CLOEXEC, ASIDE);
            libc::dup2(lifeline, LIFELINE);
        }
        let (first, how) = if shared.cell.is_some() { (LIFELINE + 1, libc::CLOSE_RANGE_CLOEXEC) } else { (3, 0) };
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, how);
        if let Some(core) = &shared.core {
            libc::setrlimit(libc::RLIMIT_CORE, core);
        }
        // The standard library ignores it in the host, and that would be inherited.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if libc::chdir(shared.directory) == 0 {
            let (argv, variables) = (shared.argv.as_ptr(), shared.variables.as_ptr());
            match &mut shared.cell {
                None => _ = libc::execve(shared.file, argv, variables),
                Some(walls) => match (*walls.cell).close() {
                    Ok(()) => {
                        let flags = libc::AT_EMPTY_PATH;
                        libc::syscall(libc::SYS_execveat, init, c"".as_ptr(), argv, variables, flags);
                    }
                    Err(error) => {
                        (walls.failed, shared.error) = (Some(usize::MAX), error);
                        libc::_exit(125);
                    }
                },
            }
        }
        shared.error = *libc::__errno_location();
        libc::_exit(127)
    }
}
