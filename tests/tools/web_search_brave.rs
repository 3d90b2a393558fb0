//! `web_search` by Brave, in process, against an API of the test's own. What becomes of the key is in `tests/network/search.rs`.

use serde_json::{Value, json};
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::TestHost;
use toolcrib_tests::registry::{Message, Pages};

/// A host that searches with an API that answers so.
fn searching(answer: impl Fn() -> Message + Send + Sync + 'static) -> (TestHost, Pages) {
    let pages = Pages::serve(move |_, _| answer());
    let host = TestHost::new()
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
        .set("tools.search_provider=web_search_brave")
        .set(&format!("plugin.web_search_brave.http.base=\"http://{}/res/v1/web/\"", pages.first))
        .set("plugin.web_search_brave.http.headers={ x-subscription-token = \"a-key-of-the-test\" }");
    (host, pages)
}

async fn search(answer: impl Fn() -> Message + Send + Sync + 'static) -> Value {
    searching(answer).0.result("web_search", json!({ "query": "tides" })).await
}

async fn failure(answer: impl Fn() -> Message + Send + Sync + 'static) -> Failure {
    searching(answer).0.failure("web_search", json!({ "query": "tides" })).await
}

fn results(items: &Value) -> Message {
    Message::answer(
        200,
        &[("content-type", "application/json")],
        json!({ "web": { "results": items } }).to_string().as_bytes(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_with_title_url_snippet_and_age() {
    let items = json!([
        { "title": "Tides &amp; currents", "url": "https://tides.example.org/", "description": "<strong>Tides</strong> of&nbsp;today", "age": "2 days ago" },
        { "title": "Without more", "url": "https://other.example.org/" },
        { "title": "The same again", "url": "https://tides.example.org/" },
    ]);
    let (host, pages) = searching(move || results(&items));
    let found = host.result("web_search", json!({ "query": "tides & \"currents\"" })).await;
    let rows = json!([
        { "title": "Tides & currents", "url": "https://tides.example.org/", "snippet": "Tides of today", "age": "2 days ago" },
        { "title": "Without more", "url": "https://other.example.org/", "snippet": "" },
    ]);
    assert_eq!(found, json!({ "results": rows }));
    let asked = pages.asked();
    let [asked] = asked.as_slice() else { panic!("{} requests", asked.len()) };
    assert_eq!(asked.path, "/res/v1/web/search?q=tides+%26+%22currents%22&count=10&offset=0");
    assert_eq!(asked.header("x-subscription-token"), Some("a-key-of-the-test"));
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_eight_of_thousands_of_results_are_rows() {
    let item = |at: usize| json!({ "title": format!("Page {at}"), "url": format!("https://example.org/{at}"), "description": "" });
    let found = search(move || results(&(0..8_000).map(item).collect())).await;
    let rows = found["results"].as_array().expect("results");
    assert_eq!((rows.len(), &rows[7]["title"]), (8, &json!("Page 7")));
    assert_eq!(search(|| results(&json!([]))).await, json!({ "results": [], "message": "No results found." }));
}

/// Case 40.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_searches_are_busy_with_the_wait() {
    const DATES: [(&str, &str); 2] =
        [("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), ("date", "Wed, 21 Oct 2015 07:27:15 GMT")];
    const QUOTA: [(&str, &str); 2] = [("x-ratelimit-remaining", "0, 1000"), ("x-ratelimit-reset", "1, 1419704")];
    for (headers, wait) in [(&[("retry-after", "30")][..], "30 s"), (&DATES, "45 s"), (&QUOTA, "1 s")] {
        let failure = failure(move || Message::answer(429, headers, b"{}")).await;
        assert_eq!(failure.kind, Kind::Busy, "{headers:?}");
        assert_eq!(failure.message, format!("Brave takes no more searches for {wait} (status 429)"));
        assert_eq!(failure.hint, Some(format!("wait {wait}, then search again")));
    }
    let silent = failure(|| Message::answer(429, &[], b"")).await;
    assert_eq!(silent.kind, Kind::Busy);
    assert!(silent.message.ends_with("does not say for how long"), "{}", silent.message);
    // Busy is not a failure that is refused when it is repeated.
    let (host, pages) = searching(|| Message::answer(429, &[("retry-after", "1")], b""));
    for _ in 0..4 {
        assert_eq!(host.failure("web_search", json!({ "query": "tides" })).await.kind, Kind::Busy);
    }
    assert_eq!(pages.asked().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_no_results_are_failures() {
    let long = format!(r#"{{"web":{{"results":[{}"#, r#"{"title":"a","url":"https://example.org/"},"#.repeat(1 << 15));
    let deep = r#"{"web":"#.repeat(100_000);
    for (body, said) in [
        ("<html>not found</html>".to_owned(), "is not the JSON of a search"),
        (String::new(), "is not the JSON of a search"),
        (r#"{"web":{"results":7}}"#.into(), "is not the JSON of a search"),
        (deep, "is not the JSON of a search"),
        (long, "is too long"),
    ] {
        let start: String = body.chars().take(40).collect();
        let failure = failure(move || Message::answer(200, &[], body.as_bytes())).await;
        assert_eq!(failure.kind, Kind::ExecutionFailed, "{start}");
        assert!(
            failure.message.contains(said) && !failure.message.contains("not found"),
            "{start}: {}",
            failure.message
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_rows_are_cleaned_or_left_out() {
    let items = json!([
        { "title": "A\u{1b}[31mB\u{202e}C", "url": "https://example.org/1", "description": "<script>steal()</script>x\u{0}<img src=a>y" },
        { "title": "No page", "url": "javascript:alert(1)", "description": "" },
        { "title": { "a": 1 }, "url": ["https://example.org/2"], "description": 3 },
        { "title": "L".repeat(5_000), "url": "https://example.org/3", "description": "S".repeat(5_000), "age": "A".repeat(5_000) },
    ]);
    let found = search(move || results(&items)).await;
    let rows = found["results"].as_array().expect("results");
    assert_eq!(rows.len(), 2, "{found}");
    let (title, snippet) = (rows[0]["title"].as_str().unwrap(), rows[0]["snippet"].as_str().unwrap());
    assert!(!title.contains(['\u{1b}', '\u{202e}']) && !snippet.contains("steal") && !snippet.contains('<'), "{found}");
    let chars = ["title", "snippet", "age"].map(|name| rows[1][name].as_str().unwrap().chars().count());
    assert_eq!(chars, [300, 500, 40]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_nothing_is_asked_and_the_lines_are_told() {
    let (host, pages) = searching(|| results(&json!([])));
    let host = host.set("plugin.web_search_brave.http.headers={ accept = \"application/json\" }");
    let failure = host.failure("web_search", json!({ "query": "tides" })).await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "`web_search_brave` needs a key of Brave"));
    let hint = failure.hint.unwrap();
    assert!(hint.contains("`toolcrib secret set BRAVE --host 127.0.0.1`"), "{hint}");
    assert!(
        hint.contains(
            r#"`http.headers = { x-subscription-token = "${secret:BRAVE}" }` under [plugin.web_search_brave]"#
        ),
        "{hint}"
    );
    // A key that may not go there is none.
    let host = host
        .set("plugin.web_search_brave.http.headers={ x-subscription-token = \"${secret:BRAVE}\" }")
        .set("secret.BRAVE.command=[\"true\"]")
        .set("secret.BRAVE.hosts=[\"api.search.brave.com\"]");
    let failure = host.failure("web_search", json!({ "query": "tides" })).await;
    assert!(failure.message.contains("the secret `BRAVE` may not go to `127.0.0.1`"), "{}", failure.message);
    assert!(pages.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_brave_would_refuse_is_not_sent() {
    let (host, pages) = searching(|| results(&json!([])));
    for query in ["a".repeat(401), "a ".repeat(51)] {
        assert_eq!(host.failure("web_search", json!({ "query": query })).await.kind, Kind::InvalidArguments);
    }
    assert!(pages.asked().is_empty());
}
