//! `time`: the host's clock.

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

fn unix_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock behind 1970");
    i64::try_from(since.as_millis()).expect("a clock before the year 292278994")
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no integer"))
}

#[tokio::test(flavor = "multi_thread")]
async fn time_tells_the_clock_of_the_host() {
    let host = TestHost::new();
    let before = unix_millis();
    let now = host.result("time", json!({})).await;
    let after = unix_millis();
    assert_eq!(now["source"], "harness");
    assert!((before..=after).contains(&number(&now["unix_millis"])), "{before} {now} {after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_envelope_carries_the_time_of_the_answer() {
    let before = unix_millis();
    let envelope = TestHost::new().call("time", json!({})).await.to_json();
    let stamp = &envelope["harness_timestamp"];
    assert_eq!(stamp["source"], "harness");
    assert!((before..=unix_millis()).contains(&number(&stamp["unix_millis"])), "{envelope}");
    assert!(number(&envelope["result"]["unix_millis"]) <= number(&stamp["unix_millis"]), "{envelope}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_forms_are_of_one_moment() {
    let now = TestHost::new().result("time", json!({})).await;
    let nanos = number(&now["unix_nanos"]);
    assert_eq!(number(&now["unix_millis"]), nanos / 1_000_000);
    assert_eq!(number(&now["unix_seconds"]), nanos / 1_000_000_000);
    let (date, time) = (now["date_utc"].as_str().expect("a date"), now["time_utc"].as_str().expect("a time"));
    assert_eq!(now["iso_8601_utc"], format!("{date}T{time}Z"));
    assert_eq!(now["iso_8601_millis_utc"], format!("{date}T{time}.{:03}Z", nanos / 1_000_000 % 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calendar_is_that_of_the_system() {
    let host = TestHost::new();
    let now = host.result("time", json!({})).await;
    let seconds = number(&now["unix_seconds"]);
    let system = host.shell(&format!("LC_ALL=C date -u -d @{seconds} '+%FT%TZ|%a, %d %b %Y %T +0000'")).await;
    let (iso, rfc) =
        (now["iso_8601_utc"].as_str().unwrap_or_default(), now["rfc_2822_utc"].as_str().unwrap_or_default());
    assert_eq!(system["stdout"], format!("{iso}|{rfc}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_caller_may_name_a_form_and_a_reason() {
    let now = TestHost::new().result("time", json!({ "format": "date", "why": "stamp a note" })).await;
    assert_eq!(now["formatted"], now["date_utc"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_form_is_ignored_and_said() {
    let envelope = TestHost::new().call("time", json!({ "format": "stardate" })).await.to_json();
    assert_eq!(envelope["result"].get("formatted"), None);
    insta::assert_json_snapshot!(envelope["notices"], @r#"
    [
      "`format` `stardate` is not known and was ignored; known are unix, unix_millis, unix_nanos, iso_8601, rfc_3339, iso_8601_millis, rfc_2822, date, time"
    ]
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_zone_of_the_host_makes_no_difference() {
    let program = toolcrib_tests::Program::new();
    let mut command = program.command(&["call", "time"]);
    let output = command.env("TZ", "Pacific/Kiritimati").output().expect("the program starts");
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
    let seconds_of_day = number(&envelope["result"]["unix_seconds"]) % 86400;
    let (hours, minutes, seconds) = (seconds_of_day / 3600, seconds_of_day / 60 % 60, seconds_of_day % 60);
    assert_eq!(envelope["result"]["time_utc"], format!("{hours:02}:{minutes:02}:{seconds:02}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_argument_of_the_wrong_type_is_named() {
    let failure = TestHost::new().failure("time", json!({ "format": 7 })).await;
    assert_eq!(failure.kind, Kind::InvalidArguments);
    assert!(failure.message.contains("`format`"), "{}", failure.message);
}
