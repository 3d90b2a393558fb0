//! The tools of the family `factory`: what each hands over, and what it makes of the answer.

use serde_json::{Value, json};
use std::sync::Arc;
use toolcrib::call::{Arguments, Request};
use toolcrib::envelope::{Failure, Kind, Output};
use toolcrib_tests::TestHost;
use toolcrib_tests::embedder::Played;

/// Calls a tool whose event is answered so; with what was handed over.
async fn call(tool: &str, arguments: Value, answer: Value) -> (Result<Output, Failure>, Vec<(String, Value)>) {
    let (test, embedder) = (TestHost::new(), Arc::new(Played::answering(&["*"], answer)));
    let (host, context) = test.parts();
    let request = Request { tool: tool.into(), arguments: Arguments::Json(arguments) };
    let outcome = host.call(request, &context.clone().embedder(embedder.clone())).await.outcome;
    (outcome, embedder.events().into_iter().map(|event| (event.kind, event.payload)).collect())
}

#[tokio::test]
async fn each_tool_hands_over_one_event_and_returns_its_answer() {
    let agent = json!({
        "agent_id": "helper", "display_name": "Helper", "soul_content": "a", "identity_content": "b", "role_content": "c",
        "links": [{ "target": "main", "direction": "two_way", "kind": "peer" }],
    });
    let draft = json!({ "soul_content": "a", "identity_content": "b", "role_content": "c" });
    let searched = json!({ "query": "x", "max_results": 10 });
    let (identity, config) = (
        json!({ "agent_id": "helper", "role_content": "c" }),
        json!({ "agent_id": "helper", "tuning": { "max_turns": 3 } }),
    );
    let updated = json!({ "agent_id": "helper", "warnings": [] });
    for (tool, arguments, kind, payload, answer) in [
        (
            "factory_list_presets",
            json!({}),
            "factory.presets",
            json!({}),
            json!({ "presets": [{ "id": "r", "name": "R" }] }),
        ),
        ("factory_load_preset", json!({ "preset_id": "r" }), "factory.preset", json!({ "preset_id": "r" }), draft),
        (
            "factory_search_context",
            json!({ "query": "x" }),
            "factory.context",
            searched,
            json!({ "results": [{ "content": "y" }] }),
        ),
        (
            "factory_create_agent",
            agent.clone(),
            "agent.create",
            agent,
            json!({ "agent_id": "helper", "warnings": ["slow"] }),
        ),
        ("factory_update_identity", identity.clone(), "factory.identity", identity, updated.clone()),
        ("factory_update_config", config.clone(), "factory.config", config, updated),
    ] {
        let (outcome, events) = call(tool, arguments, answer.clone()).await;
        assert_eq!(outcome.expect(tool).result, answer, "{tool}");
        assert_eq!(events, [(kind.to_owned(), payload)], "{tool}");
    }
    let (outcome, events) =
        call("factory_search_context", json!({ "query": "x", "max_results": 99 }), json!({ "results": [] })).await;
    assert_eq!(outcome.expect("a result").notices, ["`max_results` is 1 to 25: 25 was used"]);
    assert_eq!(events[0].1["max_results"], 25);
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused_before_anything_is_handed_over() {
    let agent = |id: &str, soul: &str| json!({ "agent_id": id, "display_name": "x", "soul_content": soul, "identity_content": "b", "role_content": "c" });
    for (tool, arguments) in [
        ("factory_load_preset", json!({ "preset_id": " " })),
        ("factory_search_context", json!({ "query": "" })),
        ("factory_search_context", json!({ "query": "x", "memory_type": "secret" })),
        ("factory_create_agent", agent("../x", "a")),
        ("factory_create_agent", agent("helper", " ")),
        ("factory_update_identity", json!({ "agent_id": "helper" })),
        ("factory_update_identity", json!({ "agent_id": "helper", "soul_content": "" })),
        ("factory_update_config", json!({ "agent_id": "helper" })),
        ("factory_update_config", json!({ "agent_id": "helper", "tuning": { "max_turns": 0 } })),
        ("factory_update_config", json!({ "agent_id": "helper", "tuning": { "sandbox": false } })),
    ] {
        let (outcome, events) = call(tool, arguments.clone(), json!({})).await;
        assert_eq!(outcome.expect_err(tool).kind, Kind::InvalidArguments, "{tool} {arguments}");
        assert!(events.is_empty(), "{tool} {arguments}");
    }
}
