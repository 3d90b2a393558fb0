//! Lines of `toolcrib run`: how one is read, and what it asks for.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use toolcrib::call::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH, Arguments, Request};
use toolcrib::embedder::{AnswerLine, ErrorLine, KindPattern};
use toolcrib::envelope::Failure;
use toolcrib::tools::schema::depth;

/// How long a line may be, in bytes.
pub(super) const LINE_BYTES: usize = ARGUMENTS_BYTES;

/// One line of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `id`, and `tool` or `cancel`")]
struct Line {
    id: Option<Value>,
    tool: Option<String>,
    arguments: Option<Value>,
    cancel: Option<Value>,
    open: Option<Open>,
    session: Option<String>,
    turn: Option<Turn>,
    list: Option<String>,
    close: Option<bool>,
    pinned: Option<bool>,
    feed: Option<Value>,
    embedder: Option<Takes>,
    answer: Option<String>,
    #[serde(default, deserialize_with = "given")]
    result: Option<Value>,
    error: Option<ErrorLine>,
}

/// `null` is a result as well.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A line, and the id under which it is answered.
pub(super) struct Asking {
    pub(super) id: Value,
    pub(super) asked: Asked,
}

/// What a line asks for.
pub(super) enum Asked {
    Call(Option<String>, Request),
    Cancel(Value),
    Open(Open),
    Turn(String, Turn),
    List(Option<String>, String),
    Close(String),
    /// What plugins keep before the eyes of the session's agent.
    Pinned(Option<String>),
    /// What happened around the session's agent.
    Feed(Option<String>, Value),
    /// Whoever writes these lines takes events of these kinds.
    Embed(Vec<KindPattern>),
    Answer(AnswerLine),
}

/// A session that is to be opened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Open {
    pub(super) toolset: String,
    #[serde(default)]
    pub(super) bind: Map<String, Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Turn {
    Begin,
    End,
}

/// What the embedder says of itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Takes {
    kinds: Vec<KindPattern>,
}

/// A line that is not a request, and the id under which it is answered.
pub(super) struct Faulty {
    pub(super) id: Box<Value>,
    pub(super) failure: Failure,
}

impl From<Failure> for Faulty {
    fn from(failure: Failure) -> Self {
        Self { id: Box::default(), failure }
    }
}

impl Line {
    /// What it asks for, if that is one thing.
    fn asked(self) -> Option<Asked> {
        let Self { id: _, session, arguments, result, error, .. } = self;
        let (is_call, has_arguments) = (self.tool.is_some(), arguments.is_some());
        let has_answer = result.is_some() || error.is_some();
        // Some of these are asked of no session.
        let of_none = |asked: Asked| session.is_none().then_some(asked);
        let call = |tool| {
            let arguments = Arguments::Json(arguments.unwrap_or_else(|| json!({})));
            Some(Asked::Call(session.clone(), Request { tool, arguments }))
        };
        let ways = [
            self.tool.map(call),
            self.cancel.map(|target| of_none(Asked::Cancel(target))),
            self.open.map(|open| of_none(Asked::Open(open))),
            self.turn.map(|turn| session.clone().map(|session| Asked::Turn(session, turn))),
            self.list.map(|format| Some(Asked::List(session.clone(), format))),
            self.close.map(|close| session.clone().filter(|_| close).map(Asked::Close)),
            self.pinned.map(|pinned| pinned.then(|| Asked::Pinned(session.clone()))),
            self.feed.map(|feed| Some(Asked::Feed(session.clone(), feed))),
            self.embedder.map(|takes| of_none(Asked::Embed(takes.kinds))),
            self.answer.map(|answer| of_none(Asked::Answer(AnswerLine { answer, result, error }))),
        ];
        let mut asked = ways.into_iter().flatten();
        let (asked, None) = (asked.next()??, asked.next()) else { return None };
        let is_answer = matches!(asked, Asked::Answer(_));
        let fits = (is_call || !has_arguments) && (is_answer || !has_answer);
        fits.then_some(asked)
    }

    fn deepest(&self) -> u64 {
        let bound = self.open.iter().flat_map(|open| open.bind.values());
        let values = [&self.id, &self.arguments, &self.cancel, &self.result, &self.feed].into_iter().flatten();
        values.chain(bound).map(depth).max().unwrap_or(0)
    }
}

/// Reads a line's JSON; a blank line is nothing. A fault comes with the id under which it is answered.
pub(super) fn parse(line: &[u8]) -> Result<Option<Asking>, Faulty> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let no_request = |error: &dyn std::fmt::Display| {
        Failure::invalid(format!("the line is not a request: {error}"))
            .hint("write {\"id\": 1, \"tool\": \"time\", \"arguments\": {}} or {\"id\": 2, \"cancel\": 1}")
    };
    let parsed: Line = serde_json::from_slice(line).map_err(|error| Faulty::from(no_request(&error)))?;
    // What answers an event, or says which the embedder takes, need not be answered itself.
    if parsed.id.is_none() && parsed.answer.is_none() && parsed.embedder.is_none() {
        // Where the parser would say that it ends.
        let end = line.trim_ascii_end().len();
        return Err(no_request(&format!("missing field `id` at line 1 column {end}")).into());
    }
    let id = parsed.id.clone().unwrap_or_default();
    // The line itself is one level.
    if parsed.deepest() >= ARGUMENTS_DEPTH {
        let failure = Failure::invalid(format!("the line nests deeper than {ARGUMENTS_DEPTH} levels"));
        return Err(Faulty { id: Box::new(id), failure });
    }
    match parsed.asked() {
        Some(asked) => Ok(Some(Asking { id, asked })),
        None => {
            let failure = Failure::invalid("a line has either `tool` or `cancel`, or is about a session")
                .hint("write {\"id\": 1, \"tool\": \"time\", \"arguments\": {}}");
            Err(Faulty { id: Box::new(id), failure })
        }
    }
}
