//! Servers that flood, lie, and break off: each is bounded and told, and the next call goes on.

use crate::rig::{behaving, call, echoed};
use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib::envelope::Kind;

/// Memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn a_line_of_hundreds_of_mebibytes_fails_its_call_alone() {
    let host = behaving("long", &[]).await;
    let _ = call(&host, "add", json!({ "a": 1, "b": 1 })).await.expect("it runs");
    let before = resident();
    let failure = echoed(&host, "256").await.expect_err("too long");
    assert_eq!(failure.kind, Kind::Limit);
    // Other tests of this process make hosts meanwhile; the line alone would be 256 MiB.
    let more = resident().saturating_sub(before);
    assert!(more < 192 << 10, "{more} KiB more");
    assert_eq!(call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect("the next one").result["sum"], 3);
}

#[tokio::test]
async fn json_of_100_000_levels_overflows_nothing() {
    let host = behaving("deep", &[]).await;
    let failure = echoed(&host, "x").await.expect_err("too deep");
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert_eq!(call(&host, "add", json!({ "a": 1, "b": 2 })).await.expect("the next one").result["sum"], 3);
}

#[tokio::test]
async fn for_a_server_that_does_not_read_no_more_is_kept_than_it_may_have() {
    let host = behaving("deaf", &["timeout_ms=300"]).await;
    let text = "x".repeat(3 << 20);
    let mut kinds = Vec::new();
    for number in 0..12 {
        kinds.push(echoed(&host, &format!("{number}{text}")).await.expect_err("it does not read").kind);
    }
    assert!(kinds.starts_with(&[Kind::TimedOut; 5]), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&Kind::Busy), "{kinds:?}");
}

#[tokio::test]
async fn of_two_answers_the_first_counts() {
    let host = behaving("twice", &[]).await;
    for _ in 0..5 {
        assert_eq!(echoed(&host, "second").await.expect("an answer"), "first");
    }
}

#[tokio::test]
async fn an_answer_under_another_number_reaches_nobody() {
    let host = behaving("other-id", &[]).await;
    for number in 0..5 {
        let text = format!("mine {number}");
        assert_eq!(echoed(&host, &text).await.expect("an answer"), text);
    }
}

#[tokio::test]
async fn a_flood_of_nonsense_ends_the_server_and_holds_nobody_up() {
    for mode in ["garbage", "asks"] {
        let host = behaving(mode, &[]).await;
        let begin = Instant::now();
        let failure = echoed(&host, "20000").await.expect_err("it was ended");
        assert_eq!(failure.kind, Kind::OutcomeUnknown, "{mode}: {}", failure.message);
        assert!(failure.message.contains("makes no sense"), "{mode}: {}", failure.message);
        assert!(begin.elapsed() < Duration::from_secs(20), "{mode}");
        // Fewer than that are counted, and no more.
        assert_eq!(echoed(&host, "50").await.expect("it was started again"), "50", "{mode}");
    }
}
