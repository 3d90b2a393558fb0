//! The way to a server, whatever carries it.

use super::elicit;
use super::lines::{Change, Lines};
use super::message::{Answer, MESSAGE_BYTES, Meanwhile, Progress, Refusal, told};
use super::web::Web;
use base::envelope::Failure;
use base::text::sanitize;
use http::header::HeaderMap;
use policy::event::Event;
use policy::scope::Scope;
use policy::upstream::UpstreamGrant;
use serde_json::Value;
use serde_json::value::RawValue;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Characters of what a report of progress says.
const REPORT_CHARS: usize = 200;

/// The way to a server. It ends with the last of what holds it.
pub(super) enum Wire {
    Lines(Lines),
    Web(Web),
}

/// A request, but for its parameters.
pub(super) struct Request<'r> {
    pub(super) method: &'static str,
    /// What of the server it is about.
    pub(super) about: Option<&'r str>,
    /// What headers say of its arguments, where there are headers.
    pub(super) headers: HeaderMap,
    /// Without an answer nobody knows what has become of it.
    pub(super) may_have_acted: bool,
    /// How long to wait for an answer, but for what people take.
    pub(super) most: Duration,
    /// How many questions the server may ask meanwhile.
    pub(super) questions: usize,
}

/// For whom a server is asked something.
#[derive(Clone, Copy)]
pub(super) struct Via<'v> {
    pub(super) grant: &'v Arc<UpstreamGrant>,
    pub(super) scope: &'v Arc<Scope>,
}

/// Why a request has no result.
pub(super) enum Unanswered {
    /// The server says so.
    Refused(Refusal),
    TooLong,
    /// It is there no more, since before the request or since.
    Ended {
        why: String,
        was_sent: bool,
    },
    Busy,
    /// It took too long, and was told so.
    Late,
    /// It could not be asked, or what it answered was lost.
    Lost(Failure),
}

impl Request<'_> {
    /// One that has no effect.
    pub(super) fn new(method: &'static str, most: Duration) -> Self {
        Self { method, about: None, headers: HeaderMap::new(), may_have_acted: false, most, questions: 0 }
    }
}

impl Wire {
    /// Asks, and waits for the answer; reports of progress and questions are heard meanwhile. `params` are JSON, given the number of the
    /// request. Dropped before there is an answer, it cancels the request at the server.
    pub(super) async fn ask(
        &self,
        request: Request<'_>,
        params: impl FnOnce(u64) -> String,
        via: &Via<'_>,
    ) -> Result<Box<RawValue>, Unanswered> {
        match self {
            Self::Lines(lines) => lines.ask(request, params, via).await,
            Self::Web(web) => web.ask(request, params, via).await,
        }
    }

    /// Says what is not answered.
    pub(super) async fn tell(&self, method: &str, params: &Value, via: &Via<'_>) -> Result<(), Failure> {
        match self {
            Self::Lines(lines) => lines.tell(method, params),
            Self::Web(web) => web.tell(method, params, via).await?,
        }
        Ok(())
    }

    /// The version of the protocol that is spoken from now on.
    pub(super) fn speak(&self, protocol: Option<&str>) {
        match self {
            Self::Lines(_) => {}
            Self::Web(web) => web.speak(protocol),
        }
    }

    /// Whether arguments are said in headers as well.
    pub(super) fn has_headers(&self) -> bool {
        match self {
            Self::Lines(_) => false,
            Self::Web(_) => true,
        }
    }

    /// Requests that wait for their answers.
    pub(super) fn in_flight(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.in_flight(),
            Self::Web(web) => web.in_flight(),
        }
    }

    /// Whether it is there no more.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Lines(lines) => lines.has_ended(),
            Self::Web(web) => web.has_ended(),
        }
    }

    /// Why it ended.
    pub(super) fn why_ended(&self) -> String {
        match self {
            Self::Lines(lines) => lines.why_ended(),
            Self::Web(web) => web.why_ended(),
        }
    }

    /// Whether the server has said that what it offers has changed; none where it could not.
    pub(super) fn has_changed(&self) -> Option<bool> {
        match self {
            Self::Lines(lines) => Some(lines.has_changed()),
            Self::Web(_) => None,
        }
    }

    /// Takes that as known; dropped before that is so, it is not.
    pub(super) fn take_change(&self) -> Option<Change<'_>> {
        match self {
            Self::Lines(lines) => Some(lines.take_change()),
            Self::Web(_) => None,
        }
    }
}

impl Answer {
    pub(super) fn whole(self) -> Result<Box<RawValue>, Unanswered> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error(refusal) => Err(Unanswered::Refused(refusal)),
            Self::TooLong => Err(Unanswered::TooLong),
        }
    }
}

impl Via<'_> {
    /// Waits for an answer. Meanwhile reports of progress are handed on, and questions are answered by `reply`. None where it took too long.
    pub(super) async fn waited<A, R: Future<Output = ()>>(
        &self,
        answer: impl Future<Output = A>,
        mut meanwhile: mpsc::Receiver<Meanwhile>,
        most: Duration,
        reply: impl Fn(String) -> R,
    ) -> Option<A> {
        let (mut answer, mut late) = (pin!(answer), pin!(sleep(most)));
        loop {
            let (id, params) = tokio::select! {
                answered = &mut answer => return Some(answered),
                () = &mut late => return None,
                Some(said) = meanwhile.recv() => match said {
                    Meanwhile::Asks { id, params } => (id, params),
                    Meanwhile::Progress(report) => {
                        self.told(&report);
                        continue;
                    }
                },
            };
            let begin = Instant::now();
            let given = tokio::select! {
                // Who has answered has found out by itself.
                answered = &mut answer => return Some(answered),
                given = Box::pin(elicit::answered(&params, self)) => given,
            };
            // What people take to answer does not count.
            let end = late.deadline() + begin.elapsed();
            late.as_mut().reset(end);
            tokio::select! {
                answered = &mut answer => return Some(answered),
                () = reply(told(&id, &given)) => {}
            }
        }
    }

    /// Hands on how far a call is.
    pub(super) fn told(&self, report: &Progress) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded, and only shown")]
        let whole = |number: f64| number.clamp(0.0, 1e15) as u64;
        let message = report.message.as_deref();
        let message = message.map(|text| sanitize::beginning(text, REPORT_CHARS));
        let bytes = message.as_ref().map_or(0, String::len);
        self.scope.emit_for_guest(bytes, || Event::Progress {
            done: whole(report.progress),
            total: report.total.map(whole),
            message,
        });
    }
}

/// What a message says of an answer that is too long.
pub(super) fn too_long() -> String {
    format!("limit: an answer of a server {} MiB", MESSAGE_BYTES >> 20)
}
