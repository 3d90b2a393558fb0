//! `task_list` and `task_show`.

use crate::change::waits_for;
use crate::keep::{COMMENTS, Comment, Priority, Status, Subtask, TASKS, Task, number, task};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_sdk::records::{Item, Query};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Tasks of a list where nothing is said, and at most; comments that are shown.
const TASKS_LISTED: u32 = 20;
const MOST: u32 = 500;
const COMMENTS_SHOWN: u32 = 50;

pub(crate) struct TaskList;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListInput {
    /// Only tasks in this state.
    status: Option<Status>,
    /// Only tasks of this priority.
    priority: Option<Priority>,
    /// Number of tasks: 1 to 500.
    #[serde(default = "listed")]
    limit: u32,
    /// `next` of the previous list.
    after: Option<String>,
}

fn listed() -> u32 {
    TASKS_LISTED
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Listed {
    tasks: Vec<Row>,
    /// How many there are in all.
    total: u64,
    /// Where the next list begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    task_number: u64,
    title: String,
    status: Status,
    priority: Priority,
    /// How many of its parts are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    subtasks: Option<String>,
    /// Tasks that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_by: Vec<u64>,
    revision: u64,
}

impl Tool for TaskList {
    const NAME: &str = "task_list";
    const TITLE: Option<&str> = Some("List tasks");
    const SUMMARY: &str = "List tasks, last changed first.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to know what to do, or how far it is.",
        when_not_to_use: "You know the number: use `task_show`.",
        disambiguation: "",
        examples: &[r#"{"status":"ready","priority":"high"}"#],
    };
    type Input = ListInput;
    type Output = Listed;

    fn call(ListInput { status, priority, limit, after }: ListInput) -> Result<Listed> {
        if !(1..=MOST).contains(&limit) {
            return Err(Failure::invalid(format!("`limit` is {limit}")).hint(format!("it is 1 to {MOST}")));
        }
        let mut query = Query::new(TASKS).order("@changed", true).limit(limit);
        if let Some(status) = status {
            query = query.equals("/status", &status);
        }
        if let Some(priority) = priority {
            query = query.equals("/priority", &priority);
        }
        if let Some(after) = after {
            query = query.after(&after);
        }
        let page = query.run::<Task>()?;
        let tasks = page.items.into_iter().map(row).collect::<Result<Vec<_>>>()?;
        if tasks.is_empty() {
            notice("there are no such tasks");
        }
        Ok(Listed { tasks, total: page.total, next: page.next })
    }
}

fn row(Item { key, body, revision, .. }: Item<Task>) -> Result<Row> {
    let blocked_by = waits_for(&body)?;
    let done = body.subtasks.iter().filter(|subtask| subtask.done).count();
    let subtasks = (!body.subtasks.is_empty()).then(|| format!("{done} of {}", body.subtasks.len()));
    let Task { title, status, priority, .. } = body;
    Ok(Row { task_number: number(&key), title, status, priority, subtasks, blocked_by, revision })
}

pub(crate) struct TaskShow;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowInput {
    /// Number of the task.
    task_number: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Shown {
    task_number: u64,
    title: String,
    description: String,
    status: Status,
    priority: Priority,
    subtasks: Vec<Subtask>,
    metadata: Map<String, Value>,
    depends_on: Vec<u64>,
    /// Tasks that it waits for.
    blocked_by: Vec<u64>,
    /// A person has approved what it says.
    approved: bool,
    revision: u64,
    made_ms: u64,
    changed_ms: u64,
    /// The last of what was said of it, in its order.
    comments: Vec<Said>,
}

#[derive(Serialize, JsonSchema)]
struct Said {
    content: String,
    /// When, in milliseconds since 1970.
    made_ms: u64,
}

impl Tool for TaskShow {
    const NAME: &str = "task_show";
    const TITLE: Option<&str> = Some("Show a task");
    const SUMMARY: &str = "Show a task with its comments.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You work on a task, or are asked about one.",
        when_not_to_use: "You do not know its number: use `task_list`.",
        disambiguation: "",
        examples: &[r#"{"task_number":7}"#],
    };
    type Input = ShowInput;
    type Output = Shown;

    fn call(ShowInput { task_number }: ShowInput) -> Result<Shown> {
        let Item { body, revision, made_ms, changed_ms, .. } = task(task_number)?;
        let blocked_by = waits_for(&body)?;
        let said = Query::new(COMMENTS).equals("/number", &task_number).order("@key", true).limit(COMMENTS_SHOWN);
        let page = said.run::<Comment>()?;
        if page.total > page.items.len() as u64 {
            notice(format!("{} comments before these are left out", page.total - page.items.len() as u64));
        }
        let said = |item: Item<Comment>| Said { content: item.body.content, made_ms: item.made_ms };
        let comments = page.items.into_iter().rev().map(said).collect();
        let Task { title, description, status, priority, subtasks, metadata, depends_on, approved } = body;
        Ok(Shown {
            task_number,
            title,
            description,
            status,
            priority,
            subtasks,
            metadata,
            depends_on,
            blocked_by,
            approved,
            revision,
            made_ms,
            changed_ms,
            comments,
        })
    }
}
