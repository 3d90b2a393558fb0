//! What the guard of presses and keys lets through, and that nothing is left of an act that was given up. What it stops is in `tests/adversarial`.

use crate::rig::{Site, each, html, id_in};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::Kind;

/// What a label, a field's Enter and a box bring about by themselves happens as without a guard.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_press_brings_about_happens() {
    each("follows", async |rig| {
        let page = "<title>none</title><form onsubmit=\"document.title = 'sent'; return false\"><label>Agree <input type=checkbox id=c></label>\
            <input aria-label=field><button>Send</button></form><details><summary>More</summary><p>inside</p></details>\
            <button onclick=\"document.getElementById('c').labels[0].click()\">By script</button>\
            <div id=h></div><script>const root = h.attachShadow({mode: 'closed'}); root.innerHTML = '<button>Shadow</button>';\
            root.firstChild.onclick = () => document.title = 'shadow';</script>";
        let site = Site::new(&[("/", html(page))]);
        rig.go(&site.url("/")).await;
        rig.click(&rig.id("checkbox \"Agree\"").await).await.expect("a click");
        assert!(rig.page().await.contains("(checked: true)"), "{}", rig.page().await);
        rig.click(&rig.id("button \"By script\"").await).await.expect("a click");
        assert!(rig.page().await.contains("(checked: false)"), "{}", rig.page().await);
        let field = rig.id("textbox \"field\"").await;
        let sent = rig.output("browser_press_key", json!({ "element": field, "key": "Enter" })).await.expect("a key");
        assert_eq!(sent.result["title"], "sent", "{sent:?}");
        let shadow = rig.click(&rig.id("button \"Shadow\"").await).await.expect("a click");
        assert_eq!(shadow.result["title"], "shadow", "{shadow:?}");
        let line = rig.page().await;
        let more = line.lines().find(|line| line.contains("More")).and_then(id_in).expect("a summary");
        rig.click(&more).await.expect("a click");
        assert!(rig.page().await.contains("inside"), "{}", rig.page().await);
    })
    .await;
}

/// An act that its caller gives up leaves nothing behind: no button down, no guard open, no answer for dialogs.
#[tokio::test(flavor = "multi_thread")]
async fn an_act_that_is_given_up_leaves_nothing_behind() {
    each("given up", async |rig| {
        let page = "<title>none</title><button onmousedown=\"for (const end = performance.now() + 2000; performance.now() < end;);\">Slow</button>\
            <button onclick=\"document.title = 'quick ' + confirm('sure?')\">Quick</button>";
        let site = Site::new(&[("/", html(page))]);
        rig.go(&site.url("/")).await;
        let (slow, quick) = (rig.id("button \"Slow\"").await, rig.id("button \"Quick\"").await);
        let rig = Arc::new(rig);
        let token = CancellationToken::new();
        let (running, cancel) = (rig.clone(), token.clone());
        let call = tokio::spawn(async move {
            let (host, context) = running.host.parts();
            let arguments = json!({ "element": slow, "accept_dialogs": true });
            let request = Request { tool: "browser_click".into(), arguments: Arguments::Json(arguments) };
            host.call(request, &context.clone().cancel(cancel)).await.outcome
        });
        tokio::time::sleep(Duration::from_millis(700)).await;
        token.cancel();
        let given_up = call.await.expect("no panic").expect_err("it was given up");
        assert_eq!(given_up.kind, Kind::Cancelled, "{given_up:?}");
        let clicked = rig.click(&quick).await.expect("a click");
        assert_eq!(clicked.result["title"], "quick false", "{clicked:?}");
        let again = rig.click(&quick).await.expect("a click");
        assert_eq!(again.result["title"], "quick false", "{again:?}");
    })
    .await;
}

/// Dialogs of other tabs are none of an act's.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_for_the_dialogs_of_its_tab() {
    each("tabs", async |rig| {
        let asks = "<title>none</title><script>setInterval(() => { document.title = 'other ' + confirm('other?'); }, 20)</script>";
        let page = "<title>none</title><button onclick=\"for (const end = performance.now() + 1000; performance.now() < end;); document.title = 'own ' + confirm('own?')\">Ask</button>";
        let site = Site::new(&[("/", html(page)), ("/asks", html(asks))]);
        rig.go(&site.url("/asks")).await;
        rig.output("browser_tab_open", json!({ "url": site.url("/") })).await.expect("a tab");
        let ask = rig.id("button \"Ask\"").await;
        let clicked = rig.output("browser_click", json!({ "element": ask, "accept_dialogs": true })).await.expect("a click");
        assert_eq!(clicked.result["title"], "own true", "{clicked:?}");
        assert!(clicked.notices.iter().all(|notice| notice != "a dialog (confirm, accepted) says: other?"), "{clicked:?}");
    })
    .await;
}

/// A page that is not gone to leaves the tab as it was: the next act waits for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_gone_to_holds_nothing_up() {
    each("stays", async |rig| {
        let site = Site::new(&[(
            "/",
            html("<title>none</title><button onclick=\"document.title = 'pressed'\">Press</button>"),
        )]);
        rig.output("browser_tab_open", json!({ "url": site.url("/") })).await.expect("a tab");
        let back = rig.output("browser_navigate", json!({ "to": "forward" })).await;
        let back = back.expect_err("there is nothing");
        assert_eq!(back.kind, Kind::InvalidArguments, "{back:?}");
        let press = rig.id("button \"Press\"").await;
        let begin = Instant::now();
        assert_eq!(rig.click(&press).await.expect("a click").result["title"], "pressed");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    })
    .await;
}
