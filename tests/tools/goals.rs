//! Goals.

use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

#[tokio::test(flavor = "multi_thread")]
async fn a_goal_is_set_pursued_and_reached() {
    let host = TestHost::new();
    let made = host.result("goal_create", json!({ "title": "All on ARM", "description": "cheaper" })).await;
    assert_eq!(made, json!({ "goal_number": 1, "state": "active", "revision": 1 }));
    host.result("goal_create", json!({ "title": "The builder on ARM", "parent": 1 })).await;
    let nearer = json!({ "goal_number": 1, "progress": 40, "note": "billing runs" });
    assert_eq!(host.result("goal_update", nearer).await["revision"], 2);
    host.result("goal_update", json!({ "goal_number": 2, "state": "done", "progress": 100 })).await;
    let active = host.result("goal_list", json!({ "state": "active" })).await;
    assert_eq!(
        active,
        json!({ "total": 1, "goals": [{
            "goal_number": 1, "title": "All on ARM", "description": "cheaper", "state": "active", "progress": 40,
            "last_note": "billing runs", "revision": 2,
        }] })
    );
    let all = host.result("goal_list", json!({})).await;
    assert_eq!((&all["total"], &all["goals"][1]["parent"]), (&json!(2), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_and_nothing_is_changed() {
    let host = TestHost::new();
    host.result("goal_create", json!({ "title": "All on ARM" })).await;
    host.result("goal_update", json!({ "goal_number": 1, "progress": 10 })).await;
    for (change, kind, said) in [
        (json!({ "progress": 101 }), Kind::InvalidArguments, "`progress` is 101"),
        (json!({ "title": " " }), Kind::InvalidArguments, "`title` has 1 to 200 bytes, in one line"),
        (json!({ "note": "" }), Kind::InvalidArguments, "`note` has 1 to 2000 bytes"),
        (json!({ "description": "x".repeat(20_001) }), Kind::Limit, "`description` has 20001 bytes (limit: 20000)"),
        (
            json!({ "title": "x", "expected_revision": 1 }),
            Kind::Busy,
            "goal 1 was changed meanwhile: it has revision 2",
        ),
        (json!({ "goal_number": 7 }), Kind::ExecutionFailed, "there is no goal 7"),
    ] {
        let mut arguments = json!({ "goal_number": 1 });
        arguments.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        let refused = host.failure("goal_update", arguments).await;
        assert_eq!((refused.kind, &*refused.message), (kind, said));
    }
    assert_eq!(host.failure("goal_create", json!({ "title": "x", "parent": 9 })).await.message, "there is no goal 9");
    let all: Value = host.result("goal_list", json!({})).await;
    assert_eq!((&all["total"], &all["goals"][0]["revision"]), (&json!(1), &json!(2)));
}
