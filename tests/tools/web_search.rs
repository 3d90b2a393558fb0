//! `web_search`, in process, against pages that a loopback server hands out. What a network can do to it is in `tests/network`.

use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib_tests::registry::{Message, Pages};
use toolcrib_tests::{TestHost, serve};

const RESULTS: &str = include_str!("web_search/pages/results.html");
const NONE: &str = include_str!("web_search/pages/none.html");

fn searching(page: &'static str) -> TestHost {
    let address = serve(move |_| page.into());
    TestHost::new()
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
        .set(&format!("tools.search_endpoint=\"http://{address}/html/\""))
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_eight_results_come_with_title_url_and_snippet() {
    let found = searching(RESULTS).result("web_search", json!({ "query": "tide tables" })).await;
    let results = found["results"].as_array().expect("results");
    assert_eq!((results.len(), &found["message"]), (8, &Value::Null));
    for result in results {
        let field = |name: &str| result[name].as_str().unwrap_or_default();
        assert!(!field("title").is_empty() && field("url").starts_with("https://"), "{result}");
        assert!(!field("url").contains("duckduckgo.com"), "{result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_found_nothing_says_so() {
    let found = searching(NONE).result("web_search", json!({ "query": "zzz" })).await;
    assert_eq!(found, json!({ "results": [], "message": "No results found." }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blank_query_is_not_sent() {
    let host = searching(RESULTS);
    assert_eq!(host.failure("web_search", json!({ "query": " " })).await.kind, Kind::InvalidArguments);
    assert!(!host.audit().iter().any(|line| line.to_string().contains("GET http")));
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_off_it_says_by_which_key() {
    let failure =
        searching(RESULTS).set("tools.search_enabled=false").failure("web_search", json!({ "query": "a" })).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.contains("tools.search_enabled"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_fetches_off_leaves_it_alone() {
    let found = searching(RESULTS).set("tools.fetch_enabled=false").result("web_search", json!({ "query": "a" })).await;
    assert_eq!(found["results"].as_array().map(Vec::len), Some(8));
}

/// Case 40.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_searches_are_busy_with_the_wait() {
    let pages = Pages::serve(|_, _| Message::answer(429, &[("retry-after", "30")], b"<html>"));
    let host = TestHost::new()
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
        .set(&format!("tools.search_endpoint=\"http://{}/html/\"", pages.first));
    let failure = host.failure("web_search", json!({ "query": "a" })).await;
    assert_eq!(failure.kind, Kind::Busy);
    assert_eq!(failure.message, "the search engine takes no more searches for 30 s (status 429)");
}
