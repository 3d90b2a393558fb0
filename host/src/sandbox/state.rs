//! What a store holds for one guest: an empty WASI context, its limits, its grants, and the call it serves.

use super::meter::Meter;
use crate::event::Event;
use crate::policy::Grants;
use crate::scope::Scope;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWrite;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView};

/// Clocks for guests are no finer than this: a fine clock measures what a guest must not know.
const CLOCK_STEP: Duration = Duration::from_millis(1);
/// Random bytes a guest gets in one go.
const RANDOM_BYTES: u64 = 64 << 10;

/// One guest's world, as host functions see it.
pub(crate) struct State {
    pub(crate) table: ResourceTable,
    pub(crate) meter: Meter,
    pub(crate) grants: Grants,
    pub(crate) scope: Arc<Scope>,
    wasi: WasiCtx,
}

impl State {
    pub(super) fn new(meter: Meter, handles: usize, grants: Grants, scope: Arc<Scope>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles);
        let mut wasi = WasiCtx::builder();
        wasi.stdout(Printed(scope.clone())).stderr(Printed(scope.clone()));
        wasi.wall_clock(CoarseWall).monotonic_clock(CoarseMonotonic(Instant::now())).max_random_size(RANDOM_BYTES);
        Self { table, meter, grants, scope, wasi: wasi.build() }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

struct CoarseWall;

impl HostWallClock for CoarseWall {
    fn resolution(&self) -> Duration {
        CLOCK_STEP
    }

    fn now(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Duration::new(now.as_secs(), now.subsec_millis() * 1_000_000)
    }
}

struct CoarseMonotonic(Instant);

impl HostMonotonicClock for CoarseMonotonic {
    fn resolution(&self) -> u64 {
        CLOCK_STEP.as_nanos() as u64
    }

    fn now(&self) -> u64 {
        self.0.elapsed().as_millis() as u64 * self.resolution()
    }
}

/// Where a guest's prints go: into events, never to the host's own output, which carries a protocol.
#[derive(Clone)]
struct Printed(Arc<Scope>);

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

#[async_trait::async_trait]
impl Pollable for Printed {
    async fn ready(&mut self) {}
}

impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > PRINT_PERMIT {
            return Err(StreamError::Trap(wasmtime::Error::msg("a guest wrote more than it was permitted")));
        }
        self.0.emit_for_guest(bytes.len(), || Event::info(String::from_utf8_lossy(&bytes).trim_end_matches('\n')));
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINT_PERMIT)
    }
}
