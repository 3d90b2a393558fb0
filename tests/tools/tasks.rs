//! Tasks. The numbers are those of the cases of an agent of several processes.

use serde_json::{Value, json};
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::{ActionKind, Answer};
use toolcrib_tests::TestHost;

fn host() -> TestHost {
    TestHost::new().set("tools.records_confirm=false")
}

async fn make(host: &TestHost, task: Value) -> u64 {
    host.result("task_create", task).await["task_number"].as_u64().expect("a number")
}

async fn update(host: &TestHost, number: u64, change: Value) -> Result<Value, Failure> {
    let mut arguments = json!({ "task_number": number });
    arguments.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
    host.call("task_update", arguments).await.outcome.map(|output| output.result)
}

async fn show(host: &TestHost, number: u64) -> Value {
    host.result("task_show", json!({ "task_number": number })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_made_listed_shown_and_done() {
    let host = host();
    let paint = json!({ "title": "Paint", "description": "green", "subtasks": ["sand", "paint"], "priority": "high", "metadata": { "room": 3 } });
    assert_eq!(
        host.result("task_create", paint).await,
        json!({ "task_number": 1, "status": "pending_approval", "revision": 1 })
    );
    assert_eq!(make(&host, json!({ "title": "Dry", "depends_on": [1], "status": "backlog" })).await, 2);
    let listed = host.result("task_list", json!({})).await;
    let numbers: Vec<_> = listed["tasks"].as_array().expect("tasks").iter().map(|task| &task["task_number"]).collect();
    assert_eq!((numbers, &listed["total"]), (vec![&json!(2), &json!(1)], &json!(2)));
    assert_eq!(listed["tasks"][0]["blocked_by"], json!([1]));
    assert_eq!(listed["tasks"][1]["subtasks"], "0 of 2");
    for (filter, found) in [(json!({ "status": "backlog" }), 2), (json!({ "priority": "high" }), 1)] {
        let listed = host.result("task_list", filter).await;
        assert_eq!((&listed["tasks"][0]["task_number"], &listed["total"]), (&json!(found), &json!(1)));
    }
    update(&host, 2, json!({ "status": "ready" })).await.expect("ready");
    let waits = update(&host, 2, json!({ "status": "in_progress" })).await.expect_err("it waits");
    assert_eq!(waits.message, "it waits for what is not done: task 1");
    for change in [
        json!({ "status": "ready" }),
        json!({ "status": "in_progress", "complete_subtask": 2 }),
        json!({ "status": "done", "metadata": { "room": null, "by": "ada" } }),
    ] {
        update(&host, 1, change).await.expect("changed");
    }
    let shown = show(&host, 1).await;
    assert_eq!((&shown["status"], &shown["revision"], &shown["approved"]), (&json!("done"), &json!(4), &json!(true)));
    assert_eq!(shown["subtasks"], json!([{ "title": "sand", "done": false }, { "title": "paint", "done": true }]));
    assert_eq!(shown["metadata"], json!({ "by": "ada" }));
    update(&host, 2, json!({ "status": "in_progress" })).await.expect("it waits for nothing any more");
    assert_eq!(host.failure("task_show", json!({ "task_number": 9 })).await.message, "there is no task 9");
}

/// Case 46: one of two changes of what was read is made.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_changes_of_one_revision_one_is_made() {
    let host = host();
    let number = make(&host, json!({ "title": "Paint" })).await;
    for title in ["one", "two"] {
        update(&host, number, json!({ "title": title })).await.expect("changed");
    }
    let both = |title: &'static str| update(&host, number, json!({ "title": title, "expected_revision": 3 }));
    let (one, other) = tokio::join!(both("left"), both("right"));
    let (won, lost) = if one.is_ok() { (one, other) } else { (other, one) };
    assert_eq!(won.expect("one wins")["revision"], 4);
    let lost = lost.expect_err("the other does not");
    assert!(lost.kind == Kind::Busy && lost.message.contains("revision 4"), "{lost:?}");
}

/// Case 47: a worker changes its own task alone, and approves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_changes_how_far_its_own_task_is_and_nothing_else() {
    let host = host();
    let own = make(&host, json!({ "title": "Paint", "subtasks": ["sand"] })).await;
    let other = make(&host, json!({ "title": "Dry" })).await;
    let as_worker = async |number: u64, mut change: Value| {
        change["worker_of"] = json!(own);
        update(&host, number, change).await
    };
    for (number, change) in [
        (other, json!({ "complete_subtask": 1 })),
        (own, json!({ "status": "ready" })),
        (own, json!({ "title": "Paint it red" })),
        (own, json!({ "add_subtasks": ["more"] })),
        (own, json!({ "depends_on": [other] })),
    ] {
        assert_eq!(as_worker(number, change.clone()).await.expect_err("refused").kind, Kind::Denied, "{change}");
    }
    update(&host, own, json!({ "status": "ready" })).await.expect("approved by somebody else");
    for change in [
        json!({ "status": "in_progress" }),
        json!({ "complete_subtask": 1, "metadata": { "a": 1 } }),
        json!({ "status": "done" }),
    ] {
        as_worker(own, change).await.expect("its own work");
    }
    assert_eq!(as_worker(own, json!({ "status": "ready" })).await.expect_err("not its word").kind, Kind::Denied);
}

/// Case 47: a person approves, and what was approved is what stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_a_task_and_other_words_for_it() {
    let host = TestHost::new().answering(Answer::No);
    let paint = json!({ "title": "Paint", "description": "green", "subtasks": ["sand"] });
    let number = make(&host, paint.clone()).await;
    assert!(host.asked().is_empty(), "nothing is approved by making it");
    for change in [json!({ "status": "ready" }), json!({ "status": "ready", "title": "Other" })] {
        let refused = update(&host, number, change).await.expect_err("the person says no");
        assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "Change denied by user."));
    }
    assert_eq!(show(&host, number).await["status"], "pending_approval");
    let asked = host.asked();
    assert_eq!((asked[0].kind, &*asked[0].action), (ActionKind::Change, "approve task 1: Paint"));
    assert_eq!(asked[0].details.as_deref(), Some("green\n- sand"));
    // No way around: by the backlog, or made ready at once.
    update(&host, number, json!({ "status": "backlog" })).await.expect("not now");
    assert!(update(&host, number, json!({ "status": "ready" })).await.is_err());
    let mut ready = paint;
    ready["status"] = json!("ready");
    assert_eq!(host.failure("task_create", ready).await.kind, Kind::Denied);
    assert_eq!(host.result("task_list", json!({})).await["total"], 1);

    let host = TestHost::new().answering(Answer::Yes);
    let number = make(&host, json!({ "title": "Paint" })).await;
    update(&host, number, json!({ "status": "ready" })).await.expect("approved");
    assert_eq!(host.asked().len(), 1);
    update(&host, number, json!({ "status": "in_progress", "metadata": { "a": 1 } })).await.expect("as approved");
    update(&host, number, json!({ "status": "ready", "priority": "low" })).await.expect("as approved");
    assert_eq!(host.asked().len(), 1, "it says what was approved");
    update(&host, number, json!({ "title": "Paint it red" })).await.expect("approved anew");
    let restore = json!({ "action": "restore", "task_number": number, "revision": 1 });
    host.result("task_history", restore).await;
    let actions: Vec<String> = host.asked().iter().map(|asked| asked.action.clone()).collect();
    assert_eq!(
        actions[1..],
        [
            "change what task 1 says, which was approved: Paint it red",
            "change what task 1 says, which was approved: Paint"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_and_nothing_is_changed() {
    let host = host();
    let number = make(&host, json!({ "title": "Paint" })).await;
    let second = make(&host, json!({ "title": "Dry", "depends_on": [number] })).await;
    for (change, kind, said) in [
        (json!({ "status": "done" }), Kind::InvalidArguments, "a task that is `pending_approval` cannot become `done`"),
        (json!({ "depends_on": [second] }), Kind::InvalidArguments, "`depends_on` would go in a circle: 1 -> 2 -> 1"),
        (json!({ "depends_on": [number] }), Kind::InvalidArguments, "`depends_on` would go in a circle: 1 -> 1"),
        (json!({ "depends_on": [9] }), Kind::InvalidArguments, "`depends_on`: there is no task 9"),
        (json!({ "complete_subtask": 1 }), Kind::InvalidArguments, "`complete_subtask` is 1"),
        (json!({ "title": " " }), Kind::InvalidArguments, "`title`: a title has 1 to 200 bytes, in one line"),
        (
            json!({ "description": "x".repeat(20_001) }),
            Kind::Limit,
            "20001 bytes of `description` are too many (limit: 20000)",
        ),
        (
            json!({ "metadata": { "a": "x".repeat(9000) } }),
            Kind::Limit,
            "9008 bytes of `metadata` are too many (limit: 8192)",
        ),
        (json!({ "add_subtasks": vec!["x"; 51] }), Kind::Limit, "51 subtasks are too many (limit: 50)"),
    ] {
        let refused = update(&host, number, change).await.expect_err("refused");
        assert_eq!((refused.kind, &*refused.message), (kind, said));
    }
    assert_eq!(show(&host, number).await["revision"], 1);
    assert_eq!(
        host.failure("task_create", json!({ "title": "x", "status": "done" })).await.kind,
        Kind::InvalidArguments
    );
    for content in ["abc", " a ", &"x".repeat(4001)] {
        let comment = json!({ "task_number": number, "content": content });
        assert_eq!(host.failure("add_task_comment", comment).await.kind, Kind::InvalidArguments, "{content:.9}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_be_seen_and_taken_back_as_it_was() {
    let host = host();
    let number = make(&host, json!({ "title": "Paint", "description": "green" })).await;
    update(&host, number, json!({ "description": "red", "edit_summary": "another colour" })).await.expect("changed");
    update(&host, number, json!({ "status": "ready" })).await.expect("changed");
    let history = async |more: Value| {
        let mut arguments = json!({ "task_number": number });
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        host.result("task_history", arguments).await
    };
    let listed = history(json!({ "action": "list" })).await;
    let revisions: Vec<_> = listed["revisions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| (&row["revision"], &row["edit_summary"]))
        .collect();
    assert_eq!(
        revisions,
        [(&json!(3), &Value::Null), (&json!(2), &json!("another colour")), (&json!(1), &Value::Null)]
    );
    assert_eq!(history(json!({ "action": "get", "revision": 1 })).await["task"]["description"], "green");
    assert_eq!(
        history(json!({ "action": "diff", "revision": 1, "other_revision": 2 })).await["differs"],
        json!({ "description": { "was": "green", "is": "red" } })
    );
    assert_eq!(history(json!({ "action": "restore", "revision": 1, "expected_revision": 3 })).await["restored_as"], 4);
    let shown = show(&host, number).await;
    assert_eq!((&shown["description"], &shown["status"]), (&json!("green"), &json!("ready")));
    let missing = host.failure("task_history", json!({ "action": "get", "task_number": number, "revision": 9 })).await;
    assert_eq!(missing.message, "task 1 has no revision 9");

    for text in ["first of all", "second of all"] {
        host.result("add_task_comment", json!({ "task_number": number, "content": text })).await;
    }
    let shown = show(&host, number).await;
    let said: Vec<_> =
        shown["comments"].as_array().expect("comments").iter().map(|comment| &comment["content"]).collect();
    assert_eq!((said, &shown["revision"]), (vec![&json!("first of all"), &json!("second of all")], &json!(4)));
}

/// Case 50: tasks of one agent are no other's.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_one_agent_is_seen_by_another() {
    let host = host().user("[toolset.otter]\ntools = [\"task_create\", \"task_list\", \"task_show\", \"task_update\", \"task_history\"]\nsession = [\"agent\"]\n");
    let call_as = async |agent: &str, tool: &str, arguments: Value| host.call_as("otter", agent, tool, arguments).await;
    call_as("one", "task_create", json!({ "title": "Paint" })).await.expect("made");
    assert_eq!(call_as("two", "task_list", json!({})).await, Ok(json!({ "tasks": [], "total": 0 })));
    for (tool, arguments) in [
        ("task_show", json!({ "task_number": 1 })),
        ("task_update", json!({ "task_number": 1, "title": "x" })),
        ("task_history", json!({ "action": "list", "task_number": 1 })),
    ] {
        assert!(call_as("two", tool, arguments).await.is_err(), "{tool}");
    }
    assert_eq!(call_as("two", "task_create", json!({ "title": "Dry" })).await.expect("made")["task_number"], 1);
}
