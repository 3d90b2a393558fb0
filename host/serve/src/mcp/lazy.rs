//! `serve --lazy`: two tools in the list in the place of all. `tool_search` finds tools among those that its caller can call; `tool_call` is an
//! envelope around a call.
//!
//! The envelope is opened before anything is decided: approvals, grants, repeats and the trail know the tool that is in it, and nothing else.

use super::call::answered;
use super::tools::typed;
use super::{Inner, arguments};
use base::text::tool_names::meant;
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{self, CallToolRequestParams, CallToolResponse, JsonObject};
use rmcp::service::{RequestContext, RoleServer};
use search::{Index, Searched, families};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use toolcrib::call::CallContext;
use toolcrib::envelope::{Envelope, Failure, Kind, Output};
use toolcrib::tools::definition::{Tool, dropped};

/// The two tools.
const SEARCH: &str = "tool_search";
const CALL: &str = "tool_call";
/// How a query begins that names tools.
const SELECT: &str = "select:";

/// Characters of a query.
const QUERY_CHARS: usize = 400;
/// Tools that a search finds where it does not say how many, and the most that it may say.
const FOUND: usize = 8;
const MOST_FOUND: usize = 20;
/// Tools of these that are shown with their arguments.
const WHOLE: usize = 3;
/// Bytes of definitions in an answer. The first is shown whatever it takes: without it nobody could call the tool.
const WHOLE_BYTES: usize = 24 << 10;
/// Characters of what is said of a tool in a line, and of all families in the list and in an answer.
const LINE_CHARS: usize = 160;
const FAMILIES_CHARS: usize = 900;
/// Lists of tools whose indexes are kept: clients with toolsets of their own have lists of their own.
const INDEXES: usize = 8;

/// The indexes of the tools that clients have searched, the latest first.
#[derive(Default)]
pub struct Lazy(Mutex<VecDeque<Arc<Known>>>);

/// Tools, and their index.
struct Known {
    tools: Vec<Arc<Tool>>,
    index: Index,
}

impl Known {
    fn of(tools: Vec<Arc<Tool>>) -> Result<Self, Failure> {
        let index = Index::of(&searched(&tools))?;
        Ok(Self { tools, index })
    }

    /// A toolset that sets arguments makes its tools anew each time, so they are compared by what they say.
    fn is_of(&self, tools: &[Arc<Tool>]) -> bool {
        let is_same = |one: &Arc<Tool>, other: &Arc<Tool>| {
            Arc::ptr_eq(one, other)
                || (one.name() == other.name()
                    && one.description() == other.description()
                    && one.definition().input_schema == other.definition().input_schema)
        };
        self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(|(one, other)| is_same(one, other))
    }
}

impl Lazy {
    /// The index of these tools, which is made where there is none: another list of tools has another index.
    async fn known(&self, tools: &[Arc<Tool>]) -> Result<Arc<Known>, Failure> {
        let found = {
            let mut all = self.0.lock();
            all.iter().position(|known| known.is_of(tools)).and_then(|place| all.remove(place))
        };
        let known = match found {
            Some(known) => known,
            None => {
                let tools = tools.to_vec();
                let made = tokio::task::spawn_blocking(move || Known::of(tools)).await;
                Arc::new(made.map_err(|error| Failure::new(Kind::Internal, error.to_string()))??)
            }
        };
        let mut all = self.0.lock();
        all.push_front(known.clone());
        all.truncate(INDEXES);
        Ok(known)
    }
}

fn searched(tools: &[Arc<Tool>]) -> Vec<Searched<'_>> {
    tools.iter().map(|tool| Searched::from(&**tool)).collect()
}

/// The definitions of the two tools, where these can be found.
#[must_use]
pub fn definitions(tools: &[Searched<'_>]) -> Value {
    let families = families(tools, FAMILIES_CHARS).join("; ");
    let search = format!(
        "Find tools by what they do. Most tools of this server are not listed: search before you use a shell or say that something cannot be \
         done. The best {WHOLE} come with their arguments, further ones by name; `{SELECT}NAME,NAME` returns exactly these. Call them with `{CALL}`. \
         There are: {families}."
    );
    json!([
        {
            "name": CALL,
            "title": "Call a tool",
            "description": format!("Call a tool that `{SEARCH}` has found. Permissions and questions are those of the tool."),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "arguments": { "type": "object", "description": "As the tool's `inputSchema` says" },
                },
                "required": ["name"],
            },
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true },
        },
        {
            "name": SEARCH,
            "title": "Find tools",
            "description": search,
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": { "type": "string", "maxLength": QUERY_CHARS, "description": "What is to be done, in a few words" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND },
                },
                "required": ["query"],
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
    ])
}

/// What a search asks for.
struct Search {
    query: String,
    limit: usize,
    /// What of the call was left out.
    notices: Vec<String>,
}

impl Search {
    fn read(mut arguments: JsonObject) -> Result<Self, Failure> {
        let invalid = |what: String| Failure::invalid(format!("arguments of `{SEARCH}`: {what}"));
        let query = match arguments.remove("query") {
            Some(Value::String(query)) => query,
            Some(_) => return Err(invalid("`query` must be a string".into())),
            None => return Err(invalid("`query` is missing".into())),
        };
        let chars = query.chars().count();
        if chars > QUERY_CHARS {
            let hint = "say in a few words what is to be done";
            return Err(invalid(format!("`query` has {chars} characters (limit: {QUERY_CHARS})")).hint(hint));
        }
        let limit = match arguments.remove("limit") {
            None | Some(Value::Null) => FOUND,
            Some(limit) => {
                let limit = limit.as_u64().or_else(|| limit.as_str()?.parse().ok());
                let limit = limit.and_then(|limit| usize::try_from(limit).ok());
                let within = limit.filter(|limit| (1..=MOST_FOUND).contains(limit));
                within.ok_or_else(|| invalid(format!("`limit` must be an integer from 1 to {MOST_FOUND}")))?
            }
        };
        let notices = dropped(&mut arguments, SEARCH, |_| false);
        nothing_else(SEARCH, &arguments)?;
        Ok(Self { query, limit, notices })
    }

    /// The names that it asks for, where it names tools.
    fn names(&self) -> Option<Vec<&str>> {
        let names = self.query.trim().strip_prefix(SELECT)?;
        Some(names.split(',').map(str::trim).filter(|name| !name.is_empty()).take(MOST_FOUND).collect())
    }
}

fn nothing_else(tool: &str, arguments: &JsonObject) -> Result<(), Failure> {
    let Some(other) = arguments.keys().next() else { return Ok(()) };
    let shown: String = other.chars().take(LINE_CHARS).collect();
    let hint = match tool {
        CALL => "put the arguments of the tool that is called into `arguments`",
        _ => "omit it",
    };
    Err(Failure::invalid(format!("arguments of `{tool}`: unknown argument `{shown}`")).hint(hint))
}

/// What was found, as places in the list of tools.
#[derive(Default)]
struct Found {
    /// These are shown with their arguments, as far as there is room.
    whole: Vec<usize>,
    /// These by name and line.
    more: Vec<usize>,
    /// Names that no tool has.
    unknown: Vec<String>,
}

impl Known {
    fn find(&self, search: &Search) -> Result<Found, Failure> {
        let Some(names) = search.names() else {
            let mut whole = self.index.find(&search.query, search.limit)?;
            let more = whole.split_off(whole.len().min(WHOLE));
            return Ok(Found { whole, more, ..Found::default() });
        };
        let mut found = Found::default();
        for name in names {
            match self.index.named(name) {
                Some(place) => found.whole.push(place),
                None => {
                    found.more.extend(self.index.nearest(name));
                    found.unknown.push(name.to_owned());
                }
            }
        }
        Ok(found)
    }
}

impl Inner {
    /// What searches, where a call is a search.
    pub(super) fn searcher(&self, params: &CallToolRequestParams) -> Option<&Lazy> {
        self.lazy.as_ref().filter(|_| params.name == SEARCH)
    }

    /// Whether a call can be answered only once it is known which tools there are: a search, and an envelope around a name that no tool has.
    pub(super) fn waits_for_list(&self, params: &CallToolRequestParams) -> bool {
        let named = || params.arguments.as_ref()?.get("name")?.as_str();
        let is_known = |name: &str| self.catalog.current().plugin_of(name).is_ok();
        self.searcher(params).is_some() || (self.is_envelope(params) && !named().is_some_and(is_known))
    }

    /// Whether a call is an envelope around another.
    pub(super) fn is_envelope(&self, params: &CallToolRequestParams) -> bool {
        self.lazy.is_some() && params.name == CALL
    }

    /// The call that is in the envelope; a call without one is that itself.
    ///
    /// # Errors
    ///
    /// Where the envelope has no name, one of the two tools, or no arguments that could be a tool's.
    pub(super) fn opened(&self, mut params: CallToolRequestParams) -> Result<CallToolRequestParams, Failure> {
        if !self.is_envelope(&params) {
            return Ok(params);
        }
        let mut envelope = params.arguments.take().unwrap_or_default();
        let Some(Value::String(name)) = envelope.remove("name") else {
            return Err(Failure::invalid(format!("arguments of `{CALL}`: `name` must be the name of a tool"))
                .hint(format!("`{SEARCH}` finds names")));
        };
        if name == SEARCH || name == CALL {
            return Err(Failure::invalid(format!("`{CALL}` cannot call `{name}`")).hint(match &*name {
                SEARCH => format!("call `{SEARCH}` itself"),
                _ => "put the name and the arguments of the tool into one envelope".into(),
            }));
        }
        let given = envelope.remove("arguments").unwrap_or_default();
        params.arguments = arguments::read(given).map_err(|()| not_an_object())?;
        // No tool would ever see it, so no notice says that it is gone.
        dropped(&mut envelope, CALL, |_| false);
        nothing_else(CALL, &envelope)?;
        params.name = name.into();
        Ok(params)
    }

    /// The two tools, and those that are listed always.
    pub(super) fn short_list(
        &self,
        callable: &[Arc<Tool>],
        context: &CallContext,
    ) -> Result<Vec<model::Tool>, ErrorData> {
        let found = findable(callable);
        let policy = self.host.policy();
        let is_always = |tool: &&Arc<Tool>| policy.config().tools.always.iter().any(|name| name == tool.name());
        let listed: Vec<Arc<Tool>> = found.iter().filter(is_always).cloned().collect();
        let mut tools = typed(definitions(&searched(&found)))?;
        tools.extend(self.definitions(&listed, context)?);
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tools)
    }

    /// Answers a search with tools that its caller can call.
    pub(super) async fn search(
        &self,
        lazy: &Lazy,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let search = match Search::read(arguments) {
            Ok(search) => search,
            Err(failure) => return self.said(Err(failure), Vec::new()),
        };
        let _turn = self.lists.acquire().await;
        self.client.has_room().await;
        let (context, callable) = self.callable(self.sessions.of(context)?).await;
        let tools = findable(&callable);
        match lazy.known(&tools).await.and_then(|known| known.find(&search)) {
            Ok(found) => self.said(Ok(self.shown(found, &tools, &context)?), search.notices),
            Err(failure) => self.said(Err(failure), Vec::new()),
        }
    }

    /// Answers the call of an unknown tool, with the name that was probably meant, among the tools that its caller can find.
    pub(super) async fn unknown(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _turn = self.lists.acquire().await;
        let (_, callable) = self.callable(self.sessions.of(context)?).await;
        let tools = findable(&callable);
        let shown: String = name.chars().take(LINE_CHARS).collect();
        let near = meant(&shown, tools.iter().map(|tool| tool.name()));
        let hint = near.map_or_else(|| format!("`{SEARCH}` finds tools"), |near| format!("did you mean `{near}`?"));
        self.said(Err(Failure::new(Kind::UnknownTool, format!("there is no tool `{shown}`")).hint(hint)), Vec::new())
    }

    /// What comes of a search. It is said once, as text: some clients hand what is structured to the model as well.
    fn said(&self, outcome: Result<Value, Failure>, notices: Vec<String>) -> Result<CallToolResponse, ErrorData> {
        let output = outcome.map(|result| Output { result, notices, ..Output::default() });
        let mut result = answered(Envelope::new(output), Vec::new(), self.results)?;
        result.structured_content = None;
        Ok(result.into())
    }

    /// The answer to a search.
    fn shown(&self, mut found: Found, tools: &[Arc<Tool>], context: &CallContext) -> Result<Value, ErrorData> {
        let (mut whole, mut bytes, mut too_long) = (Vec::new(), 0, Vec::new());
        for place in found.whole {
            let definitions = self.definitions(&tools[place..=place], context)?;
            for model::Tool { name, description, input_schema, .. } in definitions {
                let shown = json!({ "name": name, "description": description, "inputSchema": input_schema });
                let more = shown.to_string().len();
                if whole.is_empty() || bytes + more <= WHOLE_BYTES {
                    bytes += more;
                    whole.push(shown);
                } else {
                    too_long.push(place);
                }
            }
        }
        too_long.append(&mut found.more);
        let more: Vec<Value> = too_long.iter().map(|place| in_a_line(&tools[*place])).collect();
        let has_found = !whole.is_empty() || !more.is_empty();
        let mut said = json!({ "tools": whole });
        if !found.unknown.is_empty() {
            said["unknown"] = found.unknown.into();
        }
        if !has_found {
            said["families"] = families(&searched(tools), FAMILIES_CHARS).into();
            said["hint"] = "no tool was found: search by other words, or by the name of a family".into();
        }
        if !more.is_empty() {
            said["more"] = more.into();
            said["hint"] = format!("the query `{SELECT}NAME` shows the arguments of one of these").into();
        }
        Ok(said)
    }
}

/// Tools that have the name of one of the two cannot be called, so they are not found.
fn findable(callable: &[Arc<Tool>]) -> Vec<Arc<Tool>> {
    callable.iter().filter(|tool| tool.name() != SEARCH && tool.name() != CALL).cloned().collect()
}

fn in_a_line(tool: &Tool) -> Value {
    let summary = tool.definition().summary.lines().next().unwrap_or_default();
    let is_long = summary.chars().count() > LINE_CHARS;
    let shown: String = summary.chars().take(LINE_CHARS).chain(is_long.then_some('…')).collect();
    json!({ "name": tool.name(), "summary": shown })
}

fn not_an_object() -> Failure {
    Failure::invalid(format!("arguments of `{CALL}`: `arguments` must be an object"))
        .hint("its fields are those of the tool's `inputSchema`")
}
