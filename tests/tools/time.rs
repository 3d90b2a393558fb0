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

/// What `format` gives, and what the field with the same form says.
async fn formatted(format: &str, field: &str) -> (String, String) {
    let now = TestHost::new().result("time", json!({ "format": format })).await;
    let field = &now[field];
    let field = field.as_str().map_or_else(|| field.to_string(), str::to_owned);
    (now["formatted"].as_str().expect("a form of the time").to_owned(), field)
}

#[tokio::test(flavor = "multi_thread")]
async fn format_epoch_is_seconds_since_1970() {
    let (formatted, field) = formatted("epoch", "unix_seconds").await;
    assert_eq!(formatted, field);
}

#[tokio::test(flavor = "multi_thread")]
async fn format_epoch_ms_is_milliseconds_since_1970() {
    let (formatted, field) = formatted("epoch_ms", "unix_millis").await;
    assert_eq!(formatted, field);
}

#[tokio::test(flavor = "multi_thread")]
async fn format_epoch_ns_is_nanoseconds_since_1970() {
    let (formatted, field) = formatted("epoch_ns", "unix_nanos").await;
    assert_eq!(formatted, field);
}

#[tokio::test(flavor = "multi_thread")]
async fn format_iso_is_iso_8601() {
    let (formatted, field) = formatted("iso", "iso_8601_utc").await;
    assert_eq!(formatted, field);
}

#[tokio::test(flavor = "multi_thread")]
async fn format_rfc2822_is_rfc_2822() {
    let (formatted, field) = formatted("rfc2822", "rfc_2822_utc").await;
    assert_eq!(formatted, field);
}

#[tokio::test(flavor = "multi_thread")]
async fn format_date_is_the_date() {
    let (formatted, field) = formatted("date", "date_utc").await;
    assert_eq!(formatted, field);
}

#[tokio::test(flavor = "multi_thread")]
async fn format_time_is_the_time_of_day() {
    let (formatted, field) = formatted("time", "time_utc").await;
    assert_eq!(formatted, field);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_none_of_the_seven_is_refused_with_their_names() {
    let failure = TestHost::new().failure("time", json!({ "format": "stardate" })).await;
    assert_eq!(failure.kind, Kind::InvalidArguments);
    for name in ["epoch", "epoch_ms", "epoch_ns", "iso", "rfc2822", "date", "time"] {
        assert!(failure.message.contains(&format!("\"{name}\"")), "{}", failure.message);
    }
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
