//! Ends the commands of a host that was killed.
//!
//! SIGKILL lets a host end nothing, and a parent-death signal would come when the thread ends that started the child, and reaches only
//! the child itself. So the first command starts this program once more (`toolcrib watch`), which gets a line for each command before it
//! begins, when its number is known, and when it has ended. Its standard input ends with the host, whatever ended that.
//!
//! Only then do those lines matter. So they come by a pipe of their own, its standard output, which is read when standard input wakes it: to
//! wake it for each of them made a short command a tenth slower.
//!
//! A call can have a time by which its commands end (`end_at`), also where the host stands still: jobs are run under a lease.

use super::{spawn, tree, uptime};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Bytes of notes after which the watcher is woken to read them: a quarter of what their pipe holds.
const UNREAD: usize = 16 << 10;
/// The notes, as the watcher has them.
const NOTES: RawFd = 1;

/// Whether this program answers to `watch`.
static ANSWERS: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> =
    Mutex::new(State { watcher: None, starting: Vec::new(), running: BTreeMap::new(), deadlines: BTreeMap::new() });

struct State {
    watcher: Option<Watcher>,
    /// Calls whose command is about to begin.
    starting: Vec<String>,
    /// Commands by their leader, with the call that each belongs to.
    running: BTreeMap<u32, String>,
    /// When the commands of a call have to have ended, since the system was started.
    deadlines: BTreeMap<String, Duration>,
}

struct Watcher {
    process: OwnedFd,
    pid: u32,
    /// Its standard input, which wakes it. When it is closed, the watcher takes this host to be gone.
    input: OwnedFd,
    /// What it is to know when it is woken.
    notes: OwnedFd,
    /// Bytes of notes that it may not have read.
    unread: usize,
}

/// Declares that this program answers to `watch` with [`serve`]. Without it commands outlive a host that is killed.
pub(super) fn answer() {
    ANSWERS.store(true, Ordering::Relaxed);
}

/// Starts a command of a call, whose leader `start` returns.
pub(super) fn watched<T>(
    call: &str,
    start: impl FnOnce() -> io::Result<T>,
    leader: impl FnOnce(&T) -> u32,
) -> io::Result<T> {
    if !ANSWERS.load(Ordering::Relaxed) {
        return start();
    }
    // Before the command starts: a host that is killed right after that leaves only the mark by which to find it.
    change(|state| state.starting(call));
    let started = start();
    change(|state| state.started(call, started.as_ref().ok().map(leader)));
    started
}

/// Has the commands of a call end at this time since the system was started; none: there is no such time.
pub(super) fn end_at(call: &str, until: Option<Duration>) {
    change(|state| state.end_at(call, until));
}

/// A process has ended. Its number is another's only when it is reaped, which is later.
pub(super) fn ended(leader: u32) {
    change(|state| state.ended(leader));
}

/// The number of the watcher that runs.
pub(super) fn pid() -> Option<u32> {
    STATE.lock().watcher.as_ref().map(|watcher| watcher.pid)
}

fn change(change: impl FnOnce(&mut State)) {
    change(&mut STATE.lock());
}

impl State {
    fn starting(&mut self, call: &str) {
        self.starting.push(call.to_owned());
        if self.watcher.is_some() {
            self.note_of(call, &format!("?{call}\n"));
        }
        if self.watcher.is_none() {
            self.begin();
        }
    }

    /// Starts a watcher, and tells it all. Without one commands run all the same: the next looks for a watcher again.
    fn begin(&mut self) {
        self.watcher = Watcher::start().ok();
        let starting = self.starting.iter().map(|call| format!("?{call}\n"));
        let running = self.running.iter().map(|(leader, call)| begun(*leader, call));
        let (notes, deadlines) = (starting.chain(running).collect::<String>(), self.deadlines.iter());
        let deadlines: String = deadlines.map(|(call, until)| deadline(call, Some(*until))).collect();
        self.note(&notes);
        self.tell(&deadlines);
    }

    fn end_at(&mut self, call: &str, until: Option<Duration>) {
        match until {
            Some(until) => self.deadlines.insert(call.to_owned(), until),
            None => self.deadlines.remove(call),
        };
        self.tell(&deadline(call, until));
        // It has ended, and there is something to watch over.
        if self.watcher.is_none() && !self.running.is_empty() {
            self.begin();
        }
    }

    fn started(&mut self, call: &str, leader: Option<u32>) {
        if let Some(place) = self.starting.iter().position(|starting| starting == call) {
            self.starting.swap_remove(place);
        }
        let begun = leader.map(|leader| {
            self.running.insert(leader, call.to_owned());
            begun(leader, call)
        });
        self.note_of(call, &format!("{}!{call}\n", begun.unwrap_or_default()));
    }

    fn ended(&mut self, leader: u32) {
        if self.running.remove(&leader).is_some() {
            self.note(&format!("-{leader}\n"));
        }
    }

    /// Writes down what becomes of a call's command. Where the call has a time, that may be over by now, and the watcher is woken.
    fn note_of(&mut self, call: &str, lines: &str) {
        self.note(lines);
        if self.deadlines.contains_key(call) {
            self.tell("\n");
        }
    }

    /// Writes down what the watcher has to know when it is woken.
    fn note(&mut self, lines: &str) {
        let Some(watcher) = &mut self.watcher else { return };
        watcher.unread += lines.len();
        let (told, is_much) = (watcher.notes.told(lines), watcher.unread > UNREAD);
        match told {
            true if is_much => self.tell("\n"),
            true => {}
            false => self.give_up(),
        }
    }

    /// Wakes the watcher.
    fn tell(&mut self, lines: &str) {
        let Some(watcher) = &mut self.watcher else { return };
        watcher.unread = 0;
        if !watcher.input.told(lines) {
            self.give_up();
        }
    }

    /// A watcher that was ended, or takes nothing any more, is dropped: the next command starts another.
    fn give_up(&mut self) {
        // First killed: one that merely stood still would read the end of its input, and end commands that run.
        if let Some(watcher) = self.watcher.take() {
            let _ = rustix::process::pidfd_send_signal(&watcher.process, Signal::KILL);
        }
    }
}

/// A pipe to the watcher.
trait Told {
    /// Less than all means that the pipe is full: the watcher has stopped reading.
    fn told(&self, lines: &str) -> bool;
}

impl Told for OwnedFd {
    fn told(&self, lines: &str) -> bool {
        rustix::io::write(self, lines.as_bytes()) == Ok(lines.len())
    }
}

/// The line that says which process a command is: who has that number and was there by now.
fn begun(leader: u32, call: &str) -> String {
    format!("+{leader} {} {call}\n", uptime().as_millis())
}

/// The line that says when the commands of a call have to have ended.
fn deadline(call: &str, until: Option<Duration>) -> String {
    match until {
        Some(until) => format!("@{call} {}\n", until.as_millis()),
        None => format!("@{call} -\n"),
    }
}

impl Watcher {
    fn start() -> io::Result<Self> {
        let ((reader, input), (noted, notes)) = (io::pipe()?, io::pipe()?);
        let (input, notes) = (OwnedFd::from(input), OwnedFd::from(notes));
        // No command waits for its watcher.
        rustix::fs::fcntl_setfl(&input, OFlags::NONBLOCK)?;
        rustix::fs::fcntl_setfl(&notes, OFlags::NONBLOCK)?;
        // Not by its name: whoever ends all of that name, as `pkill -KILL` does, leaves this one.
        let argv = ["/proc/self/exe".into(), "watch".into()];
        // Nobody reads what it prints.
        let nowhere = File::options().write(true).open("/dev/null")?;
        let program = spawn::Program {
            argv: &argv,
            sealed: None,
            environment: &[],
            directory: Path::new("/"),
            standard: [reader.as_fd(), noted.as_fd(), nowhere.as_fd()],
            walls: None,
            terminal: spawn::Terminal::None,
        };
        let started = tree::born(|| spawn::spawn(&program))?;
        tree::reap_later(started.pid);
        Ok(Self { process: started.handle, pid: started.pid, input, notes, unread: 0 })
    }
}

/// What a watcher knows.
#[derive(Default)]
struct Watched {
    /// Calls, and how many of their commands are about to begin.
    starting: HashMap<String, usize>,
    /// Commands by their leader.
    running: HashMap<u32, Running>,
    /// When the commands of a call have to have ended.
    deadlines: HashMap<String, Duration>,
    /// Calls whose time is over: what begins of them is ended at once.
    over: HashSet<String>,
}

/// A command, as a watcher knows it.
struct Running {
    /// Of the leader, whose number can be another's later.
    handle: OwnedFd,
    call: String,
}

/// Pieces of lines: what comes waits for the end of its line.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// Reads what there is, and returns the lines that are whole; none at the end.
    fn read(&mut self, from: impl AsFd) -> io::Result<Option<String>> {
        let mut piece = [0; 16 << 10];
        match rustix::io::read(from, &mut piece) {
            Ok(0) => return Ok(None),
            Ok(length) => self.0.extend_from_slice(&piece[..length]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let whole = self.0.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = self.0.split_off(whole);
        Ok(Some(String::from_utf8_lossy(&std::mem::replace(&mut self.0, rest)).into_owned()))
    }
}

/// The watcher's side: keeps the commands that run, and ends them when the host is gone, or their time is over.
pub(crate) fn serve() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    #[expect(unsafe_code, reason = "a descriptor that every program begins with")]
    // SAFETY: it is open (the standard library opens the first three that are not), and nothing here closes it.
    let notes = unsafe { BorrowedFd::borrow_raw(NOTES) };
    // It waits for no notes.
    rustix::fs::fcntl_setfl(notes, OFlags::NONBLOCK)?;
    let (mut watched, mut heard, mut noted, input) =
        (Watched::default(), Lines::default(), Lines::default(), io::stdin());
    loop {
        let left = watched.deadlines.values().min().map(|first| first.saturating_sub(uptime()));
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        let lines = match rustix::event::poll(&mut [PollFd::new(&input, PollFlags::IN)], left.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Some(String::new()),
            Ok(_) => heard.read(&input)?,
            Err(error) => return Err(error.into()),
        };
        // All that was noted before that was told: none are left where the pipe is empty, or at its end.
        while let Ok(Some(lines)) = noted.read(notes) {
            watched.note(&lines);
        }
        let Some(lines) = lines else { break };
        lines.lines().for_each(|line| watched.hear(line));
        runtime.block_on(watched.end_what_is_over());
    }
    runtime.block_on(watched.end());
    Ok(())
}

impl Watched {
    /// Ends the commands of calls whose time is over.
    async fn end_what_is_over(&mut self) {
        let now = uptime();
        let over = self.deadlines.iter().filter(|(_, until)| **until <= now).map(|(call, _)| call.clone());
        let over: Vec<String> = over.collect();
        for call in over {
            self.deadlines.remove(&call);
            self.over.insert(call);
        }
        if self.over.is_empty() {
            return;
        }
        let living = self.running.iter().filter(|(_, it)| self.over.contains(&it.call) && has_not_ended(&it.handle));
        let known = living.map(|(leader, it)| (*leader, it.call.clone()));
        let begun = self.starting.keys().filter(|call| self.over.contains(*call));
        let begun = begun.filter_map(|call| Some((tree::leader(call)?, call.clone())));
        let all: BTreeMap<u32, String> = known.chain(begun).collect();
        let ends = all.into_iter().map(|(leader, call)| async move { tree::kill(leader, &call).await });
        ends.collect::<JoinSet<_>>().join_all().await;
    }

    fn hear(&mut self, line: &str) {
        let Some((call, until)) = line.strip_prefix('@').and_then(|deadline| deadline.split_once(' ')) else { return };
        match until.parse().map(Duration::from_millis) {
            Ok(until) => _ = self.deadlines.insert(call.to_owned(), until),
            Err(_) => {
                self.deadlines.remove(call);
                self.over.remove(call);
            }
        }
    }

    /// Takes notes. What has ended by a later one is not looked for: its number may be another's.
    fn note(&mut self, lines: &str) {
        let mut begun = HashMap::new();
        for line in lines.lines() {
            if let Some(call) = line.strip_prefix('?') {
                *self.starting.entry(call.to_owned()).or_default() += 1;
            } else if let Some(call) = line.strip_prefix('!') {
                if let Some(count) = self.starting.get_mut(call) {
                    *count -= 1;
                }
                self.starting.retain(|_, count| *count > 0);
            } else if let Some(command) = line.strip_prefix('+') {
                let mut words = command.splitn(3, ' ');
                let numbers = [words.next(), words.next()].map(|number| number.and_then(|number| number.parse().ok()));
                if let ([Some(leader), Some(at)], Some(call)) = (numbers, words.next()) {
                    begun.insert(leader, (Duration::from_millis(at), call.to_owned()));
                }
            } else if let Some(leader) = line.strip_prefix('-').and_then(|leader| leader.parse().ok()) {
                begun.remove(&leader);
                self.running.remove(&u32::try_from(leader).unwrap_or_default());
            }
        }
        for (leader, (at, call)) in begun {
            let Ok(leader) = u32::try_from(leader) else { continue };
            // Read after it was opened: it is who was read about as long as it is there.
            if let Some(handle) = handle(leader)
                && tree::was_there(leader, at)
            {
                self.running.insert(leader, Running { handle, call });
            }
        }
    }

    async fn end(self) {
        let living = self.running.into_iter().filter(|(_, it)| has_not_ended(&it.handle));
        let known = living.map(|(leader, it)| (leader, it.call)).collect::<BTreeMap<_, _>>();
        // Of these only the mark is known, and that only once they have begun.
        let begun = self.starting.into_keys().filter(|call| !known.values().any(|known| known == call));
        let mut ends = begun.map(|call| async move { tree::end_call(&call).await }).collect::<JoinSet<_>>();
        for (leader, call) in known {
            ends.spawn(async move { _ = tree::end(leader, &call).await });
        }
        ends.join_all().await;
    }
}

fn handle(leader: u32) -> Option<OwnedFd> {
    let leader = Pid::from_raw(i32::try_from(leader).ok()?)?;
    rustix::process::pidfd_open(leader, PidfdFlags::empty()).ok()
}

/// A handle becomes readable when its process ends.
pub(super) fn has_not_ended(handle: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready == 0)
}
