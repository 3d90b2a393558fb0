//! A connection that goes where it was let to: what is sent first is held against that, then bytes pass both ways.
//!
//! Without this a program that was let to one name could, at the same address, ask for another: by the name in its TLS greeting, or by the
//! `Host` of a plain request. TLS is not decrypted, so what goes on inside is not seen.

use super::{Client, HEAD, HEAD_BYTES, Server, requests, reset};
use base::envelope::Failure;
use base::target::{Host, Target};
use rustls::server::Acceptor;
use std::io::{self, Cursor};
use std::net::IpAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

/// What is read and written at a time.
const PIECE: usize = 64 << 10;
/// The first byte of a TLS greeting: a record of the handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

/// A connection to a made-up address.
pub(super) async fn catch(client: Client, stream: TcpStream, port: u16) {
    match caught(&client, &stream, port).await {
        Some(server) => carry(client, stream, server).await,
        None => reset(&stream),
    }
}

async fn caught(client: &Client, stream: &TcpStream, port: u16) -> Option<Server> {
    let IpAddr::V4(address) = stream.local_addr().ok()?.ip() else { return None };
    let name = client.network.made_up.lock().name(address)?;
    let target = Target::of_server(&name, port).ok()?;
    client.network.open(target).await.ok()
}

/// Carries what a client sends to a server that it was let to, and back.
pub(super) async fn carry(
    client: Client,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    server: Server,
) {
    let (mut reader, writer) = tokio::io::split(stream);
    let begun = tokio::time::timeout(HEAD, begin(&mut reader, &server)).await;
    let Ok(Ok(Begun { head, speaks })) = begun else { return };
    if let Err(refusal) = speaks.check(&server.target) {
        client.network.refuse(&refusal);
        return;
    }
    if server.is_in_cell && speaks != Speaks::Http {
        // Which page asks is seen in plain requests alone.
        let message = format!("`{}` in this session's own cell is reached by plain HTTP alone", server.target.server());
        client.network.refuse(&Failure::denied(message).hint("have the server speak HTTP without TLS"));
        return;
    }
    if !matches!(speaks, Speaks::Tls(_)) && client.network.check_plain(&server.target).is_err() {
        return;
    }
    let mut stream = tokio::io::join(Cursor::new(head).chain(reader), writer);
    match speaks {
        Speaks::Http => requests::serve(client, stream, server).await,
        Speaks::Tls(_) | Speaks::Other => {
            let mut server = server.stream;
            let _ = tokio::io::copy_bidirectional_with_sizes(&mut stream, &mut server, PIECE, PIECE).await;
        }
        Speaks::Broken => {}
    }
}

/// What a client said first.
struct Begun {
    head: Vec<u8>,
    speaks: Speaks,
}

/// What a client speaks.
#[derive(Debug, PartialEq)]
enum Speaks {
    /// TLS, to this name.
    Tls(Option<String>),
    /// Requests that are not encrypted.
    Http,
    /// Something else, in which no name is seen.
    Other,
    /// What begins as TLS and is none.
    Broken,
}

/// Reads what a client says first. At ports that are not the web's a server may speak before it.
async fn begin(client: &mut (impl AsyncRead + Unpin), server: &Server) -> io::Result<Begun> {
    let mut head = Vec::with_capacity(PIECE >> 4);
    let is_web = matches!(server.target.port(), 80 | 443);
    loop {
        if let Some(speaks) = Speaks::of(&head) {
            return Ok(Begun { head, speaks });
        }
        if head.len() > HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let read = tokio::select! {
            read = client.read_buf(&mut head) => read?,
            spoken = server.stream.readable(), if !is_web && head.is_empty() => {
                spoken?;
                return Ok(Begun { head, speaks: Speaks::Other });
            }
        };
        if read == 0 {
            return Ok(Begun { head, speaks: Speaks::Other });
        }
    }
}

impl Speaks {
    /// What begins so; none while more has to come.
    fn of(head: &[u8]) -> Option<Self> {
        match head.first()? {
            &HANDSHAKE => greeting(head),
            _ => request(head),
        }
    }

    /// Holds it against where the client was let to.
    fn check(&self, target: &Target) -> Result<(), Failure> {
        let (server, port) = (target.server(), target.port());
        match (self, port) {
            (Self::Tls(name), _) => match (name, target.host()) {
                (Some(name), Host::Name(host)) if name.trim_end_matches('.').eq_ignore_ascii_case(host) => Ok(()),
                (None, Host::Address(_)) => Ok(()),
                (Some(other), _) => Err(Failure::denied(format!("a connection to `{server}` greets `{other}`"))),
                (None, Host::Name(_)) => {
                    Err(Failure::denied(format!("a connection to `{server}` greets nobody by name")))
                }
            },
            (Self::Broken, _) => {
                Err(Failure::denied(format!("a connection to `{server}` begins as no TLS that is known")))
            }
            (Self::Http | Self::Other, 443) => Err(Failure::denied(format!("a connection to `{server}` is not TLS"))),
            (Self::Other, 80) => Err(Failure::denied(format!("a connection to `{server}` is no request of the web"))),
            (Self::Http | Self::Other, _) => Ok(()),
        }
    }
}

/// The greeting of TLS that begins so.
fn greeting(head: &[u8]) -> Option<Speaks> {
    let mut acceptor = Acceptor::default();
    let mut rest = head;
    loop {
        match acceptor.accept() {
            Ok(Some(accepted)) => return Some(Speaks::Tls(accepted.client_hello().server_name().map(str::to_owned))),
            Ok(None) if rest.is_empty() => return None,
            Ok(None) => {}
            Err(_) => return Some(Speaks::Broken),
        }
        if acceptor.read_tls(&mut rest).is_err() {
            return Some(Speaks::Broken);
        }
    }
}

/// Whether what begins so is a request: its first line says which HTTP. Servers pass over empty lines before it (RFC 9112, 2.2).
fn request(head: &[u8]) -> Option<Speaks> {
    const LINE_BYTES: usize = 16 << 10;
    let line = head.trim_ascii_start();
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\r' | b' '..=b'~');
    let end = line.iter().position(|byte| *byte == b'\n');
    let line = &line[..end.unwrap_or(line.len())];
    let names_http = || line.windows(5).any(|part| part.eq_ignore_ascii_case(b"HTTP/"));
    match end {
        Some(_) if names_http() => Some(Speaks::Http),
        Some(_) => Some(Speaks::Other),
        None if line.iter().all(is_text) && line.len() < LINE_BYTES => None,
        None => Some(Speaks::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoken_is_known_by_how_it_begins() {
        for (head, speaks) in [
            (&b""[..], None),
            (b"GET / HTTP/1.1\r\n", Some(Speaks::Http)),
            (b"\r\n\r\nGET / HTTP/1.1\r\n", Some(Speaks::Http)),
            (b"G\xc3\x84T / http/1.1\r\n", Some(Speaks::Http)),
            (b"GET / HT", None),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(Speaks::Http)),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", Some(Speaks::Other)),
            (b"*1\r\n$4\r\nPING\r\n", Some(Speaks::Other)),
            (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", Some(Speaks::Other)),
            (b"\x16\x03\x01", None),
            (b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", Some(Speaks::Broken)),
        ] {
            assert_eq!(Speaks::of(head), speaks, "{}", head.escape_ascii());
        }
    }

    #[test]
    fn what_is_said_has_to_fit_the_target() {
        let target = |host: &str, port| Target::of_server(host, port).expect("a server");
        let tls = |name: &str| Speaks::Tls(Some(name.into()));
        for (speaks, host, port, fits) in [
            (tls("a.example"), "a.example", 443, true),
            (tls("A.example."), "a.example", 443, true),
            (tls("b.example"), "a.example", 443, false),
            (tls("b.example"), "a.example", 8443, false),
            (tls("a.example"), "192.0.2.1", 443, false),
            (Speaks::Tls(None), "a.example", 443, false),
            (Speaks::Tls(None), "192.0.2.1", 443, true),
            (Speaks::Http, "a.example", 443, false),
            (Speaks::Other, "a.example", 443, false),
            (Speaks::Other, "a.example", 80, false),
            (Speaks::Other, "a.example", 22, true),
            (Speaks::Http, "a.example", 80, true),
            (Speaks::Broken, "a.example", 22, false),
        ] {
            assert_eq!(speaks.check(&target(host, port)).is_ok(), fits, "{speaks:?} {host} {port}");
        }
    }
}
