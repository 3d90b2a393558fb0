//! What a schedule is: what was saved, which changes only by being saved anew, and how far it is, which changes by compare-and-set.

use super::timing::Timing;
use crate::job::JobState;
use crate::job::{Admitted, Held};
use base::text::sanitize;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Characters of why something failed that are kept.
const WHY_CHARS: usize = 500;

/// How the cause of a job begins that was not begun though its time had come.
pub const MISSED: &str = "missed: ";

/// What was saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Whose it is, and how that agent calls it.
    pub agent: String,
    pub name: String,
    /// 128 random bits in hex: of what was saved now, and no other time.
    pub key: String,
    pub timing: Timing,
    /// It ends with the first time that it fires.
    pub once: bool,
    pub fires: Fires,
    /// How long a firing may take.
    pub at_most_ms: u64,
    /// Who saved it, by which tool of which plugin.
    pub principal: String,
    pub tool: String,
    pub plugin: String,
    /// The name of that plugin, by which it finds its own.
    pub by: String,
    /// The toolset of that session, and what it was given.
    pub toolset: Option<String>,
    pub given: Map<String, Value>,
}

/// What it does each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fires {
    /// An event for the embedder, with these data.
    Event { data: Value, approved: Approved },
    /// A job.
    Call {
        tool: String,
        /// The digest of its plugin.
        plugin: String,
        /// JSON.
        arguments: String,
        admitted: Admitted,
    },
}

/// Whether a person has approved of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approved {
    /// Settings did not ask for that.
    NotAsked,
    /// By somebody who read the question.
    Read,
    /// By `--yes`.
    Unread,
}

impl Fires {
    pub fn is_event(&self) -> bool {
        match self {
            Self::Event { .. } => true,
            Self::Call { .. } => false,
        }
    }
}

impl fmt::Display for Fires {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { .. } => write!(formatter, "an event"),
            Self::Call { tool, .. } => write!(formatter, "a job of {}", sanitize::line(tool)),
        }
    }
}

/// Whether a schedule fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleState {
    /// When it is due.
    Active,
    /// Not until somebody resumes it.
    Paused,
    /// Likewise: it has failed too often.
    Disabled,
    /// It was to fire once, and has.
    Over,
}

impl ScheduleState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Active, Self::Paused, Self::Disabled, Self::Over];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
            Self::Over => "over",
        }
    }
}

/// How far a schedule is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    pub state: ScheduleState,
    /// By which programs it is fired, and at which place they act.
    pub lane: String,
    pub place: String,
    /// The due time that is next, and when that was found out.
    pub next_ms: Option<u64>,
    pub as_of_ms: u64,
    /// What it fired, and has not ended.
    pub open: Option<Firing>,
    /// Failures one after another.
    pub failures: u64,
    /// What came of the last due time that something came of.
    pub last: Option<Last>,
}

/// A firing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    pub due_ms: u64,
    /// The id of the job that it is.
    pub job: String,
}

/// What came of a due time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Last {
    pub due_ms: u64,
    /// None where nothing was begun.
    pub job: Option<String>,
    pub came: Came,
    pub why: Option<String>,
}

/// What can come of a due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Came {
    /// It was done.
    Done,
    /// It was done, and failed, or nobody knows how it ended.
    Failed,
    /// It did not begin.
    Missed,
    /// Somebody ended it.
    Cancelled,
}

impl Came {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A schedule as it was read, with the revision that a change of it expects.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub schedule: Schedule,
    pub course: Course,
    pub revision: u64,
}

impl Schedule {
    /// The due times that come next, in its zone.
    pub fn due_times(&self, course: &Course, most: usize) -> Vec<String> {
        let next = std::iter::successors(course.next_ms, |at| self.timing.next_after(*at));
        let most = if self.once { 1 } else { most };
        next.take(most).map(|at| self.timing.shown(at)).collect()
    }

    /// When it fires, as people read it.
    pub fn words(&self) -> String {
        match self.once {
            true => format!("once, {}", self.timing),
            false => format!("each time, {}", self.timing),
        }
    }
}

impl Course {
    /// As it is when it was saved.
    pub fn saved(lane: String, place: String, next_ms: Option<u64>, now_ms: u64) -> Self {
        Self {
            state: ScheduleState::Active,
            lane,
            place,
            next_ms,
            as_of_ms: now_ms,
            open: None,
            failures: 0,
            last: None,
        }
    }

    /// It has fired.
    pub fn fired(&mut self, schedule: &Schedule, firing: Firing) {
        self.next_ms = schedule.timing.next_after(firing.due_ms);
        // Where a clock was set back, that has been counted.
        let is_counted = self.last.as_ref().is_some_and(|last| last.job.as_ref() == Some(&firing.job));
        self.open = Some(firing).filter(|_| !is_counted);
        if schedule.once {
            (self.state, self.next_ms) = (ScheduleState::Over, None);
        }
    }

    /// A due time came to nothing.
    pub fn miss(&mut self, due_ms: u64, why: &str) {
        self.last = Some(Last { due_ms, job: None, came: Came::Missed, why: Some(why.to_owned()) });
    }

    /// What it fired has ended: `job` is none where it is not kept any more. So many failures one after another are too many.
    pub fn judge(&mut self, job: Option<&Held>, most: u64) {
        let Some(Firing { due_ms, job: id }) = self.open.take() else { return };
        let (came, why) = job.map_or((Came::Missed, Some("its job is not kept any more".to_owned())), came);
        let why = why.map(|why| why.chars().take(WHY_CHARS).collect::<String>());
        match came {
            Came::Done => self.failures = 0,
            Came::Failed => self.failures += 1,
            Came::Missed | Came::Cancelled => {}
        }
        self.last = Some(Last { due_ms, job: Some(id), came, why });
        if self.failures >= most && self.state == ScheduleState::Active {
            (self.state, self.next_ms) = (ScheduleState::Disabled, None);
        }
    }

    /// It was to fire once, and that was missed: the next time counts.
    pub fn try_again(&mut self, timing: &Timing, now_ms: u64) {
        let was_missed = self.last.as_ref().is_some_and(|last| last.came == Came::Missed);
        if self.state == ScheduleState::Over && self.open.is_none() && was_missed {
            self.state = ScheduleState::Active;
            self.look_on(timing, now_ms);
        }
    }

    /// Finds out when it is due next.
    pub fn look_on(&mut self, timing: &Timing, now_ms: u64) {
        (self.next_ms, self.as_of_ms) = (timing.next_after(now_ms), now_ms);
    }

    /// It does not fire until somebody resumes it.
    pub fn pause(&mut self) {
        (self.state, self.next_ms) = (ScheduleState::Paused, None);
    }

    /// It fires again from now on.
    pub fn resume(&mut self, timing: &Timing, now_ms: u64) {
        (self.state, self.failures) = (ScheduleState::Active, 0);
        self.look_on(timing, now_ms);
    }
}

/// What a job that has ended means for the schedule that fired it.
fn came(held: &Held) -> (Came, Option<String>) {
    let progress = &held.progress;
    match (progress.state, progress.exit_code) {
        (JobState::Done, None | Some(0)) => (Came::Done, None),
        (JobState::Done, Some(code)) => (Came::Failed, Some(format!("exit status {code}"))),
        (JobState::Error | JobState::Orphaned, _) => (Came::Failed, progress.cause.clone()),
        (JobState::Cancelled | JobState::Pending | JobState::Running, _) => match &progress.cause {
            Some(cause) if cause.starts_with(MISSED) => (Came::Missed, Some(cause[MISSED.len()..].to_owned())),
            cause => (Came::Cancelled, cause.clone()),
        },
    }
}
