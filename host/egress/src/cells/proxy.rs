//! The proxy of a cell, for programs that know one: SOCKS 5, `CONNECT`, and plain requests with a whole URL, told by the first byte.

use super::requests::{Body, Refused, Sent, forward, is_host};
use super::{Client, HEAD, HEAD_BYTES, socks, tunnel};
use base::envelope::Failure;
use base::target::Target;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use tokio::net::TcpStream;

/// Serves one client.
pub(super) async fn serve(client: Client, stream: TcpStream) {
    let mut first = [0];
    match tokio::time::timeout(HEAD, stream.peek(&mut first)).await {
        Ok(Ok(1)) if first == [socks::VERSION] => socks::serve(client, stream).await,
        Ok(Ok(1)) => {
            let answer = service_fn(move |request| answer(client.clone(), request));
            let connection = builder().serve_connection(TokioIo::new(stream), answer).with_upgrades();
            // What a client breaks off has nobody to be told.
            let _ = connection.await;
        }
        _ => {}
    }
}

/// How requests are read.
pub(super) fn builder() -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    builder
}

async fn answer(client: Client, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let answered = match request.method() {
        &Method::CONNECT => connect(client, request).await,
        _ => pass_on(&client, request).await,
    };
    Ok(answered.unwrap_or_else(Refused::into_response))
}

/// Makes a tunnel.
async fn connect(client: Client, request: Request<Incoming>) -> Result<Response<Body>, Refused> {
    let authority = request.uri().authority();
    let server = authority.and_then(|authority| Some((authority.host(), authority.port_u16()?)));
    let (host, port) = server.ok_or(Refused::NOT_A_SERVER)?;
    let is_alone = authority.is_some_and(|authority| !authority.as_str().contains('@'));
    let target =
        if is_alone { Target::of_server(host, port) } else { Err(Failure::denied("the server carries a user")) };
    let target = target.inspect_err(|refusal| client.network.refuse(refusal))?;
    let server = client.network.open(target).await?;
    let network = client.network.clone();
    network.spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            tunnel::carry(client, TokioIo::new(upgraded), server).await;
        }
    });
    Ok(Response::new(Body::default()))
}

/// Passes a plain request on, each one judged for itself.
async fn pass_on(client: &Client, request: Request<Incoming>) -> Result<Response<Body>, Refused> {
    let uri = request.uri();
    if uri.scheme_str() != Some("http") {
        return Err(Refused::NOT_A_URL);
    }
    let target = Target::parse(&uri.to_string(), None).inspect_err(|refusal| client.network.refuse(refusal))?;
    if !is_host(&request, &target) {
        return Err(Refused::OTHER_HOST);
    }
    client.network.check_plain(&target)?;
    let server = client.network.open(target).await?;
    let sent = Sent::to(client, server).await?;
    forward(client, &sent, request).await
}
