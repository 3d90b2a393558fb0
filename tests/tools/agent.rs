//! The tools of the family `agent`: what each hands over, and what it makes of the answer. What holds for all events is in `tests/calls`.

use serde_json::{Value, json};
use std::sync::Arc;
use toolcrib::call::{Arguments, Request};
use toolcrib::embedder::End;
use toolcrib::envelope::{Failure, Kind, Output};
use toolcrib_tests::TestHost;
use toolcrib_tests::embedder::Played;

struct Agent {
    host: TestHost,
}

impl Agent {
    fn new() -> Self {
        Self { host: TestHost::new() }
    }

    /// Calls a tool whose event is answered so; with what was handed over.
    async fn call(
        &self,
        tool: &str,
        arguments: Value,
        answer: Value,
    ) -> (Result<Output, Failure>, Vec<(String, Value)>) {
        let embedder = Arc::new(Played::new(&["*"], move |_| Some(End::Answered(answer.clone()))));
        let (host, context) = self.host.parts();
        let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
        let outcome = host.call(request, &context.clone().embedder(embedder.clone())).await.outcome;
        (outcome, embedder.events().into_iter().map(|event| (event.kind, event.payload)).collect())
    }
}

/// Every tool: arguments, what is handed over where it is not they, the answer, and the result.
#[tokio::test]
async fn each_tool_hands_over_one_event_and_returns_its_answer() {
    let agent = Agent::new();
    let same = Value::Null;
    let status = json!({ "status": "x", "kind": "outcome" });
    let cancel = json!({ "process_type": "worker", "process_id": "w1", "reason": "over" });
    let spawned = json!({ "task": "x", "interactive": false, "worker_type": "builtin" });
    for (tool, arguments, kind, payload, answer, result) in [
        (
            "reply",
            json!({ "content": "hi" }),
            "message.send",
            &same,
            json!({ "conversation_id": "c" }),
            json!({ "sent": true, "conversation_id": "c" }),
        ),
        (
            "ask",
            json!({ "question": "?", "options": ["a", "b"], "multi_select": true }),
            "message.ask",
            &same,
            json!({ "question_id": "q" }),
            json!({ "asked": true, "question_id": "q" }),
        ),
        ("react", json!({ "emoji": "👍" }), "message.react", &same, json!(null), json!({ "reacted": true })),
        ("skip", json!({}), "message.skip", &same, json!(true), json!({ "skipped": true })),
        (
            "send_message_to_another_channel",
            json!({ "target": "ops", "message": "x" }),
            "message.forward",
            &same,
            json!({}),
            json!({ "sent": true }),
        ),
        (
            "branch",
            json!({ "description": "think" }),
            "agent.branch",
            &same,
            json!({ "branch_id": "b1" }),
            json!({ "branch_id": "b1" }),
        ),
        (
            "spawn_worker",
            json!({ "task": "x" }),
            "agent.spawn",
            &spawned,
            json!({ "worker_id": "w1" }),
            json!({ "worker_id": "w1", "spawned": true }),
        ),
        // Case 14: one has the task already.
        (
            "spawn_worker",
            json!({ "task": "x" }),
            "agent.spawn",
            &spawned,
            json!({ "worker_id": "w1", "spawned": false }),
            json!({ "worker_id": "w1", "spawned": false }),
        ),
        (
            "route",
            json!({ "worker_id": "w1", "message": "x" }),
            "agent.route",
            &same,
            json!({ "routed": false }),
            json!({ "routed": false }),
        ),
        ("cancel", cancel.clone(), "agent.cancel", &same, json!({}), json!({ "cancelled": true })),
        ("set_status", status.clone(), "agent.status", &same, json!({}), json!({ "delivered": true })),
        ("set_outcome", json!({ "outcome": "x" }), "agent.outcome", &same, json!({}), json!({ "accepted": true })),
        (
            "send_agent_message",
            json!({ "agent": "ops", "message": "x" }),
            "agent.message",
            &same,
            json!({ "task_number": 4 }),
            json!({ "sent": true, "task_number": 4 }),
        ),
        ("set_home_channel", json!({ "channel": "ops" }), "agent.home", &same, json!({}), json!({ "accepted": true })),
        ("restart", json!({ "reason": "x" }), "agent.restart", &same, json!({}), json!({ "accepted": true })),
        (
            "autonomy_complete",
            json!({ "summary": "all is well" }),
            "agent.complete",
            &same,
            json!({}),
            json!({ "accepted": true }),
        ),
        (
            "memory_persistence_complete",
            json!({ "outcome": "saved", "saved_memory_ids": ["m1"], "events": [{ "summary": "x" }] }),
            "memory.persisted",
            &same,
            json!({ "accepted": false }),
            json!({ "accepted": false }),
        ),
        (
            "project_manage",
            json!({ "action": "create", "name": "x", "root_path": "/srv/x" }),
            "project.manage",
            &same,
            json!({ "message": "made", "data": { "project_id": "p1" } }),
            json!({ "message": "made", "data": { "project_id": "p1" } }),
        ),
        // Case 61: what the embedder says besides that it is there goes nowhere.
        (
            "secret_set",
            json!({ "name": "GITHUB_TOKEN", "why": "to open the request" }),
            "secret.request",
            &same,
            json!({ "stored": true, "value": "x-of-no-account" }),
            json!({ "stored": true }),
        ),
    ] {
        let expected = if payload.is_null() { arguments.clone() } else { payload.clone() };
        let (outcome, events) = agent.call(tool, arguments, answer).await;
        assert_eq!(outcome.expect(tool).result, result, "{tool}");
        assert_eq!(events, [(kind.to_owned(), expected)], "{tool}");
    }
}

/// Case 12, and the rest of what makes no sense: nothing is handed over.
#[tokio::test]
async fn arguments_that_make_no_sense_are_refused_before_anything_is_handed_over() {
    let agent = Agent::new();
    for (tool, arguments) in [
        ("reply", json!({})),
        ("reply", json!({ "content": "" })),
        ("reply", json!({ "content": "x", "poll": { "question": "?", "answers": ["one"] } })),
        ("reply", json!({ "content": "x", "channel": "ops" })),
        ("react", json!({})),
        ("react", json!({ "emoji": "fine" })),
        ("ask", json!({ "question": "?", "options": ["only"] })),
        ("spawn_worker", json!({ "task": "x", "directory": "/a" })),
        ("spawn_worker", json!({ "task": "x", "worker_type": "other" })),
        ("spawn_worker", json!({ "task": "x", "task_number": 0 })),
        ("cancel", json!({ "process_type": "channel", "process_id": "x" })),
        ("set_status", json!({ "status": " " })),
        ("set_status", json!({ "status": "x", "worker": "w2" })),
        ("autonomy_complete", json!({ "summary": "short" })),
        ("restart", json!({})),
        ("memory_persistence_complete", json!({ "outcome": "saved" })),
        ("memory_persistence_complete", json!({ "outcome": "no_memories" })),
        ("memory_persistence_complete", json!({ "outcome": "no_memories", "reason": "x", "saved_memory_ids": ["m"] })),
        ("secret_set", json!({ "name": "GITHUB_TOKEN", "why": "x", "value": "v" })),
        ("secret_set", json!({ "name": "github token", "why": "x" })),
        ("secret_set", json!({ "name": "X", "why": " " })),
        ("project_manage", json!({ "action": "create", "name": "x" })),
        ("project_manage", json!({ "action": "create", "name": "x", "root_path": "x" })),
        ("project_manage", json!({ "action": "remove_worktree", "project_id": "p" })),
        ("project_manage", json!({ "action": "delete" })),
    ] {
        let (outcome, events) = agent.call(tool, arguments.clone(), json!({})).await;
        assert_eq!(outcome.expect_err(tool).kind, Kind::InvalidArguments, "{tool} {arguments}");
        assert!(events.is_empty(), "{tool} {arguments}");
    }
}

/// An embedder that forgets what an answer needs did something all the same.
#[tokio::test]
async fn an_answer_that_lacks_something_is_a_fault_of_the_embedder() {
    let agent = Agent::new();
    let (outcome, _) = agent.call("branch", json!({ "description": "x" }), json!({})).await;
    let failure = outcome.expect_err("a failure");
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert_eq!(failure.message, "the embedder's answer to `agent.branch` cannot be used: missing field `branch_id`");
    assert_eq!(failure.hint.as_deref(), Some("what it did is done; this is a fault of the embedder"));
}

/// Case 16.
#[tokio::test]
async fn a_long_status_is_cut_at_a_word_and_an_outcome_is_whole() {
    let agent = Agent::new();
    let long = "word ".repeat(60);
    let (outcome, events) = agent.call("set_status", json!({ "status": long }), json!({})).await;
    assert_eq!(outcome.expect("a result").notices, ["the first 254 of 300 bytes are shown"]);
    assert_eq!(events[0].1["status"], "word ".repeat(51).trim_end());
    let (outcome, events) = agent.call("set_status", json!({ "status": long, "kind": "outcome" }), json!({})).await;
    assert!(outcome.expect("a result").notices.is_empty());
    assert_eq!(events[0].1["status"], long);
}
