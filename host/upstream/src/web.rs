//! Servers over HTTP ("streamable HTTP"): each message is a request (`link.rs`), and its answer a message or a stream of events (`events.rs`).
//!
//! No redirect is followed. A stream that breaks off is taken up again where the server has named its place and the era of the protocol knows
//! that; a session that the server has forgotten is over, and whoever calls next greets it anew.

use super::elicit;
use super::events::{Event, Events};
use super::link::{EVENTS, JSON, Link, is_events};
use super::listing::shown;
use super::message::{
    Answer, ID_BYTES, MESSAGE_BYTES, MOST_ODD, Message, Rate, Refusal, cancelled, notification, reply, request,
};
use super::params::encoded;
use super::questions::{OwnStream, PIECE_BYTES, Questions};
use super::wire::{Request, Unanswered, Via};
use base::envelope::{Failure, Kind};
use egress::OwnAnswer;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use policy::upstream::UpstreamGrant;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Bytes of an answer that says why there is none.
const REFUSAL_BYTES: usize = 64 << 10;
/// How often one stream is taken up again.
const RESUMES: usize = 8;

/// A server over HTTP. Its session ends with it.
pub(super) struct Web {
    link: Arc<Link>,
    /// The number of the next request.
    next: AtomicU64,
    in_flight: AtomicUsize,
    /// Messages that make no sense, and requests that were refused.
    odd: AtomicU64,
    /// Why it is over.
    over: Mutex<Option<String>>,
    questions: Questions,
    own: tokio::sync::Mutex<OwnStream>,
}

impl Web {
    pub(super) fn new(link: Link) -> Self {
        Self {
            link: Arc::new(link),
            next: AtomicU64::new(1),
            in_flight: AtomicUsize::new(0),
            odd: AtomicU64::new(0),
            over: Mutex::default(),
            questions: Questions::default(),
            own: tokio::sync::Mutex::default(),
        }
    }

    /// Asks, and waits for the answer; reports of progress are handed on meanwhile. Dropped before there is an answer, it ends the stream, and in
    /// the older era it cancels the request at the server.
    pub(super) async fn ask(
        &self,
        asked: Request<'_>,
        params: impl FnOnce(u64) -> String,
        via: &Via<'_>,
    ) -> Result<Box<RawValue>, Unanswered> {
        if let Some(why) = self.over.lock().clone() {
            return Err(Unanswered::Ended { why, was_sent: false });
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted::new(&self.in_flight);
        let open = (asked.questions > 0).then(|| self.questions.open(id));
        // What nobody sends to is never heard.
        let (questions, _open) = open.map_or_else(|| (mpsc::channel(1).1, None), |(said, open)| (said, Some(open)));
        let unfinished = Unfinished { link: &self.link, grant: via.grant, id, is_open: AtomicBool::new(false) };
        let mut headers = asked.headers;
        if self.link.is_modern() {
            headers.insert(METHOD, HeaderValue::from_static(asked.method));
            headers.extend(asked.about.and_then(encoded).map(|name| (NAME, name)));
        }
        let body = request(id, asked.method, &params(id));
        let answer = async {
            if asked.questions > 0 {
                self.own.lock().await.open(&self.link, &self.questions, via.grant).await;
            }
            unfinished.is_open.store(asked.method != "initialize", Ordering::Relaxed);
            self.answered(asked.method, id, body, headers, asked.may_have_acted, via).await
        };
        let reply = |said| self.reply(said, asked.most, via);
        let answered = via.waited(answer, questions, asked.most, reply).await.ok_or(Unanswered::Late)?;
        unfinished.done();
        answered?.whole()
    }

    /// Sends the answer to a question.
    async fn reply(&self, said: String, most: Duration, via: &Via<'_>) {
        let sent = self.link.send(Method::POST, said, HeaderMap::new(), via.grant);
        let answer = tokio::time::timeout(most, sent).await;
        if !answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.status.is_success())) {
            via.scope.guard.notice("an answer to a question of the server did not reach it".into());
        }
    }

    /// Sends a request, and reads what is answered to it.
    async fn answered(
        &self,
        method: &str,
        id: u64,
        body: String,
        headers: HeaderMap,
        may_have_acted: bool,
        via: &Via<'_>,
    ) -> Result<Answer, Unanswered> {
        let had_session = self.link.has_session();
        let lost = |failure| Unanswered::Lost(once_sent(failure, may_have_acted));
        let answer = self.link.post(body, headers, may_have_acted, via).await.map_err(lost)?;
        match answer.status {
            StatusCode::NOT_FOUND if had_session => Err(self.is_over("it has ended its session".into(), false)),
            status if status.is_success() => {
                if method == "initialize" {
                    self.link.begin_session(&answer.headers).map_err(lost)?;
                }
                self.read(answer, id, may_have_acted, via).await
            }
            _ => Err(refused(answer, may_have_acted).await),
        }
    }

    /// Says what is not answered.
    pub(super) async fn tell(&self, method: &str, params: &Value, via: &Via<'_>) -> Result<(), Failure> {
        self.link.post(notification(method, params), HeaderMap::new(), false, via).await.map(drop)
    }

    pub(super) fn speak(&self, protocol: Option<&str>) {
        self.link.speak(protocol);
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.over.lock().is_some()
    }

    pub(super) fn why_ended(&self) -> String {
        self.over.lock().clone().unwrap_or_default()
    }

    /// Nobody asks it any more. Who waits for an answer still gets that.
    fn is_over(&self, why: String, was_sent: bool) -> Unanswered {
        let why = self.over.lock().get_or_insert(why).clone();
        Unanswered::Ended { why, was_sent }
    }

    /// Counts what makes no sense.
    fn is_odd(&self) -> Result<(), Unanswered> {
        match self.odd.fetch_add(1, Ordering::Relaxed) + 1 < MOST_ODD {
            true => Ok(()),
            false => Err(self.is_over("it said too much that makes no sense".into(), true)),
        }
    }

    /// What was answered to a request.
    async fn read(
        &self,
        answer: OwnAnswer,
        id: u64,
        may_have_acted: bool,
        via: &Via<'_>,
    ) -> Result<Answer, Unanswered> {
        let lost = |failure| Unanswered::Lost(once_sent(failure, may_have_acted));
        match answer.media_type().as_str() {
            JSON => {
                let Some(whole) = answer.whole(MESSAGE_BYTES).await.map_err(lost)? else { return Ok(Answer::TooLong) };
                let message = serde_json::from_slice::<Message<'_>>(&whole).ok();
                let message = message.filter(|message| message.answers() == Some(id) && message.method.is_none());
                let nonsense = || lost(Failure::failed("its answer is not one of the protocol"));
                message.map(|message| message.answer()).ok_or_else(nonsense)
            }
            EVENTS => self.stream(answer, id, may_have_acted, via).await,
            "" => Err(lost(Failure::failed("its answer is empty"))),
            other => Err(lost(Failure::failed(format!("its answer is `{}` and not a message", shown(other))))),
        }
    }

    /// The answer from a stream of events, which is taken up again where it breaks off.
    async fn stream(
        &self,
        mut answer: OwnAnswer,
        id: u64,
        may_have_acted: bool,
        via: &Via<'_>,
    ) -> Result<Answer, Unanswered> {
        let mut events = Events::default();
        for _ in 0..=RESUMES {
            if let Some(answered) = self.heard(answer, &mut events, id, via).await? {
                return Ok(answered);
            }
            let Some(last) = events.resumes().filter(|_| !self.link.is_modern()) else { break };
            tokio::time::sleep(events.retry()).await;
            let again =
                self.link.send(Method::GET, String::new(), HeaderMap::from_iter([(LAST_EVENT, last)]), via.grant);
            match again.await {
                Ok(again) if is_events(&again) => answer = again,
                Ok(_) | Err(_) => break,
            }
        }
        let kind = if may_have_acted { Kind::OutcomeUnknown } else { Kind::Unavailable };
        Err(Unanswered::Lost(Failure::new(kind, "its answer broke off")))
    }

    /// Hears a stream to its end, or to the answer.
    async fn heard(
        &self,
        mut answer: OwnAnswer,
        events: &mut Events,
        id: u64,
        via: &Via<'_>,
    ) -> Result<Option<Answer>, Unanswered> {
        let (mut told, mut unasked) = (Rate::new(), Rate::new());
        events.begin();
        loop {
            let piece = match answer.piece().await {
                Ok(Some(piece)) => piece,
                Err(failure) if failure.kind == Kind::Limit => return Err(Unanswered::Lost(failure)),
                Ok(None) | Err(_) => return Ok(None),
            };
            for part in piece.chunks(PIECE_BYTES) {
                for event in events.take(part) {
                    let said = match event {
                        Event::Message(said) => said,
                        Event::TooLong => return Ok(Some(Answer::TooLong)),
                    };
                    let Ok(message) = serde_json::from_slice::<Message<'_>>(&said) else {
                        self.is_odd()?;
                        continue;
                    };
                    if message.method.is_none() && message.answers() == Some(id) {
                        return Ok(Some(message.answer()));
                    }
                    unasked.count();
                    match message.method.as_deref() {
                        Some("notifications/progress") if message.id.is_none() => {
                            let report = message.progress().filter(|report| report.token == id && told.has_room());
                            report.iter().for_each(|report| via.told(report));
                        }
                        _ => self.hear(&message, id, via).await?,
                    }
                    if let Some(rests) = unasked.rests() {
                        tokio::time::sleep_until(rests.into()).await;
                    }
                }
            }
        }
    }

    /// Hears what is neither the answer nor a report of progress.
    async fn hear(&self, message: &Message<'_>, call: u64, via: &Via<'_>) -> Result<(), Unanswered> {
        match (message.id, message.method.as_deref()) {
            (None, Some(_)) => Ok(()),
            (Some(_), Some(elicit::METHOD)) if self.questions.hand_on(message, Some(call)) => Ok(()),
            (Some(asked), Some(method)) if asked.get().len() <= ID_BYTES => {
                let is_ping = method == "ping";
                self.link.reply(reply(asked, is_ping), via.grant).await;
                if is_ping { Ok(()) } else { self.is_odd() }
            }
            (_, None) | (Some(_), Some(_)) => self.is_odd(),
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.link.end_session();
        }
    }
}

/// A request on its way. Dropped before it is answered, it is cancelled at the server, where the end of its stream does not say so.
struct Unfinished<'w> {
    link: &'w Arc<Link>,
    grant: &'w Arc<UpstreamGrant>,
    id: u64,
    /// It was sent, and is not answered.
    is_open: AtomicBool,
}

impl Unfinished<'_> {
    fn done(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.is_open.load(Ordering::Relaxed) && !self.link.is_modern() {
            self.link.part(Method::POST, cancelled(self.id), self.grant.clone());
        }
    }
}

/// Counts as long as it is there.
struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a request was refused, by what its answer says.
async fn refused(answer: OwnAnswer, may_have_acted: bool) -> Unanswered {
    let status = answer.status;
    if status.is_redirection() {
        let to = answer.headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("another place");
        let refusal = Failure::denied(format!("it redirects to `{}`, and no redirect is followed", shown(to)));
        return Unanswered::Lost(refusal.hint("name the address itself by `url`, if you trust it"));
    }
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
        let refusal = Failure::denied(format!("it refused the login (HTTP {status})"));
        return Unanswered::Lost(
            refusal.hint(
                "`headers` of its section can have a secret, such as `Authorization = \"Bearer ${secret:NAME}\"`",
            ),
        );
    }
    let word = answer.whole(REFUSAL_BYTES).await.ok().flatten().unwrap_or_default();
    let message = serde_json::from_slice::<Message<'_>>(&word).ok();
    if let Some(Answer::Error(refusal)) = message.filter(|message| message.is_error()).map(|message| message.answer()) {
        return Unanswered::Refused(refusal);
    }
    let words = format!("it answers with HTTP {status}");
    match status {
        // Whatever stands before it has lost the answer.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT if may_have_acted => {
            Unanswered::Lost(Failure::new(Kind::OutcomeUnknown, words))
        }
        StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::TOO_MANY_REQUESTS => Unanswered::Lost(Failure::new(Kind::Unavailable, words)),
        status => Unanswered::Refused(Refusal::in_words(status.as_u16().into(), words)),
    }
}

/// A failure after a request was sent: what makes no sense may be the answer to what was done.
fn once_sent(failure: Failure, may_have_acted: bool) -> Failure {
    match failure.kind == Kind::ExecutionFailed && may_have_acted {
        true => {
            Failure { kind: Kind::OutcomeUnknown, ..failure }.hint("look at what was done before you call it again")
        }
        false => failure,
    }
}
