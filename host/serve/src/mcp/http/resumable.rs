//! Streams of the older eras that a client lost and asks for again: it gets what it missed, once, and learns when the stream has ended.
//!
//! The streams are rmcp's. Two things differ here: rmcp repeats the event that the client names as its last one, so that a question would
//! be asked twice; and it answers for a stream that has ended with an empty one, which clients request again for ever.

use crate::mcp::in_place::{Begun, Called, InPlace};
use futures_util::{Stream, StreamExt, stream};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{EventStore, RestoreOutcome, ServerSseMessage};
use rmcp::transport::streamable_http_server::{SessionId, SessionManager};
use std::cell::Cell;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

tokio::task_local! {
    /// The request that is served asked for a stream which has ended: rmcp's answer does not show it.
    static HAS_ENDED: Cell<bool>;
}

/// The sessions of one server, and what calls are begun by.
pub(super) struct Resumable<H> {
    sessions: LocalSessionManager,
    handler: H,
}

type Inner = <LocalSessionManager as SessionManager>::Error;
type Transport = <LocalSessionManager as SessionManager>::Transport;

impl<H> Resumable<H> {
    /// `silent` is how long a session may be silent.
    pub(super) fn new(handler: H, silent: Duration) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(silent);
        // Of a stream that ended by a cancellation nothing is missed.
        sessions.session_config.completed_cache_ttl = Duration::ZERO;
        Self { sessions, handler }
    }

    /// Sessions that are open.
    pub(super) async fn open(&self) -> usize {
        self.sessions.sessions.read().await.len()
    }
}

/// Serves a request. Also returns whether it asked for a stream that has ended.
pub(super) async fn noticing<A>(answer: impl Future<Output = A>) -> (A, bool) {
    let noticed = async { (answer.await, HAS_ENDED.with(Cell::get)) };
    HAS_ENDED.scope(Cell::new(false), noticed).await
}

/// The event after the one that a client had last; an id is `INDEX/REQUEST`, on the stream of no request `INDEX` alone.
fn behind(last: String) -> String {
    let (index, request) = last.split_once('/').map_or((&*last, None), |(index, request)| (index, Some(request)));
    match (index.parse::<usize>().ok().and_then(|index| index.checked_add(1)), request) {
        (Some(next), Some(request)) => format!("{next}/{request}"),
        // On that stream 0 is both how it begins and its first event.
        (Some(next), None) if next > 1 => next.to_string(),
        _ => last,
    }
}

impl<H: InPlace> SessionManager for Resumable<H> {
    type Error = Inner;
    type Transport = Transport;

    async fn create_session(&self) -> Result<(SessionId, Transport), Inner> {
        self.sessions.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Inner> {
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Inner> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Inner> {
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Inner> {
        let message = match Called::of(message).map(|called| self.handler.begin(called, None, None)) {
            Ok(Begun::Answered(answer)) => {
                return Ok(stream::once(ready(ServerSseMessage::from_message(*answer))).left_stream());
            }
            Ok(Begun::GoesOn(called)) => called.into_message(),
            Err(other) => *other,
        };
        Ok(self.sessions.create_stream(id, message).await?.right_stream())
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Inner> {
        self.sessions.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Inner> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Inner> {
        let resumed = self.sessions.resume(id, behind(last_event_id)).await;
        if resumed.is_err() {
            let _ = HAS_ENDED.try_with(|has_ended| has_ended.set(true));
        }
        resumed
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Transport>, Inner> {
        self.sessions.restore_session(id).await
    }

    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        self.sessions.event_store()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_that_a_client_had_is_not_sent_again() {
        for (last, next) in [("0/7", "1/7"), ("41/0", "42/0"), ("3", "4"), ("0", "0"), ("x/1", "x/1"), ("", "")] {
            assert_eq!(behind(last.into()), next, "{last}");
        }
        let most = usize::MAX.to_string();
        assert_eq!(behind(most.clone()), most);
    }
}
