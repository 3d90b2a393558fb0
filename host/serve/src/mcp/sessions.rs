//! Which memory a request has: one for a connection of the older eras, one for each caller of the newer era, which knows no sessions.

use super::http::chosen::Chosen;
use hyper::http::request::Parts;
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::Extensions;
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer};
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolcrib::Host;
use toolcrib::call::Principal;
use toolcrib::call::session::Session;
use toolcrib::envelope::Failure;

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
    host: Arc<Host>,
    /// That of stdio; over HTTP clients of the newer era share what people approved and the output that was kept.
    shared: Arc<Session>,
    by_id: Mutex<VecDeque<(String, Arc<Session>)>>,
    /// As `shared`, for those who have chosen a toolset, by what they have chosen.
    by_choice: Mutex<VecDeque<(String, Arc<Session>)>>,
    /// Those that have begun, by id; the one of stdio has none.
    begun: Mutex<HashMap<String, Client>>,
    /// What ends their subscriptions, by id.
    subscribed: Mutex<HashMap<String, CancellationToken>>,
}

impl Sessions {
    pub(super) fn new(host: Arc<Host>, shared: Arc<Session>) -> Self {
        let (by_id, by_choice, begun, subscribed) = Default::default();
        Self { host, shared, by_id, by_choice, begun, subscribed }
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

    /// Keeps what ends the subscription of a session, and ends the one that it had.
    pub(super) fn subscribe(&self, context: &RequestContext<RoleServer>, ends: Option<CancellationToken>) {
        let mut subscribed = self.subscribed.lock();
        subscribed.retain(|_, ends| !ends.is_cancelled());
        let id = session_id(context).unwrap_or_default();
        let before = match ends {
            Some(ends) => subscribed.insert(id, ends),
            None => subscribed.remove(&id),
        };
        if let Some(before) = before {
            before.cancel();
        }
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

    /// The session of a request. An id is looked at only where the transport has made it. What a client has chosen counts from the first request
    /// of its session on.
    ///
    /// # Errors
    ///
    /// Where it has chosen what there is not, or what this server does not let it choose.
    pub(super) fn of(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Session>, ErrorData> {
        let chosen = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Chosen>());
        if is_shared(context) {
            let shared = match chosen {
                None => self.shared.clone(),
                Some(chosen) => kept(&self.by_choice, &chosen.key(), || self.open(chosen))?,
            };
            return Ok(Arc::new(shared.beside()));
        }
        let Some(id) = session_id(context) else { return Ok(self.shared.clone()) };
        kept(&self.by_id, &id, || match chosen {
            None => Ok(self.shared.another()),
            Some(chosen) => self.open(chosen),
        })
    }

    /// The memory of a session that its client has ended, if it had one; it is forgotten.
    pub(super) fn forget(&self, id: &str) -> Option<Arc<Session>> {
        let mut all = self.by_id.lock();
        let place = all.iter().position(|(other, _)| other == id)?;
        all.remove(place).map(|(_, session)| session)
    }

    /// A session on a toolset that a client has chosen, whose turn is open as long as it lives.
    fn open(&self, chosen: &Chosen) -> Result<Session, ErrorData> {
        if let Some(served) = self.shared.toolset() {
            let message = format!("this server serves the toolset `{}` alone", served.name());
            return Err(ErrorData::invalid_params(message, None));
        }
        let session = self.host.toolset(&chosen.toolset).and_then(|toolset| {
            let session = Session::on(toolset, chosen.given.clone())?;
            session.turn(true).map(|()| session)
        });
        session.map_err(|Failure { message, hint, .. }| {
            ErrorData::invalid_params(message, hint.map(|hint| json!({ "hint": hint })))
        })
    }
}

/// The session of this key, which is made where there is none; the oldest makes room.
fn kept(
    all: &Mutex<VecDeque<(String, Arc<Session>)>>,
    key: &str,
    make: impl FnOnce() -> Result<Session, ErrorData>,
) -> Result<Arc<Session>, ErrorData> {
    let mut all = all.lock();
    if let Some((_, session)) = all.iter().find(|(other, _)| other == key) {
        return Ok(session.clone());
    }
    let session = Arc::new(make()?);
    if all.len() >= SESSIONS_KEPT {
        all.pop_front();
    }
    all.push_back((key.to_owned(), session.clone()));
    Ok(session)
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
