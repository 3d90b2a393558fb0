//! What callers get: the envelope of a call, and the one place where errors become text.
//!
//! `call/` is the only maker of envelopes; the doors print them.

use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The kind of a failure. Names and exit codes are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A fault of Toolcrib itself.
    Internal,
    /// The command line, or the settings that it names, cannot be used. Never in an envelope.
    Usage,
    /// No tool has this name.
    UnknownTool,
    /// The arguments do not fit the tool's schema, or the tool refused them.
    InvalidArguments,
    /// Policy or a person said no.
    Denied,
    /// A limit of the sandbox was met.
    Limit,
    /// The time for the call or its command ran out.
    TimedOut,
    /// The caller ended the call.
    Cancelled,
    /// Something that is needed is in use; try again later.
    Busy,
    /// Something that is needed is not there.
    Unavailable,
    /// The effect may or may not have happened.
    OutcomeUnknown,
    /// The action was tried and failed.
    ExecutionFailed,
}

impl Kind {
    const ALL: [(Self, &'static str, u8); 12] = [
        (Self::Internal, "internal", 1),
        (Self::Usage, "usage", 2),
        (Self::UnknownTool, "unknown_tool", 3),
        (Self::InvalidArguments, "invalid_arguments", 4),
        (Self::Denied, "denied", 5),
        (Self::Limit, "limit", 6),
        (Self::TimedOut, "timed_out", 7),
        (Self::Cancelled, "cancelled", 8),
        (Self::Busy, "busy", 9),
        (Self::Unavailable, "unavailable", 10),
        (Self::OutcomeUnknown, "outcome_unknown", 11),
        (Self::ExecutionFailed, "execution_failed", 12),
    ];

    fn row(self) -> (Self, &'static str, u8) {
        Self::ALL.into_iter().find(|row| row.0 == self).expect("every kind has a row")
    }

    /// The name in envelopes and audit lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The exit code of `toolcrib call`.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        self.row().2
    }

    /// Something that may be used did not answer.
    #[must_use]
    pub fn is_unreachable(self) -> bool {
        match self {
            Self::Unavailable | Self::TimedOut => true,
            Self::Internal
            | Self::Usage
            | Self::UnknownTool
            | Self::InvalidArguments
            | Self::Denied
            | Self::Limit
            | Self::Cancelled
            | Self::Busy
            | Self::OutcomeUnknown
            | Self::ExecutionFailed => false,
        }
    }

    /// An error code of the guest's own language says as much.
    #[must_use]
    pub fn is_plain_to_guests(self) -> bool {
        match self {
            // It can see for itself that there is no such file; a call that was cancelled has no result.
            Self::ExecutionFailed | Self::Cancelled => true,
            Self::Internal
            | Self::Usage
            | Self::UnknownTool
            | Self::InvalidArguments
            | Self::Denied
            | Self::Limit
            | Self::TimedOut
            | Self::Busy
            | Self::Unavailable
            | Self::OutcomeUnknown => false,
        }
    }

    /// All names.
    #[must_use]
    pub fn names() -> [&'static str; 12] {
        Self::ALL.map(|row| row.1)
    }

    /// The kind of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Reads a guest's word for a kind; an unknown one is `execution_failed`.
    #[must_use]
    pub fn from_guest(name: &str) -> Self {
        Self::named(name).filter(|kind| *kind != Self::Usage).unwrap_or(Self::ExecutionFailed)
    }

    /// The same call would fail again: a reason not to run it a third time.
    #[must_use]
    pub fn is_deterministic(self) -> bool {
        matches!(self, Self::InvalidArguments | Self::Denied | Self::ExecutionFailed)
    }
}

/// Why a call has no result. A denial is such a value, never a panic.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: Kind,
    /// A lowercase fragment: what happened, values in backticks, limits with their unit.
    pub message: String,
    /// The exact line to add or argument to change.
    pub hint: Option<String>,
    /// What is known all the same: partial output, a pane's id.
    pub data: Option<Box<Value>>,
}

impl Failure {
    /// A failure without hint and data.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, data: None }
    }

    /// A refusal by policy or by a person.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Kind::Denied, message)
    }

    /// Arguments that cannot be used.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArguments, message)
    }

    /// An action that was tried and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::ExecutionFailed, message)
    }

    /// A limit that was met; `message` names it with its unit.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Kind::Limit, message)
    }

    /// A call that its caller ended.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(Kind::Cancelled, "the call was cancelled")
    }

    /// Adds what to change.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what is known all the same.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// The same, knowing also what another failure knew, beside its own.
    #[must_use]
    pub fn also(mut self, others: Option<Box<Value>>) -> Self {
        match (self.data.as_deref_mut().and_then(Value::as_object_mut), others.as_deref().and_then(Value::as_object)) {
            (Some(own), Some(others)) => {
                others.iter().for_each(|(key, value)| _ = own.entry(key.clone()).or_insert_with(|| value.clone()));
            }
            _ => self.data = self.data.or(others),
        }
        self
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The result.
    pub result: Value,
    /// Parts beside it.
    pub content: Vec<Content>,
    /// What the caller should know, a sentence each.
    pub notices: Vec<String>,
    /// The tool says that an object among its results is the outcome of a command, so that it can be shown as one.
    pub is_of_command: bool,
}

/// A part of a result beside its JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text.
    Text(String),
    /// An image: media type and bytes.
    Image(String, Vec<u8>),
    /// Audio: media type and bytes.
    Audio(String, Vec<u8>),
    /// A link.
    Link(String),
}

impl Content {
    /// Whether the media type is one of the part's kind: who goes by it would else take the bytes for something else, such as a page.
    pub fn is_what_it_says(&self) -> bool {
        match self {
            Self::Text(_) | Self::Link(_) => true,
            Self::Image(media_type, _) => is_media_type(media_type, "image"),
            Self::Audio(media_type, _) => is_media_type(media_type, "audio"),
        }
    }
}

/// Whether a media type is of this top-level type (RFC 6838, 4.2), with parameters or without.
pub fn is_media_type(media_type: &str, of: &str) -> bool {
    let (name, parameters) = media_type.split_once(';').unwrap_or((media_type, ""));
    let Some((found, below)) = name.trim_end().split_once('/') else { return false };
    let is_of_name = |char: char| char.is_ascii_alphanumeric() || "!#$&-^_.+".contains(char);
    found.eq_ignore_ascii_case(of)
        && !below.is_empty()
        && below.chars().all(is_of_name)
        && parameters.chars().all(|char| char.is_ascii_graphic() || char == ' ')
}

/// The answer to one call, with the time at which the host gave it.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Milliseconds since 1970, by the host's clock.
    pub unix_millis: u64,
    /// Files of output that was cut, as notices name them.
    pub kept: Vec<String>,
    /// What came of the call.
    pub outcome: Result<Output, Failure>,
}

impl Envelope {
    /// Puts an outcome into an envelope of this moment.
    #[must_use]
    pub fn new(outcome: Result<Output, Failure>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { unix_millis: u64::try_from(now.as_millis()).unwrap_or(u64::MAX), kept: Vec::new(), outcome }
    }

    /// The envelope as JSON: `harness_timestamp`, then `result` and `notices`, or `error`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("an envelope is plain data")
    }

    /// The exit code of a program that made this one call.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.outcome.as_ref().map_or_else(|failure| failure.kind.exit_code(), |_| 0)
    }
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("harness_timestamp", &Timestamp { source: "harness", unix_millis: self.unix_millis })?;
        match &self.outcome {
            Ok(output) => {
                map.serialize_entry("result", &output.result)?;
                if !output.content.is_empty() {
                    map.serialize_entry("content", &output.content.iter().map(Content::to_json).collect::<Vec<_>>())?;
                }
                if !output.notices.is_empty() {
                    map.serialize_entry("notices", &output.notices)?;
                }
            }
            Err(failure) => map.serialize_entry("error", &failure.to_json())?,
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Timestamp {
    source: &'static str,
    unix_millis: u64,
}

impl Failure {
    /// `kind`, `message`, and `hint` and `data` where there are any.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "kind": self.kind.name(), "message": self.message });
        if let Some(hint) = &self.hint {
            json["hint"] = json!(hint);
        }
        if let Some(data) = &self.data {
            json["data"] = (**data).clone();
        }
        json
    }

    /// The line that appears in a conversation instead of a result.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("Tool error: {}", self.message)
    }
}

impl Content {
    /// The part as MCP has it, but for the name of a link.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!({ "type": "text", "text": text }),
            Self::Image(media_type, bytes) => {
                json!({ "type": "image", "mimeType": media_type, "data": BASE64.encode(bytes) })
            }
            Self::Audio(media_type, bytes) => {
                json!({ "type": "audio", "mimeType": media_type, "data": BASE64.encode(bytes) })
            }
            Self::Link(uri) => json!({ "type": "resource_link", "uri": uri }),
        }
    }
}

/// A duration as a person writes it: `250ms`, `1.250s`, `7s`, `2m`, `2h`.
pub fn duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    match (seconds, millis) {
        (0, millis) => format!("{millis}ms"),
        (seconds, 0) if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        (seconds, 0) if seconds % 60 == 0 => format!("{}m", seconds / 60),
        (seconds, 0) => format!("{seconds}s"),
        (seconds, millis) => format!("{seconds}.{millis:03}s"),
    }
}

/// There is nothing of this name: what there is.
pub fn no_such<'k>(what: &str, name: &str, known: impl Iterator<Item = &'k str>) -> Failure {
    let shown = crate::text::sanitize::beginning(name, 64);
    let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    let hint = if known.is_empty() { "there is none".into() } else { format!("there is {}", known.join(", ")) };
    Failure::new(Kind::ExecutionFailed, format!("there is no {what} `{shown}`")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_a_person_writes_them() {
        let shown = [250, 1250, 7000, 120_000, 7_200_000].map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(shown, ["250ms", "1.250s", "7s", "2m", "2h"]);
    }
}
