//! W-09: a login form that is not what it looks like: of another site, in a frame of one, over plain HTTP, or with a field that turns, moves or shows what is typed.
//! Outcome: a secret is `denied` to every other site, and of what the right one got nothing comes back: not by a field, a title, a piece, a paste.
//! Switched off: with the hosts of a secret not looked at (`BrowserGrant::admit_secret`) another site had it in its field.

use serde_json::json;
use toolcrib::envelope::Kind;
use toolcrib_tests::browser::{LOGIN, Login, Page, Site, VALUE, each, html, login};

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_to_no_other_site_and_over_https_alone() {
    each("foreign", async |rig| {
        let plain = Site::new(&[("/", html(LOGIN))]);
        let around = |title: &str, url: &str| html(&format!("<title>{title}</title><iframe src=\"{url}\"></iframe>"));
        let pages = |own: &str, other: &str| {
            [vec![("/around".into(), around("Own", other))], vec![("/around".into(), around("Other", own))]]
        };
        let Login { rig, own, own_url, other, other_url } = login(rig, pages);
        rig.go(&other_url).await;
        let refused = rig.fill_secret("Pass", "SHOP").await.expect_err("it is another site");
        let to_other = "may not go to `other.example.com`";
        assert!(refused.kind == Kind::Denied && refused.message.contains(to_other), "{refused:?}");
        rig.go(&plain.url("/")).await;
        let refused = rig.fill_secret("Pass", "SHOP").await.expect_err("it has no name");
        assert_eq!(refused.kind, Kind::Denied, "{refused:?}");
        // Another site in a frame of its own does not get it.
        rig.go(&format!("{own_url}/around")).await;
        let refused = rig.fill_secret("Pass", "SHOP").await.expect_err("the frame is of another site");
        assert!(refused.kind == Kind::Denied && refused.message.contains(to_other), "{refused:?}");
        // Its own site in a frame does; what is around cannot see it.
        rig.go(&format!("{other_url}/around")).await;
        rig.fill_secret("Pass", "SHOP").await.expect("the frame is of its site");
        let all = [plain.asked(), own.asked(), other.asked()].concat();
        assert!(all.iter().all(|asked| !asked.contains(VALUE)), "{all:?}");
    })
    .await;
}

/// A page that makes another field of it under the keys, or moves the focus, gets nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_changes_the_field_gets_nothing() {
    each("tricks", async |rig| {
        let tricks = [
            "p.onfocus = () => { p.type = 'text'; }",
            "p.onfocus = () => { document.forms[0].h.focus(); }",
            "addEventListener('focusin', () => setTimeout(() => document.forms[0].h.focus(), 0))",
        ];
        let pages: Vec<(String, Page)> = tricks
            .iter()
            .enumerate()
            .map(|(number, trick)| (format!("/{number}"), html(&format!("{LOGIN}<script>{trick}</script>"))))
            .collect();
        let Login { rig, own, own_url, .. } = login(rig, |_, _| [pages.clone(), vec![]]);
        for (number, trick) in tricks.iter().enumerate() {
            rig.go(&format!("{own_url}/{number}")).await;
            if let Ok(filled) = rig.fill_secret("Pass", "SHOP").await {
                println!("{trick}: it was filled before: {filled:?}");
            }
            rig.output("browser_press_key", json!({ "key": "Enter" })).await.expect("a key");
            let sent: Vec<String> = own.asked().into_iter().filter(|asked| asked.contains(VALUE)).collect();
            let is_in_hint = sent.iter().any(|asked| asked.contains(&format!("h={VALUE}")));
            assert!(!is_in_hint, "{trick}: {sent:?}");
            let page = rig.page().await;
            // What is redacted is shown so: neither is there where no field shows it.
            assert!(!page.contains(VALUE) && !page.contains("[secret"), "{trick}: {page}");
        }
    })
    .await;
}

/// What is copied in the site that has it is pasted into no other.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_copied_is_not_pasted_into_another_site() {
    each("clipboard", async |rig| {
        let shows = "<title>Copy</title><input id=p aria-label=Pass type=password><button onclick=\"p.type = 'text'; p.select(); document.execCommand('copy')\">Copy</button>";
        let takes = "<title>Take</title><textarea aria-label=Take oninput=\"fetch('/took-' + this.value)\"></textarea>\
            <script>addEventListener('paste', event => fetch('/took-' + event.clipboardData.getData('text')))</script>";
        let Login { rig, own_url, other, other_url, .. } =
            login(rig, |_, _| [vec![("/copy".into(), html(shows))], vec![("/take".into(), html(takes))]]);
        rig.go(&format!("{own_url}/copy")).await;
        rig.fill_secret("Pass", "SHOP").await.expect("its field");
        rig.click(&rig.id("button \"Copy\"").await).await.expect("a click");
        for key in ["Control+a", "Control+c"] {
            let element = rig.id("textbox \"Pass\"").await;
            rig.output("browser_press_key", json!({ "element": element, "key": key })).await.expect("a key");
        }
        rig.go(&format!("{other_url}/take")).await;
        let element = rig.id("textbox \"Take\"").await;
        for key in ["Control+v", "Meta+V", "Control+Shift+v", "Shift+Insert"] {
            let refused = rig.output("browser_press_key", json!({ "element": element, "key": key })).await;
            assert_eq!(refused.expect_err("nothing is pasted").kind, Kind::Denied, "{key}");
        }
        let asked = other.asked();
        assert!(asked.iter().all(|asked| !asked.starts_with("/took-")), "{asked:?}");
    })
    .await;
}

/// What is shown in part shows no part of a secret.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_cut_in_two() {
    each("cut", async |rig| {
        let page = "<title>none</title><input id=p aria-label=Pass type=password><button id=b>B</button><input id=t aria-label=Text><p id=out></p><script>p.oninput = () => {\
            for (let n = 60; n < 420; n++) { const b = document.createElement('button'); b.textContent = 'x'.repeat(n) + p.value; out.append(b); }\
            t.value = 'y'.repeat(90) + p.value; document.title = 'z'.repeat(290) + p.value; alert('w'.repeat(385) + p.value); }</script>";
        let Login { rig, own_url, .. } = login(rig, |_, _| [vec![("/cut".into(), html(page))], vec![]]);
        rig.go(&format!("{own_url}/cut")).await;
        let filled = rig.fill_secret("Pass", "SHOP").await.expect("its field");
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        let everything = format!("{filled:?} {looked:?} {:?} {:?}", rig.host.audit(), rig.host.events());
        assert!(looked.result["page"].as_str().is_some_and(|page| page.contains("[secret")), "{looked:?}");
        let (begin, _) = VALUE.split_at(4);
        assert!(!everything.contains(begin), "a part came: {everything}");
    })
    .await;
}
