//! Several servers and several callers of one host: none gets what is another's, and none holds another up.

use crate::rig::{NAME, beside, host, section};
use futures_util::future::join_all;
use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib::call::{Arguments, Request};
use toolcrib::config::UpstreamSection;
use toolcrib_tests::{TestHost, is_long};

/// What the second server is called.
const NEIGHBOUR: &str = "neighbour";
/// Calls of one caller that wait for one server.
const AT_ONCE: usize = 20;

/// Case 17.
#[tokio::test]
async fn a_server_whose_list_changes_all_the_time_is_asked_for_it_every_5_s_and_its_neighbour_goes_on() {
    const TIME: Duration = Duration::from_millis(10_500);
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let restless = section("restless", &[log.to_str().expect("text")]);
    let restless = UpstreamSection { write: vec![directory.path().to_owned()], ..restless };
    let host = beside(host(), NAME, restless).await;
    let host = beside(host, NEIGHBOUR, section("plain", &[])).await;
    let alone = paced(&host, NEIGHBOUR, Duration::from_secs(1)).await;
    let (_, beside) = tokio::join!(paced(&host, NAME, TIME), paced(&host, NEIGHBOUR, TIME));
    println!("p95 of a call of the neighbour: {:?} alone, {:?} beside the other", p95(alone), p95(beside));
    let log = std::fs::read_to_string(&log).expect("when it was asked");
    let asked: Vec<f64> = log.lines().map(|line| line.parse().expect("a time")).collect();
    assert!(asked.len() >= 2, "it was never asked again: {asked:?}");
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] >= 5.0), "{asked:?}");
}

/// Calls a server 50 times a second for so long, and returns how long each call took.
async fn paced(host: &TestHost, server: &str, most: Duration) -> Vec<Duration> {
    let (begin, mut took) = (Instant::now(), Vec::new());
    let mut each = tokio::time::interval(Duration::from_millis(20));
    while begin.elapsed() < most {
        each.tick().await;
        let begin = Instant::now();
        assert_eq!(host.result(&format!("{server}__echo"), json!({ "text": "x" })).await, "x");
        took.push(begin.elapsed());
    }
    took
}

fn p95(mut took: Vec<Duration>) -> Duration {
    took.sort_unstable();
    took[took.len() * 95 / 100]
}

/// Case 22. All begin to count their requests at the same number, so a number of one is that of another, too.
#[tokio::test]
async fn answers_under_swapped_numbers_reach_no_other_caller_and_come_from_no_other_server() {
    let calls = if is_long() { 1_000_000 } else { 10_000 };
    let host = host().set("limits.calls_per_minute=1000000000");
    let host = beside(host, NAME, section("swaps", &[])).await;
    let host = beside(host, NEIGHBOUR, section("swaps", &[])).await;
    let pairs = [("ann", NAME), ("ann", NEIGHBOUR), ("bob", NAME), ("bob", NEIGHBOUR)];
    let rounds = calls / pairs.len() / AT_ONCE;
    join_all(pairs.map(|(caller, server)| swapped(&host, caller, server, rounds))).await;
}

/// Has a caller call a server that answers each call with what another one asked for.
async fn swapped(host: &TestHost, caller: &str, server: &str, rounds: usize) {
    let (made, context) = host.parts();
    let context = context.clone().principal(caller);
    let canary = format!("{caller} {server} ");
    for round in 0..rounds {
        let calls = (0..AT_ONCE).map(|number| {
            let (canary, context) = (&canary, &context);
            async move {
                let own = format!("{canary}{round} {number}");
                let arguments = Arguments::Json(json!({ "text": own }));
                let request = Request { tool: format!("{server}__echo"), arguments };
                let outcome = made.call(request, context).await.outcome.map(|output| output.result);
                let said = outcome.map_err(|failure| failure.to_json().to_string()).expect("an answer");
                let said = said.as_str().expect("a text");
                assert_ne!(said, own, "the server has swapped nothing");
                assert!(said.starts_with(canary), "{own} got {said}");
            }
        });
        join_all(calls).await;
    }
}
