//! Jobs and events at set times. The numbers are those of the cases of agents that people talk to; what any number of programs does with one store
//! is in `cli/schedules.rs`, and when something is due beside the code that says it.

use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toolcrib::call::session::Session;
use toolcrib::embedder::End;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::policy::approval::Answer;
use toolcrib::schedules::SchedulesLook;
use toolcrib_tests::embedder::Played;
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{TestHost, on_path};

const FIRED: &str = "schedule.fired";

/// A host whose schedules may fire each second, with some programs.
fn host() -> TestHost {
    let host = TestHost::new().set("schedules.shortest_ms=1000").set("schedules.zone=Europe/Berlin");
    ["sh", "sleep"].iter().fold(host, |host, name| host.declares(name, &on_path(name), &[]))
}

fn answering(answer: Value) -> Arc<Played> {
    Arc::new(Played::answering(&["schedule.*"], answer))
}

/// A schedule that fires each second.
fn each_second(id: &str) -> Value {
    json!({ "action": "create", "id": id, "prompt": "Look.", "interval_secs": 1 })
}

async fn cron(host: &TestHost, arguments: Value) -> Value {
    host.result("cron", arguments).await
}

async fn row(host: &TestHost, id: &str) -> Value {
    let all = cron(host, json!({ "action": "list" })).await;
    let rows = all["schedules"].as_array().expect("a list");
    rows.iter().find(|row| row["id"] == id).cloned().unwrap_or_default()
}

async fn eventually(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Its firings as jobs, the newest first.
async fn jobs_of(host: &TestHost, id: &str) -> Vec<Value> {
    let listed = host.result("job_list", json!({ "all_sessions": true, "labels": { "schedule": id } })).await;
    listed["jobs"].as_array().expect("a list").clone()
}

fn kind_of(failure: &Failure) -> (Kind, &str) {
    (failure.kind, &failure.message)
}

#[tokio::test]
async fn a_prompt_comes_back_at_its_time_with_what_its_session_was_opened_with() {
    let embedder = answering(json!({ "ok": true }));
    let host = host().embedder(embedder.clone()).user(
        "[toolset.channel]\nturn = [\"cron\"]\n[toolset.channel.bind.cron]\ndelivery_target = \"$session.target\"\ntimeout_secs = 30\n",
    );
    let running = host.run_jobs().await;
    let (inner, context) = host.parts();
    let given = serde_json::Map::from_iter([("target".to_owned(), json!("discord:42"))]);
    let session = inner.toolset("channel").and_then(|toolset| Session::on(toolset, given));
    let session = Arc::new(session.map_err(|failure| failure.to_json().to_string()).expect("a session"));
    session.turn(true).map_err(|failure| failure.message).expect("a turn");
    let request = toolcrib::call::Request {
        tool: "cron".into(),
        arguments: toolcrib::call::Arguments::Json(each_second("look")),
    };
    let saved = inner.call(request, &context.clone().session(session.clone())).await.outcome;
    let saved = saved.map_err(|failure| failure.to_json().to_string()).expect("a schedule").result;
    assert_eq!(saved["schedules"][0]["state"], "active", "{saved}");
    assert_eq!(saved["schedules"][0]["when"], "each time, every 1 s");
    // Its session may end meanwhile.
    inner.close_session(&session).await;
    eventually("it fires", async || embedder.events().len() >= 2).await;
    running.close().await;
    let event = embedder.events().remove(0);
    assert_eq!((event.kind.as_str(), event.tool.as_str()), (FIRED, "cron"));
    assert_eq!(event.bindings["target"], "discord:42");
    assert_eq!(event.deadline, Some(Duration::from_secs(30)));
    let payload = event.payload;
    assert_eq!(
        (&payload["schedule"], &payload["data"]),
        (&json!("look"), &json!({ "prompt": "Look.", "delivery_target": "discord:42" }))
    );
    let due = payload["due_ms"].as_u64().expect("a time");
    assert!(payload["due"].as_str().is_some_and(|due| due.starts_with("20") && due.ends_with(":00")), "{payload}");
    assert!(
        embedder
            .events()
            .iter()
            .all(|event| (event.payload["due_ms"].as_u64().expect("a time") - due).is_multiple_of(1000))
    );
    // It is a call like any other, on record under the id of its job.
    let jobs = jobs_of(&host, "look").await;
    let first = jobs.last().expect("a job");
    assert_eq!((&first["bin"], &first["state"]), (&json!("cron"), &json!("done")));
    let audit = host.audit();
    let of = |id: &Value| audit.iter().filter(|line| line["call"] == *id).cloned().collect::<Vec<_>>();
    let lines = of(&first["job_id"]);
    let actions = lines.iter().find_map(|line| line["actions"].as_array()).expect("an action");
    assert!(actions[0]["what"].as_str().is_some_and(|what| what.starts_with("schedule.fired sha256:")), "{lines:?}");
    assert_eq!(actions[0]["decision"], "allowed by its schedule, when that was saved; answered");
    let saving = audit.iter().filter_map(|line| line["actions"].as_array()).flatten();
    let saving: Vec<_> = saving.filter(|action| action["capability"] == "schedules").collect();
    assert_eq!(saving[0]["what"], "schedule look: an event, each time, every 1 s");
}

/// Case 51, as far as it is not beside the code: the zone of settings, and what is said of it.
#[tokio::test]
async fn it_says_when_it_fires_next_in_the_zone_of_settings_or_its_own() {
    let host = host().embedder(answering(json!({})));
    let _running = host.run_jobs().await;
    let of = |id: &str, more: Value| {
        let mut wanted = json!({ "action": "create", "id": id, "prompt": "x", "cron_expr": "0 9 * * 1-5" });
        wanted.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        wanted
    };
    let here = cron(&host, of("here", json!({}))).await["schedules"][0].clone();
    assert_eq!(
        (&here["zone"], &here["when"]),
        (&json!("Europe/Berlin"), &json!("each time, `0 9 * * 1-5` (Europe/Berlin)"))
    );
    let next = here["next"].as_array().expect("times");
    assert_eq!(next.len(), 3);
    for time in next {
        let time = time.as_str().expect("a time");
        assert!(time.ends_with("T09:00:00+01:00") || time.ends_with("T09:00:00+02:00"), "{time}");
    }
    let there =
        cron(&host, of("there", json!({ "zone": "Asia/Tokyo", "run_once": true }))).await["schedules"][0].clone();
    assert!(there["next"][0].as_str().is_some_and(|time| time.ends_with("T09:00:00+09:00")), "{there}");
    assert_eq!(
        (there["next"].as_array().map(Vec::len), &there["when"]),
        (Some(1), &json!("once, `0 9 * * 1-5` (Asia/Tokyo)"))
    );
    // Without anything said of it, each hour.
    let hourly = cron(&host, json!({ "action": "create", "id": "hourly", "prompt": "x" })).await;
    assert_eq!(hourly["schedules"][0]["when"], "each time, every 3600 s");
    let window = json!({ "active_start_hour": 22, "active_end_hour": 6 });
    let never = host.failure("cron", of("night", window)).await;
    assert_eq!(never.message, "`0 9 * * 1-5` from 22 to 6 o'clock (Europe/Berlin) is never");
}

/// Case 52.
#[tokio::test]
async fn one_id_is_one_schedule_and_an_unknown_one_is_told() {
    let embedder = answering(json!({}));
    let host = host().embedder(embedder.clone());
    let _running = host.run_jobs().await;
    let wanted = |prompt: &str, replace: bool| json!({ "action": "create", "id": "a", "prompt": prompt, "cron_expr": "0 0 1 1 *", "replace": replace });
    cron(&host, wanted("first", false)).await;
    let busy = host.failure("cron", wanted("second", false)).await;
    assert_eq!(kind_of(&busy), (Kind::Busy, "there is a schedule `a` already"));
    assert_eq!(row(&host, "a").await["prompt"], "first");
    assert_eq!(cron(&host, wanted("second", true)).await["schedules"][0]["prompt"], "second");
    for action in ["delete", "pause", "resume"] {
        let missing = host.failure("cron", json!({ "action": action, "id": "b" })).await;
        assert_eq!(kind_of(&missing), (Kind::InvalidArguments, "there is no schedule `b`"), "{action}");
    }
    assert_eq!(cron(&host, json!({ "action": "delete", "delete_id": "a" })).await["deleted"], "a");
    assert_eq!(cron(&host, json!({ "action": "list" })).await["schedules"], json!([]));
}

/// Case 53.
#[tokio::test]
async fn what_cannot_be_scheduled_is_refused_with_what_to_write() {
    let host = host().set("schedules.shortest_ms=60000").embedder(answering(json!({})));
    let _running = host.run_jobs().await;
    for (more, message) in [
        (json!({ "interval_secs": 59 }), "every 59 s is too often (at least 1m between two times)"),
        (json!({ "interval_secs": 0 }), "every 0 s is too often (at least 1m between two times)"),
        (json!({ "active_start_hour": 9 }), "`active_start_hour` and `active_end_hour` are given together"),
        (json!({ "active_end_hour": 9 }), "`active_start_hour` and `active_end_hour` are given together"),
        (json!({ "active_start_hour": 9, "active_end_hour": 9 }), "from 9 to 9 o'clock is no time"),
        (json!({ "zone": "Europe/Bonn" }), "there is no time zone `Europe/Bonn`"),
        (json!({ "cron_expr": "0 9 * *" }), "`0 9 * *` is no cron expression: it has 4 fields, not 5"),
        (json!({ "cron_expr": "0 0 31 2 *" }), "`0 0 31 2 *` (Europe/Berlin) is never"),
        (json!({ "cron_expr": "* * * * *", "interval_secs": 60 }), "both `cron_expr` and `interval_secs` are given"),
        (json!({ "delivery_target": "discord" }), "`discord` is no `delivery_target`"),
        (json!({ "bin": "sh" }), "both `prompt` and `bin` are given"),
        (json!({ "prompt": null }), "`create` wants a `prompt`, or a `bin`"),
        (json!({ "prompt": null, "bin": "nothing" }), "there is no program or tool `nothing`"),
        (json!({ "id": null }), "`create` wants an `id`"),
        (json!({ "id": "a b" }), "the id of a schedule is 1 to 50 letters, digits, `_` and `-`"),
    ] {
        let mut wanted = json!({ "action": "create", "id": "x", "prompt": "x" });
        wanted.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let failure = host.failure("cron", wanted).await;
        assert_eq!(kind_of(&failure), (Kind::InvalidArguments, message), "{more}");
        assert!(failure.hint.is_some(), "{more}");
    }
    for more in [
        json!({ "active_start_hour": 9, "active_end_hour": 24 }),
        json!({ "id": "" }),
        json!({ "prompt": "x".repeat(10_001) }),
    ] {
        let mut wanted = json!({ "action": "create", "id": "x", "prompt": "x" });
        wanted.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        assert_eq!(host.failure("cron", wanted).await.kind, Kind::InvalidArguments, "{more}");
    }
    let long = json!({ "action": "create", "id": "x", "prompt": "x", "timeout_secs": 86_401 });
    assert_eq!(host.failure("cron", long).await.kind, Kind::Limit);
    assert_eq!(cron(&host, json!({ "action": "list" })).await["schedules"], json!([]));
}

/// Case 54: nothing comes while it is paused; three failures in a row disable it, whichever program saw them.
#[tokio::test]
async fn a_paused_one_does_not_fire_and_three_failures_disable_it_across_restarts() {
    let fails = Arc::new(AtomicBool::new(false));
    let told = fails.clone();
    let embedder = Arc::new(Played::new(&["*"], move |_| match told.load(Ordering::SeqCst) {
        true => Some(End::Failed(Failure::failed("the channel is gone"))),
        false => Some(End::Answered(json!({}))),
    }));
    let host = host().embedder(embedder.clone());
    let mut running = host.run_jobs().await;
    cron(&host, each_second("x")).await;
    eventually("it fires", async || !embedder.events().is_empty()).await;
    let paused = cron(&host, json!({ "action": "pause", "id": "x" })).await;
    assert_eq!((&paused["schedules"][0]["state"], &paused["schedules"][0]["next"]), (&json!("paused"), &json!([])));
    eventually("it has ended", async || row(&host, "x").await["running"].is_null()).await;
    let before = embedder.events().len();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(embedder.events().len(), before);
    fails.store(true, Ordering::SeqCst);
    cron(&host, json!({ "action": "resume", "id": "x" })).await;
    for failures in 1..=3 {
        // A slow look may find more of them.
        let has_failed = async || row(&host, "x").await["failures"].as_u64() >= Some(failures);
        eventually("it fails", has_failed).await;
        running.close().await;
        running = host.run_jobs().await;
    }
    let disabled = row(&host, "x").await;
    assert_eq!((&disabled["state"], &disabled["last"]["came"]), (&json!("disabled"), &json!("failed")), "{disabled}");
    assert_eq!(disabled["last"]["why"], "execution_failed: the channel is gone");
    let before = embedder.events().len();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(embedder.events().len(), before);
    fails.store(false, Ordering::SeqCst);
    cron(&host, json!({ "action": "resume", "id": "x" })).await;
    eventually("it fires again", async || row(&host, "x").await["last"]["came"] == "done").await;
}

/// At most once: what may have come is not handed over again; what certainly did not is missed, and no failure.
#[tokio::test]
async fn an_event_is_handed_over_once_however_that_ends() {
    let unavailable = || Failure::new(Kind::Unavailable, "the channel is closed");
    for (end, state, came, why) in [
        (
            End::Lost("the link is gone".into()),
            "error",
            "failed",
            "outcome_unknown: the embedder was gone before it answered",
        ),
        (
            End::Unavailable("nobody reads".into()),
            "cancelled",
            "missed",
            "unavailable: `schedule.fired` did not reach the embedder",
        ),
        // What the embedder itself says is an end like any other.
        (End::Failed(unavailable()), "error", "failed", "unavailable: the channel is closed"),
    ] {
        let embedder = Arc::new(Played::new(&["*"], move |_| Some(end.clone())));
        let host = host().embedder(embedder.clone());
        let running = host.run_jobs().await;
        let mut wanted = each_second("x");
        wanted["interval_secs"] = json!(3);
        cron(&host, wanted).await;
        eventually("it has fired", async || row(&host, "x").await["last"]["came"] == came).await;
        let row = row(&host, "x").await;
        assert_eq!(row["failures"] != 0, came == "failed", "{row}");
        assert!(row["last"]["why"].as_str().is_some_and(|told| told.starts_with(why)), "{row}");
        tokio::time::sleep(Duration::from_millis(1200)).await;
        running.close().await;
        // On a busy machine the next one may have come meanwhile: each time that was due has one event, and one job.
        let mut due = HashSet::new();
        for event in embedder.events() {
            assert!(due.insert(event.payload["due_ms"].as_u64()), "{came}: {due:?}");
            let of_it = json!({ "all_sessions": true, "labels": { "schedule": "x", "due": event.payload["due"] } });
            let listed = host.result("job_list", of_it).await;
            assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1), "{listed}");
        }
        let jobs = jobs_of(&host, "x").await;
        assert_eq!(jobs.last().expect("a job")["state"], state, "{jobs:?}");
    }
    // One that does not answer is withdrawn, and has failed.
    let embedder = Arc::new(Played::new(&["*"], |_| None));
    let host = host().embedder(embedder.clone());
    let _running = host.run_jobs().await;
    let mut wanted = each_second("x");
    wanted["timeout_secs"] = json!(1);
    cron(&host, wanted).await;
    eventually("it fails", async || row(&host, "x").await["failures"].as_u64() >= Some(1)).await;
    assert!(embedder.withdrawn() >= 1);
}

/// What a person has to approve of by now was approved of then, by somebody whose word counts still.
#[tokio::test]
async fn an_event_that_a_person_has_to_see_was_seen_when_it_was_saved() {
    const CONFIRM: &str = "embedder.confirm=[\"schedule.*\"]";
    let embedder = answering(json!({}));
    let host = host().embedder(embedder.clone()).answering(Answer::Yes);
    let running = host.run_jobs().await;
    cron(&host, json!({ "action": "create", "id": "unseen", "prompt": "x", "interval_secs": 2 })).await;
    assert!(host.asked().is_empty());
    running.close().await;
    let host = host.set(CONFIRM);
    let running = host.run_jobs().await;
    cron(&host, json!({ "action": "create", "id": "seen", "prompt": "y", "interval_secs": 2 })).await;
    let asked = host.asked();
    assert_eq!((asked.len(), &*asked[0].action), (1, FIRED));
    let details = asked[0].details.clone().unwrap_or_default();
    assert!(details.contains("each time, every 2 s") && details.contains("\"prompt\": \"y\""), "{details}");
    eventually("it fires", async || row(&host, "seen").await["last"]["came"] == "done").await;
    eventually("it is refused", async || row(&host, "unseen").await["last"]["came"] == "failed").await;
    let why = row(&host, "unseen").await["last"]["why"].clone();
    assert!(why.as_str().is_some_and(|why| why.starts_with("denied: nobody has approved of this event")), "{why}");
    assert!(embedder.events().iter().all(|event| event.payload["schedule"] == "seen"));
    assert_eq!(host.asked().len(), 1);
    running.close().await;
    let refusing = self::host().embedder(embedder).answering(Answer::No).set(CONFIRM);
    let _running = refusing.run_jobs().await;
    assert_eq!(refusing.failure("cron", each_second("x")).await.kind, Kind::Denied);
}

#[tokio::test]
async fn without_anybody_to_fire_it_nothing_is_saved() {
    // Nobody takes such events.
    let host = host().embedder(Arc::new(Played::answering(&["message.*"], json!({}))));
    let running = host.run_jobs().await;
    let refused = host.failure("cron", each_second("x")).await;
    assert_eq!(refused.kind, Kind::Unavailable);
    assert_eq!(refused.message, "the program around this one does not take events of the kind `schedule.fired`");
    running.close().await;
    // This program ends with its call.
    let refused = host.failure("cron", each_second("x")).await;
    assert_eq!(kind_of(&refused), (Kind::Unavailable, "this program ends with its call, and runs no jobs"));
    let off = TestHost::new().set("jobs.enabled=false");
    assert_eq!(off.failure("cron", each_second("x")).await.kind, Kind::Unavailable);
    assert_eq!(cron(&off, json!({ "action": "list" })).await["schedules"], json!([]));
}

/// A person is asked when it is saved, and told that it comes again; nobody is asked when it fires.
#[tokio::test]
async fn a_command_is_asked_about_once_and_for_what_it_is() {
    let of = |command: &str| json!({ "action": "create", "id": "x", "bin": "run_shell", "arguments": harmless(command), "interval_secs": 1, "replace": true });
    let refusing = host().set("confine.ask=always").answering(Answer::No);
    let running = refusing.run_jobs().await;
    assert_eq!(refusing.failure("cron", of("echo a >> fired")).await.kind, Kind::Denied);
    assert!(row(&refusing, "x").await.is_null());
    running.close().await;
    // A yes for the session is one for calls of now, and not for what stays.
    let host = host().set("confine.ask=always").answering(Answer::YesForSession);
    let running = host.run_jobs().await;
    host.shell("echo b >> fired").await;
    assert_eq!(host.asked().len(), 1);
    for _ in 0..2 {
        cron(&host, of("echo b >> fired")).await;
    }
    let asked = host.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1].tool, "run_shell as a job, each time, every 1 s");
    assert_eq!((&*asked[1].action, &*asked[2].action), ("echo b >> fired", "echo b >> fired"));
    let fired = || std::fs::read_to_string(host.work().join("fired")).unwrap_or_default().lines().count();
    eventually("it fires", async || fired() >= 3).await;
    assert_eq!(host.asked().len(), 3);
    let done = row(&host, "x").await;
    assert_eq!((&done["failures"], &done["bin"]), (&json!(0), &json!("run_shell")));
    running.close().await;
}

#[tokio::test]
async fn a_command_that_fails_has_failed_and_tools_that_may_ask_are_refused() {
    let host = host().set("schedules.failures=1");
    let _running = host.run_jobs().await;
    let of = |script: &str| json!({ "action": "create", "id": "x", "bin": "sh", "args": ["-c", script], "interval_secs": 1 });
    cron(&host, of("exit 3")).await;
    eventually("it is disabled", async || row(&host, "x").await["state"] == "disabled").await;
    assert_eq!(row(&host, "x").await["last"]["why"], "exit status 3");
    let unattended =
        json!({ "action": "create", "id": "y", "bin": "fetch_url", "arguments": { "url": "http://a.example/" } });
    let refused = host.failure("cron", unattended).await;
    assert_eq!(
        kind_of(&refused),
        (Kind::Denied, "`fetch_url` may not run as a job, where nobody is there to be asked")
    );
    // Nor may it make another of itself.
    let again = json!({ "action": "create", "id": "y", "bin": "cron", "arguments": { "action": "list" } });
    assert_eq!(host.failure("cron", again).await.kind, Kind::Denied);
}

/// Who waits for an agent does not keep from it the jobs that it needs.
#[tokio::test]
async fn events_have_room_of_their_own() {
    let embedder = Arc::new(Played::new(&["*"], |_| None));
    let host = host().set("jobs.pool=1").embedder(embedder.clone());
    let running = host.run_jobs().await;
    cron(&host, each_second("x")).await;
    eventually("it fires", async || !embedder.events().is_empty()).await;
    let id = host.result("job_submit", json!({ "bin": "sh", "args": ["-c", "echo 1"] })).await["job_id"].clone();
    assert_eq!(host.result("job_wait", json!({ "job_id": id })).await["stdout"], "1\n");
    running.close().await;
}

/// What has fired and waits goes along with its schedule.
#[tokio::test]
async fn a_firing_that_waits_is_adopted_with_its_schedule() {
    let host = host().set("jobs.pool=1");
    let running = host.run_jobs().await;
    host.result("job_submit", json!({ "bin": "sleep", "args": ["100"] })).await;
    let call = json!({ "action": "create", "id": "x", "bin": "sh", "args": ["-c", "echo >> fired"], "interval_secs": 1, "run_once": true });
    cron(&host, call).await;
    eventually("it waits", async || jobs_of(&host, "x").await.iter().any(|job| job["state"] == "pending")).await;
    running.close().await;
    let host = host.set("tools.shell_env=[\"PATH\"]");
    let running = host.run_jobs().await;
    let (inner, context) = host.parts();
    // Its agent is told, and so is whoever starts the program.
    let waits = row(&host, "x").await["waits"].clone();
    assert_eq!(waits, Value::Null, "it is over but for what it has fired");
    let look = SchedulesLook { id: "x".into(), agent: None };
    inner.adopt_schedule(&look, context).await.map_err(|failure| failure.message).expect("a schedule");
    eventually("it is over", async || row(&host, "x").await.is_null()).await;
    assert_eq!(std::fs::read_to_string(host.work().join("fired")).expect("what it wrote"), "\n");
    running.close().await;
}

/// What waits for room is not begun once its schedule is gone, or too late.
#[tokio::test]
async fn a_firing_that_waits_is_dropped_with_its_schedule_or_when_it_is_late() {
    let host = host().set("jobs.pool=1");
    let fired = || std::fs::read_to_string(host.work().join("fired")).unwrap_or_default().len();
    let _running = host.run_jobs().await;
    let store = || Connection::open(host.dirs().state.join("store.sqlite")).expect("a store");
    let pause = json!({ "action": "pause", "id": "x" });
    for (how, cause) in [
        ("delete", "missed: its schedule was removed"),
        ("replace", "missed: its schedule was replaced"),
        ("pause", "missed: its schedule is paused"),
        ("late", "missed: it was not begun in time"),
    ] {
        let sleeper = host.result("job_submit", json!({ "bin": "sleep", "args": ["100"] })).await["job_id"].clone();
        let mut wanted = json!({
            "action": "create", "id": "x", "bin": "sh", "args": ["-c", "echo >> fired"], "interval_secs": 1, "replace": true
        });
        cron(&host, wanted.clone()).await;
        eventually("it waits", async || jobs_of(&host, "x").await.iter().any(|job| job["state"] == "pending")).await;
        let before = fired();
        match how {
            "delete" => _ = cron(&host, json!({ "action": "delete", "delete_id": "x" })).await,
            "replace" => {
                wanted["interval_secs"] = json!(86_400);
                cron(&host, wanted).await;
            }
            "pause" => _ = cron(&host, pause.clone()).await,
            _ => {
                let late = "UPDATE job SET spec = json_set(spec, '$.fired.until_ms', 1) WHERE state = 'pending'";
                assert_eq!(store().execute(late, []).expect("a row"), 1);
            }
        }
        host.result("job_cancel", json!({ "job_id": sleeper })).await;
        eventually("it is dropped", async || {
            jobs_of(&host, "x").await.iter().any(|job| job["state"] == "cancelled" && job["cause"] == cause)
        })
        .await;
        if how != "late" {
            tokio::time::sleep(Duration::from_millis(1200)).await;
            assert_eq!(fired(), before, "{how}");
        }
    }
}

#[tokio::test]
async fn no_secret_is_kept_and_what_people_see_is_clean() {
    let embedder = answering(json!({}));
    let host = host().embedder(embedder.clone());
    let file = host.home().join("secret");
    std::fs::write(&file, "hunter2hunter2").expect("a file");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    let zone = "[schedules]\nshortest_ms = 1000\n";
    let host = host.user(&format!("{zone}[secret.KEY]\nfile = {file:?}\n"));
    let _running = host.run_jobs().await;
    let of = |prompt: &str| json!({ "action": "create", "id": "x", "prompt": prompt, "cron_expr": "0 0 1 1 *", "replace": true });
    let refused = host.failure("cron", of("say hunter2hunter2")).await;
    assert_eq!(refused.kind, Kind::Denied, "{}", refused.message);
    let mut named = of("x");
    named["id"] = json!("hunter2hunter2");
    assert_eq!(host.failure("cron", named).await.kind, Kind::Denied);
    let call = json!({ "action": "create", "id": "x", "bin": "sh", "args": ["-c", "echo hunter2hunter2"] });
    assert_eq!(host.failure("cron", call).await.kind, Kind::Denied);
    let saved = cron(&host, of("a\u{1b}[31mb\u{202e}c")).await;
    let prompt = saved["schedules"][0]["prompt"].as_str().expect("a prompt");
    assert!(!prompt.contains(['\u{1b}', '\u{202e}']), "{prompt:?}");
}

/// A plugin of somebody else has what its rights say, and sees its own alone.
#[tokio::test]
async fn a_plugin_has_what_its_rights_say_and_sees_its_own() {
    let planner = || host().embedder(answering(json!({}))).plugin("planner");
    let event = json!({ "save": "p", "data": ["{}"], "every": [3600] });
    let call = json!({ "save": "q", "tool": ["sh"], "arguments": { "args": ["-c", "true"] }, "every": [3600] });
    let refused = planner().failure("planner", json!({})).await;
    assert_eq!(kind_of(&refused), (Kind::Denied, "`planner` needs `schedules`, which the policy does not grant"));
    assert!(refused.hint.is_some_and(|hint| hint.contains("--schedules")));
    let host = planner().grant("planner", "schedules=true");
    let _running = host.run_jobs().await;
    let refused = host.failure("planner", event.clone()).await;
    assert_eq!(kind_of(&refused), (Kind::Denied, "`planner` needs `embedder`, which the policy does not grant"));
    let refused = host.failure("planner", call.clone()).await;
    assert_eq!(kind_of(&refused), (Kind::Denied, "`planner` needs `jobs`, which the policy does not grant"));
    drop(_running);
    let host = host.grant("planner", "embedder.kinds=[\"message.*\"]").grant("planner", "jobs=[\"sleep\"]");
    let _running = host.run_jobs().await;
    let refused = host.failure("planner", event.clone()).await;
    assert_eq!(kind_of(&refused), (Kind::Denied, "`planner` may not hand over events of the kind `schedule.fired`"));
    let refused = host.failure("planner", call.clone()).await;
    assert_eq!(kind_of(&refused), (Kind::Denied, "`planner` may not submit jobs of `sh`"));
    drop(_running);
    let host = host.grant("planner", "embedder.kinds=[\"schedule.fired\"]").grant("planner", "jobs=[\"sh\"]");
    let _running = host.run_jobs().await;
    cron(&host, json!({ "action": "create", "id": "c", "prompt": "x" })).await;
    assert_eq!(host.result("planner", event.clone()).await["seen"], json!(["p"]));
    assert_eq!(host.result("planner", call).await["seen"], json!(["p", "q"]));
    // What another has saved is not its to remove or replace.
    assert_eq!(host.failure("planner", json!({ "remove": "c" })).await.message, "there is no schedule `c`");
    let taken = json!({ "save": "c", "data": ["{}"], "every": [3600], "replace": true });
    assert_eq!(host.failure("planner", taken).await.kind, Kind::Busy);
    let both = json!({ "save": "r", "data": ["{}", "{}"], "every": [3600] });
    assert_eq!(host.failure("planner", both).await.message, "a schedule says what it does in one way");
    let never = json!({ "save": "r", "data": ["{}"] });
    assert_eq!(host.failure("planner", never).await.message, "a schedule says when it fires");
    let large = json!({ "save": "r", "data": [format!("{:?}", "x".repeat(64 << 10))], "every": [3600] });
    assert_eq!(host.failure("planner", large).await.kind, Kind::Limit);
    // The agent sees all of its own.
    let all = cron(&host, json!({ "action": "list" })).await;
    let ids = all["schedules"].as_array().expect("a list").iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids, [json!("c"), json!("p"), json!("q")]);
}

/// Rights that are taken back count when it fires.
#[tokio::test]
async fn what_may_not_be_any_more_does_not_fire() {
    let embedder = answering(json!({}));
    let mut host = host().embedder(embedder.clone()).set("schedules.failures=1");
    let running = host.run_jobs().await;
    let mut wanted = each_second("x");
    wanted["interval_secs"] = json!(3);
    cron(&host, wanted).await;
    let call =
        json!({ "action": "create", "id": "y", "bin": "sh", "args": ["-c", "echo >> fired"], "interval_secs": 3 });
    cron(&host, call).await;
    running.close().await;
    for (id, settings, why) in [
        ("x", &["embedder.kinds=[]"][..], "denied: `cron` needs `embedder`"),
        ("y", &["embedder.kinds=[\"*\"]", "jobs=[\"sleep\"]"], "denied: `cron` may not submit jobs of `sh`"),
        ("y", &["jobs=[\"*\"]", "schedules=false"], "denied: `cron` needs `schedules`"),
        ("x", &[], "denied: `cron` needs `schedules`"),
    ] {
        for setting in settings {
            host = host.set(&format!("plugin.cron.{setting}"));
        }
        let running = host.run_jobs().await;
        let (inner, context) = host.parts();
        let look = SchedulesLook { id: id.into(), agent: None };
        let known = |failure: Failure| failure.message;
        // By other settings no command is run; an operator adopts it.
        let adopted = inner.adopt_schedule(&look, context).await.map_err(known).expect("a schedule");
        assert!(adopted.fires_here);
        inner.resume_schedule(&look, context).await.map_err(known).expect("a schedule");
        let shown = async || inner.schedule(&look, context).await.map_err(known).expect("a schedule");
        eventually("it is refused", async || shown().await.why.is_some_and(|told| told.starts_with(why))).await;
        assert_eq!(shown().await.state.name(), "disabled");
        running.close().await;
    }
    assert!(embedder.events().is_empty() && !host.work().join("fired").exists());
}
