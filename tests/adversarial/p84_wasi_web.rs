//! P-84: a component of another world that wants more of the web than it was granted, by `wasi:http`: odd parts of a URL, bodies without end, requests that outlive the call.
//! Outcome: nothing goes to a host that was not granted, nothing leaves that is on no record, and what is held is bounded.
//! Switched off: with `Held::take` (`capability/wasi/http.rs`) always true the first test failed; without `check_open` (`egress/lib.rs`) the second, by 2 requests of 100.

use crate::process::peak_mib;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use toolcrib_tests::{Preparation, Siege, serve};

fn attack(siege: &mut Siege, name: &str, argument: &str) -> Value {
    let answer = siege.call("attack", json!({ "name": name, "argument": argument }));
    println!("{name} {argument:?}: {:.300}", answer.to_string());
    answer
}

#[test]
fn what_is_held_of_requests_is_bounded() {
    let address = serve(|_| "here".into());
    let siege = Preparation::new()
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
        .set("limits.call_ms=20000")
        .set("limits.handles=512")
        .guest("raider");
    let options = ["--host", "127.0.0.1", "--method", "GET", "--method", "POST"];
    let mut siege = siege.granting("raider", &options).begin();
    let url = format!("http://{address}/");
    assert!(attack(&mut siege, "raw-url", &format!("http\n{address}\n/"))["result"].is_string());
    let before = peak_mib(siege.pid());
    let endless = attack(&mut siege, "endless-body", &url);
    assert_eq!(endless["error"]["kind"], "execution_failed", "{endless}");
    assert!(endless["error"]["hint"].as_str().unwrap_or_default().contains("8 MiB"), "{endless}");
    for (name, argument) in [
        ("short-body", url.as_str()),
        ("long-body", &url),
        ("missing-body", &url),
        ("trailers", &url),
        ("late-header", &url),
        ("hoard-fields", "100000"),
        ("guess-outparam", "100"),
        ("fill-fields", "32"),
    ] {
        assert_ne!(attack(&mut siege, name, argument)["error"]["kind"], "internal", "{name}");
    }
    for name in ["many", "unread"] {
        assert_ne!(attack(&mut siege, name, &format!("400\n{url}"))["error"]["kind"], "internal", "{name}");
    }
    let grown = peak_mib(siege.pid()) - before;
    assert!(grown < 160, "{grown} MiB");
    // Connections that are not used are kept for a while: then it holds what it held.
    assert!(attack(&mut siege, "raw-url", &format!("http\n{address}\n/"))["result"].is_string());
}

/// A request goes its own way beside the guest. One that comes to be sent when its call has ended is on no record, and must not be sent.
#[test]
fn what_leaves_is_on_record_also_where_nobody_waits_for_it() {
    let served: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let paths = served.clone();
    let address = serve(move |path| {
        paths.lock().expect("paths").insert(path.to_owned());
        "here".into()
    });
    let siege = Preparation::new().set("tools.fetch_private_ranges=[\"127.0.0.1\"]").guest("raider");
    let options = ["--host", "127.0.0.1", "--method", "GET", "--method", "POST"];
    let mut siege = siege.granting("raider", &options).begin();
    for index in 0..100 {
        // A connection that is there already makes the way short.
        siege.call("attack", json!({ "name": "raw-url", "argument": format!("http\n{address}\n/warm") }));
        let argument = format!("1500000\nhttp://{address}/left-{index}-");
        siege.call("attack", json!({ "name": "leave", "argument": argument }));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let trail = std::fs::read_to_string(siege.program.path("state/toolcrib/audit.jsonl")).expect("an audit trail");
    let served = served.lock().expect("paths");
    let unrecorded: Vec<_> =
        served.iter().filter(|path| path.contains("left") && !trail.contains(path.as_str())).collect();
    assert!(unrecorded.is_empty(), "{unrecorded:?}");
}
