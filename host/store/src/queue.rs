//! The engine of jobs and schedules for one machine: rows in the store, output in files beside it, and a lock that each program holds which runs jobs.
//!
//! The protocol is `jobs/worker.rs`; the SQL is `sqlite/jobs.rs` and `sqlite/schedules.rs`. Who dies lets go of its lock, so that the next one knows at once.

use super::{Store, no_place, unusable};
use crate::calendar::{Calendar, Due, Listed, Saved};
use crate::engine::Lanes;
use crate::engine::{Bell, Created, Heard, Keeping, Output, Page, Piece, Query, Rows, Stream, Swapped, Workers};
use crate::job::{Held, Progress, Spec};
use crate::schedule::{Course, Kept, Schedule};
use base::disk::{OwnDir, told};
use base::envelope::{Failure, Kind};
use base::text::id::random_id;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// The directory of output and locks, in the state directory.
const DIRECTORY: &str = "jobs";
/// How soon it is noticed what another program has done.
const LOOK: Duration = Duration::from_millis(100);
/// How soon it is noticed that there is a store at all.
const LOOK_FOR_STORE: Duration = Duration::from_secs(1);

/// Jobs of one machine.
pub struct LocalJobs {
    store: Arc<Store>,
    directory: PathBuf,
    opened: Mutex<Option<Arc<OwnDir>>>,
    /// Told of what this program does.
    rung: watch::Sender<Heard>,
    /// What others had done when this program looked last.
    others: Mutex<i64>,
    /// Locked as long as this program runs jobs.
    enlisted: Mutex<Option<(String, File)>>,
    clock: fn() -> u64,
}

impl LocalJobs {
    pub fn new(store: Arc<Store>) -> Self {
        Self::by(store, now_ms)
    }

    /// The same by another clock.
    pub fn by(store: Arc<Store>, clock: fn() -> u64) -> Self {
        let directory = store.directory.join(DIRECTORY);
        let (opened, others, enlisted) = (Mutex::default(), Mutex::new(-1), Mutex::default());
        Self {
            store,
            directory,
            opened,
            rung: watch::Sender::new(Heard { here: 1, elsewhere: 1 }),
            others,
            enlisted,
            clock,
        }
    }

    /// Whether anything was ever kept.
    pub fn is_there(&self) -> bool {
        self.store.is_there()
    }

    /// The job whose id begins so.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where there are several.
    pub fn named<'a>(&'a self, beginning: &'a str) -> BoxFuture<'a, Result<Option<Held>, Failure>> {
        Box::pin(async move {
            if beginning.is_empty() || !beginning.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Ok(None);
            }
            let text = beginning.to_ascii_lowercase();
            let mut ids = self.store.with(move |sqlite, _| sqlite.job_ids(&text)).await?;
            match (ids.pop(), ids.is_empty()) {
                (Some(id), true) => self.read(&id).await,
                (None, _) => Ok(None),
                (Some(_), false) => {
                    Err(Failure::invalid(format!("several jobs begin with `{beginning}`")).hint("give more of the id"))
                }
            }
        })
    }

    /// How many jobs wait for workers of other lanes.
    pub fn elsewhere(&self, lanes: Vec<String>) -> BoxFuture<'_, Result<u64, Failure>> {
        Box::pin(async move { self.store.with(move |sqlite, _| sqlite.jobs_elsewhere(&lanes)).await })
    }

    /// How many schedules were to fire at a place, by programs of other lanes.
    pub fn unfired_schedules(&self, lanes: Lanes) -> BoxFuture<'_, Result<u64, Failure>> {
        Box::pin(async move { self.store.with(move |sqlite, _| sqlite.unfired_schedules(&lanes)).await })
    }

    /// Whether another program has changed something since this was asked last.
    async fn others_have_changed(&self) -> Result<bool, Failure> {
        let version = self.store.with(|sqlite, _| sqlite.data_version()).await?;
        Ok(std::mem::replace(&mut *self.others.lock(), version) != version)
    }

    fn opened(&self) -> Result<Arc<OwnDir>, Failure> {
        let mut opened = self.opened.lock();
        if let Some(directory) = opened.as_ref() {
            return Ok(directory.clone());
        }
        let directory = OwnDir::open(&self.directory).map_err(|error| no_place(&told(&error)))?;
        Ok(opened.insert(Arc::new(directory)).clone())
    }
}

/// The file of a stream of one run.
fn file_name(id: &str, epoch: u64, stream: Stream) -> String {
    format!("{id}.{epoch}.{}", stream.name())
}

/// How the name of a file begins that a worker has locked.
const WORKER: &str = "worker-";

/// The file that a worker has locked.
fn lock_name(worker: &str) -> String {
    format!("{WORKER}{worker}")
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Does something with files, off the threads that serve calls.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| Failure::new(Kind::Internal, format!("work on output did not end: {error}")))?;
    done.map_err(|error| unusable(&format!("the output of jobs: {}", told(&error))))
}

impl Rows for LocalJobs {
    fn create<'a>(
        &'a self,
        spec: &'a Spec,
        progress: &'a Progress,
        most: u64,
    ) -> BoxFuture<'a, Result<Created, Failure>> {
        Box::pin(async move {
            let (spec, progress) = (spec.clone(), progress.clone());
            self.store.with(move |sqlite, _| sqlite.create_job(&spec, &progress, most)).await
        })
    }

    fn of_token<'a>(&'a self, agent: &'a str, token: &'a str) -> BoxFuture<'a, Result<Option<Held>, Failure>> {
        Box::pin(async move {
            let (agent, token, now_ms) = (agent.to_owned(), token.to_owned(), self.now_ms());
            self.store.with(move |sqlite, _| sqlite.job_of_token(&agent, &token, now_ms)).await
        })
    }

    fn read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Held>, Failure>> {
        Box::pin(async move {
            let id = id.to_owned();
            self.store.with(move |sqlite, _| sqlite.read_job(&id)).await
        })
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        revision: u64,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Swapped, Failure>> {
        Box::pin(async move {
            let (id, progress) = (id.to_owned(), progress.clone());
            self.store.with(move |sqlite, _| sqlite.swap_job(&id, revision, &progress)).await
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, Failure>> {
        Box::pin(async move {
            let query = query.clone();
            self.store.with(move |sqlite, _| sqlite.list_jobs(&query)).await
        })
    }

    fn running<'a>(&'a self) -> BoxFuture<'a, Result<Vec<Held>, Failure>> {
        Box::pin(async move { self.store.with(|sqlite, _| sqlite.running_jobs()).await })
    }

    fn changed<'a>(&'a self, known: Vec<(String, u64)>) -> BoxFuture<'a, Result<Vec<String>, Failure>> {
        Box::pin(async move { self.store.with(move |sqlite, _| sqlite.changed_jobs(&known)).await })
    }

    fn expire<'a>(&'a self, keeping: Keeping) -> BoxFuture<'a, Result<u64, Failure>> {
        Box::pin(async move {
            let now_ms = self.now_ms();
            let gone = self.store.with(move |sqlite, _| sqlite.expire_jobs(keeping, now_ms)).await?;
            let (directory, expired) = (self.opened()?, gone.len() as u64);
            let workers = blocking(move || {
                let is_gone = |name: &str| gone.iter().any(|id| name.starts_with(id.as_str()));
                let mut workers = Vec::new();
                for (name, _) in directory.files()? {
                    let name = name.to_string_lossy().into_owned();
                    if let Some(worker) = name.strip_prefix(WORKER) {
                        workers.push(worker.to_owned());
                    } else if is_gone(&name) {
                        // Somebody else may have removed it.
                        let _ = directory.remove(name.as_ref());
                    }
                }
                Ok(workers)
            });
            for worker in workers.await? {
                // The lock of one that is gone goes as well.
                let _ = self.is_gone(&worker).await;
            }
            Ok(expired)
        })
    }

    fn now_ms(&self) -> u64 {
        (self.clock)()
    }
}

impl Bell for LocalJobs {
    fn ring<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.rung.send_modify(|times| times.here += 1);
        })
    }

    fn take<'a>(
        &'a self,
        lane: &'a str,
        most: usize,
        without: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Held>, Failure>> {
        Box::pin(async move {
            let (lane, without) = (lane.to_owned(), without.to_vec());
            self.store.with(move |sqlite, _| sqlite.pending_jobs(&lane, most, &without)).await
        })
    }

    fn rung<'a>(&'a self, heard: &'a mut Heard) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut here = self.rung.subscribe();
            let elsewhere = async {
                loop {
                    let pause = if self.is_there() { LOOK } else { LOOK_FOR_STORE };
                    tokio::time::sleep(pause).await;
                    // What cannot be read now may have changed.
                    if self.is_there() && self.others_have_changed().await.unwrap_or(true) {
                        // All who wait here hear of it.
                        self.rung.send_modify(|times| times.elsewhere += 1);
                    }
                }
            };
            let rung = tokio::select! {
                biased;
                rung = here.wait_for(|times| times != heard) => rung.map_or(*heard, |times| *times),
                never = elsewhere => never,
            };
            *heard = rung;
        })
    }
}

impl Output for LocalJobs {
    fn append<'a>(
        &'a self,
        id: &'a str,
        epoch: u64,
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (directory, name) = (self.opened()?, file_name(id, epoch, stream));
            blocking(move || {
                // Not by appending: what a run that was lost has left is written over.
                let mut file = match at {
                    0 => directory.create(&name).or_else(|_| directory.update(&name))?,
                    _ => directory.update(&name)?,
                };
                file.seek(SeekFrom::Start(at))?;
                file.write_all(&bytes)
            })
            .await
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
        Box::pin(async move {
            let (directory, name) = (self.opened()?, file_name(id, epoch, stream));
            blocking(move || {
                let file = match directory.file(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Piece::default()),
                    file => file?,
                };
                let total = file.metadata()?.len();
                let wanted = usize::try_from(total.saturating_sub(from)).unwrap_or(usize::MAX).min(most);
                let mut bytes = vec![0; wanted];
                file.read_exact_at(&mut bytes, from)?;
                Ok(Piece { bytes, total })
            })
            .await
        })
    }
}

impl Workers for LocalJobs {
    fn ready<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut here = self.rung.subscribe();
            while !self.is_there() {
                let _ = tokio::time::timeout(LOOK_FOR_STORE, here.changed()).await;
            }
        })
    }

    fn enlist<'a>(&'a self) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            if let Some((worker, _)) = &*self.enlisted.lock() {
                return Ok(worker.clone());
            }
            let (directory, worker) = (self.opened()?, random_id());
            let name = lock_name(&worker);
            let file = blocking(move || {
                // It has its name once it is locked: what is not locked under such a name is of one that is gone.
                let passing = format!(".{name}");
                let file = directory.create(&passing)?;
                file.lock()?;
                directory.rename(&passing, &name)?;
                Ok(file)
            })
            .await?;
            Ok(self.enlisted.lock().get_or_insert((worker, file)).0.clone())
        })
    }

    fn is_gone<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Option<bool>> {
        Box::pin(async move {
            if self.enlisted.lock().as_ref().is_some_and(|(own, _)| own == worker) {
                return Some(false);
            }
            let (directory, name) = (self.opened().ok()?, lock_name(worker));
            let gone = blocking(move || {
                let file = match directory.file(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                    file => file?,
                };
                match file.try_lock() {
                    Ok(()) => {
                        let _ = directory.remove(name.as_ref());
                        Ok(true)
                    }
                    Err(TryLockError::WouldBlock) => Ok(false),
                    Err(TryLockError::Error(error)) => Err(error),
                }
            });
            gone.await.ok()
        })
    }
}

impl Calendar for LocalJobs {
    fn save<'a>(
        &'a self,
        schedule: &'a Schedule,
        course: &'a Course,
        over: Option<&'a str>,
        most: u64,
    ) -> BoxFuture<'a, Result<Saved, Failure>> {
        Box::pin(async move {
            let (schedule, course, over) = (schedule.clone(), course.clone(), over.map(str::to_owned));
            self.store.with(move |sqlite, _| sqlite.save_schedule(&schedule, &course, over.as_deref(), most)).await
        })
    }

    fn schedule<'a>(&'a self, agent: &'a str, name: &'a str) -> BoxFuture<'a, Result<Option<Kept>, Failure>> {
        Box::pin(async move {
            let (agent, name) = (agent.to_owned(), name.to_owned());
            self.store.with(move |sqlite, _| sqlite.read_schedule(&agent, &name)).await
        })
    }

    fn schedules<'a>(&'a self, agent: Option<&'a str>) -> BoxFuture<'a, Result<Listed, Failure>> {
        Box::pin(async move {
            let agent = agent.map(str::to_owned);
            self.store.with(move |sqlite, _| sqlite.list_schedules(agent.as_deref())).await
        })
    }

    fn move_on<'a>(&'a self, kept: &'a Kept, course: &'a Course) -> BoxFuture<'a, Result<Swapped, Failure>> {
        Box::pin(async move {
            let (kept, course) = (kept.clone(), course.clone());
            self.store.with(move |sqlite, _| sqlite.move_schedule_on(&kept, &course)).await
        })
    }

    fn forget<'a>(
        &'a self,
        agent: &'a str,
        name: &'a str,
        of: Option<&'a Kept>,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            let (agent, name, of) = (agent.to_owned(), name.to_owned(), of.cloned());
            self.store.with(move |sqlite, _| sqlite.forget_schedule(&agent, &name, of.as_ref())).await
        })
    }

    fn due<'a>(&'a self, lanes: &'a [String], now_ms: u64) -> BoxFuture<'a, Result<Due, Failure>> {
        Box::pin(async move {
            let lanes = lanes.to_vec();
            self.store.with(move |sqlite, _| sqlite.due_schedules(&lanes, now_ms)).await
        })
    }
}

impl Drop for LocalJobs {
    fn drop(&mut self) {
        // A file without a lock says the same as none.
        if let (Some((worker, _)), Ok(directory)) = (self.enlisted.get_mut().take(), self.opened()) {
            let _ = directory.remove(lock_name(&worker).as_ref());
        }
    }
}
