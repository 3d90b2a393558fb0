//! W-03: a site leaves a service worker behind, which goes on without its page: it answers pages, redirects them, and asks a closed site again and again.
//! Outcome: what it answers is its own site's; each of its connections is judged by the rules of the last call, and on the record of the next one.
//! Switched off: with every address admitted (`BrowserGrant::admit_address`) the worker sent the page to the closed site, which was shown.

use serde_json::json;
use std::time::Duration;
use toolcrib::envelope::Kind;
use toolcrib_tests::browser::{Town, each, html, script};

const OWN: &str = "shop.example.com";
const CLOSED: &str = "inner.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reaches_nothing_that_its_page_could_not() {
    each("worker", async |rig| {
        let town = Town::new(&[(OWN, [127, 0, 0, 1]), (CLOSED, [127, 0, 0, 3])]);
        let closed = town.open(CLOSED, &[("/", html("<title>Inner</title>"))]);
        let worker = format!(
            "const inner = () => fetch('{0}/', {{mode: 'no-cors'}}); oninstall = e => {{ skipWaiting(); e.waitUntil(inner().catch(() => {{}})); }};\
             onactivate = e => e.waitUntil(clients.claim()); setInterval(() => {{ fetch('/beat').catch(() => {{}}); inner().catch(() => {{}}); }}, 300);\
             const made = (body, headers) => new Response(body, {{headers: {{'content-type': 'text/html', ...headers}}}});\
             onfetch = e => {{ const path = new URL(e.request.url).pathname;\
             if (path == '/made') e.respondWith(made('<title>Made</title><p>by the worker</p>'));\
             if (path == '/sent') e.respondWith(Response.redirect('{0}/'));\
             if (path == '/passed') e.respondWith(inner());\
             if (path == '/file') e.respondWith(made('a file', {{'content-disposition': 'attachment; filename=made.bin'}})); }};",
            town.url(CLOSED)
        );
        let page = "<title>none</title><p id=out></p><script>navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)\
            .then(() => out.textContent = 'the worker is there', e => out.textContent = e)</script>";
        let own = town.open(OWN, &[("/", html(page)), ("/worker.js", script(&worker)), ("/beat", script(""))]);
        let rig = town.around(rig);
        let url = town.url(OWN);
        rig.go(&url).await;
        rig.output("browser_wait", json!({ "text": "the worker is there" })).await.expect("a worker");
        let made = rig.go(&format!("{url}/made")).await;
        assert_eq!(made.result["title"], "Made", "{made:?}");
        assert!(made.result["url"].as_str().is_some_and(|shown| shown.starts_with(&url)), "{made:?}");
        let sent = rig.refused(&format!("{url}/sent")).await;
        assert!(sent.kind == Kind::Denied && sent.message.contains("redirects"), "{sent:?}");
        let passed = rig.refused(&format!("{url}/passed")).await;
        assert!(matches!(passed.kind, Kind::Denied | Kind::Unavailable), "{passed:?}");
        let file = rig.output("browser_navigate", json!({ "url": format!("{url}/file") })).await;
        assert_eq!(file.expect_err("it is a file").kind, Kind::Denied);
        assert_eq!(rig.downloads(), [] as [u64; 0], "a file was written");
        rig.go(&format!("{url}/made")).await;
        // No page is left, and no call runs.
        rig.output("browser_tab_open", json!({})).await.expect("an empty tab");
        rig.output("browser_tab_close", json!({ "tab": "t1" })).await.expect("a tab that is closed");
        let beats = || own.asked().iter().filter(|asked| *asked == "/beat").count();
        let before = beats();
        tokio::time::sleep(Duration::from_secs(3)).await;
        println!("{} beats after its page was closed", beats() - before);
        rig.output("browser_tab_list", json!({})).await.expect("tabs");
        let audit = format!("{:?}", rig.host.audit());
        let server = town.server(CLOSED);
        assert!(audit.contains(&format!("connect to {server}")), "{audit}");
        if beats() > before {
            assert!(audit.contains(&format!("connect to {server}, before this call")), "{audit}");
        }
        assert_eq!((closed.connections(), closed.asked()), (0, Vec::new()), "the closed site was reached");
        // With its browser it is gone.
        rig.output("browser_close", json!({})).await.expect("an end");
        // A beat may be on its way still.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = beats();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(beats(), before, "it goes on");
    })
    .await;
}
