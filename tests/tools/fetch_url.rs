//! `fetch_url`, in process: what a page comes back as, and what is said of one that may not be fetched. Hostile networks are in `tests/network`.

use serde_json::{Value, json};
use toolcrib::envelope::Kind;
use toolcrib::policy::approval::{ActionKind, Answer};
use toolcrib_tests::{TestHost, serve};

const PAGE: &str =
    "<!doctype html><title>Tides</title><h1>High water</h1><p>At <b>noon</b>, see <a href='/table'>the table</a>.";

/// A host that may reach this machine, and a URL there.
fn with_page(page: impl Fn(&str) -> String + Send + Sync + 'static) -> (TestHost, String) {
    let address = serve(page);
    (TestHost::new().set("tools.fetch_private_ranges=[\"127.0.0.1\"]"), format!("http://{address}/page"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_comes_as_it_stands_or_as_text() {
    let (host, url) = with_page(|_| PAGE.into());
    let raw = host.result("fetch_url", json!({ "url": url })).await;
    let expected = json!({ "url": url, "status": 200, "content_type": "text/html", "bytes": PAGE.len(), "text": PAGE });
    assert_eq!(raw, expected);
    let text = host.result("fetch_url", json!({ "url": url, "as": "text" })).await;
    let table = url.replace("/page", "/table");
    assert_eq!(text["text"], format!("Tides\n\n# High water\n\nAt noon, see the table ({table})."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_page_is_read_on_where_it_was_cut() {
    let (host, url) = with_page(|_| (0..2_000).map(|number| format!("{number:05} ")).collect());
    let output = host.call("fetch_url", json!({ "url": url })).await.outcome.expect("a page");
    assert!(output.notices.iter().any(|notice| notice.contains("set `offset` to 8000")), "{:?}", output.notices);
    let rest = host.result("fetch_url", json!({ "url": url, "offset": 8_000 })).await;
    let whole = format!("{}{}", text(&output.result).trim_end_matches("...[truncated]"), text(&rest));
    assert_eq!(whole.split_whitespace().count(), 2_000);
}

fn text(result: &Value) -> &str {
    result["text"].as_str().expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_public_url_is_refused_with_the_line_that_would_open_it() {
    let host = TestHost::new();
    for (url, kind, message, hint) in [
        ("http://localhost:8080/", Kind::Denied, "`localhost` is a name of the local network", "fetch_private_ranges"),
        (
            "http://10.0.0.1/",
            Kind::Denied,
            "`10.0.0.1` is not public: private (10.0.0.0/8, RFC 1918)",
            "fetch_private_ranges",
        ),
        ("ftp://example.com/", Kind::Denied, "`ftp` is not a scheme of the web", "https://"),
        ("example.com", Kind::InvalidArguments, "it has no scheme", "https://example.com/page"),
    ] {
        let failure = host.failure("fetch_url", json!({ "url": url })).await;
        assert_eq!(failure.kind, kind, "{url}: {}", failure.message);
        assert!(failure.message.contains(message), "{url}: {}", failure.message);
        assert!(failure.hint.as_deref().is_some_and(|said| said.contains(hint)), "{url}: {:?}", failure.hint);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_is_asked_sees_the_url_with_its_address_and_may_say_no() {
    let host = TestHost::new()
        .answering(Answer::No)
        .set("tools.fetch_confirm=true")
        .set("tools.fetch_allowed_domains=[\"1.1.1.1\"]");
    let failure = host.failure("fetch_url", json!({ "url": "https://1.1.1.1" })).await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "Fetch request denied by user."));
    let asked = host.asked();
    assert_eq!(
        (asked.len(), asked[0].kind, asked[0].landing.backend.as_str()),
        (1, ActionKind::Request, "this machine")
    );
    assert_eq!(asked[0].action, "fetch https://1.1.1.1/ at 1.1.1.1");
    assert!(asked[0].details.as_deref().is_some_and(|details| details.contains("accept: ")), "{:?}", asked[0].details);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_the_session_covers_further_requests() {
    let address = serve(|_| PAGE.into());
    let host = TestHost::new()
        .answering(Answer::YesForSession)
        .set("tools.fetch_confirm=true")
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]");
    for path in ["a", "b"] {
        host.result("fetch_url", json!({ "url": format!("http://{address}/{path}") })).await;
    }
    assert_eq!(host.asked().len(), 1);
    let audit = host.audit().iter().map(ToString::to_string).collect::<String>();
    assert!(
        audit.contains(&format!("GET http://{address}/b")) && audit.contains("approval for the session"),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_without_private_ranges_closes_what_a_user_has_named() {
    let (host, url) = with_page(|_| PAGE.into());
    let host = host.set("tools.fetch_allowed_domains=[\"127.0.0.1\"]").policy("[tools]\nfetch_private_ranges = []");
    let failure = host.failure("fetch_url", json!({ "url": url })).await;
    assert_eq!(failure.kind, Kind::Denied, "{}", failure.message);
}
