//! P-75: URLs that lie below a granted path until the server decodes them: parameters behind dots, double encoding, overlong UTF-8.
//! Outcome: `denied` before anything is sent; the server sees the paths below the grant alone.
//! Switched off: with `%2f`, `%5c` and `%2e` as the only disguises (`policy/http/paths.rs`) the server saw most of them and the test failed.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolcrib::envelope::Kind;
use toolcrib_tests::{TestHost, serve};

const TRICKS: [&str; 14] = [
    "/v1/..;/admin",
    "/v1/..;a=b/admin",
    "/v1/..%3b/admin",
    "/v1/.;/..;/admin",
    "/v1/%252e%252e/admin",
    "/v1/..%252fadmin",
    "/v1/%25252e%25252e/admin",
    "/v1/%c0%ae%c0%ae/admin",
    "/v1/%e0%80%ae%e0%80%ae/admin",
    "/v1/%ef%bc%8e%ef%bc%8e/admin",
    "/v1/%u002e%u002e/admin",
    "/v1/..%20/admin",
    "/v1/..%00/admin",
    "/v1/..%5c..%5cadmin",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_leads_out_of_the_paths_of_a_plugin() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let server = serve(move |path| {
        log.lock().expect("no page panics").push(path.to_owned());
        "a page".into()
    });
    let host = TestHost::new()
        .plugin("requester")
        .set("tools.fetch_private_ranges=[\"127.0.0.1\"]")
        .grant("requester", "http.hosts=[\"127.0.0.1\"]")
        .grant("requester", "http.paths=[\"/v1\"]");
    let request = |path: &str| -> Value { json!({ "method": "GET", "url": format!("http://{server}{path}") }) };
    for path in TRICKS {
        let failure = host.failure("request", request(path)).await;
        assert_eq!(failure.kind, Kind::Denied, "{path}: {}", failure.message);
    }
    for path in ["/v1/a", "/v1/a;b=c/100%25", "/v1/%C3%A4.txt"] {
        assert_eq!(host.result("request", request(path)).await["status"], 200, "{path}");
    }
    assert_eq!(*seen.lock().expect("no page panics"), ["/v1/a", "/v1/a;b=c/100%25", "/v1/%C3%A4.txt"]);
}
