//! Where a server over HTTP is, and how it is spoken to: by the one egress, with the headers of the protocol and of its section.

use super::listing::MODERN;
use super::wire::Via;
use base::envelope::{Failure, Kind};
use base::target::Target;
use config::Template;
use egress::{Egress, OwnAnswer, OwnRequest, header_value};
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use policy::connections::Judge;
use policy::hosts::AdmittedTarget;
use policy::upstream::UpstreamGrant;
use secrets::Secrets;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";
/// Both are always asked for: servers refuse whoever does not.
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Bytes of a session id.
const SESSION_BYTES: usize = 1 << 10;
/// How long the server may think: whoever waits decides.
const PATIENCE: Duration = Duration::from_secs(86_400);
/// How long a message may take that nobody waits for.
pub(super) const PARTING: Duration = Duration::from_secs(5);

/// Where a server is, and how it is spoken to.
pub(super) struct Link {
    egress: Arc<Egress>,
    secrets: Arc<Secrets>,
    target: Target,
    /// Those of its section.
    headers: BTreeMap<String, Template>,
    /// Whose connections are used.
    owner: String,
    spoken: Mutex<Spoken>,
}

/// What was agreed on.
#[derive(Default)]
struct Spoken {
    protocol: Option<String>,
    session: Option<HeaderValue>,
    /// By what the server was reached last.
    grant: Option<Arc<UpstreamGrant>>,
}

impl Link {
    pub(super) fn new(
        target: Target,
        headers: &BTreeMap<String, Template>,
        owner: String,
        egress: &Arc<Egress>,
        secrets: &Arc<Secrets>,
    ) -> Self {
        let (egress, secrets, headers) = (egress.clone(), secrets.clone(), headers.clone());
        Self { egress, secrets, target, headers, owner, spoken: Mutex::default() }
    }

    pub(super) fn speak(&self, protocol: Option<&str>) {
        self.spoken.lock().protocol = protocol.map(str::to_owned);
    }

    pub(super) fn is_modern(&self) -> bool {
        self.spoken.lock().protocol.as_deref() == Some(MODERN)
    }

    pub(super) fn has_session(&self) -> bool {
        self.spoken.lock().session.is_some()
    }

    /// Takes the session that a greeting has begun, where the server keeps one.
    pub(super) fn begin_session(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let session = headers.get(SESSION).cloned();
        let fits = |id: &HeaderValue| id.len() <= SESSION_BYTES && id.as_bytes().iter().all(u8::is_ascii_graphic);
        if session.as_ref().is_some_and(|id| !fits(id)) {
            return Err(Failure::failed("its session id is not valid in a header"));
        }
        self.spoken.lock().session = session;
        Ok(())
    }

    /// Posts a request of a call, which is on the record.
    pub(super) async fn post(
        &self,
        body: String,
        headers: HeaderMap,
        may_have_acted: bool,
        via: &Via<'_>,
    ) -> Result<OwnAnswer, Failure> {
        let admitted = via.grant.admit_url(&self.target);
        via.grant.record_connection(&self.target.server(), admitted.as_ref().map(drop), via.scope);
        let admitted = admitted?;
        self.spoken.lock().grant = Some(via.grant.clone());
        self.send_admitted(admitted, Method::POST, body, headers, via.grant, may_have_acted).await
    }

    /// Sends what has no effect of its own.
    pub(super) async fn send(
        &self,
        method: Method,
        body: String,
        headers: HeaderMap,
        grant: &Arc<UpstreamGrant>,
    ) -> Result<OwnAnswer, Failure> {
        self.send_admitted(grant.admit_url(&self.target)?, method, body, headers, grant, false).await
    }

    async fn send_admitted(
        &self,
        admitted: AdmittedTarget,
        method: Method,
        body: String,
        mut headers: HeaderMap,
        grant: &Arc<UpstreamGrant>,
        may_have_acted: bool,
    ) -> Result<OwnAnswer, Failure> {
        headers.insert(header::ACCEPT, if method == Method::GET { HeaderValue::from_static(EVENTS) } else { EITHER });
        if !body.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        let (protocol, session) = {
            let spoken = self.spoken.lock();
            (spoken.protocol.as_deref().and_then(|protocol| protocol.parse().ok()), spoken.session.clone())
        };
        headers.extend(protocol.map(|protocol| (VERSION, protocol)));
        headers.extend(session.map(|session| (SESSION, session)));
        // Last of all: what has been decided was about their names.
        for (name, template) in &self.headers {
            let text = self.secrets.fill(template).await?;
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
            headers.insert(name, header_value(&text, template)?);
        }
        let (owner, patience, body) = (&self.owner, PATIENCE, body.into_bytes());
        let request = OwnRequest { method, headers, body, owner, patience, may_have_acted };
        let judge = |target: &Target, address, special, is_own| grant.admit_address(target, address, special, is_own);
        self.egress.send_own(request, admitted, judge).await
    }

    /// Answers a request of the server. One that does not take the answer is not waited for long.
    pub(super) async fn reply(&self, reply: String, grant: &Arc<UpstreamGrant>) {
        let _ = tokio::time::timeout(PARTING, self.send(Method::POST, reply, HeaderMap::new(), grant)).await;
    }

    /// Says something that nobody waits for.
    pub(super) fn part(self: &Arc<Self>, method: Method, body: String, grant: Arc<UpstreamGrant>) {
        let link = self.clone();
        let said = async move {
            let _ = tokio::time::timeout(PARTING, link.send(method, body, HeaderMap::new(), &grant)).await;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(said);
        }
    }

    /// Ends the session, where there is one.
    pub(super) fn end_session(self: &Arc<Self>) {
        let grant = {
            let mut spoken = self.spoken.lock();
            spoken.grant.take().filter(|_| spoken.session.is_some())
        };
        grant.into_iter().for_each(|grant| self.part(Method::DELETE, String::new(), grant));
    }
}

/// Whether an answer is a stream of events.
pub(super) fn is_events(answer: &OwnAnswer) -> bool {
    answer.status.is_success() && answer.media_type() == EVENTS
}
