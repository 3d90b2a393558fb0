//! What plugins keep before the eyes of an agent: a client that subscribes to it is told of changes.

use crate::rig::Home;
use serde_json::{Value, json};
use toolcrib_tests::mcp::{Client, ERAS, Era, META, envelope};

const PINNED: &str = "toolcrib://pinned";
const UPDATED: &str = "notifications/resources/updated";

/// Subscribes as the era does it, and returns what the notices are marked with.
fn subscribe(agent: &mut Client) -> Value {
    match agent.era {
        Era::Legacy => {
            assert_eq!(agent.ask("resources/subscribe", json!({ "uri": PINNED })), json!({}));
            Value::Null
        }
        Era::Modern => {
            let both = json!({ "notifications": { "resourceSubscriptions": [PINNED, "toolcrib://other"] } });
            let id = agent.request("subscriptions/listen", both);
            let told = agent.notification("notifications/subscriptions/acknowledged")["params"].take();
            assert_eq!(told["notifications"], json!({ "resourceSubscriptions": [PINNED] }), "{told}");
            json!(id)
        }
    }
}

fn unsubscribe(agent: &mut Client, subscription: &Value) {
    match subscription.as_u64() {
        None => assert_eq!(agent.ask("resources/unsubscribe", json!({ "uri": PINNED })), json!({})),
        Some(id) => agent.cancel(id),
    }
}

fn is_told(agent: &mut Client, subscription: &Value) {
    let told = agent.notification(UPDATED)["params"].take();
    assert_eq!(told["uri"], PINNED, "{told}");
    assert_eq!(&told["_meta"][format!("{META}subscriptionId")], subscription, "{told}");
}

fn read(agent: &mut Client) -> String {
    let read = agent.ask("resources/read", json!({ "uri": PINNED }));
    read["contents"][0]["text"].as_str().expect("a text").to_owned()
}

#[test]
fn a_client_is_told_when_what_is_pinned_has_changed() {
    for era in ERAS {
        let home = Home::new();
        let mut agent = home.serve(era);
        let subscription = subscribe(&mut agent);
        assert_eq!(read(&mut agent), "");
        let note = |content: &str, pin: bool| json!({ "key": "day", "content": content, "pin": pin });
        envelope(&agent.call("note_save", note("Tuesday", true)));
        is_told(&mut agent, &subscription);
        assert_eq!(read(&mut agent), "# day\n\nTuesday\n");

        // What is not pinned, stays as it was or is another agent's is nothing to tell.
        envelope(&agent.call("note_save", json!({ "key": "other", "content": "x" })));
        envelope(&agent.call("note_save", note("Tuesday", true)));
        let beside = |options: &[&str], content: &str| {
            let note = note(content, true).to_string();
            let (status, said) = home.program.call(&[options, &["note_save", &note]].concat());
            assert_eq!(status, 0, "{said}");
        };
        beside(&["--set", "agent.name=ada"], "of ada");
        assert_eq!(read(&mut agent), "# day\n\nTuesday\n");
        agent.settle();
        assert_eq!(agent.count(|message| message["method"] == UPDATED), 0, "{era:?}");

        // Another program of the same agent: it is seen a little later.
        beside(&[], "Friday");
        is_told(&mut agent, &subscription);
        assert_eq!(read(&mut agent), "# day\n\nFriday\n");

        unsubscribe(&mut agent, &subscription);
        envelope(&agent.call("note_unpin", json!({ "key": "day" })));
        agent.settle();
        assert_eq!(agent.count(|message| message["method"] == UPDATED), 0, "{era:?}");
        assert_eq!(read(&mut agent), "");
    }
}

#[test]
fn nothing_else_can_be_subscribed_to() {
    let home = Home::new();
    let mut agent = home.serve(Era::Legacy);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let id = agent.request(method, json!({ "uri": "toolcrib://output/x" }));
        let (code, message) = agent.error(id);
        assert_eq!((code, message.as_str()), (-32602, "only `toolcrib://pinned` changes, and can be subscribed to"));
    }
}
