//! W-04: a page renames, moves, covers or swaps a button at the moment of the click, or puts a frame of another site under the pointer or the keys.
//! Outcome: the press reaches the element that was shown, as it was shown, or nothing at all, and the call is `busy`.
//! Switched off: with presses and keys stopped nowhere (`check` in `browser/guard.js`) the other button, the other frame and the other field got them.

use serde_json::json;
use toolcrib::envelope::Kind;
use toolcrib_tests::browser::{COUNTED, Login, Page, Rig, Site, each, html, login};
use toolcrib_tests::eventually;

/// A page that moves what is under the pointer when it comes near, or gives it another name, or lays another thing over it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_clicked_that_a_page_put_under_the_pointer() {
    each("moved", async |rig| {
        for trick in [
            // When the pointer comes, another button takes the place.
            "ok.onpointermove = ok.onmouseover = () => { buy.style.cssText = 'position:fixed;inset:0;z-index:9'; }",
            // When the pointer comes, the button itself says something else.
            "ok.onmouseover = () => { ok.textContent = 'Buy'; }",
            // It is taken away.
            "ok.onmouseover = () => { ok.style.display = 'none'; }",
            // Another one flickers over it all the time.
            "setInterval(() => { buy.style.cssText = buy.style.cssText ? '' : 'position:fixed;inset:0;z-index:9'; }, 0)",
        ] {
            let page = format!(
                "{COUNTED}<button id=ok onclick=\"pressed(this.textContent)\">OK</button><button id=buy onclick=\"pressed('Buy')\">Buy now</button>\
                 <script>{trick}</script>"
            );
            let site = Site::new(&[("/", html(&page))]);
            rig.go(&site.url("/")).await;
            let ok = rig.id("button \"OK\"").await;
            for _ in 0..5 {
                match rig.click(&ok).await {
                    // Where it was pressed on one and let go on the other, a notice says so, and nothing was clicked.
                    Ok(clicked) => assert!(
                        clicked.result["title"] == "OK pressed" || format!("{clicked:?}").contains("may not have been clicked"),
                        "{trick}: {clicked:?}"
                    ),
                    Err(failure) => assert!(matches!(failure.kind, Kind::Busy), "{trick}: {failure:?}"),
                }
                let title = rig.title().await;
                assert!(["none", "OK pressed"].contains(&title.as_str()), "{trick}: {title}");
            }
        }
    })
    .await;
}

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
        // What a page tells its site is on its way for a while.
        eventually("the frame gets the key", || {
            let all = got(&own);
            ["/got-keydown", "/got-click"].iter().all(|wanted| all.iter().any(|asked| asked == wanted))
        });
    })
    .await;
}
