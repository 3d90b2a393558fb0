//! What a job is: what was submitted, which never changes, and how far it is, which changes by compare-and-set alone.

use crate::schedule::Approved;
pub use base::admitted::Admitted;
use base::envelope::Failure;
use base::text::id::random_id;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Labels of one job, and bytes of a name and of a value.
const LABELS: usize = 16;
const LABEL_NAME_BYTES: usize = 64;
const LABEL_VALUE_BYTES: usize = 256;
/// The labels that the host gives.
const OWN_LABELS: [&str; 5] = ["session", "agent", "origin", "schedule", "due"];

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It waits for a worker.
    Pending,
    /// A worker runs it.
    Running,
    /// It ran to its end, whatever its exit status.
    Done,
    /// It could not be run, or not to its end.
    Error,
    /// Somebody ended it.
    Cancelled,
    /// The worker that ran it was lost: it may have done all, some or nothing.
    Orphaned,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 6] = [Self::Pending, Self::Running, Self::Done, Self::Error, Self::Cancelled, Self::Orphaned];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Orphaned => "orphaned",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether nothing comes after it.
    #[must_use]
    pub const fn is_end(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Done | Self::Error | Self::Cancelled | Self::Orphaned => true,
        }
    }
}

/// What was submitted. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// 128 random bits in hex; the call that runs it first has the same.
    pub id: String,
    /// Whose it is.
    pub agent: String,
    /// The session that submitted it.
    pub session: String,
    /// Who submitted it.
    pub principal: String,
    pub tool: String,
    /// The digest of the plugin that the tool was of.
    pub plugin: String,
    /// JSON.
    pub arguments: String,
    /// The toolset of the session, and what that was given.
    pub toolset: Option<String>,
    pub given: Map<String, Value>,
    pub labels: BTreeMap<String, String>,
    /// The same one within a day: the same job. [`given_token`] or [`due_token`].
    pub token: Option<String>,
    /// How long it may take.
    pub at_most_ms: u64,
    /// It goes on when its session is closed.
    pub outlives: bool,
    /// It may be run again where the worker that ran it is lost.
    pub repeatable: bool,
    /// What was admitted when it was submitted.
    pub admitted: Admitted,
    /// Where a schedule has submitted it.
    pub fired: Option<Fired>,
    pub made_ms: u64,
}

/// What a schedule says of a job that it submits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fired {
    /// Its name, and the key of what was saved.
    pub schedule: String,
    pub key: String,
    pub due_ms: u64,
    /// Until when it may begin.
    pub until_ms: u64,
    /// When it fires, as a person was told.
    pub words: String,
    /// The tool that saved it, and the digest of its plugin.
    pub by_tool: String,
    pub by_plugin: String,
    /// It hands an event over, whose data are the arguments: it is no call of a tool.
    pub event: Option<Approved>,
}

impl Spec {
    /// It is an event of a schedule, and no call.
    pub fn is_event(&self) -> bool {
        self.fired.as_ref().is_some_and(|fired| fired.event.is_some())
    }
}

/// A token as whoever submits a job gives it.
pub fn given_token(token: &str) -> String {
    format!("given {token}")
}

/// How tokens of firings begin, and no others.
pub(crate) const DUE: &str = "due ";

/// The token of a firing: a schedule fires once for each due time, whoever submits that.
pub fn due_token(key: &str, due_ms: u64) -> String {
    format!("{DUE}{key}@{due_ms}")
}

/// How far it is. Every change names the epoch, the worker and the beat, or who ended it, so that whoever made it knows it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub state: JobState,
    /// By which workers it can be run.
    pub lane: String,
    /// How often it was begun.
    pub epoch: u64,
    /// Rises with each renewal of the lease.
    pub beat: u64,
    /// How long whoever runs it may be silent, by its own settings.
    pub lease_ms: u64,
    pub worker: Option<String>,
    pub began_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    /// 128 random bits of whoever ended it.
    pub ended_by: Option<String>,
    pub exit_code: Option<i32>,
    /// Why it is in this state, where that has to be said.
    pub cause: Option<String>,
    /// Nothing of it is run any more: not so where it runs, and for a moment after somebody cancelled it.
    pub stopped: bool,
    /// What is kept of what it said.
    pub output_bytes: u64,
    /// What its call gave, as JSON, where that is short; else it is among the output.
    pub outcome: Option<String>,
}

impl Progress {
    /// As it is when it was submitted.
    pub fn submitted(lane: String) -> Self {
        Self {
            state: JobState::Pending,
            lane,
            epoch: 0,
            beat: 0,
            lease_ms: 0,
            worker: None,
            began_ms: None,
            ended_ms: None,
            ended_by: None,
            exit_code: None,
            cause: None,
            stopped: true,
            output_bytes: 0,
            outcome: None,
        }
    }

    /// The same, run by a worker from now on.
    pub fn claimed(&self, worker: &str, lease_ms: u64, now_ms: u64) -> Self {
        Self {
            state: JobState::Running,
            epoch: self.epoch + 1,
            beat: 0,
            lease_ms,
            worker: Some(worker.to_owned()),
            began_ms: Some(now_ms),
            cause: None,
            stopped: false,
            ..self.clone()
        }
    }

    /// The same with a lease that was renewed.
    pub fn renewed(&self) -> Self {
        Self { beat: self.beat + 1, ..self.clone() }
    }

    /// The same at its end.
    pub fn ended(&self, state: JobState, cause: Option<String>, now_ms: u64) -> Self {
        Self { state, cause, ended_ms: Some(now_ms), ended_by: Some(random_id()), ..self.clone() }
    }

    /// The same, waiting for another worker.
    pub fn given_back(&self, cause: String) -> Self {
        Self {
            state: JobState::Pending,
            worker: None,
            began_ms: None,
            cause: Some(cause),
            stopped: true,
            ..self.clone()
        }
    }

    /// Whether the same hand wrote both.
    pub fn is_of(&self, other: &Self) -> bool {
        (self.state, self.epoch, self.beat, &self.worker, &self.ended_by, &self.lane)
            == (other.state, other.epoch, other.beat, &other.worker, &other.ended_by, &other.lane)
    }
}

/// A job as it was read, with the revision that a change of it expects.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub spec: Spec,
    pub progress: Progress,
    pub revision: u64,
}

impl Held {
    /// The id of the call that runs it: of each run another one, as what is left of one that was lost is ended by it.
    pub fn call(&self) -> String {
        match self.progress.epoch {
            0 | 1 => self.spec.id.clone(),
            epoch => format!("{}-{epoch}", self.spec.id),
        }
    }
}

/// Refuses labels that the host gives itself, and too many or too long ones.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Failure> {
    if let Some(own) = labels.keys().find(|name| OWN_LABELS.contains(&name.as_str())) {
        let message = format!("the label `{own}` is the host's, and cannot be given");
        return Err(Failure::invalid(message).hint("omit it, or choose another name"));
    }
    if labels.len() > LABELS {
        return Err(Failure::limit(format!("{} labels are too many (limit: {LABELS})", labels.len())));
    }
    let fits = |text: &str, most: usize| text.len() <= most && !text.contains(char::is_control);
    let fit = |(name, value): (&String, &String)| {
        !name.is_empty() && fits(name, LABEL_NAME_BYTES) && fits(value, LABEL_VALUE_BYTES)
    };
    match labels.iter().all(fit) {
        true => Ok(()),
        false => Err(Failure::invalid(format!(
            "a label has a name of 1 to {LABEL_NAME_BYTES} bytes and a value of at most {LABEL_VALUE_BYTES}, without control characters"
        ))),
    }
}
