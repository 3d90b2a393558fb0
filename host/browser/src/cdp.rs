//! The DevTools protocol over the browser's pipe: messages of JSON, each with a zero behind it.
//!
//! Commands are answered by their numbers, events go to whoever made the connection. Each command has a deadline: a page can hold an answer back
//! for as long as it likes.
//!
//! chromiumoxide 0.9 needs a loopback socket without a key, which other programs of the machine can open; a pipe has two ends. It has 111,000
//! generated lines for the whole protocol, 3 CPU minutes of each build, and some 25 methods are used here. Changed events of Chrome broke it twice.

use backend::{Input, Process, ProcessEvent};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Bytes of a message. A longer one is passed over; where it is an answer, the command has failed.
const MESSAGE_BYTES: usize = 64 << 20;
/// What the browser says on standard error, of which the end is kept.
const SAID_BYTES: usize = 2048;
/// How long it may take to end by itself once it was told to.
const GRACE: Duration = Duration::from_secs(5);

/// Names a target that the browser has attached to.
pub(super) type SessionId = Arc<str>;

/// Why a command has no answer.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The browser has ended, and what it said last.
    Ended(String),
    /// It did not answer in time.
    Slow(&'static str),
    /// It answers that it could not.
    Refused { method: &'static str, message: String },
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(said) if said.is_empty() => formatter.write_str("the browser has ended"),
            Self::Ended(said) => write!(formatter, "the browser has ended: {said}"),
            Self::Slow(method) => write!(formatter, "the browser did not answer `{method}` in time"),
            Self::Refused { method, message } => write!(formatter, "`{method}`: {message}"),
        }
    }
}

/// Something that happened in the browser.
pub(super) struct Event<'m> {
    pub(super) session: Option<&'m str>,
    pub(super) method: &'m str,
    params: &'m RawValue,
}

impl Event<'_> {
    /// What is known of it; none where it is not as it should be.
    pub(super) fn params<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.params.get()).ok()
    }
}

type Answer = Result<Box<RawValue>, String>;

/// A connection to a browser. It ends with the last of what holds it.
pub(super) struct Cdp {
    commands: mpsc::UnboundedSender<Vec<u8>>,
    state: Arc<State>,
    next: AtomicU64,
}

struct State {
    /// Those who wait for answers.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    ended: CancellationToken,
    said: Mutex<Vec<u8>>,
}

impl Cdp {
    /// Talks to a browser that was started, and lets go of what belongs to it when it has ended. `happened` is called for each event, in order, and
    /// must not block.
    pub(super) fn over(
        process: Box<dyn Process>,
        input: Input,
        kept: impl Send + 'static,
        happened: impl FnMut(&Event<'_>) + Send + 'static,
    ) -> Self {
        let state = State { waiting: Mutex::default(), ended: CancellationToken::new(), said: Mutex::default() };
        let state = Arc::new(state);
        let (commands, queue) = mpsc::unbounded_channel();
        let talk = talk(process, input, queue, state.clone(), happened);
        tokio::spawn(async move {
            talk.await;
            drop(kept);
        });
        Self { commands, state, next: AtomicU64::new(1) }
    }

    /// Whether the browser is there no more.
    pub(super) fn has_ended(&self) -> bool {
        self.state.ended.is_cancelled()
    }

    /// What it said last on standard error.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&self.state.said.lock()).trim().to_owned()
    }

    /// Returns once it has ended.
    pub(super) async fn ended(&self) {
        self.state.ended.cancelled().await;
    }

    /// Sends a command, and returns what it comes to.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        session: Option<&SessionId>,
        method: &'static str,
        params: Value,
        most: Duration,
    ) -> Result<T, Trouble> {
        let answer = self.send(session, method, params);
        let answered = tokio::select! {
            biased;
            answered = tokio::time::timeout(most, answer) => answered.map_err(|_| Trouble::Slow(method))?,
            () = self.ended() => return Err(Trouble::Ended(self.said())),
        };
        let answered = answered.map_err(|_| Trouble::Ended(self.said()))?;
        let result = answered.map_err(|message| Trouble::Refused { method, message })?;
        serde_json::from_str(result.get()).map_err(|error| Trouble::Refused { method, message: error.to_string() })
    }

    /// Sends a command whose answer nobody waits for.
    pub(super) fn tell(&self, session: Option<&SessionId>, method: &'static str, params: Value) {
        drop(self.send(session, method, params));
    }

    fn send(&self, session: Option<&SessionId>, method: &'static str, params: Value) -> oneshot::Receiver<Answer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.state.waiting.lock();
        // Those whose time was up have gone.
        waiting.retain(|_, sender| !sender.is_closed());
        waiting.insert(id, sender);
        drop(waiting);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(&**session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        // Where it has ended nobody answers.
        let _ = self.commands.send(bytes);
        receiver
    }
}

/// Carries messages both ways until the browser or the connection ends.
async fn talk(
    mut process: Box<dyn Process>,
    mut input: Input,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    state: Arc<State>,
    mut happened: impl FnMut(&Event<'_>) + Send,
) {
    let mut read = Read::default();
    let mut writing: (Vec<u8>, usize) = Default::default();
    loop {
        let rest = &writing.0[writing.1..];
        let is_idle = rest.is_empty();
        // Both at once: it may write before it has read all.
        tokio::select! {
            command = queue.recv(), if is_idle => match command {
                Some(command) => writing = (command, 0),
                None => break,
            },
            wrote = input.write(rest), if !is_idle => match wrote {
                Ok(bytes) => writing.1 += bytes,
                // What it says last is read.
                Err(_) => writing.1 = writing.0.len(),
            },
            event = process.next() => match event {
                Ok(ProcessEvent::Stdout(bytes)) => {
                    read.bytes.extend_from_slice(&bytes);
                    state.take(&mut read, &mut happened);
                }
                Ok(ProcessEvent::Stderr(bytes)) => state.note(&bytes),
                Ok(ProcessEvent::Exited(_)) | Err(_) => break,
            },
        }
    }
    state.ended.cancel();
    state.waiting.lock().clear();
    drop(input);
    // With the end of its pipe it ends, and writes what it keeps.
    let _ = tokio::time::timeout(GRACE, async {
        while !matches!(process.next().await, Ok(ProcessEvent::Exited(_)) | Err(_)) {}
    })
    .await;
    process.end().await;
}

impl State {
    /// Takes the whole messages from what was read.
    fn take(&self, read: &mut Read, happened: &mut impl FnMut(&Event<'_>)) {
        let mut begin = 0;
        while let Some(end) = read.bytes[read.looked..].iter().position(|byte| *byte == 0) {
            let end = read.looked + end;
            match std::mem::take(&mut read.is_passed_over) {
                true => {}
                false => self.hear(&read.bytes[begin..end], happened),
            }
            (begin, read.looked) = (end + 1, end + 1);
        }
        read.bytes.drain(..begin);
        if read.bytes.len() > MESSAGE_BYTES {
            if !read.is_passed_over {
                self.too_long(&read.bytes);
            }
            read.is_passed_over = true;
            read.bytes.clear();
        }
        read.looked = read.bytes.len();
        // A large page must not leave its size behind.
        if read.bytes.is_empty() {
            read.bytes.shrink_to(64 << 10);
        }
    }

    /// Tells whoever waits for an answer that begins so that it has none: the browser writes the number first.
    fn too_long(&self, begin: &[u8]) {
        let head = String::from_utf8_lossy(&begin[..begin.len().min(32)]);
        let digits = head.strip_prefix("{\"id\":").map(|rest| rest.split(|char: char| !char.is_ascii_digit()).next());
        let waits = digits.flatten().and_then(|id| self.waiting.lock().remove(&id.parse().ok()?));
        if let Some(waits) = waits {
            let _ = waits.send(Err(format!("the answer has more than {} MiB", MESSAGE_BYTES >> 20)));
        }
    }

    fn hear(&self, message: &[u8], happened: &mut impl FnMut(&Event<'_>)) {
        let text = String::from_utf8_lossy(message);
        let text = mended(&text);
        let Ok(message) = serde_json::from_str::<Message<'_>>(&text) else { return };
        match (message.id, message.method) {
            (Some(id), _) => {
                let Some(waits) = self.waiting.lock().remove(&id) else { return };
                let answer = match (message.result, message.error) {
                    (Some(result), None) => Ok(result.to_owned()),
                    (_, Some(error)) => Err(error.message),
                    (None, None) => Err("it answers nothing".into()),
                };
                let _ = waits.send(answer);
            }
            (None, Some(method)) => {
                let params = message.params.unwrap_or(RawValue::NULL);
                happened(&Event { session: message.session.as_deref(), method: &method, params });
            }
            (None, None) => {}
        }
    }

    fn note(&self, bytes: &[u8]) {
        let mut said = self.said.lock();
        said.extend_from_slice(bytes);
        let over = said.len().saturating_sub(SAID_BYTES);
        said.drain(..over);
    }
}

/// What was read and is no whole message yet.
#[derive(Default)]
struct Read {
    bytes: Vec<u8>,
    /// As far as this there is no end of one.
    looked: usize,
    /// It is the rest of one that is too long.
    is_passed_over: bool,
}

#[derive(Deserialize)]
struct Message<'m> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'m, str>>,
    #[serde(borrow)]
    params: Option<&'m RawValue>,
    #[serde(borrow)]
    result: Option<&'m RawValue>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// The same with U+FFFD in place of halves of surrogate pairs: texts of pages may have such, and are then no text for anybody else.
fn mended(text: &str) -> Cow<'_, str> {
    let is_escaped =
        |place: usize| text.as_bytes()[..place].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let unit = |place: usize| {
        let digits = text.get(place..place + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xD800..0xE000).contains(unit))
    };
    let mut odd = Vec::new();
    let mut next = 0;
    for (place, _) in text.match_indices("\\u") {
        let Some(first) = unit(place).filter(|_| place >= next && !is_escaped(place)) else { continue };
        match unit(place + 6) {
            Some(second) if first < 0xDC00 && second >= 0xDC00 => next = place + 12,
            _ => odd.push(place),
        }
    }
    if odd.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut whole = text.to_owned();
    for place in odd {
        whole.replace_range(place..place + 6, "\\ufffd");
    }
    Cow::Owned(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_are_mended() {
        for (text, expected) in [
            (r#""a\ud83d\ude00b""#, r#""a\ud83d\ude00b""#),
            (r#""a\ud83db""#, r#""a\ufffdb""#),
            (r#""a\ude00\ud83d""#, r#""a\ufffd\ufffd""#),
            (r#""a\\ud83d""#, r#""a\\ud83d""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""ü\uD83""#, r#""ü\uD83""#),
        ] {
            assert_eq!(mended(text), expected);
        }
    }
}
