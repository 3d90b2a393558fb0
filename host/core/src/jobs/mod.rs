//! Jobs: calls that outlive their caller. A program that stays runs them by the one call path; this is what keeps, runs and shows them.
//!
//! - what a job is, and what keeps it, is in the crate `store`;
//! - `submit.rs` has a call admitted that is to be a job, by a rehearsal of it (`policy/purpose.rs`);
//! - `worker.rs` is the protocol by which workers take, run and lose jobs, `run.rs` one of them run by a host, `output.rs` what it says;
//! - `look.rs` is what callers and operators see of jobs, and how they end them.
//!
//! `../schedules/` submits some at set times.

mod look;
mod output;
mod run;
mod submit;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod worker;

pub use look::{JobShown, JobsLook, JobsPage};
pub use store::job::JobState;
pub(crate) use submit::{Rehearsed, Submission, check_given, identity};

use crate::Host;
use crate::call::CallContext;
use crate::schedules::FIRED;
use crate::schedules::firing::{Scheduler, Times};
use crate::tools::registry::Registry;
use base::envelope::{Failure, Kind};
use config::{self, Config};
use futures_util::future::BoxFuture;
use guest::later::{Change, Later, Page, Planned, View, Wanted};
use guest::reach::Reach;
use parking_lot::RwLock;
use policy::jobs::JobsGrant;
use policy::schedules::SchedulesGrant;
use policy::scope::Scope;
use run::OfHost;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::Store;
use store::calendar::Listed;
use store::engine::{Engine, Keeping, Lanes, Query};
use store::queue::LocalJobs;
use store::schedule::{Course, Kept, Schedule};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use worker::{Rules, Worker};

/// The jobs of a host.
pub(crate) struct Jobs {
    engine: Arc<LocalJobs>,
    config: config::Jobs,
    pub(crate) schedules: config::Schedules,
    /// The digest of the settings.
    settings: String,
    stream_bytes: u64,
    /// There while this program runs jobs.
    running: RwLock<Option<Running>>,
}

#[derive(Clone)]
struct Running {
    door: Arc<Door>,
    worker: Arc<Worker>,
    scheduler: Arc<Scheduler>,
}

/// Gives the tools as they are now.
pub type ToolsNow = Box<dyn Fn() -> Arc<Registry> + Send + Sync>;

/// What jobs are run in.
pub(crate) struct Door {
    host: Weak<Host>,
    pub(crate) context: CallContext,
    pub(crate) tools: ToolsNow,
    pub(crate) lanes: Lanes,
}

impl Door {
    /// The lanes of what can be run here now.
    fn lanes_now(&self) -> Vec<String> {
        let Lanes { calls, events } = self.lanes.clone();
        // An embedder comes and goes.
        if self.context.embedder.takes(FIRED) { vec![events, calls] } else { vec![calls] }
    }

    pub(crate) fn host(&self) -> Result<Arc<Host>, Failure> {
        self.host.upgrade().ok_or_else(|| Failure::new(Kind::Unavailable, "this program ends, and takes no more jobs"))
    }

    /// A call of nobody, without panes: what a person does in one must not change what a job does.
    fn context(&self, tools: Arc<Registry>) -> CallContext {
        submit::context_of(&self.context, tools)
    }
}

/// Runs jobs as long as it lives; [`JobsRunning::close`] ends it in good order.
pub struct JobsRunning {
    jobs: Arc<Jobs>,
    running: Running,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for JobsRunning {
    fn drop(&mut self) {
        self.stop();
    }
}

impl JobsRunning {
    /// Why none can be run now, where that is so.
    #[must_use]
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.running.worker.trouble()
    }

    /// Why no schedule can fire now, where that is so.
    #[must_use]
    pub fn trouble_with_schedules(&self) -> watch::Receiver<Option<String>> {
        self.running.scheduler.trouble()
    }

    /// How many jobs wait for a program that acts elsewhere, or by other settings.
    ///
    /// # Errors
    ///
    /// `unavailable` where the store cannot be used.
    pub fn waiting_elsewhere(&self) -> BoxFuture<'_, Result<u64, Failure>> {
        Box::pin(async move {
            let Lanes { calls, events } = self.running.door.lanes.clone();
            match self.jobs.engine.is_there() {
                true => self.jobs.engine.elsewhere(vec![calls, events]).await,
                false => Ok(0),
            }
        })
    }

    /// How many schedules were to fire at this place, by other settings.
    ///
    /// # Errors
    ///
    /// As [`Self::waiting_elsewhere`].
    pub fn unfired(&self) -> BoxFuture<'static, Result<u64, Failure>> {
        let (engine, lanes) = (self.jobs.engine.clone(), self.running.door.lanes.clone());
        Box::pin(async move { if engine.is_there() { engine.unfired_schedules(lanes).await } else { Ok(0) } })
    }

    /// Ends what runs, hands back what may be run again, and returns when that is done.
    pub fn close(mut self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stop();
            for task in std::mem::take(&mut self.tasks) {
                let _ = task.await;
            }
        })
    }

    fn stop(&self) {
        let own = &self.running.worker;
        self.jobs.running.write().take_if(|running| Arc::ptr_eq(&running.worker, own));
        self.running.scheduler.stop();
        own.stop();
    }
}

impl Jobs {
    /// `settings` is the digest of what decides in this host.
    pub(crate) fn new(store: Arc<Store>, config: &Config, settings: String) -> Self {
        let stream_bytes = config.limits.kept_stream_mib << 20;
        let (engine, schedules) = (Arc::new(LocalJobs::new(store)), config.schedules.clone());
        Self { engine, config: config.jobs.clone(), schedules, settings, stream_bytes, running: RwLock::default() }
    }

    /// What this program runs jobs in.
    ///
    /// # Errors
    ///
    /// `unavailable` where it runs none.
    pub(crate) fn door(&self) -> Result<Arc<Door>, Failure> {
        self.running.read().as_ref().map(|running| running.door.clone()).ok_or_else(|| match self.config.enabled {
            true => Failure::new(Kind::Unavailable, "this program ends with its call, and runs no jobs")
                .hint("`toolcrib serve` and `toolcrib run` take jobs and run them; `toolcrib worker` runs them, too"),
            false => Failure::new(Kind::Unavailable, "jobs are switched off by `jobs.enabled = false`")
                .hint("`toolcrib config show --origin` says where"),
        })
    }

    /// By which programs something can be run that begins here.
    pub(crate) async fn lanes(&self, context: &CallContext) -> Result<Lanes, Failure> {
        let backend = &context.backend;
        // Elsewhere there is one place for commands to begin in; and nobody goes there before that is needed.
        let directory = match backend.is_this_machine() {
            true => backend.facts().await?.directory.display().to_string(),
            false => String::new(),
        };
        let lane = |settings: &str| {
            let place = format!("{}\n{directory}\n{settings}", backend.name());
            hex::encode(&Sha256::digest(place)[..16])
        };
        Ok(Lanes { calls: lane(&self.settings), events: lane(FIRED) })
    }

    fn rules(&self) -> Rules {
        let config = &self.config;
        let keeping = Keeping { days: config.keep_days, jobs: config.keep, output_bytes: config.output_mib << 20 };
        Rules {
            pool: usize::try_from(config.pool).unwrap_or(usize::MAX),
            per_session: usize::try_from(config.per_session).unwrap_or(usize::MAX),
            lease: Duration::from_millis(config.lease_ms),
            keeping,
            stream_bytes: self.stream_bytes,
        }
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// Whether anything was ever kept.
    pub(crate) fn is_there(&self) -> bool {
        self.engine.is_there()
    }
}

impl Later for Jobs {
    fn submit<'a>(
        &'a self,
        wanted: Wanted,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(Self::submit(self, wanted, grant, scope))
    }

    fn tools(&self, grant: &JobsGrant, scope: &Scope) -> Result<Vec<String>, Failure> {
        Self::tools(self, grant, scope)
    }

    fn get<'a>(
        &'a self,
        id: &'a str,
        head: u32,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>> {
        Box::pin(Self::get(self, id, head, grant, scope))
    }

    fn wait<'a>(
        &'a self,
        id: &'a str,
        at_most: Duration,
        with_call: bool,
        head: u32,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>> {
        Box::pin(Self::wait(self, id, at_most, with_call, head, grant, scope))
    }

    fn follow<'a>(
        &'a self,
        id: &'a str,
        starts: [u64; 2],
        most: usize,
        at_most: Duration,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>> {
        Box::pin(Self::follow(self, id, starts, most, at_most, grant, scope))
    }

    fn cancel<'a>(
        &'a self,
        id: &'a str,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>> {
        Box::pin(Self::cancel(self, id, grant, scope))
    }

    fn list<'a>(
        &'a self,
        query: Query,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Page, Failure>> {
        Box::pin(Self::list(self, query, grant, scope))
    }

    fn save<'a>(
        &'a self,
        planned: Planned,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<Kept, Failure>> {
        Box::pin(Self::save(self, planned, grant, scope))
    }

    fn schedules_of<'a>(
        &'a self,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<Listed, Failure>> {
        Box::pin(Self::schedules_of(self, grant, scope))
    }

    fn waits(&self, schedule: &Schedule, course: &Course) -> Option<String> {
        Self::waits(self, schedule, course)
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(Self::remove(self, id, grant, scope))
    }

    fn change<'a>(
        &'a self,
        id: &'a str,
        change: Change,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<Kept, Failure>> {
        Box::pin(Self::change(self, id, change, grant, scope))
    }
}

impl Host {
    /// Runs jobs from now on: takes those that are submitted here, and all that wait for a program at this place with these settings. Calls are
    /// made as by `context`, with the tools as they are then. None where settings switch jobs off.
    ///
    /// # Errors
    ///
    /// `unavailable` where it cannot be known where calls land.
    pub fn run_jobs(
        self: &Arc<Self>,
        context: CallContext,
        tools: ToolsNow,
    ) -> BoxFuture<'_, Result<Option<JobsRunning>, Failure>> {
        Box::pin(async move {
            let jobs = self.jobs.clone();
            if !jobs.config.enabled {
                return Ok(None);
            }
            let lanes = jobs.lanes(&context).await?;
            let door = Arc::new(Door { host: Arc::downgrade(self), context, tools, lanes });
            let (runner, at) = (Arc::new(OfHost { door: door.clone() }), door.clone());
            let lanes: worker::Lanes = Arc::new(move || at.lanes_now());
            let worker = Worker::new(jobs.engine.clone(), runner, jobs.rules(), lanes.clone());
            let times = Times { failures: jobs.schedules.failures, pending: jobs.config.pending };
            let scheduler = Scheduler::new(jobs.engine.clone(), lanes, times);
            let running = Running { door, worker: worker.clone(), scheduler: scheduler.clone() };
            *jobs.running.write() = Some(running.clone());
            let tasks = vec![
                tokio::spawn(async move { worker.work().await }),
                tokio::spawn(async move { scheduler.work().await }),
            ];
            Ok(Some(JobsRunning { jobs, running, tasks }))
        })
    }
}
