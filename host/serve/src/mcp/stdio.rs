//! The transport of a client that started this program: a message a line, on standard input and output, until the input ends.
//!
//! The protocol is rmcp's, but for `tools/call`: such a line is read in one pass, and its call begun here (`in_place.rs`).
//!
//! A client that does not read is not read from either (`Lines::room`): no message is taken while too many requests are open or too many
//! bytes of answers wait. Code that makes large answers waits for `Client::has_room` before.

use super::in_place::Called;
use super::roots::Opened;
use super::together::Together;
use super::{Door, arguments};
use crate::mcp::hang_up::is_hung_up;
use bytes::{Buf, BufMut, BytesMut};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::ServiceExt;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, ClientNotification, ErrorData, Extensions, InputResponses,
    JsonObject, JsonRpcMessage, JsonRpcVersion2_0, ProtocolVersion, RequestId, RequestMetaObject,
};
use rmcp::service::{
    Peer, RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_directly_with_ct,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{JsonRpcMessageCodec, JsonRpcMessageCodecError};
use rmcp::transport::io::{StdioReader, StdioWriter};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use std::collections::{HashSet, VecDeque};
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::codec::Decoder;
use tokio_util::sync::CancellationToken;
use toolcrib::envelope::{Failure, Kind};

/// How long calls that run when the input ends may still come to their own end.
const LAST_CALLS: Duration = Duration::from_millis(500);
/// How long the end may wait for a client that does not take its last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How often the server checks whether a client that takes no answers is still there.
const LOOK: Duration = Duration::from_millis(250);

/// Bytes of a line, as over HTTP; a longer one is dropped.
const LINE_BYTES: usize = 16 << 20;
/// Bytes that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// Bytes of answers that wait for a client before nothing more is taken from it: one that writes all before it reads gets that far.
const WAITING_BYTES: usize = 1 << 20;
/// Bytes of answers that may wait while a large one is made.
const ROOM_BYTES: usize = 128 << 10;
/// Calls that are answered in place before others get a turn.
const AT_A_TIME: usize = 32;
/// Serves one client until its input ends or `stop` is cancelled, which then ends the calls in flight.
pub fn serve(door: Door, opened: Opened, stop: CancellationToken) -> BoxFuture<'static, Result<(), Failure>> {
    Box::pin(async move {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Kind::Unavailable, format!("the client cannot be served: {error}"))
        };
        let Opened { reader, writer, input, greeted } = opened;
        let (client, ended) = (door.0.client.clone(), CancellationToken::new());
        client.out.lock().writer = Some(writer);
        let lines = Lines::new(reader, input, door.clone(), ended.clone());
        let last_calls = async {
            tokio::select! {
                () = ended.cancelled() => {}
                () = stop.cancelled() => {}
            }
            // First time to end by themselves: a client may write its requests, close its end and still read the answers.
            tokio::time::sleep(LAST_CALLS).await;
            door.cancel();
            tokio::time::sleep(LAST_ANSWERS).await;
        };
        let served = async {
            let begun = match greeted {
                Some(greeted) => {
                    let client = Some(greeted.client);
                    Ok(serve_directly_with_ct::<RoleServer, _, _, _, _>(
                        door.clone(),
                        lines,
                        client,
                        stop.child_token(),
                    ))
                }
                None => ServiceExt::<RoleServer>::serve_with_ct(door.clone(), lines, stop.child_token()).await,
            };
            match begun {
                Ok(service) => {
                    // From now on calls are begun in place: what the client has said of itself is known.
                    let _ = client.peer.set(service.peer().clone());
                    service.waiting().await.map(drop).map_err(|error| failed(&error))
                }
                // It has gone before it said anything, or this program was asked to end.
                Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
                Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                    Err(failed(&"its first message is neither `initialize` nor a request of the version 2026-07-28"))
                }
                Err(error) => Err(failed(&error)),
            }
        };
        tokio::select! {
            served = served => served,
            () = last_calls => Ok(()),
            () = client.write_on() => Ok(()),
        }
    })
}

/// What is on its way to the client.
#[derive(Default)]
pub(super) struct Client {
    out: Mutex<Out>,
    /// Something was written.
    written: Notify,
    /// Something is left that the client did not take at once.
    left: Notify,
    peer: OnceLock<Peer<RoleServer>>,
}

#[derive(Default)]
struct Out {
    /// None over HTTP, and when it is closed or broken.
    writer: Option<StdioWriter>,
    waiting: BytesMut,
    /// [`Client::write_on`] waits until the client takes more.
    is_left: bool,
    /// All bytes that were ever put here.
    put: u64,
}

impl Out {
    /// Writes what waits, until all is written or the client takes no more.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            let writer = self.writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            match ready!(Pin::new(writer).poll_write(context, &self.waiting)) {
                Ok(bytes @ 1..) => self.waiting.advance(bytes),
                Ok(0) | Err(_) => self.writer = None,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Client {
    /// Returns when the client takes answers as fast as they are made, or nearly.
    pub(super) async fn has_room(&self) {
        loop {
            // Made before the check: `notify_waiters` reaches only those that exist, so a change in between would be lost.
            let written = self.written.notified();
            if self.waiting() < ROOM_BYTES {
                return;
            }
            written.await;
        }
    }

    /// Bytes that wait; none where nobody will take them any more.
    fn waiting(&self) -> usize {
        let out = self.out.lock();
        if out.writer.is_some() { out.waiting.len() } else { 0 }
    }

    /// Puts a message behind those that wait. Returns where it ends, among all bytes that were ever put there.
    pub(super) fn put(&self, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<u64> {
        let mut out = self.out.lock();
        if out.writer.is_none() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let before = out.waiting.len();
        serde_json::to_writer((&mut out.waiting).writer(), message)?;
        out.waiting.extend_from_slice(b"\n");
        out.put += (out.waiting.len() - before) as u64;
        Ok(out.put)
    }

    /// Writes what waits, as far as the client takes it now.
    pub(super) fn write(&self) {
        let mut out = self.out.lock();
        // The waker of `write_on` must stay.
        if out.is_left {
            return;
        }
        out.is_left = out.poll_write(&mut Context::from_waker(Waker::noop())).is_pending();
        // Also those who wait for room: what was put there may have waited for this alone.
        self.written.notify_waiters();
        if out.is_left {
            self.left.notify_one();
        }
    }

    /// Writes what the client did not take at once.
    async fn write_on(&self) {
        loop {
            self.left.notified().await;
            // An error drops the writer, which `has_written` reports.
            let _ = poll_fn(|context| {
                let mut out = self.out.lock();
                let written = out.poll_write(context);
                out.is_left = written.is_pending();
                self.written.notify_waiters();
                written
            })
            .await;
        }
    }

    /// Returns when all is written up to there.
    async fn has_written(&self, end: u64) -> io::Result<()> {
        loop {
            let written = self.written.notified();
            {
                let out = self.out.lock();
                if out.put - out.waiting.len() as u64 >= end {
                    return Ok(());
                }
                if out.writer.is_none() {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
            written.await;
        }
    }

    /// Writes all that waits, and nothing more.
    async fn close(&self) {
        let end = self.out.lock().put;
        let _ = self.has_written(end).await;
        let writer = self.out.lock().writer.take();
        if let Some(mut writer) = writer {
            let _ = writer.shutdown().await;
        }
    }
}

/// The client's messages, and the answers to them.
struct Lines {
    reader: StdioReader,
    client: Arc<Client>,
    /// The client will send no more.
    ended: CancellationToken,
    codec: JsonRpcMessageCodec<RxJsonRpcMessage<RoleServer>>,
    input: BytesMut,
    /// Bytes of it in which no line ends.
    scanned: usize,
    /// The rest of the line is dropped.
    is_too_long: bool,
    /// Requests without an answer; those that the client has cancelled get none.
    open: HashSet<RequestId>,
    most_open: usize,
    /// Calls answered in place since others had a turn.
    answered: usize,
    /// Messages for the handler.
    ready: VecDeque<RxJsonRpcMessage<RoleServer>>,
    calls: Arc<Together>,
    /// The message that came behind calls that are being begun: it may be about one of them.
    behind: Option<RxJsonRpcMessage<RoleServer>>,
}

/// What a client's messages go on with.
enum Next {
    Line(BytesMut),
    /// For the handler.
    Messages(Vec<RxJsonRpcMessage<RoleServer>>),
    End,
}

impl Lines {
    fn new(reader: StdioReader, input: BytesMut, door: Door, ended: CancellationToken) -> Self {
        // Calls beyond those that may run are refused at once.
        let calls = usize::try_from(door.0.host.policy().config().limits.concurrent_calls).unwrap_or(usize::MAX);
        Self {
            reader,
            client: door.0.client.clone(),
            calls: Together::new(door),
            ended,
            codec: JsonRpcMessageCodec::new(),
            input,
            scanned: 0,
            is_too_long: false,
            open: HashSet::new(),
            most_open: calls.saturating_mul(2),
            answered: 0,
            ready: VecDeque::new(),
            behind: None,
        }
    }

    /// Returns when another message may be taken.
    async fn room(&mut self) {
        if self.answered > AT_A_TIME {
            self.answered = 0;
            self.client.write();
            tokio::task::yield_now().await;
        }
        while !self.has_room() {
            // Before anybody waits for it; and not after `written` was made, which it would complete.
            self.client.write();
            let written = self.client.written.notified();
            if self.has_room() {
                return;
            }
            let is_unchanged = tokio::time::timeout(LOOK, written).await.is_err();
            // The end of an input that nobody reads wakes no task.
            if is_unchanged && self.client.waiting() > 0 && is_hung_up(&io::stdin()) {
                self.ended.cancel();
                return pending().await;
            }
        }
    }

    fn has_room(&self) -> bool {
        self.open.len() + self.calls.running() < self.most_open && self.client.waiting() < WAITING_BYTES
    }

    /// A whole line of what was read, with its end.
    fn whole_line(&mut self) -> Option<BytesMut> {
        loop {
            let Some(length) = memchr::memchr(b'\n', &self.input[self.scanned..]) else {
                self.scanned = self.input.len();
                return None;
            };
            let line = self.input.split_to(self.scanned + length + 1);
            self.scanned = 0;
            if line.len() > READ_BYTES {
                // What it took is given back with it.
                self.input = BytesMut::from(&*self.input);
            }
            if !std::mem::take(&mut self.is_too_long) {
                return Some(line);
            }
        }
    }

    /// The next line. Loses nothing when it is dropped.
    async fn line(&mut self) -> Option<BytesMut> {
        loop {
            if let Some(line) = self.whole_line() {
                return Some(line);
            }
            if self.is_too_long || self.scanned > LINE_BYTES {
                (self.input, self.scanned, self.is_too_long) = (BytesMut::new(), 0, true);
            }
            // Whoever waits for more has seen all answers so far.
            self.client.write();
            self.input.reserve(READ_BYTES);
            match self.reader.read_buf(&mut self.input).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => {
                    self.ended.cancel();
                    return None;
                }
            }
        }
    }

    /// Begins the calls that wait, up to the first message that is none.
    fn take(&mut self, line: BytesMut) {
        let (mut calls, mut line) = (Vec::new(), Some(line));
        while let Some(text) = line.take() {
            match Line::read(&text) {
                Some(Line { id, mut params, .. }) => {
                    let meta = params.meta.take().unwrap_or_default();
                    calls.push(Called { id, params, meta, extensions: Extensions::default() });
                    line = if calls.len() < AT_A_TIME && self.has_room() { self.whole_line() } else { None };
                }
                None => self.behind = self.message(text),
            }
        }
        self.answered += calls.len().max(1);
        match self.client.peer.get().cloned() {
            // What the client has said of itself is not known before.
            None => self.ready.extend(calls.into_iter().map(Called::into_message)),
            Some(peer) => self.calls.begin(calls, &peer),
        }
    }

    /// What comes next. Loses nothing when it is dropped.
    async fn next(&mut self) -> Next {
        if self.behind.is_some() {
            self.calls.all_begun().await;
            return Next::Messages(self.calls.requests().into_iter().chain(self.behind.take()).collect());
        }
        let calls = self.calls.clone();
        let line = async {
            self.room().await;
            self.line().await
        };
        let line = tokio::select! {
            biased;
            () = calls.some_requests() => return Next::Messages(calls.requests()),
            line = line => line,
        };
        if let Some(line) = line {
            return Next::Line(line);
        }
        calls.all_begun().await;
        let requests = calls.requests();
        if requests.is_empty() { Next::End } else { Next::Messages(requests) }
    }

    /// Reads a message that calls no tool. None where it was answered, or is none.
    fn message(&mut self, mut line: BytesMut) -> Option<RxJsonRpcMessage<RoleServer>> {
        match self.codec.decode(&mut line) {
            Ok(message) => message,
            Err(JsonRpcMessageCodecError::Serde(error))
                if matches!(error.classify(), Category::Data | Category::Io) =>
            {
                let refusal = ErrorData::invalid_request("Invalid request", None);
                let _ = self.client.put(&TxJsonRpcMessage::<RoleServer>::error(refusal, None));
                None
            }
            // What is no JSON could be an answer to an answer, without end.
            Err(_) => None,
        }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => _ = self.open.remove(&response.id),
            JsonRpcMessage::Error(error) => _ = error.id.as_ref().map(|id| self.open.remove(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        // Now, so that messages stay in order; whoever sent it waits until it is written.
        let put = self.client.put(&message);
        self.client.write();
        let client = self.client.clone();
        async move { client.has_written(put?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.ready.pop_front() else {
                // rmcp drops this future when something else happens first, and must lose no message by that.
                match self.next().await {
                    Next::Line(line) => self.take(line),
                    Next::Messages(messages) => self.ready.extend(messages),
                    Next::End => return None,
                }
                continue;
            };
            match &message {
                JsonRpcMessage::Request(request) => _ = self.open.insert(request.id.clone()),
                JsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.open.remove(id);
                        self.calls.cancel(id);
                    }
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.calls.all_ended().await;
        self.client.close().await;
        Ok(())
    }
}

/// A line that calls a tool, read in one pass: rmcp's own type for every message is tried shape by shape.
#[derive(Deserialize)]
pub(super) struct Line {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    pub(super) id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    #[serde(deserialize_with = "params")]
    pub(super) params: CallToolRequestParams,
    /// With one of these it is no request.
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl Line {
    /// Whether it carries all that a request does which belongs to no session.
    pub(super) fn says_all(&self) -> bool {
        let version = &ProtocolVersion::NO_INITIALIZE;
        self.params.meta.as_ref().is_some_and(|meta| meta.missing_required_keys(version).is_empty())
    }

    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let line: Self = serde_json::from_slice(line).ok()?;
        (line.result.is_none() && line.error.is_none()).then_some(line)
    }
}

/// As rmcp reads them, but for `arguments` that clients write in another way.
fn params<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CallToolRequestParams, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<RequestMetaObject>,
        name: String,
        #[serde(default, deserialize_with = "arguments::field")]
        arguments: Option<JsonObject>,
        input_responses: Option<InputResponses>,
        request_state: Option<String>,
    }
    let Params { meta, name, arguments, input_responses, request_state } = Params::deserialize(deserializer)?;
    let mut params = CallToolRequestParams::new(name);
    (params.meta, params.arguments) = (meta, arguments);
    (params.input_responses, params.request_state) = (input_responses, request_state);
    Ok(params)
}
