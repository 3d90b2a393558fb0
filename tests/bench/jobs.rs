//! What jobs cost: to submit one, to find ten thousand that wait after a kill, and to run them, beside a bare loop of `posix_spawn`.

use crate::{quantile, row};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use toolcrib_tests::{Client, Program, on_path};

const JOBS: usize = 10_000;
/// At one time.
const POOL: usize = 10;

pub(crate) fn jobs() {
    let program = Program::new().unconfined();
    program.declares("true", &on_path("true"), "");
    program.declares("sleep", &on_path("sleep"), "");
    let raised =
        ["--yes", "--set", "jobs.pending=100000", "--set", "jobs.keep=100000", "--set", "jobs.per_session=1000"];
    let start = |door: &str, pool: usize| {
        let pool = format!("jobs.pool={pool}");
        program.start(&[&[door, "--no-tmux", "--set", &*pool], &raised[..]].concat())
    };
    let mut client = Client::of(start("run", 1));
    // It keeps the others waiting.
    let blocker = client.result("job_submit", json!({ "bin": "sleep", "args": ["1000"] }));
    let store = Connection::open(program.path("state/toolcrib/store.sqlite")).expect("the store");
    store.busy_timeout(Duration::from_secs(10)).expect("a timeout");
    let count = |state: &str| -> usize {
        let count = "SELECT count(*) FROM job WHERE state = ?1";
        let mut count = store.prepare_cached(count).expect("a query");
        count.query_row([state], |row| row.get(0)).expect("a count")
    };
    while count("running") == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let submit = || json!({ "bin": "true", "args": ["x"] });
    let mut submitted: Vec<Duration> = Vec::new();
    for _ in 0..JOBS {
        let begun = Instant::now();
        let answer: Value = client.result("job_submit", submit());
        submitted.push(begun.elapsed());
        assert!(answer["job_id"].is_string() && blocker["job_id"].is_string());
    }
    submitted.sort();
    client.kill();
    drop(client);
    let begun = Instant::now();
    let worker = start("worker", POOL);
    while count("pending") == JOBS {
        std::thread::sleep(Duration::from_millis(2));
    }
    let recovered = begun.elapsed();
    let (running, left) = (Instant::now(), count("pending"));
    // Rarely, and what an index has: looking takes time from them.
    while count("pending") > 0 {
        std::thread::sleep(Duration::from_millis(100));
    }
    while count("done") < JOBS {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ours = left as f64 / running.elapsed().as_secs_f64();
    drop(worker);
    let bare = bare_loop(left);
    let [half, late] = [50, 99].map(|at| quantile(&submitted, at));
    row("`job_submit` by lines, SQLite", "p50 <= 2 ms", &format!("p50 {half:.2?}, p99 {late:.2?}"), "", "");
    let begun = format!("the first begins after {recovered:.0?}");
    row("10,000 jobs that wait, after a kill and a start", "<= 1 s", &begun, "", "");
    row(
        "jobs of `true`, 10 at one time, unconfined",
        ">= 60 %",
        &format!("{ours:.0} jobs/s"),
        &format!("a loop of `posix_spawn` {bare:.0}/s"),
        &format!("{:.0} %", 100.0 * ours / bare),
    );
}

/// Processes a second of a loop that starts one whenever one has ended.
fn bare_loop(count: usize) -> f64 {
    let program = on_path("true");
    let begun = Instant::now();
    let mut running = 0;
    let wait = || {
        let ended = rustix::process::wait(rustix::process::WaitOptions::empty());
        assert!(ended.expect("children").is_some());
    };
    for _ in 0..count {
        if running == POOL {
            wait();
            running -= 1;
        }
        // The library starts it by `posix_spawn`: nothing is done between.
        let mut command = Command::new(&program);
        command.arg("x").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(command.spawn().expect("a process"));
        running += 1;
    }
    (0..running).for_each(|_| wait());
    count as f64 / begun.elapsed().as_secs_f64()
}
