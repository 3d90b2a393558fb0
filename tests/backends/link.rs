//! A link to a port of this machine that can fall silent or be cut, at a moment or behind a number of bytes.
#![expect(clippy::disallowed_methods, reason = "the link of the tests leads to a port of this machine")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Passes connections on until it is dropped.
pub(crate) struct Link {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    closed: AtomicBool,
    silent: AtomicBool,
    /// Changed to end all connections that there are.
    cuts: AtomicU64,
    connections: AtomicU64,
    /// Bytes from the client, and how many more of them pass before the link falls silent.
    sent: AtomicU64,
    limit: AtomicU64,
}

impl Link {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let own = listener.local_addr().expect("its address").port();
        let state = Arc::new(State { limit: AtomicU64::new(u64::MAX), ..State::default() });
        let serving = state.clone();
        std::thread::spawn(move || serving.serve(&listener, port));
        Self { port: own, state }
    }

    /// Nothing passes any more, and nobody is told.
    pub(crate) fn fall_silent(&self) {
        self.state.silent.store(true, Ordering::SeqCst);
    }

    /// Falls silent when the client has sent so many bytes more.
    pub(crate) fn fall_silent_behind(&self, bytes: u64) {
        self.state.limit.store(self.state.sent.load(Ordering::SeqCst) + bytes, Ordering::SeqCst);
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.state.silent.load(Ordering::SeqCst)
    }

    /// Ends all connections; new ones pass again.
    pub(crate) fn cut(&self) {
        self.state.cuts.fetch_add(1, Ordering::SeqCst);
        self.state.limit.store(u64::MAX, Ordering::SeqCst);
        self.state.silent.store(false, Ordering::SeqCst);
    }

    /// How many connections there ever were.
    pub(crate) fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cut();
        self.state.closed.store(true, Ordering::SeqCst);
    }
}

impl State {
    fn serve(self: Arc<Self>, listener: &TcpListener, port: u16) {
        while !self.closed.load(Ordering::SeqCst) {
            let Ok((client, _)) = listener.accept() else {
                std::thread::sleep(LOOK_AGAIN);
                continue;
            };
            self.connections.fetch_add(1, Ordering::SeqCst);
            // Nobody there: the client finds its connection closed.
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let cuts = self.cuts.load(Ordering::SeqCst);
            for (from, to, counts) in [(&client, &server, true), (&server, &client, false)] {
                let (from, to) = (from.try_clone().expect("a handle"), to.try_clone().expect("a handle"));
                let state = self.clone();
                std::thread::spawn(move || state.pass(from, to, cuts, counts));
            }
        }
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream, cuts: u64, counts: bool) {
        from.set_nonblocking(false).and_then(|()| from.set_read_timeout(Some(LOOK_AGAIN))).expect("a timeout");
        let mut buffer = vec![0; 16 << 10];
        while self.cuts.load(Ordering::SeqCst) == cuts {
            if self.silent.load(Ordering::SeqCst) {
                std::thread::sleep(LOOK_AGAIN);
                continue;
            }
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) if to.write_all(&buffer[..length]).is_ok() => {
                    if counts {
                        self.count(length as u64);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                _ => break,
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn count(&self, bytes: u64) {
        if self.sent.fetch_add(bytes, Ordering::SeqCst) + bytes >= self.limit.load(Ordering::SeqCst) {
            self.silent.store(true, Ordering::SeqCst);
        }
    }
}
