//! `task_update`.

use crate::change::{approve, check, check_before, check_begin, check_move, subtasks};
use crate::keep::{Priority, Status, Task, check_revision, put, task};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_sdk::records::{Batch, again};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Bytes of what a change was about.
const SUMMARY_BYTES: usize = 500;

pub(crate) struct TaskUpdate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateInput {
    /// Number of the task.
    task_number: u64,
    /// New title.
    title: Option<String>,
    /// New description.
    description: Option<String>,
    /// New state. A person is asked before work begins for the first time.
    status: Option<Status>,
    /// New priority.
    priority: Option<Priority>,
    /// Parts to add.
    #[serde(default)]
    add_subtasks: Vec<String>,
    /// Number of the part that is done, from 1.
    complete_subtask: Option<usize>,
    /// Values to add; `null` removes a name.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// New list of tasks that must be done first.
    depends_on: Option<Vec<u64>>,
    /// Revision that you read. If there is a newer one, nothing is changed.
    expected_revision: Option<u64>,
    /// What the change is about: at most 500 bytes.
    edit_summary: Option<String>,
    /// Task that you were given. Only this task can then be changed: its parts, its metadata, and whether it is done.
    worker_of: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Updated {
    task_number: u64,
    status: Status,
    revision: u64,
}

impl Tool for TaskUpdate {
    const NAME: &str = "task_update";
    const TITLE: Option<&str> = Some("Change a task");
    const SUMMARY: &str = "Change the state, parts or text of a task.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A task begins or ends, a part is done, or its text changes.",
        when_not_to_use: "To add a remark: use `add_task_comment`.",
        disambiguation: "Give `expected_revision` if you change text that you have read.",
        examples: &[r#"{"task_number":7,"status":"in_progress"}"#],
    };
    type Input = UpdateInput;
    type Output = Updated;

    fn call(input: UpdateInput) -> Result<Updated> {
        if input.edit_summary.as_ref().is_some_and(|summary| summary.len() > SUMMARY_BYTES) {
            return Err(Failure::invalid(format!("`edit_summary` has at most {SUMMARY_BYTES} bytes")));
        }
        check_worker(&input)?;
        match input.expected_revision {
            None => again(|| update(&input)),
            Some(_) => update(&input),
        }
    }
}

fn update(input: &UpdateInput) -> Result<Updated> {
    let (number, there) = (input.task_number, task(input.task_number)?);
    check_revision(number, input.expected_revision, there.revision)?;
    let before = there.body;
    let mut after = changed(&before, input)?;
    check_move(before.status, after.status)?;
    if input.worker_of.is_some() && !may_move(before.status, after.status) {
        return Err(Failure::denied("whoever works on a task does not approve, begin anew or put it off")
            .hint("say in a comment what you would change"));
    }
    check(&after)?;
    if input.depends_on.is_some() {
        check_before(Some(number), &after.depends_on)?;
    }
    check_begin(before.status, &after)?;
    let batch = approve(Batch::new(), Some(number), Some(&before), &mut after);
    if after == before {
        notice("nothing is changed by that");
        return Ok(Updated { task_number: number, status: before.status, revision: there.revision });
    }
    let (batch, revision) = put(batch, number, there.revision, &after, input.edit_summary.clone());
    batch.commit()?;
    Ok(Updated { task_number: number, status: after.status, revision })
}

/// What a task is with the changes.
fn changed(before: &Task, input: &UpdateInput) -> Result<Task> {
    let mut after = before.clone();
    after.title = input.title.clone().unwrap_or(after.title);
    after.description = input.description.clone().unwrap_or(after.description);
    after.status = input.status.unwrap_or(after.status);
    after.priority = input.priority.unwrap_or(after.priority);
    after.depends_on = input.depends_on.clone().unwrap_or(after.depends_on);
    after.subtasks.extend(subtasks(&input.add_subtasks));
    if let Some(place) = input.complete_subtask {
        let parts = after.subtasks.len();
        let part = place.checked_sub(1).and_then(|place| after.subtasks.get_mut(place)).ok_or_else(|| {
            Failure::invalid(format!("`complete_subtask` is {place}"))
                .hint(format!("the task has {parts} parts, counted from 1"))
        })?;
        part.done = true;
    }
    for (name, value) in &input.metadata {
        match value {
            Value::Null => after.metadata.remove(name),
            value => after.metadata.insert(name.clone(), value.clone()),
        };
    }
    Ok(after)
}

/// Who works on a task changes how far it is, not what it says.
fn check_worker(input: &UpdateInput) -> Result<()> {
    let Some(own) = input.worker_of else { return Ok(()) };
    if own != input.task_number {
        return Err(Failure::denied(format!("this worker was given task {own}, not {}", input.task_number)));
    }
    let words = [
        ("title", input.title.is_some()),
        ("description", input.description.is_some()),
        ("priority", input.priority.is_some()),
        ("add_subtasks", !input.add_subtasks.is_empty()),
        ("depends_on", input.depends_on.is_some()),
    ];
    match words.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::denied(format!("whoever works on a task does not change its `{name}`"))
            .hint("say in a comment what you would change")),
    }
}

/// Whether whoever works on a task may have it go from one state to the other.
fn may_move(from: Status, to: Status) -> bool {
    from == to
        || (from == Status::Ready && to == Status::InProgress)
        || (from == Status::InProgress && matches!(to, Status::Done | Status::Failed))
}
