//! Tools that run as tasks (the extension `io.modelcontextprotocol/tasks`), and one beside them that does not.

use super::ask;
use super::catalog::{Answer, Call, Entry, done, said};
use super::input::one_text;
use futures_util::future::try_join;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult, ErrorData, InputResponses,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskOptions};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "greet",
        summary: "Greets by name, at once.",
        input: || properties(json!({"name": {"type": "string"}}), &["name"]),
        call: |call| done(Ok(said(format!("Hello, {}!", call.text("name"))).into())),
    },
    Entry {
        name: "slow_compute",
        summary: "Takes its time; a task where the client knows tasks.",
        input: || {
            let seconds = json!({"type": "integer", "minimum": 0, "maximum": 60});
            properties(json!({"seconds": seconds, "label": {"type": "string"}}), &["seconds"])
        },
        call: |call| Box::pin(slow_compute(call)),
    },
    Entry::plain("failing_job", "A task that ends with an error of the tool.", |call| {
        task(&call, |_| Box::pin(fail()))
    }),
    Entry::plain("protocol_error_job", "A task that ends with an error of the protocol.", |call| {
        task(&call, |_| Box::pin(async { Err(ErrorData::internal_error("the job broke", None).into()) }))
    }),
    Entry {
        name: "confirm_delete",
        summary: "A task that asks before it pretends to delete.",
        input: || properties(json!({"filename": {"type": "string"}}), &["filename"]),
        call: |call| {
            let file = call.text("filename");
            task(&call, |context| Box::pin(confirm_delete(context, file)))
        },
    },
    Entry::plain("multi_input", "A task that asks two things at once.", |call| {
        task(&call, |context| Box::pin(two_names(context)))
    }),
    Entry::plain("test_tool_with_task", "Asks for a name, then greets it as a task.", |call| ask_then_task(&call)),
];

/// What a client is told to wait between two looks at a task.
const POLL_MS: u64 = 100;

fn properties(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn knows_tasks(call: &Call) -> bool {
    call.context.client_capabilities().is_some_and(|declared| declared.supports_tasks())
}

/// Starts a task; without a client that knows them there is no other way.
fn task(call: &Call, work: impl FnOnce(TaskContext) -> TaskFuture) -> Answer {
    if !knows_tasks(call) {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return done(Err(ErrorData::missing_required_client_capability(needed)));
    }
    done(Ok(started(call, work)))
}

fn started(call: &Call, work: impl FnOnce(TaskContext) -> TaskFuture) -> CallToolResponse {
    let options = TaskOptions::new().with_poll_interval_ms(POLL_MS);
    CreateTaskResult::new(call.fixture.tasks.spawn(options, work)).into()
}

async fn slow_compute(call: Call) -> Result<CallToolResponse, ErrorData> {
    let seconds = call.argument("seconds").and_then(Value::as_u64).unwrap_or_default().min(60);
    let result = said(format!("{} is computed.", call.text("label")));
    let wait = sleep(Duration::from_secs(seconds));
    if !knows_tasks(&call) {
        wait.await;
        return Ok(result.into());
    }
    let work = |context: TaskContext| -> TaskFuture {
        Box::pin(async move {
            tokio::select! {
                () = context.cancelled() => Err(TaskExit::Cancelled),
                () = wait => Ok(result),
            }
        })
    };
    Ok(started(&call, work))
}

async fn fail() -> Result<CallToolResult, TaskExit> {
    sleep(Duration::from_secs(1)).await;
    Ok(CallToolResult::error(vec![ContentBlock::text("the job failed")]))
}

async fn confirm_delete(context: TaskContext, file: String) -> Result<CallToolResult, TaskExit> {
    let question = ask::for_form(&format!("Delete {file}?"), &json!({"confirm": {"type": "boolean"}}));
    let answer = context.request_input("confirm", question).await?;
    let answers = InputResponses::from([("confirm".to_owned(), answer)]);
    let outcome = match ask::field(Some(&answers), "confirm", "confirm") {
        Some(Value::Bool(true)) => "would now be gone",
        _ => "stays",
    };
    Ok(said(format!("{file} {outcome}.")))
}

async fn two_names(context: TaskContext) -> Result<CallToolResult, TaskExit> {
    let first = context.request_input("first", one_text("What is your name?", "name"));
    let second = context.request_input("second", one_text("And the other one?", "name"));
    let (first, second) = try_join(first, second).await?;
    Ok(said(format!("The answers were {first} and {second}.")))
}

fn ask_then_task(call: &Call) -> Answer {
    match call.answer("user_name", "name") {
        Some(name) => task(call, |_| Box::pin(async move { Ok(said(format!("Hello, {name}!"))) })),
        None => done(call.wants([("user_name", one_text("What is your name?", "name"))], None)),
    }
}
