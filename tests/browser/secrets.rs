//! Scripts where they are granted, and secrets in password fields, of which nothing comes back. What hostile pages try is in `tests/adversarial`.

use crate::rig::{LOGIN, Login, Site, VALUE, each, html, login};
use serde_json::json;
use toolcrib::envelope::Kind;

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
            let refused = rig.fill_secret(field, "SHOP").await.expect_err("it is no password field");
            assert!(refused.kind == Kind::Denied && refused.message.contains("no password field"), "{refused:?}");
        }
        let other = rig.fill_secret("Pass", "OTHER").await.expect_err("it is not granted");
        assert!(other.kind == Kind::Denied && other.hint.as_deref().is_some_and(|hint| hint.contains("browser.secrets")), "{other:?}");
        rig.fill_secret("Pass", "SHOP").await.expect("its field");
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
        // How long it is, is not told.
        let page = looked.result["page"].as_str().unwrap_or_default();
        assert!(page.contains("(filled)") && !page.contains('•'), "{page}");
        let there = rig.click(&rig.id("button \"Sign in\"").await).await.expect("a click");
        assert_eq!(there.result["title"], "In", "{there:?}");
        let sent = own.asked().into_iter().find(|asked| asked.starts_with("/in")).expect("a login");
        assert!(sent.contains(VALUE), "{sent}");
        // Another document: scripts and pictures as before.
        rig.output("browser_screenshot", json!({})).await.expect("a picture");
        rig.go(&format!("{own_url}/shows")).await;
        let filled = rig.fill_secret("Pass", "SHOP").await.expect("its field");
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
