//! What every engine of jobs has to do, with workers that share it: run on SQLite as it is, and on one whose answers get lost.

use super::output::Spool;
use super::worker::{Outcome, Rules, Runner, Worker};
use backend::uptime;
use base::envelope::{Failure, Kind};
use base::text::id::random_id;
use config::Config;
use embeddings::Embeddings;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use policy::event::{Event, EventSink};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::Store;
use store::calendar::{Calendar, Due, Listed, Saved};
use store::engine::{
    Bell, Created, Engine, Heard, Keeping, Output, Page, Piece, Query, Rows, Settled, Stream, Swapped, Workers, settle,
};
use store::job::{Admitted, Held, JobState, Progress, Spec};
use store::queue::LocalJobs;
use store::schedule::{Course, Kept, Schedule};
use tokio_util::sync::CancellationToken;

const LANE: &str = "lane";
const DAY_MS: u64 = 86_400_000;

/// How far the clock of a test is from this machine's.
static OFFSET_MS: AtomicI64 = AtomicI64::new(0);

fn set_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(now).unwrap_or_default().saturating_add_signed(OFFSET_MS.load(Ordering::SeqCst))
}

/// An engine on the store of this directory: each has a connection of its own, as programs have.
fn sqlite(directory: &Path) -> Arc<dyn Engine> {
    let store = Store::new(directory.to_owned(), Config::default().store, Embeddings::none());
    Arc::new(LocalJobs::by(Arc::new(store), set_clock))
}

/// The same, whose answers get lost, before or after what they are about was done; and whose bell rings for nothing.
fn forgetful(directory: &Path) -> Arc<dyn Engine> {
    Forgetful::over(sqlite(directory))
}

pub(crate) struct Forgetful {
    engine: Arc<dyn Engine>,
    turn: AtomicU64,
    /// Nothing gets through any more.
    is_cut: AtomicBool,
}

impl Forgetful {
    pub(crate) fn over(engine: Arc<dyn Engine>) -> Arc<Self> {
        Arc::new(Self { engine, turn: AtomicU64::new(0), is_cut: AtomicBool::new(false) })
    }

    fn reached(&self) -> Result<(), Failure> {
        match self.is_cut.load(Ordering::SeqCst) {
            true => Err(Failure::new(Kind::Unavailable, "the network is cut")),
            false => Ok(()),
        }
    }
}

impl Rows for Forgetful {
    fn create<'a>(
        &'a self,
        spec: &'a Spec,
        progress: &'a Progress,
        most: u64,
    ) -> BoxFuture<'a, Result<Created, Failure>> {
        Box::pin(async move { self.engine.create(spec, progress, most).await })
    }

    fn of_token<'a>(&'a self, agent: &'a str, token: &'a str) -> BoxFuture<'a, Result<Option<Held>, Failure>> {
        Box::pin(async move { self.engine.of_token(agent, token).await })
    }

    fn read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Held>, Failure>> {
        Box::pin(async move {
            self.reached()?;
            self.engine.read(id).await
        })
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        revision: u64,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Swapped, Failure>> {
        Box::pin(async move {
            self.reached()?;
            match self.turn.fetch_add(1, Ordering::SeqCst) % 5 {
                1 => Ok(Swapped::Unknown),
                3 => self.engine.swap(id, revision, progress).await.map(|_| Swapped::Unknown),
                _ => self.engine.swap(id, revision, progress).await,
            }
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, Failure>> {
        Box::pin(async move { self.engine.list(query).await })
    }

    fn running<'a>(&'a self) -> BoxFuture<'a, Result<Vec<Held>, Failure>> {
        Box::pin(async move {
            self.reached()?;
            self.engine.running().await
        })
    }

    fn changed<'a>(&'a self, known: Vec<(String, u64)>) -> BoxFuture<'a, Result<Vec<String>, Failure>> {
        Box::pin(async move {
            self.reached()?;
            self.engine.changed(known).await
        })
    }

    fn expire<'a>(&'a self, keeping: Keeping) -> BoxFuture<'a, Result<u64, Failure>> {
        Box::pin(async move { self.engine.expire(keeping).await })
    }

    fn now_ms(&self) -> u64 {
        self.engine.now_ms()
    }
}

impl Bell for Forgetful {
    fn ring<'a>(&'a self, lane: &'a str, id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.engine.ring(lane, id).await;
        })
    }

    /// Also those that do not wait any more: to have heard of a job is no right to run it.
    fn take<'a>(
        &'a self,
        lane: &'a str,
        most: usize,
        without: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Held>, Failure>> {
        Box::pin(async move {
            self.reached()?;
            let mut jobs = self.engine.take(lane, most, without).await?;
            if jobs.is_empty() {
                jobs = self.engine.list(&Query { limit: 3, ..Query::default() }).await?.jobs;
            }
            Ok(jobs)
        })
    }

    fn rung<'a>(&'a self, heard: &'a mut Heard) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.engine.rung(heard).await;
        })
    }
}

impl Output for Forgetful {
    fn append<'a>(
        &'a self,
        id: &'a str,
        epoch: u64,
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.reached()?;
            self.engine.append(id, epoch, stream, at, bytes).await
        })
    }

    fn piece<'a>(
        &'a self,
        id: &'a str,
        epoch: u64,
        stream: Stream,
        from: u64,
        most: usize,
    ) -> BoxFuture<'a, Result<Piece, Failure>> {
        Box::pin(async move { self.engine.piece(id, epoch, stream, from, most).await })
    }
}

impl Workers for Forgetful {
    fn ready<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.engine.ready().await;
        })
    }

    fn enlist<'a>(&'a self) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            self.reached()?;
            self.engine.enlist().await
        })
    }

    fn is_gone<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Option<bool>> {
        Box::pin(async move { self.engine.is_gone(worker).await })
    }
}

impl Calendar for Forgetful {
    fn save<'a>(
        &'a self,
        schedule: &'a Schedule,
        course: &'a Course,
        over: Option<&'a str>,
        most: u64,
    ) -> BoxFuture<'a, Result<Saved, Failure>> {
        Box::pin(async move { self.engine.save(schedule, course, over, most).await })
    }

    fn schedule<'a>(&'a self, agent: &'a str, name: &'a str) -> BoxFuture<'a, Result<Option<Kept>, Failure>> {
        Box::pin(async move { self.engine.schedule(agent, name).await })
    }

    fn schedules<'a>(&'a self, agent: Option<&'a str>) -> BoxFuture<'a, Result<Listed, Failure>> {
        Box::pin(async move { self.engine.schedules(agent).await })
    }

    fn move_on<'a>(&'a self, kept: &'a Kept, course: &'a Course) -> BoxFuture<'a, Result<Swapped, Failure>> {
        Box::pin(async move {
            self.reached()?;
            match self.turn.fetch_add(1, Ordering::SeqCst) % 3 {
                0 => Ok(Swapped::Unknown),
                1 => self.engine.move_on(kept, course).await.map(|_| Swapped::Unknown),
                _ => self.engine.move_on(kept, course).await,
            }
        })
    }

    fn forget<'a>(
        &'a self,
        agent: &'a str,
        name: &'a str,
        of: Option<&'a Kept>,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move { self.engine.forget(agent, name, of).await })
    }

    fn due<'a>(&'a self, lanes: &'a [String], now_ms: u64) -> BoxFuture<'a, Result<Due, Failure>> {
        Box::pin(async move { self.engine.due(lanes, now_ms).await })
    }
}

/// Runs jobs whose arguments say how many milliseconds they take. Each has a witness while it runs, a file that can be made only where it is
/// not there; and it ends by its deadline, as the commands of a host do.
#[derive(Default)]
struct Witness {
    directory: PathBuf,
    deadlines: Mutex<HashMap<String, Duration>>,
    runs: Mutex<Vec<String>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    violations: AtomicUsize,
}

impl Witness {
    fn at(directory: &Path) -> Arc<Self> {
        Arc::new(Self { directory: directory.to_owned(), ..Self::default() })
    }

    fn left(&self, id: &str) -> Duration {
        self.deadlines.lock().get(id).map_or(Duration::ZERO, |until| until.saturating_sub(uptime()))
    }
}

impl Runner for Witness {
    fn run<'a>(&'a self, held: &'a Held, output: Arc<Spool>, cancel: CancellationToken) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (job, call) = (&held.spec, held.call());
            let witness = self.directory.join(format!("{}.runs", job.id));
            if OpenOptions::new().write(true).create_new(true).open(&witness).is_err() {
                self.violations.fetch_add(1, Ordering::SeqCst);
            }
            self.runs.lock().push(job.id.clone());
            let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            output.emit(Event::Stdout { text: format!("{}\n", job.arguments) });
            let time = Duration::from_millis(job.arguments.parse().unwrap_or_default());
            let over = async {
                while !self.left(&call).is_zero() {
                    tokio::time::sleep(self.left(&call).min(Duration::from_millis(20))).await;
                }
            };
            let state = tokio::select! {
                () = tokio::time::sleep(time) => JobState::Done,
                () = cancel.cancelled() => JobState::Cancelled,
                () = over => JobState::Cancelled,
            };
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            std::fs::remove_file(witness).expect("the witness of this run");
            Outcome { state, exit_code: Some(0), cause: None, json: None }
        })
    }

    fn hold(&self, id: &str, until: Option<Duration>) {
        match until {
            Some(until) => self.deadlines.lock().insert(id.to_owned(), until),
            None => self.deadlines.lock().remove(id),
        };
    }

    fn sweep<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {})
    }
}

fn rules(lease: Duration) -> Rules {
    let keeping = Keeping { days: 7, jobs: 10_000, output_bytes: 1 << 30 };
    Rules { pool: 8, per_session: 8, lease, keeping, stream_bytes: 1 << 20 }
}

fn spec(arguments: &str) -> Spec {
    Spec {
        id: random_id(),
        agent: "a".into(),
        session: "s".into(),
        principal: "p".into(),
        tool: "t".into(),
        plugin: String::new(),
        arguments: arguments.into(),
        toolset: None,
        given: serde_json::Map::new(),
        labels: BTreeMap::new(),
        token: None,
        at_most_ms: 60_000,
        outlives: false,
        repeatable: false,
        admitted: Admitted::default(),
        fired: None,
        made_ms: set_clock(),
    }
}

async fn submit(engine: &dyn Engine, spec: &Spec) -> Created {
    let created = engine.create(spec, &Progress::submitted(LANE.into()), 1_000_000).await.expect("a job");
    engine.ring(LANE, &spec.id).await;
    created
}

async fn submitted(engine: &dyn Engine, spec: Spec) -> String {
    assert_eq!(submit(engine, &spec).await, Created::New);
    spec.id
}

async fn read(engine: &dyn Engine, id: &str) -> Held {
    engine.read(id).await.expect("a row").expect("a job")
}

/// The job once it is as it is wanted.
async fn until(engine: &dyn Engine, id: &str, is: impl Fn(&Progress) -> bool) -> Held {
    let wait = async {
        loop {
            let held = read(engine, id).await;
            if is(&held.progress) {
                return held;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("a job that comes to it")
}

async fn until_end(engine: &dyn Engine, id: &str) -> Held {
    until(engine, id, |progress| progress.state.is_end() && progress.stopped).await
}

/// Workers that share a runner, each with an engine of its own.
struct Crew(Vec<(Arc<Worker>, tokio::task::JoinHandle<()>)>);

impl Crew {
    fn of(engines: impl IntoIterator<Item = Arc<dyn Engine>>, runner: &Arc<Witness>, rules: Rules) -> Self {
        let work = |engine| {
            let worker = Worker::new(engine, runner.clone(), rules, Arc::new(|| vec![LANE.to_owned()]));
            let working = worker.clone();
            (worker, tokio::spawn(async move { working.work().await }))
        };
        Self(engines.into_iter().map(work).collect())
    }

    async fn leave(self) {
        self.0.iter().for_each(|(worker, _)| worker.stop());
        for (_, task) in self.0 {
            task.await.expect("a worker that leaves");
        }
    }
}

/// Keeps every state that a row ever had.
fn keep_history(directory: &Path) -> rusqlite::Connection {
    let history = rusqlite::Connection::open(directory.join("store.sqlite")).expect("the store");
    history.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    let trigger = "CREATE TABLE history (id TEXT, was TEXT, is_now TEXT);
         CREATE TRIGGER keep AFTER UPDATE OF state ON job WHEN OLD.state <> NEW.state
         BEGIN INSERT INTO history VALUES (NEW.id, OLD.state, NEW.state); END";
    history.execute_batch(trigger).expect("a trigger");
    history
}

fn steps(history: &rusqlite::Connection) -> Vec<(String, String)> {
    let mut all = history.prepare("SELECT id, is_now FROM history ORDER BY rowid").expect("a query");
    let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

type Open = fn(&Path) -> Arc<dyn Engine>;

const ENGINES: [Open; 2] = [sqlite, forgetful];

#[tokio::test(flavor = "multi_thread")]
async fn each_job_is_run_once_however_many_workers_hear_of_it() {
    for open in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let (desk, runner) = (open(directory.path()), Witness::at(directory.path()));
        let mut ids = Vec::new();
        for number in 0..60 {
            ids.push(submitted(&*desk, spec(&(number % 7).to_string())).await);
        }
        let history = keep_history(directory.path());
        let crew = Crew::of((0..4).map(|_| open(directory.path())), &runner, rules(Duration::from_secs(30)));
        for id in &ids {
            let held = until_end(&*desk, id).await;
            assert_eq!((held.progress.state, held.progress.epoch), (JobState::Done, 1));
            let piece = desk.piece(id, 1, Stream::Stdout, 0, 100).await.expect("its output");
            assert_eq!(piece.bytes, format!("{}\n", held.spec.arguments).into_bytes());
        }
        crew.leave().await;
        let runs = runner.runs.lock().clone();
        assert_eq!((runs.len(), runs.iter().collect::<HashSet<_>>().len()), (60, 60));
        assert_eq!(runner.violations.load(Ordering::SeqCst), 0);
        let steps = steps(&history);
        assert_eq!(steps.iter().filter(|(_, state)| state == "done").count(), 60);
        assert_eq!(steps.len(), 120, "{steps:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_and_an_end_at_once_have_one_winner() {
    for (open, step) in ENGINES.into_iter().zip([4, 12]) {
        let directory = tempfile::tempdir().expect("a directory");
        let (desk, runner) = (open(directory.path()), Witness::at(directory.path()));
        // The first one makes the store: nothing of it has happened before there is a history.
        let first = submitted(&*desk, spec("0")).await;
        let history = keep_history(directory.path());
        let crew = Crew::of([desk.clone()], &runner, rules(Duration::from_secs(30)));
        until_end(&*desk, &first).await;
        let (mut cancelled, mut done) = (0, 0);
        for number in 0..80 {
            let id = submitted(&*desk, spec("4")).await;
            match number % 12 {
                // On a busy machine none might end within such pauses.
                11 => drop(until_end(&*desk, &id).await),
                times => tokio::time::sleep(Duration::from_millis(times * step)).await,
            }
            let held = read(&*desk, &id).await;
            let ended = held.progress.ended(JobState::Cancelled, None, set_clock());
            let won = !held.progress.state.is_end()
                && matches!(settle(&*desk, &held, ended).await.expect("an answer"), Settled::Won(_));
            let end = until(&*desk, &id, |progress| progress.state.is_end()).await;
            let expected = if won { JobState::Cancelled } else { JobState::Done };
            assert_eq!(end.progress.state, expected);
            if won { cancelled += 1 } else { done += 1 }
        }
        crew.leave().await;
        assert!(cancelled > 0 && done > 0, "{cancelled} cancelled, {done} done");
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for (id, state) in steps(&history) {
            *ends.entry(id).or_default() += usize::from(JobState::named(&state).expect("a state").is_end());
        }
        assert!(ends.len() == 81 && ends.values().all(|ends| *ends == 1), "{ends:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_while_it_waits_never_begins() {
    for open in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let (desk, runner) = (open(directory.path()), Witness::at(directory.path()));
        let id = submitted(&*desk, spec("0")).await;
        let held = read(&*desk, &id).await;
        let ended = Progress { stopped: true, ..held.progress.ended(JobState::Cancelled, None, set_clock()) };
        assert!(matches!(settle(&*desk, &held, ended).await, Ok(Settled::Won(_))));
        let crew = Crew::of([open(directory.path())], &runner, rules(Duration::from_secs(30)));
        let other = submitted(&*desk, spec("0")).await;
        until_end(&*desk, &other).await;
        crew.leave().await;
        assert_eq!(runner.runs.lock().clone(), [other]);
        assert_eq!(read(&*desk, &id).await.progress.epoch, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_runs_is_ended_when_another_program_cancels_it() {
    for open in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let (desk, runner) = (open(directory.path()), Witness::at(directory.path()));
        let crew = Crew::of([open(directory.path())], &runner, rules(Duration::from_secs(30)));
        let id = submitted(&*desk, spec("60000")).await;
        let held = until(&*desk, &id, |progress| progress.state == JobState::Running).await;
        let ended = held.progress.ended(JobState::Cancelled, None, set_clock());
        assert!(matches!(settle(&*desk, &held, ended).await, Ok(Settled::Won(_))));
        let begun = uptime();
        let end = until_end(&*desk, &id).await;
        assert_eq!(end.progress.state, JobState::Cancelled);
        assert!(uptime() - begun < Duration::from_secs(5), "its worker finds out long before its lease is over");
        crew.leave().await;
    }
}

/// The network of a worker is cut: it ends what it runs before its lease is over, and nobody else begins it before that.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_renew_its_lease_ends_its_job_before_that_is_over() {
    let lease = Duration::from_secs(6);
    for repeatable in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let (desk, runner) = (sqlite(directory.path()), Witness::at(directory.path()));
        let cut = Arc::new(Forgetful {
            engine: sqlite(directory.path()),
            turn: AtomicU64::new(0),
            is_cut: AtomicBool::new(false),
        });
        let first = Crew::of([cut.clone() as Arc<dyn Engine>], &runner, rules(lease));
        let id = submitted(&*desk, Spec { repeatable, ..spec("20000") }).await;
        until(&*desk, &id, |progress| progress.state == JobState::Running).await;
        // It renews as long as it can.
        tokio::time::sleep(lease * 3 / 2).await;
        assert_eq!(runner.at_once.load(Ordering::SeqCst), 1);
        cut.is_cut.store(true, Ordering::SeqCst);
        let since = uptime();
        let second = Crew::of([sqlite(directory.path())], &runner, rules(lease));
        while runner.at_once.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(uptime() - since < lease, "{:?}", uptime() - since);
        match repeatable {
            false => {
                let end = until_end(&*desk, &id).await;
                assert_eq!((end.progress.state, end.progress.epoch), (JobState::Orphaned, 1));
                assert!(end.progress.cause.is_some_and(|cause| cause.contains("all, some or nothing")));
            }
            true => {
                let again = until(&*desk, &id, |progress| progress.epoch == 2).await;
                assert_eq!(again.progress.state, JobState::Running);
                let end = until_end(&*desk, &id).await;
                assert_eq!((end.progress.state, end.progress.epoch), (JobState::Done, 2));
            }
        }
        // What it comes to know now changes nothing.
        cut.is_cut.store(false, Ordering::SeqCst);
        let end = read(&*desk, &id).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(read(&*desk, &id).await, end);
        first.leave().await;
        second.leave().await;
        assert_eq!(runner.violations.load(Ordering::SeqCst), 0);
        assert_eq!(runner.runs.lock().len(), 1 + usize::from(repeatable));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_of_a_worker_that_is_gone_are_seen_to_at_once() {
    for repeatable in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let (desk, runner) = (sqlite(directory.path()), Witness::at(directory.path()));
        let id = submitted(&*desk, Spec { repeatable, ..spec("0") }).await;
        let gone = sqlite(directory.path());
        let worker = gone.enlist().await.expect("a worker");
        let held = read(&*desk, &id).await;
        let claimed = held.progress.claimed(&worker, 0, 0);
        assert!(matches!(settle(&*gone, &held, claimed).await, Ok(Settled::Won(_))));
        assert_eq!(desk.is_gone(&worker).await, Some(false));
        drop(gone);
        assert_eq!(desk.is_gone(&worker).await, Some(true));
        let crew = Crew::of([sqlite(directory.path())], &runner, rules(Duration::from_secs(600)));
        let end = until_end(&*desk, &id).await;
        let expected = if repeatable { (JobState::Done, 2) } else { (JobState::Orphaned, 1) };
        assert_eq!((end.progress.state, end.progress.epoch), expected);
        crew.leave().await;
    }
}

/// A worker with a short lease takes nothing from one with a long one.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_waited_for_as_long_as_its_own_lease_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let (desk, runner) = (sqlite(directory.path()), Witness::at(directory.path()));
    let claimed = async |lease_ms: u64| {
        let id = submitted(&*desk, spec("0")).await;
        let held = read(&*desk, &id).await;
        let claimed = held.progress.claimed(&desk.enlist().await.expect("a worker"), lease_ms, set_clock());
        assert!(matches!(settle(&*desk, &held, claimed).await, Ok(Settled::Won(_))));
        id
    };
    let (long, short) = (claimed(60_000).await, claimed(100).await);
    let crew = Crew::of([sqlite(directory.path())], &runner, rules(Duration::from_millis(600)));
    assert_eq!(until_end(&*desk, &short).await.progress.state, JobState::Orphaned);
    assert_eq!(read(&*desk, &long).await.progress.state, JobState::Running);
    crew.leave().await;
}

/// A row that nobody can read keeps no other back.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_keeps_no_other_back() {
    for column in ["spec", "progress"] {
        let directory = tempfile::tempdir().expect("a directory");
        let (desk, runner) = (sqlite(directory.path()), Witness::at(directory.path()));
        let odd = submitted(&*desk, spec("0")).await;
        let other = rusqlite::Connection::open(directory.path().join("store.sqlite")).expect("the store");
        let changed = other.execute(&format!("UPDATE job SET {column} = '{{}}' WHERE id = ?1"), [&odd]);
        assert_eq!(changed.expect("a change"), 1);
        let id = submitted(&*desk, spec("0")).await;
        let crew = Crew::of([desk.clone()], &runner, rules(Duration::from_secs(30)));
        assert_eq!(until_end(&*desk, &id).await.progress.state, JobState::Done);
        crew.leave().await;
        let page = desk.list(&Query { limit: 10, ..Query::default() }).await.expect("a page");
        assert_eq!(page.jobs.into_iter().map(|held| held.spec.id).collect::<Vec<_>>(), [id]);
        assert!(desk.read(&odd).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_leaves_hands_back_what_may_be_repeated() {
    let directory = tempfile::tempdir().expect("a directory");
    let (desk, runner) = (sqlite(directory.path()), Witness::at(directory.path()));
    let crew = Crew::of([sqlite(directory.path())], &runner, rules(Duration::from_secs(30)));
    let kept = submitted(&*desk, Spec { repeatable: true, ..spec("60000") }).await;
    let lost = submitted(&*desk, spec("60000")).await;
    for id in [&kept, &lost] {
        until(&*desk, id, |progress| progress.state == JobState::Running).await;
    }
    crew.leave().await;
    assert_eq!(read(&*desk, &kept).await.progress.state, JobState::Pending);
    assert_eq!(read(&*desk, &lost).await.progress.state, JobState::Orphaned);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_and_forth_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (desk, runner) = (sqlite(directory.path()), Witness::at(directory.path()));
    let crew = Crew::of((0..3).map(|_| sqlite(directory.path())), &runner, rules(Duration::from_secs(10)));
    let mut ids = Vec::new();
    for number in 0..60 {
        OFFSET_MS.store([0, 3_600_000, -3_600_000][number % 3], Ordering::SeqCst);
        ids.push(submitted(&*desk, spec("40")).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for id in &ids {
        assert_eq!(until_end(&*desk, id).await.progress.state, JobState::Done);
    }
    OFFSET_MS.store(0, Ordering::SeqCst);
    crew.leave().await;
    assert_eq!((runner.runs.lock().len(), runner.violations.load(Ordering::SeqCst)), (60, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_run_at_once_than_the_pool_and_the_session_allow() {
    let directory = tempfile::tempdir().expect("a directory");
    let desk = sqlite(directory.path());
    for (pool, per_session, most) in [(3, 8, 3), (8, 2, 2)] {
        let runner = Witness::at(directory.path());
        let rules = Rules { pool, per_session, ..rules(Duration::from_secs(30)) };
        let mut ids = Vec::new();
        // So long that none has ended before as many run as may.
        for _ in 0..20 {
            ids.push(submitted(&*desk, spec("300")).await);
        }
        // One of another session is not held up by those before it.
        let other = submitted(&*desk, Spec { session: "other".into(), ..spec("300") }).await;
        let crew = Crew::of([sqlite(directory.path())], &runner, rules);
        for id in ids.iter().chain([&other]) {
            until_end(&*desk, id).await;
        }
        crew.leave().await;
        let most = most + usize::from(per_session < pool);
        assert_eq!(runner.most_at_once.load(Ordering::SeqCst), most);
        let place = runner.runs.lock().iter().position(|id| *id == other).expect("a run");
        assert_eq!(place < 4, per_session < pool, "{place}");
    }
}

#[tokio::test]
async fn the_same_token_within_a_day_is_the_same_job() {
    for open in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let engines: Vec<_> = (0..4).map(|_| open(directory.path())).collect();
        let now = set_clock();
        let token = |agent: &str, made_ms| Spec { token: Some("x".into()), agent: agent.into(), made_ms, ..spec("0") };
        let all = engines.iter().map(async |engine| {
            let spec = token("a", now);
            match submit(&**engine, &spec).await {
                Created::New => spec.id,
                Created::There(id) => id,
            }
        });
        let ids: HashSet<String> = futures_util::future::join_all(all).await.into_iter().collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(submit(&*engines[0], &token("b", now)).await, Created::New);
        // A clock that is set back does not make it another one.
        assert!(matches!(submit(&*engines[0], &token("a", now - 3_600_000)).await, Created::There(_)));
        assert!(matches!(submit(&*engines[0], &token("a", now + DAY_MS - 1)).await, Created::There(_)));
        assert_eq!(submit(&*engines[0], &token("a", now + DAY_MS)).await, Created::New);
    }
}

#[tokio::test]
async fn pages_have_each_job_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let desk = sqlite(directory.path());
    let mut ids = Vec::new();
    for _ in 0..250 {
        ids.push(submitted(&*desk, spec("0")).await);
    }
    let mut query = Query { agent: Some("a".into()), limit: 100, ..Query::default() };
    let mut found = Vec::new();
    loop {
        let page = desk.list(&query).await.expect("a page");
        found.push(page.jobs.into_iter().map(|held| held.spec.id).collect::<Vec<_>>());
        // What comes meanwhile is on none of the pages that follow.
        submitted(&*desk, spec("0")).await;
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
    ids.reverse();
    assert_eq!(found.concat(), ids);
    assert!(desk.list(&Query { after: Some("x".into()), ..query }).await.is_err());
}

#[tokio::test]
async fn a_list_has_what_it_was_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let desk = sqlite(directory.path());
    let labels = |value: &str| BTreeMap::from([("k".to_owned(), value.to_owned())]);
    let one = submitted(&*desk, Spec { labels: labels("1"), ..spec("0") }).await;
    let two = submitted(&*desk, Spec { labels: labels("2"), session: "other".into(), ..spec("0") }).await;
    let three = submitted(&*desk, Spec { agent: "b".into(), tool: "u".into(), ..spec("0") }).await;
    let all = Query { limit: 10, ..Query::default() };
    let agent = Some("a".to_owned());
    let cases = [
        (all.clone(), vec![&three, &two, &one]),
        (Query { agent: agent.clone(), ..all.clone() }, vec![&two, &one]),
        (Query { agent, session: Some("other".into()), ..all.clone() }, vec![&two]),
        (Query { labels: labels("1"), ..all.clone() }, vec![&one]),
        (Query { labels: labels("3"), ..all.clone() }, vec![]),
        (Query { tools: Some(vec!["u".into(), "x".into()]), ..all.clone() }, vec![&three]),
        (Query { tools: Some(Vec::new()), ..all.clone() }, vec![]),
        (Query { state: Some(JobState::Pending), ..all.clone() }, vec![&three, &two, &one]),
        (Query { state: Some(JobState::Done), ..all }, vec![]),
    ];
    for (query, expected) in cases {
        let page = desk.list(&query).await.expect("a page");
        assert_eq!(page.jobs.iter().map(|held| &held.spec.id).collect::<Vec<_>>(), expected, "{query:?}");
    }
}

#[tokio::test]
async fn jobs_that_ended_long_ago_are_gone_with_their_output() {
    let directory = tempfile::tempdir().expect("a directory");
    let desk = sqlite(directory.path());
    let now = desk.now_ms();
    let mut ids = Vec::new();
    for days in [8, 6, 1] {
        let id = submitted(&*desk, spec("0")).await;
        let held = read(&*desk, &id).await;
        desk.append(&id, 1, Stream::Stdout, 0, b"said".to_vec()).await.expect("output");
        let ended = held.progress.claimed("w", 0, 0).ended(JobState::Done, None, now - days * DAY_MS);
        let ended = Progress { output_bytes: 4, stopped: true, ..ended };
        assert!(matches!(settle(&*desk, &held, ended).await, Ok(Settled::Won(_))));
        ids.push(id);
    }
    let waits = submitted(&*desk, spec("0")).await;
    let files = || std::fs::read_dir(directory.path().join("jobs")).expect("output").count();
    let keeping = Keeping { days: 7, jobs: 10, output_bytes: 1 << 20 };
    assert_eq!((desk.expire(keeping).await, files()), (Ok(1), 2));
    assert_eq!(desk.read(&ids[0]).await, Ok(None));
    assert_eq!(desk.expire(keeping).await, Ok(0));
    // The newest stay.
    assert_eq!((desk.expire(Keeping { jobs: 1, ..keeping }).await, files()), (Ok(1), 1));
    assert_eq!(desk.read(&ids[1]).await, Ok(None));
    assert_eq!((desk.expire(Keeping { output_bytes: 3, ..keeping }).await, files()), (Ok(1), 0));
    assert_eq!(read(&*desk, &waits).await.progress.state, JobState::Pending);
}

#[tokio::test]
async fn an_agent_can_have_so_many_that_wait() {
    let directory = tempfile::tempdir().expect("a directory");
    let desk = sqlite(directory.path());
    let create = async |agent: &str| {
        let spec = Spec { agent: agent.into(), ..spec("0") };
        desk.create(&spec, &Progress::submitted(LANE.into()), 2).await.map_err(|failure| failure.kind)
    };
    assert_eq!((create("a").await, create("a").await), (Ok(Created::New), Ok(Created::New)));
    assert_eq!((create("a").await, create("b").await), (Err(Kind::Limit), Ok(Created::New)));
}

#[tokio::test]
async fn what_a_run_that_was_lost_writes_is_nobodys_to_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let desk = sqlite(directory.path());
    let id = random_id();
    desk.append(&id, 1, Stream::Stdout, 0, b"first".to_vec()).await.expect("output");
    desk.append(&id, 2, Stream::Stdout, 0, b"se".to_vec()).await.expect("output");
    desk.append(&id, 1, Stream::Stdout, 5, b" more".to_vec()).await.expect("output");
    desk.append(&id, 2, Stream::Stdout, 2, b"cond".to_vec()).await.expect("output");
    let piece = |from, most| desk.piece(&id, 2, Stream::Stdout, from, most);
    assert_eq!(piece(0, 100).await, Ok(Piece { bytes: b"second".to_vec(), total: 6 }));
    assert_eq!(piece(4, 1).await, Ok(Piece { bytes: b"n".to_vec(), total: 6 }));
    assert_eq!(piece(9, 1).await, Ok(Piece { bytes: Vec::new(), total: 6 }));
    assert_eq!(desk.piece(&id, 2, Stream::Stderr, 0, 1).await, Ok(Piece::default()));
}
