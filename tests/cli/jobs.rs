//! Jobs in programs that are killed, stand still and start again; and what an operator does with them.

use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use toolcrib_tests::outcome::{code, json_of, stderr, stdout, succeeded};
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::shell::harmless;
use toolcrib_tests::{Client, Program, Running, eventually, is_long, on_path};

/// The lease of a worker that stands still. Its last sixth is what there is to end what it runs, also on a loaded machine.
const LEASE: Duration = Duration::from_secs(6);

fn program() -> Program {
    let program = Program::new();
    for name in ["sh", "sleep", "cat"] {
        program.declares(name, &on_path(name), "");
    }
    program
}

/// The arguments that every program of a test has: others would not run its jobs.
fn with<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    under("jobs.lease_ms=2000", arguments)
}

/// The same under a lease that tests can wait for.
fn under<'a>(lease: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--no-tmux", "--yes", "--set", lease]].concat()
}

fn door(program: &Program, pool: &str) -> Client {
    program.client(&with(&["run", "--set", &format!("jobs.pool={pool}")]))
}

fn worker(program: &Program, more: &[&str]) -> Running {
    program.start(&with(&[&["worker"], more].concat()))
}

fn submit(client: &mut Client, submission: Value) -> String {
    client.result("job_submit", submission)["job_id"].as_str().expect("an id").to_owned()
}

fn script(text: &str) -> Value {
    json!({ "bin": "sh", "args": ["-c", text] })
}

fn may_repeat(mut submission: Value) -> Value {
    submission["may_repeat"] = json!(true);
    submission
}

fn job(program: &Program, id: &str) -> Value {
    json_of(&program.run(&with(&["jobs", "show", id, "--json"])))
}

fn until(program: &Program, id: &str, state: &str) -> Value {
    let mut last = Value::Null;
    eventually(&format!("job {id} is {state}"), || {
        last = job(program, id);
        last["state"] == state
    });
    last
}

/// Case 59: who kills the host leaves nothing of its jobs, and the next one tells the truth.
#[test]
fn the_jobs_of_a_host_that_was_killed_are_orphaned_and_nothing_of_them_runs() {
    for program in [program(), program().unconfined()] {
        let mut client = door(&program, "10");
        let seconds = unique_seconds();
        let text = format!("echo begun; sleep {seconds} & sleep {seconds}");
        let id = submit(&mut client, script(&text));
        eventually("both sleep", || sleeping(&seconds).len() == 2);
        eventually("it was read", || job(&program, &id)["stdout_bytes"] == 6);
        client.kill();
        assert_gone(&seconds);
        let mut client = door(&program, "10");
        let status = client.result("job_status", json!({ "job_id": id }));
        assert_eq!(status["state"], "orphaned", "{status}");
        assert!(status["cause"].as_str().is_some_and(|cause| cause.contains("may have done all, some or nothing")));
        assert_eq!(status["stdout"], "begun\n");
        // It is there for an agent that comes back without its id, too.
        let listed = client.result("job_list", json!({ "all_sessions": true }));
        assert_eq!(listed["jobs"][0]["job_id"], json!(id));
    }
}

/// Case 60.
#[test]
fn jobs_that_wait_when_the_host_is_killed_run_once_when_it_starts_again() {
    let program = program();
    let mut client = door(&program, "1");
    let seconds = unique_seconds();
    let first = submit(&mut client, script(&format!("sleep {seconds}; true")));
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(submit(&mut client, script(&format!("echo {number} >> ran"))));
    }
    eventually("the first runs", || sleeping(&seconds).len() == 1);
    client.kill();
    let mut client = door(&program, "10");
    for id in &ids {
        let end = client.result("job_wait", json!({ "job_id": id, "timeout": "20s" }));
        assert_eq!(end["state"], "done", "{end}");
    }
    assert_eq!(client.result("job_status", json!({ "job_id": first }))["state"], "orphaned");
    let ran = std::fs::read_to_string(program.path("work/ran")).expect("what they wrote");
    let mut ran: Vec<&str> = ran.lines().collect();
    ran.sort_unstable();
    assert_eq!(ran, ["0", "1", "2", "3", "4"]);
    assert_gone(&seconds);
}

/// A worker that stands still runs nothing past its lease, and what it comes to know afterwards changes nothing.
#[test]
fn a_worker_that_stands_still_runs_nothing_past_its_lease() {
    let with = |arguments: &[&'static str]| under("jobs.lease_ms=6000", arguments);
    for repeatable in [false, true] {
        let program = program().unconfined();
        let mut client = program.client(&with(&["run", "--set", "jobs.pool=1"]));
        let blocker = submit(&mut client, json!({ "bin": "sleep", "args": [unique_seconds()] }));
        until(&program, &blocker, "running");
        let seconds = unique_seconds();
        let text = format!("(set -C; echo $$ > witness) || echo >> violations; sleep {seconds}; rm witness");
        let submission = if repeatable { may_repeat(script(&text)) } else { script(&text) };
        let id = submit(&mut client, submission);
        let still = program.start(&with(&["worker"]));
        until(&program, &id, "running");
        eventually("it sleeps", || sleeping(&seconds).len() == 1);
        // It renews its lease as long as it can.
        std::thread::sleep(LEASE * 7 / 6);
        assert_eq!(sleeping(&seconds).len(), 1);
        still.signal("STOP");
        let since = Instant::now();
        eventually("it is ended", || sleeping(&seconds).is_empty());
        assert!(since.elapsed() < LEASE, "{:?}", since.elapsed());
        // The witness of one that was killed is nobody's any more.
        let _ = std::fs::remove_file(program.path("work/witness"));
        let other = program.start(&with(&["worker", "--set", "jobs.pool=5"]));
        if repeatable {
            eventually("it is begun again", || job(&program, &id)["epoch"] == 2);
            eventually("it sleeps again", || sleeping(&seconds).len() == 1);
        } else {
            assert_eq!(until(&program, &id, "orphaned")["epoch"], 1);
        }
        let before = job(&program, &id);
        still.signal("CONT");
        std::thread::sleep(Duration::from_millis(700));
        let after = job(&program, &id);
        assert_eq!((&before["state"], &before["epoch"]), (&after["state"], &after["epoch"]));
        assert!(!program.path("work/violations").exists());
        drop((still, other, client));
        assert_gone(&seconds);
    }
}

/// What runs once and its witness: a file that can be made only where it is not there. Where a run was killed its witness is left, with the
/// number of a process that is none any more.
const WITNESSED: &str = r#"
w=witness-$1
if ! (set -C; echo $$ > $w) 2>/dev/null; then
    other=$(cat $w)
    # Killed before it wrote its number: it is none any more.
    stat=$([ -n "$other" ] && cat /proc/$other/stat 2>/dev/null)
    case "$stat" in
        '' | *') Z '* | *') X '*) ;;
        *) echo "$1: $other $(tr '\0' ' ' < /proc/$other/cmdline) $stat" >> violations ;;
    esac
    echo $$ > $w
fi
echo $1 >> begun
sleep $2
echo $1 >> ended
rm -f $w
"#;

/// Three workers on one store, and a door, killed at random: each job comes to exactly one end, none is run twice at once, none is lost.
#[test]
fn workers_and_hosts_that_are_killed_at_random_lose_no_job_and_run_none_twice_at_once() {
    let jobs = if is_long() { 10_000 } else { 100 };
    let program = program().unconfined();
    program.write("work/job.sh", WITNESSED);
    let raised = ["--set", "jobs.keep=100000", "--set", "jobs.pending=100000", "--set", "jobs.per_session=1000"];
    let door = |pool: &str| program.client(&with(&[&["run", "--set", pool], &raised[..]].concat()));
    let worker = || worker(&program, &raised);
    let mut client = door("jobs.pool=2");
    let mut random = Random(u64::from(std::process::id()) | 1);
    let mut submitted: BTreeMap<String, bool> = BTreeMap::new();
    let mut workers: Vec<Running> = (0..3).map(|_| worker()).collect();
    let mut history = None;
    let mut kills = [0, 0];
    let mut number = 0;
    while number < jobs {
        // The same call where it has to be submitted again.
        let repeatable = number % 2 == 0;
        let time = format!("0.{:03}", number * 7919 % 300);
        let args = json!(["job.sh", number.to_string(), time]);
        let token = format!("job-{number}");
        let submission =
            json!({ "bin": "sh", "args": args, "may_repeat": repeatable, "outlive_session": true, "token": token });
        let id = client.send("job_submit", submission);
        if random.below(jobs / 4) == 0 {
            // The answer is lost: whether it was submitted its token will tell.
            client.kill();
            kills[1] += 1;
            client = door("jobs.pool=2");
            continue;
        }
        let answer = client.answer_to(id);
        let id = answer["result"]["job_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        submitted.insert(id, repeatable);
        history.get_or_insert_with(|| keep_history(&program.path("state/toolcrib/store.sqlite")));
        number += 1;
        if random.below(20) == 0 {
            let which = usize::try_from(random.below(3)).expect("a small number");
            workers[which].kill();
            kills[0] += 1;
            workers[which] = worker();
        }
    }
    let history = history.expect("a history");
    let left = || -> u64 {
        let open = "SELECT count(*) FROM job WHERE state IN ('pending', 'running')";
        history.query_row(open, [], |row| row.get(0)).expect("a count")
    };
    let begun = Instant::now();
    while left() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60 + jobs / 4), "{} jobs come to no end", left());
        std::thread::sleep(Duration::from_millis(50));
    }
    drop((workers, client));
    let mut ends: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rows = history.prepare("SELECT id, is_now FROM history ORDER BY rowid").expect("a query");
    let rows = rows.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).expect("rows");
    for (id, state) in rows.map(|row| row.expect("a row")) {
        if !["pending", "running"].contains(&&*state) {
            ends.entry(id).or_default().push(state);
        }
    }
    let all: u64 = history.query_row("SELECT count(*) FROM job", [], |row| row.get(0)).expect("a count");
    assert_eq!((all, submitted.len() as u64), (jobs, jobs), "each token is one job");
    assert!(submitted.keys().all(|id| ends.get(id).is_some_and(|ends| ends.len() == 1)), "{ends:?}");
    let count = |state: &str| ends.values().filter(|ends| ends[0] == state).count();
    let lines = |name: &str| {
        let text = std::fs::read_to_string(program.path(&format!("work/{name}"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (times, violations) = (lines("begun"), lines("violations"));
    println!(
        "{jobs} jobs, {} worker kills, {} host kills: {} done, {} orphaned, {} begun; violations: {}",
        kills[0],
        kills[1],
        count("done"),
        count("orphaned"),
        times.len(),
        violations.len()
    );
    assert!(violations.is_empty(), "{violations:?}");
    assert_eq!(count("done") + count("orphaned"), submitted.len());
    let repeatable = submitted.iter().filter(|(_, repeatable)| **repeatable).map(|(id, _)| id);
    for id in repeatable {
        assert_eq!(ends[id], ["done"], "what may be repeated is, until it ends");
    }
    // What is done was done.
    assert!(lines("ended").len() >= count("done"));
}

/// Keeps every state that a row ever had.
fn keep_history(store: &Path) -> Connection {
    let history = Connection::open(store).expect("the store");
    history.busy_timeout(Duration::from_secs(10)).expect("a timeout");
    let trigger = "CREATE TABLE history (id TEXT, is_now TEXT);
         CREATE TRIGGER keep AFTER UPDATE OF state ON job WHEN OLD.state <> NEW.state
         BEGIN INSERT INTO history VALUES (NEW.id, NEW.state); END;
         INSERT INTO history SELECT id, state FROM job";
    history.execute_batch(trigger).expect("a trigger");
    history
}

/// Numbers that nobody has to guess.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// An operator sees and ends everything from a terminal.
#[test]
fn an_operator_lists_shows_reads_and_cancels_jobs() {
    let program = program();
    assert_eq!(succeeded(&program.run(&["jobs", "list"])), "no jobs\n");
    assert!(!program.path("state/toolcrib/store.sqlite").exists(), "looking makes no store");
    let mut client = door(&program, "10");
    let done = submit(&mut client, script("echo out; echo err >&2; exit 3"));
    client.result("job_wait", json!({ "job_id": done }));
    let seconds = unique_seconds();
    let running = submit(&mut client, script(&format!("echo first; sleep 1; echo second; sleep {seconds}")));
    until(&program, &running, "running");
    let listed = succeeded(&program.run(&["jobs", "list"]));
    let rows: Vec<Vec<&str>> = listed.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], [&running[..8], "running", "agent", "sh"], "{listed}");
    assert_eq!(rows[1][..5], [&done[..8], "done", "3", "agent", "sh"], "{listed}");
    let all = json_of(&program.run(&["jobs", "list", "--state", "done", "--json"]));
    assert_eq!((&all["jobs"][0]["id"], all["jobs"].as_array().map(Vec::len)), (&json!(done), Some(1)));
    assert_eq!(succeeded(&program.run(&["jobs", "list", "--agent", "other"])), "no jobs\n");
    assert_eq!(code(&program.run(&["jobs", "list", "--state", "runing"])), 2);
    let page = program.run(&["jobs", "list", "--limit", "1"]);
    let next =
        stderr(&page).split("`--after ").nth(1).and_then(|rest| rest.split('`').next()).expect("a cursor").to_owned();
    assert!(succeeded(&program.run(&["jobs", "list", "--after", &next])).contains(&done[..8]));
    let shown = succeeded(&program.run(&["jobs", "show", &done[..8]]));
    for line in
        [&*format!("job: {done}\n"), "state: done\n", "exit status: 3\n", "tool: sh\n", "submitted by: cli:agent\n"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(succeeded(&program.run(&["jobs", "output", &done])), "out\n");
    assert_eq!(succeeded(&program.run(&["jobs", "output", &done, "--stderr"])), "err\n");
    assert_eq!(json_of(&program.run(&["jobs", "output", &done, "--outcome"]))["error"]["data"]["exit_code"], 3);
    let mut following = program.start(&["jobs", "output", &running, "--follow"]);
    let mut output = following.take_output();
    for line in ["first\n", "second\n"] {
        let mut read = String::new();
        std::io::BufRead::read_line(&mut output, &mut read).expect("a line");
        assert_eq!(read, line);
    }
    // By another program than the one that runs it.
    let cancelled = succeeded(&program.run(&["jobs", "cancel", &running[..12]]));
    assert_eq!(cancelled, format!("job {running} is cancelled\n"));
    assert!(following.ended(Duration::from_secs(10)).is_some_and(|status| status.success()));
    assert_gone(&seconds);
    assert_eq!(job(&program, &running)["cause"], "cancelled by an operator");
    for (arguments, expected, what) in [
        (["jobs", "cancel", &running], 12, "is not running: it is cancelled"),
        (["jobs", "show", "ffff"], 4, "there is no job `ffff`"),
        (["jobs", "show", "nonsense"], 4, "there is no job `nonsense`"),
        (["jobs", "adopt", &done], 12, "does not wait: it is done"),
    ] {
        let refused = program.run(&arguments);
        assert_eq!((code(&refused), stdout(&refused).as_str()), (expected, ""), "{arguments:?}");
        assert!(stderr(&refused).contains(what), "{}", stderr(&refused));
    }
}

/// What was submitted under other settings waits for an operator.
#[test]
fn what_was_submitted_under_other_settings_waits_until_it_is_adopted() {
    let program = program();
    let mut client = door(&program, "1");
    let seconds = unique_seconds();
    let blocker = submit(&mut client, script(&format!("sleep {seconds}; true")));
    let id = submit(&mut client, json!({ "bin": "run_shell", "arguments": harmless("echo ran > there") }));
    until(&program, &blocker, "running");
    client.kill();
    let narrow = ["worker", "--set", "tools.shell_denylist=[\"echo\"]"];
    let other = program.start(&with(&narrow));
    eventually("it says so", || other.said().contains("with other settings: 1"));
    // A policy that is named is one of these.
    program.write("narrow.toml", "");
    let policy = program.path("narrow.toml").display().to_string();
    let named = program.start(&with(&["worker", "--policy", &policy]));
    eventually("it says so", || named.said().contains("with other settings: 1"));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(job(&program, &id)["state"], "pending");
    assert_eq!(code(&program.run(&with(&["jobs", "adopt", &id, narrow[1], narrow[2]]))), 0);
    // It is run by these settings, and they refuse it.
    let end = until(&program, &id, "error");
    assert!(end["cause"].as_str().is_some_and(|cause| cause.starts_with("denied: ")), "{end}");
    assert!(!program.path("work/there").exists());
    drop(other);
    assert_gone(&seconds);
}

/// A worker says what it does, and ends what it runs when it is told to end.
#[test]
fn a_worker_ends_what_it_runs_when_it_is_told_to() {
    let program = program();
    let off = program.run(&["worker", "--set", "jobs.enabled=false"]);
    assert_eq!(code(&off), 2);
    assert!(stderr(&off).contains("`jobs.enabled = false`"), "{}", stderr(&off));
    let mut running = worker(&program, &[]);
    eventually("it says so", || running.said().contains("running jobs until Ctrl-C"));
    // One of another directory is not for it.
    let mut client = door(&program, "1");
    let seconds = unique_seconds();
    let blocker = submit(&mut client, json!({ "bin": "sleep", "args": [unique_seconds()] }));
    let id = submit(&mut client, may_repeat(script(&format!("sleep {seconds}; true"))));
    until(&program, &blocker, "running");
    until(&program, &id, "running");
    eventually("it sleeps", || sleeping(&seconds).len() == 1);
    client.kill();
    running.signal("TERM");
    assert_eq!(running.ended(Duration::from_secs(10)).and_then(|status| status.code()), Some(130));
    assert!(sleeping(&seconds).is_empty());
    let job = job(&program, &id);
    assert_eq!((&job["state"], &job["cause"]), (&json!("pending"), &json!("its worker was stopped while it ran")));
}

/// The sessions of a program that speaks lines end their jobs when they are closed.
#[test]
fn a_session_that_is_closed_by_a_line_ends_its_jobs() {
    let program = program();
    program.write(
        "config/toolcrib/toolcrib.toml",
        std::fs::read_to_string(program.path("config/toolcrib/toolcrib.toml")).expect("settings")
            + "[toolset.otter]\ntools = [\"job_submit\", \"job_status\", \"sh\"]\n",
    );
    let mut client = door(&program, "10");
    client.write("{\"id\":\"open\",\"open\":{\"toolset\":\"otter\"}}\n");
    assert_eq!(client.line()["result"]["session"], "s1");
    let seconds = unique_seconds();
    let submission = json!({ "id": "submit", "session": "s1", "tool": "job_submit", "arguments": script(&format!("sleep {seconds}; true")) });
    client.write(format!("{submission}\n"));
    let id = client.line()["result"]["job_id"].as_str().expect("an id").to_owned();
    until(&program, &id, "running");
    client.write("{\"id\":\"close\",\"session\":\"s1\",\"close\":true}\n");
    assert_eq!(client.line()["result"]["closed"], "s1");
    assert_eq!(job(&program, &id)["cause"], "its session was closed");
    assert!(sleeping(&seconds).is_empty());
}
