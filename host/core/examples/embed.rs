//! A program that embeds the host: it lists the tools, calls one, and answers the question that the call brings.
//!
//!     cargo run --release --package toolcrib --example embed

use std::error::Error;
use std::sync::Arc;
use toolcrib::Host;
use toolcrib::backend::local::Local;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::config::{Settings, Sources};
use toolcrib::dirs::Dirs;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib::sandbox::Compiler;
use toolcrib_builtins::BUILTINS;

/// Whoever the agent would ask.
struct Person;

#[async_trait::async_trait]
impl Approver for Person {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        println!("asked: {}", request.headline(|text| text.to_owned()));
        request.foreign().for_each(|part| println!("  {}: {}", part.label, part.text));
        Answer::Yes
    }

    fn name(&self) -> &'static str {
        "the example"
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let dirs = Dirs::below(place.path());
    // So that it asks about each command, though that is confined.
    let set = vec!["confine.ask=always".into()];
    let settings = Settings::load(&Sources { home: dirs.home.clone(), set, ..Sources::default() })?;
    // A program that loads components of others would compile them in a child, as Toolcrib does.
    let (host, notices) = Host::new(&settings, &dirs, &[], Compiler::Here).map_err(|failure| failure.message)?;
    notices.iter().for_each(|notice| println!("note: {notice}"));

    let tools = host.plugin_source(BUILTINS, Vec::new()).load();
    let backend =
        Local::new(std::env::current_dir()?, dirs.home.clone(), dirs.state.clone(), std::env::vars_os().collect());
    let caller = CallContext::new("example", Arc::new(tools), Arc::new(backend));
    let context = caller.approver(Arc::new(Person));

    let offered = host.offered(&context).await;
    let names: Vec<&str> = offered.tools.iter().map(|tool| tool.definition().name.as_str()).collect();
    println!("tools: {}", names.join(", "));

    let arguments = serde_json::json!({
        "command": "echo from the example", "risk": "low", "mutation": false, "privesc": false, "why": "to show it",
    });
    let request = Request { tool: "run_shell".into(), arguments: Arguments::Json(arguments) };
    let output = host.call(request, &context).await.outcome.map_err(|failure| failure.message)?;
    println!("result: {}", output.result);
    Ok(())
}
