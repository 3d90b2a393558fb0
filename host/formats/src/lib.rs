//! Tool definitions, calls and results as model APIs write them: each provider's shapes are in one file.
//!
//! They translate and decide nothing: what a tool may do is policy's, and a call is `Host::call`, like any other.
//!
//! It depends on `base`, `config`, `contract` and `policy`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod anthropic;
mod definitions;
mod gemini;
mod mcp;
mod openai;
mod reading;
mod results;
pub mod schema;
pub mod strict;

use base::envelope::{Content, Envelope, Failure, Kind};
use contract::request::{Arguments, Request};
pub use definitions::{Definitions, Effects, Offer, Strictness};
pub use reading::ENVELOPE;
pub use results::ToolResult;
use serde_json::{Map, Value};
use std::fmt;
use strict::Dialect;

/// Whose words: a model API, and what it calls a tool, a call and a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The Model Context Protocol: the result of tools/list
    Mcp,
    /// OpenAI's chat completions
    OpenaiChat,
    /// OpenAI's responses
    OpenaiResponses,
    /// Anthropic's messages
    Anthropic,
    /// Google's Gemini
    Gemini,
}

/// A tool call as a model made it.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// What the result has to name, where the call had any.
    pub id: Option<Value>,
    /// What is called.
    pub request: Request,
}

/// The calls of one message, never none.
#[derive(Clone, Debug)]
pub struct ToolCalls {
    /// In the order of the message.
    pub calls: Vec<ToolCall>,
    /// They came as a list, and their answers go back as one.
    pub is_list: bool,
}

/// Something that a definition does not say as its tool does.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// JSON pointer into the schema; empty for all of it.
    pub at: String,
    /// A lowercase fragment.
    pub what: String,
}

/// How one model API writes what all of them know.
trait Shape {
    /// One definition.
    fn tool(&self, tool: Declared<'_>) -> Value;

    /// All definitions.
    fn list(&self, tools: Vec<Value>) -> Value {
        tools.into()
    }

    /// A list without tools is a list. Requests of model APIs leave it out.
    fn has_empty_list(&self) -> bool {
        false
    }

    /// Its strict mode.
    fn dialect(&self) -> Option<&'static Dialect> {
        None
    }

    /// Definitions are strict where nothing is lost by it, without being asked.
    fn is_strict_by_default(&self) -> bool {
        false
    }

    /// A definition can have the schema of the result.
    fn has_output_schema(&self) -> bool {
        false
    }

    /// Why it takes no tool of this name.
    fn refuses_name(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// Characters of a description that each of its servers takes.
    fn description_chars(&self) -> usize {
        usize::MAX
    }

    /// What a call looks like.
    fn call_example(&self) -> &'static str;

    /// A call, if the message is one.
    fn read(&self, message: &Value) -> Option<ToolCall>;

    /// The field in which a whole message of the model has its calls.
    fn calls_field(&self) -> Option<&'static str> {
        None
    }

    /// What may appear beside the calls of a message: its text, its thoughts.
    fn is_beside_calls(&self, _part: &Value) -> bool {
        false
    }

    /// A model reads results as text, with the envelope beside them, and not in it.
    fn is_read_plainly(&self) -> bool {
        false
    }

    /// A part of a result beside its text; `None` where this API has no place for it.
    fn part(&self, _content: &Content) -> Option<Value> {
        None
    }

    /// The message that answers `call`.
    fn answer(&self, call: &ToolCall, result: ToolResult) -> Value;
}

/// A tool as a definition shows it.
struct Declared<'t> {
    offer: &'t Offer<'t>,
    input: Value,
    output: Option<Value>,
    is_strict: bool,
}

impl Format {
    fn shape(self) -> &'static dyn Shape {
        match self {
            Self::Mcp => &mcp::Mcp,
            Self::OpenaiChat => &openai::Chat,
            Self::OpenaiResponses => &openai::Responses,
            Self::Anthropic => &anthropic::Messages,
            Self::Gemini => &gemini::Gemini,
        }
    }

    /// What it is called where one is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Every format.
    pub const ALL: [Self; 5] = [Self::Mcp, Self::OpenaiChat, Self::OpenaiResponses, Self::Anthropic, Self::Gemini];

    /// Writes the definitions of tools, by name; the same tools give the same bytes.
    ///
    /// # Errors
    ///
    /// `usage`, when `strictness` is [`Strictness::On`] and a tool cannot be expressed in strict mode.
    pub fn definitions(self, offers: Vec<Offer<'_>>, strictness: Strictness) -> Result<Definitions, Failure> {
        definitions::write(self, offers, strictness)
    }

    /// Reads the calls of a message: one call, a list of them, or what the model said with its calls in it.
    ///
    /// # Errors
    ///
    /// `usage`, with what was expected.
    pub fn read(self, message: &str) -> Result<ToolCalls, Failure> {
        let expected = format!("give a call as `{}` has it: {}", self.name(), self.shape().call_example());
        let usage = |message| Failure::new(Kind::Usage, message);
        let message: Value = serde_json::from_str(message)
            .map_err(|error| usage(format!("the message is not JSON: {error}")).hint(&expected))?;
        ToolCalls::read(self.shape(), &message).ok_or_else(|| {
            let other = Self::ALL.iter().find(|other| ToolCalls::read(other.shape(), &message).is_some());
            let failure = usage(format!("the message is not a tool call of `{}`", self.name()));
            match other {
                Some(other) => failure.hint(format!("it is one of `{}`", other.name())),
                None => failure.hint(expected),
            }
        })
    }

    /// Writes the message that answers a call.
    #[must_use]
    pub fn answer(self, call: &ToolCall, envelope: Envelope) -> Value {
        self.shape().answer(call, self.result(envelope))
    }

    /// What the message that answers a call says, for those who write it themselves.
    #[must_use]
    pub fn result(self, envelope: Envelope) -> ToolResult {
        let shape = self.shape();
        if shape.is_read_plainly() { reading::read(envelope, shape) } else { ToolResult::enveloped(envelope, shape) }
    }

    /// The same with the envelope as its text, in any format.
    #[must_use]
    pub fn enveloped(self, envelope: Envelope) -> ToolResult {
        ToolResult::enveloped(envelope, self.shape())
    }
}

impl ToolCalls {
    fn read(shape: &dyn Shape, message: &Value) -> Option<Self> {
        if let Some(call) = shape.read(message) {
            return Some(Self { calls: vec![call], is_list: false });
        }
        let parts = message.as_array().or_else(|| message.get(shape.calls_field()?)?.as_array())?;
        // A call that cannot be read refuses them all: an answer that is missing ends the conversation.
        let calls = parts.iter().filter(|part| !shape.is_beside_calls(part)).map(|part| shape.read(part));
        let calls = calls.collect::<Option<Vec<_>>>().filter(|calls| !calls.is_empty())?;
        Some(Self { calls, is_list: true })
    }
}

impl ToolCall {
    /// `arguments` are an object, or the text of one. Nothing, or blank text, means no arguments.
    fn new(id: Option<&Value>, tool: &Value, arguments: Option<&Value>) -> Option<Self> {
        let arguments = match arguments {
            None => Value::Object(Map::new()),
            Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
            Some(arguments @ (Value::Object(_) | Value::String(_))) => arguments.clone(),
            Some(_) => return None,
        };
        let request = Request { tool: tool.as_str()?.to_owned(), arguments: Arguments::Json(arguments) };
        Some(Self { id: id.cloned(), request })
    }
}

impl Note {
    fn new(at: impl Into<String>, what: impl Into<String>) -> Self {
        Self { at: at.into(), what: what.into() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.as_str() {
            "" => formatter.write_str(&self.what),
            at => write!(formatter, "{at}: {}", self.what),
        }
    }
}
