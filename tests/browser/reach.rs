//! What a page may be, and which hosts a plugin was given. What pages try besides is in `tests/adversarial`.

use crate::rig::{Page, Site, each, html};
use serde_json::json;
use std::time::Duration;
use toolcrib::envelope::Kind;

/// Case 9.
#[tokio::test(flavor = "multi_thread")]
async fn only_pages_of_the_web_are_opened() {
    each("schemes", async |rig| {
        for url in [
            "file:///etc/passwd", "chrome://version", "data:text/html,x", "javascript:1", "view-source:https://example.com/", "devtools://devtools/x",
            "about:srcdoc", "blob:https://example.com/1", "chrome-extension://x/", "ftp://example.com/",
        ] {
            let refused = rig.refused(url).await;
            assert!(matches!(refused.kind, Kind::Denied | Kind::InvalidArguments), "{url}: {refused:?}");
        }
        // From within a page neither.
        let page = "<title>Start</title><button onclick=\"try { location='file:///etc/passwd' } catch (e) {}\">file</button>\
            <button onclick=\"window.open('file:///etc/passwd')\">open</button><button onclick=\"window.open('chrome://version')\">chrome</button>\
            <iframe src=file:///etc/passwd></iframe>";
        let site = Site::new(&[("/", html(page))]);
        rig.go(&site.url("/")).await;
        for button in ["file", "open", "chrome"] {
            rig.output("browser_tab_select", json!({ "tab": "t1" })).await.expect("the tab");
            rig.go(&site.url("/")).await;
            let _ = rig.click(&rig.id(&format!("button \"{button}\"")).await).await;
        }
        assert!(!rig.page().await.contains("root:"), "{}", rig.page().await);
        let tabs = rig.output("browser_tab_list", json!({})).await.expect("tabs");
        let shown = tabs.result["tabs"].to_string();
        assert!(!shown.contains("\"file:") && !shown.contains("\"chrome://"), "{shown}");
    })
    .await;
}

/// A host that the plugin was not given is refused by its own list, with the line.
#[tokio::test(flavor = "multi_thread")]
async fn the_plugin_has_hosts_of_its_own() {
    each("hosts", async |rig| {
        let rig =
            rig.set("plugin.browser.browser.hosts=[\"127.0.0.2\"]").set("tools.fetch_private_ranges=[\"127.0.0.0/8\"]");
        let (other, site) = (
            Site::new(&[("/", html("<title>Other</title>"))]),
            Site::at("127.0.0.2:0", &[("/", html("<title>Mine</title>"))]),
        );
        assert_eq!(rig.go(&site.url("/")).await.result["title"], "Mine");
        let refused = rig.refused(&other.url("/")).await;
        assert_eq!(refused.kind, Kind::Denied, "{refused:?}");
        assert!(
            refused.hint.as_deref().is_some_and(|hint| hint.contains("`browser.hosts` under [plugin.browser]")),
            "{refused:?}"
        );
        assert_eq!(other.asked(), [] as [String; 0]);
    })
    .await;
}

/// What is not encrypted is refused where settings say so, also what a page loads.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_encrypted_can_be_closed() {
    each("plain", async |rig| {
        let rig = rig.set("tools.fetch_plain_http=false");
        let site = Site::new(&[("/", html("<title>Plain</title>"))]);
        let refused = rig.refused(&site.url("/")).await;
        assert!(
            refused.kind == Kind::Denied
                && refused.hint.as_deref().is_some_and(|hint| hint.contains("fetch_plain_http")),
            "{refused:?}"
        );
        assert_eq!(site.asked(), [] as [String; 0]);
    })
    .await;
}

/// A server that could not be reached at first, and was then.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_came_at_the_second_try_is_shown() {
    each("retry", async |rig| {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|other| other.local_addr()).expect("a port").port();
        let late = format!("http://127.0.0.1:{port}/");
        let start = format!(
            "<title>Start</title><script src={late}missing.js onerror=\"setTimeout(() => location.replace('{late}'), 4000)\"></script><img src=/slow>"
        );
        let slow = Page { delay: Duration::from_secs(10), ..html("") };
        let site = Site::new(&[("/", html(&start)), ("/slow", slow)]);
        let begins = async {
            while !site.asked().contains(&"/slow".to_owned()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(700)).await;
            Site::at(&format!("127.0.0.1:{port}"), &[("/", html("<title>Late</title>"))])
        };
        let (went, late) = tokio::join!(rig.output("browser_navigate", json!({ "url": site.url("/") })), begins);
        let went = went.unwrap_or_else(|failure| panic!("{failure:?} {:?}", late.asked()));
        assert_eq!(went.result["title"], "Late", "{went:?}");
        assert!(went.notices.iter().any(|notice| notice.contains("no connection to")), "{went:?}");
    })
    .await;
}
