//! The proxy's SOCKS 5 (RFC 1928): connections, without credentials.

use super::{Client, HEAD, Server, tunnel};
use base::envelope::Failure;
use base::target::Target;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) const VERSION: u8 = 5;
const NO_CREDENTIALS: u8 = 0;
const NONE_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;

/// What is replied.
#[derive(Clone, Copy)]
enum Reply {
    Granted = 0,
    NotAllowed = 2,
    Unreachable = 4,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

/// Serves a client from its greeting on, and carries what it then sends.
pub(super) async fn serve(client: Client, mut stream: TcpStream) {
    if let Ok(Some(server)) = negotiate(&client, &mut stream).await {
        tunnel::carry(client, stream, server).await;
    }
}

async fn negotiate(client: &Client, stream: &mut TcpStream) -> io::Result<Option<Server>> {
    // A person may take longer than a program to say where it wants to go.
    let Some((host, port)) = tokio::time::timeout(HEAD, asked(stream)).await?? else { return Ok(None) };
    let target = Target::of_server(&host, port).inspect_err(|refusal| client.network.refuse(refusal));
    let opened = match target {
        Ok(target) => client.network.open(target).await,
        Err(refusal) => Err(refusal),
    };
    match opened {
        Ok(server) => reply(stream, Reply::Granted).await.map(|()| Some(server)),
        Err(failure) => reply(stream, Reply::of(&failure)).await.map(|()| None),
    }
}

/// The host and the port that a client asks for; none where it asked for something else, and has its reply.
async fn asked(stream: &mut TcpStream) -> io::Result<Option<(String, u16)>> {
    let [_, count] = take(stream).await?;
    let mut methods = vec![0; usize::from(count)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&NO_CREDENTIALS) {
        stream.write_all(&[VERSION, NONE_ACCEPTABLE]).await?;
        return Ok(None);
    }
    stream.write_all(&[VERSION, NO_CREDENTIALS]).await?;
    let [_, command, _, kind] = take(stream).await?;
    let host = match kind {
        1 => Ipv4Addr::from(take::<4>(stream).await?).to_string(),
        4 => Ipv6Addr::from(take::<16>(stream).await?).to_string(),
        3 => {
            let [length] = take(stream).await?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await?;
            // Bytes that are no text become characters that no name may have.
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => return reply(stream, Reply::NoSuchAddress).await.map(|()| None),
    };
    let port = u16::from_be_bytes(take(stream).await?);
    if command != CONNECT {
        return reply(stream, Reply::NoSuchCommand).await.map(|()| None);
    }
    Ok(Some((host, port)))
}

impl Reply {
    fn of(failure: &Failure) -> Self {
        if failure.kind.is_unreachable() { Self::Unreachable } else { Self::NotAllowed }
    }
}

async fn take<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut taken = [0; N];
    stream.read_exact(&mut taken).await?;
    Ok(taken)
}

/// The address that it is bound to is nobody's business.
async fn reply(stream: &mut TcpStream, reply: Reply) -> io::Result<()> {
    stream.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
