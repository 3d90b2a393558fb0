//! Plain requests of confined commands: each is read, held against the server that its connection was let to, and written anew.

use super::proxy::builder;
use super::{Client, Server, told};
use base::envelope::Failure;
use base::target::Target;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use policy::own_cell::is_loopback;
use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;

/// What is answered.
pub(super) type Body = BoxBody<Bytes, hyper::Error>;

/// The port of plain requests whose host says none.
const DEFAULT_PORT: u16 = 80;

/// Why a request is not passed on.
pub(super) struct Refused {
    status: StatusCode,
    words: Cow<'static, str>,
}

impl Refused {
    pub(super) const NOT_A_SERVER: Self = Self::bad("give a host and a port to connect to");
    pub(super) const NOT_A_URL: Self = Self::bad("this proxy passes `http://` URLs on, and connects by CONNECT");
    pub(super) const OTHER_HOST: Self = Self::bad("the `Host` of the request is not where it goes");

    const fn bad(words: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, words: Cow::Borrowed(words) }
    }

    fn gateway(error: &hyper::Error) -> Self {
        Self { status: StatusCode::BAD_GATEWAY, words: format!("the server broke off: {error}").into() }
    }

    /// An answer that says so, and ends the connection.
    pub(super) fn into_response(self) -> Response<Body> {
        let words = Full::new(Bytes::from(format!("toolcrib: {}\n", self.words)));
        let mut response = Response::new(words.map_err(|never| match never {}).boxed());
        *response.status_mut() = self.status;
        let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CONNECTION, "close")];
        response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        let status = if failure.kind.is_unreachable() { StatusCode::BAD_GATEWAY } else { StatusCode::FORBIDDEN };
        Self { status, words: told(&failure).into() }
    }
}

/// A connection on which requests go to one server.
pub(super) struct Sent {
    sender: Mutex<SendRequest<Incoming>>,
    target: Target,
    is_in_cell: bool,
}

impl Sent {
    pub(super) async fn to(client: &Client, server: Server) -> Result<Self, Refused> {
        let Server { target, stream, is_in_cell } = server;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| Refused::gateway(&error))?;
        client.network.spawn(async move {
            // Whoever sent a request gets an answer that says so.
            let _ = connection.with_upgrades().await;
        });
        Ok(Self { sender: Mutex::new(sender), target, is_in_cell })
    }
}

/// Serves the requests of a client whose connection goes to one server.
pub(super) async fn serve(
    client: Client,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    server: Server,
) {
    let Ok(sent) = Sent::to(&client, server).await.map(Arc::new) else { return };
    let answer = service_fn(move |request: Request<Incoming>| {
        let (client, sent) = (client.clone(), sent.clone());
        async move {
            let is_whole = request.uri().authority().is_some();
            let fits = match request.method() {
                &Method::CONNECT => Err(Refused::NOT_A_URL),
                _ if is_whole && !is_url_of(request.uri(), &sent.target) => Err(Refused::OTHER_HOST),
                _ if !is_host(&request, &sent.target) => {
                    let message = format!("a request to `{}` names another host", sent.target.server());
                    client.network.refuse(&Failure::denied(message));
                    Err(Refused::OTHER_HOST)
                }
                _ => Ok(()),
            };
            let answered = match fits {
                Ok(()) => forward(&client, &sent, request).await,
                Err(refused) => Err(refused),
            };
            Ok::<_, Infallible>(answered.unwrap_or_else(Refused::into_response))
        }
    });
    let _ = builder().serve_connection(TokioIo::new(stream), answer).with_upgrades().await;
}

/// Whether a request is for the host that it goes to. One that names none gets that one.
pub(super) fn is_host(request: &Request<Incoming>, target: &Target) -> bool {
    names(request.headers(), target)
}

fn names(headers: &HeaderMap, target: &Target) -> bool {
    headers.get_all(header::HOST).iter().all(|host| {
        let Ok(host) = host.to_str() else { return false };
        let named = Target::parse(&format!("http://{host}/"), None);
        named.is_ok_and(|named| {
            let is_alone = !host.contains(['/', '?', '#', '@', '\\']);
            is_alone && named.host() == target.host() && named.port() == target.port()
        })
    })
}

/// For whom a browser sends a request into the session's own cell.
#[derive(Debug, PartialEq)]
enum Sender {
    /// A page that is there itself.
    Page,
    /// Nobody: the tab was told to go there, or to a server that redirects there.
    Order,
    Other,
}

/// Pages cannot write these headers (Fetch, "forbidden request-header"). Browsers send the first with each request to a loopback name (Fetch
/// Metadata), but for websockets.
fn sender(headers: &HeaderMap) -> Sender {
    let all = |name: &str| headers.get_all(name).iter().map(HeaderValue::to_str).collect::<Result<Vec<_>, _>>();
    let (Ok(site), Ok(origin), Ok(referer)) = (all("sec-fetch-site"), all("origin"), all("referer")) else {
        return Sender::Other;
    };
    let of = |url: &str| match Target::parse(url, None).is_ok_and(|from| is_loopback(from.host())) {
        true => Sender::Page,
        false => Sender::Other,
    };
    match (&site[..], &origin[..], &referer[..]) {
        (["same-origin" | "same-site"], ..) => Sender::Page,
        (["none"], [], _) => Sender::Order,
        ([] | [_], [from], _) | ([_], [], [from]) => of(from),
        _ => Sender::Other,
    }
}

fn is_url_of(uri: &Uri, target: &Target) -> bool {
    let named = Target::parse(&uri.to_string(), None);
    named.is_ok_and(|named| named.host() == target.host() && named.port() == target.port())
}

/// Sends a request on, as it has to be for the server, and returns what that answers.
pub(super) async fn forward(
    client: &Client,
    sent: &Sent,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refused> {
    let is_asked_for = || match sender(request.headers()) {
        Sender::Page => true,
        Sender::Order => client.network.is_wanted(&sent.target),
        Sender::Other => false,
    };
    if sent.is_in_cell && !is_asked_for() {
        let message =
            format!("a page of another site asks `{}`, which is in this session's own cell", sent.target.server());
        let hint = format!("go to `{}` itself", sent.target);
        let refusal = Failure::denied(message).hint(hint);
        client.network.refuse_server(&sent.target, &refusal);
        return Err(refusal.into());
    }
    // What is spoken after another upgrade, as HTTP/2, has hosts of its own in it.
    let upgrades = request.headers().get(header::UPGRADE);
    let is_websocket = upgrades.is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let upgrade = is_websocket.then(|| hyper::upgrade::on(&mut request));
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    let headers = request.headers_mut();
    headers.remove("http2-settings");
    if !is_websocket {
        headers.remove(header::UPGRADE);
    }
    let of_proxies: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with("proxy-")).cloned().collect();
    for name in of_proxies {
        headers.remove(name);
    }
    let (host, port) = (sent.target.host(), sent.target.port());
    let server = if port == DEFAULT_PORT { host.to_string() } else { sent.target.server() };
    headers.insert(header::HOST, HeaderValue::from_str(&server).map_err(|_| Refused::OTHER_HOST)?);
    let mut sender = sent.sender.lock().await;
    let answer = async {
        sender.ready().await?;
        sender.send_request(request).await
    };
    let mut answer = answer.await.map_err(|error| Refused::gateway(&error))?;
    if let Some(theirs) = upgrade.filter(|_| answer.status() == StatusCode::SWITCHING_PROTOCOLS) {
        let ours = hyper::upgrade::on(&mut answer);
        client.network.spawn(async move {
            if let (Ok(theirs), Ok(ours)) = tokio::join!(theirs, ours) {
                let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(theirs), &mut TokioIo::new(ours)).await;
            }
        });
    }
    Ok(answer.map(BodyExt::boxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_into_the_cell_says_who_sends_it() {
        for (site, origin, referer, expected) in [
            ("same-origin", "", "", Sender::Page),
            ("same-site", "http://localhost:3000", "", Sender::Page),
            ("none", "", "", Sender::Order),
            ("none", "", "http://evil.example/", Sender::Order),
            ("cross-site", "", "", Sender::Other),
            ("cross-site", "http://localhost:3000", "", Sender::Page),
            ("cross-site", "", "http://127.0.0.1:3000/page", Sender::Page),
            ("cross-site", "http://evil.example", "http://localhost:3000/", Sender::Other),
            ("cross-site", "null", "http://localhost:3000/", Sender::Other),
            ("cross-site", "", "http://localhost.evil.example/", Sender::Other),
            ("cross-site", "", "http://evil.example/http://localhost/", Sender::Other),
            ("", "http://localhost:3000", "", Sender::Page),
            ("", "", "http://localhost:3000/", Sender::Other),
            ("", "", "", Sender::Other),
            ("none", "http://evil.example", "", Sender::Other),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("sec-fetch-site", site), ("origin", origin), ("referer", referer)] {
                if !value.is_empty() {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(sender(&headers), expected, "{site:?} {origin:?} {referer:?}");
        }
        let mut twice = HeaderMap::new();
        twice.append("sec-fetch-site", HeaderValue::from_static("same-origin"));
        twice.append("sec-fetch-site", HeaderValue::from_static("cross-site"));
        assert_eq!(sender(&twice), Sender::Other);
    }

    #[test]
    fn a_request_names_the_host_that_it_goes_to() {
        let target = Target::of_server("a.example", 80).expect("a server");
        for (hosts, fits) in [
            (&["a.example"][..], true),
            (&["A.Example.:80"], true),
            (&[], true),
            (&["a.example:8080"], false),
            (&["b.example"], false),
            (&["a.example", "b.example"], false),
            (&["a.example/@b.example"], false),
            (&["b.example@a.example"], false),
            (&["a.example\\@b.example"], false),
            (&["a.example#"], false),
            (&[""], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_str(host).expect("a header"));
            }
            assert_eq!(names(&headers, &target), fits, "{hosts:?}");
        }
    }
}
