//! What is on its way to a server. Whoever says something writes it at once, as far as the server has room: to have another task do it would take
//! longer than all else that happens to a call here.

use backend::Input;
use parking_lot::Mutex;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::AsyncWrite;
use tokio::sync::Notify;

/// A rest is kept in this much at least; more room is given back.
const ROOM_BYTES: usize = 64 << 10;

/// What is on its way to a server.
pub(super) struct Outgoing {
    pipe: Mutex<Pipe>,
    /// There is a rest to write.
    more: Notify,
}

struct Pipe {
    /// None once nothing is written any more.
    input: Option<Input>,
    rest: Vec<u8>,
    /// So much of the rest has been written.
    written: usize,
}

impl Outgoing {
    pub(super) fn new(input: Input) -> Self {
        let pipe = Pipe { input: Some(input), rest: Vec::new(), written: 0 };
        Self { pipe: Mutex::new(pipe), more: Notify::new() }
    }

    /// Says a line, without its end. Where nothing is written any more, nobody hears it.
    pub(super) fn say(&self, line: &str) {
        let mut pipe = self.pipe.lock();
        if pipe.input.is_none() {
            return;
        }
        pipe.rest.extend_from_slice(line.as_bytes());
        pipe.rest.push(b'\n');
        // `flow` writes the rest, and returns a failure.
        if !matches!(pipe.write(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(()))) {
            self.more.notify_one();
        }
    }

    /// Bytes that the server has not read yet.
    pub(super) fn unread(&self) -> usize {
        let pipe = self.pipe.lock();
        pipe.rest.len() - pipe.written
    }

    /// Writes what is left whenever the server has room, until it reads no more.
    pub(super) async fn flow(&self) -> io::Error {
        loop {
            tokio::select! {
                wrote = poll_fn(|context| self.pipe.lock().write(context)), if self.unread() > 0 => {
                    if let Err(error) = wrote {
                        return error;
                    }
                }
                // Whoever has just tried to write is the one that the pipe would wake: it is asked again.
                () = self.more.notified() => {}
            }
        }
    }

    /// Writes nothing any more, and lets the server know.
    pub(super) fn close(&self) {
        self.pipe.lock().input = None;
    }
}

impl Pipe {
    /// Writes the rest; ready once there is none.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(input) = &mut self.input else { return Poll::Ready(Ok(())) };
        while self.written < self.rest.len() {
            match Pin::new(&mut *input).poll_write(context, &self.rest[self.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => self.written += bytes,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // A server that never reads all would have this host keep all.
                    if self.written > ROOM_BYTES {
                        self.rest.drain(..self.written);
                        self.written = 0;
                    }
                    return Poll::Pending;
                }
            }
        }
        self.rest.clear();
        self.written = 0;
        self.rest.shrink_to(ROOM_BYTES);
        Poll::Ready(Ok(()))
    }
}
