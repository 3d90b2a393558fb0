//! A worker: takes jobs that wait, runs each under a lease that it renews, and sees to those whose worker is lost.
//!
//! Every step is a change of the row that expects what was read, so each has one winner. What a worker runs ends before its lease does, also
//! where the worker itself was killed or stopped: another program is told the deadline (`backend/watcher.rs`). Only then does anybody
//! else touch the job.

use super::output::Spool;
use backend::uptime;
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::engine::{Engine, Heard, Keeping, Settled, settle};
use store::job::{Held, JobState, Progress};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often ended jobs are looked at that may be forgotten.
const EXPIRE: Duration = Duration::from_secs(60);
/// How often a job is begun that may be repeated: one that ends its host would be begun for ever.
const MOST_RUNS: u64 = 100;
/// Bytes of an outcome that are kept in the row.
const SHORT: usize = 4 << 10;
/// How long to wait before the store is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// What came of running a job.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) state: JobState,
    pub(crate) exit_code: Option<i32>,
    pub(crate) cause: Option<String>,
    /// What the call gave, as JSON.
    pub(crate) json: Option<String>,
}

/// By which lanes jobs are found that a program can run now.
pub(crate) type Lanes = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// What runs jobs.
pub(crate) trait Runner: Send + Sync {
    /// Runs one to its end, or until it is cancelled and has wound down.
    fn run<'a>(&'a self, job: &'a Held, output: Arc<Spool>, cancel: CancellationToken) -> BoxFuture<'a, Outcome>;

    /// Has all that a call runs end at that time since the system was started, whatever becomes of this program; none: it has ended.
    fn hold(&self, call: &str, until: Option<Duration>);

    /// Ends what may be left of a call whose worker is lost.
    fn sweep<'a>(&'a self, call: &'a str) -> BoxFuture<'a, ()>;
}

/// How a worker works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) pool: usize,
    pub(crate) per_session: usize,
    pub(crate) lease: Duration,
    pub(crate) keeping: Keeping,
    /// Bytes that are kept of each stream.
    pub(crate) stream_bytes: u64,
}

/// A worker of some lanes.
pub(crate) struct Worker {
    engine: Arc<dyn Engine>,
    runner: Arc<dyn Runner>,
    rules: Rules,
    lanes: Lanes,
    running: Mutex<HashMap<String, Arc<Slot>>>,
    /// One has ended.
    ended: Notify,
    stop: CancellationToken,
    trouble: watch::Sender<Option<String>>,
}

/// A job that this worker runs.
struct Slot {
    session: String,
    lane: String,
    cancel: CancellationToken,
    /// Its row may have changed, or the worker leaves.
    told: Notify,
    held: Mutex<Held>,
    /// When it has to have ended, unless the lease is renewed: since the system was started.
    deadline: Mutex<Duration>,
}

/// Why a job was ended before its own end.
#[derive(Debug)]
enum Stopped {
    /// The row says so.
    Cancelled(Box<Held>),
    /// It is another's, or gone.
    Fenced,
    /// The lease could not be renewed.
    Lease,
    /// It took too long.
    Time,
    /// This worker ends.
    Leaving,
}

/// A job that another runs, as it was seen.
struct Seen {
    revision: u64,
    since: Instant,
}

impl Worker {
    pub(crate) fn new(engine: Arc<dyn Engine>, runner: Arc<dyn Runner>, rules: Rules, lanes: Lanes) -> Arc<Self> {
        let (running, ended, stop, trouble) = Default::default();
        Arc::new(Self { engine, runner, rules, lanes, running, ended, stop, trouble })
    }

    /// The lanes whose jobs it runs now.
    pub(crate) fn lanes(&self) -> Vec<String> {
        (self.lanes)()
    }

    /// Has it end: what it runs is ended, and handed back where it may be run again.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Why it cannot work now, if it cannot.
    pub(crate) fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    fn note(&self, failure: Option<&Failure>) {
        let now = failure.map(|failure| failure.message.clone());
        self.trouble.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
    }

    /// A job's row was changed by this program.
    pub(crate) fn look_again(&self, id: &str) {
        if let Some(slot) = self.running.lock().get(id) {
            slot.told.notify_one();
        }
    }

    /// Works until it is stopped.
    pub(crate) async fn work(self: &Arc<Self>) {
        let tasks = TaskTracker::new();
        let (mut heard, mut others) = (Heard::default(), HashMap::new());
        let (mut looked, mut expired) = (None::<Instant>, None::<Instant>);
        tokio::select! { () = self.stop.cancelled() => return, () = self.engine.ready() => {} }
        let tick = self.rules.lease / 6;
        let mut name = None;
        while !self.stop.is_cancelled() {
            let worked = async {
                let name = match &name {
                    Some(name) => name,
                    None => name.insert(self.engine.enlist().await?),
                };
                if looked.is_none_or(|looked| looked.elapsed() >= tick) {
                    looked = Some(Instant::now());
                    self.see_to_the_lost(&mut others).await?;
                }
                if expired.is_none_or(|expired| expired.elapsed() >= EXPIRE) {
                    expired = Some(Instant::now());
                    self.engine.expire(self.rules.keeping).await?;
                }
                self.begin(name, &tasks).await
            };
            let worked = worked.await;
            self.note(worked.as_ref().err());
            if worked.is_err() {
                // The store is busy, or cannot be read: it may be later.
                let _ = tokio::time::timeout(PAUSE, self.stop.cancelled()).await;
                continue;
            }
            let before = heard;
            let is_time = tokio::select! {
                () = self.stop.cancelled() => break,
                () = self.ended.notified() => false,
                () = self.engine.rung(&mut heard) => false,
                () = tokio::time::sleep(tick) => true,
            };
            if is_time || heard.elsewhere != before.elsewhere {
                self.look_at_changed().await;
            }
        }
        self.running.lock().values().for_each(|slot| slot.told.notify_one());
        tasks.close();
        tasks.wait().await;
    }

    /// Claims what can begin now.
    async fn begin(self: &Arc<Self>, name: &str, tasks: &TaskTracker) -> Result<(), Failure> {
        for lane in self.lanes() {
            self.begin_of(&lane, name, tasks).await?;
        }
        Ok(())
    }

    async fn begin_of(self: &Arc<Self>, lane: &str, name: &str, tasks: &TaskTracker) -> Result<(), Failure> {
        loop {
            let (free, full) = self.room(lane);
            if free == 0 {
                return Ok(());
            }
            let waiting = self.engine.take(lane, free, &full).await?;
            let (mut begun, is_all) = (false, waiting.len() < free);
            for held in waiting {
                let waits = held.progress.state == JobState::Pending && held.progress.lane == lane;
                if !waits || self.room(lane).1.contains(&held.spec.session) {
                    continue;
                }
                // From before the claim is sent: nobody else counts from an earlier time.
                let sent = uptime();
                let lease_ms = u64::try_from(self.rules.lease.as_millis()).unwrap_or(u64::MAX);
                let claimed = held.progress.claimed(name, lease_ms, self.engine.now_ms());
                let Settled::Won(held) = settle(&*self.engine, &held, claimed).await? else { continue };
                begun = true;
                if self.deadline(sent) > uptime() {
                    self.start(held, sent, tasks);
                } else {
                    // The answer took so long that others take it for lost.
                    let given_back = held.progress.given_back("it was not begun".into());
                    settle(&*self.engine, &held, given_back).await?;
                }
            }
            if !begun || is_all {
                return Ok(());
            }
        }
    }

    /// How many more of a lane it can run, and the sessions of which it runs as many as it may.
    fn room(&self, lane: &str) -> (usize, Vec<String>) {
        let running = self.running.lock();
        // What waits for an embedder has room of its own: that may wait for a job.
        let of_lane = running.values().filter(|slot| slot.lane == lane).count();
        let mut sessions: HashMap<&str, usize> = HashMap::new();
        running.values().for_each(|slot| *sessions.entry(&slot.session).or_default() += 1);
        let full = sessions.into_iter().filter(|(_, count)| *count >= self.rules.per_session);
        (self.rules.pool.saturating_sub(of_lane), full.map(|(session, _)| session.to_owned()).collect())
    }

    fn start(self: &Arc<Self>, held: Held, sent: Duration, tasks: &TaskTracker) {
        let deadline = self.deadline(sent);
        let call = held.call();
        self.runner.hold(&call, Some(deadline));
        let slot = Arc::new(Slot {
            session: held.spec.session.clone(),
            lane: held.progress.lane.clone(),
            cancel: CancellationToken::new(),
            told: Notify::new(),
            held: Mutex::new(held.clone()),
            deadline: Mutex::new(deadline),
        });
        self.running.lock().insert(held.spec.id.clone(), slot.clone());
        let worker = self.clone();
        tasks.spawn(async move {
            let id = &held.spec.id;
            worker.run(&held, &slot).await;
            worker.runner.hold(&call, None);
            // It may have been taken again by now.
            worker.running.lock().retain(|other, running| other != id || !Arc::ptr_eq(running, &slot));
            worker.engine.ring(&held.progress.lane, id).await;
            worker.ended.notify_one();
        });
    }

    /// When what runs under a lease has to have ended: before the lease is over, as its end takes time.
    fn deadline(&self, sent: Duration) -> Duration {
        sent + self.rules.lease * 5 / 6
    }

    async fn run(&self, held: &Held, slot: &Slot) {
        let Held { spec, progress, .. } = held;
        let spool = Spool::new(self.engine.clone(), &spec.id, progress.epoch, self.rules.stream_bytes);
        let (spool, done) = (Arc::new(spool), CancellationToken::new());
        let call = async {
            let call = self.runner.run(held, spool.clone(), slot.cancel.clone());
            tokio::pin!(call);
            let ended = tokio::select! {
                biased;
                // What was ended because its time was over may look like an end of its own.
                outcome = &mut call => (outcome, self.is_over(slot).then_some(Stopped::Lease)),
                stopped = self.keep_lease(slot, Duration::from_millis(spec.at_most_ms)) => {
                    slot.cancel.cancel();
                    (call.await, Some(stopped))
                }
            };
            done.cancel();
            ended
        };
        let ((outcome, stopped), ()) = tokio::join!(call, spool.keep(&done));
        self.end(slot, &spool, outcome, stopped).await;
    }

    fn is_over(&self, slot: &Slot) -> bool {
        slot.deadline.lock().saturating_sub(uptime()).is_zero()
    }

    /// Renews the lease as long as the job runs; returns why it has to end.
    async fn keep_lease(&self, slot: &Slot, most: Duration) -> Stopped {
        let limit = tokio::time::sleep(most);
        tokio::pin!(limit);
        loop {
            let left = slot.deadline.lock().saturating_sub(uptime());
            let renewal = left.saturating_sub(self.rules.lease / 2);
            let is_told = tokio::select! {
                () = &mut limit => return Stopped::Time,
                () = slot.told.notified() => true,
                () = tokio::time::sleep(renewal) => false,
            };
            if self.stop.is_cancelled() {
                return Stopped::Leaving;
            }
            let left = slot.deadline.lock().saturating_sub(uptime());
            if left.is_zero() {
                return Stopped::Lease;
            }
            let renewed = async { if is_told { self.look(slot).await } else { self.renew(slot).await } };
            match tokio::time::timeout(left, renewed).await {
                Err(_) => return Stopped::Lease,
                Ok(Ok(None)) => {}
                Ok(Ok(Some(stopped))) => return stopped,
                // The store may be busy; it is tried again as long as there is time.
                Ok(Err(_)) => tokio::time::sleep(PAUSE.min(left / 4)).await,
            }
        }
    }

    async fn renew(&self, slot: &Slot) -> Result<Option<Stopped>, Failure> {
        let held = slot.held.lock().clone();
        let sent = uptime();
        match settle(&*self.engine, &held, held.progress.renewed()).await? {
            Settled::Won(renewed) => {
                let deadline = self.deadline(sent);
                self.runner.hold(&held.call(), Some(deadline));
                *slot.deadline.lock() = deadline;
                *slot.held.lock() = renewed;
                Ok(None)
            }
            Settled::Lost(now) => Ok(taken(slot, now)),
        }
    }

    async fn look(&self, slot: &Slot) -> Result<Option<Stopped>, Failure> {
        let id = slot.held.lock().spec.id.clone();
        Ok(taken(slot, self.engine.read(&id).await?))
    }

    /// Writes what came of a job.
    async fn end(&self, slot: &Slot, spool: &Spool, outcome: Outcome, stopped: Option<Stopped>) {
        let (bytes, unkept) = match stopped {
            // What it says now is nobody's to read.
            Some(Stopped::Fenced) => return,
            Some(_) | None => {
                let is_short = |json: &String| json.len() <= SHORT;
                spool.finish(outcome.json.clone().filter(|json| !is_short(json))).await
            }
        };
        let mut held = slot.held.lock().clone();
        loop {
            let progress = match &stopped {
                Some(Stopped::Cancelled(cancelled)) => {
                    held = (**cancelled).clone();
                    Progress { stopped: true, ..held.progress.clone() }
                }
                Some(Stopped::Lease) => self.lost(&held, "its worker could not renew its lease"),
                Some(Stopped::Leaving) if outcome.state == JobState::Cancelled => {
                    self.lost(&held, "its worker was stopped while it ran")
                }
                Some(Stopped::Time) if outcome.state == JobState::Cancelled => {
                    let cause = format!("it took more than {} ms", held.spec.at_most_ms);
                    let ended = held.progress.ended(JobState::Error, Some(cause), self.engine.now_ms());
                    Progress { stopped: true, ..ended }
                }
                Some(Stopped::Leaving | Stopped::Time | Stopped::Fenced) | None => {
                    let cause = outcome.cause.clone().or_else(|| unkept.clone());
                    let ended = held.progress.ended(outcome.state, cause, self.engine.now_ms());
                    Progress { stopped: true, exit_code: outcome.exit_code, ..ended }
                }
            };
            let short = outcome.json.clone().filter(|json| json.len() <= SHORT && progress.state.is_end());
            let progress = Progress { output_bytes: bytes, outcome: short, ..progress };
            match settle(&*self.engine, &held, progress).await {
                Ok(Settled::Won(_)) => break,
                // A renewal whose answer nobody waited for any more, or somebody cancelled it in this moment.
                Ok(Settled::Lost(Some(now))) if is_ours(&now.progress, &held.progress) => match now.progress.state {
                    JobState::Running => held = now,
                    JobState::Cancelled if !now.progress.stopped => {
                        let stopped = Progress { stopped: true, ..now.progress.clone() };
                        let _ = settle(&*self.engine, &now, stopped).await;
                        break;
                    }
                    JobState::Cancelled | JobState::Pending | JobState::Done | JobState::Error | JobState::Orphaned => {
                        break;
                    }
                },
                Ok(Settled::Lost(_)) => return,
                // Who cannot write its end any more has lost it: others see that nobody renews it.
                Err(_) if slot.deadline.lock().saturating_sub(uptime()).is_zero() => return,
                Err(_) => tokio::time::sleep(PAUSE.min(self.rules.lease / 8)).await,
            }
        }
    }

    fn lost(&self, held: &Held, why: &str) -> Progress {
        lost(held, why, self.engine.now_ms())
    }

    /// Another program has changed something: it may have cancelled what runs here.
    async fn look_at_changed(&self) {
        let known = {
            let running = self.running.lock();
            let known = |slot: &Arc<Slot>| {
                let held = slot.held.lock();
                (held.spec.id.clone(), held.revision)
            };
            running.values().map(known).collect::<Vec<_>>()
        };
        if known.is_empty() {
            return;
        }
        let changed = self.engine.changed(known).await.unwrap_or_default();
        changed.iter().for_each(|id| self.look_again(id));
    }

    /// Looks at what others run: whose worker is gone, or was not heard of for a whole lease, is not run any more.
    async fn see_to_the_lost(&self, others: &mut HashMap<String, Seen>) -> Result<(), Failure> {
        let running = self.engine.running().await?;
        others.retain(|id, _| running.iter().any(|held| held.spec.id == *id));
        for held in running {
            let id = &held.spec.id;
            if self.running.lock().contains_key(id) {
                continue;
            }
            let is_gone = match &held.progress.worker {
                Some(worker) => self.engine.is_gone(worker).await,
                None => Some(true),
            };
            let why = if is_gone == Some(true) {
                "its worker has ended"
            } else {
                let seen = Seen { revision: held.revision, since: Instant::now() };
                let seen = others.entry(id.clone()).or_insert(seen);
                if seen.revision != held.revision {
                    *seen = Seen { revision: held.revision, since: Instant::now() };
                }
                // Whoever runs it may have a longer lease than this worker.
                if seen.since.elapsed() < self.rules.lease.max(Duration::from_millis(held.progress.lease_ms)) {
                    continue;
                }
                "its worker was not heard of any more"
            };
            // It may have been heard of since all of them were read.
            if self.engine.read(id).await?.is_none_or(|now| now.revision != held.revision) {
                continue;
            }
            self.runner.sweep(&held.call()).await;
            let progress = self.lost(&held, why);
            // Whoever came first has seen to it.
            if let Settled::Won(_) = settle(&*self.engine, &held, progress).await? {
                self.engine.ring(&held.progress.lane, id).await;
            }
        }
        Ok(())
    }
}

/// What becomes of a job whose worker does not run it any more.
pub(super) fn lost(held: &Held, why: &str, now_ms: u64) -> Progress {
    if held.progress.state == JobState::Cancelled {
        return Progress { stopped: true, ..held.progress.clone() };
    }
    if held.spec.repeatable && held.progress.epoch < MOST_RUNS {
        return held.progress.given_back(why.to_owned());
    }
    let cause = format!("{why}: it may have done all, some or nothing");
    let orphaned = held.progress.ended(JobState::Orphaned, Some(cause), now_ms);
    Progress { stopped: true, ..orphaned }
}

/// Whether two states are of one run by one worker.
fn is_ours(now: &Progress, held: &Progress) -> bool {
    now.epoch == held.epoch && now.worker == held.worker
}

/// What it means for a job that its row is this now.
fn taken(slot: &Slot, now: Option<Held>) -> Option<Stopped> {
    let Some(now) = now else { return Some(Stopped::Fenced) };
    let mut held = slot.held.lock();
    if !is_ours(&now.progress, &held.progress) {
        return Some(Stopped::Fenced);
    }
    match now.progress.state {
        JobState::Running => {
            *held = now;
            None
        }
        JobState::Cancelled => Some(Stopped::Cancelled(Box::new(now))),
        JobState::Pending | JobState::Done | JobState::Error | JobState::Orphaned => Some(Stopped::Fenced),
    }
}
