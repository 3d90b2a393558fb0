//! `web_search` by a SearXNG server, in process, against one of the test's own.

use serde_json::{Value, json};
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::TestHost;
use toolcrib_tests::registry::{Message, Pages};

/// A host that searches with a server that answers so.
fn searching(answer: impl Fn(&Message) -> Message + Send + Sync + 'static) -> (TestHost, Pages) {
    let pages = Pages::serve(move |message, _| answer(message));
    let host = TestHost::new()
        .set("tools.fetch_private_ranges=[\"127.0.0.1\", \"127.0.0.2\"]")
        .set("tools.search_provider=web_search_searxng")
        .set(&format!("plugin.web_search_searxng.http.base=\"http://{}/searx/\"", pages.first));
    (host, pages)
}

async fn search(answer: impl Fn(&Message) -> Message + Send + Sync + 'static) -> Value {
    searching(answer).0.result("web_search", json!({ "query": "tides" })).await
}

async fn failure(answer: impl Fn(&Message) -> Message + Send + Sync + 'static) -> Failure {
    searching(answer).0.failure("web_search", json!({ "query": "tides" })).await
}

fn results(items: &Value) -> Message {
    Message::answer(200, &[("content-type", "application/json")], json!({ "results": items }).to_string().as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_with_title_url_snippet_and_age() {
    let items = json!([
        { "title": "Tides", "url": "https://tides.example.org/", "content": "<b>High</b> &amp; low", "publishedDate": "2026-05-02T00:00:00", "engine": "bing" },
        { "title": "Without more", "url": "https://other.example.org/", "publishedDate": null },
    ]);
    let (host, pages) = searching(move |_| results(&items));
    let found = host.result("web_search", json!({ "query": "tides & currents" })).await;
    let rows = json!([
        { "title": "Tides", "url": "https://tides.example.org/", "snippet": "High & low", "age": "2026-05-02" },
        { "title": "Without more", "url": "https://other.example.org/", "snippet": "" },
    ]);
    assert_eq!(found, json!({ "results": rows }));
    let asked: Vec<String> = pages.asked().into_iter().map(|message| message.path).collect();
    assert_eq!(asked, ["/searx/search?q=tides+%26+currents&format=json&pageno=1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_eight_of_thousands_of_results_are_rows() {
    let item = |at: usize| json!({ "title": format!("Page {at}"), "url": format!("https://example.org/{at}") });
    let found = search(move |_| results(&(0..8_000).map(item).collect())).await;
    assert_eq!(found["results"].as_array().map(Vec::len), Some(8));
}

/// Case 40.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_searches_are_busy_with_the_wait() {
    for (status, header, wait) in [(429, "90", "90 s"), (429, "600", "10 min"), (503, "5", "5 s")] {
        let failure = failure(move |_| Message::answer(status, &[("retry-after", header)], b"")).await;
        assert_eq!(failure.kind, Kind::Busy);
        assert_eq!(failure.message, format!("SearXNG takes no more searches for {wait} (status {status})"));
        assert_eq!(failure.hint, Some(format!("wait {wait}, then search again")));
    }
    assert_eq!(failure(|_| Message::answer(429, &[], b"")).await.kind, Kind::Busy);
    assert_eq!(failure(|_| Message::answer(503, &[], b"")).await.message, "SearXNG answers with status 503");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_json_says_which_setting_it_needs() {
    let failure = failure(|_| Message::answer(403, &[], b"<html>Forbidden")).await;
    assert_eq!(failure.message, "SearXNG does not answer in JSON (status 403)");
    assert!(failure.hint.unwrap().contains("`search.formats` in the server's settings.yml needs `json`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_no_results_are_failures() {
    for body in ["<html>", "", "[1]", r#"{"results":"#, r#"{"results":[1]}"#] {
        let failure = failure(move |_| Message::answer(200, &[], body.as_bytes())).await;
        assert_eq!(failure.kind, Kind::ExecutionFailed, "{body}");
        assert!(failure.message.contains("is not the JSON of a search"), "{body}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_url_the_line_is_told() {
    let host = TestHost::new().set("tools.search_provider=web_search_searxng");
    let failure = host.failure("web_search", json!({ "query": "tides" })).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "`web_search_searxng` needs the URL of a SearXNG server");
    let line = "write `http.base = \"https://searx.example.org/\"` under [plugin.web_search_searxng]";
    assert_eq!(failure.hint.as_deref(), Some(line));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_host_and_no_other_path_is_reached() {
    // The server at the other address has the port of the one that is asked.
    let elsewhere = |asked: &Message| {
        let port = asked.to.expect("it came somewhere").port();
        Message::answer(302, &[("location", &format!("http://127.0.0.2:{port}/searx/search"))], b"")
    };
    let (host, pages) = searching(elsewhere);
    let failure = host.failure("web_search", json!({ "query": "tides" })).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.ends_with("`web_search_searxng` may not reach `127.0.0.2`"), "{}", failure.message);
    let hint = "`http.base` under [plugin.web_search_searxng] names the only server that it reaches";
    assert_eq!(failure.hint.as_deref(), Some(hint));
    assert_eq!(pages.asked().len(), 1);
    let (host, pages) = searching(|_| Message::answer(302, &[("location", "/elsewhere")], b""));
    let failure = host.failure("web_search", json!({ "query": "tides" })).await;
    assert!(failure.message.contains("its path is not an allowed one"), "{}", failure.message);
    assert_eq!(pages.asked().len(), 1);
}
