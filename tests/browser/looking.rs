//! What a page comes as: lines, ids, what has changed, and how much of it.

use crate::rig::{Site, each, html, id_in};
use serde_json::json;
use toolcrib::envelope::Kind;

const SHOP: &str = "<title>Shop</title><h1>Orders</h1><nav aria-label=Main><a href=/done>Home</a></nav>\
    <section aria-label=Open><p>First<td><button id=a onclick=\"this.insertAdjacentHTML('afterend','<p>paid</p>')\">Pay one</button></p><p>Second<button id=b>Pay two</button></p></section>\
    <label>Name <input id=n value=Zo\u{eb}></label><label><input type=checkbox checked> Agree</label><p>Some <b>text</b> here.</p>";

#[tokio::test(flavor = "multi_thread")]
async fn a_page_comes_as_lines_with_ids_of_what_can_be_acted_on() {
    each("lines", async |rig| {
        let site = Site::new(&[("/", html(SHOP)), ("/done", html("<title>Done</title>"))]);
        let there = rig.go(&site.url("/")).await;
        assert_eq!((&there.result["title"], &there.result["tab"]), (&json!("Shop"), &json!("t1")), "{there:?}");
        let page = rig.page().await;
        for (line, has_id) in [
            ("- heading \"Orders\" (level 1)", false),
            ("- link \"Home\"", true),
            ("- button \"Pay one\"", true),
            ("- textbox \"Name\" = \"Zo\u{eb}\"", true),
            ("- checkbox \"Agree\" (checked: true)", true),
            ("- navigation \"Main\"", true),
        ] {
            let found = page.lines().find(|found| found.trim_start().starts_with(line));
            let found = found.unwrap_or_else(|| panic!("no {line:?} in:\n{page}"));
            assert_eq!(id_in(found).is_some(), has_id, "{found}");
        }
        assert!(page.contains("text: text"), "{page}");
    })
    .await;
}

/// Cases 5 and, of changes, 8.
#[tokio::test(flavor = "multi_thread")]
async fn an_element_keeps_its_id_and_an_act_says_what_it_changed() {
    each("ids", async |rig| {
        let site = Site::new(&[("/", html(SHOP))]);
        rig.go(&site.url("/")).await;
        let (one, two) = (rig.id("button \"Pay one\"").await, rig.id("button \"Pay two\"").await);
        let clicked = rig.click(&one).await.expect("a click");
        assert_eq!(clicked.result["changes"].as_str().map(str::trim), Some("- text: paid"), "{clicked:?}");
        assert_eq!((rig.id("button \"Pay one\"").await, rig.id("button \"Pay two\"").await), (one, two));
        let again = rig.output("browser_snapshot", json!({ "changes_only": true })).await.expect("a look");
        assert_eq!(again.result["page"], "", "{again:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_page_is_found_by_its_text_or_its_element() {
    each("parts", async |rig| {
        let site = Site::new(&[("/", html(SHOP))]);
        rig.go(&site.url("/")).await;
        let navigation = rig.id("navigation \"Main\"").await;
        let within = rig.output("browser_snapshot", json!({ "within": navigation })).await.expect("a look");
        let within = within.result["page"].as_str().unwrap_or_default();
        assert!(within.contains("Home") && !within.contains("Pay one"), "{within}");
        let found = rig.output("browser_snapshot", json!({ "find": "pay TWO" })).await.expect("a look");
        let found = found.result["page"].as_str().unwrap_or_default();
        assert!(
            found.contains("Pay two") && found.contains("region \"Open\"") && !found.contains("Pay one"),
            "{found}"
        );
    })
    .await;
}

/// Frames are part of the page, those of other origins too.
#[tokio::test(flavor = "multi_thread")]
async fn frames_are_looked_into_and_acted_in() {
    each("frames", async |rig| {
        let inner = Site::new(&[("/", html("<button onclick=\"this.textContent='pressed'\">Inner</button>"))]);
        let frames = format!(
            "<title>Outer</title><h1>Outer</h1><iframe src=\"{}\"></iframe><iframe src=/own></iframe>",
            inner.url("/")
        );
        let site = Site::new(&[
            ("/", html(&frames)),
            ("/own", html("<button onclick=\"this.textContent='done'\">Own</button>")),
        ]);
        rig.go(&site.url("/")).await;
        for (button, after) in [("Inner", "pressed"), ("Own", "done")] {
            let id = rig.id(&format!("button \"{button}\"")).await;
            rig.click(&id).await.unwrap_or_else(|failure| panic!("{button}: {failure:?}"));
            assert!(rig.page().await.contains(&format!("button \"{after}\"")), "{button}: {}", rig.page().await);
        }
    })
    .await;
}

/// Case 19.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_page_comes_in_part_and_in_time() {
    each("large", async |rig| {
        let rows: String = (0..50_000).map(|row| format!("<p><a href=/{row}>row {row}</a></p>")).collect();
        let site = Site::new(&[("/", html(&format!("<title>Large</title><main>{rows}</main>")))]);
        rig.go(&site.url("/")).await;
        let begin = std::time::Instant::now();
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        let page = looked.result["page"].as_str().unwrap_or_default();
        println!("{} characters after {:?}", page.len(), begin.elapsed());
        assert!(page.contains("row 0") && page.len() <= 26_000, "{}", page.len());
        assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
        assert!(looked.notices.iter().any(|notice| notice.contains("large")), "{:?}", looked.notices);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_a_small_jpeg() {
    each("picture", async |rig| {
        let tall: String = (0..300).map(|row| format!("<p>row {row}</p>")).collect();
        let site = Site::new(&[("/", html(&format!("<title>Tall</title><button>One</button>{tall}")))]);
        rig.go(&site.url("/")).await;
        let button = rig.id("button \"One\"").await;
        for arguments in [json!({}), json!({ "full_page": true }), json!({ "element": button })] {
            let taken = rig
                .output("browser_screenshot", arguments.clone())
                .await
                .unwrap_or_else(|failure| panic!("{failure:?}"));
            let bytes = match &taken.content[..] {
                [toolcrib::envelope::Content::Image(media_type, bytes)] if media_type == "image/jpeg" => bytes.clone(),
                other => panic!("{arguments}: {other:?}"),
            };
            assert!(bytes.starts_with(&[0xFF, 0xD8, 0xFF]) && bytes.len() <= 960 << 10, "{arguments}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_told() {
    each("wrong", async |rig| {
        let nothing = rig.output("browser_snapshot", json!({})).await.expect_err("no page is open");
        assert_eq!(nothing.kind, Kind::Unavailable, "{nothing:?}");
        let site = Site::new(&[("/", html(SHOP))]);
        rig.go(&site.url("/")).await;
        for (tool, arguments, kind) in [
            ("browser_click", json!({ "element": "x" }), Kind::InvalidArguments),
            ("browser_click", json!({ "element": "e9999" }), Kind::Busy),
            ("browser_snapshot", json!({ "tab": "t9" }), Kind::InvalidArguments),
            ("browser_press_key", json!({ "key": "Hyper+x" }), Kind::InvalidArguments),
            ("browser_navigate", json!({ "to": "forward" }), Kind::InvalidArguments),
        ] {
            let failure = rig.output(tool, arguments.clone()).await.expect_err("wrong arguments");
            assert_eq!(failure.kind, kind, "{tool} {arguments}: {failure:?}");
        }
    })
    .await;
}

/// Texts and shadow trees count, and names of elements in place of methods hide nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_page_does_not_pass_for_a_small_one() {
    each("disguised", async |rig| {
        let texts = "<title>Texts</title><p id=p></p><script>for (let n = 0; n < 60000; n++) p.append('text ' + n, document.createComment(''));</script>";
        let shadow = "<title>Shadow</title><div id=h></div><script>const root = h.attachShadow({mode: 'open'});\
            for (let n = 0; n < 30000; n++) { const b = document.createElement('b'); b.textContent = 'row ' + n; root.append(b); }</script>";
        let named = "<title>Named</title><form name=createTreeWalker></form><form name=getElementsByTagName></form><form name=body></form><div id=d></div>\
            <script>d.innerHTML = '<b>row</b>'.repeat(30000)</script>";
        let site = Site::new(&[("/texts", html(texts)), ("/shadow", html(shadow)), ("/named", html(named))]);
        for path in ["/texts", "/shadow", "/named"] {
            rig.go(&site.url(path)).await;
            let begin = std::time::Instant::now();
            let looked = rig.output("browser_snapshot", json!({})).await.unwrap_or_else(|failure| panic!("{path}: {failure:?}"));
            println!("{path}: {:?}", begin.elapsed());
            assert!(looked.notices.iter().any(|notice| notice.contains("the page is large")), "{path}: {:?}", looked.notices);
        }
    })
    .await;
}
