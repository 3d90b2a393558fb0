//! Calls of `hostile` with their events, through `toolcrib run --events`.

use serde_json::{Value, json};
use toolcrib_tests::{PATIENCE, Program, guest};

/// Makes the same call several times; returns the events of each and its answer. The host answers `time` afterwards.
pub(crate) fn watched(arguments: &Value, times: u64) -> Vec<(Vec<Value>, Value)> {
    let program = Program::new();
    program.write("plugins/hostile.wasm", std::fs::read(guest("hostile")).expect("a guest that was built"));
    let mut host = program.client(&["--plugins", &program.path("plugins").display().to_string(), "run", "--events"]);
    let mut call = || {
        let answer = host.call("hostile", arguments.clone());
        let id = answer["id"].as_u64().expect("an id");
        (host.events(id).cloned().collect(), answer)
    };
    let calls = (0..times).map(|_| call()).collect();
    assert_eq!(host.call("time", json!({}))["result"]["source"], "harness");
    assert!(host.end(PATIENCE).is_some_and(|status| status.success()), "the host ends badly");
    calls
}
