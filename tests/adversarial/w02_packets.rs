//! W-02: a page sends packets past the host: WebRTC to a STUN server, QUIC where its server offers that, WebTransport, questions for names.
//! Outcome: no packet comes, no candidate is told, and no name server hears of a name that was not let through.
//! Switched off: without `--disable-quic` and the switches of WebRTC nothing came either: the cell has no way out but the host, and that is the wall.

use serde_json::json;
use std::net::UdpSocket;
use std::time::Duration;
use toolcrib_tests::browser::{Page, Site, Town, each, html};

/// A port at which nothing may come.
#[expect(clippy::disallowed_methods, reason = "a server of the test's own")]
fn quiet() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
    let port = socket.local_addr().expect("an address").port();
    (socket, port)
}

/// Case 11: no packet goes past the host.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_past_the_host() {
    each("packets", async |rig| {
        let (stun, port) = quiet();
        let page = format!(
            "<title>Start</title><p id=out></p><script>const pc = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}},\
             {{urls: 'turn:127.0.0.1:{port}?transport=udp', username: 'a', credential: 'b'}}, {{urls: 'stun:stun.leak.example:{port}'}}]}}); let all = [];\
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

/// A server that says that it speaks HTTP/3 as well, and a page that wants to speak WebTransport, get no packet of it.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_speaks_quic() {
    each("quic", async |rig| {
        let (quic, port) = quiet();
        let town = Town::new(&[("shop.example.com", [127, 0, 0, 1])]);
        let page = format!(
            "<title>none</title><p id=out></p><script>const said = []; const end = what => {{ said.push(what); if (said.length == 2) out.textContent = 'ended: ' + said.join(', '); }};\
             if (typeof WebTransport == 'undefined') {{ end('none'); end('none'); }} else for (const host of ['127.0.0.1', 'shop.example.com'])\
             try {{ new WebTransport(`https://${{host}}:{port}/`).ready.then(() => end('there'), () => end('none')); }} catch {{ end('none'); }}</script>"
        );
        let offers = Page { headers: vec![("alt-svc", format!("h3=\":{port}\"; ma=3600"))], ..html(&page) };
        let _site = town.open("shop.example.com", &[("/", offers)]);
        let rig = town.around(rig);
        let url = town.url("shop.example.com");
        // What is offered once is taken the next time.
        for _ in 0..3 {
            rig.go(&url).await;
            rig.output("browser_wait", json!({ "text": "ended: none, none", "timeout": "20s" })).await.expect("an end");
        }
        assert!(quic.recv_from(&mut [0; 2048]).is_err(), "a packet came");
    })
    .await;
}

/// A name can carry what a page knows. Names that are not let through are asked of nobody.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_not_let_through_are_asked_of_nobody() {
    each("names", async |rig| {
        let town = Town::new(&[("shop.example.com", [127, 0, 0, 1])]);
        let page = "<title>none</title><p id=out></p>\
            <link rel=dns-prefetch href=\"//a.leak.example\"><link rel=preconnect href=\"https://b.leak.example\"><link rel=prefetch href=\"http://c.leak.example/\">\
            <img src=\"http://d.leak.example/\"><a href=\"http://e.leak.example/\">next</a><iframe src=\"https://f.leak.example/\"></iframe>\
            <script>Promise.allSettled([fetch('http://g.leak.example/'), fetch('https://h.leak.example/'), new Promise(end => {\
            new WebSocket('wss://i.leak.example/').onerror = end; })]).then(() => out.textContent = 'all ended');\
            new RTCPeerConnection({iceServers: [{urls: 'stun:j.leak.example'}]}).createDataChannel('x');</script>";
        let page = Page { headers: vec![("x-dns-prefetch-control", "on".into())], ..html(page) };
        let _site = town.open("shop.example.com", &[("/", page)]);
        let rig = town.around(rig).set("plugin.browser.browser.hosts=[\"shop.example.com\"]");
        let there = rig.go(&town.url("shop.example.com")).await;
        let waited = rig.output("browser_wait", json!({ "text": "all ended", "timeout": "20s" })).await.expect("an end");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let told = format!("{:?} {:?}", there.notices, waited.notices);
        assert!(told.contains("browser.hosts"), "{told}");
        let asked = town.asked();
        assert!(!asked.is_empty() && asked.iter().all(|name| name == "shop.example.com"), "{asked:?}");
    })
    .await;
}
