//! What a server over HTTP wants to know in the middle of a call, in the older eras: it says so in the stream of the call, or on a stream of its own
//! without saying for which.

use super::elicit;
use super::events::{Event, Events};
use super::link::{Link, PARTING, is_events};
use super::message::{ID_BYTES, MOST_ODD, Meanwhile, Message, Rate, reply};
use http::header::HeaderMap;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use policy::upstream::UpstreamGrant;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bytes of a stream that are looked at in one go.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// How long a server's own stream is heard after the last call.
const IDLE: Duration = Duration::from_secs(300);

/// What servers answer that have no stream of their own.
const MISSING: [StatusCode; 4] =
    [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];

/// The calls in which a server may ask something.
#[derive(Clone, Default)]
pub(super) struct Questions(Arc<Mutex<HashMap<u64, PendingCall>>>);

struct PendingCall {
    questions: mpsc::Sender<Meanwhile>,
    /// How many it may still ask.
    left: usize,
}

/// A call in which a server may ask something, as long as it is there.
pub(super) struct Open<'q> {
    questions: &'q Questions,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.questions.0.lock().remove(&self.id);
    }
}

impl Questions {
    /// Has questions for a call handed on.
    pub(super) fn open(&self, id: u64) -> (mpsc::Receiver<Meanwhile>, Open<'_>) {
        let (questions, receiver) = mpsc::channel(elicit::MOST);
        self.0.lock().insert(id, PendingCall { questions, left: elicit::MOST });
        (receiver, Open { questions: self, id })
    }

    /// Hands on a question for this call, or where it does not say for which, for the only one; whether that is so.
    pub(super) fn hand_on(&self, message: &Message<'_>, call: Option<u64>) -> bool {
        let (Some(id), Some(elicit::METHOD), Some(params)) = (message.id, message.method.as_deref(), message.params)
        else {
            return false;
        };
        let mut pending = self.0.lock();
        let call = match call {
            Some(id) => pending.get_mut(&id),
            None if pending.len() == 1 => pending.values_mut().next(),
            None => None,
        };
        let Some(call) = call.filter(|call| call.left > 0 && id.get().len() <= ID_BYTES) else { return false };
        call.left -= 1;
        call.questions.try_send(Meanwhile::Asks { id: id.to_owned(), params: params.to_owned() }).is_ok()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// The stream of its own that a server may have.
#[derive(Default)]
pub(super) struct OwnStream {
    heard: Option<JoinHandle<()>>,
    /// Until when it is not asked for again, as there is none.
    missing: Option<Instant>,
}

impl OwnStream {
    /// Hears it from now on, where there is one.
    pub(super) async fn open(&mut self, link: &Arc<Link>, questions: &Questions, grant: &Arc<UpstreamGrant>) {
        let is_missing = self.missing.is_some_and(|until| Instant::now() < until);
        if is_missing || self.heard.as_ref().is_some_and(|heard| !heard.is_finished()) {
            return;
        }
        let stream = tokio::time::timeout(PARTING, link.send(Method::GET, String::new(), HeaderMap::new(), grant));
        match stream.await {
            Ok(Ok(stream)) if is_events(&stream) => {
                let heard = hear(stream, link.clone(), questions.clone(), grant.clone());
                self.heard = Some(tokio::spawn(heard));
            }
            // Whatever else is wrong may be right the next time.
            Ok(Ok(answer)) if !MISSING.contains(&answer.status) => {}
            Ok(Err(_)) => {}
            Ok(Ok(_)) | Err(_) => self.missing = Some(Instant::now() + IDLE),
        }
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        self.heard.iter().for_each(JoinHandle::abort);
    }
}

/// Hears a stream until it ends, nobody has called for long, or too much of it makes no sense.
async fn hear(mut stream: egress::OwnAnswer, link: Arc<Link>, questions: Questions, grant: Arc<UpstreamGrant>) {
    let (mut events, mut said, mut refused, mut last) = (Events::default(), Rate::new(), 0, Instant::now());
    while let Ok(Some(piece)) = stream.piece().await {
        if !questions.is_empty() {
            last = Instant::now();
        }
        if last.elapsed() > IDLE {
            return;
        }
        for part in piece.chunks(PIECE_BYTES) {
            said.count();
            for event in events.take(part) {
                said.count();
                let Event::Message(bytes) = event else { continue };
                let Ok(message) = serde_json::from_slice::<Message<'_>>(&bytes) else { continue };
                if questions.hand_on(&message, None) {
                    continue;
                }
                if let (Some(id), Some(method)) = (message.id.filter(|id| id.get().len() <= ID_BYTES), &message.method)
                {
                    let is_ping = method == "ping";
                    refused += u64::from(!is_ping);
                    link.reply(reply(id, is_ping), &grant).await;
                }
                if refused >= MOST_ODD {
                    return;
                }
            }
            if let Some(rests) = said.rests() {
                tokio::time::sleep_until(rests.into()).await;
            }
        }
    }
}
