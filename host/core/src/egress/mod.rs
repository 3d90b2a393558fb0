//! The one egress: whatever leaves this machine for a plugin goes through here, and no other module opens sockets.
//!
//! A URL is parsed (`target.rs`), policy decides on it, its name is resolved once and every address judged (`connect.rs`, `addresses.rs`,
//! `resolver.rs`), a person is asked where settings say so, and the request goes to these addresses alone (`client.rs`). A redirect begins
//! anew. What a plugin may reach, and the words of refusals, are in `policy/http.rs`. What confined commands connect to takes the same way as
//! far as that goes (`cells/`, `policy/connections.rs`), and so does what the host sends for mail
//! (`streams.rs`, `policy/mail.rs`) and to servers of others (`own.rs`, `policy/upstream.rs`).

mod addresses;
mod body;
mod cells;
mod client;
mod connect;
mod own;
mod resolver;
mod streams;
mod target;

pub(crate) use addresses::{Special, special};
pub(crate) use cells::{Attached, Calling, Naming};
pub(crate) use client::CA_BYTES;
pub(crate) use connect::Route;
pub(crate) use own::{FormAnswer, OwnAnswer, OwnRequest};
pub(crate) use streams::plainly;
pub(crate) use target::{Host, Target};

use crate::call::scope::Scope;
use crate::config::Config;
use crate::dirs::Dirs;
use crate::envelope::{Failure, Kind, duration};
use crate::leaks::{Exit, Guard, Stream};
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
use url::Url;
use zeroize::Zeroizing;

/// Redirects that are followed.
const MAX_HOPS: u32 = 5;
/// How long a server may think before it answers.
const FIRST_BYTE: Duration = Duration::from_secs(15);
/// Names and values of an answer's headers.
const HEADER_BYTES: usize = 64 << 10;
/// The longest body that is handed on to a plugin.
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

/// What a server answered, with the whole of its body.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Where it came from, after redirects.
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
    pub(crate) truncated: bool,
}

/// What a server answered, its body still on its way. Nothing of it holds a secret, as a server may send back what it was sent.
pub(crate) struct Opened {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    target: Target,
    answer: Answer,
    body: Body,
    /// None once the body has ended.
    redacted: Option<Stream>,
    deadline: Deadline,
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

    /// Sends a request, follows redirects, and reads the answer, within the time that the grant gives.
    pub(crate) async fn fetch(
        &self,
        request: Request,
        target: Target,
        grant: &HttpGrant,
        scope: &Scope,
    ) -> Result<Response, Failure> {
        let most = request.limit.min(grant.most_bytes());
        self.open(request, target, grant, scope).await?.read(most, &scope.guard).await
    }

    /// The same up to the beginning of the answer's body, which is read with what is left of that time. Nobody minds the request's `limit`.
    pub(crate) async fn open(
        &self,
        request: Request,
        target: Target,
        grant: &HttpGrant,
        scope: &Scope,
    ) -> Result<Opened, Failure> {
        let mut deadline = Deadline::new(grant.timeout());
        let (mut request, mut target) = (request, target);
        let mut from: Option<ApprovedRoute> = None;
        for _ in 0..=MAX_HOPS {
            let hop = self.hop(&request, &target, from.as_ref(), grant, &mut deadline, scope).await;
            let (answer, route) = hop.map_err(|failure| told(from.as_ref().map(ApprovedRoute::target), failure))?;
            let Some(location) = redirect(&answer)? else {
                return Opened::new(answer, target, deadline, &scope.guard);
            };
            let next = target.redirected(&location).map_err(|failure| told(Some(&target), failure))?;
            if target.is_encrypted() && !next.is_encrypted() {
                let refusal = Failure::denied(format!("the redirect to `{next}` would leave HTTPS"));
                grant.record(&request.method, &next, Err(&refusal), scope);
                return Err(told(Some(&target), refusal));
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
        let lent = request.secrets(target, scope);
        let admitted_secrets = lent.iter().try_for_each(|(secret, _)| grant.admit_secret(secret, target));
        let admitted_secrets =
            admitted_secrets.and_then(|()| match !lent.is_empty() && request.headers.contains_key(header::RANGE) {
                // The server may send back what it was sent, and a piece of a secret is not told from other text.
                true => Err(Failure::denied("a request with a secret cannot ask for a range of the answer")),
                false => Ok(()),
            });
        admitted_secrets.inspect_err(|refusal| grant.record(&request.method, target, Err(refusal), scope))?;
        let judge = |target: &Target, address, special, is_own| grant.admit_address(target, address, special, is_own);
        let route = deadline.bound(false, target, connect::connect(&self.names, admitted, judge)).await;
        let route = route.inspect_err(|refusal| grant.record(&request.method, target, Err(refusal), scope))?;
        let route = grant.approve(route, request, from, scope).await?;
        scope.check_open()?;
        // Last of all: what has been decided was about their names.
        let own = own_headers(grant, target, scope).await?;
        let told = Told::new(request, target, own, &lent, scope).await?;
        let answer = deadline.bound(!request.method.is_safe(), target, self.send(&route, told, grant)).await?;
        Ok((answer, route))
    }

    async fn send(&self, route: &ApprovedRoute, told: Told, grant: &HttpGrant) -> Result<Answer, Failure> {
        let may_have_acted = !told.method.is_safe();
        self.exchange(route.route(), told, &grant.client_key(), FIRST_BYTE, may_have_acted).await
    }

    /// Sends a request by a connection of this owner, to the addresses that were judged and no others.
    async fn exchange(
        &self,
        route: &Route,
        told: Told,
        owner: &str,
        patience: Duration,
        may_have_acted: bool,
    ) -> Result<Answer, Failure> {
        let target = route.target();
        let client = self.clients.client(owner, route).await?;
        let mut sent = client.request(told.method, told.url).headers(told.headers);
        if !told.body.is_empty() {
            sent = sent.body(told.body);
        }
        let answer = tokio::time::timeout(patience, sent.send()).await;
        let answer = answer.map_err(|_| slow(target, patience, may_have_acted))?;
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

/// What a request has in its URL and headers, in bytes, where secrets are put into it.
const TOLD_BYTES: usize = 256 << 10;

/// A request as it is sent: that of the guest, with what the host adds, and secrets in place of the words for them. A body keeps its words: a server
/// may store it, and be asked for it in pieces.
struct Told {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Told {
    async fn new(
        request: &Request,
        target: &Target,
        own: HeaderMap,
        lent: &[(String, String)],
        scope: &Scope,
    ) -> Result<Self, Failure> {
        let (mut url, mut headers) = (target.url().clone(), request.headers.clone());
        for (secret, word) in lent {
            // A person may have to unlock it.
            let _waiting = scope.clock.waiting();
            let value = scope.secrets.value(secret).await?;
            let value = value.expose();
            if let Some(query) = url.query().filter(|query| query.contains(word)) {
                let written = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
                let query = Zeroizing::new(query.replace(word, &written.to_string()));
                url.set_query(Some(&query));
            }
            for header in headers.values_mut().filter(|header| header.to_str().is_ok_and(|text| text.contains(word))) {
                let text = Zeroizing::new(header.to_str().unwrap_or_default().replace(word, value));
                *header = header_value(&text, secret)?;
            }
        }
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(body::ENCODINGS));
        headers.extend(own);
        let written = url.as_str().len() + headers.values().map(HeaderValue::len).sum::<usize>();
        if !lent.is_empty() && written > TOLD_BYTES {
            return Err(Failure::limit(format!(
                "with its secrets the request is longer than {} KiB",
                TOLD_BYTES >> 10
            )));
        }
        Ok(Self { method: request.method.clone(), url, headers, body: request.body.clone() })
    }
}

/// A header with secrets of `source` in it, which the library shows in no message.
pub(crate) fn header_value(text: &str, source: impl std::fmt::Display) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        let message = format!("a secret of `{source}` has characters that no header may have");
        Failure::new(Kind::Unavailable, message).hint("keep it in one line of visible ASCII characters")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The headers that settings write, with their secrets.
async fn own_headers(grant: &HttpGrant, target: &Target, scope: &Scope) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for OwnHeader { name, template, .. } in grant.headers_for(target) {
        // A person may have to unlock it.
        let _waiting = scope.clock.waiting();
        let text = scope.secrets.fill(template).await?;
        headers.insert(name.clone(), header_value(&text, template)?);
    }
    Ok(headers)
}

impl Opened {
    fn new(mut answer: Answer, target: Target, deadline: Deadline, guard: &Guard) -> Result<Self, Failure> {
        let mut headers = std::mem::take(answer.headers_mut());
        let encodings: Vec<HeaderValue> = headers.get_all(header::CONTENT_ENCODING).iter().cloned().collect();
        if encodings.len() > 1 {
            return Err(Failure::failed("the server says of its answer several times how it is packed"));
        }
        headers.remove(header::CONTENT_ENCODING);
        if !encodings.is_empty() || guard.knows_secrets() {
            // It is that of the packed body, or of one with secrets in it.
            headers.remove(header::CONTENT_LENGTH);
        }
        let names: Vec<HeaderName> = headers.keys().cloned().collect();
        for name in names.into_iter().filter(|name| guard.redact(name.as_str()) != name.as_str()) {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            guard.redact_bytes(&mut bytes);
            if bytes != value.as_bytes() {
                *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("[secret]"));
            }
        }
        let body = Body::new(encodings.first().map(|value| value.to_str().unwrap_or("?")))?;
        let redacted = Some(guard.answer_stream());
        Ok(Self { status: answer.status(), headers, target, answer, body, redacted, deadline })
    }

    /// The next piece of the body, which may be empty; none at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(redacted) = &mut self.redacted else { return Ok(None) };
        let (answer, target) = (&mut self.answer, &self.target);
        let chunk = async { answer.chunk().await.map_err(|error| explain(&error, target, false)) };
        Ok(Some(match self.deadline.bound(false, target, chunk).await? {
            Some(piece) => redacted.push(&self.body.push(&piece)?).into_owned(),
            None => self.redacted.take().map(|rest| rest.finish().0).unwrap_or_default(),
        }))
    }

    /// Reads the body up to `most` bytes. What follows a cut is left out as it came: it may be the rest of a secret.
    async fn read(mut self, most: usize, guard: &Guard) -> Result<Response, Failure> {
        let (mut body, mut truncated) = (Vec::new(), false);
        while let Some(piece) = self.next().await? {
            body.extend(piece);
            if body.len() > most {
                body.truncate(most);
                truncated = true;
                break;
            }
        }
        let url = guard.redact(self.target.url().as_str()).into_owned();
        Ok(Response { status: self.status, headers: self.headers, url, body, truncated })
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

    /// The secrets whose words it has where they are put into it, its query and its headers, each with its word.
    fn secrets(&self, target: &Target, scope: &Scope) -> Vec<(String, String)> {
        let query = target.url().query().unwrap_or_default().as_bytes();
        let parts = self.headers.values().map(HeaderValue::as_bytes).chain([query]);
        let mut found: Vec<_> = parts.flat_map(|part| scope.stand_ins.within(part)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Adds a header of the guest's.
    pub(crate) fn add_header(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let shown = crate::text::sanitize::beginning(name, 100);
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
