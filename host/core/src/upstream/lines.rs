//! JSON-RPC in lines, as servers speak it on their standard input and output.
//!
//! Each line is bounded, in length and in number; what a server says without having been asked is counted, and more than a server has reason to say
//! ends it. Answers are handed on as they came: whoever asked reads them.

use crate::backend::{Input, Process, ProcessEvent};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Bytes of a line. A longer one is passed over; where it is an answer, its call has failed.
pub(super) const LINE_BYTES: usize = 4 << 20;
/// Of a line that is too long, what is kept of its beginning and its end: servers write the number at one of both.
const EDGE_BYTES: usize = 512;
/// Lines of a server that nobody asked for and that make no sense, before it is ended.
const MOST_ODD: u64 = 100;
/// Lines within a second that are no answers. Then nothing is read until it is over.
const MOST_UNASKED: u32 = 200;
/// Reports of progress of a call that are handed on, within a second.
const MOST_PROGRESS: u32 = 10;
/// Bytes that a server has not read yet; who has more for it waits for another time.
const MOST_UNREAD: usize = 16 << 20;
/// Bytes of the number of a server's own request.
const ID_BYTES: usize = 128;
/// What a server says on standard error, of which the end is kept.
const SAID_BYTES: usize = 2048;
/// How long it may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(2);

/// What a server answers.
pub(super) enum Answer {
    Result(Box<RawValue>),
    Error(Refusal),
    /// More than [`LINE_BYTES`].
    TooLong,
}

/// A server's word against a request.
#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}

impl Refusal {
    /// Whatever it looks like, it is an answer.
    fn of(error: &RawValue) -> Self {
        let odd = || Self { code: 0, message: error.get().chars().take(SAID_BYTES).collect() };
        serde_json::from_str(error.get()).unwrap_or_else(|_| odd())
    }
}

/// How far a call is, as its server says.
#[derive(Debug, Deserialize)]
pub(super) struct Progress {
    #[serde(rename = "progressToken")]
    token: u64,
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// Lines to and from a server. It ends with the last of what holds them.
pub(super) struct Lines {
    queue: mpsc::UnboundedSender<Vec<u8>>,
    state: Arc<State>,
}

/// Also one that does not read what it is sent.
impl Drop for Lines {
    fn drop(&mut self) {
        self.state.ended.cancel();
    }
}

/// A request on its way.
pub(super) struct Asked {
    pub(super) id: u64,
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) progress: mpsc::Receiver<Progress>,
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    progress: mpsc::Sender<Progress>,
    /// Since when, and how many.
    told: (Instant, u32),
}

struct State {
    /// Those who wait for answers.
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// The number of the next request.
    next: AtomicU64,
    ended: CancellationToken,
    /// Why it was ended, where it did not end by itself.
    why: Mutex<Option<String>>,
    said: Mutex<Vec<u8>>,
    /// Bytes on their way to it.
    unread: AtomicUsize,
    /// Lines that make no sense, answers that nobody waits for, and requests that were refused.
    odd: AtomicU64,
    /// It has said that what it offers has changed.
    has_changed: AtomicBool,
}

impl Lines {
    /// Talks to a server that was started, and lets go of what belongs to it when it has ended.
    pub(super) fn over(process: Box<dyn Process>, input: Input, kept: impl Send + 'static) -> Self {
        let state = Arc::new(State {
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            ended: CancellationToken::new(),
            why: Mutex::default(),
            said: Mutex::default(),
            unread: AtomicUsize::new(0),
            odd: AtomicU64::new(0),
            has_changed: AtomicBool::new(false),
        });
        let (queue, lines) = mpsc::unbounded_channel();
        let talk = talk(process, input, lines, state.clone(), queue.downgrade());
        tokio::spawn(async move {
            talk.await;
            drop(kept);
        });
        Self { queue, state }
    }

    /// Sends a request. `params` are JSON, whose end a token for reports of progress may be put before.
    pub(super) fn ask(&self, method: &str, params: impl FnOnce(u64) -> String) -> Asked {
        let id = self.state.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let (reports, progress) = mpsc::channel(4);
        let waits = Waiting { answer: sender, progress: reports, told: (Instant::now(), 0) };
        self.state.waiting.lock().insert(id, waits);
        let params = params(id);
        self.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"));
        // Whoever waits would wait for ever.
        if self.has_ended() {
            self.forget(id);
        }
        Asked { id, answer, progress }
    }

    /// Sends what is not answered.
    pub(super) fn tell(&self, method: &str, params: &Value) {
        self.send(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n"));
    }

    fn send(&self, line: String) {
        self.state.unread.fetch_add(line.len(), Ordering::Relaxed);
        // Where it has ended nobody answers.
        let _ = self.queue.send(line.into_bytes());
    }

    /// Whether it has not read what it was sent for so long that there is no room for more.
    pub(super) fn is_full(&self) -> bool {
        self.state.unread.load(Ordering::Relaxed) > MOST_UNREAD
    }

    /// Somebody waits for this answer; dropped, nobody does any more.
    pub(super) fn waits(&self, id: u64) -> Waits<'_> {
        Waits { lines: self, id }
    }

    fn forget(&self, id: u64) {
        self.state.waiting.lock().remove(&id);
    }

    /// Requests that wait for their answers.
    pub(super) fn in_flight(&self) -> usize {
        self.state.waiting.lock().len()
    }

    /// Whether it is there no more.
    pub(super) fn has_ended(&self) -> bool {
        self.state.ended.is_cancelled()
    }

    /// Why it ended: what it was ended for, or what it said last.
    pub(super) fn why_ended(&self) -> String {
        let said = String::from_utf8_lossy(&self.state.said.lock()).trim().to_owned();
        match self.state.why.lock().clone() {
            Some(why) => why,
            None if said.is_empty() => "it has ended".into(),
            None => format!("it has ended: {said}"),
        }
    }

    /// Whether it has said that what it offers has changed.
    pub(super) fn has_changed(&self) -> bool {
        self.state.has_changed.load(Ordering::Relaxed)
    }

    /// Takes that as known; dropped before that is so, it is not.
    pub(super) fn take_change(&self) -> Change<'_> {
        self.state.has_changed.store(false, Ordering::Relaxed);
        Change(Some(&self.state.has_changed))
    }
}

/// A change that somebody looks at.
pub(super) struct Change<'l>(Option<&'l AtomicBool>);

impl Change<'_> {
    pub(super) fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|changed| changed.store(true, Ordering::Relaxed));
    }
}

/// A request whose answer somebody waits for. Dropped before it came, it cancels the request at the server.
pub(super) struct Waits<'l> {
    lines: &'l Lines,
    id: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if self.lines.state.waiting.lock().remove(&self.id).is_some() && !self.lines.has_ended() {
            let reason = "nobody waits for it any more";
            self.lines.tell("notifications/cancelled", &json!({ "requestId": self.id, "reason": reason }));
        }
    }
}

/// Carries lines both ways until the server or the connection ends.
async fn talk(
    mut process: Box<dyn Process>,
    mut input: Input,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    state: Arc<State>,
    answers: mpsc::WeakUnboundedSender<Vec<u8>>,
) {
    let mut reading = Reading::default();
    let mut unasked = (Instant::now(), 0);
    let mut writing: (Vec<u8>, usize) = Default::default();
    let mut rests = None;
    loop {
        let rest = &writing.0[writing.1..];
        let is_idle = rest.is_empty();
        // Both at once: it may write before it has read all.
        tokio::select! {
            line = queue.recv(), if is_idle => match line {
                Some(line) => writing = (line, 0),
                None => break,
            },
            wrote = input.write(rest), if !is_idle => match wrote {
                Ok(bytes) => {
                    writing.1 += bytes;
                    state.unread.fetch_sub(bytes, Ordering::Relaxed);
                }
                // It reads no more. What it says last is heard.
                Err(_) => break,
            },
            () = pause(rests), if rests.is_some() => rests = None,
            event = process.next(), if rests.is_none() => match event {
                Ok(ProcessEvent::Stdout(bytes)) => {
                    reading.take(&bytes, |line| {
                        if !state.hear(line, &answers) {
                            unasked.1 += 1;
                        }
                    });
                    if unasked.0.elapsed() >= SECOND {
                        unasked = (Instant::now(), 0);
                    }
                    rests = (unasked.1 > MOST_UNASKED).then(|| unasked.0 + SECOND);
                }
                Ok(ProcessEvent::Stderr(bytes)) => state.note(&bytes),
                Ok(ProcessEvent::Exited(_)) | Err(_) => break,
            },
            () = state.ended.cancelled() => break,
        }
    }
    if state.ended.is_cancelled() {
        // Who ended it hears no more of it.
        state.waiting.lock().clear();
    }
    // No call begins any more.
    state.ended.cancel();
    drop(input);
    // With the end of its input it ends.
    let _ = tokio::time::timeout(GRACE, async {
        loop {
            match process.next().await {
                Ok(ProcessEvent::Stdout(bytes)) => reading.take(&bytes, |line| _ = state.hear(line, &answers)),
                Ok(ProcessEvent::Stderr(bytes)) => state.note(&bytes),
                Ok(ProcessEvent::Exited(_)) | Err(_) => break,
            }
        }
    })
    .await;
    state.waiting.lock().clear();
    process.end().await;
}

const SECOND: Duration = Duration::from_secs(1);

async fn pause(until: Option<Instant>) {
    if let Some(until) = until {
        tokio::time::sleep_until(until.into()).await;
    }
}

/// What was read and is no whole line yet.
#[derive(Default)]
struct Reading {
    bytes: Vec<u8>,
    /// It is of a line that is too long: its beginning, and its end so far.
    passed: Option<(Vec<u8>, Vec<u8>)>,
}

/// A line of a server.
enum Line<'l> {
    Whole(&'l [u8]),
    TooLong { begin: &'l [u8], end: &'l [u8] },
}

impl Reading {
    /// Hands on the lines that end in these bytes.
    fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (piece, rest) = (&bytes[..end], &bytes[end + 1..]);
            self.add(piece);
            match self.passed.take() {
                Some((begin, end)) => each(Line::TooLong { begin: &begin, end: &end }),
                None => each(Line::Whole(&self.bytes)),
            }
            self.bytes.clear();
            // A large answer must not leave its size behind.
            self.bytes.shrink_to(64 << 10);
            bytes = rest;
        }
        self.add(bytes);
    }

    fn add(&mut self, piece: &[u8]) {
        if let Some((_, end)) = &mut self.passed {
            end.extend_from_slice(&piece[piece.len().saturating_sub(EDGE_BYTES)..]);
            let over = end.len().saturating_sub(EDGE_BYTES);
            end.drain(..over);
            return;
        }
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() > LINE_BYTES {
            let edge = |bytes: &[u8]| bytes.to_vec();
            let whole = std::mem::take(&mut self.bytes);
            self.passed = Some((edge(&whole[..EDGE_BYTES]), edge(&whole[whole.len() - EDGE_BYTES..])));
        }
    }
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow)]
    params: Option<&'m RawValue>,
    #[serde(borrow)]
    result: Option<&'m RawValue>,
    #[serde(borrow)]
    error: Option<&'m RawValue>,
}

impl State {
    /// Takes a line; whether somebody waited for it.
    fn hear(&self, line: Line<'_>, answers: &mpsc::WeakUnboundedSender<Vec<u8>>) -> bool {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { begin, end } => {
                let waits = id_in(begin, end).and_then(|id| self.waiting.lock().remove(&id));
                let Some(waits) = waits else { return self.is_odd() };
                let _ = waits.answer.send(Answer::TooLong);
                return true;
            }
        };
        if line.trim_ascii().is_empty() {
            return false;
        }
        let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else { return self.is_odd() };
        match (message.id, message.method) {
            (Some(id), None) => {
                // Ours are numbers.
                let waits = id.get().parse().ok().and_then(|id: u64| self.waiting.lock().remove(&id));
                let Some(waits) = waits else { return !self.was_given(id) && self.is_odd() };
                let answer = match (message.result, message.error) {
                    (Some(result), None) => Answer::Result(result.to_owned()),
                    (_, Some(error)) => Answer::Error(Refusal::of(error)),
                    (None, None) => Answer::Error(Refusal { code: 0, message: "it answers nothing".into() }),
                };
                let _ = waits.answer.send(answer);
                true
            }
            (Some(id), Some(method)) => {
                let is_ping = method == "ping";
                let answer = match is_ping {
                    true => "\"result\":{}".to_owned(),
                    false => {
                        format!("\"error\":{}", json!({ "code": -32601, "message": "this client has no such method" }))
                    }
                };
                if id.get().len() > ID_BYTES {
                    return self.is_odd();
                }
                if self.unread.load(Ordering::Relaxed) > MOST_UNREAD {
                    self.end("it was ended, as it does not read what it is sent");
                } else if let Some(answers) = answers.upgrade() {
                    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{answer}}}\n", id.get());
                    self.unread.fetch_add(line.len(), Ordering::Relaxed);
                    let _ = answers.send(line.into_bytes());
                }
                if is_ping { false } else { self.is_odd() }
            }
            (None, Some(method)) => {
                match &*method {
                    "notifications/progress" => self.report(message.params),
                    "notifications/tools/list_changed" => self.has_changed.store(true, Ordering::Relaxed),
                    _ => {}
                }
                false
            }
            (None, None) => self.is_odd(),
        }
    }

    fn report(&self, params: Option<&RawValue>) {
        let Some(report) = params.and_then(|params| serde_json::from_str::<Progress>(params.get()).ok()) else {
            return;
        };
        let mut waiting = self.waiting.lock();
        let Some(waits) = waiting.get_mut(&report.token) else { return };
        if waits.told.0.elapsed() >= SECOND {
            waits.told = (Instant::now(), 0);
        }
        waits.told.1 += 1;
        if waits.told.1 <= MOST_PROGRESS {
            let _ = waits.progress.try_send(report);
        }
    }

    /// Whether a request had this number: an answer may come when nobody waits for it any more.
    fn was_given(&self, id: &RawValue) -> bool {
        id.get().parse().is_ok_and(|id: u64| (1..self.next.load(Ordering::Relaxed)).contains(&id))
    }

    /// Counts what makes no sense. Answers false, as nobody waited for it.
    fn is_odd(&self) -> bool {
        if self.odd.fetch_add(1, Ordering::Relaxed) + 1 == MOST_ODD {
            self.end("it was ended, as it said too much that makes no sense");
        }
        false
    }

    fn end(&self, why: &str) {
        self.why.lock().get_or_insert_with(|| why.to_owned());
        self.ended.cancel();
    }

    fn note(&self, bytes: &[u8]) {
        let mut said = self.said.lock();
        said.extend_from_slice(bytes);
        let over = said.len().saturating_sub(SAID_BYTES);
        said.drain(..over);
    }
}

/// The number of an answer of which the edges are known: it stands before what is answered, or behind.
fn id_in(begin: &[u8], end: &[u8]) -> Option<u64> {
    let number = |text: &str| {
        let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let (begin, end) = (String::from_utf8_lossy(begin), String::from_utf8_lossy(end));
    // Before the result alone: within it, the server's own texts could hold anything.
    let head = begin.split("\"result\"").next().unwrap_or_default();
    let after = |text: &str| text.rsplit_once("\"id\":").and_then(|(_, rest)| number(rest));
    after(head).or_else(|| after(&end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut reading, mut all) = (Reading::default(), Vec::new());
        for piece in pieces {
            reading.take(piece, |line| {
                all.push(match line {
                    Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                    Line::TooLong { begin, end } => format!("{:?}", id_in(begin, end)),
                });
            });
        }
        all
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        assert_eq!(lines(&[b"a", b"b\nc\n", b"\n", b"d"]), ["ab", "c", ""]);
    }

    #[test]
    fn of_a_line_that_is_too_long_the_number_is_known() {
        let long = vec![b'x'; LINE_BYTES];
        let before = [b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"".as_slice(), &long, b"\"}\n", b"next\n"].concat();
        assert_eq!(lines(&[&before]), ["Some(7)", "next"]);
        let (one, other) = before.split_at(LINE_BYTES / 2);
        assert_eq!(lines(&[one, other]), ["Some(7)", "next"]);
        let behind = [b"{\"result\":\"\\\"id\\\":1 ".as_slice(), &long, b"\",\"jsonrpc\":\"2.0\",\"id\":8}\n"].concat();
        assert_eq!(lines(&[&behind]), ["Some(8)"]);
        assert_eq!(lines(&[&long, &long, b"\n"]), ["None"]);
    }
}
