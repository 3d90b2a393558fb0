//! Connections to the ports of the session's own cell: by sockets that are made in its network, so that none of them can reach this machine's.
//!
//! What means the cell, and who may reach it, is decided by `policy/own_cell.rs`.

use super::cells::CONNECT;
pub(super) use super::cells::PAUSE;
use super::{Answer, Egress, Told, slow};
use backend::Backend;
use base::envelope::{Failure, Kind};
use base::target::Target;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderValue};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use policy::own_cell::{CellPort, LOCALHOST};
use rustls::pki_types::ServerName;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;

/// The addresses of a loopback, in the order of the sockets for them.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Connects to a port of the session's own cell; none if nothing listens there.
///
/// # Errors
///
/// `unavailable` if the cell cannot be entered.
pub(super) fn connect<'a>(
    port: &'a CellPort,
    backend: &'a Arc<dyn Backend>,
) -> BoxFuture<'a, Result<Option<TcpStream>, Failure>> {
    Box::pin(async move {
        let (backend, profile) = (backend.clone(), port.profile.clone());
        let made = tokio::task::spawn_blocking(move || backend.cell_sockets(&profile)).await;
        let made = made.map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
        let sockets =
            made.map_err(|why| Failure::new(Kind::Unavailable, format!("the cell cannot be entered: {why}")))?;
        Ok(connected(sockets.unwrap_or_default(), port.target.port()).await)
    })
}

/// Connects the first of a cell's sockets that can be to a port of its loopback.
#[expect(clippy::disallowed_methods, reason = "the egress opens sockets, and these reach the cell's own network alone")]
pub(super) async fn connected(sockets: Vec<OwnedFd>, port: u16) -> Option<TcpStream> {
    for (socket, address) in sockets.into_iter().zip(LOOPBACK) {
        let socket = TcpSocket::from_std_stream(socket.into());
        if let Ok(Ok(stream)) = tokio::time::timeout(CONNECT, socket.connect(SocketAddr::new(address, port))).await {
            let _ = stream.set_nodelay(true);
            return Some(stream);
        }
    }
    None
}

/// Refuses a redirect into the cell from a server elsewhere.
pub(super) fn led(port: &CellPort) -> Failure {
    let message = format!("a server elsewhere leads to `{}`, a port of this session's own cell", port.target.server());
    Failure::denied(message).hint("request that URL itself if you want it")
}

/// Says that nothing listens at a port of the cell.
pub(super) fn unheard(port: &CellPort) -> Failure {
    let (server, number) = (port.target.server(), port.target.port());
    Failure::new(Kind::Unavailable, format!("nothing listens at `{server}`, a port of this session's own cell")).hint(
        format!(
            "start the server by `run_shell` with `wait` as `false`, and have it listen on port {number} of `localhost`"
        ),
    )
}

/// The same for a loopback name, which then means this machine and was refused.
pub(super) fn unheard_here(port: &CellPort, refusal: Failure) -> Failure {
    let (server, number) = (port.target.server(), port.target.port());
    let hint = format!(
        "nothing listens at `{server}`, a port of this session's own cell: start the server there. \
         For a server outside, use `http://127.0.0.1:{number}` and set `fetch_private_ranges = [\"127.0.0.1\"]` under [tools]"
    );
    refusal.hint(hint)
}

impl Egress {
    /// Sends a request by a connection into the session's own cell.
    pub(super) async fn exchange_in_cell(
        &self,
        stream: TcpStream,
        target: &Target,
        told: Told,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let may_have_acted = !told.method.is_safe();
        let sent = async {
            match target.is_encrypted() {
                false => exchange(stream, told, target.port()).await,
                true => {
                    let tls = TlsConnector::from(Arc::new(self.clients.tls().await?));
                    let name = ServerName::try_from(LOCALHOST).expect("it is a name");
                    let stream = tls.connect(name, stream).await;
                    let stream = stream.map_err(|error| super::client::not_opened(&error, target))?;
                    exchange(stream, told, target.port()).await
                }
            }
        };
        let answer = tokio::time::timeout(patience, sent).await;
        let answer = answer.map_err(|_| slow(target, patience, may_have_acted))??;
        super::check_headers(answer.headers())?;
        Ok(answer)
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    told: Told,
    port: u16,
) -> Result<Answer, Failure> {
    let broke_off = |error: hyper::Error| {
        let failure = Failure::new(Kind::Unavailable, format!("the server in the cell broke off: {error}"));
        failure.hint("the server's own output says why")
    };
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broke_off)?;
    // It ends with the answer.
    tokio::spawn(connection);
    let mut request = http::Request::new(Full::new(Bytes::from(told.body)));
    *request.method_mut() = told.method;
    let path = &told.url[url::Position::BeforePath..url::Position::AfterQuery];
    *request.uri_mut() = path.parse().map_err(|error| Failure::invalid(format!("`{path}` is not a path: {error}")))?;
    *request.headers_mut() = told.headers;
    // Development servers refuse requests for names that they do not know.
    let host = HeaderValue::from_str(&format!("{LOCALHOST}:{port}")).expect("it is visible ASCII");
    request.headers_mut().insert(header::HOST, host);
    let answer = sender.send_request(request).await.map_err(broke_off)?;
    Ok(answer.map(reqwest::Body::wrap).into())
}
