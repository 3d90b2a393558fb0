//! Firing what is due: the job is made, then the schedule is moved on. Any number of programs do that at the same time: a job's token makes it one,
//! and whoever comes second finds it there. Who dies between the two steps leaves the rest to whoever looks next.
//!
//! A due time is missed when no program runs then, or when the firing before has not ended. Of several due times only the last counts, and only
//! for a while: see `Timing::too_late_after`.

use crate::jobs::worker::Lanes;
use base::envelope::{Failure, Kind};
use base::text::id::random_id;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::calendar::Due;
use store::engine::{Created, Engine, Heard, Settled, settle};
use store::job::JobState;
use store::job::{Admitted, Fired, Held, Progress, Spec, due_token};
use store::schedule::{Course, Fires, Firing, Kept, MISSED, Schedule, ScheduleState};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often the clock is looked at: it may be set.
const TICK: Duration = Duration::from_secs(1);
/// How long nothing is looked at again, however often the bell rings, and whatever is due that could not be fired.
const PAUSE: Duration = Duration::from_millis(100);

/// Why nothing came of a due time that was found too late.
const NOBODY: &str = "nobody was there to fire it in time";

/// What bounds firings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Failures one after another that disable a schedule.
    pub(crate) failures: u64,
    /// Jobs of one agent that may wait.
    pub(crate) pending: u64,
}

/// Fires the schedules of some lanes.
pub(crate) struct Scheduler {
    engine: Arc<dyn Engine>,
    lanes: Lanes,
    times: Times,
    stop: CancellationToken,
    trouble: watch::Sender<Option<String>>,
}

impl Scheduler {
    pub(crate) fn new(engine: Arc<dyn Engine>, lanes: Lanes, times: Times) -> Arc<Self> {
        Arc::new(Self { engine, lanes, times, stop: CancellationToken::new(), trouble: watch::Sender::default() })
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Why nothing can be fired now, if that is so.
    pub(crate) fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Works until it is stopped.
    pub(crate) async fn work(&self) {
        tokio::select! { () = self.stop.cancelled() => return, () = self.engine.ready() => {} }
        let mut heard = Heard::default();
        // What was known when it looked last: the lanes, and the due time that comes first.
        let mut known: Option<(Vec<String>, Option<u64>)> = None;
        while !self.stop.is_cancelled() {
            let (lanes, now_ms) = ((self.lanes)(), self.engine.now_ms());
            let is_due =
                known.as_ref().is_none_or(|(before, next)| *before != lanes || next.is_some_and(|next| next <= now_ms));
            if is_due {
                let looked = self.look(&lanes).await;
                let trouble = looked.as_ref().err().map(|failure| failure.message.clone());
                self.trouble.send_if_modified(|before| std::mem::replace(before, trouble.clone()) != trouble);
                known = looked.ok().map(|next| (lanes, next));
            }
            let now_ms = self.engine.now_ms();
            let until_next = match known.as_ref().and_then(|(_, next)| *next) {
                None => TICK,
                Some(next) if next <= now_ms => PAUSE,
                Some(next) => Duration::from_millis(next - now_ms).min(TICK),
            };
            let again = async {
                tokio::select! {
                    () = self.engine.rung(&mut heard) => {
                        known = None;
                        tokio::time::sleep(PAUSE).await;
                    }
                    () = tokio::time::sleep(until_next) => {}
                }
            };
            tokio::select! { () = self.stop.cancelled() => return, () = again => {} }
        }
    }

    /// Sees to all that there is to do; returns when there is more.
    pub(crate) async fn look(&self, lanes: &[String]) -> Result<Option<u64>, Failure> {
        let Due { schedules, mut next_ms } = self.engine.due(lanes, self.engine.now_ms()).await?;
        let mut trouble = Ok(());
        for kept in schedules {
            match self.see_to(&kept).await {
                Ok(course) => next_ms = next_ms.into_iter().chain(course.next_ms).min(),
                // The others are not to wait for it.
                Err(failure) => trouble = Err(failure),
            }
        }
        trouble.map(|()| next_ms)
    }

    /// Takes note of what came of a firing, and fires what is due. Returns how far the schedule is now.
    async fn see_to(&self, kept: &Kept) -> Result<Course, Failure> {
        let Kept { schedule, course, .. } = kept;
        let (mut course, now_ms) = (course.clone(), self.engine.now_ms());
        if course.as_of_ms > now_ms
            && course.state == ScheduleState::Active
            && course.next_ms.is_some_and(|next| next > now_ms)
        {
            // The clock was set back. What it has fired is known by its token.
            course.look_on(&schedule.timing, now_ms);
        }
        if let Some(due_ms) = course.next_ms.filter(|next_ms| *next_ms <= now_ms && course.open.is_none())
            && let Some(job) = self.engine.of_token(&schedule.agent, &due_token(&schedule.key, due_ms)).await?
        {
            // Whoever fired it died before it moved the schedule on.
            course.fired(schedule, Firing { due_ms, job: job.spec.id });
        }
        if let Some(Firing { job, .. }) = &course.open {
            let job = self.ended_or_late(job, now_ms).await?;
            if job.as_ref().is_none_or(|job| job.progress.state.is_end()) {
                course.judge(job.as_ref(), self.times.failures);
            }
        }
        course.try_again(&schedule.timing, now_ms);
        if let Some(next_ms) = course.next_ms.filter(|next_ms| *next_ms <= now_ms) {
            // From the one that is known to be due: that counts as well.
            match schedule.timing.last_until(next_ms - 1, now_ms) {
                // It is written down before it is fired: whoever comes next has to find its token.
                Some(due_ms) if due_ms != next_ms => course.next_ms = Some(due_ms),
                Some(due_ms) => self.fire(schedule, &mut course, due_ms, now_ms).await?,
                None => {
                    course.miss(next_ms, NOBODY);
                    course.look_on(&schedule.timing, now_ms);
                }
            }
        }
        if course.state == ScheduleState::Over && course.open.is_none() {
            self.engine.forget(&schedule.agent, &schedule.name, Some(kept)).await?;
        } else if course != kept.course {
            // Whoever came first has seen to it; if nobody did, there is still the same to do.
            self.engine.move_on(kept, &course).await?;
        }
        Ok(course)
    }

    /// A job that was fired. One that nobody has begun in time is not begun any more: its programs may never come back.
    async fn ended_or_late(&self, id: &str, now_ms: u64) -> Result<Option<Held>, Failure> {
        let Some(held) = self.engine.read(id).await? else { return Ok(None) };
        let is_late = held.spec.fired.as_ref().is_some_and(|fired| now_ms > fired.until_ms);
        if held.progress.state != JobState::Pending || !is_late {
            return Ok(Some(held));
        }
        drop_waiting(&*self.engine, held, "it was not begun in time").await
    }

    async fn fire(&self, schedule: &Schedule, course: &mut Course, due_ms: u64, now_ms: u64) -> Result<(), Failure> {
        let until_ms = schedule.timing.too_late_after(due_ms);
        if course.open.is_some() || now_ms > until_ms {
            let why = if course.open.is_some() { "the firing before has not ended" } else { NOBODY };
            course.miss(due_ms, why);
            course.look_on(&schedule.timing, now_ms);
            return Ok(());
        }
        let spec = submission(schedule, due_ms, until_ms, now_ms);
        let created = self.engine.create(&spec, &Progress::submitted(course.lane.clone()), self.times.pending).await;
        let job = match created {
            Ok(Created::New) => {
                self.engine.ring(&course.lane, &spec.id).await;
                spec.id
            }
            Ok(Created::There(job)) => job,
            // There may be room before it is too late.
            Err(failure) if failure.kind == Kind::Limit => return Ok(()),
            Err(failure) => return Err(failure),
        };
        course.as_of_ms = now_ms;
        course.fired(schedule, Firing { due_ms, job });
        Ok(())
    }
}

/// Has a job that waits never begin, if it still waits. Returns it as it is then.
pub(super) async fn drop_waiting(engine: &dyn Engine, held: Held, why: &str) -> Result<Option<Held>, Failure> {
    if held.progress.state != JobState::Pending {
        return Ok(Some(held));
    }
    let ended = held.progress.ended(JobState::Cancelled, Some(format!("{MISSED}{why}")), engine.now_ms());
    Ok(match settle(engine, &held, ended).await? {
        Settled::Won(held) => Some(held),
        Settled::Lost(now) => now,
    })
}

/// The job that a firing is.
fn submission(schedule: &Schedule, due_ms: u64, until_ms: u64, now_ms: u64) -> Spec {
    let Schedule { agent, name, key, timing, .. } = schedule.clone();
    let (by_tool, by_plugin) = (schedule.tool.clone(), schedule.plugin.clone());
    let labels = [("schedule", name.clone()), ("due", timing.shown(due_ms))];
    let (tool, plugin, arguments, admitted, event) = match &schedule.fires {
        Fires::Event { data, approved } => {
            (by_tool.clone(), by_plugin.clone(), data.to_string(), Admitted::default(), Some(*approved))
        }
        Fires::Call { tool, plugin, arguments, admitted } => {
            (tool.clone(), plugin.clone(), arguments.clone(), admitted.clone(), None)
        }
    };
    Spec {
        id: random_id(),
        agent,
        // Of its own, so that no session's end is its end.
        session: key.clone(),
        principal: schedule.principal.clone(),
        tool,
        plugin,
        arguments,
        toolset: schedule.toolset.clone(),
        given: schedule.given.clone(),
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>(),
        token: Some(due_token(&key, due_ms)),
        at_most_ms: schedule.at_most_ms,
        outlives: true,
        repeatable: false,
        admitted,
        fired: Some(Fired {
            schedule: name,
            key,
            due_ms,
            until_ms,
            words: schedule.words(),
            by_tool,
            by_plugin,
            event,
        }),
        made_ms: now_ms,
    }
}
