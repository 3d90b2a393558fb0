//! Reads responses from a connection, no more than a budget allows. What a server announces is not believed: a literal that is longer than what is
//! left ends the connection, before room is made for it.

use super::response::{self, Response};
use super::trouble::{Trouble, said};
use egress::plainly;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;
/// A line without its literals.
const LINE: usize = 1 << 20;

/// What was read and is not used yet.
pub(super) struct Reader<R> {
    stream: R,
    buffer: Vec<u8>,
}

/// Bytes that the answer to a command may still have, in all.
pub(super) struct Budget {
    left: usize,
    most: usize,
}

impl Budget {
    pub(super) fn new(most: usize) -> Self {
        Self { left: most, most }
    }

    fn take(&mut self, bytes: u64) -> Result<usize, Trouble> {
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= self.left).ok_or_else(|| self.met())?;
        self.left -= bytes;
        Ok(bytes)
    }

    fn met(&self) -> Trouble {
        Trouble::Limit(format!("limit: bytes of an answer {}, the server sends more", self.most))
    }
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub(super) fn stream(&mut self) -> &mut R {
        &mut self.stream
    }

    /// The next response.
    pub(super) async fn response(&mut self, budget: &mut Budget) -> Result<Response, Trouble> {
        let mut whole = self.line(budget).await?;
        while let Some(bytes) = response::announced(&whole).filter(|_| !response::is_text(&whole)) {
            let bytes = budget.take(bytes)?;
            whole.extend_from_slice(b"\r\n");
            self.exactly(bytes, &mut whole).await?;
            let line = self.line(budget).await?;
            let is_last = response::announced(&line).is_none();
            whole.extend(line);
            // Only the line itself can announce one, not the end of the literal before it.
            if is_last {
                break;
            }
        }
        let shown = said(&whole);
        response::parse(&whole).ok_or_else(|| Trouble::Nonsense(format!("it says `{shown}`")))
    }

    /// A line without its end.
    async fn line(&mut self, budget: &mut Budget) -> Result<Vec<u8>, Trouble> {
        let mut looked = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[looked..]).map(|end| looked + end) {
                budget.take(end as u64 + 1)?;
                let rest = self.buffer.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(line);
            }
            looked = self.buffer.len();
            if looked > budget.left.min(LINE) {
                return Err(budget.met());
            }
            self.fill().await?;
        }
    }

    async fn exactly(&mut self, bytes: usize, whole: &mut Vec<u8>) -> Result<(), Trouble> {
        let mut left = bytes;
        loop {
            let taken = left.min(self.buffer.len());
            whole.extend(self.buffer.drain(..taken));
            left -= taken;
            if left == 0 {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), Trouble> {
        self.buffer.reserve(CHUNK);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err(Trouble::Lost("it ended the connection".into())),
            Ok(_) => Ok(()),
            Err(error) => Err(Trouble::Lost(plainly(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8], most: usize) -> Result<Response, Trouble> {
        Reader::new(bytes).response(&mut Budget::new(most)).await
    }

    #[tokio::test]
    async fn a_response_is_read_with_its_literals() {
        let bytes = b"* 1 FETCH (A {3}\r\na}\n B {1+}\r\nx)\r\n* NEXT\r\n";
        let mut reader = Reader::new(&bytes[..]);
        let mut budget = Budget::new(1000);
        let first = reader.response(&mut budget).await;
        let Ok(Response::Data(nodes)) = first else { panic!("{first:?}") };
        assert_eq!(nodes[2].list().unwrap()[1].bytes(), Some(&b"a}\n"[..]));
        assert_eq!(nodes[2].list().unwrap()[3].bytes(), Some(&b"x"[..]));
        assert!(reader.response(&mut budget).await.is_ok());
    }

    #[tokio::test]
    async fn a_literal_beyond_the_budget_is_not_waited_for() {
        for size in ["101", "4294967296", "9999999999999999999", "18446744073709551616"] {
            let answer = read(format!("* 1 FETCH (A {{{size}}}\r\n").as_bytes(), 100).await;
            assert!(matches!(answer, Err(Trouble::Limit(_))), "{size}: {answer:?}");
        }
        let long = [b"* SEARCH ".as_slice(), &b"1 ".repeat(100_000)].concat();
        assert!(matches!(read(&long, 1000).await, Err(Trouble::Limit(_))));
    }

    #[tokio::test]
    async fn what_ends_before_its_end_is_lost_wherever_it_ends() {
        let whole = b"* 1 FETCH (UID 7 BODY[1] {5}\r\nab\r\nc FLAGS (\\Seen))\r\n";
        for end in 0..whole.len() {
            let answer = read(&whole[..end], 1000).await;
            assert!(matches!(answer, Err(Trouble::Lost(_))), "{end}: {answer:?}");
        }
        assert!(read(whole, 1000).await.is_ok());
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_said_to_be_so() {
        for odd in ["\r\n", "hello\r\n", "* ((\r\n", "HTTP/1.1 400 Bad Request\r\n"] {
            let answer = read(odd.as_bytes(), 1000).await;
            assert!(matches!(answer, Err(Trouble::Nonsense(_))), "{odd}: {answer:?}");
        }
    }
}
