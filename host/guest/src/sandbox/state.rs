//! What a store holds for one guest: a WASI context that reaches nothing by itself, its limits, its grants, and the call it serves.

use crate::capability::wasi::{Drafts, Reasons, Web};
use crate::reach::Reach;
use base::envelope::Failure;
use bytes::Bytes;
use config::Template;
use engine::meter::Meter;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use policy::Grants;
use policy::event::{Event, Level};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWrite;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

/// Clocks for guests are no finer than this: a fine clock measures what a guest must not know.
pub(super) const CLOCK_STEP: Duration = Duration::from_millis(1);
/// Random bytes a guest gets in one go: the host allocates as many as a guest asks for.
const RANDOM_BYTES: u64 = 64 << 10;

/// What a list of headers takes on the host's side, at most; a guest has as many lists as handles.
const HEADER_LIST_BYTES: usize = 64 << 10;

/// One guest's world, as host functions see it.
pub struct State {
    pub table: ResourceTable,
    pub meter: Meter,
    grants: Arc<Grants>,
    pub scope: Arc<Reach>,
    printed: Arc<Mutex<Tail>>,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    web: Web,
    /// Files that the guest writes through `wasi:filesystem`.
    pub(crate) drafts: Drafts,
    /// Why one of them is not written.
    pub not_written: Option<Failure>,
    /// Why what it asked of WASI failed.
    pub reasons: Reasons,
    arguments: Vec<String>,
}

/// What a guest that is a program has instead of a tool's arguments and result.
#[derive(Default)]
pub struct Streams {
    /// The first is its name.
    pub arguments: Vec<String>,
    pub stdin: Bytes,
    pub stdout: Collected,
    pub stderr: Collected,
}

impl State {
    pub(super) fn new(
        meter: Meter,
        handles: usize,
        grants: Arc<Grants>,
        scope: Arc<Reach>,
        program: Option<Streams>,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles);
        let mut wasi = WasiCtx::builder();
        let printed = Arc::<Mutex<Tail>>::default();
        let arguments = match program {
            None => {
                let stream = || Printed { scope: scope.clone(), tail: printed.clone() };
                wasi.stdout(stream()).stderr(stream());
                Vec::new()
            }
            Some(Streams { arguments, stdin, stdout, stderr }) => {
                wasi.stdin(MemoryInputPipe::new(stdin)).stdout(stdout).stderr(stderr);
                arguments
            }
        };
        wasi.wall_clock(CoarseWall { ahead: scope.ahead })
            .monotonic_clock(CoarseMonotonic(Instant::now()))
            .max_random_size(RANDOM_BYTES);
        scope.trial.fix(&mut wasi);
        let reasons = Reasons::default();
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(HEADER_LIST_BYTES);
        let web = Web::new(grants.clone(), scope.clone(), reasons.clone());
        Self {
            table,
            meter,
            grants,
            scope,
            printed,
            wasi: wasi.build(),
            http,
            web,
            drafts: Drafts::default(),
            not_written: None,
            reasons,
            arguments,
        }
    }

    /// What its section says for it.
    pub fn config(&self) -> &BTreeMap<String, Template> {
        self.grants.config()
    }

    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// What the guest may do. From here on the call is on record.
    ///
    /// # Errors
    ///
    /// Where it has to be and cannot.
    pub fn grants(&self) -> Result<&Grants, Failure> {
        self.scope.accept().map(|()| &*self.grants)
    }

    /// The last that the guest printed, as text; none when it printed nothing.
    pub(super) fn printed(&self) -> Option<String> {
        let tail = self.printed.lock();
        (!tail.0.is_empty()).then(|| tail.text())
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.web }
    }
}

/// `ahead` of this machine's, where somebody wants to know whether a plugin says the same at another time.
struct CoarseWall {
    ahead: Duration,
}

impl HostWallClock for CoarseWall {
    fn resolution(&self) -> Duration {
        CLOCK_STEP
    }

    fn now(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + self.ahead;
        Duration::new(now.as_secs(), now.subsec_millis() * 1_000_000)
    }
}

struct CoarseMonotonic(Instant);

/// What it shows when the guest begins. Not 0: the runtime of Go ends where a clock reads that, and with this step a guest that is quick
/// reads the very beginning.
pub(super) const BEGINNING: Duration = Duration::from_secs(1);

impl HostMonotonicClock for CoarseMonotonic {
    fn resolution(&self) -> u64 {
        CLOCK_STEP.as_nanos() as u64
    }

    fn now(&self) -> u64 {
        (BEGINNING + self.0.elapsed()).as_millis() as u64 * self.resolution()
    }
}

/// Where a guest's prints go: into events, never to the host's own output, which carries a protocol. The end is kept for the failure of a
/// guest that traps: there a panic says why.
#[derive(Clone)]
struct Printed {
    scope: Arc<Reach>,
    tail: Arc<Mutex<Tail>>,
}

/// How much of the end is kept, in bytes.
const TAIL: usize = 2 << 10;

/// The end of what was printed to both streams, in the order of printing.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(TAIL)..];
        let over = (self.0.len() + bytes.len()).saturating_sub(TAIL);
        self.0.drain(..over);
        self.0.extend_from_slice(bytes);
    }

    /// Begins with a whole character.
    fn text(&self) -> String {
        let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let cut = if self.0.len() < TAIL { 0 } else { self.0.iter().take(3).take_while(is_inside).count() };
        String::from_utf8_lossy(&self.0[cut..]).into_owned()
    }
}

/// Bytes a guest may print before it has to wait; it never has to.
const PRINT_PERMIT: usize = 64 << 10;

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only WASI 0.3 asks for this form, and it is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl Pollable for Printed {
    // Written out: by `async` it would be proved that all that a call reaches may be sent.
    fn ready<'a, 'b>(&'a mut self) -> BoxFuture<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(()))
    }
}

impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > PRINT_PERMIT {
            return Err(StreamError::Trap(wasmtime::Error::msg("a guest wrote more than it was permitted")));
        }
        self.tail.lock().push(&bytes);
        // Caps on events bound what a guest prints; making it wait would let a slow reader stop a call.
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end_matches('\n');
        // The libc of C writes the end of a line by itself.
        if !line.is_empty() {
            self.scope.emit_for_guest(bytes.len(), || Event::log(Level::Info, line));
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINT_PERMIT)
    }
}

/// Bytes of what a program prints to one stream that are kept.
const MOST_COLLECTED: usize = 8 << 20;

/// What a program prints to one of its streams. Clones are the same.
#[derive(Clone, Default)]
pub struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock())
    }
}

impl IsTerminal for Collected {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Collected {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only WASI 0.3 asks for this form, and it is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for Collected {
    async fn ready(&mut self) {}
}

impl OutputStream for Collected {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut collected = self.0.lock();
        if bytes.len() > MOST_COLLECTED - collected.len() {
            let message = format!("a program prints at most {} MiB here", MOST_COLLECTED >> 20);
            return Err(StreamError::LastOperationFailed(wasmtime::Error::msg(message)));
        }
        collected.extend_from_slice(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINT_PERMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runtime of Go ends where it reads 0.
    #[test]
    fn the_first_time_that_a_guest_reads_is_not_0() {
        assert!(CoarseMonotonic(Instant::now()).now() >= 1_000_000_000);
    }

    #[test]
    fn a_tail_is_the_end_of_what_was_printed_and_begins_with_a_character() {
        let mut tail = Tail::default();
        tail.push(b"a");
        assert_eq!(tail.text(), "a");
        tail.push(&b"x".repeat(TAIL - 1));
        assert_eq!(tail.text(), format!("a{}", "x".repeat(TAIL - 1)));
        tail.push(b"end");
        assert_eq!(tail.text(), format!("{}end", "x".repeat(TAIL - 3)));
        tail.push(format!("{}!", "ä".repeat(TAIL)).as_bytes());
        assert_eq!(tail.text(), format!("{}!", "ä".repeat(TAIL / 2 - 1)));
    }
}
