//! MCP over HTTP: who may speak to this server, and for how long.
//!
//! A request passes Host, Origin, path, token, body and headers; then it is rmcp's, and what it asks for is the handler's. Pages of an
//! allowed origin get answers that their browser lets them read.

pub(super) mod chosen;
mod cors;
mod message;
mod names;
mod resumable;
mod waiting;

use super::Door;
use super::arguments;
use super::hang_up::is_hung_up;
use super::in_place::{Begun, Called, FirstTurn, InPlace};
use super::stdio::Line;
use super::token::Token;
use base::own_listener;
use bytes::Bytes;
use chosen::Chosen;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::body::{Body, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use message::{Fault, Message};
use names::Name;
pub use names::{host, origin};
use resumable::{Resumable, noticing};
use rmcp::model::{Extensions, ProtocolVersion};
use rmcp::service::{RoleServer, RunningService, TxJsonRpcMessage, serve_directly_with_ct};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rustix::process::{Resource, getrlimit};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib::call::Principal;
use waiting::{Place, Room};

/// Where MCP is spoken.
pub const PATH: &str = "/mcp";
/// Where a supervisor sees that this server lives.
const HEALTH: &str = "/healthz";
/// Who calls over HTTP: there is one token, so there is one caller.
const PRINCIPAL: &str = "mcp:http";

/// Connections at a time that have shown the token, of which more wait, and as many that have not. HTTP/1.1 has one request at a time on each, so
/// this bounds those as well.
const CONNECTIONS: usize = 1024;
/// Sessions of the older protocol versions at a time.
const SESSIONS: usize = 1000;
/// How long such a session may be silent. A call that takes long is silent, too.
const SESSION_TIME: Duration = Duration::from_secs(3600);
/// How long a connection may take to send its next headers, also when it has had answers before.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// How long the body of a request may take.
const BODY_TIME: Duration = Duration::from_secs(60);
/// How large it may be.
const BODY_BYTES: usize = 4 << 20;
/// How large the first one of a session may be, which is kept with it.
const INITIALIZE_BYTES: usize = 64 << 10;
/// How long a client may read nothing of an answer.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// How often the server checks whether the client of a request is still there.
const LOOK: Duration = Duration::from_secs(1);
/// How large its headers may be.
const HEADER_BYTES: usize = 32 << 10;
/// What a connection reads at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// How long requests in flight have when the server stops.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Where requests are accepted, and from whom.
pub struct Options {
    /// Address and port; port 0 is any that is free.
    pub listen: SocketAddr,
    /// The token that every request must carry; none when absent.
    pub token: Option<Token>,
    /// Names of this server besides those of loopback and the address: `name` or `name:port`, see [`host`].
    pub hosts: Vec<String>,
    /// Origins of the web pages that may call, as browsers write them, see [`origin`].
    pub origins: Vec<String>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Serves until `stop`, then gives requests in flight two seconds. `bound` gets the address on which it listens.
///
/// # Errors
/// When the address cannot be bound, or a name among the options is not valid.
pub fn serve(
    options: Options,
    door: Door,
    stop: CancellationToken,
    bound: fn(SocketAddr),
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(serve_handler(options, door, stop, bound))
}

/// [`serve`] with another handler behind the same gate.
///
/// # Errors
/// As there.
pub async fn serve_handler<H>(
    options: Options,
    handler: H,
    stop: CancellationToken,
    bound: fn(SocketAddr),
) -> io::Result<()>
where
    H: InPlace,
{
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    // No cell connects here.
    let _mark = own_listener::mark(address.port())?;
    let gate = Arc::new(Gate::new(options, address, handler, stop.clone())?);
    bound(address);
    let (connections, admitted) = (TaskTracker::new(), room());
    let room = Arc::new(Room::new(admitted, admitted));
    while let Some((stream, peer)) = stop.run_until_cancelled(next(&listener)).await {
        let (gate, place) = (gate.clone(), room.enter(peer.ip()));
        connections.spawn(async move { gate.attend(stream, place).await });
    }
    drop(listener);
    connections.close();
    let _ = timeout(GRACE, connections.wait()).await;
    gate.end.cancel();
    connections.wait().await;
    Ok(())
}

/// Connections that may be open and have shown the token, and as many that have not: each takes two descriptors, and half of those that this
/// process may have are for calls.
fn room() -> usize {
    let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
    CONNECTIONS.min(files.unwrap_or(usize::MAX) / 8).max(1)
}

async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// What is between the connections and the handler.
struct Gate<H: InPlace> {
    token: Option<Token>,
    hosts: Vec<Name>,
    origins: Vec<String>,
    mcp: StreamableHttpService<H, Resumable<H>>,
    /// The same for streams of news, which never end by themselves: they end as soon as the server stops.
    news: StreamableHttpService<H, Resumable<H>>,
    sessions: Arc<Resumable<H>>,
    handler: H,
    /// Who asks at the version without sessions: nobody who could be asked back.
    nobody: RunningService<RoleServer, H>,
    /// No more requests.
    stop: CancellationToken,
    /// No more answers.
    end: CancellationToken,
}

impl<H: InPlace> Gate<H> {
    fn new(options: Options, address: SocketAddr, handler: H, stop: CancellationToken) -> io::Result<Self> {
        let unusable = |fault: String| io::Error::new(io::ErrorKind::InvalidInput, fault);
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into_iter();
        // A browser takes 0.0.0.0 for this machine, whatever page asks for it.
        let own = own.chain((!address.ip().is_unspecified()).then(|| names::address(address.ip())));
        let hosts: Vec<String> = own.chain(options.hosts).collect();
        let hosts: Vec<String> = hosts.iter().map(|text| host(text).map_err(unusable)).collect::<io::Result<_>>()?;
        let origins = options.origins.iter().map(|text| origin(text).map_err(unusable));
        let origins = origins.collect::<io::Result<Vec<_>>>()?;
        let names = hosts.iter().filter_map(|text| Name::parse(text)).collect();
        let end = CancellationToken::new();
        // Host and Origin are checked here for every path, and by rmcp once more: no door depends on one check.
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(origins.clone())
            .enforce_origin_validation()
            .with_json_response(true)
            .with_max_request_body_bytes(BODY_BYTES)
            .with_cancellation_token(end.clone());
        let sessions = Arc::new(Resumable::new(handler.clone(), SESSION_TIME));
        let (nobody, served) = (nobody(handler.clone(), end.clone()), handler.clone());
        let mcp = StreamableHttpService::new(move || Ok(served.clone()), sessions.clone(), config);
        let mut news = mcp.clone();
        news.config.cancellation_token = stop.clone();
        Ok(Self { token: options.token, hosts: names, origins, mcp, news, sessions, handler, nobody, stop, end })
    }

    /// Answers the requests of one connection, until it ends or has to. A client that leaves or does not speak HTTP is not an error.
    async fn attend(&self, stream: TcpStream, place: Place) {
        let _ = stream.set_nodelay(true);
        // Unread bytes after a request keep hyper from noticing that its client has gone.
        let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE_TIME));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
        http.max_header_size(HEADER_BYTES).max_buf_size(BUFFER_BYTES);
        let answer = service_fn(async |request| {
            tokio::select! {
                answer = self.answer(request, &place) => Ok(answer),
                () = hung_up(&socket) => Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            }
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(Box::pin(stream)), answer));
        tokio::select! {
            _ = &mut connection => return,
            () = place.made_room() => return,
            () = self.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = self.end.run_until_cancelled(connection).await;
    }

    async fn answer(&self, request: Request<Incoming>, place: &Place) -> Answer {
        self.pass(request, place).await.unwrap_or_else(Refusal::into_answer)
    }

    async fn pass(&self, request: Request<Incoming>, place: &Place) -> Result<Answer, Refusal> {
        self.check_host(&request)?;
        let Some(origin) = self.check_origin(request.headers())? else { return self.enter(request, place).await };
        // Refusals get the headers as well: the page must be able to read why.
        let mut answer = self.enter(request, place).await.unwrap_or_else(Refusal::into_answer);
        cors::open_to(origin, &mut answer);
        Ok(answer)
    }

    async fn enter(&self, mut request: Request<Incoming>, place: &Place) -> Result<Answer, Refusal> {
        match (request.uri().path(), request.method()) {
            // Browsers send this question without the token.
            (PATH, method) => {
                if let Some(answer) = cors::preflight(method, request.headers()) {
                    return Ok(answer);
                }
            }
            (HEALTH, &Method::GET | &Method::HEAD) => return Ok(text(StatusCode::OK, "ok")),
            (HEALTH, _) => return Err(Refusal::Method("GET, HEAD")),
            _ => return Err(Refusal::Path),
        }
        self.check_token(request.headers())?;
        place.admit().await;
        // The token has served its purpose, and whoever looks at headers later must not see it.
        request.headers_mut().remove(AUTHORIZATION);
        request.extensions_mut().insert(Principal::from(PRINCIPAL));
        if let Some(chosen) = Chosen::read(request.uri().query()).map_err(Refusal::Query)? {
            request.extensions_mut().insert(chosen);
        }
        if request.method() == Method::POST { self.post(request).await } else { self.other(request).await }
    }

    async fn post(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let (mut parts, body) = request.into_parts();
        let mut body = read(body).await?;
        let message = Message::read(&body)?;
        message.check(&parts.headers)?;
        if message.has_odd_arguments()
            && let Some(plain) = arguments::plainly(&body)
        {
            body = plain.into();
        }
        if message.is_plain_call(&parts.headers)
            && let Some(line) = Line::read(&body)
            && line.says_all()
        {
            match self.begin(line, &parts) {
                Begun::Answered(answer) => return Ok(json(&answer)),
                // The request goes on with what was begun.
                Begun::GoesOn(mut called) => {
                    if let Some(first) = called.extensions.remove::<FirstTurn>() {
                        parts.extensions.insert(first);
                    }
                }
            }
        }
        let method = message.method();
        if method == Some("initialize") {
            // A session keeps it.
            if body.len() > INITIALIZE_BYTES {
                return Err(Refusal::Long);
            }
            if self.sessions.open().await >= SESSIONS {
                return Err(Refusal::Busy);
            }
            // Whoever begins has no session, also a client that still names the one that it had with a server of before.
            parts.headers.remove(message::SESSION_ID);
        }
        let mcp = if method == Some("subscriptions/listen") { &self.news } else { &self.mcp };
        Ok(mcp.handle(Request::from_parts(parts, Full::new(body))).await)
    }

    /// Has a call of the version without sessions take its first turn.
    fn begin(&self, Line { id, mut params, .. }: Line, parts: &Parts) -> Begun {
        let (mut known, ()) = Request::new(()).into_parts();
        known.extensions = parts.extensions.clone();
        let (meta, mut extensions) = (params.meta.take().unwrap_or_default(), Extensions::default());
        extensions.insert(known);
        self.handler.begin(Called { id, params, meta, extensions }, Some(self.nobody.peer()), None)
    }

    /// Sessions of the older versions have streams by GET and end by DELETE; the newer ones have no sessions.
    async fn other(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let mut versions = request.headers().get_all(message::VERSION).iter();
        if versions.any(|version| version.as_bytes() >= ProtocolVersion::NO_INITIALIZE.as_str().as_bytes()) {
            return Err(Refusal::Method("POST"));
        }
        let mcp = if request.method() == Method::GET { &self.news } else { &self.mcp };
        let ends = single(request.headers(), &message::SESSION_ID).filter(|_| request.method() == Method::DELETE);
        let ends = ends.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let (mut answer, has_ended) = noticing(mcp.handle(request)).await;
        if has_ended {
            return Err(Refusal::Ended);
        }
        if let Some(session) = ends.filter(|_| answer.status().is_success()) {
            self.handler.closed(&session);
            // rmcp says 202. The protocol names no status for a session that has ended, and clients take any but 200 for a failure.
            *answer.status_mut() = StatusCode::OK;
        }
        Ok(answer)
    }

    /// Refuses foreign names: by pointing its own name to this address (DNS rebinding), a web page reaches servers of a private machine.
    fn check_host(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        let host = single(request.headers(), &HOST).and_then(|host| host.to_str().ok()).ok_or(Refusal::Host)?;
        // A proxy's request names the server twice.
        let names = [Some(host), request.uri().authority().map(|authority| authority.as_str())];
        let is_own = |text: &str| Name::parse(text).is_some_and(|name| self.hosts.iter().any(|own| own.covers(&name)));
        if names.into_iter().flatten().all(is_own) { Ok(()) } else { Err(Refusal::Host) }
    }

    /// The origin of the page that calls, where one does.
    fn check_origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
        if !headers.contains_key(ORIGIN) {
            return Ok(None);
        }
        let origin = single(headers, &ORIGIN).ok_or(Refusal::Origin)?;
        // Browsers write an origin in one way only.
        if self.origins.iter().any(|known| known == origin) { Ok(Some(origin.clone())) } else { Err(Refusal::Origin) }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.token else { return Ok(()) };
        let borne = single(headers, &AUTHORIZATION).and_then(|value| value.to_str().ok()?.split_once(' '));
        let borne = borne.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
        if borne.is_some_and(|(_, borne)| token.is(borne)) { Ok(()) } else { Err(Refusal::Token) }
    }
}

/// The value of a header that appears once.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Returns when the client has gone.
async fn hung_up(socket: &OwnedFd) {
    loop {
        sleep(LOOK).await;
        if is_hung_up(socket) {
            return;
        }
    }
}

async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() > BODY_BYTES as u64 {
        return Err(Refusal::Size);
    }
    let whole = timeout(BODY_TIME, Limited::new(body, BODY_BYTES).collect()).await.map_err(|_| Refusal::Time)?;
    whole.map(|body| body.to_bytes()).map_err(|error| {
        // If the body broke off, nobody reads this answer.
        if error.is::<LengthLimitError>() { Refusal::Size } else { Refusal::Time }
    })
}

/// Why a request is not accepted.
#[derive(Debug)]
enum Refusal {
    Host,
    Origin,
    Path,
    /// What is wrong with what the address says.
    Query(String),
    /// With the methods that are allowed.
    Method(&'static str),
    /// The requested stream has ended.
    Ended,
    Token,
    Size,
    Long,
    Time,
    Busy,
    Message(Fault),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Message(fault)
    }
}

impl Refusal {
    fn into_answer(self) -> Answer {
        let with = |mut answer: Answer, name, value| {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
            answer
        };
        match self {
            Self::Host => text(StatusCode::FORBIDDEN, "this Host is not allowed: add it with `--allow-host`"),
            Self::Origin => text(StatusCode::FORBIDDEN, "this Origin is not allowed: add it with `--allow-origin`"),
            Self::Path => text(StatusCode::NOT_FOUND, "not found"),
            Self::Query(fault) => text(StatusCode::BAD_REQUEST, fault),
            Self::Method(taken) => with(text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed"), ALLOW, taken),
            // What clients read as "no stream is here": they do not ask again.
            Self::Ended => {
                let told = "the stream of this Last-Event-ID has ended";
                with(text(StatusCode::METHOD_NOT_ALLOWED, told), ALLOW, "POST, DELETE")
            }
            Self::Token => {
                let answer = text(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
                with(answer, WWW_AUTHENTICATE, "Bearer")
            }
            Self::Size => {
                text(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {} MiB", BODY_BYTES >> 20))
            }
            Self::Long => {
                let told = format!("the `initialize` request is larger than {} KiB", INITIALIZE_BYTES >> 10);
                text(StatusCode::PAYLOAD_TOO_LARGE, told)
            }
            Self::Time => {
                text(StatusCode::REQUEST_TIMEOUT, format!("the body took longer than {} s", BODY_TIME.as_secs()))
            }
            Self::Busy => {
                text(StatusCode::SERVICE_UNAVAILABLE, format!("too many sessions are open (limit: {SESSIONS})"))
            }
            Self::Message(fault) => {
                let answer = text(StatusCode::BAD_REQUEST, fault.to_json().to_string());
                with(answer, CONTENT_TYPE, "application/json")
            }
        }
    }
}

/// Somebody who says nothing and hears nothing.
fn nobody<H: InPlace>(handler: H, end: CancellationToken) -> RunningService<RoleServer, H> {
    let (silence, other) = tokio::io::duplex(1);
    // The other end stays open until the server ends.
    let kept = end.clone();
    tokio::spawn(async move {
        kept.cancelled().await;
        drop(other);
    });
    serve_directly_with_ct(handler, silence, None, end)
}

fn json(message: &TxJsonRpcMessage<RoleServer>) -> Answer {
    let body = serde_json::to_vec(message).expect("a message of JSON-RPC is made of text and numbers");
    let mut answer = text(StatusCode::OK, body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(message::JSON));
    answer
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
