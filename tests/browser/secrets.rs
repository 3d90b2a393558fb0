//! Secrets in password fields: where they go, and that nothing of them comes back.

use crate::rig::{Page, Rig, Site, each, html};
use serde_json::json;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use toolcrib::envelope::{Failure, Kind, Output};
use toolcrib_tests::certificate::Authority;
use toolcrib_tests::names;

/// Where scripts are not granted there are none.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_run_where_they_are_granted() {
    each("scripts", async |rig| {
        let site = Site::new(&[("/", html("<title>Here</title>"))]);
        rig.go(&site.url("/")).await;
        let refused = rig.output("browser_evaluate", json!({ "script": "1" })).await.expect_err("it is not granted");
        assert!(
            refused.kind == Kind::Denied
                && refused.hint.as_deref().is_some_and(|hint| hint.contains("browser.evaluate = true")),
            "{refused:?}"
        );
    })
    .await;
    each("scripts", async |rig| {
        let rig = rig.set("plugin.browser.browser.evaluate=true");
        let site = Site::new(&[("/", html("<title>Here</title>"))]);
        rig.go(&site.url("/")).await;
        for (script, value) in [
            ("1 + 1", json!(2)),
            ("document.title", json!("Here")),
            ("Promise.resolve({a: [1]})", json!({ "a": [1] })),
            ("'\\ud83d'", json!("\u{fffd}")),
        ] {
            let said = rig
                .output("browser_evaluate", json!({ "script": script }))
                .await
                .unwrap_or_else(|failure| panic!("{script}: {failure:?}"));
            assert_eq!(said.result["result"], value, "{script}: {said:?}");
        }
        let throws = rig.output("browser_evaluate", json!({ "script": "null.x" })).await.expect_err("it throws");
        assert!(throws.kind == Kind::ExecutionFailed && throws.message.contains("TypeError"), "{throws:?}");
    })
    .await;
}

/// What no result, event or record may have.
const VALUE: &str = "correct-horse-battery-staple";
const LOGIN: &str = "<title>Login</title><form action=/in method=post><label>Name <input name=n></label><label>Pass <input id=p name=p type=password></label>\
    <label>Hint <input name=h></label><button>Sign in</button></form><p id=out></p>";

/// A host with the secret, the site that it may go to, and another one.
pub(crate) struct Login {
    pub(crate) rig: Rig,
    pub(crate) own: Site,
    pub(crate) own_url: String,
    pub(crate) other: Site,
    pub(crate) other_url: String,
}

/// The pages of both sites are made of their URLs.
pub(crate) fn login(rig: Rig, pages: impl Fn(&str, &str) -> [Vec<(String, Page)>; 2]) -> Login {
    let dns = names(&[("shop.example.com", [127, 0, 0, 1]), ("other.example.com", [127, 0, 0, 1])]);
    let authority = Authority::new();
    let listen = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let (own, other) = (listen(), listen());
    let (own_port, other_port) = (port(&own), port(&other));
    let own_url = format!("https://shop.example.com:{own_port}");
    let other_url = format!("https://other.example.com:{other_port}");
    let [own_pages, other_pages] = pages(&own_url, &other_url);
    let with_login = |pages: Vec<(String, Page)>| {
        let both = [("/".to_owned(), html(LOGIN)), ("/in".to_owned(), html("<title>In</title><h1>Welcome</h1>"))];
        both.into_iter().chain(pages).collect::<Vec<_>>()
    };
    let serve = |listener, name, pages: &[(String, Page)]| {
        let pages: Vec<(&str, Page)> = pages.iter().map(|(path, page)| (path.as_str(), page.clone())).collect();
        Site::encrypted(listener, name, &authority, &pages)
    };
    let own = serve(own, "shop.example.com", &with_login(own_pages));
    let other = serve(other, "other.example.com", &with_login(other_pages));
    let home = rig.host.home();
    std::fs::write(home.join("ca.pem"), authority.pem()).expect("a file");
    std::fs::write(home.join("value"), VALUE).expect("a file");
    std::fs::set_permissions(home.join("value"), std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let rig = rig
        .set(&format!("network.ca_file={:?}", home.join("ca.pem").display().to_string()))
        .set(&format!("network.dns_servers=[\"{dns}\"]"))
        .set(&format!("secret.SHOP.file={:?}", home.join("value").display().to_string()))
        .set("secret.SHOP.hosts=[\"shop.example.com\"]")
        .set(&format!("tools.fetch_ports=[80, 443, {own_port}, {other_port}]"))
        .set("plugin.browser.browser.secrets=[\"SHOP\"]");
    Login { rig, own, own_url, other, other_url }
}

async fn fill(rig: &Rig, field: &str, secret: &str) -> Result<Output, Failure> {
    let element = rig.id(&format!("textbox \"{field}\"")).await;
    rig.output("browser_type", json!({ "element": element, "secret": secret })).await
}

/// Cases 17 and 18, and `spacebot.md` 38.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_into_a_password_field_of_its_site_and_nothing_of_it_comes_back() {
    each("secret", async |rig| {
        // A page that shows what is typed, as soon as it is, and makes another field of it.
        let shows = format!(
            "{LOGIN}<script>p.oninput = () => {{ out.textContent = 'typed ' + p.value; document.title = p.value; history.replaceState(0, '', '?' + p.value);\
             setTimeout(() => p.type = 'text', 0); }}</script>"
        );
        let page = html(&shows);
        let Login { rig, own, own_url, .. } = login(rig, |_, _| [vec![("/shows".into(), page.clone())], vec![]]);
        rig.go(&own_url).await;
        for field in ["Name", "Hint"] {
            let refused = fill(&rig, field, "SHOP").await.expect_err("it is no password field");
            assert!(refused.kind == Kind::Denied && refused.message.contains("no password field"), "{refused:?}");
        }
        let other = fill(&rig, "Pass", "OTHER").await.expect_err("it is not granted");
        assert!(other.kind == Kind::Denied && other.hint.as_deref().is_some_and(|hint| hint.contains("browser.secrets")), "{other:?}");
        fill(&rig, "Pass", "SHOP").await.expect("its field");
        for (tool, arguments) in [
            ("browser_screenshot", json!({})),
            ("browser_snapshot", json!({ "find": "c" })),
            ("browser_wait", json!({ "text": "c" })),
        ] {
            let refused = rig.output(tool, arguments).await.expect_err("a secret is in the page");
            assert!(
                refused.kind == Kind::Denied && refused.message.contains("a secret was put into this page"),
                "{refused:?}"
            );
        }
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        assert!(looked.notices.iter().any(|notice| notice.contains("a secret was put into this page")), "{looked:?}");
        let there = rig.click(&rig.id("button \"Sign in\"").await).await.expect("a click");
        assert_eq!(there.result["title"], "In", "{there:?}");
        let sent = own.asked().into_iter().find(|asked| asked.starts_with("/in")).expect("a login");
        assert!(sent.contains(VALUE), "{sent}");
        // Another document: scripts and pictures as before.
        rig.output("browser_screenshot", json!({})).await.expect("a picture");
        rig.go(&format!("{own_url}/shows")).await;
        let filled = fill(&rig, "Pass", "SHOP").await.expect("its field");
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        let tabs = rig.output("browser_tab_list", json!({})).await.expect("tabs");
        let page = looked.result["page"].as_str().unwrap_or_default();
        assert!(page.contains("typed [secret"), "{page}");
        let everything = format!("{filled:?} {looked:?} {tabs:?} {:?} {:?}", rig.host.audit(), rig.host.events());
        assert!(!everything.contains(VALUE), "the value came back: {everything}");
        assert!(everything.contains("with the secret SHOP"), "{:?}", rig.host.audit());
    })
    .await;
}

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
        let refused = fill(&rig, "Pass", "SHOP").await.expect_err("it is another site");
        let to_other = "may not go to `other.example.com`";
        assert!(refused.kind == Kind::Denied && refused.message.contains(to_other), "{refused:?}");
        rig.go(&plain.url("/")).await;
        let refused = fill(&rig, "Pass", "SHOP").await.expect_err("it has no name");
        assert_eq!(refused.kind, Kind::Denied, "{refused:?}");
        // Another site in a frame of its own does not get it.
        rig.go(&format!("{own_url}/around")).await;
        let refused = fill(&rig, "Pass", "SHOP").await.expect_err("the frame is of another site");
        assert!(refused.kind == Kind::Denied && refused.message.contains(to_other), "{refused:?}");
        // Its own site in a frame does; what is around cannot see it.
        rig.go(&format!("{other_url}/around")).await;
        fill(&rig, "Pass", "SHOP").await.expect("the frame is of its site");
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
            if let Ok(filled) = fill(&rig, "Pass", "SHOP").await {
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
        fill(&rig, "Pass", "SHOP").await.expect("its field");
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
        let filled = fill(&rig, "Pass", "SHOP").await.expect("its field");
        let looked = rig.output("browser_snapshot", json!({})).await.expect("a look");
        let everything = format!("{filled:?} {looked:?} {:?} {:?}", rig.host.audit(), rig.host.events());
        assert!(looked.result["page"].as_str().is_some_and(|page| page.contains("[secret")), "{looked:?}");
        let (begin, _) = VALUE.split_at(4);
        assert!(!everything.contains(begin), "a part came: {everything}");
    })
    .await;
}
