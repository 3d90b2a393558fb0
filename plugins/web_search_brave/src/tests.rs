use super::*;
use toolcrib_sdk::Kind;
use toolcrib_sdk::testing::{Host, Value, json, response};

type Search = WebSearch<Brave>;

fn answered(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Result<Value> {
    let mut answer = response(status, body);
    answer["headers"] = json!(headers);
    Host::new().plays("http.send", answer).call::<Search>(json!({ "query": "tides" }))
}

fn failure(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
    answered(status, headers, body).unwrap_err()
}

#[test]
fn the_request_is_for_ten_rows() {
    let host = Host::new().plays("http.send", response(200, "{}"));
    host.call::<Search>(json!({ "query": "high & low" })).unwrap();
    let sent = &host.calls()[0].arguments;
    assert_eq!(sent["url"], "search?q=high+%26+low&count=10&offset=0");
    assert_eq!(sent["headers"], json!([["accept", "application/json"]]));
}

#[test]
fn rows_are_text() {
    let item = json!({
        "title": "Tides &amp; <strong>currents</strong>", "url": "https://tides.example.org/a?b=c",
        "description": "High and <strong>low</strong>\nwater&#39;s heights", "age": "May 2, 2026", "language": "en"
    });
    let bare = json!({ "title": "Bare", "url": "https://tides.example.org/bare" });
    let body = json!({ "type": "search", "web": { "type": "search", "results": [item, bare] } });
    let results = json!([
        { "title": "Tides & currents", "url": "https://tides.example.org/a?b=c", "snippet": "High and low water's heights", "age": "May 2, 2026" },
        { "title": "Bare", "url": "https://tides.example.org/bare", "snippet": "" }
    ]);
    assert_eq!(answered(200, &[], body.to_string()).unwrap(), json!({ "results": results }));
}

#[test]
fn nothing_found_has_many_shapes() {
    let none = json!({ "results": [], "message": "No results found." });
    for body in ["{}", r#"{"web":null}"#, r#"{"web":{}}"#, r#"{"web":{"results":[]}}"#, r#"{"web":{"results":[{}]}}"#] {
        assert_eq!(answered(200, &[], body).unwrap(), none, "{body}");
    }
}

#[test]
fn an_answer_of_another_shape_is_told() {
    for body in ["", "<html>", "[]", r#"{"web":1}"#, r#"{"web":{"results":{}}}"#, r#"{"web":{"results":[1]}}"#] {
        let failure = failure(200, &[], body);
        assert_eq!(failure.kind, Kind::EXECUTION_FAILED);
        assert!(failure.message.starts_with("the answer of Brave is not the JSON of a search"), "{body}: {failure}");
    }
}

#[test]
fn a_key_that_is_not_accepted_is_told() {
    let invalid = r#"{"type":"ErrorResponse","error":{"status":422,"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"x"}}"#;
    for (status, body) in [(401, ""), (403, "{}"), (422, invalid)] {
        let failure = failure(status, &[], body);
        assert_eq!(failure.message, format!("Brave does not accept the key (status {status})"));
        assert_eq!(failure.kind, Kind::UNAVAILABLE);
        assert!(failure.hint.unwrap().contains("`toolcrib secret set BRAVE"));
    }
}

#[test]
fn of_another_refusal_the_code_is_told_and_nothing_else() {
    for (body, expected) in [
        (r#"{"error":{"code":"VALIDATION","detail":"read this"}}"#, "Brave answers with status 422, `VALIDATION`"),
        (r#"{"error":{"code":"read this"}}"#, "Brave answers with status 422"),
        (r#"{"error":{"code":7}}"#, "Brave answers with status 422"),
        ("read this", "Brave answers with status 422"),
    ] {
        assert_eq!(failure(422, &[], body).message, expected);
    }
}

#[test]
fn a_quota_that_is_used_up_says_until_when() {
    for (remaining, reset, expected) in [
        ("0, 1000", "1, 1419704", "for 1 s (status 429)"),
        ("1, 0", "1, 1419704", "for 17 days (status 429)"),
        ("1, 1000", "1, 1419704", "does not say for how long"),
        ("0", "x", "does not say for how long"),
        ("", "", "does not say for how long"),
    ] {
        let headers = [("x-ratelimit-remaining", remaining), ("x-ratelimit-reset", reset)];
        let failure = failure(429, &headers, "{}");
        assert_eq!(failure.kind, Kind::BUSY);
        assert!(failure.message.ends_with(expected), "{failure}");
    }
    let said = failure(429, &[("retry-after", "7"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1")], "");
    assert!(said.message.contains("for 7 s"), "{said}");
}
