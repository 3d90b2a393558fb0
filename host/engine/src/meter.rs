//! What one call has used of its limits, and which of them it met.
//!
//! The meter remembers the first limit that it enforced, so that the trap that follows reads as that limit. Where limits come from: `config/limits.rs`.

use crate::cpu::CpuClock;
use crate::room::Taken;
use crate::ticker::Running;
use config::Limits;
use std::time::Duration;
use wasmtime::{CallHook, ResourceLimiter};

/// Counts memory, tables, host calls, CPU time and bytes of one guest.
pub struct Meter {
    limits: Limits,
    met: Option<Met>,
    memory_bytes: usize,
    room: Taken,
    table_elements: usize,
    host_calls: u64,
    bytes_from_guest: u64,
    cpu: CpuClock,
    ticks_after_cancel: u32,
    /// Without it no tick would end a guest that uses up its CPU time.
    _running: Running,
}

/// What stopped a guest.
#[derive(Clone)]
pub enum Met {
    /// A limit of its own.
    Limit {
        /// Its name under `[limits]`, and its value.
        key: &'static str,
        most: u64,
        /// What it is a limit of, with the value and its unit.
        text: String,
    },
    /// Others have the memory now.
    NoRoom,
}

/// Ticks that a guest may still run once its call was cancelled: to pass on what a command had printed.
const WINDING_DOWN: u32 = 3;

impl Meter {
    pub fn new(limits: &Limits, room: Taken, cpu: CpuClock, running: Running) -> Self {
        Self {
            limits: limits.clone(),
            met: None,
            memory_bytes: 0,
            room,
            table_elements: 0,
            host_calls: 0,
            bytes_from_guest: 0,
            cpu,
            ticks_after_cancel: 0,
            _running: running,
        }
    }

    /// The clock of the guest's CPU time, for whoever polls it.
    pub fn cpu(&self) -> CpuClock {
        self.cpu.clone()
    }

    /// Counts a tick after the call was cancelled; says whether it was one too many.
    pub fn is_past_winding_down(&mut self) -> bool {
        self.ticks_after_cancel += 1;
        self.ticks_after_cancel > WINDING_DOWN
    }

    /// What was met first.
    pub fn met(&self) -> Option<&Met> {
        self.met.as_ref()
    }

    fn meet(&mut self, key: &'static str, most: u64, text: String) -> wasmtime::Error {
        let error = wasmtime::Error::msg(format!("limit: {text}"));
        self.met.get_or_insert(Met::Limit { key, most, text });
        error
    }

    /// Ends a guest that has used its CPU time. It is looked at every tick, and where it calls the host.
    pub fn check_cpu(&mut self) -> wasmtime::Result<()> {
        let limit = Duration::from_millis(self.limits.guest_cpu_ms);
        if self.cpu.spent() < limit {
            return Ok(());
        }
        let most = self.limits.guest_cpu_ms;
        Err(self.meet("guest_cpu_ms", most, format!("guest CPU time {most} ms")))
    }

    /// Follows the guest across the host's border: counts host calls, and stops the CPU clock while the host works.
    pub fn cross(&mut self, hook: CallHook) -> wasmtime::Result<()> {
        if hook.exiting_host() {
            self.cpu.enter_guest();
            return Ok(());
        }
        self.cpu.leave_guest();
        if !matches!(hook, CallHook::CallingHost) {
            return Ok(());
        }
        self.host_calls += 1;
        if self.host_calls > self.limits.host_calls {
            let most = self.limits.host_calls;
            return Err(self.meet("host_calls", most, format!("host calls {most}")));
        }
        self.check_cpu()
    }

    /// Charges what a guest handed the host in one host call, against the bound of the whole call.
    pub fn charge_bytes(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.bytes_from_guest += bytes as u64;
        if self.bytes_from_guest <= self.limits.call_kib << 10 {
            return Ok(());
        }
        let most = self.limits.call_kib;
        Err(self.meet("call_kib", most, format!("bytes from the guest in one call {most} KiB")))
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory_bytes - current + desired;
        if total as u64 > self.limits.memory_mib << 20 {
            let most = self.limits.memory_mib;
            self.meet("memory_mib", most, format!("memory {most} MiB"));
            return Ok(false);
        }
        if !self.room.grow(desired - current) {
            self.met.get_or_insert(Met::NoRoom);
            return Ok(false);
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.table_elements - current + desired;
        let fits = total as u64 <= self.limits.table_elements;
        if fits {
            self.table_elements = total;
        } else {
            let most = self.limits.table_elements;
            self.meet("table_elements", most, format!("table elements {most}"));
        }
        Ok(fits)
    }

    fn instances(&self) -> usize {
        to_usize(self.limits.instances)
    }

    fn tables(&self) -> usize {
        to_usize(self.limits.tables)
    }

    fn memories(&self) -> usize {
        to_usize(self.limits.memories)
    }
}

/// A limit as a count of things in memory; on a small machine the largest such count.
pub fn to_usize(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
