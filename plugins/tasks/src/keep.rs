//! How tasks are kept: each is a document; every revision of it is another one, which stays as it was; comments are by themselves.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_sdk::records::{Batch, Item, Query, get};
use toolcrib_sdk::{Failure, JsonSchema, Kind, Result, schemars};

pub(crate) const TASKS: &str = "tasks";
pub(crate) const COMMENTS: &str = "comments";
const HISTORY: &str = "history";
const COUNTS: &str = "counts";
const ALL: &str = "all";

/// In which state a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    #[default]
    PendingApproval,
    Backlog,
    Ready,
    InProgress,
    Done,
    Failed,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PendingApproval => "pending_approval",
            Self::Backlog => "backlog",
            Self::Ready => "ready",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// How soon it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Priority {
    Low,
    #[default]
    Medium,
    High,
    Critical,
}

/// A part of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Subtask {
    pub(crate) title: String,
    pub(crate) done: bool,
}

/// A task, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) status: Status,
    pub(crate) priority: Priority,
    pub(crate) subtasks: Vec<Subtask>,
    pub(crate) metadata: Map<String, Value>,
    /// What has to be done before it.
    pub(crate) depends_on: Vec<u64>,
    /// A person has approved what it says.
    pub(crate) approved: bool,
}

/// A task as it was once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Past {
    pub(crate) number: u64,
    pub(crate) revision: u64,
    pub(crate) summary: Option<String>,
    pub(crate) task: Task,
}

/// What somebody said of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Comment {
    pub(crate) content: String,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Counts {
    /// The number of the task that was made last.
    last: u64,
}

/// The key of a number: they sort as the numbers do.
pub(crate) fn key(number: u64) -> String {
    format!("{number:08}")
}

pub(crate) fn number(key: &str) -> u64 {
    key.parse().unwrap_or_default()
}

pub(crate) fn find(number: u64) -> Result<Option<Item<Task>>> {
    get(TASKS, &key(number))
}

/// The task of this number.
///
/// # Errors
///
/// Where there is none.
pub(crate) fn task(number: u64) -> Result<Item<Task>> {
    find(number)?
        .ok_or_else(|| Failure::failed(format!("there is no task {number}")).hint("`task_list` says which there are"))
}

/// A batch that makes a new task, and its number.
pub(crate) fn new_number() -> Result<(Batch, u64)> {
    let counts = get::<Counts>(COUNTS, ALL)?;
    let last = counts.as_ref().map_or(0, |item| item.body.last) + 1;
    let batch = Batch::new().expect(COUNTS, ALL, counts.map_or(0, |item| item.revision));
    Ok((batch.put(COUNTS, ALL, &Counts { last }), last))
}

/// Writes a task down as its next revision, and what it was about. Its revision then.
pub(crate) fn put(batch: Batch, number: u64, before: u64, task: &Task, summary: Option<String>) -> (Batch, u64) {
    let (key, revision) = (key(number), before + 1);
    let past = Past { number, revision, summary, task: task.clone() };
    let batch = batch.expect(TASKS, &key, before).put(TASKS, &key, task);
    (batch.put(HISTORY, &format!("{key}/{revision:08}"), &past), revision)
}

/// The revisions of a task, the newest first.
pub(crate) fn pasts(number: u64, most: u32) -> Result<Vec<Item<Past>>> {
    let query = Query::new(HISTORY).equals("/number", &number).order("@key", true).limit(most);
    Ok(query.run()?.items)
}

/// One revision of a task.
pub(crate) fn past(number: u64, revision: u64) -> Result<Item<Past>> {
    get(HISTORY, &format!("{}/{revision:08}", key(number)))?.ok_or_else(|| {
        Failure::failed(format!("task {number} has no revision {revision}")).hint("`list` says which it has")
    })
}

/// Holds what a caller has read against what there is.
pub(crate) fn check_revision(number: u64, expected: Option<u64>, there: u64) -> Result<()> {
    match expected.is_none_or(|expected| expected == there) {
        true => Ok(()),
        false => {
            let message = format!("task {number} was changed meanwhile: it has revision {there}");
            Err(Failure::new(Kind::BUSY, message).hint("read it again, then change that"))
        }
    }
}
