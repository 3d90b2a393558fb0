//! What git calls in a cell, seen from here: which program it wants to run outside, and what that says. The other side is
//! `backend/cell/programs/relay.rs`, which has how they speak.

use super::{Asker, gpg, password};
use base::envelope::Failure;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Bytes of a request: arguments, and what is to be signed.
const MOST_BYTES: u64 = 1 << 20;
const MOST_ARGUMENTS: usize = 64;
/// How long a request may take to come.
const COMES: Duration = Duration::from_secs(30);

/// What the program ends with in the cell.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) status: u32,
}

impl Reply {
    /// How it fails, for what the call is told as well.
    fn refused(refusal: &Failure) -> Self {
        Self { stderr: format!("toolcrib: {}\n", refusal.message).into(), status: 1, ..Self::default() }
    }
}

/// What git wants.
struct Request {
    arguments: Vec<String>,
    input: Vec<u8>,
}

pub(super) async fn serve(asker: &dyn Asker, mut program: UnixStream) {
    let Ok(Ok(request)) = tokio::time::timeout(COMES, Request::receive(&mut program)).await else { return };
    let reply = request.answer(asker).await.unwrap_or_else(|refusal| {
        asker.refuse(&refusal);
        Reply::refused(&refusal)
    });
    // Who has gone away meanwhile has nobody to be told.
    let _ = program.write_all(&reply.framed()).await;
}

impl Request {
    async fn receive(from: &mut UnixStream) -> io::Result<Self> {
        let mut bytes = Vec::new();
        from.take(MOST_BYTES + 1).read_to_end(&mut bytes).await?;
        let request = if bytes.len() as u64 > MOST_BYTES { None } else { Self::read(&bytes) };
        request.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn read(mut from: &[u8]) -> Option<Self> {
        let count = number(&mut from).filter(|count| *count <= MOST_ARGUMENTS)?;
        let mut arguments = Vec::with_capacity(count);
        for _ in 0..count {
            let length = number(&mut from)?;
            let (argument, rest) = from.split_at_checked(length)?;
            arguments.push(String::from_utf8(argument.to_vec()).ok()?);
            from = rest;
        }
        Some(Self { arguments, input: from.to_vec() })
    }

    async fn answer(&self, asker: &dyn Asker) -> Result<Reply, Failure> {
        let arguments: Vec<_> = self.arguments.iter().map(String::as_str).collect();
        match arguments[..] {
            ["credential", "get"] => password::give(asker, &self.input).await,
            // What git outside keeps is not for a command to change.
            ["credential", ..] => Ok(Reply::default()),
            ["--status-fd=2", "-bsau", key] => gpg::sign(asker, key, &self.input).await,
            _ => Err(Failure::denied(format!(
                "gpg outside signs what git commits and tags, and is not called for `{}`",
                arguments.join(" ")
            ))),
        }
    }
}

impl Reply {
    fn framed(&self) -> Vec<u8> {
        const PIECE: usize = 32 << 10;
        let mut framed = Vec::new();
        let mut add = |to: u32, number: u32, bytes: &[u8]| {
            framed.extend(to.to_ne_bytes());
            framed.extend(number.to_ne_bytes());
            framed.extend(bytes);
        };
        for (to, bytes) in [(1, &self.stdout), (2, &self.stderr)] {
            bytes.chunks(PIECE).for_each(|piece| add(to, piece.len() as u32, piece));
        }
        add(0, self.status, b"");
        framed
    }
}

fn number(from: &mut &[u8]) -> Option<usize> {
    let (number, rest) = from.split_first_chunk()?;
    *from = rest;
    usize::try_from(u32::from_ne_bytes(*number)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &[&[u8]], input: &[u8]) -> Vec<u8> {
        let mut all = (arguments.len() as u32).to_ne_bytes().to_vec();
        for argument in arguments {
            all.extend((argument.len() as u32).to_ne_bytes());
            all.extend(*argument);
        }
        all.extend(input);
        all
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let read = Request::read(&request(&[b"credential", b"", b"get"], b"host=x\n")).expect("a request");
        assert_eq!(
            (read.arguments, &read.input[..]),
            (vec!["credential".into(), String::new(), "get".into()], &b"host=x\n"[..])
        );
        let whole = request(&[b"credential", b"get"], b"");
        for broken in [
            &whole[..3],
            &whole[..whole.len() - 1],
            &u32::MAX.to_ne_bytes(),
            &[1_u32.to_ne_bytes(), u32::MAX.to_ne_bytes()].concat(),
            &request(&[b"\xff"], b""),
        ] {
            assert!(Request::read(broken).is_none(), "{}", broken.escape_ascii());
        }
    }
}
