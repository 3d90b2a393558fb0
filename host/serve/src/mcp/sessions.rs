//! Which memory a request has: one for a connection of the older eras, one for each caller of the newer era, which knows no sessions.

use hyper::http::request::Parts;
use parking_lot::Mutex;
use rmcp::model::Extensions;
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolcrib::call::Principal;
use toolcrib::call::session::Session;

/// Sessions remembered at once; the oldest goes first, and with it what it had approved.
const SESSIONS_KEPT: usize = 1000;
/// How long calls of a session may go past the transport.
const HEARD: Duration = Duration::from_secs(60);
/// The header by which the older eras know their session.
const SESSION_ID: &str = "mcp-session-id";

/// Who speaks in a session.
struct Client {
    peer: Peer<RoleServer>,
    /// When a call went all the way through the transport last.
    heard: Instant,
}

/// The sessions of all clients.
pub(super) struct Sessions {
    /// That of stdio; over HTTP clients of the newer era share what people approved and the output that was kept.
    shared: Arc<Session>,
    by_id: Mutex<VecDeque<(String, Arc<Session>)>>,
    /// Those that have begun, by id; the one of stdio has none.
    begun: Mutex<HashMap<String, Client>>,
}

impl Sessions {
    pub(super) fn new(shared: Arc<Session>) -> Self {
        Self { shared, by_id: Mutex::default(), begun: Mutex::default() }
    }

    /// Returns whether a client has begun for the first time: one that begins again and again is notified of changes once.
    pub(super) fn is_new(&self, context: &NotificationContext<RoleServer>) -> bool {
        let parts = context.extensions.get::<Parts>();
        let id = parts.and_then(|parts| parts.headers.get(SESSION_ID)).and_then(|id| id.to_str().ok());
        let mut begun = self.begun.lock();
        // They keep what clients said of themselves.
        begun.retain(|_, client| !client.peer.is_transport_closed());
        if begun.len() >= SESSIONS_KEPT {
            begun.clear();
        }
        let client = Client { peer: context.peer.clone(), heard: Instant::now() };
        begun.insert(id.unwrap_or_default().to_owned(), client).is_none()
    }

    /// Who asked, where the request has come in a session that has begun. None now and then: the transport takes a session for silent of
    /// which it hears nothing, and calls that are answered in place go past it.
    pub(super) fn peer_in_use(&self, extensions: &Extensions) -> Option<Peer<RoleServer>> {
        let id = extensions.get::<Parts>()?.headers.get(SESSION_ID)?.to_str().ok()?;
        let mut begun = self.begun.lock();
        let client = begun.get_mut(id)?;
        if client.heard.elapsed() > HEARD {
            client.heard = Instant::now();
            return None;
        }
        Some(client.peer.clone())
    }

    /// The session of a request. An id is looked at only where the transport has made it.
    pub(super) fn of(&self, context: &RequestContext<RoleServer>) -> Arc<Session> {
        if is_shared(context) {
            return Arc::new(self.shared.beside());
        }
        let Some(id) = session_id(context) else { return self.shared.clone() };
        let mut by_id = self.by_id.lock();
        if let Some((_, session)) = by_id.iter().find(|(other, _)| *other == id) {
            return session.clone();
        }
        if by_id.len() >= SESSIONS_KEPT {
            by_id.pop_front();
        }
        let session = Arc::new(self.shared.another());
        by_id.push_back((id, session.clone()));
        session
    }
}

/// Who asked, where the HTTP door has found out.
pub(super) fn principal(context: &RequestContext<RoleServer>) -> Option<Principal> {
    context.extensions.get::<Parts>()?.extensions.get::<Principal>().cloned()
}

/// Whether the client speaks the newer era, which cannot be asked while a call runs.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// Whether the request may be of any of several clients: over HTTP the newer era has no sessions.
pub(super) fn is_shared(context: &RequestContext<RoleServer>) -> bool {
    is_stateless(context) && context.extensions.get::<Parts>().is_some()
}

fn session_id(context: &RequestContext<RoleServer>) -> Option<String> {
    if is_stateless(context) {
        return None;
    }
    let parts = context.extensions.get::<Parts>()?;
    parts.headers.get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned)
}
