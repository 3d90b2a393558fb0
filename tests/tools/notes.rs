//! Notes. The numbers are those of the cases of agents whose tools are programs.

use serde_json::{Value, json};
use std::sync::Arc;
use toolcrib::call::session::Session;
use toolcrib::envelope::Kind;
use toolcrib::records::Shown;
use toolcrib_tests::{Program, TestHost};

fn host() -> TestHost {
    TestHost::new()
        .user("[toolset.otter]\ntools = [\"note_save\", \"note_list\", \"note_show\"]\nsession = [\"agent\"]\n")
}

async fn save(host: &TestHost, key: &str, content: &str) -> Value {
    host.result("note_save", json!({ "key": key, "content": content })).await
}

/// Case 30: what is saved anew keeps its pin and the time when it was made.
#[tokio::test(flavor = "multi_thread")]
async fn a_note_is_saved_overwritten_shown_and_deleted() {
    let host = host();
    let saved = host.result("note_save", json!({ "key": "a", "content": "one", "pin": true })).await;
    assert_eq!(saved, json!({ "key": "a", "overwrote": false, "pinned": true }));
    let first = host.result("note_show", json!({ "key": "a" })).await;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    assert_eq!(save(&host, "a", "two").await, json!({ "key": "a", "overwrote": true, "pinned": true }));
    let second = host.result("note_show", json!({ "key": "a" })).await;
    assert_eq!(
        (&second["content"], &second["pinned"], &second["made_ms"]),
        (&json!("two"), &json!(true), &first["made_ms"])
    );
    assert!(second["changed_ms"].as_u64() > first["changed_ms"].as_u64(), "{first} {second}");
    save(&host, "b", "\n  first line of b\nsecond").await;
    let listed = host.result("note_list", json!({})).await;
    let rows: Vec<_> =
        listed["notes"].as_array().expect("a list").iter().map(|row| (&row["key"], &row["preview"])).collect();
    assert_eq!(rows, [(&json!("b"), &json!("first line of b")), (&json!("a"), &json!("two"))]);
    // Case 37.
    assert_eq!(host.result("note_delete", json!({ "key": "a" })).await, json!({ "key": "a", "deleted": true }));
    let again = host.call("note_delete", json!({ "key": "a" })).await.outcome.expect("a result");
    assert_eq!((&again.result["deleted"], again.notices), (&json!(false), vec!["there was no note `a`".to_owned()]));
    assert_eq!(host.failure("note_show", json!({ "key": "a" })).await.hint.as_deref(), Some("there is `b`"));
}

/// Cases 31, 32 and 35.
#[tokio::test(flavor = "multi_thread")]
async fn keys_texts_and_pins_have_bounds() {
    let host = host();
    for key in ["Abc", &"a".repeat(65), "-a", "", "a b", "../a"] {
        let refused = host.failure("note_save", json!({ "key": key, "content": "x" })).await;
        assert_eq!(refused.kind, Kind::InvalidArguments, "{key}");
        assert!(refused.hint.is_some_and(|hint| hint.contains("1 to 64 of a-z")));
    }
    let refused = host.failure("note_save", json!({ "key": "a", "content": "x".repeat(4097) })).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::Limit, "a note of 4097 bytes is too long (limit: 4096)"));
    for number in 0..4 {
        let note = json!({ "key": format!("pin{number}"), "content": "x".repeat(4096), "pin": true });
        assert_eq!(host.result("note_save", note).await["pinned"], true);
    }
    let over = host.failure("note_save", json!({ "key": "more", "content": "y", "pin": true })).await;
    assert_eq!(
        (over.kind, &*over.message),
        (Kind::Limit, "all pinned notes would have 16385 bytes together (limit: 16384)")
    );
    assert_eq!(
        host.failure("note_show", json!({ "key": "more" })).await.kind,
        Kind::ExecutionFailed,
        "neither is changed"
    );
    save(&host, "more", "y").await;
    assert_eq!(host.failure("note_pin", json!({ "key": "more" })).await.kind, Kind::Limit);
    host.result("note_unpin", json!({ "key": "pin0" })).await;
    assert_eq!(host.result("note_pin", json!({ "key": "more" })).await, json!({ "key": "more", "pinned": true }));
    assert_eq!(host.failure("note_pin", json!({ "key": "absent" })).await.kind, Kind::ExecutionFailed);
}

/// Cases 33, 34 and 36.
#[tokio::test(flavor = "multi_thread")]
async fn there_are_64_notes_and_of_two_that_would_be_the_last_one_is() {
    let host = Arc::new(host());
    for number in 0..63 {
        save(&host, &format!("n{number:02}"), "x").await;
    }
    let both = [("last-a", host.clone()), ("last-b", host.clone())].map(|(key, host)| {
        tokio::spawn(async move { host.call("note_save", json!({ "key": key, "content": "x" })).await.outcome.is_ok() })
    });
    let mut won = 0;
    for one in both {
        won += u32::from(one.await.expect("no panic"));
    }
    assert_eq!(won, 1);
    let full = host.failure("note_save", json!({ "key": "more", "content": "x" })).await;
    assert_eq!((full.kind, &*full.message), (Kind::Limit, "there are 64 notes already (limit: 64)"));
    assert_eq!(save(&host, "n00", "y").await["overwrote"], true);
    let unknown = host.failure("note_show", json!({ "key": "zz" })).await.hint.expect("a hint");
    assert!(unknown.ends_with(", and 44 more") && unknown.matches('`').count() == 40, "{unknown}");
}

/// Case 41: what is kept is there after a restart, for the agent whose it is and for nobody else.
#[test]
fn notes_stay_and_are_the_agents_own() {
    let program = Program::new();
    let config = "[toolset.otter]\ntools = [\"note_save\", \"note_list\"]\nsession = [\"agent\"]\n";
    program.write("config/toolcrib/toolcrib.toml", config);
    let run = |lines: &[Value]| -> Vec<Value> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        toolcrib_tests::outcome::answers(&program.run_with(&["run"], &text))
    };
    let open = |agent: &str| json!({ "id": "open", "open": { "toolset": "otter", "bind": { "agent": agent } } });
    let save =
        json!({ "id": "save", "session": "s1", "tool": "note_save", "arguments": { "key": "a", "content": "mine" } });
    let list = json!({ "id": "list", "session": "s1", "tool": "note_list", "arguments": {} });
    run(&[open("one"), save]);
    for (agent, count) in [("one", 1), ("two", 0), ("One", 0), ("one ", 0), ("one\",\"notes", 0)] {
        let answers = run(&[open(agent), list.clone()]);
        let listed = answers.iter().find(|answer| answer["id"] == "list").expect("an answer");
        assert_eq!(listed["result"]["notes"].as_array().map(Vec::len), Some(count), "{agent}: {listed}");
    }
    let file = program.path("state/toolcrib/store.sqlite");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).expect("the store").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// What one agent keeps, no other sees by any tool.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_one_agent_is_seen_by_another() {
    let host = host();
    host.call_as("otter", "one", "note_save", json!({ "key": "a", "content": "of one" })).await.expect("saved");
    assert_eq!(host.call_as("otter", "two", "note_list", json!({})).await, Ok(json!({ "notes": [] })));
    let missing = host.call_as("otter", "two", "note_show", json!({ "key": "a" })).await.expect_err("not there");
    assert_eq!(missing.hint.as_deref(), Some("there are no notes yet"));
    let saved =
        host.call_as("otter", "two", "note_save", json!({ "key": "a", "content": "of two" })).await.expect("saved");
    assert_eq!(saved["overwrote"], false);
    let shown = host.call_as("otter", "one", "note_show", json!({ "key": "a" })).await.expect("a note");
    assert_eq!(shown["content"], "of one");
}

/// Cases 38 and 41: what is pinned is handed out for the agent's prompt: to this agent, where it has a tool of notes, and as long as notes may be kept.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_pinned_is_shown_to_its_agent_alone() {
    let toolsets = "[toolset.otter]\ntools = [\"note_save\", \"note_unpin\", \"note_delete\"]\nsession = [\"agent\"]\n\
                    [toolset.clock]\ntools = [\"time\"]\nsession = [\"agent\"]\n";
    let host = TestHost::new().user(toolsets).plugin("keeper").grant("keeper", "records=true");
    let pinned = async |toolset: &str, agent: &str| -> Vec<(String, String)> {
        let (called, context) = host.parts();
        let given = json!({ "agent": agent }).as_object().expect("an object").clone();
        let session = Session::on(called.toolset(toolset).expect("a toolset"), given).expect("a session");
        let shown = called.pinned(&context.clone().session(Arc::new(session))).await;
        shown.pinned.into_iter().map(|pinned| (pinned.key, pinned.text)).collect()
    };
    let one = |key: &str, text: &str| vec![(key.to_owned(), text.to_owned())];
    assert!(pinned("otter", "iris").await.is_empty());
    assert!(!host.dirs().state.join("store.sqlite").exists(), "looking makes no store");
    for (agent, key, pin) in [("iris", "b", true), ("iris", "a", false), ("ada", "c", true)] {
        let note = json!({ "key": key, "content": format!("\u{1b}[31mof {agent}"), "pin": pin });
        host.call_as("otter", agent, "note_save", note).await.expect("saved");
    }
    assert_eq!(pinned("otter", "iris").await, one("b", "of iris"));
    assert_eq!(pinned("otter", "ada").await, one("c", "of ada"));
    assert!(pinned("otter", "agent").await.is_empty() && pinned("clock", "iris").await.is_empty());
    // It follows the note.
    host.call_as("otter", "iris", "note_save", json!({ "key": "b", "content": "new" })).await.expect("saved");
    assert_eq!(pinned("otter", "iris").await, one("b", "new"));
    host.call_as("otter", "iris", "note_unpin", json!({ "key": "b" })).await.expect("unpinned");
    assert!(pinned("otter", "iris").await.is_empty());
    host.call_as("otter", "ada", "note_delete", json!({ "key": "c" })).await.expect("deleted");
    assert!(pinned("otter", "ada").await.is_empty());
    // Of any plugin, in the default session: by plugin and key, texts alone, and 64 KiB.
    host.result("note_save", json!({ "key": "n", "content": "a note", "pin": true })).await;
    let long = "x".repeat(30 << 10);
    let changes = json!([{ "put": ["@pinned", "1", { "no": "text" }] }, { "put": ["@pinned", "2", long] }, { "put": ["@pinned", "3", long] }]);
    host.result("keep", json!({ "changes": changes })).await;
    let (called, context) = host.parts();
    let all = called.pinned(context).await;
    let names: Vec<_> = all.pinned.iter().map(|pinned| (&*pinned.plugin, &*pinned.key)).collect();
    assert_eq!(names, [("keeper", "2"), ("keeper", "3"), ("notes", "n")]);
    host.result("keep", json!({ "changes": [{ "put": ["@pinned", "4", long] }] })).await;
    let cut = called.pinned(context).await;
    assert_eq!((cut.pinned.len(), cut.notices), (2, vec!["more is pinned than the 64 KiB that are shown".to_owned()]));
    // Where the policy takes the right away, nothing is shown that was kept before.
    let closed = host.policy("plugin.keeper.records = false\nplugin.notes.records = false");
    let (called, context) = closed.parts();
    assert_eq!(called.pinned(context).await, Shown::default());
}

/// Case 40: where the store cannot be read, nothing is shown, and why; the rest goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_shows_nothing_and_says_so() {
    let host = TestHost::new();
    std::fs::write(host.dirs().state.join("store.sqlite"), "no database".repeat(1000)).expect("a file");
    let (called, context) = host.parts();
    let shown = called.pinned(context).await;
    assert!(shown.pinned.is_empty(), "{shown:?}");
    assert!(
        shown.notices[0].starts_with("what is pinned cannot be shown: the store cannot be used: its file is damaged"),
        "{shown:?}"
    );
    assert_eq!(host.failure("note_list", json!({})).await.kind, Kind::Unavailable);
    assert_eq!(host.result("time", json!({})).await["source"], "harness");
}
