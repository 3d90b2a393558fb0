//! Of what one agent keeps nothing is ever seen by another: whatever two agents do, each gets what it would get alone, to the rank of a word.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::capability::Capability;
use toolcrib::records::{Attachment, Feed, Message, StepKind, WorkerStep};
use toolcrib_tests::{TestHost, is_long};

/// Cases, and steps of a case; all of it under `--long`.
const CASES: u32 = 10_000;
const STEPS: usize = 60;
/// Few words, keys and numbers: what two agents do meets.
const TEXTS: [&str; 6] =
    ["a red car", "the boat on the river", "tea at four", "the car is a boat", "red tea", "river car boat tea"];
const KEYS: [&str; 4] = ["one", "two", "three", "@pinned"];
/// The tools that keep something, and how each is called.
type Arguing = fn(u8, u8, u8) -> Value;

const TOOLS: [(&str, Arguing); 23] = [
    ("note_save", |a, b, c| json!({ "key": key(a), "content": text(b), "pin": c % 2 == 0 })),
    ("note_list", |_, _, _| json!({})),
    ("note_show", |a, _, _| json!({ "key": key(a) })),
    ("note_delete", |a, _, _| json!({ "key": key(a) })),
    ("note_pin", |a, _, _| json!({ "key": key(a) })),
    ("note_unpin", |a, _, _| json!({ "key": key(a) })),
    ("memory_save", |a, b, c| match c % 3 {
        0 => json!({ "content": text(a), "memory_type": "human", "human_id": key(b) }),
        _ => {
            json!({ "content": text(a), "associations": [{ "target_id": id(b), "relation": "updates" }], "importance": 0.9 })
        }
    }),
    ("memory_recall", |a, b, _| match b % 4 {
        0 => json!({ "mode": "recent" }),
        1 => json!({ "mode": "important", "sort_by": "most_accessed" }),
        2 => json!({ "mode": "typed", "memory_type": "human" }),
        _ => json!({ "query": text(a) }),
    }),
    ("memory_delete", |a, _, _| json!({ "memory_id": id(a) })),
    (
        "memory_consolidate",
        |a, b, c| json!({ "partition": "fact", "batch": [{ "survivor_id": id(a), "absorbed_id": id(b), "merged_content": text(c) }] }),
    ),
    (
        "task_create",
        |a, b, c| json!({ "title": text(a), "subtasks": [text(b)], "depends_on": if c % 2 == 0 { vec![number(c)] } else { vec![] } }),
    ),
    ("task_list", |a, _, _| if a % 2 == 0 { json!({}) } else { json!({ "limit": 1 }) }),
    ("task_show", |a, _, _| json!({ "task_number": number(a) })),
    ("task_update", |a, b, c| match c % 3 {
        0 => json!({ "task_number": number(a), "title": text(b) }),
        1 => json!({ "task_number": number(a), "status": "ready" }),
        _ => json!({ "task_number": number(a), "complete_subtask": 1, "expected_revision": b % 4 }),
    }),
    ("task_history", |a, b, c| match c % 3 {
        0 => json!({ "action": "list", "task_number": number(a) }),
        1 => json!({ "action": "diff", "task_number": number(a), "revision": 1, "other_revision": 2 }),
        _ => json!({ "action": "restore", "task_number": number(a), "revision": b % 4 }),
    }),
    ("add_task_comment", |a, b, _| json!({ "task_number": number(a), "content": text(b) })),
    ("goal_create", |a, b, c| match c % 2 {
        0 => json!({ "title": text(a) }),
        _ => json!({ "title": text(a), "parent": number(b) }),
    }),
    ("goal_list", |_, _, _| json!({})),
    ("goal_update", |a, b, _| json!({ "goal_number": number(a), "progress": b % 101, "note": text(b) })),
    ("channel_recall", |a, b, _| if b % 3 == 0 { json!({}) } else { json!({ "channel": key(a) }) }),
    ("attachment_recall", |a, b, _| match b % 2 {
        0 => json!({ "action": "list", "channel": key(a) }),
        _ => json!({ "action": "get_content", "attachment_id": key(b) }),
    }),
    ("worker_inspect", |a, _, _| json!({ "worker_id": key(a) })),
    // Every function of `records` by itself.
    ("keep", |a, b, c| match a % 9 {
        0 | 1 => json!({ "changes": [
            { "put": [key(b), key(c), { "text": text(c), "number": b }] }, { "embed": [key(b), key(c), "/text"] },
        ] }),
        2 => {
            json!({ "changes": [{ "expect": [key(b), key(c), u64::from(c % 3)] }, { "put": [key(b), key(c), text(b)] }] })
        }
        3 => json!({ "changes": [{ "delete": [key(b), key(c)] }] }),
        4 => json!({ "get": [key(b), key(c)] }),
        5 => json!({ "find": { "collection": key(b), "words": TEXTS[usize::from(c) % TEXTS.len()] } }),
        6 => json!({ "find": { "collection": key(b), "any": text(c), "limit": 1 } }),
        7 => json!({ "find": { "collection": key(b), "near": text(c), "equals": [["/number", b]] } }),
        _ => {
            json!({ "find": { "collection": key(b), "order": ["@changed", c % 2 == 0], "between": ["/number", 0, c], "limit": 2 } })
        }
    }),
];

/// What else an agent gets or gives.
const OTHERS: usize = 4;

fn key(number: u8) -> &'static str {
    KEYS[usize::from(number) % KEYS.len()]
}

fn text(number: u8) -> &'static str {
    TEXTS[usize::from(number) % TEXTS.len()]
}

fn id(number: u8) -> String {
    format!("m{}", number % 5 + 1)
}

fn number(number: u8) -> u8 {
    number % 4 + 1
}

/// One thing that one of two agents does.
#[derive(Clone, Copy, Debug)]
struct Step {
    agent: bool,
    what: usize,
    given: [u8; 3],
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<bool>(), 0..TOOLS.len() + OTHERS, any::<[u8; 3]>());
    prop::collection::vec(step.prop_map(|(agent, what, given)| Step { agent, what, given }), 1..STEPS)
}

/// A model whose vectors are how often a text has each of some letters.
const MODEL: &str = r#"
import json, sys
for line in sys.stdin:
    texts = json.loads(line)["input"]
    print(json.dumps({"data": [{"embedding": [text.count(letter) for letter in "abcerto"] + [1]} for text in texts]}), flush=True)
"#;

fn host() -> TestHost {
    let tools: Vec<&str> = TOOLS.iter().map(|(name, _)| *name).collect();
    let host = TestHost::new().plugin("keeper").grant("keeper", "records=true");
    host.user(&format!(
        "[toolset.t]\ntools = {tools:?}\nsession = [\"agent\"]\n[embeddings]\ncommand = [\"python3\", \"-c\", {MODEL:?}]\n\
         [tools]\nrecords_confirm = false\n[audit]\nrequired = false\n"
    ))
}

/// The session of one of the two agents of a case. Each case has agents of its own: hosts stay, and what earlier agents kept with them.
fn session(host: &TestHost, agent: bool, case: usize) -> CallContext {
    let (made, context) = host.parts();
    let name = format!("{}-{case}", if agent { "iris" } else { "otto" });
    let given = Map::from_iter([("agent".to_owned(), name.into())]);
    let session = Session::on(made.toolset("t").expect("the toolset"), given).expect("a session");
    context.clone().session(Arc::new(session))
}

/// What an agent gets for it.
async fn done(host: &TestHost, case: usize, Step { agent, what, given: [a, b, c] }: Step) -> Value {
    let ((made, _), context) = (host.parts(), session(host, agent, case));
    let fed = async |feed: Feed| json!(made.feed(&context, feed).await.map_err(|failure| failure.message));
    let at_ms = Some(u64::from(a) + 1);
    let (channel, content) = (key(b).to_owned(), text(c).to_owned());
    let mut got = match what.checked_sub(TOOLS.len()) {
        None => {
            let (tool, arguments) = TOOLS[what];
            let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments(a, b, c)) };
            let envelope = made.call(request, &context).await;
            // What is near is found once there is a vector of it.
            made.settled(Duration::from_secs(60)).await;
            match envelope.outcome {
                Ok(output) => json!({ "result": output.result, "notices": output.notices }),
                Err(failure) => failure.to_json(),
            }
        }
        Some(0) => {
            let pinned = made.pinned(&context).await;
            json!([pinned.pinned, pinned.notices])
        }
        Some(1) => {
            let id = Some(key(c).to_owned());
            fed(Feed::Message(Message { channel, author: "ada".into(), content, id, at_ms })).await
        }
        Some(2) => {
            let (id, name, media_type) = (key(c).to_owned(), "a.txt".into(), "text/plain".into());
            let text = Some(content);
            fed(Feed::Attachment(Attachment { channel, id, name, media_type, path: None, text, at_ms })).await
        }
        Some(_) => {
            let kind = if a % 2 == 0 { StepKind::Outcome } else { StepKind::Call };
            fed(Feed::Worker(WorkerStep { worker: channel, kind, content, at_ms })).await
        }
    };
    without_times(&mut got);
    got
}

/// Takes out what says when something was: two hosts never do it at the same time.
fn without_times(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_times),
        Value::Object(members) => {
            members.retain(|name, _| !name.ends_with("_ms") && !["made", "changed"].contains(&name.as_str()));
            if let Some(next) = members.get_mut("next") {
                *next = next.is_string().into();
            }
            members.values_mut().for_each(without_times);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// None of the tools that keep something is missing above.
#[test]
fn every_tool_that_keeps_something_takes_part() {
    let host = host();
    let plugins = host.parts().1.tools.plugins();
    let keeping = plugins.filter(|plugin| plugin.capabilities.contains(&Capability::Records));
    let keeping: BTreeSet<String> = keeping.flat_map(|plugin| plugin.tools.clone()).collect();
    let here: BTreeSet<String> = TOOLS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(here, keeping);
    let wit = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/records.wit"))
        .expect("the contract");
    let functions: Vec<&str> =
        wit.lines().filter_map(|line| line.split_once(": func(")).map(|(name, _)| name.trim()).collect();
    let taking_part = [
        "get", "put", "expect", "delete", "embed", "confirm", "commit", "equals", "between", "words", "any-word",
        "near", "order", "limit", "after", "run",
    ];
    assert_eq!(functions, taking_part, "a function that is new belongs into the steps of `keep`");
}

#[test]
fn each_agent_gets_what_it_would_get_alone() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let cases = if is_long() { CASES } else { CASES / 100 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 60, ..Config::default() };
    let (together, alone, case) = (host(), [host(), host()], AtomicUsize::default());
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        let case = case.fetch_add(1, Ordering::Relaxed);
        for step in steps {
            let got = runtime.block_on(done(&together, case, step));
            let by_itself = runtime.block_on(done(&alone[usize::from(step.agent)], case, step));
            if got != by_itself {
                return Err(TestCaseError::fail(format!("{step:?}: {got:#} instead of {by_itself:#}")));
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
