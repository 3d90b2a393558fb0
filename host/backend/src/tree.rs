//! The processes of one command, and their end.
//!
//! A command's leader is the subreaper of its descendants: a daemon that forks twice and calls `setsid` is still found below it.
//! What outlives its leader becomes a child of this host, is known by the call's mark, and is reaped when it ends.

use super::spawn::Started;
use super::{uptime, watcher};
use config::CALL_MARK;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;

/// How long a tree may take to end.
const END: Duration = Duration::from_secs(2);
/// How long a tree may take to end by itself after SIGTERM.
const COURTESY: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Children of this host that it knows: leaders of running commands, and what earlier commands left running.
static KNOWN: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

/// Whether every child of this process is a command's.
static OWNS_CHILDREN: AtomicBool = AtomicBool::new(false);

fn known<T>(change: impl FnOnce(&mut HashSet<u32>) -> T) -> T {
    change(KNOWN.lock().get_or_insert_default())
}

/// Makes this process the parent of what its commands leave behind.
pub(super) fn become_subreaper() {
    // Fails only on kernels before 3.4; then orphans go to init, as without us.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Lets what has ended be reaped wherever it came from. Whoever embeds the host may have children of their own, so this is for programs
/// that have none.
pub(super) fn own_children() {
    OWNS_CHILDREN.store(true, Ordering::Relaxed);
}

/// Starts a leader; meanwhile nothing adopts it as an orphan.
pub(super) fn born<E>(start: impl FnOnce() -> Result<Started, E>) -> Result<Started, E> {
    known(|known| start().inspect(|started| _ = known.insert(started.pid)))
}

/// A leader has ended: has it reaped, and forgets it.
pub(super) fn bury_leader<T>(pid: u32, reap: impl FnOnce() -> T) -> T {
    // As long as it is not reaped, its number is its own.
    watcher::ended(pid);
    let reaped = reap();
    known(|known| known.remove(&pid));
    reaped
}

/// One process as `/proc/PID/stat` shows it.
pub(super) struct Stat {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
    pub(super) ended: bool,
    pub(super) name: String,
    /// Number of its controlling terminal, as the kernel writes it; 0 for none.
    pub(super) terminal: u32,
    /// Since the system was started, sleep included, in ticks.
    pub(super) begun: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too: count from its end.
    let (name, fields) = text.rsplit_once(") ")?;
    let name = name.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = fields.split(' ').collect();
    let begun = fields.get(19)?.parse().ok()?;
    let number = |index: usize| fields.get(index)?.parse().ok();
    // A zombie whose other threads run on has not ended.
    let ended = match *fields.first()? {
        "X" => true,
        "Z" => number(17).is_none_or(|threads: u32| threads <= 1),
        _ => false,
    };
    let terminal = number(4).unwrap_or_default();
    Some(Stat { pid, parent: number(1)?, group: number(2)?, session: number(3)?, ended, name, terminal, begun })
}

/// Whether who has this number had it at this time since the system was started, sleep not included: then it began before.
pub(super) fn was_there(pid: u32, at: Duration) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let now = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default());
    // Sleep since then makes it older only.
    let age = uptime().saturating_sub(at);
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let most = now.saturating_sub(age).as_millis() * u128::from(ticks) / 1000;
    stat(pid).is_some_and(|found| u128::from(found.begun) <= most + 1)
}

pub(super) fn all() -> Vec<Stat> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| stat(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

/// The call that a process says it belongs to.
fn mark(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(CALL_MARK.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

/// The living leader of a call's command, by its mark: each leads a session of its own.
pub(super) fn leader(call: &str) -> Option<u32> {
    let leads = |stat: &Stat| !stat.ended && stat.pid == stat.session && mark(stat.pid).as_deref() == Some(call);
    all().into_iter().find(leads).map(|stat| stat.pid)
}

/// The processes of one leader at one look, without the leader itself.
struct Members {
    living: Vec<u32>,
    /// Ended and not reaped.
    ended: HashSet<u32>,
}

/// What belongs to the leader: below it, in its group or session, or marked.
fn members(leader: u32, call: &str) -> Members {
    let all = all();
    let parents: HashMap<u32, u32> = all.iter().map(|stat| (stat.pid, stat.parent)).collect();
    let is_below = |mut pid: u32| {
        while let Some(&parent) = parents.get(&pid).filter(|parent| **parent != 0) {
            if parent == leader {
                return true;
            }
            pid = parent;
        }
        false
    };
    let belongs = |stat: &&Stat| {
        stat.group == leader || stat.session == leader || is_below(stat.pid) || mark(stat.pid).as_deref() == Some(call)
    };
    let others = all.iter().filter(|stat| stat.pid != leader).filter(belongs);
    let (ended, living): (Vec<&Stat>, Vec<&Stat>) = others.partition(|stat| stat.ended);
    Members { living: living.iter().map(|stat| stat.pid).collect(), ended: ended.iter().map(|stat| stat.pid).collect() }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Ends everything below a living leader, then the leader; returns what was ended, and how many are left. The caller reaps the leader,
/// then the rest ([`bury`]).
///
/// The leader is stopped meanwhile: as long as it exists, what its dying children leave behind becomes its child, not lost.
/// It is let go once more, alone, to end by itself.
pub(super) async fn end(leader: u32, call: &str) -> (HashSet<u32>, usize) {
    let deadline = Instant::now() + END;
    signal(leader, Signal::STOP);
    let mut ended: HashSet<u32> = signal_members(leader, call, Signal::TERM).living.into_iter().collect();
    wait(COURTESY, || members(leader, call).living.is_empty()).await;
    end_members(leader, call, deadline, &mut ended).await;
    // TERM first: it is pending when the leader goes on, and acts before the leader can start anything.
    signal(leader, Signal::TERM);
    signal(leader, Signal::CONT);
    wait(COURTESY, || stat(leader).is_none_or(|stat| stat.ended)).await;
    signal(leader, Signal::STOP);
    let left = end_members(leader, call, deadline, &mut ended).await;
    signal(leader, Signal::KILL);
    (ended, left)
}

/// Ends everything below a living leader, and the leader, at once: there is no time for anything to end by itself. Returns how many are left.
pub(super) async fn kill(leader: u32, call: &str) -> usize {
    signal(leader, Signal::STOP);
    let left = end_members(leader, call, Instant::now() + END, &mut HashSet::new()).await;
    signal(leader, Signal::KILL);
    left
}

/// Ends what may be left of a call that another program has made, by its mark alone. Returns when nothing of it runs.
pub(super) async fn end_call(call: &str) {
    let deadline = Instant::now() + END;
    if let Some(leader) = leader(call) {
        let handle = opened(leader);
        end(leader, call).await;
        wait_for(handle.as_slice(), deadline).await;
    }
    // A process that is about to begin has no mark yet: only a second look that finds nothing says that there is nothing.
    let mut is_quiet = false;
    while Instant::now() < deadline {
        let is_of_call = |stat: &Stat| !stat.ended && mark(stat.pid).as_deref() == Some(call);
        let marked: Vec<u32> = all().into_iter().filter(is_of_call).map(|stat| stat.pid).collect();
        if marked.is_empty() && is_quiet {
            return;
        }
        is_quiet = marked.is_empty();
        let mut killed = Vec::new();
        for pid in marked {
            let Some(process) = opened(pid) else { continue };
            // Read after it was opened: as long as the signal finds somebody, it is who was read about.
            if mark(pid).as_deref() == Some(call) {
                let _ = rustix::process::pidfd_send_signal(&process, Signal::KILL);
                killed.push(process);
            }
        }
        wait_for(&killed, deadline).await;
        tokio::time::sleep(LOOK_AGAIN * 4).await;
    }
}

fn opened(pid: u32) -> Option<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns when these processes have ended, or the time is over. Killed, a process can do nothing more, but it takes a moment to be gone.
async fn wait_for(processes: &[OwnedFd], deadline: Instant) {
    while processes.iter().any(watcher::has_not_ended) && Instant::now() < deadline {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn signal_members(leader: u32, call: &str, with: Signal) -> Members {
    let members = members(leader, call);
    for pid in &members.living {
        signal_member(*pid, leader, call, with);
    }
    members
}

/// Signals what a look found, if it belongs to the leader still. A look takes long enough for a process to end and its number, or its
/// parent's, to be another's: among thousands of short processes a stranger seemed to be below the leader.
fn signal_member(pid: u32, leader: u32, call: &str, with: Signal) {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(process) = rustix::process::pidfd_open(raw, PidfdFlags::empty()) else { return };
    // Read after it was opened: as long as the signal finds somebody, it is who was read about.
    let belongs = |found: Stat| {
        found.group == leader
            || found.session == leader
            || is_below_now(pid, found.parent, leader)
            || mark(pid).as_deref() == Some(call)
    };
    if stat(pid).is_some_and(belongs) {
        let _ = rustix::process::pidfd_send_signal(&process, with);
    }
}

/// Whether a process is below the leader at this moment: each step up is looked at from both of its ends.
fn is_below_now(mut pid: u32, mut parent: u32, leader: u32) -> bool {
    loop {
        if parent == leader {
            return true;
        }
        let Some(above) = stat(parent).filter(|above| above.parent != 0) else { return false };
        match stat(pid) {
            // Its parent was that very process when it was read: a number that is another's by then is no parent of it.
            Some(found) if found.parent == parent => (pid, parent) = (parent, above.parent),
            // Its parent has ended: it has another, which is the leader if that is above.
            Some(found) if found.parent == leader => return true,
            _ => return false,
        }
    }
}

/// Returns how many are left, at least one where something still starts others.
async fn end_members(leader: u32, call: &str, deadline: Instant, ended: &mut HashSet<u32>) -> usize {
    // A look misses what forks and ends faster than it reads. But whatever ends below a stopped leader stays there unreaped, so nothing runs
    // any more only when a look finds none alive, and none that ended by itself since the last. (A leader that ignores SIGCHLD keeps none.)
    let mut before: Option<HashSet<u32>> = None;
    loop {
        let now = signal_members(leader, call, Signal::KILL);
        if let Some(before) = before {
            let is_quiet = now.ended.iter().all(|pid| before.contains(pid) || ended.contains(pid));
            if now.living.is_empty() && is_quiet {
                return 0;
            }
            if Instant::now() > deadline {
                return now.living.len().max(1);
            }
        }
        ended.extend(now.living);
        before = Some(now.ended);
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn wait(at_most: Duration, is_done: impl Fn() -> bool) {
    let begin = Instant::now();
    while begin.elapsed() < at_most && !is_done() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// One pass without waiting, for a process that is dropped while it runs. The leader is reaped like an adopted process.
pub(super) fn end_at_once(leader: u32, call: &str) {
    signal(leader, Signal::STOP);
    let ended: HashSet<u32> = signal_members(leader, call, Signal::KILL).living.into_iter().collect();
    signal(leader, Signal::KILL);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        let call = call.to_owned();
        runtime.spawn(async move {
            reap(leader, leader, call).await;
            // What was killed takes a moment to end, and is ours to reap only once its parent is gone too. Unreaped, a process that entered
            // a container keeps that from ending.
            wait(END, || {
                bury(&ended);
                ended.iter().all(|pid| stat(*pid).is_none())
            })
            .await;
        });
    }
}

/// Sees to the end of a process that has no tree and whose input is at its end: it ends by itself and tells the other side, or is ended.
pub(super) fn end_alone(leader: u32) {
    let living = Living(leader);
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    // A runtime that shuts down drops this at any point, also before it begins.
    runtime.spawn(async move {
        wait(END, || stat(living.0).is_none_or(|stat| stat.ended)).await;
        drop(living);
        reap(leader, leader, String::new()).await;
    });
}

/// Reaps a process that is no command's when it ends.
pub(super) fn reap_later(pid: u32) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(reap(pid, pid, String::new()));
    }
}

/// A child that nobody has reaped: it is killed when this is dropped.
struct Living(u32);

impl Drop for Living {
    fn drop(&mut self) {
        signal(self.0, Signal::KILL);
    }
}

/// Reaps the children that a leader's death made ours; those that others reap are not ours to wait for.
pub(super) fn bury(ended: &HashSet<u32>) {
    // A number can be a new leader's by now.
    known(|known| ended.difference(known).for_each(|pid| reap_now(*pid)));
}

fn reap_now(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// What a leader that has exited left running: now children of this host, and not known yet. Each is reaped when it ends.
///
/// One that cleared its mark is known by the leader's session; one that left that too is nobody's, so that children of whoever embeds
/// the host are never taken for it.
pub(super) fn adopt(leader: u32, call: &str) -> Vec<u32> {
    let new: Vec<u32> = known(|known| children().into_iter().filter(|pid| !known.contains(pid)).collect());
    let (left, others): (Vec<u32>, Vec<u32>) = new.into_iter().partition(|pid| is_left_by(*pid, leader, call));
    if OWNS_CHILDREN.load(Ordering::Relaxed) {
        // Only this list shows a process that left its call and then ended.
        others.into_iter().filter(|pid| stat(*pid).is_some_and(|stat| stat.ended)).for_each(reap_now);
    }
    for pid in &left {
        if known(|known| known.insert(*pid)) {
            tokio::spawn(reap(*pid, leader, call.to_owned()));
        }
    }
    left.into_iter().filter(|pid| stat(*pid).is_some_and(|stat| !stat.ended)).collect()
}

fn is_left_by(pid: u32, leader: u32, call: &str) -> bool {
    match mark(pid) {
        Some(mark) => mark == call,
        None => stat(pid).is_some_and(|stat| stat.session == leader || stat.group == leader),
    }
}

/// Waits for an adopted process, then adopts what it leaves in turn.
async fn reap(pid: u32, leader: u32, call: String) {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // A pidfd becomes readable when its process ends; it is not read, so it may pass for a pipe.
    if let Ok(handle) = rustix::process::pidfd_open(raw, PidfdFlags::NONBLOCK)
        && let Ok(handle) = pipe::Receiver::from_owned_fd_unchecked(handle)
    {
        let _ = handle.readable().await;
    }
    bury_leader(pid, || reap_now(pid));
    adopt(leader, &call);
}

/// Children that this process was given, from the kernel's own list; where it keeps none, from a look at all processes. What an ancestor takes
/// over becomes a child of its first thread; a list of another thread has what that has started itself, which is known.
fn children() -> Vec<u32> {
    let own = std::process::id();
    match listed_children(own) {
        Ok(list) => list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        Err(_) => all().into_iter().filter(|stat| stat.parent == own).map(|stat| stat.pid).collect(),
    }
}

/// That list. Its file is opened once: it is read after each command.
fn listed_children(own: u32) -> io::Result<String> {
    static LIST: OnceLock<File> = OnceLock::new();
    let list = match LIST.get() {
        Some(list) => list,
        None => {
            let list = File::open(format!("/proc/self/task/{own}/children"))?;
            LIST.get_or_init(|| list)
        }
    };
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match list.read_at(&mut piece, text.len() as u64)? {
            0 => return String::from_utf8(text).map_err(io::Error::other),
            bytes => text.extend_from_slice(&piece[..bytes]),
        }
    }
}
