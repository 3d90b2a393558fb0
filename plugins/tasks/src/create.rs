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
    /// What is to be done, in a line of at most 200 bytes.
    title: String,
    /// All that whoever does it has to know: at most 20,000 bytes.
    #[serde(default)]
    description: String,
    /// How soon it matters.
    #[serde(default)]
    priority: Priority,
    /// Its parts, at most 50.
    #[serde(default)]
    subtasks: Vec<String>,
    /// What belongs to it, by names of your own.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// Numbers of tasks that have to be done before it begins.
    #[serde(default)]
    depends_on: Vec<u64>,
    /// Where it begins: `pending_approval`, `backlog`, or `ready`, for which a person is asked.
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
    const SUMMARY: &str = "Write down something that is to be done later, or by somebody else.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Work is to be done that does not end in this conversation.",
        when_not_to_use: "You do it now; or it is only to be remembered: use `memory_save`.",
        disambiguation: "A task is done; a goal (`goal_create`) is pursued.",
        examples: &[
            r#"{"title":"Renew the certificate of the gateway","priority":"high","subtasks":["order it","install it"]}"#,
        ],
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
