use super::*;
use toolcrib_sdk::Kind;
use toolcrib_sdk::testing::{Host, Value, json, response};

type Search = WebSearch<Searxng>;

fn answered(status: u16, body: impl AsRef<[u8]>) -> Result<Value> {
    Host::new().plays("http.send", response(status, body)).call::<Search>(json!({ "query": "tides" }))
}

#[test]
fn the_request_is_for_json() {
    let host = Host::new().plays("http.send", response(200, "{}"));
    host.call::<Search>(json!({ "query": "high & low" })).unwrap();
    let sent = &host.calls()[0].arguments;
    assert_eq!(sent["url"], "search?q=high+%26+low&format=json&pageno=1");
    assert_eq!(sent["headers"], json!([["accept", "application/json"]]));
}

#[test]
fn rows_are_text() {
    let item = json!({
        "title": "Tides &amp; <b>currents</b>", "url": "https://tides.example.org/a", "content": "a Vec<T>\n of heights",
        "publishedDate": "2026-05-02T10:00:00", "engine": "bing", "score": 1.5, "positions": [1]
    });
    let bare =
        json!({ "title": "Bare", "url": "https://tides.example.org/bare", "content": null, "publishedDate": null });
    let body = json!({ "query": "tides", "number_of_results": 2, "results": [item, bare], "answers": [], "unresponsive_engines": [["a", "b"]] });
    let results = json!([
        { "title": "Tides & currents", "url": "https://tides.example.org/a", "snippet": "a Vec<T> of heights", "age": "2026-05-02" },
        { "title": "Bare", "url": "https://tides.example.org/bare", "snippet": "" }
    ]);
    assert_eq!(answered(200, body.to_string()).unwrap(), json!({ "results": results }));
}

#[test]
fn nothing_found_is_told_apart_from_engines_that_did_not_answer() {
    let none = |body: &str| answered(200, body).unwrap()["message"].clone();
    assert_eq!(none(r#"{"results":[]}"#), "No results found.");
    let some = none(r#"{"results":[],"unresponsive_engines":[["google","timeout"]]}"#);
    assert_eq!(some, "No results found, but not all engines of the server answered.");
}

#[test]
fn an_answer_of_another_shape_is_told() {
    for body in ["", "<!DOCTYPE html>", "[]", r#"{"results":{}}"#, r#"{"results":["a"]}"#] {
        let failure = answered(200, body).unwrap_err();
        assert_eq!(failure.kind, Kind::EXECUTION_FAILED);
        assert!(failure.message.starts_with("the answer of SearXNG is not the JSON of a search"), "{body}: {failure}");
    }
}

#[test]
fn each_refusal_says_what_to_do() {
    for (status, message, hint) in [
        (401, "SearXNG does not accept the key (status 401)", "`http.headers`"),
        (
            403,
            "SearXNG does not answer in JSON (status 403)",
            "`search.formats` in the server's settings.yml needs `json`",
        ),
        (404, "SearXNG is not at this URL (status 404)", "`http.base`"),
    ] {
        let failure = answered(status, "<html>").unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (Kind::UNAVAILABLE, message));
        assert!(failure.hint.unwrap().contains(hint));
    }
    assert_eq!(answered(500, "").unwrap_err().message, "SearXNG answers with status 500");
}
