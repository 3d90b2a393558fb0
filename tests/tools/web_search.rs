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

/// Which plugin searches, where settings name this one.
fn provider(host: &TestHost) -> String {
    host.parts().1.tools.plugin_of("web_search").expect("one plugin searches").name().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_setting_says_which_plugin_searches_and_the_others_are_not_there() {
    for chosen in ["web_search", "web_search_brave", "web_search_searxng"] {
        let host = TestHost::new().set(&format!("tools.search_provider={chosen}"));
        assert_eq!(provider(&host), chosen);
        let (host, context) = host.parts();
        let tools = host.all_tools(context).await.tools;
        let searching: Vec<_> = tools.iter().filter(|(tool, _)| tool.name() == "web_search").collect();
        assert_eq!(searching.len(), 1, "{chosen}");
        assert!(context.tools.refused().is_empty());
    }
    assert_eq!(provider(&TestHost::new()), "web_search");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_is_told_the_same_whoever_searches() {
    let mut told = Vec::new();
    for chosen in ["web_search", "web_search_brave", "web_search_searxng", "finder"] {
        let host = TestHost::new().plugin("finder").set(&format!("tools.search_provider={chosen}"));
        let (host, context) = host.parts();
        let tools = host.all_tools(context).await.tools;
        let (tool, _) = tools.iter().find(|(tool, _)| tool.name() == "web_search").expect("one searches");
        let definition = tool.definition();
        told.push((tool.description().to_owned(), definition.input_schema.clone(), definition.output_schema.clone()));
    }
    assert!(told.iter().all(|other| *other == told[0]), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_somebody_else_searches_where_the_setting_names_it() {
    let pages = Pages::serve(|_, _| {
        Message::answer(200, &[], b"Tides\thttps://tides.example.org/\nNo page\tfile:///etc/passwd\n")
    });
    let host = || {
        TestHost::new()
            .plugin("finder")
            .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
            .grant("finder", "http.hosts=[\"127.0.0.1\"]")
            .grant("finder", &format!("http.base=\"http://{}/\"", pages.first))
    };
    // Until then it takes no name, and is not refused for having that of another plugin's tool.
    let unnamed = host();
    assert_eq!(provider(&unnamed), "web_search");
    assert!(unnamed.parts().1.tools.refused().is_empty());
    let named = host().set("tools.search_provider=finder");
    let found = named.result("web_search", json!({ "query": "tide tables" })).await;
    let rows = json!([{ "title": "Tides", "url": "https://tides.example.org/", "snippet": "" }]);
    assert_eq!(found, json!({ "results": rows }));
    assert_eq!(pages.asked()[0].path, "/find?words=tide+tables");
    // It has no more rights than any other plugin.
    for (setting, key) in
        [("tools.fetch_enabled=false", "tools.fetch_enabled"), ("tools.search_enabled=false", "tools.search_enabled")]
    {
        let failure = host()
            .set("tools.search_provider=finder")
            .set(setting)
            .failure("web_search", json!({ "query": "a" }))
            .await;
        assert!(failure.kind == Kind::Denied && failure.message.contains(key), "{}", failure.message);
    }
    let denied = TestHost::new().plugin("finder").set("tools.search_provider=finder");
    assert_eq!(denied.failure("web_search", json!({ "query": "a" })).await.kind, Kind::Denied);
    assert_eq!(pages.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_there_is_named() {
    let host = TestHost::new().set("tools.search_provider=nobody");
    let failure = host.failure("web_search", json!({ "query": "a" })).await;
    assert_eq!(failure.kind, Kind::Denied);
    assert_eq!(failure.message, "plugin `web_search` does not search: `tools.search_provider` is `nobody`");
    assert!(failure.hint.is_some_and(|hint| hint.contains("`search_provider = \"web_search\"` under [tools]")));
}
