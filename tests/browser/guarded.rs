//! Presses and keys reach what was shown, whatever a page does meanwhile: no frame of another site, and nothing of an act that was given up.

use crate::rig::{Page, Rig, Site, each, html};
use crate::secrets::{Login, login};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::Kind;

/// A page of somebody else, which writes down at its site what it gets.
const VICTIM: &str = "<title>Victim</title><body style=margin:0><button id=b autofocus style=\"position:fixed;inset:0;width:100%;height:100%\">Pay</button>\
    <script>const got = what => fetch('/got-' + what); b.onclick = () => got('click'); onpointerdown = () => got('pointerdown');\
    onmousedown = () => got('mousedown'); onkeydown = () => got('keydown'); onkeyup = () => got('keyup');</script>";
const GOT: [&str; 5] = ["/got-click", "/got-pointerdown", "/got-mousedown", "/got-keydown", "/got-keyup"];

fn got(victim: &Site) -> Vec<String> {
    victim.asked().into_iter().filter(|asked| GOT.contains(&asked.as_str())).collect()
}

/// A page around the victim, which does this with its frame.
fn around(victim: &str, trick: &str) -> Page {
    html(&format!(
        "<title>none</title><button id=ok onclick=\"document.title = 'OK pressed'\">OK</button><input id=field aria-label=field>\
         <iframe id=f src=\"{victim}\" style=\"width:50px;height:20px;opacity:0.01\"></iframe><script>\
         const over = () => {{ f.style.cssText = 'position:fixed;inset:0;width:100%;height:100%;opacity:0.01;z-index:9'; }};\
         const away = () => {{ f.style.cssText = 'position:fixed;left:200px;top:200px;width:50px;height:20px;opacity:0.01'; }}; {trick}</script>"
    ))
}

const OVER: [&str; 4] = [
    "ok.onpointermove = ok.onmouseover = over;",
    // Under the finger: pressed here, let go there.
    "ok.onpointerdown = over; ok.onmousedown = over;",
    "let is = false; setInterval(() => { (is = !is) ? over() : away(); }, 0);",
    "onmousemove = () => { over(); for (const end = performance.now() + 50; performance.now() < end;); };",
];

/// Two servers of one machine, whose frames are in one process; and two sites, each with its own.
#[tokio::test(flavor = "multi_thread")]
async fn no_press_comes_down_on_a_frame_of_another_site() {
    each("frames", async |rig| {
        let victim = Site::new(&[("/", html(VICTIM))]);
        let tricks: Vec<(String, Page)> =
            OVER.iter().enumerate().map(|(n, trick)| (format!("/{n}"), around(&victim.url("/"), trick))).collect();
        let pages: Vec<(&str, Page)> = tricks.iter().map(|(path, page)| (path.as_str(), page.clone())).collect();
        let site = Site::new(&pages);
        pressed(&rig, &|path| site.url(path), &victim).await;
    })
    .await;
    each("sites", async |rig| {
        let tricks = |victim: &str| {
            let victim = format!("{victim}/victim");
            OVER.iter().enumerate().map(|(n, trick)| (format!("/{n}"), around(&victim, trick))).collect::<Vec<_>>()
        };
        let victim = vec![("/victim".to_owned(), html(VICTIM))];
        let Login { rig, own, other_url, .. } = login(rig, |own, _| [victim.clone(), tricks(own)]);
        pressed(&rig, &|path| format!("{other_url}{path}"), &own).await;
    })
    .await;
}

async fn pressed(rig: &Rig, url: &dyn Fn(&str) -> String, victim: &Site) {
    for (number, trick) in OVER.iter().enumerate() {
        rig.go(&url(&format!("/{number}"))).await;
        let ok = rig.id("button \"OK\"").await;
        for _ in 0..5 {
            match rig.click(&ok).await {
                Ok(clicked) => assert_eq!(clicked.result["tab"], "t1", "{trick}: {clicked:?}"),
                Err(failure) => assert_eq!(failure.kind, Kind::Busy, "{trick}: {failure:?}"),
            }
        }
        assert_eq!(got(victim), [] as [String; 0], "{trick}");
    }
    // The frame itself is clicked where that is wanted.
    let pay = rig.id("button \"Pay\"").await;
    rig.go(&url("/0")).await;
    assert_eq!(rig.click(&pay).await.expect_err("it is another document").kind, Kind::Busy);
}

/// A key goes where the page itself has the focus, not into a frame that it gave it to.
#[tokio::test(flavor = "multi_thread")]
async fn no_key_goes_to_a_frame_that_got_the_focus() {
    each("keys", async |rig| {
        let tricks = |victim: &str| {
            let tricks =
                ["field.onfocus = () => f.focus();", "f.onload = () => { f.focus(); }; onkeydown = () => f.focus();"];
            let page = |trick: &str| around(&format!("{victim}/victim"), trick);
            tricks.iter().enumerate().map(|(n, trick)| (format!("/{n}"), page(trick))).collect::<Vec<_>>()
        };
        let victim = vec![("/victim".to_owned(), html(VICTIM))];
        let Login { rig, own, other_url, .. } = login(rig, |own, _| [victim.clone(), tricks(own)]);
        for path in ["/0", "/1"] {
            rig.go(&format!("{other_url}{path}")).await;
            let field = rig.id("textbox \"field\"").await;
            for key in ["Enter", "Space", "a"] {
                // With the element, and wherever the focus is.
                let on = rig.output("browser_press_key", json!({ "element": field, "key": key })).await;
                assert!(on.as_ref().err().is_none_or(|failure| failure.kind == Kind::Busy), "{on:?}");
                let loose = rig.output("browser_press_key", json!({ "key": key })).await;
                if let Err(failure) = loose {
                    assert!(failure.kind == Kind::Busy && failure.message.contains("focus"), "{failure:?}");
                }
            }
            assert_eq!(got(&own), [] as [String; 0], "{path}");
        }
        // A key for the frame's own button gets there.
        let pay = rig.id("button \"Pay\"").await;
        rig.output("browser_press_key", json!({ "element": pay, "key": "Enter" })).await.expect("a key");
        let all = got(&own);
        assert!(all.contains(&"/got-keydown".to_owned()) && all.contains(&"/got-click".to_owned()), "{all:?}");
    })
    .await;
}

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
        let more = line.lines().find(|line| line.contains("More")).and_then(crate::rig::id_in).expect("a summary");
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
