//! The transport of a client that started this program: a message a line, on standard input and output, until the input ends.
//!
//! A client that does not read is not read from either, so that answers that wait stay few. Four parts see to that: `Reader` reads at most
//! `UNANSWERED_BYTES` while the client takes no answers, `Metered` takes no request while too many answers are owed, code that makes large
//! answers waits for `Client::has_room`, and `Client::hung_up` finds a client that has gone while nothing is read.

use super::Door;
use super::metered::Metered;
use crate::mcp::hang_up::is_hung_up;
use futures_util::task::AtomicWaker;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::{RoleServer, ServiceExt};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolcrib::envelope::{Failure, Kind};

/// How long calls that run when the input ends may still come to their own end.
const LAST_CALLS: Duration = Duration::from_millis(500);

/// How long the end may wait for a client that does not take its last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How often the server checks on a client that takes no answers.
const LOOK: Duration = Duration::from_millis(250);
/// Messages that may be on their way to a client.
const SENDING: usize = 64;
/// Bytes that are read of a client that takes no answers: enough to see the end of its input behind them.
const UNANSWERED_BYTES: usize = 1 << 20;

/// Serves one client until its input ends or `stop` is cancelled, which then ends the calls in flight.
pub async fn serve(door: Door, stop: CancellationToken) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Kind::Unavailable, format!("the client cannot be served: {error}"))
    };
    let (reader, writer) = stdio_pipes();
    let (client, ended) = (door.0.client.clone(), CancellationToken::new());
    let reader = Reader { inner: reader, client: client.clone(), ended: ended.clone(), unanswered: 0 };
    let writer = Writer { inner: writer, client: client.clone() };
    // Calls beyond those that may run are refused at once.
    let calls = usize::try_from(door.0.host.policy().config().limits.concurrent_calls).unwrap_or(usize::MAX);
    let transport = Metered::new(AsyncRwTransport::new_server(reader, writer), calls.saturating_mul(2), client.clone());
    let last_calls = async {
        tokio::select! {
            () = ended.cancelled() => {}
            () = client.hung_up() => {}
            () = stop.cancelled() => {}
        }
        // First time to end by themselves: a client may write its requests, close its end and still read the answers.
        tokio::time::sleep(LAST_CALLS).await;
        door.cancel();
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    let served = async {
        match ServiceExt::<RoleServer>::serve_with_ct(door.clone(), transport, stop.child_token()).await {
            Ok(service) => service.waiting().await.map(drop).map_err(|error| failed(&error)),
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
    }
}

/// What the two directions know of each other.
#[derive(Default)]
pub(super) struct Client {
    /// It does not take what is written.
    is_full: AtomicBool,
    /// Messages on their way to it.
    sending: AtomicUsize,
    reading: AtomicWaker,
    filled: Notify,
    emptied: Notify,
}

impl Client {
    /// Returns when the client takes answers.
    pub(super) async fn has_room(&self) {
        loop {
            // Made before the check: `notify_waiters` reaches only those that exist, so a change in between would be lost.
            let emptied = self.emptied.notified();
            // That it takes some does not say that it takes them as fast as they are made.
            if !self.is_full.load(Ordering::SeqCst) && self.sending.load(Ordering::SeqCst) < SENDING {
                return;
            }
            emptied.await;
        }
    }

    pub(super) fn sends(&self) {
        self.sending.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn sent(&self) {
        self.sending.fetch_sub(1, Ordering::SeqCst);
        self.emptied.notify_waiters();
    }

    /// Returns when the client has closed our input while it takes no answers: then nothing may be reading up to the end.
    async fn hung_up(&self) {
        loop {
            self.filled.notified().await;
            // Polled, because the end of an input that nobody reads wakes no task.
            while self.is_full.load(Ordering::SeqCst) {
                tokio::time::sleep(LOOK).await;
                if is_hung_up(&io::stdin()) {
                    return;
                }
            }
        }
    }
}

/// The client's messages; few while it takes no answers.
struct Reader<R> {
    inner: R,
    client: Arc<Client>,
    ended: CancellationToken,
    /// Bytes read since it takes none.
    unanswered: usize,
}

/// The answers.
struct Writer<W> {
    inner: W,
    client: Arc<Client>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Reader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Registered before the check: a writer that gets rid of its bytes in between still wakes this task.
        self.client.reading.register(context.waker());
        if !self.client.is_full.load(Ordering::SeqCst) {
            self.unanswered = 0;
        } else if self.unanswered >= UNANSWERED_BYTES {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(context, buffer));
        let bytes = buffer.filled().len() - before;
        self.unanswered += bytes;
        if read.is_err() || bytes == 0 {
            self.ended.cancel();
        }
        Poll::Ready(read)
    }
}

impl<W> Writer<W> {
    /// Notes whether the client took it.
    fn noted<T>(&self, done: Poll<T>) -> Poll<T> {
        let was_full = self.client.is_full.swap(done.is_pending(), Ordering::SeqCst);
        if !was_full && done.is_pending() {
            // Unlike `notify_waiters` this is remembered: `hung_up` may not be waiting yet.
            self.client.filled.notify_one();
        }
        if was_full && done.is_ready() {
            self.client.reading.wake();
            self.client.emptied.notify_waiters();
        }
        done
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Writer<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.noted(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
