//! What a page reaches, and what it does not: by a visit, a redirect, a fetch, a socket; and what else a URL could open.

use crate::rig::{Site, each, html, redirect};
use serde_json::json;
use std::net::UdpSocket;
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

/// Cases 10 and 12, and `spacebot.md` 39: what is not public is reached by no way.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_public_is_reached_by_no_way() {
    each("reach", async |rig| {
        // This one is closed: only the other's address is opened.
        let rig = rig.set("tools.fetch_private_ranges=[\"127.0.0.2\"]");
        let closed = Site::new(&[("/", html("<title>Inner</title>"))]);
        let (port, inner) = (closed.address.port(), closed.url("/"));
        let ways = [
            inner.clone(),
            "http://169.254.169.254/".into(),
            format!("http://localhost:{port}/"),
            format!("http://a.localhost:{port}/"),
            format!("http://[::1]:{port}/"),
            format!("http://0.0.0.0:{port}/"),
            format!("http://127.1:{port}/"),
            format!("http://[::ffff:127.0.0.1]:{port}/"),
        ];
        for url in &ways {
            let refused = rig.refused(url).await;
            assert_eq!(refused.kind, Kind::Denied, "{url}: {refused:?}");
        }
        let list = json!(ways);
        let script = format!(
            "<title>Start</title><link rel=prefetch href=\"{inner}pre\"><link rel=preconnect href=\"{inner}\"><link rel=dns-prefetch href=\"//leak.invalid\">\
             <img src=\"{inner}img\"><iframe src=\"{inner}frame\"></iframe><p id=out></p><script>const left = {list};\
             let done = 0; const end = () => {{ if (++done == left.length * 2 + 1) document.body.append('all ended'); }};\
             for (const url of left) {{ fetch(url, {{mode: 'no-cors'}}).then(() => {{}}, () => {{}}).finally(end);\
             const socket = new WebSocket(url.replace('http', 'ws')); socket.onopen = socket.onerror = end; }}\
             navigator.sendBeacon('{inner}beacon'); const e = new EventSource('{inner}events'); e.onerror = () => {{ e.close(); end(); }};</script>"
        );
        let site = Site::at(
            "127.0.0.2:0",
            &[("/", html(&script)), ("/redirect", redirect(&inner)), ("/meta", redirect("http://169.254.169.254/latest"))],
        );
        for path in ["/redirect", "/meta"] {
            let refused = rig.refused(&site.url(path)).await;
            assert!(refused.kind == Kind::Denied && refused.message.contains("redirects"), "{path}: {refused:?}");
        }
        let there = rig.go(&site.url("/")).await;
        let waited = rig.output("browser_wait", json!({ "text": "all ended", "seconds": 20 })).await.expect("an end");
        let told = format!("{:?} {:?}", there.notices, waited.notices);
        assert!(told.contains("is not public"), "{told}");
        assert_eq!(closed.asked(), [] as [String; 0], "the closed site was asked");
        let audit = format!("{:?}", rig.host.audit());
        assert!(audit.contains("connect to 169.254.169.254:80") && audit.contains("denied: "), "{audit}");
    })
    .await;
}

/// Case 11: no packet goes past the host.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "a server of the test's own")]
async fn nothing_goes_past_the_host() {
    each("packets", async |rig| {
        let stun = UdpSocket::bind("127.0.0.1:0").expect("a port");
        stun.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
        let port = stun.local_addr().expect("an address").port();
        let page = format!(
            "<title>Start</title><p id=out></p><script>const pc = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}}); let all = [];\
             pc.onicecandidate = e => {{ if (e.candidate) all.push(e.candidate.candidate); else out.textContent = 'candidates: ' + all.length; }};\
             pc.onicegatheringstatechange = () => {{ if (pc.iceGatheringState == 'complete') out.textContent = 'candidates: ' + all.length; }};\
             pc.createDataChannel('x'); pc.createOffer().then(o => pc.setLocalDescription(o));\
             setTimeout(() => out.textContent ||= 'candidates: ' + all.length, 3000);</script>"
        );
        let site = Site::new(&[("/", html(&page))]);
        rig.go(&site.url("/")).await;
        rig.output("browser_wait", json!({ "text": "candidates: 0" })).await.expect("none");
        assert!(stun.recv_from(&mut [0; 2048]).is_err(), "a packet came");
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
