//! JSON-RPC in lines, as servers speak it on their standard input and output.
//!
//! Each line is a message (`message.rs`), bounded in length (`reading.rs`) and in number; what a server says without having been asked is counted,
//! and more than a server has reason to say ends it. Answers are handed on as they came: whoever asked reads them.

use super::elicit;
use super::message::{Answer, ID_BYTES, MOST_ODD, Meanwhile, Message, Rate, cancelled, notification, reply, request};
use super::outgoing::Outgoing;
use super::reading::{Line, Reading, id_in};
use super::wire::{Request, Unanswered, Via};
use backend::{Input, Process, ProcessEvent};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Bytes that a server has not read yet; who has more for it waits for another time.
const MOST_UNREAD: usize = 16 << 20;
/// What a server says on standard error, of which the end is kept.
const SAID_BYTES: usize = 2048;
/// Reports and questions of a call that were not heard yet; further reports are left out.
const UNHEARD: usize = 4 + elicit::MOST;
/// How long it may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(1);

/// Lines to and from a server. It ends with the last of what holds them.
pub(super) struct Lines {
    state: Arc<State>,
}

/// Also one that does not read what it is sent.
impl Drop for Lines {
    fn drop(&mut self) {
        self.state.ended.cancel();
    }
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    meanwhile: mpsc::Sender<Meanwhile>,
    told: Rate,
    /// The server may ask something in this call, and how much it still may.
    may_be_asked: bool,
    questions: usize,
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
    outgoing: Outgoing,
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
            outgoing: Outgoing::new(input),
            odd: AtomicU64::new(0),
            has_changed: AtomicBool::new(false),
        });
        let talk = talk(process, state.clone());
        tokio::spawn(async move {
            talk.await;
            drop(kept);
        });
        Self { state }
    }

    /// As [`super::wire::Wire::ask`] does.
    pub(super) async fn ask(
        &self,
        asked: Request<'_>,
        params: impl FnOnce(u64) -> String,
        via: &Via<'_>,
    ) -> Result<Box<RawValue>, Unanswered> {
        if self.has_ended() {
            return Err(Unanswered::Ended { why: self.why_ended(), was_sent: false });
        }
        if self.state.outgoing.unread() > MOST_UNREAD {
            return Err(Unanswered::Busy);
        }
        let id = self.state.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let (said, meanwhile) = mpsc::channel(UNHEARD);
        let (may_be_asked, questions) = (asked.questions > 0, asked.questions);
        let waits = Waiting { answer: sender, meanwhile: said, told: Rate::new(), may_be_asked, questions };
        self.state.waiting.lock().insert(id, waits);
        let _waits = Waits { lines: self, id };
        self.state.outgoing.say(&request(id, asked.method, &params(id)));
        // Whoever waits would wait for ever.
        if self.has_ended() {
            self.state.waiting.lock().remove(&id);
        }
        let reply = |said: String| {
            self.state.outgoing.say(&said);
            ready(())
        };
        match via.waited(answer, meanwhile, asked.most, reply).await {
            None => Err(Unanswered::Late),
            Some(Ok(answer)) => answer.whole(),
            Some(Err(_)) => Err(Unanswered::Ended { why: self.why_ended(), was_sent: true }),
        }
    }

    /// Sends what is not answered.
    pub(super) fn tell(&self, method: &str, params: &Value) {
        self.state.outgoing.say(&notification(method, params));
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

/// A request whose answer somebody waits for.
struct Waits<'l> {
    lines: &'l Lines,
    id: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if self.lines.state.waiting.lock().remove(&self.id).is_some() && !self.lines.has_ended() {
            self.lines.state.outgoing.say(&cancelled(self.id));
        }
    }
}

/// Carries lines both ways until the server or the connection ends.
async fn talk(mut process: Box<dyn Process>, state: Arc<State>) {
    let mut reading = Reading::default();
    let mut unasked = Rate::new();
    let mut rests = None;
    let mut flow = std::pin::pin!(state.outgoing.flow());
    loop {
        // Both at once: it may write before it has read all.
        tokio::select! {
            // It reads no more. What it says last is heard.
            _ = &mut flow => break,
            () = pause(rests), if rests.is_some() => rests = None,
            event = process.next(), if rests.is_none() => match event {
                Ok(ProcessEvent::Stdout(bytes)) => {
                    reading.take(&bytes, |line| {
                        if !state.hear(line) {
                            unasked.count();
                        }
                    });
                    rests = unasked.rests();
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
    state.outgoing.close();
    // With the end of its input it ends.
    let _ = tokio::time::timeout(GRACE, async {
        loop {
            match process.next().await {
                Ok(ProcessEvent::Stdout(bytes)) => reading.take(&bytes, |line| _ = state.hear(line)),
                Ok(ProcessEvent::Stderr(bytes)) => state.note(&bytes),
                Ok(ProcessEvent::Exited(_)) | Err(_) => break,
            }
        }
    })
    .await;
    state.waiting.lock().clear();
    process.end().await;
}

async fn pause(until: Option<Instant>) {
    if let Some(until) = until {
        tokio::time::sleep_until(until.into()).await;
    }
}

impl State {
    /// Takes a line; whether somebody waited for it.
    fn hear(&self, line: Line<'_>) -> bool {
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
        match (message.id, message.method.as_deref()) {
            (Some(id), None) => {
                // Ours are numbers.
                let waits = message.answers().and_then(|id| self.waiting.lock().remove(&id));
                let Some(waits) = waits else { return !self.was_given(id) && self.is_odd() };
                let _ = waits.answer.send(message.answer());
                true
            }
            (Some(id), Some(method)) => {
                let is_ping = method == "ping";
                if id.get().len() > ID_BYTES {
                    return self.is_odd();
                }
                if method == elicit::METHOD && self.asks(id, message.params) {
                    return false;
                }
                if self.outgoing.unread() > MOST_UNREAD {
                    self.end("it was ended, as it does not read what it is sent");
                } else {
                    self.outgoing.say(&reply(id, is_ping));
                }
                if is_ping { false } else { self.is_odd() }
            }
            (None, Some(method)) => {
                match method {
                    "notifications/progress" => self.report(&message),
                    "notifications/tools/list_changed"
                    | "notifications/prompts/list_changed"
                    | "notifications/resources/list_changed" => self.has_changed.store(true, Ordering::Relaxed),
                    _ => {}
                }
                false
            }
            (None, None) => self.is_odd(),
        }
    }

    fn report(&self, message: &Message<'_>) {
        let Some(report) = message.progress() else { return };
        let mut waiting = self.waiting.lock();
        let Some(waits) = waiting.get_mut(&report.token) else { return };
        // Questions have room left.
        if waits.told.has_room() && waits.meanwhile.capacity() > elicit::MOST {
            let _ = waits.meanwhile.try_send(Meanwhile::Progress(report));
        }
    }

    /// Hands on what it wants to know, where it is clear for which call; whether that is so.
    fn asks(&self, id: &RawValue, params: Option<&RawValue>) -> bool {
        let mut waiting = self.waiting.lock();
        let mut calls = waiting.values_mut().filter(|waits| waits.may_be_asked);
        let (Some(call), None, Some(params)) = (calls.next(), calls.next(), params) else { return false };
        if call.questions == 0 {
            return false;
        }
        let asks = Meanwhile::Asks { id: id.to_owned(), params: params.to_owned() };
        call.questions -= 1;
        call.meanwhile.try_send(asks).is_ok()
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
