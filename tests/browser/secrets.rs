//! Secrets in password fields: where they go, and that nothing of them comes back.

use crate::rig::{Site, each, html};
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
