//! The one egress: whatever leaves this machine for a plugin goes through here, and no other module opens sockets.
//!
//! A URL is parsed (`target.rs`), policy decides on it, its name is resolved once and every address judged (`connect.rs`, `addresses.rs`,
//! `resolver.rs`), a person is asked where settings say so, and the request goes to these addresses alone (`client.rs`). A redirect begins
//! anew (`redirects.rs`). What a plugin may reach, and the words of refusals, are in `policy/http.rs`. What confined commands connect
//! to takes the same way as far as that goes (`cells/`, `policy/connections.rs`), and so does what the host sends for mail
//! (`streams.rs`, `policy/mail.rs`) and to servers of others (`own.rs`, `policy/upstream.rs`).
//!
//! It depends on `policy`, which decides, and on `backend`, `base`, `config`, `keys` and `leaks`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod body;
mod cells;
mod client;
mod connect;
mod own;
mod own_cell;
mod published;
mod redirects;
mod resolver;
mod streams;

pub use cells::{Attached, Calling, Naming};
pub use client::CA_BYTES;
pub use own::{FormAnswer, OwnAnswer, OwnRequest};
pub use published::publish_port;
pub use streams::plainly;

use base::dirs::Dirs;
use base::envelope::{Failure, Kind, duration};
use base::target::Target;
use body::Body;
use cells::Cells;
use client::{Clients, explain};
use config::Config;
use config::headers::is_own;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use leaks::Stream;
use policy::guard::{Exit, Guard};
use policy::hosts::Route;
use policy::http::{ApprovedRoute, HttpGrant, OwnHeader, Request};
use policy::own_cell::CellPort;
use policy::scope::Scope;
use published::Published;
use reqwest::{Method, Response as Answer, StatusCode};
use resolver::Names;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;
use zeroize::Zeroizing;

/// How long a server may think before it answers.
const FIRST_BYTE: Duration = Duration::from_secs(15);
/// Names and values of an answer's headers.
const HEADER_BYTES: usize = 64 << 10;

/// The `user-agent` of requests, unless a plugin sets one.
const USER_AGENT: &str = concat!("toolcrib/", env!("CARGO_PKG_VERSION"));

/// The way out.
pub struct Egress {
    names: Arc<Names>,
    clients: Clients,
    cells: Cells,
    published: Published,
}

/// What a server answered, with the whole of its body.
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Where it came from, after redirects.
    pub url: String,
    pub body: Vec<u8>,
    pub truncated: bool,
}

/// What a server answered, its body still on its way. Nothing of it holds a secret, as a server may send back what it was sent.
pub struct Opened {
    pub status: StatusCode,
    pub headers: HeaderMap,
    target: Target,
    answer: Answer,
    body: Body,
    /// None once the body has ended.
    redacted: Option<Stream>,
    deadline: Deadline,
}

impl Egress {
    /// That of these settings.
    pub fn of(config: &Config, dirs: &Dirs) -> Self {
        let network = &config.network;
        let ca_file = Some(&network.ca_file).filter(|file| !file.is_empty()).map(|file| dirs.expand(file));
        Self::new(network.dns_servers(), ca_file)
    }

    /// `dns_servers` are asked instead of the system's; `ca_file` holds certificates that are trusted in addition to the system's.
    pub fn new(dns_servers: Vec<SocketAddr>, ca_file: Option<PathBuf>) -> Self {
        Self {
            names: Arc::new(Names::new(dns_servers)),
            clients: Clients::new(ca_file),
            cells: Cells::default(),
            published: Published::default(),
        }
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
        let port = grant.cell_port(target, &*scope.backend).await;
        let port = port.inspect_err(|refusal| grant.record(&request.method, target, Err(refusal), scope))?;
        if let Some(port) = &port
            && let Some(answered) = self.hop_into_cell(request, port, from, grant, deadline, scope).await?
        {
            return Ok(answered);
        }
        let outside = self.hop_outside(request, target, from, grant, deadline, scope).await;
        outside.map_err(|refusal| match &port {
            Some(port) => own_cell::unheard_here(port, refusal),
            None => refusal,
        })
    }

    /// The same for a target that is no port of the session's own cell.
    async fn hop_outside(
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
        let lent = check_sent(request, target, grant, scope)?;
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

    /// Takes a request into the session's own cell; none if nothing listens there and the URL may mean something else.
    async fn hop_into_cell(
        &self,
        request: &Request,
        port: &CellPort,
        from: Option<&ApprovedRoute>,
        grant: &HttpGrant,
        deadline: &mut Deadline,
        scope: &Scope,
    ) -> Result<Option<(Answer, ApprovedRoute)>, Failure> {
        let target = &port.target;
        let refused = |refusal: &Failure| grant.record(&request.method, target, Err(refusal), scope);
        if from.is_some_and(|from| !from.route().is_into_cell()) {
            // Nobody asked for what a server elsewhere redirects there.
            return if port.is_named { Err(own_cell::led(port)).inspect_err(refused) } else { Ok(None) };
        }
        let stream = deadline.bound(false, target, own_cell::connect(port, &scope.backend)).await?;
        let stream = match stream {
            Some(stream) => stream,
            None if port.is_named => return Err(own_cell::unheard(port)).inspect_err(refused),
            None => return Ok(None),
        };
        let route = grant.admit_to_cell(&request.method, port, scope)?;
        let lent = check_sent(request, target, grant, scope)?;
        let route = grant.approve(route, request, from, scope).await?;
        scope.check_open()?;
        let own = own_headers(grant, target, scope).await?;
        let told = Told::new(request, target, own, &lent, scope).await?;
        let may_have_acted = !told.method.is_safe();
        // A development server builds what it is asked for first.
        let answer = self.exchange_in_cell(stream, target, told, grant.timeout());
        Ok(Some((deadline.bound(may_have_acted, target, answer).await?, route)))
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

/// Looks at what a request would tell a server, and returns the secrets that it is lent.
fn check_sent(
    request: &Request,
    target: &Target,
    grant: &HttpGrant,
    scope: &Scope,
) -> Result<Vec<(String, String)>, Failure> {
    let lent = secrets(request, target, scope);
    let is_lent = || lent.iter().try_for_each(|(secret, _)| grant.admit_secret(secret, target));
    let is_whole = || match !lent.is_empty() && request.headers.contains_key(header::RANGE) {
        // The server may send back what it was sent, and a piece of a secret is not told from other text.
        true => Err(Failure::denied("a request with a secret cannot ask for a range of the answer")),
        false => Ok(()),
    };
    let checked = scope.guard.check(Exit::Request, parts(request, target).iter().map(AsRef::as_ref));
    let checked = checked.and_then(|()| is_lent()).and_then(|()| is_whole());
    checked.inspect_err(|refusal| grant.record(&request.method, target, Err(refusal), scope))?;
    Ok(lent)
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
pub fn header_value(text: &str, source: impl std::fmt::Display) -> Result<HeaderValue, Failure> {
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
    pub fn piece(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Failure>> {
        Box::pin(async move {
            let Some(redacted) = &mut self.redacted else { return Ok(None) };
            let (answer, target) = (&mut self.answer, &self.target);
            let chunk = async { answer.chunk().await.map_err(|error| explain(&error, target, false)) };
            Ok(Some(match self.deadline.bound(false, target, chunk).await? {
                Some(piece) => redacted.push(&self.body.push(&piece)?).into_owned(),
                None => self.redacted.take().map(|rest| rest.finish().0).unwrap_or_default(),
            }))
        })
    }

    /// Reads the body up to `most` bytes. What follows a cut is left out as it came: it may be the rest of a secret.
    async fn read(mut self, most: usize, guard: &Guard) -> Result<Response, Failure> {
        let (mut body, mut truncated) = (Vec::new(), false);
        while let Some(piece) = self.piece().await? {
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

/// All that a server gets to see of what the guest wrote. The parser of URLs has made a host's letters small, and a host has at most 63
/// characters between two dots.
fn parts<'p>(request: &'p Request, target: &'p Target) -> Vec<Cow<'p, [u8]>> {
    let url = target.url().as_str().as_bytes();
    let decoded = percent_encoding::percent_decode(url).into();
    let host = Cow::Owned(target.host().to_string().replace('.', "").into_bytes());
    let headers = request.headers.iter().flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
    let written = headers.chain([request.body.as_slice()]).map(Cow::Borrowed);
    [Cow::Borrowed(url), decoded, host].into_iter().chain(written).collect()
}

/// The secrets whose words it has where they are put into it, its query and its headers, each with its word.
fn secrets(request: &Request, target: &Target, scope: &Scope) -> Vec<(String, String)> {
    let query = target.url().query().unwrap_or_default().as_bytes();
    let parts = request.headers.values().map(HeaderValue::as_bytes).chain([query]);
    let mut found: Vec<_> = parts.flat_map(|part| scope.stand_ins.within(part)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Adds a header of the guest's.
pub fn add_header(request: &mut Request, name: &str, value: &str) -> Result<(), Failure> {
    let shown = base::text::sanitize::beginning(name, 100);
    let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) else {
        return Err(Failure::invalid(format!("the header `{shown}` has characters that no header may have")));
    };
    if is_own(&name) {
        return Err(Failure::invalid(format!("the header `{name}` is set by the host alone"))
            .hint("omit it; the connection is made as the URL says"));
    }
    request.headers.append(name, value);
    Ok(())
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
