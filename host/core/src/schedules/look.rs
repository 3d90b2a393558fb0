//! What operators see of schedules, and how they change them.

use crate::Host;
use crate::call::CallContext;
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use futures_util::future::BoxFuture;
use guest::later::Change;
use serde::Serialize;
use store::engine::settle;
use store::job::JobState;
use store::job::Progress;
use store::schedule::{Came, Course, Fires, Kept, Last, ScheduleState};

/// Due times that are shown.
const SHOWN: usize = 3;

/// A schedule, as an operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct ScheduleShown {
    /// Whose it is, and its id.
    pub agent: String,
    /// Of that agent.
    pub id: String,
    /// Whether it fires.
    pub state: ScheduleState,
    /// When, in words.
    pub when: String,
    /// The time zone.
    pub zone: String,
    /// The tool of its job; none where it is an event.
    pub tool: Option<String>,
    /// JSON, without secrets: the arguments of that call, or the data of the event.
    pub content: String,
    /// The next due times, such as `2026-03-30T09:00:00+02:00`.
    pub next: Vec<String>,
    /// Failures one after another.
    pub failures: u64,
    /// The last due time that something came of.
    pub last_due: Option<String>,
    /// What that was.
    pub last: Option<Came>,
    /// Why.
    pub why: Option<String>,
    /// The job that it was.
    pub last_job: Option<String>,
    /// The job that runs now.
    pub running: Option<String>,
    /// Whether programs fire it that act here, by these settings.
    pub fires_here: bool,
    /// How long a firing may take.
    pub timeout_ms: u64,
    /// Who saved it.
    pub origin: String,
    /// When, in milliseconds since 1970.
    pub made_ms: u64,
}

/// Which schedule an operator means.
#[derive(Clone, Debug)]
pub struct SchedulesLook {
    /// Its id.
    pub id: String,
    /// Whose it is, where several agents have one of that id.
    pub agent: Option<String>,
}

/// Schedules, and a line for each that cannot be read.
pub type SchedulesShown = (Vec<ScheduleShown>, Vec<String>);

impl Host {
    /// Schedules of an agent, or of all.
    ///
    /// # Errors
    ///
    /// `unavailable` where the store cannot be used.
    pub fn schedules<'a>(
        &'a self,
        agent: Option<&'a str>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<SchedulesShown, Failure>> {
        Box::pin(async move {
            if !self.jobs.is_there() {
                return Ok((Vec::new(), Vec::new()));
            }
            let (all, faults) = self.jobs.engine().schedules(agent).await?;
            let mut shown = Vec::new();
            for kept in all {
                shown.push(self.schedule_shown(kept, context).await?);
            }
            Ok((shown, faults.into_iter().map(|fault| sanitize::line(&fault.message).into_owned()).collect()))
        })
    }

    /// One schedule.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where there is none, or several.
    pub fn schedule<'a>(
        &'a self,
        look: &'a SchedulesLook,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ScheduleShown, Failure>> {
        Box::pin(async move {
            let kept = self.kept_schedule(look).await?;
            self.schedule_shown(kept, context).await
        })
    }

    /// Has one fire no more until it is resumed.
    ///
    /// # Errors
    ///
    /// As [`Self::schedule`].
    pub fn pause_schedule<'a>(
        &'a self,
        look: &'a SchedulesLook,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ScheduleShown, Failure>> {
        Box::pin(async move { self.change_schedule(look, Change::Pause, context).await })
    }

    /// Has one fire from now on, also one that was disabled.
    ///
    /// # Errors
    ///
    /// As [`Self::schedule`].
    pub fn resume_schedule<'a>(
        &'a self,
        look: &'a SchedulesLook,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ScheduleShown, Failure>> {
        Box::pin(async move { self.change_schedule(look, Change::Resume, context).await })
    }

    /// Removes one; what it has fired goes on.
    ///
    /// # Errors
    ///
    /// As [`Self::schedule`].
    pub fn remove_schedule<'a>(&'a self, look: &'a SchedulesLook) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            // One that cannot be read can be removed as well, where it is said whose it is.
            let (agent, kept) = match (self.kept_schedule(look).await, &look.agent) {
                (Ok(kept), _) => (kept.schedule.agent.clone(), Some(kept)),
                (Err(fault), Some(agent)) if fault.kind == Kind::Internal => (agent.clone(), None),
                (Err(failure), _) => return Err(failure),
            };
            if !self.jobs.gone(&agent, &look.id, kept).await? {
                return Err(missing(look));
            }
            self.told(&agent, &look.id, "removed");
            Ok(())
        })
    }

    /// Has one fire by programs of this place, with the settings of now.
    ///
    /// # Errors
    ///
    /// As [`Self::schedule`].
    pub fn adopt_schedule<'a>(
        &'a self,
        look: &'a SchedulesLook,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ScheduleShown, Failure>> {
        Box::pin(async move {
            let (kept, lanes) = (self.kept_schedule(look).await?, self.jobs.lanes(context).await?);
            let lane = lanes.of(kept.schedule.fires.is_event()).to_owned();
            let place = lanes.place().to_owned();
            let adopted = |kept: &Kept| Ok(Course { lane: lane.clone(), place: place.clone(), ..kept.course.clone() });
            let kept = self.jobs.moved(kept, adopted).await?;
            if let Some(firing) = &kept.course.open
                && let Some(waiting) = self.jobs.engine().read(&firing.job).await?
                && waiting.progress.state == JobState::Pending
            {
                // What has begun meanwhile needs no other.
                let adopted = Progress { lane: lane.clone(), ..waiting.progress.clone() };
                settle(self.jobs.engine(), &waiting, adopted).await?;
                self.jobs.engine().ring(&lane, &firing.job).await;
            }
            self.told(&kept.schedule.agent, &kept.schedule.name, "adopted");
            self.schedule_shown(kept, context).await
        })
    }

    async fn change_schedule(
        &self,
        look: &SchedulesLook,
        change: Change,
        context: &CallContext,
    ) -> Result<ScheduleShown, Failure> {
        let kept = self.jobs.changed(self.kept_schedule(look).await?, change).await?;
        self.told(&kept.schedule.agent, &kept.schedule.name, change.done());
        self.schedule_shown(kept, context).await
    }

    fn told(&self, agent: &str, id: &str, what: &str) {
        self.audit.changed(&format!("{what} schedule {} of {}", sanitize::line(id), sanitize::line(agent)));
    }

    async fn kept_schedule(&self, look: &SchedulesLook) -> Result<Kept, Failure> {
        if !self.jobs.is_there() {
            return Err(missing(look));
        }
        if let Some(agent) = &look.agent {
            return self.jobs.engine().schedule(agent, &look.id).await?.ok_or_else(|| missing(look));
        }
        let (mut all, _) = self.jobs.engine().schedules(None).await?;
        all.retain(|kept| kept.schedule.name == look.id);
        match (all.pop(), all.is_empty()) {
            (Some(kept), true) => Ok(kept),
            (None, _) => Err(missing(look)),
            (Some(_), false) => Err(Failure::invalid(format!("several agents have a schedule `{}`", look.id))
                .hint("say whose with `--agent`")),
        }
    }

    async fn schedule_shown(&self, kept: Kept, context: &CallContext) -> Result<ScheduleShown, Failure> {
        let Kept { schedule, course, .. } = kept;
        let lanes = self.jobs.lanes(context).await?;
        let next = schedule.due_times(&course, SHOWN);
        let (tool, content) = match &schedule.fires {
            Fires::Event { data, .. } => (None, data.to_string()),
            Fires::Call { tool, arguments, .. } => (Some(tool.clone()), arguments.clone()),
        };
        let (last_due, last, why, last_job) = match course.last {
            Some(Last { due_ms, job, came, why }) => (Some(schedule.timing.shown(due_ms)), Some(came), why, job),
            None => (None, None, None, None),
        };
        Ok(ScheduleShown {
            state: course.state,
            when: schedule.words(),
            fires_here: lanes.of(schedule.fires.is_event()) == course.lane,
            tool,
            content: self.redacted(&content),
            next,
            failures: course.failures,
            last_due,
            last,
            why: why.map(|why| self.redacted(&why)),
            last_job,
            running: course.open.map(|firing| firing.job),
            timeout_ms: schedule.at_most_ms,
            made_ms: schedule.timing.since_ms,
            agent: schedule.agent,
            id: schedule.name,
            zone: schedule.timing.zone,
            origin: schedule.principal,
        })
    }
}

fn missing(look: &SchedulesLook) -> Failure {
    let shown = sanitize::beginning(&look.id, 64);
    Failure::invalid(format!("there is no schedule `{shown}`")).hint("`toolcrib schedules list` says which there are")
}
