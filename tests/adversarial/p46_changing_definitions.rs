//! P-46: a plugin that says something else of itself each time it is asked.
//! Outcome: it is asked once for its bytes; every host that shares the state, also one started later, shows what it said then. What it said when it was allowed is pinned: where it says something else, it is refused.
//! Switched off: without the cache (`cached` in `sandbox/mod.rs`) each process heard something else and the first test failed; without the comparison in `Host::ready` (`tools/definitions.rs`) the pinned plugin was called and the last one failed.

use serde_json::{Value, json};
use toolcrib_tests::forge::liar;
use toolcrib_tests::{Preparation, Siege};

fn script(summary: &str) -> Value {
    json!({ "change": true, "tools": [{ "name": "turncoat", "summary": summary }] })
}

fn description(siege: &Siege) -> String {
    let plugins = siege.program.path("plugins").display().to_string();
    let output = siege.program.run(&["--plugins", &plugins, "tools", "turncoat", "--format", "json"]);
    let tool: Value = serde_json::from_slice(&output.stdout).expect("a tool");
    tool["description"].as_str().expect("a description").to_owned()
}

#[test]
fn a_definition_is_taken_once_for_its_bytes_also_across_restarts() {
    let plugin = liar(&script("Said at"), &["turncoat"]);
    let mut siege = Preparation::new().component("turncoat", &plugin).begin();
    assert_eq!(siege.call("turncoat", json!({}))["result"], "turncoat");
    let first = description(&siege);
    assert!(first.starts_with("Said at 1"), "{first}");
    for _ in 0..2 {
        assert_eq!(description(&siege), first);
        assert_eq!(siege.call("turncoat", json!({}))["result"], "turncoat");
    }
    siege.lift();
}

#[test]
fn other_bytes_are_asked_anew() {
    let siege = Preparation::new().component("turncoat", &liar(&script("Said at"), &["turncoat"])).begin();
    let first = description(&siege);
    siege.program.write("plugins/turncoat.wasm", liar(&script("Now said at"), &["turncoat"]));
    assert_ne!(description(&siege), first);
    assert!(description(&siege).starts_with("Now said at"));
    siege.lift();
}

#[test]
fn a_plugin_that_shows_one_tool_and_defines_another_is_refused() {
    let plugin = liar(&script("Said at"), &["innocent"]);
    let mut siege = Preparation::new().component("turncoat", &plugin).begin();
    for _ in 0..2 {
        let failure = siege.failure("innocent", json!({}));
        let reason = r#"its definitions name the tools ["turncoat"], and the plugin shows ["innocent"]"#;
        assert_eq!(failure, format!("unavailable: plugin `turncoat` was refused: {reason}"));
        assert!(siege.failure("turncoat", json!({})).starts_with("unknown_tool: "));
    }
    siege.lift();
}

#[test]
fn what_a_plugin_said_when_it_was_allowed_holds_also_where_nothing_is_cached() {
    let mut siege = Preparation::new().component("turncoat", &liar(&script("Said at"), &["turncoat"])).begin();
    assert_eq!(siege.call("turncoat", json!({}))["result"], "turncoat");
    let plugins = siege.program.path("plugins").display().to_string();
    let allowed = siege.program.run(&["plugin", "allow", &format!("{plugins}/turncoat.wasm")]);
    assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
    assert_eq!(siege.program.call(&["--plugins", &plugins, "turncoat"]).1["result"], "turncoat");
    std::fs::remove_dir_all(siege.program.path("state/toolcrib/code")).expect("a cache");
    for _ in 0..2 {
        let (code, envelope) = siege.program.call(&["--plugins", &plugins, "turncoat"]);
        assert_eq!((code, &envelope["error"]["kind"]), (10, &json!("unavailable")), "{envelope}");
        let message = "plugin `turncoat` was refused: its tool definitions have changed since it was allowed";
        assert_eq!(envelope["error"]["message"], message);
    }
    siege.lift();
}
