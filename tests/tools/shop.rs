//! `shop`, a component that was not written for Toolcrib: its functions are tools by their types.

use serde_json::{Value, json};
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::outcome::{code, json_of, stderr, succeeded};
use toolcrib_tests::{Program, TestHost, forge, guest};
use wac_graph::types::Package;
use wac_graph::{CompositionGraph, EncodeOptions};

fn shop() -> TestHost {
    TestHost::new().plugin("shop")
}

async fn refused(host: &TestHost, tool: &str, arguments: Value) -> Failure {
    host.failure(tool, arguments).await
}

/// Starts the program with the component among its plugins.
fn installed(name: &str, bytes: &[u8]) -> Program {
    let program = Program::new();
    program.write(&format!("data/toolcrib/plugins/{name}.wasm"), bytes);
    program
}

fn bytes() -> Vec<u8> {
    std::fs::read(guest("shop")).expect("a guest that was built")
}

#[test]
fn each_function_is_a_tool_with_its_types_as_schemas() {
    let program = installed("shop", &bytes());
    let seen = json_of(&program.run(&["plugin", "inspect", "--json", &guest("shop").display().to_string()]));
    let tools = json!(["fail", "orders-buy", "orders-find", "orders-total", "picture", "wait"]);
    let mut named = seen["tools"].as_array().unwrap().clone();
    named.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    assert_eq!(Value::from(named), tools);
    // One of its functions has the file system of its language in it.
    assert_eq!(seen["capabilities"], json!(["files"]));
    let left_out = seen["left_out"].as_array().unwrap();
    assert!(left_out.iter().any(|left| left[1] == "it is the constructor of a resource"), "{left_out:?}");

    let described = json_of(&program.run(&["tools", "--json", "orders-buy"]));
    assert_eq!(
        described["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "item": {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string" },
                        "price": {
                            "type": ["integer", "string"], "minimum": 0, "maximum": u64::MAX, "pattern": "^[0-9]{1,20}$",
                        },
                        "note": { "type": ["string", "null"] },
                    },
                    "required": ["name", "price"],
                    "additionalProperties": false,
                },
                "count": { "type": "integer", "minimum": 0, "maximum": 255 },
                "how": { "oneOf": [
                    { "const": "cash" },
                    {
                        "type": "object",
                        "properties": { "card": { "type": "string" } },
                        "required": ["card"],
                        "additionalProperties": false,
                    },
                ] },
                "extras": {
                    "type": "array", "uniqueItems": true, "items": { "type": "string", "enum": ["gift-wrap", "express"] },
                },
            },
            "required": ["item", "count", "how", "extras"],
            "additionalProperties": false,
        })
    );
    assert_eq!(described["description"], "Call `buy` of `example:shop/orders@1.2.0`.");
    // Every model API takes what is made of it.
    for format in ["mcp", "openai-chat", "openai-responses", "anthropic", "gemini"] {
        let listed = json_of(&program.run(&["tools", "--format", format, "orders-buy"]));
        assert!(listed.to_string().contains("gift-wrap"), "{format}: {listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_go_there_and_come_back() {
    let host = shop();
    let lamp = json!({ "name": "lamp", "price": 1999 });
    assert_eq!(host.result("orders-find", json!({ "name": "lamp" })).await, lamp);
    // Digits that a reader of JSON would round are a string, in both directions.
    let moon = json!({ "name": "moon", "price": u64::MAX.to_string(), "note": "far away" });
    assert_eq!(host.result("orders-find", json!({ "name": "moon" })).await, moon);
    assert_eq!(
        host.result("orders-total", json!({ "prices": [1, "2", u64::MAX - 3] })).await,
        json!(u64::MAX.to_string())
    );
    let buy =
        |item: &Value, how: Value, extras: Value| json!({ "item": item, "count": 2, "how": how, "extras": extras });
    assert_eq!(host.result("orders-buy", buy(&lamp, json!("cash"), json!([]))).await, json!(3998));
    let card = json!({ "card": "4000 0000" });
    assert_eq!(host.result("orders-buy", buy(&lamp, card, json!(["express", "gift-wrap"]))).await, json!(4098));
    let noted = json!({ "name": "lamp", "price": 5, "note": null });
    assert_eq!(host.result("orders-buy", buy(&noted, json!("cash"), json!([]))).await, json!(10));
    assert_eq!(host.result("picture", json!({ "size": 4 })).await, json!("BwcHBw=="));
    // Nothing stays from one call to the next.
    assert_eq!(host.result("orders-total", json!({ "prices": [] })).await, json!(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_function_is_a_failure_of_the_call() {
    let host = shop();
    let failure = refused(&host, "orders-find", json!({ "name": "map" })).await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::ExecutionFailed, "it failed: sold-out"));
    assert_eq!(failure.data.as_deref(), Some(&json!("sold-out")));
    let item = json!({ "name": "lamp", "price": 9_000 });
    let cash = json!({ "item": item, "count": 2, "how": "cash", "extras": [] });
    let failure = refused(&host, "orders-buy", cash).await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::ExecutionFailed, "so much is not paid in cash"));
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_of_other_types_are_refused_with_their_place() {
    let host = shop();
    for (tool, arguments, place) in [
        ("orders-find", json!({}), "`name` is missing"),
        ("orders-find", json!({ "name": 5 }), "`name`"),
        ("orders-find", json!({ "name": "x", "more": 1 }), "`more`"),
        ("picture", json!({ "size": -1 }), "`size`"),
        ("picture", json!({ "size": 4_294_967_296_u64 }), "`size`"),
        ("orders-total", json!({ "prices": [1, true] }), "prices"),
        ("orders-total", json!({ "prices": ["99999999999999999999"] }), "prices"),
    ] {
        let failure = refused(&host, tool, arguments.clone()).await;
        assert_eq!(failure.kind, Kind::InvalidArguments, "{arguments}: {}", failure.message);
        assert!(failure.message.contains(place), "{arguments}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reaches_nothing_of_this_machine() {
    let host = shop();
    for (how, wanted) in [("file", "Err("), ("directory", "Err("), ("network", "Err("), ("environment", "[]")] {
        let said = host.result("fail", json!({ "how": how })).await;
        assert!(said.as_str().unwrap().starts_with(wanted), "{how}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_limits_are_those_of_every_plugin() {
    // On a busy machine a call may spend its own time before its CPU time: each limit is met where the other one is far.
    let host = shop();
    let (hasty, short) = (shop().set("limits.guest_cpu_ms=200"), shop().set("limits.call_ms=1000"));
    for (host, tool, arguments, kind, wanted) in [
        (&hasty, "fail", json!({ "how": "spin" }), Kind::Limit, "CPU"),
        (&host, "fail", json!({ "how": "memory" }), Kind::Limit, "memory 64 MiB"),
        (&host, "fail", json!({ "how": "large" }), Kind::Limit, "result"),
        (&host, "picture", json!({ "size": 50_000_000 }), Kind::Limit, "host_call_kib"),
        (&short, "wait", json!({}), Kind::TimedOut, "1000 ms"),
    ] {
        let failure = refused(host, tool, arguments.clone()).await;
        assert_eq!(failure.kind, kind, "{arguments}: {}", failure.message);
        let said = format!("{} {}", failure.message, failure.hint.unwrap_or_default());
        assert!(said.contains(wanted), "{arguments}: {said}");
    }
    let failure = refused(&host, "fail", json!({ "how": "panic" })).await;
    assert_eq!(failure.kind, Kind::ExecutionFailed);
    assert!(failure.data.unwrap()["printed"].as_str().unwrap().contains("this is the reason"));
    assert_eq!(host.result("orders-total", json!({ "prices": [2, 3] })).await, json!(5));
}

/// What the authors wrote into the WIT is what a model reads, where a tool has put it into the component.
#[test]
fn what_its_authors_wrote_is_what_models_read() {
    let documented = forge::documented(bytes(), "guests/shop/wit");
    let program = installed("shop", &documented);
    let described = json_of(&program.run(&["tools", "--json", "orders-find"]));
    let description = "Looks an item up by its name.\n\n## Usage\nNames are as in the catalogue, in lower case.";
    assert_eq!(described["description"], description);
    let properties = &described["outputSchema"]["properties"];
    assert_eq!(properties["price"]["description"], "What one costs, in cents.");
    assert_eq!(json_of(&program.run(&["tools", "--json", "picture"]))["description"], "Says a picture as bytes.");
}

#[test]
fn it_is_added_looked_at_and_switched_off_as_any_plugin() {
    let program = Program::new();
    let file = guest("shop").display().to_string();
    let added = succeeded(&program.run(&["plugin", "add", &file]));
    assert!(added.contains("orders-find") && added.ends_with("plugin allow shop --read DIR --write DIR\n"), "{added}");
    assert_eq!(program.call(&["orders-find", "name=lamp"]).1["result"]["price"], 1999);
    let checked = program.run(&["plugin", "check", &file]);
    assert_eq!(code(&checked), 0, "{}", stderr(&checked));
    let vet =
        ["plugin", "vet", "--version", "1.2.0", "--expires", "30d", "--criteria", "safe-to-run", "--output", "s.toml"];
    succeeded(&program.run(&[&vet[..], &[&file]].concat()));
    let (status, refused) = program.call(&["--set", "plugin.shop.enabled=false", "orders-find", "name=lamp"]);
    assert_ne!(status, 0, "{refused}");
    assert_eq!(code(&program.run(&["plugin", "pack", &file, "--output", "packed.wasm"])), 10);
}

/// `buyer` with `shop` behind its import, as `wac plug` makes it.
fn composed() -> Vec<u8> {
    let mut graph = CompositionGraph::new();
    let mut package = |name: &str| {
        let bytes = std::fs::read(guest(name)).expect("a guest that was built");
        let package = Package::from_bytes(name, None, bytes, graph.types_mut()).expect("a component");
        graph.register_package(package).expect("another package")
    };
    let (buyer, shop) = (package("buyer"), package("shop"));
    wac_graph::plug(&mut graph, vec![shop], buyer).expect("they fit");
    graph.encode(EncodeOptions::default()).expect("a component")
}

/// Each of them has a memory, and texts are copied from one to the other. Switched off: with `wasm_multi_memory(false)` (`engine/lib.rs`)
/// wasmtime panicked over its own adapter; the plugin was refused with these words, and this test failed.
#[test]
fn composed_components_are_one_plugin() {
    let program = installed("quotes", &composed());
    let (_, quoted) = program.call(&["quote", "name=lamp", "count=3"]);
    assert_eq!(quoted["result"], "3 of lamp: 60.97", "{quoted}");
    let (_, sold_out) = program.call(&["quote", "name=map", "count=1"]);
    assert_eq!(sold_out["error"]["message"], "no `map`: sold-out", "{sold_out}");
    // What it was composed of is not there for anybody else.
    let (_, unknown) = program.call(&["orders-find", "name=lamp"]);
    assert_eq!(unknown["error"]["kind"], "unknown_tool");
}

/// A plugin has no way to another tool: what it would import for that no host knows, and the refusal says which import it is.
#[test]
fn a_component_that_needs_another_one_is_refused_alone() {
    let program = installed("buyer", &std::fs::read(guest("buyer")).expect("a guest that was built"));
    let list = succeeded(&program.run(&["plugin", "list"]));
    assert!(list.contains("it imports `example:shop/orders@1.2.0`, which this host does not know"), "{list}");
}
