//! W-01: a page wants what is closed to it: this machine, its network, a cloud's metadata; by every way in which pages load things, by odd spellings, redirects, and a name that turns private.
//! Outcome: each connection is judged by the address that it would go to, and refused, on record; nobody connects to the closed site.
//! Switched off: with every address admitted (`BrowserGrant::admit_address`) the closed site was shown, and a name that turned private brought its text.

use serde_json::json;
use std::time::{Duration, Instant};
use toolcrib::envelope::Kind;
use toolcrib_tests::browser::{Page, Site, Town, each, html, redirect, script};

/// The metadata service of clouds.
const METADATA: &str = "http://169.254.169.254/latest";
/// Ways to load something, each with the URL in place of `@`; a number is put behind it.
const WAYS: [&str; 26] = [
    "<img src=\"@\">",
    "<iframe src=\"@\"></iframe>",
    "<object data=\"@\"></object>",
    "<embed src=\"@\">",
    "<video src=\"@\" autoplay></video>",
    "<audio src=\"@\" autoplay></audio>",
    "<video poster=\"@\"></video>",
    "<script src=\"@\"></script>",
    "<script type=module>import('@').catch(() => {})</script>",
    "<link rel=stylesheet href=\"@\">",
    "<link rel=icon href=\"@\">",
    "<link rel=manifest href=\"@\">",
    "<link rel=preload as=fetch href=\"@\">",
    "<link rel=prefetch href=\"@\">",
    "<link rel=preconnect href=\"@\">",
    "<link rel=dns-prefetch href=\"@\">",
    "<script type=speculationrules>{\"prerender\": [{\"urls\": [\"@\"]}], \"prefetch\": [{\"urls\": [\"@\"]}]}</script>",
    "<style>@import url(\"@\");</style>",
    "<p style=\"background: url('@')\">x</p>",
    "<svg><image href=\"@\"></image></svg>",
    "<iframe srcdoc=\"<img src='@'>\"></iframe>",
    "<iframe name=f></iframe><form method=post action=\"@\" target=f><input name=a value=b></form><script>document.forms[0].submit()</script>",
    "<script>new Worker(URL.createObjectURL(new Blob([\"fetch('@', {mode: 'no-cors'}); importScripts('@')\"])))</script>",
    "<script>navigator.sendBeacon('@', 'x'); const r = new XMLHttpRequest(); r.open('PUT', '@'); r.send('x');</script>",
    "<script>new EventSource('@'); fetch('@', {mode: 'no-cors', keepalive: true}).catch(() => {})</script>",
    "<script>new WebSocket('@'.replace('http', 'ws'))</script>",
];

/// Cases 10 and 12, and `spacebot.md` 39: what is not public is reached by no way.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_public_is_reached_by_no_way() {
    each("reach", async |rig| {
        // This one is closed: only the other's address is opened.
        let rig = rig.set("tools.fetch_private_ranges=[\"127.0.0.2\"]");
        let closed = Site::new(&[("/", html("<title>Inner</title>"))]);
        let port = closed.address.port();
        let spelled = [
            closed.url("/"),
            METADATA.into(),
            format!("http://localhost:{port}/"),
            format!("http://localhost.:{port}/"),
            format!("http://a.localhost:{port}/"),
            format!("http://[::1]:{port}/"),
            format!("http://[::]:{port}/"),
            format!("http://0.0.0.0:{port}/"),
            format!("http://127.1:{port}/"),
            format!("http://0x7f000001:{port}/"),
            format!("http://0177.0.0.1:{port}/"),
            format!("http://2130706433:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            format!("http://[64:ff9b::7f00:1]:{port}/"),
            "http://[fe80::1]/".into(),
            "http://10.0.0.1/".into(),
            "http://192.168.0.1/".into(),
        ];
        for url in &spelled {
            let refused = rig.refused(url).await;
            assert_eq!(refused.kind, Kind::Denied, "{url}: {refused:?}");
        }
        let list = json!(spelled);
        let every = format!(
            "<title>Start</title><script>const left = {list}; let done = 0;\
             const end = () => {{ if (++done == left.length * 2) document.body.append('all ended'); }};\
             addEventListener('load', () => {{ for (const url of left) {{ fetch(url, {{mode: 'no-cors'}}).then(() => {{}}, () => {{}}).finally(end);\
             const socket = new WebSocket(url.replace('http', 'ws')); socket.onopen = socket.onerror = end; }} }});</script>"
        );
        let ways: String =
            WAYS.iter().enumerate().map(|(number, way)| way.replace('@', &closed.url(&format!("/way{number}")))).collect();
        let hop = redirect("/hop/2");
        let refresh = html(&format!("<title>Start</title><meta http-equiv=refresh content=\"0; url={METADATA}\">"));
        let header = Page { headers: vec![("refresh", format!("0; url={}", closed.url("/refresh")))], ..html("<title>Start</title>") };
        let moved = |status| Page { status, ..redirect(&closed.url("/moved")) };
        let site = Site::at(
            "127.0.0.2:0",
            &[
                ("/every", html(&every)),
                ("/ways", html(&format!("<title>Start</title><body>{ways}"))),
                ("/301", moved(301)),
                ("/303", moved(303)),
                ("/307", moved(307)),
                ("/308", moved(308)),
                ("/hop/1", hop),
                ("/hop/2", redirect(&closed.url("/hop"))),
                ("/meta", redirect(METADATA)),
                ("/refresh", refresh),
                ("/header", header),
                ("/script", html(&format!("<title>Start</title><script>location = '{METADATA}'</script>"))),
            ],
        );
        for path in ["/301", "/303", "/307", "/308", "/hop/1", "/meta"] {
            let refused = rig.refused(&site.url(path)).await;
            assert!(refused.kind == Kind::Denied && refused.message.contains("redirects"), "{path}: {refused:?}");
        }
        // A page that goes elsewhere by itself may do so before it is shown, or after.
        for path in ["/refresh", "/header", "/script"] {
            let told = match rig.output("browser_navigate", json!({ "url": site.url(path) })).await {
                Err(refused) => refused.message,
                Ok(there) => {
                    let (begin, mut told) = (Instant::now(), format!("{there:?}"));
                    while !told.contains("is not public") && begin.elapsed() < Duration::from_secs(20) {
                        tokio::time::sleep(Duration::from_millis(500)).await;
                        told += &format!(" {:?}", rig.output("browser_snapshot", json!({})).await);
                    }
                    told
                }
            };
            assert!(told.contains("is not public"), "{path}: {told}");
        }
        rig.go(&site.url("/every")).await;
        rig.output("browser_wait", json!({ "text": "all ended", "timeout": "20s" })).await.expect("an end");
        let there = rig.go(&site.url("/ways")).await;
        let told = format!("{:?}", there.notices);
        assert!(told.contains("is not public"), "{told}");
        // What is loaded later has no end of its own.
        tokio::time::sleep(Duration::from_secs(2)).await;
        rig.page().await;
        assert_eq!((closed.connections(), closed.asked()), (0, Vec::new()), "the closed site was reached");
        let audit = format!("{:?}", rig.host.audit());
        assert!(audit.contains("connect to 169.254.169.254:80") && audit.contains("denied: "), "{audit}");
    })
    .await;
}

/// A name is judged by the address that it has when it is connected to, not by the one that it had before.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_turns_private_leads_nowhere() {
    each("rebinding", async |rig| {
        let rig = rig.set("tools.fetch_private_ranges=[\"127.0.0.2\"]");
        let town = Town::new(&[("turns.example.com", [127, 0, 0, 2])]);
        let rig = town.around(rig);
        let page = "<title>none</title><button onclick=\"ask()\">Ask</button><iframe id=f></iframe><p id=out></p><script>let n = 0;\
             const ask = () => { f.src = '/frame?' + ++n; const w = new WebSocket('ws://' + location.host + '/socket?' + n);\
             fetch('/inner?' + n, {cache: 'no-store'}).then(r => r.text()).then(t => document.title = n + ': ' + t, e => document.title = n + ': ' + e); };\
             setInterval(() => fetch('/beat?' + n).catch(() => {}), 200);</script>";
        // Each connection serves one request, so that none is used again.
        let closes = |page: Page| Page { headers: [page.headers, vec![("connection", "close".into())]].concat(), ..page };
        let site = town.open_plain(
            "turns.example.com",
            &[("/", closes(html(page))), ("/inner", closes(script("harmless")))],
        );
        let closed = Site::at(&format!("127.0.0.3:{}", site.address.port()), &[("/inner", script("treasure"))]);
        let url = format!("http://{}", town.server("turns.example.com"));
        rig.go(&url).await;
        let ask = rig.id("button \"Ask\"").await;
        rig.click(&ask).await.expect("a click");
        rig.titled(|title| title == "1: harmless").await;
        town.moves("turns.example.com", [127, 0, 0, 3]);
        rig.click(&ask).await.expect("a click");
        // Between calls the page goes on.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let title = rig.titled(|title| title.starts_with("2: ")).await;
        assert!(!title.contains("treasure"), "{title}");
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        assert!(!format!("{looked:?}").contains("treasure"), "{looked:?}");
        let refused = rig.refused(&format!("{url}/inner")).await;
        assert!(refused.kind == Kind::Denied && refused.message.contains("127.0.0.3"), "{refused:?}");
        assert_eq!((closed.connections(), closed.asked()), (0, Vec::new()), "the closed site was reached");
        town.moves("turns.example.com", [127, 0, 0, 2]);
        assert_eq!(rig.go(&url).await.result["title"], "none");
    })
    .await;
}

/// Where a connection is encrypted, what is refused of it has no words of the host's own.
#[tokio::test(flavor = "multi_thread")]
async fn where_a_redirect_leads_is_said_over_https_too() {
    each("https", async |rig| {
        let town = Town::new(&[("shop.example.com", [127, 0, 0, 1]), ("inner.example.com", [127, 0, 0, 3])]);
        let closed = town.open("inner.example.com", &[("/", html("<title>Inner</title>"))]);
        let inner = format!("{}/", town.url("inner.example.com"));
        let _own = town.open("shop.example.com", &[("/away", redirect(&inner))]);
        let rig = town.around(rig);
        let refused = rig.refused(&format!("{}/away", town.url("shop.example.com"))).await;
        assert!(refused.kind == Kind::Denied && refused.message.contains("redirects"), "{refused:?}");
        assert!(refused.message.contains("inner.example.com") && refused.hint.is_some(), "{refused:?}");
        assert_eq!(closed.connections(), 0, "the closed site was reached");
    })
    .await;
}
