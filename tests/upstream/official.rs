//! The servers that the protocol's own project has for it, as npm and PyPI have them (`servers/`).

use crate::rig::{host, set};
use serde_json::{Value, json};
use toolcrib::config::{UpstreamConfirm, UpstreamSection};
use toolcrib::envelope::{Failure, Output};
use toolcrib_tests::TestHost;
use toolcrib_tests::official::{node, place, python};

/// Ends a test where they are not installed.
macro_rules! installed {
    () => {
        match place() {
            Some(place) => place,
            None => {
                toolcrib_tests::skip!("the protocol's own servers are not installed: `tests/run upstream` does that")
            }
        }
    };
}

/// A host that has accepted a server as it is; nobody is asked about its tools.
async fn with(host: TestHost, section: UpstreamSection) -> TestHost {
    let (made, context) = host.parts();
    let look = made.look_at_upstream("it", &section, context).await;
    let look = look.map_err(|failure| failure.to_json().to_string()).expect("it says what it offers");
    assert!(look.unfit.is_empty() && look.notices.is_empty(), "{:?} {:?}", look.unfit, look.notices);
    let accepted = look.accepted.keep(&host.dirs().config, "it").expect("it is kept");
    let section = UpstreamSection { accepted, confirm: UpstreamConfirm::None, ..section };
    set(host, "it", &section)
}

async fn call(host: &TestHost, tool: &str, arguments: Value) -> Result<Output, Failure> {
    host.call(&format!("it__{tool}"), arguments).await.outcome
}

#[tokio::test]
async fn everything() {
    let place = installed!();
    let host = with(host(), node(&place, "server-everything", &["stdio"])).await;
    let said = call(&host, "echo", json!({ "message": "hello" })).await.expect("an echo");
    assert_eq!(said.result, "Echo: hello");
    // All that it has is what its section gives it.
    let variables = call(&host, "get-env", json!({})).await.expect("its variables").result.to_string();
    assert!(!variables.contains("CARGO") && variables.contains("HOME"), "{variables}");
}

#[tokio::test]
async fn filesystem() {
    let place = installed!();
    let host = host();
    let work = host.work().canonicalize().expect("a directory");
    std::fs::write(work.join("note.txt"), "a note of mine").expect("a file");
    let section = node(&place, "server-filesystem", &[work.to_str().expect("text")]);
    let host = with(host, UpstreamSection { write: vec![work.clone()], ..section }).await;
    let note = work.join("note.txt").display().to_string();
    let said = call(&host, "read_text_file", json!({ "path": note })).await.expect("the note");
    assert!(said.result.to_string().contains("a note of mine"), "{}", said.result);
    let new = work.join("new.txt");
    call(&host, "write_file", json!({ "path": new.display().to_string(), "content": "new" }))
        .await
        .expect("a new file");
    assert_eq!(std::fs::read_to_string(new).expect("the new file"), "new");
    let failure = call(&host, "read_text_file", json!({ "path": "/etc/passwd" })).await.expect_err("not its own");
    assert!(failure.message.contains("denied") || failure.message.contains("outside"), "{}", failure.message);
}

#[tokio::test]
async fn memory() {
    let place = installed!();
    let host = host();
    let work = host.work().canonicalize().expect("a directory");
    let file = work.join("memory.json").display().to_string();
    let variables = serde_json::from_value(json!({ "variables": { "MEMORY_FILE_PATH": file }, "command": ["/x"] }));
    let variables: UpstreamSection = variables.expect("a section");
    let section = UpstreamSection { write: vec![work], ..node(&place, "server-memory", &[]) };
    let host = with(host, UpstreamSection { variables: variables.variables, ..section }).await;
    let entity = json!({ "entities": [{ "name": "Ann", "entityType": "person", "observations": ["likes tea"] }] });
    call(&host, "create_entities", entity).await.expect("it remembers");
    let said = call(&host, "search_nodes", json!({ "query": "tea" })).await.expect("what it remembers");
    assert!(said.result.to_string().contains("Ann"), "{}", said.result);
}

#[tokio::test]
async fn sequential_thinking() {
    let place = installed!();
    let host = with(host(), node(&place, "server-sequential-thinking", &[])).await;
    let thought = json!({ "thought": "first", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2 });
    for number in 1..=2 {
        let said = call(&host, "sequentialthinking", thought.clone()).await.expect("a thought");
        // The process stays, and with it what it thought before.
        assert!(said.result.to_string().contains(&format!("\"thoughtHistoryLength\":{number}")), "{}", said.result);
    }
}

#[tokio::test]
async fn time() {
    let place = installed!();
    let host = with(host(), python(&place, "mcp_server_time", &["--local-timezone=UTC"])).await;
    let said = call(&host, "get_current_time", json!({ "timezone": "Europe/Berlin" })).await.expect("the time");
    assert!(said.result.to_string().contains("Europe/Berlin"), "{}", said.result);
}

#[tokio::test]
async fn git() {
    let place = installed!();
    let host = host();
    let work = host.work().canonicalize().expect("a directory");
    let made =
        "git init -q . && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m 'the first one'";
    assert_eq!(host.shell(made).await["exit_code"], 0);
    let repository = work.display().to_string();
    let section = python(&place, "mcp_server_git", &["--repository", &repository]);
    let host = with(host, UpstreamSection { write: vec![work], ..section }).await;
    let said = call(&host, "git_log", json!({ "repo_path": repository })).await.expect("its log");
    assert!(said.result.to_string().contains("the first one"), "{}", said.result);
}

/// It knows no address of any name, and goes by the proxy that its variables name.
#[tokio::test]
async fn fetch() {
    let place = installed!();
    let section = python(&place, "mcp_server_fetch", &["--ignore-robots-txt"]);
    let section = UpstreamSection { names: false, ports: vec![80, 443], ..section };
    let host = with(host(), section).await;
    let envelope = host.call("it__fetch", json!({ "url": "http://example.com/" })).await;
    assert!(envelope.outcome.is_err(), "no host is named");
    assert!(host.audit().iter().any(|line| line.to_string().contains("connect to example.com")), "{:?}", host.audit());
}
