//! Schedules by any number of programs, of which some are killed; and what an operator does with them.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::{Program, Running, eventually, is_long, on_path};

/// The arguments that every program of a test has.
fn with<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--no-tmux", "--yes", "--set", "schedules.shortest_ms=1000", "--set", "jobs.lease_ms=2000"]].concat()
}

fn program() -> Program {
    let program = Program::new();
    program.declares("sh", &on_path("sh"), "");
    program
}

fn door(program: &Program) -> Running {
    program.start(&with(&["run", "--embedder", "schedule.fired"]))
}

fn write(running: &mut Running, line: &Value) {
    running.write(format!("{line}\n"));
}

/// Has a tool called; events that come meanwhile are answered.
fn cron(running: &mut Running, arguments: Value) -> Value {
    write(running, &json!({ "id": 1, "tool": "cron", "arguments": arguments }));
    loop {
        let line = running.line();
        if line["id"] == 1 {
            assert!(line["error"].is_null(), "{line}");
            return line["result"].clone();
        }
        answer(running, &line);
    }
}

fn answer(running: &mut Running, line: &Value) {
    write(running, &json!({ "answer": line["ask"]["ask"], "result": {} }));
}

fn shown(program: &Program, id: &str) -> Value {
    json_of(&program.run(&with(&["schedules", "show", id, "--json"])))
}

/// Case 55: whichever of the programs has it, a due time is one event, also while they are killed and started again.
#[test]
fn each_due_time_is_one_event_whichever_program_is_killed() {
    let program = program();
    let fired = Arc::new(Mutex::new(HashMap::<u64, u32>::new()));
    let mut first = door(&program);
    for id in ["a", "b", "c"] {
        cron(&mut first, json!({ "action": "create", "id": id, "prompt": "x", "interval_secs": 1 }));
    }
    drop(first);
    let time = Duration::from_secs(if is_long() { 300 } else { 12 });
    let least = time.as_secs() as usize;
    let (over, kills) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (program, over, kills, fired) = (&program, &over, &kills, fired.clone());
            scope.spawn(move || {
                let mut running = door(program);
                while !over.load(Ordering::SeqCst) {
                    // The first is killed in the midst of things.
                    if number == 0 && kills.swap(false, Ordering::SeqCst) {
                        running.kill();
                        running = door(program);
                    }
                    write(&mut running, &json!({ "id": 0, "tool": "time", "arguments": {} }));
                    loop {
                        let line = running.line();
                        if line["id"] == 0 {
                            break;
                        }
                        let payload = &line["ask"]["payload"];
                        let (id, due) = (payload["schedule"].as_str().expect("an id"), payload["due_ms"].as_u64());
                        let key = due.expect("a time") * 1000 + u64::from(id.as_bytes()[0]);
                        *fired.lock().expect("a map").entry(key).or_default() += 1;
                        answer(&mut running, &line);
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let begun = Instant::now();
        // A loaded machine takes longer for so many.
        while begun.elapsed() < time || (begun.elapsed() < time * 5 && fired.lock().expect("a map").len() < least) {
            std::thread::sleep(Duration::from_millis(1500));
            kills.store(true, Ordering::SeqCst);
        }
        over.store(true, Ordering::SeqCst);
    });
    let fired = fired.lock().expect("a map");
    let twice: Vec<_> = fired.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert!(fired.len() >= least, "{} firings of 3 schedules", fired.len());
    let jobs = json_of(&program.run(&with(&["jobs", "list", "--limit", "1000", "--json"])));
    let bad =
        |job: &&Value| !["done", "orphaned", "cancelled", "error"].contains(&job["state"].as_str().expect("a state"));
    let left: Vec<_> = jobs["jobs"].as_array().expect("a list").iter().filter(bad).collect();
    assert!(left.len() <= 3, "{left:?}");
}

/// What was saved goes on by a program that runs jobs and nothing else, after the one that saved it was killed.
#[test]
fn a_worker_fires_jobs_of_a_host_that_was_killed_and_no_events() {
    let program = program();
    let mut first = door(&program);
    let call =
        json!({ "action": "create", "id": "job", "bin": "sh", "args": ["-c", "echo >> fired"], "interval_secs": 1 });
    cron(&mut first, call);
    cron(&mut first, json!({ "action": "create", "id": "event", "prompt": "x", "interval_secs": 86_400 }));
    first.kill();
    let lines = || std::fs::read_to_string(program.path("work/fired")).unwrap_or_default().lines().count();
    let before = lines();
    let worker = program.start(&with(&["worker"]));
    eventually("it fires", || lines() >= before + 2);
    drop(worker);
    let listed = stdout(&program.run(&with(&["schedules", "list"])));
    assert!(listed.contains("event") && listed.contains("job"), "{listed}");
}

#[test]
fn an_operator_lists_shows_pauses_resumes_adopts_and_removes() {
    let program = program();
    let run = |arguments: &[&str]| program.run(&with(&[&["schedules"], arguments].concat()));
    assert_eq!(stdout(&run(&["list"])), "no schedules\n");
    let mut door = door(&program);
    cron(
        &mut door,
        json!({ "action": "create", "id": "morning", "prompt": "Good morning", "cron_expr": "0 9 * * 1-5", "zone": "Europe/Berlin" }),
    );
    let call = json!({ "action": "create", "id": "job", "bin": "sh", "args": ["-c", "true"], "interval_secs": 1, "timeout_secs": 5 });
    cron(&mut door, call);
    eventually("it fires", || shown(&program, "job")["last"] == "done");
    let listed = succeeded(&run(&["list"]));
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[0].starts_with("id") && lines[1].starts_with("job") && lines[2].starts_with("morning"), "{listed}");
    let text = succeeded(&run(&["show", "morning"]));
    assert!(
        text.contains("data: {\"prompt\":\"Good morning\"}\nwhen: each time, `0 9 * * 1-5` (Europe/Berlin)\n"),
        "{text}"
    );
    assert!(text.contains("may take: 10m"), "{text}");
    assert_eq!(stdout(&run(&["pause", "job"])), "schedule job is paused\n");
    assert_eq!(shown(&program, "job")["state"], "paused");
    eventually("it has ended", || shown(&program, "job")["running"].is_null());
    let last = shown(&program, "job")["last_due"].clone();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(shown(&program, "job")["last_due"], last);
    assert!(stdout(&run(&["resume", "job"])).starts_with("schedule job fires next at 20"));
    eventually("it fires again", || shown(&program, "job")["last_due"] != last);
    // By other settings it waits for somebody; events do not depend on them.
    let mut other = program.start(&with(&["run", "--set", "tools.shell_env=[\"PATH\"]"]));
    eventually("it says so", || {
        other.said().contains("with other settings, and do not fire: 1; `toolcrib schedules list`")
    });
    let rows = cron(&mut other, json!({ "action": "list" }));
    let waits = |row: usize| rows["schedules"][row]["waits"].as_str().unwrap_or_default().to_owned();
    assert!(waits(0).starts_with("a program that acts where it was saved, with the settings of then"), "{rows}");
    assert_eq!(waits(1), "an embedder that takes events of the kind `schedule.fired`");
    drop(other);
    assert!(door.said().is_empty(), "{}", door.said());
    let other = [&["schedules", "list"], &with(&[])[..], &["--set", "tools.shell_env=[\"PATH\"]"]].concat();
    let listed = succeeded(&program.run(&other));
    assert_eq!(listed.matches("by programs elsewhere").count(), 1, "{listed}");
    let adopt = [&["schedules", "adopt", "--all"], &with(&[])[..], &["--set", "tools.shell_env=[\"PATH\"]"]].concat();
    assert_eq!(succeeded(&program.run(&adopt)), "schedule job of agent is fired by programs in this directory\n");
    assert_eq!(succeeded(&program.run(&adopt)), "nothing to adopt\n");
    assert_eq!(shown(&program, "job")["fires_here"], false);
    assert_eq!(succeeded(&run(&["adopt", "job"])), "schedule job of agent is fired by programs in this directory\n");
    assert_eq!(succeeded(&run(&["remove", "job"])), "schedule job is removed\n");
    for arguments in [["show", "job"], ["remove", "job"], ["pause", "job"], ["resume", "job"], ["adopt", "job"]] {
        let outcome = run(&arguments);
        assert_ne!(code(&outcome), 0, "{arguments:?}");
        let said = stderr(&outcome);
        assert!(said.contains("there is no schedule `job`") && said.contains("`toolcrib schedules list`"), "{said}");
    }
    let twice = run(&["adopt"]);
    assert_ne!(code(&twice), 0);
    // The record has what the operator did.
    let audit = std::fs::read_to_string(program.path("state/toolcrib/audit.jsonl")).expect("a trail");
    for what in ["paused schedule job", "resumed schedule job", "adopted schedule job", "removed schedule job"] {
        assert!(audit.contains(what), "{what}");
    }
}

/// A schedule of each agent, which have one store.
#[test]
fn agents_have_schedules_of_the_same_id_and_an_operator_says_which() {
    let program = program();
    program.write("sets.toml", "[toolset.one]\nsession = [\"agent\"]\ntools = [\"cron\"]\n");
    let config = program.path("sets.toml").display().to_string();
    let mut door = program.start(&with(&["--config", &config, "run", "--embedder", "*"]));
    for (number, agent) in ["bob", "eve"].into_iter().enumerate() {
        write(&mut door, &json!({ "id": 1, "open": { "toolset": "one", "bind": { "agent": agent } } }));
        let session = door.line()["result"]["session"].clone();
        let call = json!({ "action": "create", "id": "x", "prompt": agent, "cron_expr": "0 0 1 1 *" });
        write(&mut door, &json!({ "id": 2, "session": session, "tool": "cron", "arguments": call }));
        assert_eq!(door.line()["result"]["schedules"][0]["prompt"], json!(agent), "{number}");
        write(&mut door, &json!({ "id": 3, "session": session, "tool": "cron", "arguments": { "action": "list" } }));
        assert_eq!(door.line()["result"]["schedules"].as_array().map(Vec::len), Some(1));
    }
    let run = |arguments: &[&str]| program.run(&with(&[&["schedules"], arguments].concat()));
    let several = run(&["remove", "x"]);
    assert!(stderr(&several).contains("several agents have a schedule `x`") && stderr(&several).contains("--agent"));
    assert_eq!(succeeded(&run(&["remove", "x", "--agent", "bob"])), "schedule x is removed\n");
    assert!(succeeded(&run(&["show", "x"])).contains("agent: eve"));
}
