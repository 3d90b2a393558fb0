//! `settings`, which asks its host for values: it gets those of its section, and of a secret no more than a word.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use toolcrib_tests::TestHost;

#[tokio::test(flavor = "multi_thread")]
async fn it_gets_what_its_section_says_and_nothing_of_this_machine() {
    let host = TestHost::new().plugin("settings");
    assert_eq!(host.result("all", json!({})).await, json!([]));
    assert_eq!(host.result("variables", json!({})).await, json!([]));
    assert_eq!(host.result("arguments", json!({})).await, json!([]));
    assert_eq!(host.result("value", json!({ "key": "PATH" })).await, Value::Null);

    let host = TestHost::new().plugin("settings");
    let key = host.home().join("key");
    std::fs::write(&key, "zK4vQ9.Lw2x-Ht7Rm+8").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let host = host
        .set(&format!("secret.KEY.file={key:?}"))
        .grant("settings", r#"config={ CITY = "Köln", TOKEN = "Bearer ${secret:KEY}" }"#);
    assert_eq!(host.result("value", json!({ "key": "CITY" })).await, "Köln");
    assert_eq!(host.result("value", json!({ "key": "city" })).await, Value::Null);
    let all = host.result("all", json!({})).await;
    assert_eq!(all[0], json!(["CITY", "Köln"]));
    let word = all[1][1].as_str().unwrap();
    assert!(word.starts_with("Bearer secret-KEY-") && word.len() == 18 + 32, "{word}");
    let variables = host.result("variables", json!({})).await;
    assert_eq!(variables[0], json!(["CITY", "Köln"]));
    // The word is of one call.
    assert_ne!(variables[1][1], word);
}

/// A section about other bytes says nothing to these.
#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_get_nothing_of_it() {
    let host = TestHost::new().plugin("settings").set(&format!("plugin.settings.sha256={:?}", "0".repeat(64)));
    let host = host.set(r#"plugin.settings.config={ CITY = "Bonn" }"#);
    assert_eq!(host.result("all", json!({})).await, json!([]));
}
