//! `task_create`.

use crate::change::{approve, check, check_before, subtasks};
use crate::keep::{Priority, Status, Task, new_number, put};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_sdk::records::again;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

pub(crate) struct TaskCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateInput {
    /// What to do: at most 200 bytes.
    title: String,
    /// Everything needed to do it: at most 20,000 bytes.
    #[serde(default)]
    description: String,
    /// Priority.
    #[serde(default)]
    priority: Priority,
    /// Parts: at most 50.
    #[serde(default)]
    subtasks: Vec<String>,
    /// Values under names of your choice.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// Numbers of tasks that must be done first.
    #[serde(default)]
    depends_on: Vec<u64>,
    /// `pending_approval`, `backlog`, or `ready`, for which a person is asked.
    #[serde(default)]
    status: Status,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Created {
    task_number: u64,
    status: Status,
    revision: u64,
}

impl Tool for TaskCreate {
    const NAME: &str = "task_create";
    const TITLE: Option<&str> = Some("Make a task");
    const SUMMARY: &str = "Record work that is to be done later, or by somebody else.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The work does not end in this conversation.",
        when_not_to_use: "You do it now. To remember a fact: use `memory_save`.",
        disambiguation: "",
        examples: &[r#"{"title":"Renew the certificate of the gateway","priority":"high"}"#],
    };
    type Input = CreateInput;
    type Output = Created;

    fn call(input: CreateInput) -> Result<Created> {
        match input.status {
            Status::PendingApproval | Status::Backlog | Status::Ready => {}
            Status::InProgress | Status::Done | Status::Failed => {
                return Err(Failure::invalid(format!("a task cannot begin as `{}`", input.status.name()))
                    .hint("begin with `pending_approval`, `backlog` or `ready`"));
            }
        }
        let CreateInput { title, description, priority, subtasks: titles, metadata, depends_on, status } = input;
        let subtasks = subtasks(&titles).collect();
        let task = Task { title, description, status, priority, subtasks, metadata, depends_on, approved: false };
        check(&task)?;
        check_before(None, &task.depends_on)?;
        again(|| {
            let (batch, task_number) = new_number()?;
            let mut task = task.clone();
            let batch = approve(batch, None, None, &mut task);
            let (batch, revision) = put(batch, task_number, 0, &task, None);
            batch.commit()?;
            Ok(Created { task_number, status, revision })
        })
    }
}
