//! Transcripts: what the program around the host feeds, and what its agent reads. The numbers are those of the cases of an agent of several
//! processes.

use serde_json::{Value, json};
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::TestHost;

async fn feed(host: &TestHost, what: Value) -> Result<(), Failure> {
    let (called, context) = host.parts();
    called.feed(context, serde_json::from_value(what).expect("what is fed")).await
}

async fn says(host: &TestHost, channel: &str, content: &str, at_ms: u64) {
    let message = json!({ "channel": channel, "author": "ada", "content": content, "id": content, "at_ms": at_ms });
    feed(host, json!({ "message": message })).await.expect("kept");
}

async fn recall(host: &TestHost, question: Value) -> Value {
    host.result("channel_recall", question).await
}

fn contents(answer: &Value) -> Vec<&str> {
    let said = answer["messages"].as_array().into_iter().flatten();
    said.map(|message| message["content"].as_str().expect("a text")).collect()
}

/// Case 48: a name that means several channels takes none of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_meant_by_its_name_or_listed() {
    let host = TestHost::new();
    says(&host, "dev", "one", 1000).await;
    says(&host, "devops", "two", 2000).await;
    says(&host, "dev", "three", 3000).await;
    let listed = json!([
        { "channel": "dev", "messages": 2, "last_activity": "1970-01-01T00:00:03Z" },
        { "channel": "devops", "messages": 1, "last_activity": "1970-01-01T00:00:02Z" },
    ]);
    assert_eq!(recall(&host, json!({})).await, json!({ "channels": listed }));
    for (asked, said) in
        [("de", "several channels are meant: name one of them"), ("sales", "no channel is called so: these are there")]
    {
        let answer = host.call("channel_recall", json!({ "channel": asked })).await.outcome.expect("a list");
        assert_eq!((&answer.result["channels"], answer.notices), (&listed, vec![said.to_owned()]));
    }
    assert_eq!(contents(&recall(&host, json!({ "channel": "dev" })).await), ["three", "one"]);
    assert_eq!(contents(&recall(&host, json!({ "channel": "OPS" })).await), ["two"]);
    let oldest = recall(&host, json!({ "channel": "#dev", "oldest_first": true, "limit": 1 })).await;
    assert_eq!(
        (contents(&oldest), &oldest["total"], &oldest["messages"][0]["at"]),
        (vec!["one"], &json!(2), &json!("1970-01-01T00:00:01Z"))
    );
    // The same message at the same time takes its own place.
    says(&host, "dev", "one", 1000).await;
    assert_eq!(recall(&host, json!({ "channel": "dev" })).await["total"], 2);
}

/// Case 49: times are compared as times, also on one day and in other zones.
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_bounded_by_times() {
    let host = TestHost::new();
    for (text, at_ms) in [("nine", 32_400_000), ("ten", 36_000_000), ("eleven", 39_600_000)] {
        says(&host, "dev", text, at_ms).await;
    }
    let between = async |bounds: Value| {
        let mut question = json!({ "channel": "dev", "oldest_first": true });
        question.as_object_mut().expect("an object").extend(bounds.as_object().expect("an object").clone());
        contents(&recall(&host, question).await).iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(between(json!({ "before": "1970-01-01T10:00:00Z" })).await, ["nine"]);
    assert_eq!(between(json!({ "before": "1970-01-01T12:00:01+02:00" })).await, ["nine", "ten"]);
    assert_eq!(between(json!({ "after": "1970-01-01T10:00:00Z" })).await, ["eleven"]);
    assert_eq!(between(json!({ "after": "1970-01-01T09:00:00Z", "before": "1970-01-01T11:00:00Z" })).await, ["ten"]);
    for odd in [json!({ "channel": "dev", "before": "noon" }), json!({ "channel": "dev", "limit": 0 })] {
        assert_eq!(host.failure("channel_recall", odd).await.kind, Kind::InvalidArguments);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_is_listed_and_read() {
    let host = TestHost::new();
    for (id, text) in [("a1", Some("red")), ("b2", None)] {
        let file = json!({ "channel": "dev", "id": id, "name": "plan.txt", "media_type": "text/plain", "path": "in/plan.txt", "text": text, "at_ms": 5 });
        feed(&host, json!({ "attachment": file })).await.expect("kept");
    }
    let listed = host.result("attachment_recall", json!({ "action": "list", "channel": "dev" })).await;
    assert_eq!(listed["attachments"].as_array().map(Vec::len), Some(2));
    assert_eq!(listed["attachments"][0]["media_type"], "text/plain");
    let get = |action: &str, id: &str| json!({ "action": action, "attachment_id": id });
    assert_eq!(host.result("attachment_recall", get("get_content", "a")).await, json!({ "content": "red" }));
    assert_eq!(host.result("attachment_recall", get("get_path", "b2")).await, json!({ "path": "in/plan.txt" }));
    assert_eq!(
        host.failure("attachment_recall", get("get_content", "b2")).await.message,
        "`b2` (plan.txt) has no text here"
    );
    assert_eq!(host.failure("attachment_recall", get("get_path", "z")).await.message, "there is no attachment `z`");
    assert_eq!(host.failure("attachment_recall", json!({ "action": "get_path" })).await.kind, Kind::InvalidArguments);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_worker_that_has_ended_is_inspected() {
    let host = TestHost::new();
    let step = async |kind: &str, content: &str, at_ms: u64| {
        let step = json!({ "worker": "worker1", "kind": kind, "content": content, "at_ms": at_ms });
        feed(&host, json!({ "worker": step })).await.expect("kept");
    };
    let none = host.failure("worker_inspect", json!({ "worker_id": "worker1" })).await;
    assert_eq!(none.hint.as_deref(), Some("no worker has done anything yet"));
    step("call", "exec wc", 1).await;
    step("result", &"x".repeat(3000), 2).await;
    assert_eq!(
        host.failure("worker_inspect", json!({ "worker_id": "worker1" })).await.message,
        "`worker1` has not ended"
    );
    step("outcome", "done", 3).await;
    // A step that comes late takes nothing back.
    step("text", "late", 4).await;
    let seen = host.call("worker_inspect", json!({ "worker_id": "work", "limit": 3 })).await.outcome.expect("steps");
    let steps: Vec<_> = seen.result["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| step["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!((steps, &seen.result["total"]), (vec!["result", "outcome", "text"], &json!(4)));
    assert_eq!(seen.notices, ["it made 1 steps before these"]);
    let cut = seen.result["steps"][0]["content"].as_str().expect("a text");
    assert!(cut.ends_with("… (3000 bytes in all)") && cut.len() < 2100, "{cut}");
}

/// Case 50, and what may be fed at all.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_fed_is_its_agents_alone() {
    let toolsets =
        "[toolset.otter]\ntools = [\"channel_recall\"]\nsession = [\"agent\"]\n[toolset.clock]\ntools = [\"time\"]\n";
    let host = TestHost::new().user(toolsets);
    let (called, context) = host.parts();
    let of = |toolset: &str, given: Value| {
        let given = given.as_object().expect("an object").clone();
        let session = Session::on(called.toolset(toolset).expect("a toolset"), given).expect("a session");
        context.clone().session(Arc::new(session))
    };
    let said = json!({ "message": { "channel": "dev", "author": "ada", "content": "\u{1b}[2Jhello" } });
    let said = || serde_json::from_value(said.clone()).expect("what is fed");
    called.feed(&of("otter", json!({ "agent": "iris" })), said()).await.expect("kept");
    assert_eq!(recall(&host, json!({})).await, json!({}), "the agent of the program has nothing");
    let refused = called.feed(&of("clock", json!({})), said()).await.expect_err("nobody reads it");
    assert_eq!((refused.kind, &*refused.message), (Kind::Unavailable, "nothing reads what is fed in this session"));
    let closed = TestHost::new().policy("plugin.transcripts.records = false");
    let message = json!({ "message": { "channel": "dev", "author": "a", "content": "b" } });
    assert_eq!(feed(&closed, message).await.expect_err("no right").kind, Kind::Unavailable);
    for (odd, kind) in [
        (json!({ "message": { "channel": "", "author": "a", "content": "b" } }), Kind::InvalidArguments),
        (json!({ "message": { "channel": "a\nb", "author": "a", "content": "b" } }), Kind::InvalidArguments),
        (json!({ "message": { "channel": "a", "author": "\u{1b}[31ma", "content": "b" } }), Kind::InvalidArguments),
        (json!({ "message": { "channel": "a", "author": "a", "content": "b".repeat(50_001) } }), Kind::Limit),
    ] {
        assert_eq!(feed(&host, odd).await.expect_err("refused").kind, kind);
    }
    let shown = TestHost::new();
    let said = json!({ "message": { "channel": "dev", "author": "ada", "content": "\u{1b}[2Jhello" } });
    feed(&shown, said).await.expect("kept");
    let answer = recall(&shown, json!({ "channel": "dev" })).await;
    assert_eq!(contents(&answer), ["hello"], "without what a screen obeys");
}
