//! The processes of an agent: `branch`, `spawn_worker`, `route`, `cancel`.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

pub(crate) struct Branch;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BranchInput {
    /// What to think about and what to return.
    description: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Branched {
    /// What its result will name.
    branch_id: String,
}

impl Tool for Branch {
    const NAME: &str = "branch";
    const TITLE: Option<&str> = Some("Think in a branch");
    const SUMMARY: &str = "Start a branch of this conversation that thinks by itself.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You need to recall, compare or plan something while the conversation goes on.",
        when_not_to_use: "For work with files or commands: use `spawn_worker`.",
        disambiguation: "A branch knows this conversation; a worker does not.",
        examples: &[r#"{"description":"Recall what we decided about the release, and sum it up."}"#],
    };
    const EVENTS: &[&str] = &["agent.branch"];
    type Input = BranchInput;
    type Output = Branched;

    fn call(input: BranchInput) -> Result<Branched> {
        check_text("description", &input.description)?;
        hand_over("agent.branch", &input)
    }
}

pub(crate) struct SpawnWorker;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpawnInput {
    /// The whole task; the worker knows nothing else.
    task: String,
    /// The worker then waits for more input from `route`.
    #[serde(default)]
    interactive: bool,
    /// Names of skills that may help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    suggested_skills: Vec<String>,
    /// Kind of worker.
    #[serde(default)]
    worker_type: WorkerType,
    /// Working directory of an `opencode` worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    /// Id of a project to work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
    /// Id of a worktree to work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree_id: Option<String>,
    /// Number of the task to work on, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_number: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WorkerType {
    /// A worker of this agent.
    #[default]
    Builtin,
    /// A coding agent in `directory`.
    Opencode,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Spawned {
    worker_id: String,
    /// False: a worker has that task already, and is the one that `worker_id` names.
    #[serde(default = "yes")]
    spawned: bool,
}

fn yes() -> bool {
    true
}

impl Tool for SpawnWorker {
    const NAME: &str = "spawn_worker";
    const TITLE: Option<&str> = Some("Start a worker");
    const SUMMARY: &str = "Start a worker that carries out a task by itself.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A task needs files, commands or time.",
        when_not_to_use: "To think or recall: use `branch`. To add to a worker's task: use `route`.",
        disambiguation: "The worker does not know this conversation. The result comes as a later message.",
        examples: &[r#"{"task":"Run the tests in /srv/api and report what fails, with the output."}"#],
    };
    const EVENTS: &[&str] = &["agent.spawn"];
    type Input = SpawnInput;
    type Output = Spawned;

    fn call(input: SpawnInput) -> Result<Spawned> {
        input.check()?;
        hand_over("agent.spawn", &input)
    }
}

impl SpawnInput {
    fn check(&self) -> Result<()> {
        check_text("task", &self.task)?;
        match (self.worker_type, &self.directory) {
            (WorkerType::Opencode, None) => Err(Failure::invalid("an `opencode` worker needs a `directory`")),
            (WorkerType::Builtin, Some(_)) => {
                Err(Failure::invalid("`directory` is for `opencode` workers").hint("name the directory in `task`"))
            }
            (WorkerType::Builtin, None) | (WorkerType::Opencode, Some(_)) if self.task_number == Some(0) => {
                Err(Failure::invalid("`task_number` counts from 1"))
            }
            (WorkerType::Builtin, None) | (WorkerType::Opencode, Some(_)) => Ok(()),
        }
    }
}

pub(crate) struct Route;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteInput {
    /// Id from `spawn_worker`.
    worker_id: String,
    /// What the worker should know or do.
    message: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Routed {
    /// False: it has ended, and nobody reads the message.
    #[serde(default = "yes")]
    routed: bool,
}

impl Tool for Route {
    const NAME: &str = "route";
    const TITLE: Option<&str> = Some("Message a worker");
    const SUMMARY: &str = "Send a message to a worker that runs or waits for input.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The person adds something to a worker's task.",
        when_not_to_use: "The worker has ended: use `spawn_worker`.",
        disambiguation: "",
        examples: &[r#"{"worker_id":"w3","message":"Leave the database alone."}"#],
    };
    const EVENTS: &[&str] = &["agent.route"];
    type Input = RouteInput;
    type Output = Routed;

    fn call(input: RouteInput) -> Result<Routed> {
        check_text("worker_id", &input.worker_id)?;
        check_text("message", &input.message)?;
        hand_over("agent.route", &input)
    }
}

pub(crate) struct Cancel;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelInput {
    /// Kind of process.
    process_type: ProcessType,
    /// Id from `branch` or `spawn_worker`.
    process_id: String,
    /// Why it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ProcessType {
    Worker,
    Branch,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Cancelled {
    /// False: it had ended before.
    #[serde(default = "yes")]
    cancelled: bool,
}

impl Tool for Cancel {
    const NAME: &str = "cancel";
    const TITLE: Option<&str> = Some("Cancel a process");
    const SUMMARY: &str = "Stop a branch or a worker.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "It is no longer wanted, or does the wrong thing.",
        when_not_to_use: "It needs another instruction: use `route`.",
        disambiguation: "Work that is done is not undone.",
        examples: &[r#"{"process_type":"worker","process_id":"w3","reason":"The person changed their mind."}"#],
    };
    const EVENTS: &[&str] = &["agent.cancel"];
    type Input = CancelInput;
    type Output = Cancelled;

    fn call(input: CancelInput) -> Result<Cancelled> {
        check_text("process_id", &input.process_id)?;
        hand_over("agent.cancel", &input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use serde_json::{Value, json};

    #[test]
    fn a_directory_is_for_workers_that_work_in_one() {
        let spawn = |more: Value| {
            let mut input = json!({ "task": "x" });
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<SpawnInput>(input).unwrap().check().map_err(|failure| failure.message)
        };
        assert_eq!(spawn(json!({})), Ok(()));
        assert_eq!(spawn(json!({ "worker_type": "opencode", "directory": "/a" })), Ok(()));
        assert_eq!(spawn(json!({ "directory": "/a" })), Err("`directory` is for `opencode` workers".into()));
        let opencode = spawn(json!({ "worker_type": "opencode" }));
        assert_eq!(opencode, Err("an `opencode` worker needs a `directory`".into()));
        assert_eq!(spawn(json!({ "task_number": 0 })), Err("`task_number` counts from 1".into()));
        assert_eq!(spawn(json!({ "task": "" })), Err("`task` is blank".into()));
    }

    #[test]
    fn what_an_answer_leaves_out_is_as_it_mostly_is() {
        let spawned = |answer| read::<Spawned>("agent.spawn", answer).unwrap();
        assert_eq!(spawned(json!({ "worker_id": "w" })), Spawned { worker_id: "w".into(), spawned: true });
        assert!(!spawned(json!({ "worker_id": "w", "spawned": false })).spawned);
        assert!(read::<Cancelled>("agent.cancel", json!(null)).unwrap().cancelled);
    }
}
