//! P-02: a loop or a sleep where no tool runs yet: in a core module's start function, in `definitions`.
//! Outcome: the plugin is refused by the limit that it met; others load, and listings come to an end.
//! Switched off: without the check of CPU time (`engine/meter.rs`) all four loops ran into `timed_out` and their tests failed; without the time for definitions (`sandbox/mod.rs`) both tests of sleeping failed.

use serde_json::json;
use std::time::Duration;
use toolcrib_tests::forge::{Forged, liar};
use toolcrib_tests::{Preparation, Siege};

const LOOP: &str = "(loop $on (br $on))";

fn against(plugin: &[u8]) -> Siege {
    let host = Preparation::new().guest("shell_echo").component("slow", plugin);
    host.set("limits.guest_cpu_ms=200").set("limits.call_ms=30000").begin()
}

fn is_refused_for_its_cpu_time(plugin: &[u8]) {
    let mut siege = against(plugin);
    for _ in 0..2 {
        let failure = siege.failure("slow", json!({}));
        assert_eq!(failure, "unavailable: plugin `slow` was refused: limit: guest CPU time 200 ms");
        // The other third-party plugin is loaded: what it lacks is its grant.
        assert!(siege.failure("shell_echo", json!({ "text": "a" })).starts_with("denied: "));
    }
    siege.lift();
}

#[test]
fn a_loop_in_a_start_function_is_stopped() {
    let start = format!("(func $start {LOOP}) (start $start)");
    is_refused_for_its_cpu_time(&Forged::new("slow").parts(&start).bytes());
}

#[test]
fn a_loop_in_definitions_is_stopped() {
    is_refused_for_its_cpu_time(&Forged::new("slow").definitions(LOOP).bytes());
}

#[test]
fn a_loop_where_the_host_asks_for_room_is_stopped() {
    let mut siege = against(&Forged::new("slow").realloc(LOOP).bytes());
    for _ in 0..2 {
        assert_eq!(siege.failure("slow", json!({})), "limit: limit: guest CPU time 200 ms");
    }
    siege.lift();
}

#[test]
fn a_plugin_of_the_usual_make_that_never_says_its_definitions_is_stopped() {
    is_refused_for_its_cpu_time(&liar(&json!({ "spin": true, "tools": [{ "name": "slow" }] }), &["slow"]));
}

#[test]
fn a_plugin_that_sleeps_when_asked_for_definitions_holds_up_its_own_calls_alone() {
    let script = json!({ "sleep_ms": 600_000, "tools": [{ "name": "slow" }] });
    let mut siege = against(&liar(&script, &["slow"]));
    siege.send("slow", json!({}));
    assert_eq!(siege.call("time", json!({}))["result"]["source"], "harness");
    let refused = siege.answer()["error"]["message"].to_string();
    assert!(refused.contains("its definitions were not there after 400 ms"), "{refused}");
    assert!(siege.failure("slow", json!({})).ends_with("its definitions were not there after 400 ms"));
    siege.lift();
}

#[test]
fn a_plugin_that_sleeps_when_asked_for_definitions_does_not_hold_up_a_listing() {
    let script = json!({ "sleep_ms": 600_000, "tools": [{ "name": "slow" }] });
    let siege = against(&liar(&script, &["slow"]));
    let plugins = siege.program.path("plugins").display().to_string();
    for listing in [["tools"].as_slice(), &["plugin", "list"]] {
        let arguments = [&["--plugins", &plugins, "--set", "limits.guest_cpu_ms=200"], listing].concat();
        let mut running = siege.program.start(&arguments);
        let ended = running.ended(Duration::from_secs(60));
        assert!(ended.is_some(), "`{}` does not come to an end", listing.join(" "));
    }
    siege.lift();
}
