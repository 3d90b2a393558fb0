//! Calls of `hostile` with their events, through `toolcrib run --events`.

use serde_json::{Value, json};
use toolcrib_tests::{Program, guest};

/// Makes the same call several times; returns the events of each and its answer. The host answers `time` afterwards.
pub(crate) fn watched(arguments: Value, times: u64) -> Vec<(Vec<Value>, Value)> {
    let program = Program::new();
    program.write("plugins/hostile.wasm", std::fs::read(guest("hostile")).expect("a guest that was built"));
    let mut running = program.start(&["--plugins", &program.path("plugins").display().to_string(), "run", "--events"]);
    let mut call = |id: u64, tool: &str, arguments: &Value| {
        running.send(&format!("{}\n", json!({ "id": id, "tool": tool, "arguments": arguments })));
        let mut events = Vec::new();
        loop {
            let mut line = running.line();
            assert_eq!(line["id"], id, "{line}");
            if line.get("event").is_none() {
                return (events, line);
            }
            events.push(line["event"].take());
        }
    };
    let calls = (0..times).map(|id| call(id, "hostile", &arguments)).collect();
    assert_eq!(call(times, "time", &json!({})).1["result"]["source"], "harness");
    running.close();
    assert!(running.child.wait().is_ok_and(|status| status.success()), "the host ends badly");
    calls
}
