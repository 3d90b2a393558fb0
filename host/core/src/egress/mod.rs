//! The one egress: whatever leaves this machine for a plugin goes through here, and no other module opens sockets.
//!
//! A URL is parsed (`target.rs`), policy decides on it, its name is resolved once and every address judged (`connect.rs`, `addresses.rs`,
//! `resolver.rs`), a person is asked where settings say so, and the request goes to these addresses alone (`client.rs`). A redirect begins
//! anew. What a plugin may reach, and the words of refusals, are in `policy/http.rs`. What confined commands connect to takes the same way as
//! far as that goes (`cells/`, `policy/connections.rs`).

mod addresses;
mod body;
mod cells;
mod client;
mod connect;
mod resolver;
mod target;

pub(crate) use addresses::{Special, special};
pub(crate) use cells::Calling;
pub(crate) use connect::Route;
pub(crate) use target::{Host, Target};

use crate::call::scope::Scope;
use crate::config::{Config, Part};
use crate::dirs::Dirs;
use crate::envelope::{Failure, Kind, duration};
use crate::leaks::{Exit, Guard};
use crate::policy::http::{ApprovedRoute, HttpGrant, OwnHeader};
use body::Body;
use cells::Cells;
use client::{Clients, explain};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response as Answer, StatusCode};
use resolver::Names;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Redirects that are followed.
const MAX_HOPS: u32 = 5;
/// How long a server may think before it answers.
const FIRST_BYTE: Duration = Duration::from_secs(15);
/// Names and values of an answer's headers.
const HEADER_BYTES: usize = 64 << 10;
/// The longest body that is handed on.
pub(crate) const BODY_BYTES: usize = 8 << 20;

/// The `user-agent` of requests, unless a plugin sets one.
const USER_AGENT: &str = concat!("toolcrib/", env!("CARGO_PKG_VERSION"));

/// Headers that belong to the connection, or that this module sets by what it does itself.
#[rustfmt::skip]
const OWN_HEADERS: [HeaderName; 13] = [
    header::HOST, header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::TE, header::TRAILER, header::UPGRADE,
    header::EXPECT, header::ACCEPT_ENCODING, header::PROXY_AUTHORIZATION, header::PROXY_AUTHENTICATE, header::FORWARDED,
    HeaderName::from_static("keep-alive"),
];
/// Headers that another origin may see: they tell nothing of who asks the first one.
#[rustfmt::skip]
const PUBLIC_HEADERS: [HeaderName; 5] = [
    header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT,
];

/// The way out.
pub(crate) struct Egress {
    names: Arc<Names>,
    clients: Clients,
    cells: Cells,
}

/// A request that a guest has put together.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Bytes of the answer's body to hand on.
    pub(crate) limit: usize,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Where it came from, after redirects.
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
    pub(crate) truncated: bool,
}

impl Egress {
    /// That of these settings.
    pub(crate) fn of(config: &Config, dirs: &Dirs) -> Self {
        let network = &config.network;
        let ca_file = Some(&network.ca_file).filter(|file| !file.is_empty()).map(|file| dirs.expand(file));
        Self::new(network.dns_servers(), ca_file)
    }

    /// `dns_servers` are asked instead of the system's; `ca_file` holds certificates that are trusted in addition to the system's.
    pub(crate) fn new(dns_servers: Vec<SocketAddr>, ca_file: Option<PathBuf>) -> Self {
        Self { names: Arc::new(Names::new(dns_servers)), clients: Clients::new(ca_file), cells: Cells::default() }
    }

    /// Sends a request, and follows redirects, within the time that the grant gives.
    pub(crate) async fn fetch(
        &self,
        request: Request,
        target: Target,
        grant: &HttpGrant,
        scope: &Scope,
    ) -> Result<Response, Failure> {
        let mut deadline = Deadline::new(grant.timeout());
        let (mut request, mut target) = (request, target);
        let mut from: Option<ApprovedRoute> = None;
        for _ in 0..=MAX_HOPS {
            let hop = self.hop(&request, &target, from.as_ref(), grant, &mut deadline, scope).await;
            let (answer, route) = hop.map_err(|failure| told(from.as_ref().map(ApprovedRoute::target), failure))?;
            let Some(location) = redirect(&answer)? else {
                let answer = deadline.bound(false, &target, read(answer, &target, request.limit)).await;
                return answer.map(|answer| answer.redacted(&scope.guard));
            };
            let next = target.redirected(&location).map_err(|failure| told(Some(&target), failure))?;
            if target.is_encrypted() && !next.is_encrypted() {
                return Err(told(
                    Some(&target),
                    Failure::denied(format!("the redirect to `{next}` would leave HTTPS")),
                ));
            }
            request = request.redirected(answer.status(), &target, &next);
            (from, target) = (Some(route), next);
        }
        Err(Failure::denied(format!("the server redirects more than {MAX_HOPS} times")))
    }

    /// Takes one target from the rules to the server's answer; `from` is what redirected to it.
    async fn hop(
        &self,
        request: &Request,
        target: &Target,
        from: Option<&ApprovedRoute>,
        grant: &HttpGrant,
        deadline: &mut Deadline,
        scope: &Scope,
    ) -> Result<(Answer, ApprovedRoute), Failure> {
        let admitted = grant.admit(&request.method, target.clone(), scope)?;
        // Before its name is asked for: a question for a name leaves the machine, too.
        scope
            .guard
            .check(Exit::Request, request.parts(target).iter().map(AsRef::as_ref))
            .inspect_err(|refusal| grant.record(&request.method, target, Err(refusal), scope))?;
        let judge = |target: &Target, address, special, is_own| grant.admit_address(target, address, special, is_own);
        let route = deadline.bound(false, target, connect::connect(&self.names, admitted, judge)).await;
        let route = route.inspect_err(|refusal| grant.record(&request.method, target, Err(refusal), scope))?;
        let route = grant.approve(route, request, from, scope).await?;
        // Last of all: what has been decided was about their names.
        let own = own_headers(grant, target, scope).await?;
        let answer = deadline.bound(!request.method.is_safe(), target, self.send(&route, request, own, grant)).await?;
        Ok((answer, route))
    }

    async fn send(
        &self,
        route: &ApprovedRoute,
        request: &Request,
        own: HeaderMap,
        grant: &HttpGrant,
    ) -> Result<Answer, Failure> {
        let (route, target) = (route.route(), route.route().target());
        let client = self.clients.client(&grant.client_key(), route).await?;
        let mut headers = request.headers.clone();
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(body::ENCODINGS));
        headers.extend(own);
        let mut sent = client.request(request.method.clone(), target.url().clone()).headers(headers);
        if !request.body.is_empty() {
            sent = sent.body(request.body.clone());
        }
        let may_have_acted = !request.method.is_safe();
        let answer = tokio::time::timeout(FIRST_BYTE, sent.send()).await;
        let answer = answer.map_err(|_| slow(target, FIRST_BYTE, may_have_acted))?;
        let answer = answer.map_err(|error| explain(&error, target, may_have_acted))?;
        // The library was bound to these addresses; this is the proof.
        if answer.remote_addr().is_none_or(|peer| !route.addresses().contains(&peer)) {
            let message = format!("the connection to `{}` went to another address", target.host());
            return Err(Failure::new(Kind::Internal, message));
        }
        check_headers(answer.headers())?;
        Ok(answer)
    }
}

/// The headers that settings write, with their secrets.
async fn own_headers(grant: &HttpGrant, target: &Target, scope: &Scope) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for OwnHeader { name, template, .. } in grant.headers_for(target) {
        let mut text = Zeroizing::new(String::new());
        for part in template.parts() {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Secret(secret) => {
                    // A person may have to unlock it.
                    let _waiting = scope.clock.waiting();
                    text.push_str(scope.secrets.value(secret).await?.expose());
                }
            }
        }
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            let message = format!("a secret of `{template}` has characters that no header may have");
            Failure::new(Kind::Unavailable, message).hint("keep it in one line of visible ASCII characters")
        })?;
        // The library shows it in no message.
        value.set_sensitive(true);
        headers.insert(name.clone(), value);
    }
    Ok(headers)
}

impl Response {
    /// The same without any secret, as a server may send back what it was sent.
    fn redacted(mut self, guard: &Guard) -> Self {
        self.body = guard.redact_body(self.body, self.truncated);
        self.url = guard.redact(&self.url).into_owned();
        for value in self.headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            guard.redact_bytes(&mut bytes);
            if bytes != value.as_bytes() {
                *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("[secret]"));
            }
        }
        self
    }
}

impl Request {
    /// All that a server gets to see of what the guest wrote. The parser of URLs has made a host's letters small, and a host has at most 63
    /// characters between two dots.
    fn parts<'p>(&'p self, target: &'p Target) -> Vec<Cow<'p, [u8]>> {
        let url = target.url().as_str().as_bytes();
        let decoded = percent_encoding::percent_decode(url).into();
        let host = Cow::Owned(target.host().to_string().replace('.', "").into_bytes());
        let headers = self.headers.iter().flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        let written = headers.chain([self.body.as_slice()]).map(Cow::Borrowed);
        [Cow::Borrowed(url), decoded, host].into_iter().chain(written).collect()
    }

    /// Adds a header of the guest's.
    pub(crate) fn add_header(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let shown = crate::text::sanitize::line(name).chars().take(100).collect::<String>();
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) else {
            return Err(Failure::invalid(format!("the header `{shown}` has characters that no header may have")));
        };
        if is_own(&name) {
            return Err(Failure::invalid(format!("the header `{name}` is set by the host alone"))
                .hint("omit it; the connection is made as the URL says"));
        }
        self.headers.append(name, value);
        Ok(())
    }

    /// The request that a redirect asks for, by the rules of the Fetch standard (HTTP-redirect fetch).
    fn redirected(mut self, status: StatusCode, from: &Target, to: &Target) -> Self {
        let becomes_get = match status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            StatusCode::SEE_OTHER => ![Method::GET, Method::HEAD].contains(&self.method),
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body.clear();
            self.headers.remove(header::CONTENT_TYPE);
            self.headers.remove(header::CONTENT_LANGUAGE);
        }
        if from.url().origin() != to.url().origin() {
            let kept = PUBLIC_HEADERS
                .iter()
                .flat_map(|name| self.headers.get_all(name).iter().map(move |value| (name.clone(), value.clone())));
            self.headers = kept.collect();
        }
        self
    }
}

/// Whether a header is set by the host alone.
fn is_own(name: &HeaderName) -> bool {
    OWN_HEADERS.contains(name) || name.as_str().starts_with("proxy-")
}

/// Whether settings can have a header of this name, in lower case.
///
/// # Errors
///
/// Why not, as the rest of a sentence.
pub(crate) fn check_header(name: &str) -> Result<(), String> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) if is_own(&name) => Err("is a header that belongs to the connection".into()),
        Ok(_) => Ok(()),
        Err(_) => Err("has characters that no header may have".into()),
    }
}

/// Says which redirect led there.
fn told(from: Option<&Target>, failure: Failure) -> Failure {
    match from {
        Some(from) => Failure { message: format!("`{from}` redirects: {}", failure.message), ..failure },
        None => failure,
    }
}

/// Where the answer redirects to, if it does.
fn redirect(answer: &Answer) -> Result<Option<String>, Failure> {
    let is_redirect = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = answer.headers().get(header::LOCATION).filter(|_| is_redirect) else { return Ok(None) };
    let location =
        location.to_str().map_err(|_| Failure::failed("the server redirects to something that is not a URL"))?;
    Ok(Some(location.to_owned()))
}

async fn read(mut answer: Answer, target: &Target, limit: usize) -> Result<Response, Failure> {
    let encoding = answer.headers_mut().remove(header::CONTENT_ENCODING);
    if encoding.is_some() {
        // It is that of the packed body.
        answer.headers_mut().remove(header::CONTENT_LENGTH);
    }
    let encoding = encoding.as_ref().map(|value| value.to_str().unwrap_or("?"));
    let mut body = Body::new(encoding, limit.min(BODY_BYTES))?;
    let mut truncated = false;
    while let Some(piece) = answer.chunk().await.map_err(|error| explain(&error, target, false))? {
        if !body.push(&piece)? {
            truncated = true;
            break;
        }
    }
    let headers = std::mem::take(answer.headers_mut());
    let url = target.url().to_string();
    Ok(Response { status: answer.status(), headers, url, body: body.finish(), truncated })
}

fn check_headers(headers: &HeaderMap) -> Result<(), Failure> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes <= HEADER_BYTES {
        return Ok(());
    }
    Err(Failure::limit(format!("limit: headers of an answer {} KiB, this one has {bytes} bytes", HEADER_BYTES >> 10)))
}

fn slow(target: &Target, after: Duration, may_have_acted: bool) -> Failure {
    let message = format!("`{}:{}` gave no answer within {}", target.host(), target.port(), duration(after));
    if may_have_acted {
        return Failure::new(Kind::OutcomeUnknown, message)
            .hint("check whether the request had its effect before you send it again");
    }
    Failure::new(Kind::TimedOut, message)
}

/// The time that a request has with all its redirects; what people take to answer does not count.
struct Deadline {
    in_all: Duration,
    left: Duration,
}

impl Deadline {
    fn new(in_all: Duration) -> Self {
        Self { in_all, left: in_all }
    }

    /// Does a part of it. `may_have_acted`: a request that is not answered in time can have had its effect.
    async fn bound<T>(
        &mut self,
        may_have_acted: bool,
        target: &Target,
        part: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let begin = Instant::now();
        let done = tokio::time::timeout(self.left, part).await;
        self.left = self.left.saturating_sub(begin.elapsed());
        done.unwrap_or_else(|_| Err(slow(target, self.in_all, may_have_acted)))
    }
}
