//! `task_history`: how a task was before.

use crate::change::approve;
use crate::keep::{Past, Task, check_revision, past, pasts, put, task};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib_sdk::records::{Batch, Item, again};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Revisions that are listed at most.
const LISTED: u32 = 50;

pub(crate) struct TaskHistory;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Lists revisions, newest first.
    List,
    /// Shows the task at `revision`.
    Get,
    /// Compares `revision` with `other_revision`.
    Diff,
    /// Brings back the text of `revision`; the state stays.
    Restore,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryInput {
    /// What to do.
    action: Action,
    /// Number of the task.
    task_number: u64,
    /// Number of the revision.
    revision: Option<u64>,
    /// Revision to compare with; default: the current one.
    other_revision: Option<u64>,
    /// For `restore`: revision that you read. If there is a newer one, nothing is changed.
    expected_revision: Option<u64>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct History {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    revisions: Vec<Row>,
    /// The task as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Value>,
    /// By its name, what each part was at `revision` and is at the other one.
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<Map<String, Value>>,
    /// The revision that it has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_as: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    revision: u64,
    /// When, in milliseconds since 1970.
    made_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    edit_summary: Option<String>,
    status: &'static str,
    title: String,
}

impl Tool for TaskHistory {
    const NAME: &str = "task_history";
    const TITLE: Option<&str> = Some("Show the history of a task");
    const SUMMARY: &str = "Show, compare or restore earlier versions of a task.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need to know how a task was changed, or want to undo a change.",
        when_not_to_use: "You need the current task: use `task_show`.",
        disambiguation: "",
        examples: &[r#"{"action":"diff","task_number":7,"revision":2,"other_revision":5}"#],
    };
    type Input = HistoryInput;
    type Output = History;

    fn call(input: HistoryInput) -> Result<History> {
        let number = input.task_number;
        let revision = || {
            input.revision.ok_or_else(|| Failure::invalid("`revision` is missing").hint("`list` says which there are"))
        };
        match input.action {
            Action::List => {
                task(number)?;
                Ok(History { revisions: pasts(number, LISTED)?.into_iter().map(row).collect(), ..History::default() })
            }
            Action::Get => {
                let past = past(number, revision()?)?.body.task;
                Ok(History { task: Some(json!(past)), ..History::default() })
            }
            Action::Diff => {
                let one = past(number, revision()?)?.body.task;
                let other = match input.other_revision {
                    Some(other) => past(number, other)?.body.task,
                    None => task(number)?.body,
                };
                Ok(History { differs: Some(differs(&one, &other)), ..History::default() })
            }
            Action::Restore => {
                let revision = revision()?;
                let restored = match input.expected_revision {
                    None => again(|| restore(&input, revision))?,
                    Some(_) => restore(&input, revision)?,
                };
                Ok(History { restored_as: Some(restored), ..History::default() })
            }
        }
    }
}

fn row(Item { body: Past { revision, summary, task, .. }, made_ms, .. }: Item<Past>) -> Row {
    Row { revision, made_ms, edit_summary: summary, status: task.status.name(), title: task.title }
}

fn differs(one: &Task, other: &Task) -> Map<String, Value> {
    let (one, other) = (json!(one), json!(other));
    let names = one.as_object().into_iter().flat_map(Map::keys);
    let differs = names.filter(|name| one[*name] != other[*name]);
    differs.map(|name| (name.clone(), json!({ "was": one[name], "is": other[name] }))).collect()
}

/// What it said then, in the state in which it is.
fn restore(input: &HistoryInput, revision: u64) -> Result<u64> {
    let (number, there) = (input.task_number, task(input.task_number)?);
    check_revision(number, input.expected_revision, there.revision)?;
    let before = there.body;
    let was = past(number, revision)?.body.task;
    let mut after =
        Task { status: before.status, approved: before.approved, depends_on: before.depends_on.clone(), ..was };
    if after == before {
        notice("it says that already");
        return Ok(there.revision);
    }
    let batch = approve(Batch::new(), Some(number), Some(&before), &mut after);
    let summary = format!("as it was at revision {revision}");
    let (batch, restored) = put(batch, number, there.revision, &after, Some(summary));
    batch.commit()?;
    Ok(restored)
}
