//! Ends the commands of a host that was killed.
//!
//! SIGKILL lets a host end nothing, and a parent-death signal would come when the thread ends that started the child, and reaches only
//! the child itself. So the first command starts this program once more (`toolcrib watch`), which gets a line for each command before it
//! begins, when its number is known, and when it has ended. Its standard input ends with the host, whatever ended that.

use super::{spawn, tree};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this program answers to `watch`.
static ANSWERS: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> = Mutex::new(State { watcher: None, starting: Vec::new(), running: BTreeMap::new() });

struct State {
    watcher: Option<Watcher>,
    /// Calls whose command is about to begin.
    starting: Vec<String>,
    /// Commands by their leader, with the call that each belongs to.
    running: BTreeMap<u32, String>,
}

struct Watcher {
    process: OwnedFd,
    /// Its standard input. When it is closed, the watcher takes this host to be gone.
    input: OwnedFd,
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

/// A process has ended and was reaped.
pub(super) fn ended(leader: u32) {
    change(|state| state.ended(leader));
}

fn change(change: impl FnOnce(&mut State)) {
    change(&mut STATE.lock());
}

impl State {
    fn starting(&mut self, call: &str) {
        self.starting.push(call.to_owned());
        if self.watcher.is_some() {
            self.tell(&format!("?{call}\n"));
        }
        if self.watcher.is_none() {
            // Without one the command runs all the same: the next looks for a watcher again.
            self.watcher = Watcher::start().ok();
            let starting = self.starting.iter().map(|call| format!("?{call}\n"));
            let running = self.running.iter().map(|(leader, call)| format!("+{leader} {call}\n"));
            self.tell(&starting.chain(running).collect::<String>());
        }
    }

    fn started(&mut self, call: &str, leader: Option<u32>) {
        if let Some(place) = self.starting.iter().position(|starting| starting == call) {
            self.starting.swap_remove(place);
        }
        let begun = leader.map(|leader| {
            self.running.insert(leader, call.to_owned());
            format!("+{leader} {call}\n")
        });
        self.tell(&format!("{}!{call}\n", begun.unwrap_or_default()));
    }

    fn ended(&mut self, leader: u32) {
        if self.running.remove(&leader).is_some() {
            self.tell(&format!("-{leader}\n"));
        }
    }

    /// A watcher that was ended, or takes nothing any more, is dropped: the next command starts another.
    fn tell(&mut self, lines: &str) {
        let Some(watcher) = &self.watcher else { return };
        // Less than all means that the pipe is full: the watcher has stopped reading.
        let told = rustix::io::write(&watcher.input, lines.as_bytes());
        if told != Ok(lines.len()) {
            // First killed: one that merely stood still would read the end of its input, and end commands that run.
            let _ = rustix::process::pidfd_send_signal(&watcher.process, Signal::KILL);
            self.watcher = None;
        }
    }
}

impl Watcher {
    fn start() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let input = OwnedFd::from(writer);
        // No command waits for its watcher.
        rustix::fs::fcntl_setfl(&input, OFlags::NONBLOCK)?;
        // Not by its name: whoever ends all of that name, as `pkill -KILL` does, leaves this one.
        let argv = ["/proc/self/exe".into(), "watch".into()];
        // Nobody reads what it prints.
        let nowhere = File::options().write(true).open("/dev/null")?;
        let program = spawn::Program {
            argv: &argv,
            sealed: None,
            environment: &[],
            directory: Path::new("/"),
            standard: [reader.as_fd(), nowhere.as_fd(), nowhere.as_fd()],
            walls: None,
            terminal: spawn::Terminal::None,
        };
        let started = tree::born(|| spawn::spawn(&program))?;
        tree::reap_later(started.pid);
        Ok(Self { process: started.handle, input })
    }
}

/// What a watcher knows.
#[derive(Default)]
struct Watched {
    /// Calls, and how many of their commands are about to begin.
    starting: HashMap<String, usize>,
    /// Commands by their leader: a handle of it, since its number can be another's later, and the call.
    running: HashMap<u32, (OwnedFd, String)>,
}

/// The watcher's side: keeps the commands that run, and ends them when the host is gone.
pub(crate) fn serve() -> io::Result<()> {
    let mut watched = Watched::default();
    for line in io::stdin().lock().lines() {
        watched.hear(&line?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(watched.end());
    Ok(())
}

impl Watched {
    fn hear(&mut self, line: &str) {
        if let Some(call) = line.strip_prefix('?') {
            *self.starting.entry(call.to_owned()).or_default() += 1;
        } else if let Some(call) = line.strip_prefix('!') {
            if let Some(count) = self.starting.get_mut(call) {
                *count -= 1;
            }
            self.starting.retain(|_, count| *count > 0);
        } else if let Some((leader, call)) = line.strip_prefix('+').and_then(|begun| begun.split_once(' ')) {
            if let Some((leader, handle)) = leader.parse().ok().and_then(|leader| Some((leader, handle(leader)?))) {
                self.running.insert(leader, (handle, call.to_owned()));
            }
        } else if let Some(leader) = line.strip_prefix('-').and_then(|leader| leader.parse().ok()) {
            self.running.remove(&leader);
        }
    }

    async fn end(self) {
        let living = self.running.into_iter().filter(|(_, (handle, _))| has_not_ended(handle));
        let known = living.map(|(leader, (_, call))| (leader, call));
        let begun = self.starting.into_keys().filter_map(|call| Some((tree::leader(&call)?, call)));
        let all: BTreeMap<u32, String> = known.chain(begun).collect();
        let ends = all.into_iter().map(|(leader, call)| async move { tree::end(leader, &call).await });
        ends.collect::<tokio::task::JoinSet<_>>().join_all().await;
    }
}

fn handle(leader: u32) -> Option<OwnedFd> {
    let leader = Pid::from_raw(i32::try_from(leader).ok()?)?;
    rustix::process::pidfd_open(leader, PidfdFlags::empty()).ok()
}

/// A handle becomes readable when its process ends.
fn has_not_ended(handle: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready == 0)
}
