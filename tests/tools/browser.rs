//! `browser`, all of the browser by one name, and when its family is listed. Pages and what they try are in `tests/browser`.

use serde_json::{Value, json};
use toolcrib::envelope::{Content, Kind, Output};
use toolcrib_tests::{TestHost, serve, skip};

const PAGE: &str = "<!doctype html><title>Tides</title><h1>High water</h1><button onclick=\"document.title='Noon'\">Today</button>\
    <label>Port <input id=p></label>";

fn host() -> TestHost {
    TestHost::new().set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
}

fn has_browser() -> bool {
    ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"]
        .iter()
        .any(|program| std::path::Path::new(program).exists())
}

async fn done(host: &TestHost, arguments: Value) -> Output {
    let shown = arguments.to_string();
    host.call("browser", arguments).await.outcome.unwrap_or_else(|failure| panic!("{shown}: {failure:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_done_by_one_name() {
    if !has_browser() {
        skip!("there is no browser");
    }
    let address = serve(|_| PAGE.into());
    let (host, url) = (host(), format!("http://{address}/"));
    done(&host, json!({ "action": "launch" })).await;
    let there = done(&host, json!({ "action": "navigate", "url": url })).await;
    assert_eq!((&there.result["title"], &there.result["tab"]), (&json!("Tides"), &json!("t1")), "{there:?}");
    let page = done(&host, json!({ "action": "snapshot" })).await;
    let page = page.result["page"].as_str().expect("a page");
    let number = |name: &str| -> u32 {
        let line = page.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name} in {page}"));
        line.rsplit_once("[e").and_then(|(_, id)| id.strip_suffix(']')?.parse().ok()).expect("an id")
    };
    let (button, field) = (number("\"Today\""), number("\"Port\""));
    let clicked = done(&host, json!({ "action": "act", "act_kind": "click", "index": button })).await;
    assert_eq!(clicked.result["title"], "Noon", "{clicked:?}");
    let typed = done(&host, json!({ "action": "act", "act_kind": "type", "index": field, "text": "Emden" })).await;
    assert!(typed.result["changes"].as_str().is_some_and(|changes| changes.contains("\"Emden\"")), "{typed:?}");
    let picture = done(&host, json!({ "action": "screenshot" })).await;
    assert!(matches!(&picture.content[..], [Content::Image(kind, _)] if kind == "image/jpeg"), "{picture:?}");
    let tabs = done(&host, json!({ "action": "tabs" })).await;
    assert_eq!(tabs.result["tabs"].as_array().map(Vec::len), Some(1), "{tabs:?}");
    done(&host, json!({ "action": "close" })).await;
    let nothing = host.failure("browser", json!({ "action": "snapshot" })).await;
    assert_eq!(nothing.kind, Kind::Unavailable, "{nothing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_listed_on_request_where_there_is_a_browser() {
    for (program, offer, listed) in [("", false, false), ("", true, has_browser()), ("/missing/chromium", true, false)]
    {
        let mut host = host().set(&format!("tools.browser_program={program:?}"));
        if offer {
            host = host.set("tools.offer=[\"browser\"]");
        }
        let (called, context) = host.parts();
        let offered = called.offered(context).await.tools;
        let of_family = offered.iter().filter(|tool| tool.name().starts_with("browser")).count();
        assert_eq!(of_family, if listed { 17 } else { 0 }, "{program} {offer}");
    }
    // What is missing, and the package.
    let host = host().set("tools.browser_program=\"/missing/chromium\"").set("tools.offer=[\"browser\"]");
    let (called, context) = host.parts();
    let all = called.all_tools(context).await;
    let why = all.tools.iter().find(|(tool, _)| tool.name() == "browser_click").and_then(|(_, why)| why.clone());
    let why = why.expect("a reason");
    assert!(why.hint.as_deref().is_some_and(|hint| hint.contains("`chromium-headless-shell`")), "{why:?}");
    let failure = host.failure("browser", json!({ "action": "navigate", "url": "https://example.com/" })).await;
    assert_eq!(failure.kind, Kind::Unavailable, "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_switched_off() {
    let host = host().set("tools.browser_enabled=false");
    let failure = host.failure("browser", json!({ "action": "navigate", "url": "https://example.com/" })).await;
    assert!(failure.kind == Kind::Denied && failure.message.contains("tools.browser_enabled"), "{failure:?}");
}
