//! What a server offers: how it is greeted in either era of the protocol, and its list of tools, page by page and tool by tool, as far as there is
//! a bound to all of that.

use super::elicit;
use super::message::{NO_METHOD, Refusal};
use super::params;
use super::wire::{Request, Unanswered, Via, Wire, too_long};
use crate::envelope::{Failure, Kind};
use crate::text::sanitize;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The newer era: every request says what its client is.
pub(super) const MODERN: &str = "2026-07-28";
/// The older ones begin with a greeting, the last of them first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long a server may take to answer whether it speaks the newer one.
const DISCOVER: Duration = Duration::from_secs(3);
/// How long it may take to greet, and for each page.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pages, tools and bytes of a list.
const MOST_PAGES: usize = 64;
const MOST_TOOLS: usize = 2000;
const MOST_BYTES: usize = 16 << 20;
/// Bytes of what names the next page.
const CURSOR_BYTES: usize = 4 << 10;
/// Characters that a message shows of a server's text.
const SHOWN: usize = 300;
/// The reason of a server that does not speak the version of the protocol that it is asked in.
const NO_VERSION: i64 = -32022;

/// What a server says of itself and its tools.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    pub(super) protocol: String,
    pub(super) server: Value,
    pub(super) instructions: Option<String>,
    /// By name, all that it says of each.
    pub(super) tools: BTreeMap<String, Map<String, Value>>,
    /// What of the list was left out, a sentence each.
    pub(super) notices: Vec<String>,
}

/// Why a server cannot be used: a failure whose message is the rest of a sentence that begins with its name.
pub(super) type Trouble = Failure;

/// What it has said of itself.
struct Hello {
    protocol: String,
    server: Value,
    instructions: Option<String>,
}

/// What requests say of their client, where the era wants that.
pub(super) fn client(protocol: &str, via: &Via<'_>) -> Map<String, Value> {
    let mut meta = Map::new();
    if protocol == MODERN {
        meta.insert("io.modelcontextprotocol/protocolVersion".into(), MODERN.into());
        meta.insert("io.modelcontextprotocol/clientInfo".into(), this_program());
        meta.insert("io.modelcontextprotocol/clientCapabilities".into(), capabilities(via));
    }
    meta
}

/// What this client can do for a server.
fn capabilities(via: &Via<'_>) -> Value {
    if elicit::is_allowed(via) { json!({ "elicitation": {} }) } else { json!({}) }
}

fn this_program() -> Value {
    json!({ "name": "toolcrib", "version": env!("CARGO_PKG_VERSION") })
}

/// Whether a version of the protocol is one of those that begin with a greeting.
pub(super) fn is_legacy(protocol: &str) -> bool {
    LEGACY.contains(&protocol)
}

/// Greets a server, in the newer era first unless it is a legacy one, and asks for its tools.
pub(super) async fn offered(wire: &Wire, is_legacy: bool, via: &Via<'_>) -> Result<Offered, Trouble> {
    let discovered = if is_legacy { None } else { discover(wire, via).await? };
    let Hello { protocol, server, instructions } = match discovered {
        Some(hello) => hello,
        None => initialize(wire, via).await?,
    };
    let (tools, notices) = list(wire, &protocol, via).await?;
    Ok(Offered { protocol, server, instructions, tools, notices })
}

/// The newer era; none where the server does not speak it.
async fn discover(wire: &Wire, via: &Via<'_>) -> Result<Option<Hello>, Trouble> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        supported_versions: Vec<String>,
        instructions: Option<String>,
        #[serde(rename = "_meta", default)]
        meta: Map<String, Value>,
    }
    let params = json!({ "_meta": client(MODERN, via) });
    wire.speak(Some(MODERN));
    let mut said = match request(wire, "server/discover", &params, DISCOVER, via).await {
        // A server of the older eras may answer anything to a method that it does not know.
        Err(trouble) if trouble.kind == Kind::ExecutionFailed => return Ok(None),
        said => said?,
    };
    if said.as_ref().is_some_and(|said| said.as_ref().is_err_and(wants_this_version)) {
        said = request(wire, "server/discover", &params, DISCOVER, via).await?;
    }
    let Some(Ok(result)) = said else { return Ok(None) };
    let Ok(said) = serde_json::from_str::<Discovered>(result.get()) else { return Ok(None) };
    if !said.supported_versions.iter().any(|version| version == MODERN) {
        return Ok(None);
    }
    let server = said.meta.get("io.modelcontextprotocol/serverInfo").cloned().unwrap_or_default();
    Ok(Some(Hello { protocol: MODERN.into(), server, instructions: said.instructions }))
}

/// Whether a server would be asked again in this very version: some say so to whoever asks first.
fn wants_this_version(refusal: &Refusal) -> bool {
    let supported = refusal.data.get("supported").and_then(Value::as_array);
    refusal.code == NO_VERSION && supported.is_some_and(|all| all.iter().any(|version| version == MODERN))
}

/// The older eras.
async fn initialize(wire: &Wire, via: &Via<'_>) -> Result<Hello, Trouble> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized {
        protocol_version: String,
        #[serde(default)]
        server_info: Value,
        instructions: Option<String>,
    }
    let params =
        json!({ "protocolVersion": LEGACY[0], "capabilities": capabilities(via), "clientInfo": this_program() });
    wire.speak(None);
    let answered = request(wire, "initialize", &params, PATIENCE, via).await?;
    let answered = answered.ok_or_else(|| trouble(format!("did not greet within {} s", PATIENCE.as_secs())))?;
    let result = answered.map_err(|refusal| trouble(format!("does not greet: {}", shown(&refusal.message))))?;
    let said: Initialized = serde_json::from_str(result.get())
        .map_err(|error| trouble(format!("greets in a way that makes no sense: {error}")))?;
    if !LEGACY.contains(&said.protocol_version.as_str()) {
        let version = shown(&said.protocol_version);
        return Err(trouble(format!("speaks a version of the protocol that is not known here, `{version}`")));
    }
    wire.speak(Some(&said.protocol_version));
    let told = wire.tell("notifications/initialized", &json!({}), via).await;
    told.map_err(|failure| Failure { message: format!("does not take a greeting: {}", failure.message), ..failure })?;
    Ok(Hello { protocol: said.protocol_version, server: said.server_info, instructions: said.instructions })
}

/// All pages of the list, tool by tool: what makes no sense of one is no fault of another.
pub(super) async fn list(
    wire: &Wire,
    protocol: &str,
    via: &Via<'_>,
) -> Result<(BTreeMap<String, Map<String, Value>>, Vec<String>), Trouble> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page<'p> {
        #[serde(borrow, default)]
        tools: Vec<&'p RawValue>,
        next_cursor: Option<String>,
    }
    let has_headers = protocol == MODERN && wire.has_headers();
    let (mut tools, mut notices, mut bytes, mut cursor) = (BTreeMap::new(), Vec::new(), 0, None::<String>);
    for page in 0.. {
        let mut params = json!({ "_meta": client(protocol, via) });
        if let Some(cursor) = &cursor {
            params["cursor"] = json!(cursor);
        }
        let answered = request(wire, "tools/list", &params, PATIENCE, via).await?;
        let answered =
            answered.ok_or_else(|| trouble(format!("did not list its tools within {} s", PATIENCE.as_secs())))?;
        let result = match answered {
            Ok(result) => result,
            // It has none.
            Err(refusal) if refusal.code == NO_METHOD && page == 0 => break,
            Err(refusal) => return Err(trouble(format!("does not list its tools: {}", shown(&refusal.message)))),
        };
        let listed: Page<'_> = serde_json::from_str(result.get())
            .map_err(|error| trouble(format!("lists its tools in a way that makes no sense: {error}")))?;
        for tool in listed.tools {
            bytes += tool.get().len();
            if tools.len() == MOST_TOOLS || bytes > MOST_BYTES {
                notices.push(format!(
                    "more than {MOST_TOOLS} tools, or {} MiB of them: the rest was left out",
                    MOST_BYTES >> 20
                ));
                return Ok((tools, notices));
            }
            match read(tool) {
                Ok((name, _)) if tools.contains_key(&name) => {
                    notices.push(format!("`{}` is listed twice", shown(&name)))
                }
                Ok((name, definition)) => match if has_headers { params::check(&definition) } else { Ok(()) } {
                    Ok(()) => drop(tools.insert(name, definition)),
                    Err(why) => notices.push(format!("`{}` was left out: it {why}", shown(&name))),
                },
                Err(why) => notices.push(why),
            }
        }
        match listed.next_cursor {
            None => break,
            Some(next) if Some(&next) == cursor.as_ref() || page + 1 == MOST_PAGES || next.len() > CURSOR_BYTES => {
                notices.push("the list has no end: the rest was left out".into());
                break;
            }
            next => cursor = next,
        }
    }
    notices.truncate(MOST_PAGES);
    Ok((tools, notices))
}

/// A tool of a list, with its name.
fn read(tool: &RawValue) -> Result<(String, Map<String, Value>), String> {
    let definition: Map<String, Value> =
        serde_json::from_str(tool.get()).map_err(|error| format!("one tool makes no sense: {error}"))?;
    let name = definition.get("name").and_then(Value::as_str).filter(|name| !name.is_empty() && name.len() <= 256);
    let name = name.ok_or("one tool has no name, or one of more than 256 bytes")?.to_owned();
    Ok((name, definition))
}

/// Asks, and waits so long; none where that was not enough.
async fn request(
    wire: &Wire,
    method: &'static str,
    params: &Value,
    most: Duration,
    via: &Via<'_>,
) -> Result<Option<Result<Box<RawValue>, Refusal>>, Trouble> {
    match wire.ask(Request::new(method, most), |_| params.to_string(), via).await {
        Ok(result) => Ok(Some(Ok(result))),
        Err(Unanswered::Refused(refusal)) => Ok(Some(Err(refusal))),
        Err(Unanswered::Late) => Ok(None),
        Err(Unanswered::TooLong) => Err(trouble(format!("does not answer `{method}` in bounds: {}", too_long()))),
        Err(Unanswered::Ended { why, .. }) => Err(trouble(format!("broke off: {}", shown(&why)))),
        Err(Unanswered::Busy) => Err(trouble("does not read what it is sent".into())),
        Err(Unanswered::Lost(failure)) => {
            Err(Failure { message: format!("cannot be asked: {}", failure.message), ..failure })
        }
    }
}

pub(super) fn trouble(text: String) -> Trouble {
    Failure::new(Kind::Unavailable, text)
}

pub(super) fn shown(text: &str) -> String {
    sanitize::line(text).chars().take(SHOWN).collect()
}
