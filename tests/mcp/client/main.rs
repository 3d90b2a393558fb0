//! What the protocol's conformance suite runs as a client: a host that looks at one server of others, accepts what it says, and calls its tools.
//! `tests/mcp/conformance/run --client` has the suite run it.
//!
//! Arguments: the URL of the server. Each tool and each prompt that is offered is called once, all at the same time, unless the suite says which calls
//! it waits for; then each resource of its list is read. It ends with 1 where one of them failed.

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::sync::Arc;
use toolcrib::Host;
use toolcrib::backend::Environment;
use toolcrib::backend::local::Local;
use toolcrib::call::{Arguments, CallContext, Request};
use toolcrib::config::{Settings, Sources, UpstreamSection};
use toolcrib::dirs::Dirs;
use toolcrib::envelope::Failure;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};
use toolcrib::sandbox::Compiler;
use toolcrib::upstream::{Accepted, AcceptedTool, Look};
use upstream::offered_as;

/// What the server is called.
const NAME: &str = "suite";
/// The variable in which the suite says which calls it waits for, in the scenarios where it matters.
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

/// A tool by the name by which it is offered, and its arguments.
type Call = (String, Map<String, Value>);

/// Says yes to every call, and to what the server asks meanwhile.
struct Willing;

#[async_trait]
impl Approver for Willing {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        eprintln!("asked: {}", request.headline(|text| text.to_owned()));
        Answer::Yes
    }

    fn name(&self) -> &'static str {
        "the client"
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("needs the URL of a server")?;
    let place = tempfile::tempdir()?;
    let dirs = Dirs::below(place.path());
    for directory in [&dirs.home, &dirs.config] {
        std::fs::create_dir(directory)?;
    }
    let said = json!({ "url": url, "elicitation": "ask" });
    let Look { accepted, unfit, notices, .. } = look(&dirs, &serde_json::from_value(said.clone())?).await?;
    unfit.iter().for_each(|(tool, why)| eprintln!("not offered: `{tool}` {why}"));
    notices.iter().for_each(|notice| eprintln!("note: {notice}"));

    let mut lines = said.as_object().cloned().unwrap_or_default();
    lines.insert("accepted".into(), accepted.keep(&dirs.config, NAME)?.into());
    let lines = lines.into_iter().map(|(key, value)| format!("upstream.{NAME}.{key}={value}")).collect();
    let (host, caller) = host(&dirs, lines)?;
    let calls = wanted()?.unwrap_or_else(|| each(&accepted));
    let outcomes = join_all(calls.into_iter().map(|asked| call(&host, &caller, asked))).await;
    let mut failed = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(result) => {
                for asked in reads(&result) {
                    failed.extend(call(&host, &caller, asked).await.err());
                }
            }
            Err(why) => failed.push(why),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// A host with these settings, and who calls its tools.
fn host(dirs: &Dirs, set: Vec<String>) -> Result<(Host, CallContext), String> {
    let sources = Sources { home: dirs.home.clone(), set, ..Sources::default() };
    let settings = Settings::load(&sources).map_err(|error| error.to_string())?;
    let (host, _notices) = Host::new(&settings, dirs, &[], Compiler::Here).map_err(told)?;
    let tools = host.plugin_source(&[], Vec::new()).load();
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let backend = Local::new(here, dirs.home.clone(), dirs.state.clone(), Environment::default());
    let caller = CallContext::new("conformance", Arc::new(tools), Arc::new(backend)).approver(Arc::new(Willing));
    Ok((host, caller))
}

async fn look(dirs: &Dirs, section: &UpstreamSection) -> Result<Look, String> {
    let (host, caller) = host(dirs, Vec::new())?;
    host.look_at_upstream(NAME, section, &caller).await.map_err(told)
}

/// The calls that the suite waits for, where it says so.
fn wanted() -> Result<Option<Vec<Call>>, Box<dyn Error>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Context {
        tool_calls: Option<Vec<Wanted>>,
    }
    #[derive(serde::Deserialize)]
    struct Wanted {
        name: String,
        arguments: Map<String, Value>,
    }
    let Ok(context) = std::env::var(CONTEXT) else { return Ok(None) };
    let Context { tool_calls } = serde_json::from_str(&context)?;
    let calls = tool_calls.map(|calls| {
        let call = |wanted: Wanted| {
            // A host refuses a null that the schema does not allow; leaving it out says the same.
            let arguments = wanted.arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
            (offered_as(NAME, &wanted.name, 48), arguments)
        };
        calls.into_iter().map(call).collect()
    });
    Ok(calls)
}

/// A call of each tool, with as many arguments as it needs.
fn each(accepted: &Accepted) -> Vec<Call> {
    let call = |(offered_as, tool): (&String, &AcceptedTool)| {
        (offered_as.clone(), made_up(&tool.input_schema().unwrap_or_default()))
    };
    accepted.tools.iter().map(call).collect()
}

/// A call for each resource, where a result is a list of these.
fn reads(result: &Value) -> Vec<Call> {
    let listed = result["resources"].as_array().into_iter().flatten();
    let read = |resource: &Value| {
        (offered_as(NAME, "read_resource", 48), Map::from_iter([("uri".to_owned(), resource["uri"].clone())]))
    };
    listed.map(read).collect()
}

/// The arguments that a schema requires.
fn made_up(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let argument = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("integer" | "number") => json!(2),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => json!("text"),
    };
    required.map(|name| (name.to_owned(), argument(name))).collect()
}

async fn call(host: &Host, caller: &CallContext, (tool, arguments): Call) -> Result<Value, String> {
    let request = Request { tool: tool.clone(), arguments: Arguments::Json(arguments.into()) };
    let output = host.call(request, caller).await.outcome.map_err(|failure| format!("{tool}: {}", told(failure)))?;
    eprintln!("{tool}: {}", output.result);
    Ok(output.result)
}

fn told(failure: Failure) -> String {
    failure.to_json().to_string()
}
