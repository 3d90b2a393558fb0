//! Jobs of agents that speak MCP: the server runs them, in both eras, and a session that its client ends takes its jobs along.

use serde_json::{Value, json};
use std::sync::Arc;
use toolcrib_tests::http::Server;
use toolcrib_tests::processes::{assert_gone, sleeping, unique_seconds};
use toolcrib_tests::{Program, eventually, on_path};

fn program() -> Arc<Program> {
    let program = Program::new();
    program.declares("sh", &on_path("sh"), "");
    Arc::new(program)
}

fn script(text: &str) -> Value {
    json!({ "bin": "sh", "args": ["-c", text] })
}

/// What a call of an older session gives.
fn called(server: &Server, session: &str, tool: &str, arguments: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    let reply = server.answer(&server.of_session(session, &body)).message();
    reply["result"]["structuredContent"].clone()
}

#[test]
fn a_session_that_its_client_ends_takes_its_jobs_along() {
    let server = Server::start(&program(), &["--http", "127.0.0.1:0"], &[]);
    let (session, other) = (server.session(), server.session());
    let (own, others, outlives) = (unique_seconds(), unique_seconds(), unique_seconds());
    let sleeper = |seconds: &str| script(&format!("sleep {seconds}; true"));
    let id = called(&server, &session, "job_submit", &sleeper(&own))["job_id"].clone();
    called(&server, &other, "job_submit", &sleeper(&others));
    let mut outliving = sleeper(&outlives);
    outliving["outlive_session"] = json!(true);
    called(&server, &session, "job_submit", &outliving);
    for seconds in [&own, &others, &outlives] {
        eventually("it sleeps", || sleeping(seconds).len() == 1);
    }
    // The list of a session has its own.
    let listed = called(&server, &session, "job_list", &json!({}));
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(2), "{listed}");
    let ended = server.request("DELETE", "/mcp").with("Mcp-Session-Id", &session);
    assert!((200..300).contains(&server.answer(&ended.with("MCP-Protocol-Version", "2025-06-18")).status));
    eventually("its job has ended", || sleeping(&own).is_empty());
    let status = called(&server, &other, "job_status", &json!({ "job_id": id }));
    assert_eq!((&status["state"], &status["cause"]), (&json!("cancelled"), &json!("its session was closed")));
    assert_eq!((sleeping(&others).len(), sleeping(&outlives).len()), (1, 1));
    drop(server);
    assert_gone(&others);
    assert_gone(&outlives);
}

#[test]
fn an_agent_of_the_newer_era_comes_back_for_its_job() {
    let server = Server::start(&program(), &["--http", "127.0.0.1:0"], &[]);
    let call = |tool: &str, arguments: Value| {
        server.answer(&server.call(tool, arguments)).message()["result"]["structuredContent"].clone()
    };
    let id = call("job_submit", script("echo one; sleep 0.3; echo two"))["job_id"].clone();
    let end = call("job_wait", json!({ "job_id": id }));
    assert_eq!((&end["state"], &end["stdout"]), (&json!("done"), &json!("one\ntwo\n")), "{end}");
    // Each request is of the same session.
    assert_eq!(call("job_list", json!({}))["jobs"][0]["job_id"], id);
}
