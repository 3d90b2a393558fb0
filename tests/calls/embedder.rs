//! Events for the program around the host: which are taken, what may be in them, and that each comes to one end. The numbers are those of the
//! cases of agents that are made of several processes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toolcrib::call::session::Session;
use toolcrib::call::{Arguments, Request};
use toolcrib::embedder::{Embedder, End};
use toolcrib::envelope::{Envelope, Failure, Kind};
use toolcrib::policy::approval::Answer;
use toolcrib_tests::TestHost;
use toolcrib_tests::embedder::Played;

const VALUE: &str = "zK4/vQ9+Lw\"2x&Ht7";

fn taking_all(answer: Value) -> Arc<Played> {
    Arc::new(Played::answering(&["*"], answer))
}

/// Calls a tool with a program around the host.
async fn call(host: &TestHost, embedder: &Arc<Played>, tool: &str, arguments: Value) -> Envelope {
    let (called, context) = host.parts();
    let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
    called.call(request, &context.clone().embedder(embedder.clone() as Arc<dyn Embedder>)).await
}

async fn failure(host: &TestHost, embedder: &Arc<Played>, tool: &str, arguments: Value) -> Failure {
    call(host, embedder, tool, arguments).await.outcome.map(|output| output.result.to_string()).expect_err("a failure")
}

async fn result(host: &TestHost, embedder: &Arc<Played>, tool: &str, arguments: Value) -> Value {
    let outcome = call(host, embedder, tool, arguments).await.outcome;
    outcome.map(|output| output.result).map_err(|failure| failure.to_json().to_string()).expect("a result")
}

/// What the record says of the events of the last call.
fn recorded(host: &TestHost) -> Vec<(String, String)> {
    let lines = host.audit();
    let actions = lines.last().expect("a line")["actions"].as_array().expect("actions").clone();
    let of_events = actions.into_iter().filter(|action| action["capability"] == "embedder");
    let text = |action: &Value, key: &str| action[key].as_str().expect("text").to_owned();
    of_events.map(|action| (text(&action, "what"), text(&action, "decision"))).collect()
}

/// A plugin of others that may hand over what this says.
fn teller(kinds: &str) -> TestHost {
    TestHost::new().plugin("teller").grant("teller", &format!("embedder.kinds={kinds}"))
}

fn event(kind: &str) -> Value {
    json!({ "kind": kind, "payload": { "content": "hi" } })
}

/// Case 1.
#[tokio::test]
async fn without_an_embedder_no_tool_that_needs_one_is_offered() {
    let host = TestHost::new().set("tools.offer=[\"agent\"]");
    let (called, context) = host.parts();
    let names = |offered: toolcrib::tools::Offered| -> Vec<String> {
        offered.tools.iter().map(|tool| tool.name().to_owned()).collect()
    };
    assert!(!names(called.offered(context).await).contains(&"reply".to_owned()));
    let failure = host.failure("reply", json!({ "content": "hi" })).await;
    assert_eq!(failure.kind, Kind::Unavailable);
    // Of one that takes some kinds, the tools of these are.
    let some = context.clone().embedder(Arc::new(Played::answering(&["message.*", "agent.status"], json!({}))));
    let offered = names(called.offered(&some).await);
    for (name, is_there) in
        [("reply", true), ("ask", true), ("set_status", true), ("branch", false), ("restart", false)]
    {
        assert_eq!(offered.contains(&name.to_owned()), is_there, "{name}: {offered:?}");
    }
    let all = called.all_tools(&some).await.tools;
    let why = |name: &str| {
        all.iter().find(|(tool, _)| tool.name() == name).and_then(|(_, why)| why.clone()).map(|why| why.message)
    };
    assert_eq!(
        why("branch").as_deref(),
        Some("the program around this one does not take events of the kind `agent.branch`")
    );
    assert_eq!(why("reply"), None);
    let none = called.all_tools(context).await.tools;
    let reply =
        none.iter().find(|(tool, _)| tool.name() == "reply").and_then(|(_, why)| why.clone()).expect("a reason");
    assert!(reply.message.starts_with("it needs an embedder"), "{}", reply.message);
}

/// Case 2: one event, with what the session was opened with; its answer is the result.
#[tokio::test]
async fn an_event_has_what_the_session_was_opened_with() {
    let settings =
        "[toolset.channel]\nsession = [\"channel\"]\ntools = [\"reply\"]\nbind.reply.thread_name = \"notes\"\n";
    let host = TestHost::new().user(settings);
    let (called, context) = host.parts();
    let given = Map::from_iter([("channel".to_owned(), json!("ops"))]);
    let toolset = called.toolset("channel").expect("a toolset");
    let missing = Session::on(toolset.clone(), Map::new()).map(|_| ()).expect_err("a refusal");
    assert_eq!(missing.message, "toolset `channel` wants `channel` of its session");
    let session = Session::on(toolset, given).expect("a session");
    let embedder = taking_all(json!({ "conversation_id": "c1", "more": true }));
    let context = context.clone().session(Arc::new(session)).embedder(embedder.clone());
    let request = |arguments: Value| Request { tool: "reply".into(), arguments: Arguments::Json(arguments) };
    let answered = called.call(request(json!({ "content": "hi" })), &context).await.outcome.expect("a result");
    assert_eq!(answered.result, json!({ "sent": true, "conversation_id": "c1" }));
    let events = embedder.events();
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((&*event.kind, &*event.tool), ("message.send", "reply"));
    assert_eq!(event.payload, json!({ "content": "hi", "thread_name": "notes" }));
    assert_eq!(event.bindings, Map::from_iter([("channel".to_owned(), json!("ops"))]));
    assert_eq!(host.audit().last().expect("a line")["toolset"], "channel");
    let [(what, decision)] = &recorded(&host)[..] else { panic!("{:?}", recorded(&host)) };
    assert!(what.starts_with("message.send sha256:") && what.ends_with(" bytes)"), "{what}");
    assert_eq!(decision, "allowed by embedder.confirm; answered");
    // Case 13: what is bound, or belongs to the session, is no argument.
    for odd in [json!({ "content": "hi", "channel": "x" }), json!({ "content": "hi", "thread_name": "x" })] {
        let refused = called.call(request(odd), &context).await.outcome.expect_err("a refusal");
        assert_eq!(refused.kind, Kind::InvalidArguments);
    }
    assert_eq!(embedder.events().len(), 1);
}

/// Cases 3 and 4.
#[tokio::test]
async fn an_event_that_nobody_answers_is_withdrawn() {
    let host = TestHost::new().set("embedder.timeout_ms=50");
    let silent = Arc::new(Played::new(&["*"], |_| None));
    let timed_out = failure(&host, &silent, "reply", json!({ "content": "hi" })).await;
    assert_eq!((timed_out.kind, silent.withdrawn()), (Kind::TimedOut, 1));
    assert_eq!(timed_out.message, "the embedder did not answer `message.send` within 50ms");
    assert!(recorded(&host)[0].1.contains("; timed_out: the embedder did not answer"));
    // A plugin that waits for less, and one that would wait for more than it may.
    let host = teller("[\"*\"]").set("embedder.timeout_ms=100");
    let begun = Instant::now();
    for wait in [20, 3_600_000] {
        let mut arguments = event("a.b");
        arguments["wait_ms"] = wait.into();
        assert_eq!(failure(&host, &silent, "tell", arguments).await.kind, Kind::TimedOut);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
    let host = TestHost::new();
    let cancelled = async {
        while silent.events().len() < 4 {
            tokio::task::yield_now().await;
        }
        host.cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(failure(&host, &silent, "reply", json!({ "content": "hi" })), cancelled);
    assert_eq!((outcome.kind, silent.withdrawn()), (Kind::Cancelled, 4));
    assert!(recorded(&host)[0].1.contains("; cancelled: "));
}

/// An answer that comes when the host has given the event up counts, if it came before the withdrawal.
#[tokio::test]
async fn an_answer_before_the_withdrawal_counts() {
    struct Late;
    #[async_trait::async_trait]
    impl Embedder for Late {
        fn kinds(&self) -> Vec<toolcrib::embedder::KindPattern> {
            vec![toolcrib::embedder::KindPattern::All]
        }
        async fn ask(
            &self,
            _: toolcrib::embedder::EmbedderEvent,
            withdrawn: tokio_util::sync::CancellationToken,
        ) -> End {
            withdrawn.cancelled().await;
            End::Answered(json!({ "conversation_id": "late" }))
        }
        fn tell(&self, _: toolcrib::embedder::EmbedderEvent) -> bool {
            false
        }
    }
    let host = TestHost::new().set("embedder.timeout_ms=20");
    let (called, context) = host.parts();
    let request = Request { tool: "reply".into(), arguments: Arguments::Json(json!({ "content": "hi" })) };
    let outcome = called.call(request, &context.clone().embedder(Arc::new(Late))).await.outcome;
    assert_eq!(outcome.expect("a result").result["conversation_id"], "late");
}

/// Cases 5 and 6, and that it is never sent again.
#[tokio::test]
async fn each_end_is_told_as_what_it_is() {
    let ends = [
        (End::Unavailable("it is away".into()), Kind::Unavailable, "did not reach the embedder: it is away"),
        (
            End::Lost("it hung up".into()),
            Kind::OutcomeUnknown,
            "was gone before it answered `message.send`: it hung up",
        ),
        (End::Failed(Failure::failed("no such channel")), Kind::ExecutionFailed, "no such channel"),
        (End::Failed(Failure::new(Kind::Busy, "later")), Kind::Busy, "later"),
        (End::Withdrawn, Kind::Unavailable, "was withdrawn by the embedder itself"),
        (End::Answered("x".repeat(2 << 20).into()), Kind::ExecutionFailed, "is larger than 1024 KiB"),
        (End::Answered(json!({ "conversation_id": 7 })), Kind::ExecutionFailed, "cannot be used"),
    ];
    for (end, kind, said) in ends {
        let host = TestHost::new();
        let embedder = Arc::new(Played::new(&["*"], move |_| Some(end.clone())));
        let failure = failure(&host, &embedder, "reply", json!({ "content": "hi" })).await;
        assert!(failure.kind == kind && failure.message.contains(said), "{failure:?}");
        assert_eq!((embedder.events().len(), recorded(&host).len()), (1, 1));
    }
}

fn with_secret(settings: &[&str]) -> TestHost {
    let host = settings.iter().fold(teller("[\"*\"]"), |host, setting| host.set(setting));
    let file = host.dirs().config.join("key");
    std::fs::write(&file, format!("{VALUE}\n")).expect("a secret");
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its mode");
    let section = format!("[secret.KEY]\nfile = {:?}\n", file.display().to_string());
    host.user(&section)
}

/// Cases 8 and 9: a secret in any form, at any place of any event.
#[tokio::test]
async fn an_event_with_a_secret_is_refused_with_its_place() {
    let host = with_secret(&[]);
    let embedder = taking_all(json!({}));
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let base64 = BASE64_STANDARD.encode(format!("user:{VALUE}"));
    for form in [VALUE, &hex, &percent, &base64] {
        let text = format!("it is {form}, I think");
        for (tool, arguments, kind, place) in [
            ("reply", json!({ "content": text }), "message.send", "/content"),
            ("reply", json!({ "content": "x", "cards": [{ "title": text }] }), "message.send", "/cards/0/title"),
            ("ask", json!({ "question": "?", "options": ["a", text] }), "message.ask", "/options/1"),
            (
                "send_message_to_another_channel",
                json!({ "target": "ops", "message": text }),
                "message.forward",
                "/message",
            ),
            ("spawn_worker", json!({ "task": text }), "agent.spawn", "/task"),
            ("set_status", json!({ "status": text }), "agent.status", "/status"),
            ("tell", json!({ "kind": "a.b", "payload": { "x~/y": { "z": text } } }), "a.b", "/x~0~1y/z"),
            ("tell", json!({ "kind": "a.b", "payload": { "x": { form: 1 } } }), "a.b", "/x"),
        ] {
            let failure = failure(&host, &embedder, tool, arguments).await;
            let expected = format!("the event `{kind}` holds the value of the secret `KEY` at `{place}`");
            assert_eq!((failure.kind, failure.message), (Kind::Denied, expected));
            assert!(failure.hint.is_some_and(|hint| hint.contains("`embedder = \"redact\"` under [leaks]")));
        }
    }
    assert!(embedder.events().is_empty());
    let trail = host.audit().iter().map(Value::to_string).collect::<String>();
    for form in [VALUE, &hex, &percent, &base64] {
        assert!(!trail.contains(form), "the record holds {form}");
    }
    // A file of an event.
    std::fs::write(host.work().join("key.txt"), format!("KEY={VALUE}\n")).expect("a file");
    let failure = failure(&host, &embedder, "send_file", json!({ "file_path": "key.txt" })).await;
    assert!(failure.kind == Kind::Denied && failure.message == "the file holds the value of the secret `KEY`");
    assert!(embedder.events().is_empty());
}

/// Case 10.
#[tokio::test]
async fn a_secret_is_taken_out_of_an_event_where_settings_say_so() {
    let host = with_secret(&["leaks.embedder=redact"]);
    let embedder = taking_all(json!({}));
    let outcome = call(&host, &embedder, "reply", json!({ "content": format!("it is {VALUE}.") })).await.outcome;
    let notice = "the value of the secret `KEY` was taken out of the event at `/content`";
    assert_eq!(outcome.expect("a result").notices, [notice]);
    assert_eq!(embedder.events()[0].payload["content"], "it is [secret:KEY].");
    std::fs::write(host.work().join("key.txt"), VALUE).expect("a file");
    assert_eq!(failure(&host, &embedder, "send_file", json!({ "file_path": "key.txt" })).await.kind, Kind::Denied);
    let host = with_secret(&["leaks.embedder=warn", "leaks.results=warn"]);
    let outcome = call(&host, &embedder, "reply", json!({ "content": VALUE })).await.outcome.expect("a result");
    assert_eq!(outcome.notices, ["the event `message.send` holds the value of the secret `KEY` at `/content`"]);
    assert_eq!(embedder.events()[1].payload["content"], VALUE);
}

#[tokio::test]
async fn what_looks_like_a_secret_is_told_or_refused() {
    let key = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let embedder = taking_all(json!({}));
    let reply = json!({ "content": format!("use {key}") });
    let host = TestHost::new();
    let notices = call(&host, &embedder, "reply", reply.clone()).await.outcome.expect("a result").notices;
    assert!(notices[0].starts_with("the event `message.send` holds what looks like "), "{notices:?}");
    let host = TestHost::new().set("leaks.shapes=block");
    let refused = failure(&host, &embedder, "reply", reply).await;
    assert!(refused.kind == Kind::Denied && refused.message.ends_with(" at `/content`"), "{refused:?}");
    assert_eq!(embedder.events().len(), 1);
}

/// Case 11, and what a screen would obey.
#[tokio::test]
async fn texts_for_people_are_sent_as_they_are_but_for_what_a_screen_obeys() {
    let host = teller("[\"*\"]");
    let embedder = taking_all(json!({}));
    for text in ["[a link](https://example.com) first", "{\"json\": true}", "(aside)"] {
        result(&host, &embedder, "reply", json!({ "content": text })).await;
        assert_eq!(embedder.events().last().expect("an event").payload["content"], text);
    }
    result(&host, &embedder, "reply", json!({ "content": "a\u{1b}[2Jb\u{202e}c" })).await;
    let sent = embedder.events().last().expect("an event").payload["content"].to_string();
    assert!(!sent.contains("[2J") && !sent.contains('\u{202e}'), "{sent}");
    // What nobody said that people see is the plugin's affair.
    let mut raw = event("a.b");
    raw["payload"]["content"] = "a\u{1b}[2Jb".into();
    result(&host, &embedder, "tell", raw.clone()).await;
    assert_eq!(embedder.events().last().expect("an event").payload["content"], "a\u{1b}[2Jb");
    raw["visible"] = json!(["/content"]);
    result(&host, &embedder, "tell", raw).await;
    assert_eq!(embedder.events().last().expect("an event").payload["content"], "ab");
}

/// What a plugin of others may hand over is what its section names, and what locks and toolsets leave of it.
#[tokio::test]
async fn a_plugin_hands_over_what_it_was_granted_and_nothing_else() {
    let embedder = taking_all(json!({}));
    let host = TestHost::new().plugin("teller");
    let refused = failure(&host, &embedder, "tell", event("a.b")).await;
    assert_eq!(
        (refused.kind, &*refused.message),
        (Kind::Denied, "`teller` needs `embedder`, which the policy does not grant")
    );
    assert!(refused.hint.is_some_and(|hint| hint.ends_with("teller.wasm --event KIND`")));
    let host = teller("[\"message.*\", \"crm.look_up\"]");
    for kind in ["message.send", "message.a.b", "crm.look_up"] {
        result(&host, &embedder, "tell", event(kind)).await;
    }
    for kind in ["agent.restart", "crm.look_up.all", "messages.send"] {
        let refused = failure(&host, &embedder, "tell", event(kind)).await;
        assert_eq!(refused.message, format!("`teller` may not hand over events of the kind `{kind}`"));
        assert_eq!(refused.hint, Some(format!("add \"{kind}\" to `embedder.kinds` under [plugin.teller]")));
        assert!(recorded(&host)[0].1.starts_with("denied: "));
    }
    assert_eq!(embedder.events().len(), 3);
    let host = teller("[\"*\"]").policy("plugin.teller.embedder.kinds = ['message.*']");
    result(&host, &embedder, "tell", event("message.send")).await;
    let refused = failure(&host, &embedder, "tell", event("agent.restart")).await;
    assert!(refused.hint.is_some_and(|hint| hint.starts_with("the operator's policy decides this")));
    // One of this binary, too.
    let host = TestHost::new().policy("plugin.agent.embedder.kinds = ['message.*']");
    result(&host, &embedder, "reply", json!({ "content": "hi" })).await;
    assert_eq!(failure(&host, &embedder, "restart", json!({ "reason": "x" })).await.kind, Kind::Denied);
    let host = TestHost::new().policy("plugin.agent.embedder.kinds = []");
    assert_eq!(failure(&host, &embedder, "reply", json!({ "content": "hi" })).await.kind, Kind::Denied);
}

#[tokio::test]
async fn a_person_is_shown_events_that_settings_name() {
    let settings = "embedder.confirm=[\"message.forward\", \"agent.*\"]";
    let forward = json!({ "target": "ops", "message": "hello\u{1b}[2J there" });
    let embedder = taking_all(json!({}));
    let host = TestHost::new().set(settings).answering(Answer::Yes);
    result(&host, &embedder, "send_message_to_another_channel", forward.clone()).await;
    let asked = host.asked();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((&*question.action, &*question.landing.backend), ("message.forward", "the embedder"));
    let details = question.details.as_deref().expect("the payload");
    assert!(details.contains("\"message\": \"hello there\"") && details.contains("\"target\": \"ops\""), "{details}");
    assert_eq!(recorded(&host)[0].1, "allowed by the test; answered");
    result(&host, &embedder, "reply", json!({ "content": "hi" })).await;
    assert_eq!(host.asked().len(), 1);
    let host = TestHost::new().set(settings).answering(Answer::No);
    let before = embedder.events().len();
    let refused = failure(&host, &embedder, "send_message_to_another_channel", forward.clone()).await;
    assert_eq!((refused.kind, &*refused.message), (Kind::Denied, "Event for the embedder denied by user."));
    assert_eq!(failure(&host, &embedder, "set_status", json!({ "status": "x" })).await.kind, Kind::Denied);
    assert_eq!(embedder.events().len(), before);
    // A yes for the session is for that kind alone.
    let host = TestHost::new().set(settings).answering(Answer::YesForSession);
    for _ in 0..2 {
        result(&host, &embedder, "send_message_to_another_channel", forward.clone()).await;
    }
    assert_eq!(host.asked().len(), 1);
    result(&host, &embedder, "restart", json!({ "reason": "x" })).await;
    assert_eq!(host.asked().len(), 2);
}

/// Case 15.
#[tokio::test]
async fn a_status_is_not_waited_for() {
    let host = TestHost::new();
    let full = Arc::new(Played::new(&["*"], |_| None).full());
    let dropped = result(&host, &full, "set_status", json!({ "status": "working" })).await;
    assert_eq!(dropped, json!({ "delivered": false }));
    assert!(recorded(&host)[0].1.ends_with("; dropped: there was no room for it"));
    let silent = Arc::new(Played::new(&["*"], |_| None));
    let posted = result(&host, &silent, "set_status", json!({ "status": "working" })).await;
    assert_eq!(posted, json!({ "delivered": true }));
    assert!(silent.events()[0].deadline.is_none());
    assert!(recorded(&host)[0].1.ends_with("; posted"));
}

/// What is too much, or makes no sense, is refused before anything is handed over.
#[tokio::test]
async fn events_that_make_no_sense_are_refused() {
    let host = teller("[\"*\"]").set("plugin.teller.files.read=[\"/\"]");
    let embedder = taking_all(json!({}));
    let deep = (0..40).fold(json!(1), |inner, _| json!({ "a": inner }));
    for (arguments, kind, said) in [
        (event("Message.Send"), Kind::InvalidArguments, "is not a kind of events"),
        (event("message"), Kind::InvalidArguments, "is not a kind of events"),
        (event("message.*"), Kind::InvalidArguments, "is not a kind of events"),
        (json!({ "kind": "a.b", "payload": [1] }), Kind::InvalidArguments, "is not a JSON object of at most 32 levels"),
        (
            json!({ "kind": "a.b", "payload": deep }),
            Kind::InvalidArguments,
            "is not a JSON object of at most 32 levels",
        ),
        (json!({ "kind": "a.b", "payload": { "x": "y".repeat(256 << 10) } }), Kind::Limit, "limit: payload 256 KiB"),
        (
            json!({ "kind": "a.b", "payload": {}, "visible": ["/nothing"] }),
            Kind::InvalidArguments,
            "the payload has nothing at `/nothing`",
        ),
        (json!({ "kind": "a.b", "payload": {}, "visible": vec![""; 33] }), Kind::Limit, "32 pointers"),
        (json!({ "kind": "a.b", "payload": {}, "attach": vec!["x"; 11] }), Kind::Limit, "10 files"),
        (
            json!({ "kind": "a.b", "payload": {}, "attach": ["x"], "post": true }),
            Kind::InvalidArguments,
            "is sent, not posted",
        ),
        (json!({ "kind": "a.b", "payload": {}, "attach": ["missing"] }), Kind::ExecutionFailed, "no such file"),
    ] {
        let failure = failure(&host, &embedder, "tell", arguments).await;
        assert!(failure.kind == kind && failure.message.contains(said), "{failure:?}");
    }
    assert!(embedder.events().is_empty());
}

/// Case 17: files are those that the plugin may read, as they are when the event is handed over.
#[tokio::test]
async fn a_file_goes_with_an_event_where_the_plugin_may_read_it() {
    let host = TestHost::new();
    let embedder = taking_all(json!({}));
    std::fs::write(host.work().join("a.png"), b"\x89PNG\0").expect("a file");
    let sent = result(&host, &embedder, "send_file", json!({ "file_path": "a.png", "caption": "look" })).await;
    assert_eq!(sent, json!({ "sent": true, "name": "a.png", "bytes": 5 }));
    let events = embedder.events();
    let file = &events[0].files[0];
    assert_eq!((&*file.name, &*file.media_type, &*file.content), ("a.png", "image/png", &b"\x89PNG\0"[..]));
    assert_eq!(events[0].payload, json!({ "caption": "look" }));
    assert!(recorded(&host)[0].0.contains(", file a.png sha256:"));
    let large = std::fs::File::create(host.work().join("large")).expect("a file");
    large.set_len((25 << 20) + 1).expect("its size");
    std::fs::create_dir_all(host.home().join(".ssh")).expect("a directory");
    std::fs::write(host.home().join(".ssh/id_rsa"), "key").expect("a file");
    for (path, kind) in [
        ("large", Kind::Limit),
        (".", Kind::ExecutionFailed),
        ("missing", Kind::ExecutionFailed),
        ("/dev/null", Kind::Denied),
        ("~/.ssh/id_rsa", Kind::Denied),
        (" ", Kind::InvalidArguments),
    ] {
        assert_eq!(failure(&host, &embedder, "send_file", json!({ "file_path": path })).await.kind, kind, "{path}");
    }
    // One of just that size, in pieces.
    large.set_len(25 << 20).expect("its size");
    assert_eq!(result(&host, &embedder, "send_file", json!({ "file_path": "large" })).await["bytes"], 25 << 20);
    assert_eq!(embedder.events()[1].files[0].content.len(), 25 << 20);
    let denied = TestHost::new().set("tools.files_read_paths=[\"/nowhere\"]");
    std::fs::write(denied.work().join("a.png"), "x").expect("a file");
    assert_eq!(failure(&denied, &embedder, "send_file", json!({ "file_path": "a.png" })).await.kind, Kind::Denied);
    // What a plugin of others attaches is bounded by the host.
    let host = teller("[\"*\"]").set("plugin.teller.files.read=[\"/\"]");
    for (name, bytes) in [("over", (25 << 20) + 1), ("full", 25 << 20)] {
        let file = std::fs::File::create(host.work().join(name)).expect("a file");
        file.set_len(bytes).expect("its size");
    }
    for names in [&["over"][..], &["full", "full", "full"]] {
        let attached = json!({ "kind": "a.b", "payload": {}, "attach": names });
        assert_eq!(failure(&host, &embedder, "tell", attached).await.kind, Kind::Limit, "{names:?}");
    }
    // A plugin without a right to read has none to attach.
    let host = teller("[\"*\"]");
    std::fs::write(host.work().join("a.png"), "x").expect("a file");
    let attached = json!({ "kind": "a.b", "payload": {}, "attach": ["a.png"] });
    assert_eq!(failure(&host, &embedder, "tell", attached).await.kind, Kind::Denied);
    assert_eq!(embedder.events().len(), 2);
}

/// No flood of events holds more than its share, and each is one of the call's host calls.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_wait_are_bounded() {
    let host = TestHost::new().set("embedder.max_pending=2");
    let is_open = Arc::new(AtomicBool::new(false));
    let opened = is_open.clone();
    let embedder =
        Arc::new(Played::new(&["*"], move |_| opened.load(Ordering::SeqCst).then(|| End::Answered(json!({})))));
    let reply = || failure(&host, &embedder, "reply", json!({ "content": "hi" }));
    let third = async {
        while embedder.events().len() < 2 {
            tokio::task::yield_now().await;
        }
        let refused = reply().await;
        // The others end by it.
        host.cancel.cancel();
        refused
    };
    let (one, two, three) = tokio::join!(reply(), reply(), third);
    assert_eq!((one.kind, two.kind), (Kind::Cancelled, Kind::Cancelled));
    assert_eq!((three.kind, &*three.message), (Kind::Busy, "too many events wait for the embedder (limit: 2)"));
    assert!(three.hint.is_some_and(|hint| hint.contains("raise `max_pending` under [embedder]")));
    is_open.store(true, Ordering::SeqCst);
    let flooding = teller("[\"*\"]");
    let answers = result(
        &flooding,
        &taking_all(json!({})),
        "tell",
        json!({ "kind": "a.b", "payload": {}, "times": 500, "post": true }),
    )
    .await;
    assert_eq!(answers["answers"].as_array().map(Vec::len), Some(500));
    // On record are the first hundred, and how many more there were.
    let line = flooding.audit().last().expect("a line").clone();
    assert!(line["actions"].as_array().is_some_and(|actions| actions.len() <= 101), "{line}");
}
