//! Starting a process without copying this one.
//!
//! A fork copies the host's page tables, which grow with its pool of instances: 1 to 3 ms a command. So on Linux the child shares the
//! host's memory until it executes, as `posix_spawn` does; the standard library's form of that has no way to make a session.

use super::cell::{self, Bwrap, Cell, Domain, Group, Layout, Namespaces, Step, Walls};
use super::sealed::Sealed;
use base::paths::canonical;
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Resource, Rlimit};
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The size of core dumps as this program was given it, once it has given up its own.
static CORE: OnceLock<Rlimit> = OnceLock::new();

/// Directories that commands write.
static WRITTEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

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
    /// What is executed in place of the file that the first word of `argv` names.
    pub(super) sealed: Option<&'p Sealed>,
    pub(super) environment: &'p [(OsString, OsString)],
    pub(super) directory: &'p Path,
    /// What it is confined by; none for what has all that the user has.
    pub(super) walls: Option<&'p Walls>,
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

impl Started {
    /// Whether the program of a cell that another program makes is there: its first process says so. Does not wait.
    pub(super) fn says_it_is_there(lifeline: impl AsFd) -> bool {
        let mut said = [0; size_of::<u32>()];
        rustix::io::read(lifeline, &mut said).is_ok_and(|told| told == said.len())
    }
}

/// How the program of a cell ended.
pub(super) struct CellEnd {
    /// Processes that it left, and that ended with it.
    pub(super) left: u32,
    /// None where a signal ended it.
    pub(super) status: Option<i32>,
}

impl CellEnd {
    /// What the first process of a cell said last; nothing where it was ended itself.
    pub(super) fn read(lifeline: impl AsFd) -> Option<Self> {
        let mut said = [0; 3 * size_of::<u32>()];
        let told = rustix::io::read(lifeline, &mut said).ok()?;
        if told != said.len() {
            return None;
        }
        let mut numbers = said.chunks_exact(size_of::<u32>()).filter_map(|number| number.try_into().ok());
        let mut number = || numbers.next().map(u32::from_ne_bytes);
        let (left, signal, status) = (number()?, number()?, number()?);
        Some(Self { left, status: (signal == 0).then_some(status.cast_signed()) })
    }
}

/// Starts a process.
pub(super) fn spawn(program: &Program<'_>) -> io::Result<Started> {
    let name = program.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    let file = match program.sealed {
        Some(_) => OsString::new(),
        None => find(name, program.environment)?.into_os_string(),
    };
    let group = if program.terminal == Terminal::Ours { "own" } else { "-" };
    // In a cell its first process comes before. `kept` is how many descriptors there are besides the lifeline and what is sealed.
    let first = |group: String, kept: usize| {
        let file = program.sealed.map_or_else(|| file.clone(), |sealed| sealed.named(FIRST_KEPT, kept).into());
        [LIFELINE.to_string().into(), group.into(), file]
    };
    let joined;
    let cell = match program.walls {
        Some(Walls::Cell(cell)) => Some(cell),
        Some(Walls::Living(living)) => {
            joined = living.cell()?;
            Some(&joined)
        }
        None | Some(Walls::Bwrap(_) | Walls::Domain(_)) => None,
    };
    let in_cell = || ["toolcrib-init".into()].into_iter().chain(first(group.into(), 0)).collect();
    let (before, by) = match program.walls {
        None => (Vec::new(), None),
        Some(Walls::Domain(domain)) => (Vec::new(), Some(By::Domain(domain))),
        Some(Walls::Cell(_) | Walls::Living(_)) => (in_cell(), cell.map(By::Cell)),
        Some(Walls::Bwrap(bwrap)) => {
            let first = first(format!("{group}:{}", bwrap.processes), bwrap.kept.len());
            (bwrap.argv(program.directory).into_iter().chain(first).collect(), Some(By::Bwrap(bwrap)))
        }
    };
    let file = match by {
        Some(By::Bwrap(_)) => before[0].clone(),
        None | Some(By::Cell(_) | By::Domain(_)) => file,
    };
    let argv = before.into_iter().chain(program.argv.iter().cloned());
    let (file, argv) = (text(file)?, argv.map(text).collect::<io::Result<Vec<_>>>()?);
    let variables =
        program.environment.iter().map(|(name, value)| text([name.as_os_str(), value].join(OsStr::new("="))));
    let variables = variables.collect::<io::Result<Vec<_>>>()?;
    let directory = text(program.directory.as_os_str().to_owned())?;
    let image = Image { file, argv, variables, directory, terminal: program.terminal };
    image.start(program.standard, by, program.sealed)
}

/// Starts the first process of a cell without a command: it keeps the cell, or waits for a command, as long as its lifeline is open.
pub(super) fn idle(cell: &Cell, what: &str) -> io::Result<Started> {
    let lifeline = LIFELINE.to_string();
    let argv = ["toolcrib-init", &lifeline, what, "-"].map(|word| text(word.into()));
    let argv = argv.into_iter().collect::<io::Result<Vec<_>>>()?;
    let (file, directory) = (CString::default(), text("/".into())?);
    let image = Image { file, argv, variables: Vec::new(), directory, terminal: Terminal::None };
    image.start([nothing()?; 3], Some(By::Cell(cell)), None)
}

/// What has nothing to read. It is opened once: each command would open it for itself.
pub(super) fn nothing() -> io::Result<BorrowedFd<'static>> {
    static NOTHING: OnceLock<File> = OnceLock::new();
    if let Some(nothing) = NOTHING.get() {
        return Ok(nothing.as_fd());
    }
    let nothing = File::open("/dev/null")?;
    Ok(NOTHING.get_or_init(|| nothing).as_fd())
}

/// Takes steps in namespaces of others; nothing of this process changes but that what the slots hold in the end is open in it.
pub(super) fn enter(namespaces: &Namespaces, layout: &Layout) -> io::Result<Vec<OwnedFd>> {
    let mut slots = layout.slots();
    let then = Then::Take { steps: &raw const *layout.steps, slots: &raw mut *slots };
    let entered = Entering::new(namespaces, then).run();
    let held = slots.into_iter().filter(|slot| *slot != cell::EMPTY);
    #[expect(unsafe_code, reason = "descriptors that a child opened among ours")]
    // SAFETY: the child shares the table of descriptors, and opened these for nobody else.
    let held = held.map(|slot| unsafe { OwnedFd::from_raw_fd(slot) }).collect();
    entered.map_err(|(step, error)| match step {
        Some(step) => io::Error::new(error.kind(), format!("{}: {error}", layout.described(step))),
        None => io::Error::new(error.kind(), format!("entering a cell: {error}")),
    })?;
    Ok(held)
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

/// Commands write in these directories: no program is looked for there that is started for the host itself.
pub fn commands_write(roots: &[PathBuf]) {
    WRITTEN.lock().extend(roots.iter().cloned());
}

/// The directories of a `PATH` that commands do not write.
pub(super) fn own_path(path: &OsStr) -> OsString {
    let written = WRITTEN.lock();
    let is_theirs = |entry: &PathBuf| {
        let place = canonical(entry);
        !entry.is_absolute() || written.iter().any(|root| place.starts_with(root))
    };
    let own = std::env::split_paths(path).filter(|entry| !is_theirs(entry));
    std::env::join_paths(own).expect("parts of a path hold no colon")
}

fn text(text: OsString) -> io::Result<CString> {
    CString::new(text.into_vec()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte"))
}

/// What a child is confined by.
#[derive(Clone, Copy)]
enum By<'w> {
    Cell(&'w Cell),
    Bwrap(&'w Bwrap),
    Domain(&'w Domain),
}

impl<'w> By<'w> {
    fn cell(self) -> Option<&'w Cell> {
        match self {
            Self::Cell(cell) => Some(cell),
            Self::Bwrap(_) | Self::Domain(_) => None,
        }
    }

    fn domain(self) -> Option<&'w Domain> {
        match self {
            Self::Domain(domain) => Some(domain),
            Self::Cell(_) | Self::Bwrap(_) => None,
        }
    }

    fn group(self) -> Option<&'w Group> {
        match self {
            Self::Cell(cell) => cell.group.as_deref(),
            Self::Bwrap(bwrap) => bwrap.group.as_deref(),
            Self::Domain(domain) => domain.group.as_deref(),
        }
    }

    /// What the child has open beside its lifeline; none where it has no lifeline.
    fn kept(self) -> Option<&'w [OwnedFd]> {
        match self {
            Self::Cell(_) => Some(&[]),
            Self::Bwrap(bwrap) => Some(&bwrap.kept),
            Self::Domain(_) => None,
        }
    }
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
    /// What it has open from [`LIFELINE`] on.
    kept: Vec<libc::c_int>,
    /// What it enters its cgroup by.
    entrance: Option<libc::c_int>,
    /// The last of these is what it executes.
    runs: Option<Runs>,
    cell: Option<Making>,
    domain: Option<*const Domain>,
    error: libc::c_int,
    /// The step that failed; none where it is confined.
    failed: Option<usize>,
}

/// How a descriptor is executed.
#[derive(Clone, Copy)]
enum Runs {
    Program,
    /// The interpreter reads it, so it stays open.
    Script,
}

/// The cell that the child makes.
struct Making {
    cell: *const Cell,
    slots: Vec<libc::c_int>,
    init: libc::c_int,
}

/// The descriptor by which the first process of a cell knows that the host is there.
const LIFELINE: libc::c_int = 3;
/// The first of those that come after it, for what makes the cell.
pub(super) const FIRST_KEPT: libc::c_int = LIFELINE + 1;
/// The number of a step after all others.
const CLOSING: usize = usize::MAX;
/// The number of the step before all others.
const ENTERING: usize = CLOSING - 1;
/// Where descriptors are out of the way of those that the program has.
const ASIDE: libc::c_int = 10;

/// Bytes of stack for the child's few system calls.
const CHILD_STACK: usize = 64 << 10;

impl Image {
    fn start(&self, standard: [BorrowedFd<'_>; 3], by: Option<By<'_>>, sealed: Option<&Sealed>) -> io::Result<Started> {
        let (kept, cell) = (by.and_then(By::kept), by.and_then(By::cell));
        let lifeline = kept.map(|_| UnixStream::pair()).transpose()?;
        let (theirs, lifeline) = lifeline.unzip();
        // Who makes the cell may be gone before its first process is.
        lifeline.as_ref().map_or(Ok(()), |lifeline| lifeline.set_nonblocking(true))?;
        let kept = theirs.iter().map(AsRawFd::as_raw_fd).chain(kept.into_iter().flatten().map(AsRawFd::as_raw_fd));
        let kept = kept.chain(sealed.map(|sealed| sealed.as_fd().as_raw_fd()));
        let mut shared = self.shared(standard, by, sealed, kept.collect())?;
        let namespaces = cell.map_or(0, |cell| cell.namespaces);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | namespaces;
        let mut begun = Begun { stack: Stack::new(), flags, shared: &raw mut shared, pid: -1, handle: -1 };
        begun.begin(cell)?;
        #[expect(unsafe_code, reason = "a descriptor that the kernel opened among ours")]
        // SAFETY: the kernel set it to a descriptor of ours, as cloning went well.
        let handle = unsafe { OwnedFd::from_raw_fd(begun.handle) };
        if shared.error == 0 {
            return Ok(Started { pid: begun.pid.cast_unsigned(), handle, lifeline: lifeline.map(OwnedFd::from) });
        }
        let _ = rustix::process::waitid(
            rustix::process::WaitId::PidFd(handle.as_fd()),
            rustix::process::WaitIdOptions::EXITED,
        );
        Err(shared.why(cell))
    }

    /// What a child shares that has `kept` open.
    fn shared(
        &self,
        standard: [BorrowedFd<'_>; 3],
        by: Option<By<'_>>,
        sealed: Option<&Sealed>,
        kept: Vec<libc::c_int>,
    ) -> io::Result<Shared> {
        let runs = sealed.map(|sealed| if sealed.is_script() { Runs::Script } else { Runs::Program });
        let making = |cell: &Cell| Ok::<_, io::Error>(Making { cell, slots: cell.slots(), init: cell::init()? });
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Shared {
            file: self.file.as_ptr(),
            argv: pointers(&self.argv),
            variables: pointers(&self.variables),
            directory: self.directory.as_ptr(),
            standard: standard.map(|fd| fd.as_raw_fd()),
            terminal: self.terminal,
            core: CORE.get().map(|given| libc::rlimit {
                rlim_cur: given.current.unwrap_or(libc::RLIM_INFINITY),
                rlim_max: given.maximum.unwrap_or(libc::RLIM_INFINITY),
            }),
            kept,
            entrance: by.and_then(By::group).map(Group::entrance),
            runs: match by {
                None | Some(By::Domain(_)) => runs,
                // The first process of the cell executes it.
                Some(By::Cell(_) | By::Bwrap(_)) => None,
            },
            cell: by.and_then(By::cell).map(making).transpose()?,
            domain: by.and_then(By::domain).map(std::ptr::from_ref),
            error: 0,
            failed: None,
        })
    }
}

impl Shared {
    /// Why the child could not execute.
    fn why(&self, cell: Option<&Cell>) -> io::Error {
        let error = io::Error::from_raw_os_error(self.error);
        match (self.failed, cell) {
            (Some(ENTERING), _) => {
                io::Error::other(format!("entering the cgroup of a cell: {error}{}", cell::how_to_enter(&error)))
            }
            (Some(step), Some(cell)) => io::Error::other(format!("{}: {error}", cell.described(step))),
            (Some(_), None) => io::Error::other(format!("entering a domain of Landlock: {error}")),
            (None, _) => error,
        }
    }
}

/// Room for the few system calls of a child.
struct Stack(Vec<u128>);

impl Stack {
    fn new() -> Self {
        Self(vec![0_u128; CHILD_STACK / size_of::<u128>()])
    }

    /// It grows downwards.
    fn top(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr_range().end.cast()
    }
}

/// A child that is to run [`child`].
struct Begun {
    stack: Stack,
    flags: libc::c_int,
    shared: *mut Shared,
    pid: libc::c_int,
    handle: libc::c_int,
}

impl Begun {
    /// Clones it here, or in the cell that it joins.
    fn begin(&mut self, cell: Option<&Cell>) -> io::Result<()> {
        match cell.and_then(|cell| cell.joins.as_ref()) {
            None => with_signals_blocked(|| self.clone_child()).map_err(|error| match cell {
                Some(_) => io::Error::other(format!("making namespaces: {error}")),
                None => error,
            }),
            // By a child of ours that is there already: this process stays where it is.
            Some(namespaces) => {
                self.flags |= libc::CLONE_PARENT;
                let entered = Entering::new(namespaces, Then::Start(&raw mut *self)).run();
                let what = cell.map_or("entering a cell", Cell::beginning);
                entered.map_err(|(_, error)| io::Error::other(format!("{what}: {error}")))
            }
        }
    }

    /// Clones it. No allocation, no lock: this may run in a child itself.
    #[expect(unsafe_code, reason = "a child that shares memory until it executes has no safe form")]
    fn clone_child(&mut self) -> io::Result<()> {
        // SAFETY: the child runs on a stack of its own while who calls this stands still, so all that it is given outlives it. No signal
        // handler runs in it: all signals are blocked until it has executed. The kernel sets `handle` to a descriptor of the caller's.
        self.pid =
            unsafe { libc::clone(child, self.stack.top(), self.flags, self.shared.cast(), &raw mut self.handle) };
        if self.pid < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// A child that enters namespaces of others and ends. It shares memory and descriptors with this process.
struct Entering {
    namespaces: Vec<libc::c_int>,
    then: Then,
    /// The step that failed, and the number of the error; no step where it could not enter, or not start.
    failed: Option<(Option<usize>, libc::c_int)>,
}

/// What it does there.
enum Then {
    Take { steps: *const [Step], slots: *mut [libc::c_int] },
    Start(*mut Begun),
}

impl Entering {
    fn new(namespaces: &Namespaces, then: Then) -> Self {
        Self { namespaces: namespaces.descriptors(), then, failed: None }
    }

    #[expect(unsafe_code, reason = "a child that shares memory until it ends has no safe form")]
    fn run(mut self) -> Result<(), (Option<usize>, io::Error)> {
        let mut stack = Stack::new();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
        // SAFETY: as in `Begun::clone_child`; the child ends before this goes on, and is waited for by its number, which is ours until then.
        let cloned = with_signals_blocked(|| unsafe {
            let pid = libc::clone(enter_and, stack.top(), flags, (&raw mut self).cast());
            if pid < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
            Ok(())
        });
        cloned.map_err(|error| (None, error))?;
        match self.failed {
            None => Ok(()),
            Some((step, error)) => Err((step, io::Error::from_raw_os_error(error))),
        }
    }
}

/// Runs in the child that enters, in the host's memory: system calls only.
#[expect(unsafe_code, reason = "a child that shares memory until it ends has no safe form")]
extern "C" fn enter_and(entering: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `Entering::run` passes an `Entering` that outlives this function and is not touched meanwhile; so is what it points to.
    unsafe {
        let entering = &mut *entering.cast::<Entering>();
        let error = || *libc::__errno_location();
        if entering.namespaces.iter().any(|namespace| libc::setns(*namespace, 0) != 0) {
            entering.failed = Some((None, error()));
            libc::_exit(125);
        }
        match entering.then {
            Then::Take { steps, slots } => {
                let taken = cell::take(&*steps, &mut *slots);
                entering.failed = taken.err().map(|(step, error)| (Some(step), error));
            }
            Then::Start(begun) => {
                if (*begun).clone_child().is_err() {
                    entering.failed = Some((None, error()));
                }
            }
        }
        libc::_exit(0)
    }
}

/// Does something that no signal handler interrupts.
#[expect(unsafe_code, reason = "the mask of signals")]
fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: calls of the C library on memory of this function.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let done = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        done
    }
}

/// Runs in the child, in the host's memory: system calls only.
#[expect(unsafe_code, reason = "a child that shares memory until it executes has no safe form")]
extern "C" fn child(shared: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Shared` that outlives this function and is not touched meanwhile.
    unsafe {
        let shared = &mut *shared.cast::<Shared>();
        // Before there is anything that could take memory. What is written names the process that writes.
        if let Some(entrance) = shared.entrance
            && libc::write(entrance, c"0".as_ptr().cast(), 1) < 0
        {
            (shared.failed, shared.error) = (Some(ENTERING), *libc::__errno_location());
            libc::_exit(125);
        }
        if let Some(making) = &mut shared.cell
            && let Err((step, error)) = (*making.cell).make(&mut making.slots)
        {
            (shared.failed, shared.error) = (Some(step), error);
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
        let behind = LIFELINE + shared.kept.len() as libc::c_int;
        let aside = behind.max(ASIDE);
        for kept in &mut shared.kept {
            *kept = libc::fcntl(*kept, libc::F_DUPFD_CLOEXEC, aside);
        }
        let init = shared.cell.as_ref().map_or(-1, |making| libc::fcntl(making.init, libc::F_DUPFD_CLOEXEC, aside));
        for (place, kept) in (LIFELINE..).zip(&shared.kept) {
            libc::dup2(*kept, place);
        }
        // What is still needed here is closed by executing.
        let needs_some = shared.cell.is_some() || shared.domain.is_some();
        let how = if needs_some { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
        libc::syscall(libc::SYS_close_range, behind, libc::c_uint::MAX, how);
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
            let closed = match (&shared.cell, shared.domain) {
                (Some(making), _) => (*making.cell).close(),
                (None, Some(domain)) => (*domain).enter(),
                (None, None) => Ok(()),
            };
            if let Err(error) = closed {
                (shared.failed, shared.error) = (Some(CLOSING), error);
                libc::_exit(125);
            }
            let execute = |descriptor: libc::c_int| {
                libc::syscall(libc::SYS_execveat, descriptor, c"".as_ptr(), argv, variables, libc::AT_EMPTY_PATH)
            };
            match (&shared.cell, shared.runs) {
                (Some(_), _) => {
                    execute(init);
                }
                (None, Some(runs)) => {
                    let descriptor = behind - 1;
                    if let Runs::Program = runs {
                        libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
                    }
                    execute(descriptor);
                }
                (None, None) => {
                    libc::execve(shared.file, argv, variables);
                }
            }
        }
        shared.error = *libc::__errno_location();
        libc::_exit(127)
    }
}
