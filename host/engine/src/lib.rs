//! The engine of WebAssembly: which proposals are on, how instances are allocated; code is compiled once and kept, and what a guest takes is
//! metered.
//!
//! Proposals that no plugin needs are off. `compile.rs` makes code, `cache.rs` keeps it; `meter.rs` counts what one guest takes, with the
//! clock of `cpu.rs` and the bell of `ticker.rs`; `room.rs` shares the places of the pool among plugins.
//!
//! It depends on `backend`, which starts the compiler's process, `base` and `config`. `sandbox` makes the stores, with limits on each.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod cache;
pub mod compile;
pub mod cpu;
pub mod meter;
pub mod room;
pub mod ticker;

use crate::meter::to_usize;
use config::Limits;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Depth of a guest's stack, in bytes; the fiber it runs on is larger, for the host functions above it.
pub const GUEST_STACK: usize = 512 << 10;
const FIBER_STACK: usize = 2 << 20;
/// What a place in the pool has room for: one memory, and the core instances and tables that a component of the usual make needs (the
/// module, and the shims of its adapter).
const CORE_INSTANCES_A_PLACE: u32 = 4;
const TABLES_A_PLACE: u32 = 2;
/// Plugins that say at the same time what they offer. They have room of their own, so no call can take it.
pub const DEFINITIONS_AT_A_TIME: u32 = 16;

/// Bytes of a table that are overwritten after a call, not unmapped: the tables of small tools.
const RESIDENT_TABLE: usize = 4 << 10;
/// The same of a memory: the stack and the data of a tool that was linked with a small stack. Of a larger memory this much is overwritten as
/// well, for nothing, which costs some microseconds; and each place that was used once keeps as much.
const RESIDENT_MEMORY: usize = 256 << 10;

/// What the instance of a component takes of the pool.
#[derive(Clone, Copy)]
pub struct CallSize {
    pub core_instances: u64,
    pub memories: u64,
    pub tables: u64,
}

impl CallSize {
    /// The largest that the limits let in.
    pub fn largest(limits: &Limits) -> Self {
        Self { core_instances: limits.instances, memories: limits.memories, tables: limits.tables }
    }

    /// As many places as hold it, whatever it has most of.
    pub fn places(self) -> u64 {
        let by_instances = self.core_instances.div_ceil(CORE_INSTANCES_A_PLACE.into());
        let by_tables = self.tables.div_ceil(TABLES_A_PLACE.into());
        by_instances.max(by_tables).max(self.memories).max(1)
    }

    /// The places of the pool. Where few calls may run, one that takes all it may has to find room all the same.
    pub(crate) fn places_in_all(limits: &Limits) -> u64 {
        guests(limits).max(Self::largest(limits).places())
    }
}

/// Guests at one time: calls, and plugins that say what they offer.
fn guests(limits: &Limits) -> u64 {
    limits.concurrent_calls.saturating_add(DEFINITIONS_AT_A_TIME.into())
}

/// Makes the engine; where the address space for the instance pool is not to be had, one that allocates on demand.
pub fn engine(limits: &Limits) -> wasmtime::Result<Engine> {
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits)));
    Engine::new(&config).or_else(|_| Engine::new(&base()))
}

/// Makes an engine that compiles for the other, and runs nothing.
pub fn compiler() -> wasmtime::Result<Engine> {
    // Without the pool: the address space that it reserves does not fit under the limit of a compiling child.
    Engine::new(&base())
}

fn base() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_gc(false)
        // A component within a component is called through an adapter that wasmtime writes; it copies from one memory to the other.
        .wasm_multi_memory(true)
        // WIT's `map`, of components whose functions are tools (`tools/foreign/`).
        .wasm_component_model_map(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(FIBER_STACK);
    config
}

fn pool(limits: &Limits) -> PoolingAllocationConfig {
    let count = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
    let (instances, memories, tables) = (count(limits.instances), count(limits.memories), count(limits.tables));
    let (guests, places) = (count(guests(limits)), count(CallSize::places_in_all(limits)));
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(guests)
        .total_core_instances(places.saturating_mul(CORE_INSTANCES_A_PLACE))
        .total_memories(places)
        .total_tables(places.saturating_mul(TABLES_A_PLACE))
        .total_stacks(guests)
        .max_memory_size(to_usize(limits.memory_mib << 20))
        .table_elements(to_usize(limits.table_elements))
        .max_core_instances_per_component(instances)
        .max_memories_per_component(memories)
        .max_tables_per_component(tables)
        .max_memories_per_module(memories)
        .max_tables_per_module(tables)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        .table_keep_resident(RESIDENT_TABLE)
        .linear_memory_keep_resident(RESIDENT_MEMORY);
    // `pagemap_scan` would do this for memories of any size, but in 48.0.8 it does not reset a written page that was swapped out meanwhile
    // (wasmtime's pull request 14357), and the next call would read it.
    pool
}
