//! Calls and events that come later: what the capabilities `jobs` and `schedules` ask of the host, which alone can call.

use crate::reach::Reach;
use base::envelope::Failure;
use futures_util::future::BoxFuture;
use policy::jobs::JobsGrant;
use policy::schedules::SchedulesGrant;
use policy::scope::Scope;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use store::calendar::Listed;
use store::engine::Query;
use store::job::Held;
use store::schedule::{Course, Kept, Schedule};
use store::timing::Rule;

/// The kind of event that is handed over at a set time.
pub const FIRED: &str = "schedule.fired";

/// Some jobs, and where the next page begins.
pub type Page = (Vec<View>, Option<String>);

/// Who runs calls later, and at set times. Whatever a call may not see of jobs and schedules is not there for it.
pub trait Later: Send + Sync {
    /// Submits a call; returns the job's id.
    fn submit<'a>(
        &'a self,
        wanted: Wanted,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<String, Failure>>;

    /// The tools that can be submitted.
    fn tools(&self, grant: &JobsGrant, scope: &Scope) -> Result<Vec<String>, Failure>;

    /// A job, with the beginning of its output.
    fn get<'a>(
        &'a self,
        id: &'a str,
        head: u32,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>>;

    /// Waits until a job has ended.
    fn wait<'a>(
        &'a self,
        id: &'a str,
        at_most: Duration,
        with_call: bool,
        head: u32,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>>;

    /// Waits for more of what a job prints.
    fn follow<'a>(
        &'a self,
        id: &'a str,
        starts: [u64; 2],
        most: usize,
        at_most: Duration,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>>;

    /// Ends a job.
    fn cancel<'a>(
        &'a self,
        id: &'a str,
        grant: &'a JobsGrant,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<View, Failure>>;

    /// A page of jobs, and where the next one begins.
    fn list<'a>(&'a self, query: Query, grant: &'a JobsGrant, scope: &'a Scope)
    -> BoxFuture<'a, Result<Page, Failure>>;

    /// Makes a schedule, or puts it in the place of one.
    fn save<'a>(
        &'a self,
        planned: Planned,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<Kept, Failure>>;

    /// The schedules that a plugin may see.
    fn schedules_of<'a>(
        &'a self,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<Listed, Failure>>;

    /// What a schedule waits for beside its time.
    fn waits(&self, schedule: &Schedule, course: &Course) -> Option<String>;

    /// Takes a schedule away.
    fn remove<'a>(
        &'a self,
        id: &'a str,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Pauses a schedule, or has it go on.
    fn change<'a>(
        &'a self,
        id: &'a str,
        change: Change,
        grant: &'a SchedulesGrant,
        scope: &'a Reach,
    ) -> BoxFuture<'a, Result<Kept, Failure>>;
}

/// A call that is to be a job.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub tool: String,
    pub arguments: String,
    pub labels: BTreeMap<String, String>,
    pub at_most_ms: Option<u64>,
    pub token: Option<String>,
    pub outlives: bool,
    pub repeatable: bool,
}

/// A piece of what a job printed, from `start` on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Text {
    pub text: String,
    pub start: u64,
    /// Where the next piece begins.
    pub end: u64,
    pub total: u64,
}

/// A job, with what is shown of its output.
#[derive(Clone, Debug)]
pub struct View {
    pub held: Held,
    pub stdout: Text,
    pub stderr: Text,
    pub outcome: Option<String>,
}

/// A schedule that a plugin wants.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    pub id: String,
    /// What was said of what it does, and of when: one of each is wanted.
    pub does: Vec<Does>,
    pub rules: Vec<Rule>,
    pub zone: Option<String>,
    pub once: bool,
    pub hours: Option<(u8, u8)>,
    pub at_most_ms: Option<u64>,
    pub replace: bool,
}

/// More than one is too many.
const SAID: usize = 2;

impl Planned {
    pub fn new(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    pub fn does(&mut self, does: Does) {
        if self.does.len() < SAID {
            self.does.push(does);
        }
    }

    pub fn fires(&mut self, rule: Rule) {
        if self.rules.len() < SAID {
            self.rules.push(rule);
        }
    }
}

/// What a schedule is to do.
#[derive(Clone, Debug)]
pub enum Does {
    /// Hand an event over, with these data.
    Event(String),
    /// Submit a call of this tool with these arguments.
    Job(String, String),
}

/// A change of whether a schedule fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Pause,
    Resume,
}

impl Change {
    /// What was done, for the record.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }
}
