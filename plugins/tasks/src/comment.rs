//! `add_task_comment`.

use crate::keep::{COMMENTS, key, task};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolcrib_sdk::records::{Batch, Query, again};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

/// Characters of a comment at least, bytes at most; comments of a task.
const CHARS: usize = 4;
const BYTES: usize = 4000;
const MOST: u64 = 1000;

pub(crate) struct AddTaskComment;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommentInput {
    /// Number of the task.
    task_number: u64,
    /// Comment: 4 characters to 4,000 bytes.
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Commented {
    task_number: u64,
    /// How many the task has now.
    comments: u64,
}

impl Tool for AddTaskComment {
    const NAME: &str = "add_task_comment";
    const TITLE: Option<&str> = Some("Comment on a task");
    const SUMMARY: &str = "Add a comment to a task.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You found something out that others on the task should know.",
        when_not_to_use: "The state or text of the task changes: use `task_update`.",
        disambiguation: "",
        examples: &[r#"{"task_number":7,"content":"The vendor answers on Monday."}"#],
    };
    type Input = CommentInput;
    type Output = Commented;

    fn call(CommentInput { task_number, content }: CommentInput) -> Result<Commented> {
        if content.trim().chars().count() < CHARS || content.len() > BYTES {
            return Err(Failure::invalid(format!("a comment has {CHARS} characters to {BYTES} bytes")));
        }
        task(task_number)?;
        again(|| {
            let there = Query::new(COMMENTS).equals("/number", &task_number).limit(1).run::<serde_json::Value>()?.total;
            if there >= MOST {
                return Err(Failure::limit(format!("task {task_number} has {MOST} comments already (limit: {MOST})")));
            }
            let name = format!("{}/{:08}", key(task_number), there + 1);
            let body = json!({ "number": task_number, "content": content });
            Batch::new().expect(COMMENTS, &name, 0).put(COMMENTS, &name, &body).commit()?;
            Ok(Commented { task_number, comments: there + 1 })
        })
    }
}
