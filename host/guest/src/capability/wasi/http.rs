//! `wasi:http`: requests by the egress, where the grant for `http` admits them.
//!
//! The body of a request is taken in whole before it is sent, as it is judged, may be shown to a person, and may have to be sent again after a
//! redirect. The body of an answer is handed on as it comes.

use super::super::http::{announce, prepared};
use super::Reasons;
use crate::reach::Reach;
use base::envelope::{Failure, Kind};
use base::target::Target;
use bytes::Bytes;
use egress::Opened;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
use policy::Grants;
use policy::http::BODY_BYTES;
use policy::http::HttpGrant;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime_wasi_http::{Error, RequestOptions, Result, WasiBody, WasiHttpHooks};

/// Requests of one call that are on their way at one time, with answers that are not read to their ends: each holds a connection.
const AT_A_TIME: usize = 32;
/// What a guest may write to a body in one go, in bytes: each body holds one such piece.
const PIECE: usize = 64 << 10;

/// How the requests of one guest are sent.
pub struct Web(Arc<Shared>);

struct Shared {
    grants: Arc<Grants>,
    scope: Arc<Reach>,
    reasons: Reasons,
    turns: Arc<Semaphore>,
    /// Bytes of bodies that wait to be sent, of all requests together.
    held: AtomicUsize,
}

impl Web {
    pub fn new(grants: Arc<Grants>, scope: Arc<Reach>, reasons: Reasons) -> Self {
        let (turns, held) = (Arc::new(Semaphore::new(AT_A_TIME)), AtomicUsize::new(0));
        Self(Arc::new(Shared { grants, scope, reasons, turns, held }))
    }
}

impl WasiHttpHooks for Web {
    /// The host of the URL is the one that is asked.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        PIECE
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        // The grant says how long a request may take; a person may have to answer meanwhile.
        _: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<
        dyn Future<Output = Result<(http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>)>>
            + Send,
    > {
        let shared = self.0.clone();
        Box::new(async move {
            let answer = shared.clone().answer(request).await.map_err(|failure| shared.told(failure))?;
            let nothing: Box<dyn Future<Output = _> + Send> = Box::new(std::future::ready(Ok(())));
            Ok((answer, nothing))
        })
    }
}

impl Shared {
    fn grant(&self) -> Result<HttpGrant, Failure> {
        self.scope.accept()?;
        self.grants.http().cloned()
    }

    async fn answer(self: Arc<Self>, request: http::Request<WasiBody>) -> Result<http::Response<WasiBody>, Failure> {
        let grant = self.grant()?;
        let (mut head, body) = request.into_parts();
        // As it was written: this text is what is parsed, decided on, and connected to.
        let target = Target::parse(&head.uri.to_string(), None)?;
        // What the guest says of its body's length was held against the body by now; how an answer is packed is between server and host.
        head.headers.remove(CONTENT_LENGTH);
        head.headers.remove(ACCEPT_ENCODING);
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or("\0")));
        let headers: Vec<_> = headers.collect();
        let (body, _held) = self.whole(body).await?;
        let request = prepared(head.method.as_str(), &headers, body, BODY_BYTES, &grant)?;
        let turn = self.turns.clone().acquire_owned().await.expect("it is never closed");
        announce(&request, &target, &self.scope);
        let opened = tokio::select! {
            biased;
            () = self.scope.cancel.cancelled() => return Err(Failure::cancelled()),
            opened = self.scope.services.egress.open(request, target, &grant, &self.scope) => opened?,
        };
        let mut answer = http::Response::builder().status(opened.status);
        if let Some(headers) = answer.headers_mut() {
            *headers = opened.headers.clone();
        }
        let shared = self.clone();
        let pieces = stream::unfold(Some((opened, turn)), move |opened| next(opened, shared.clone()));
        let body = BodyExt::boxed_unsync(StreamBody::new(pieces));
        answer.body(body).map_err(|error| Failure::new(Kind::Internal, error.to_string()))
    }

    /// The whole body of a request; the room that it takes is given back when the second value is dropped.
    async fn whole(&self, mut body: WasiBody) -> Result<(Vec<u8>, Held<'_>), Failure> {
        let (mut whole, mut held) = (Vec::new(), Held { all: &self.held, bytes: 0 });
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Failure::invalid(format!("the body of the request ended: {error}")))?;
            // Trailers are not sent.
            let Ok(piece) = frame.into_data() else { continue };
            if !held.take(piece.len()) {
                let message = format!("the bodies of requests have more than {} MiB", BODY_BYTES >> 20);
                return Err(Failure::limit(message).hint("send less at a time"));
            }
            whole.extend_from_slice(&piece);
        }
        Ok((whole, held))
    }

    /// The word that WASI has for a failure. The reason is kept.
    fn told(&self, failure: Failure) -> Error {
        let failure = self.scope.guard.redact_failure(failure);
        self.reasons.keep(&failure);
        match failure.kind {
            Kind::Denied => Error::HttpRequestDenied,
            Kind::InvalidArguments => Error::HttpRequestUriInvalid,
            Kind::TimedOut => Error::ConnectionTimeout,
            Kind::Unavailable => Error::DestinationUnavailable,
            Kind::Limit => Error::HttpResponseBodySize(None),
            Kind::OutcomeUnknown | Kind::Cancelled => Error::ConnectionTerminated,
            Kind::Busy => Error::ConnectionLimitReached,
            Kind::ExecutionFailed => Error::HttpProtocolError,
            Kind::Internal | Kind::Usage | Kind::UnknownTool => Error::InternalError(Some(failure.message)),
        }
    }
}

/// An answer, and its turn, which is the next one's when it was read or is dropped.
type Open = (Opened, OwnedSemaphorePermit);

/// The next piece of an answer's body, and what is left of it.
async fn next(open: Option<Open>, shared: Arc<Shared>) -> Option<(Result<Frame<Bytes>>, Option<Open>)> {
    let (mut opened, turn) = open?;
    loop {
        match opened.piece().await {
            // What may be the beginning of a secret is held back.
            Ok(Some(piece)) if piece.is_empty() => {}
            Ok(Some(piece)) => return Some((Ok(Frame::data(piece.into())), Some((opened, turn)))),
            Ok(None) => return None,
            Err(failure) => return Some((Err(shared.told(failure)), None)),
        }
    }
}

/// Some of the room that there is for bodies.
struct Held<'a> {
    all: &'a AtomicUsize,
    bytes: usize,
}

impl Held<'_> {
    fn take(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.all.fetch_add(bytes, Ordering::Relaxed) + bytes <= BODY_BYTES
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
