//! What a server offers: how it is greeted in either era of the protocol, and all that it lists which a person accepts.

use super::accepted::{AcceptedKind, AcceptedTool};
use super::elicit;
use super::message::Refusal;
use super::pages::{self, List};
use super::params;
use super::wire::{Request, Unanswered, Via, Wire, too_long};
use super::{prompts, resources};
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// The newer era: every request says what its client is.
pub(super) const MODERN: &str = "2026-07-28";
/// The older ones begin with a greeting, the last of them first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How long a server may take to answer whether it speaks the newer one.
const DISCOVER: Duration = Duration::from_secs(3);
/// How long it may take to greet.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to say a list without which there are its tools all the same.
const BESIDE: Duration = Duration::from_secs(5);
/// Prefixes that no tool's name may have: in settings they are those of prompts and resources.
const RESERVED: [&str; 2] = ["prompt:", "resource:"];
/// Sentences about a list.
const MOST_NOTICES: usize = 64;
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
    pub(super) has: Has,
    pub(super) listed: Listed,
}

/// What it lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// By the names under which they are offered, without that of the server.
    pub(super) tools: BTreeMap<String, AcceptedTool>,
    /// What could not be listed this time, with the reason.
    pub(super) unlisted: Vec<(AcceptedKind, String)>,
    /// What was left out, a sentence each.
    pub(super) notices: Vec<String>,
}

/// What a server says that it has beside tools.
#[derive(Clone, Copy, Debug)]
pub(super) struct Has {
    prompts: bool,
    resources: bool,
}

/// Why a server cannot be used: a failure whose message is the rest of a sentence that begins with its name.
pub(super) type Trouble = Failure;

/// What comes of asking it whether it speaks the newer era.
enum Discovery {
    Speaks(Hello),
    No,
    Silence,
}

/// What it has said of itself.
struct Hello {
    protocol: String,
    server: Value,
    instructions: Option<String>,
    has: Has,
}

impl Has {
    fn of(capabilities: &Value) -> Self {
        let has = |what| capabilities.get(what).is_some_and(Value::is_object);
        Self { prompts: has("prompts"), resources: has("resources") }
    }
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
    let discovered = if is_legacy { Discovery::No } else { discover(wire, DISCOVER, via).await? };
    let Hello { protocol, server, instructions, has } = match discovered {
        Discovery::Speaks(hello) => hello,
        Discovery::No => initialize(wire, via).await?,
        Discovery::Silence => match initialize(wire, via).await {
            Ok(hello) => hello,
            // It was slow to start, has read both by now, and speaks as it was asked first.
            Err(trouble) => match discover(wire, PATIENCE, via).await {
                Ok(Discovery::Speaks(hello)) => hello,
                Ok(Discovery::No | Discovery::Silence) | Err(_) => return Err(trouble),
            },
        },
    };
    let listed = list(wire, &protocol, has, via).await?;
    Ok(Offered { protocol, server, instructions, has, listed })
}

/// The newer era, where the server answers within that time that it speaks it.
async fn discover(wire: &Wire, most: Duration, via: &Via<'_>) -> Result<Discovery, Trouble> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        supported_versions: Vec<String>,
        #[serde(default)]
        capabilities: Value,
        instructions: Option<String>,
        #[serde(rename = "_meta", default)]
        meta: Map<String, Value>,
    }
    let params = json!({ "_meta": client(MODERN, via) });
    wire.speak(Some(MODERN));
    let mut said = match request(wire, "server/discover", &params, most, via).await {
        // A server of the older eras may answer anything to a method that it does not know.
        Err(trouble) if trouble.kind == Kind::ExecutionFailed => return Ok(Discovery::No),
        said => said?,
    };
    if said.as_ref().is_some_and(|said| said.as_ref().is_err_and(wants_this_version)) {
        said = request(wire, "server/discover", &params, most, via).await?;
    }
    let result = match said {
        Some(Ok(result)) => result,
        Some(Err(_)) => return Ok(Discovery::No),
        None => return Ok(Discovery::Silence),
    };
    let Ok(said) = serde_json::from_str::<Discovered>(result.get()) else { return Ok(Discovery::No) };
    if !said.supported_versions.iter().any(|version| version == MODERN) {
        return Ok(Discovery::No);
    }
    let server = said.meta.get("io.modelcontextprotocol/serverInfo").cloned().unwrap_or_default();
    let has = Has::of(&said.capabilities);
    Ok(Discovery::Speaks(Hello { protocol: MODERN.into(), server, instructions: said.instructions, has }))
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
        capabilities: Value,
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
    let has = Has::of(&said.capabilities);
    Ok(Hello { protocol: said.protocol_version, server: said.server_info, instructions: said.instructions, has })
}

/// All that it lists which a person accepts: its tools, its prompts, and the templates of its resources.
pub(super) async fn list(wire: &Wire, protocol: &str, has: Has, via: &Via<'_>) -> Result<Listed, Trouble> {
    let mut listed = Listed::default();
    let (tools, notices) = pages::all(wire, protocol, List::Tools, pages::MOST_TIME, via).await?;
    listed.notices.extend(notices);
    let has_headers = protocol == MODERN && wire.has_headers();
    for (name, definition) in tools {
        let fits = match RESERVED.iter().any(|begin| name.starts_with(begin)) {
            true => Err("has a name that begins as those of prompts or resources in settings".to_owned()),
            false if has_headers => params::check(&definition),
            false => Ok(()),
        };
        match fits {
            Ok(()) => listed.add(name.clone(), name, AcceptedKind::Tool, definition),
            Err(why) => listed.notices.push(format!("`{}` was left out: it {why}", shown(&name))),
        }
    }
    if has.prompts {
        let prompts = pages::all(wire, protocol, List::Prompts, BESIDE, via).await;
        for (name, definition) in listed.beside(AcceptedKind::Prompt, prompts, wire)?.unwrap_or_default() {
            listed.add(prompts::offered(&name), prompts::own_name(&name), AcceptedKind::Prompt, definition);
        }
    }
    if has.resources {
        let templates = pages::all(wire, protocol, List::Templates, BESIDE, via).await;
        if let Some(templates) = listed.beside(AcceptedKind::Resources, templates, wire)? {
            let definition = resources::definition(listed.fit(templates));
            listed.add(resources::OFFERED.into(), resources::OWN_NAME.into(), AcceptedKind::Resources, definition);
        }
    }
    listed.notices.truncate(MOST_NOTICES);
    Ok(listed)
}

impl Listed {
    fn add(&mut self, offered: String, name: String, kind: AcceptedKind, definition: Map<String, Value>) {
        match self.tools.entry(offered) {
            Entry::Occupied(known) if known.get().name == name => {
                self.notices.push(format!("`{}` is listed twice", shown(&name)));
            }
            Entry::Occupied(known) => {
                let (name, known) = (shown(&name), shown(&known.get().name));
                self.notices
                    .push(format!("`{name}` was left out: the name by which it would be offered is that of `{known}`"));
            }
            Entry::Vacant(place) => _ = place.insert(AcceptedTool { name, kind, definition }),
        }
    }

    /// The templates by which resources can be asked for.
    fn fit(&mut self, templates: Vec<pages::Entry>) -> Vec<Map<String, Value>> {
        let mut fit = Vec::new();
        for (form, template) in templates {
            let why = match resources::check_template(&template) {
                Ok(()) if fit.len() < resources::MOST_TEMPLATES => {
                    fit.push(template);
                    continue;
                }
                Ok(()) => format!("is one of more than {} templates", resources::MOST_TEMPLATES),
                Err(why) => why,
            };
            self.notices.push(format!("`{}` was left out: it {why}", shown(&form)));
        }
        fit
    }

    /// The entries of a list without which there are its tools all the same; none where it could not be listed.
    fn beside(
        &mut self,
        kind: AcceptedKind,
        listed: Result<pages::Entries, Trouble>,
        wire: &Wire,
    ) -> Result<Option<Vec<pages::Entry>>, Trouble> {
        match listed {
            Ok((entries, notices)) => {
                self.notices.extend(notices);
                Ok(Some(entries))
            }
            Err(trouble) if wire.has_ended() => Err(trouble),
            Err(trouble) => {
                self.notices.push(format!("it {}", trouble.message));
                self.unlisted.push((kind, trouble.message));
                Ok(None)
            }
        }
    }
}

/// Asks, and waits so long; none where that was not enough.
pub(super) async fn request(
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
