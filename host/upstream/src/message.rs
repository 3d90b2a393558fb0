//! What servers and this host say to each other: messages of JSON-RPC, and the bounds that hold for those of a server, however it is reached.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Bytes of a message. A longer one is passed over; where it is an answer, its call has failed.
pub(super) const MESSAGE_BYTES: usize = 4 << 20;
/// Messages of a server that nobody asked for and that make no sense, before it is ended.
pub(super) const MOST_ODD: u64 = 100;
/// Messages within a second that are no answers. Then nothing is read until it is over.
const MOST_UNASKED: u32 = 200;
/// Reports of progress of a call that are handed on, within a second.
const MOST_PROGRESS: u32 = 10;
/// Bytes of the number of a server's own request.
pub(super) const ID_BYTES: usize = 128;
/// Characters of an error that is none.
const ODD_CHARS: usize = 2048;
/// The reason of whoever does not know a method.
pub(super) const NO_METHOD: i64 = -32601;
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A message of a server.
#[derive(Deserialize)]
pub(super) struct Message<'m> {
    #[serde(borrow)]
    pub(super) id: Option<&'m RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'m, str>>,
    #[serde(borrow)]
    pub(super) params: Option<&'m RawValue>,
    #[serde(borrow)]
    result: Option<&'m RawValue>,
    #[serde(borrow)]
    error: Option<&'m RawValue>,
}

/// What a server answers.
pub(super) enum Answer {
    Result(Box<RawValue>),
    Error(Refusal),
    /// More than [`MESSAGE_BYTES`].
    TooLong,
}

/// A server's word against a request.
#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: Value,
}

/// What a server says while a request waits for its answer.
pub(super) enum Meanwhile {
    Progress(Progress),
    /// It wants to know something; both as it wrote them.
    Asks {
        id: Box<RawValue>,
        params: Box<RawValue>,
    },
}

/// How far a call is, as its server says.
#[derive(Debug, Deserialize)]
pub(super) struct Progress {
    #[serde(rename = "progressToken")]
    pub(super) token: u64,
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

impl Message<'_> {
    /// The number of one of our requests, where it is an answer.
    pub(super) fn answers(&self) -> Option<u64> {
        self.id?.get().parse().ok()
    }

    /// What it answers.
    pub(super) fn answer(&self) -> Answer {
        match (self.result, self.error) {
            (Some(result), None) => Answer::Result(result.to_owned()),
            (_, Some(error)) => Answer::Error(Refusal::of(error)),
            (None, None) => Answer::Error(Refusal::in_words(0, "it answers nothing")),
        }
    }

    /// Whether it is a word against a request.
    pub(super) fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// How far a call is, where it says so.
    pub(super) fn progress(&self) -> Option<Progress> {
        serde_json::from_str(self.params?.get()).ok()
    }
}

impl Refusal {
    pub(super) fn in_words(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// Whatever it looks like, it is an answer.
    fn of(error: &RawValue) -> Self {
        let odd = || Self::in_words(0, error.get().chars().take(ODD_CHARS).collect::<String>());
        serde_json::from_str(error.get()).unwrap_or_else(|_| odd())
    }
}

/// A request; `params` are JSON.
pub(super) fn request(id: u64, method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}")
}

/// What is not answered.
pub(super) fn notification(method: &str, params: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}")
}

/// That nobody waits for the answer to a request any more.
pub(super) fn cancelled(id: u64) -> String {
    notification("notifications/cancelled", &json!({ "requestId": id, "reason": "nobody waits for it any more" }))
}

/// The answer to what a server wants to know.
pub(super) fn told(id: &RawValue, answer: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{answer}}}", id.get())
}

/// The answer to a server's own request: that it is heard, or that there is no such method.
pub(super) fn reply(id: &RawValue, is_ping: bool) -> String {
    let answer = match is_ping {
        true => "\"result\":{}".to_owned(),
        false => format!("\"error\":{}", json!({ "code": NO_METHOD, "message": "this client has no such method" })),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{answer}}}", id.get())
}

/// How much is said within a second.
pub(super) struct Rate {
    since: Instant,
    said: u32,
}

impl Rate {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), said: 0 }
    }

    /// Counts one; returns how many these are.
    pub(super) fn count(&mut self) -> u32 {
        if self.since.elapsed() >= SECOND {
            *self = Self::new();
        }
        self.said += 1;
        self.said
    }

    /// Counts a report of progress, and says whether it is handed on.
    pub(super) fn has_room(&mut self) -> bool {
        self.count() <= MOST_PROGRESS
    }

    /// Until when nothing is read, where too much was said.
    pub(super) fn rests(&self) -> Option<Instant> {
        (self.said > MOST_UNASKED).then(|| self.since + SECOND)
    }
}
