//! `[limits]`: how much a call may use, and how many there may be.

use super::{YEAR_MS, between};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// As much as the memory of a 32-bit guest can hold.
const MEMORY_KIB: u64 = 4_194_304;

/// `[limits]`; each name ends with its unit, counts have none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU time of a plugin in one call; time inside the host does not count.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub guest_cpu_ms: u64,
    /// A whole call, waits for commands and approvals not counted.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub call_ms: u64,
    /// A command with `wait: true`; [`Limits::command`] also applies `command_max_ms`.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub command_ms: u64,
    /// The longest time that a call may ask to wait for a command.
    #[serde(deserialize_with = "between::<1, YEAR_MS, _>")]
    pub command_max_ms: u64,
    /// How long a cancelled call may wind down.
    #[serde(deserialize_with = "between::<0, 600_000, _>")]
    pub grace_ms: u64,
    /// Memory of an instance, summed over all its memories.
    #[serde(deserialize_with = "between::<1, 4096, _>")]
    pub memory_mib: u64,
    /// Memory of all instances together.
    #[serde(deserialize_with = "between::<1, 1_048_576, _>")]
    pub total_memory_mib: u64,
    /// Elements in all tables of an instance.
    #[serde(deserialize_with = "between::<1, 10_000_000, _>")]
    pub table_elements: u64,
    /// Tables of an instance.
    #[serde(deserialize_with = "between::<1, 1000, _>")]
    pub tables: u64,
    /// Memories of an instance.
    #[serde(deserialize_with = "between::<1, 100, _>")]
    pub memories: u64,
    /// Core instances within a component.
    #[serde(deserialize_with = "between::<1, 1000, _>")]
    pub instances: u64,
    /// How much a guest may pass to the host in one host call.
    #[serde(deserialize_with = "between::<1, MEMORY_KIB, _>")]
    pub host_call_kib: u64,
    /// How much a guest may pass to the host in a whole call.
    #[serde(deserialize_with = "between::<1, 1_073_741_824, _>")]
    pub call_kib: u64,
    /// The result of a call.
    #[serde(deserialize_with = "between::<1, MEMORY_KIB, _>")]
    pub result_kib: u64,
    /// Component handles at one time.
    #[serde(deserialize_with = "between::<1, 1_000_000, _>")]
    pub handles: u64,
    /// Host calls within one call.
    #[serde(deserialize_with = "between::<1, 1_000_000_000, _>")]
    pub host_calls: u64,
    /// Events that a guest itself sends in one call.
    #[serde(deserialize_with = "between::<0, 1_000_000, _>")]
    pub events: u64,
    /// Text of these events.
    #[serde(deserialize_with = "between::<0, 1_048_576, _>")]
    pub event_kib: u64,
    /// A component's file; the parser accepts none above 1 GiB.
    #[serde(deserialize_with = "between::<1, 1024, _>")]
    pub component_mib: u64,
    /// CPU time for compiling a component that is not part of this binary.
    #[serde(deserialize_with = "between::<1000, YEAR_MS, _>")]
    pub compile_ms: u64,
    /// Memory for the same.
    #[serde(deserialize_with = "between::<64, 1_048_576, _>")]
    pub compile_mib: u64,
    /// The description of a tool as models read it.
    #[serde(deserialize_with = "between::<1, 1_048_576, _>")]
    pub description_bytes: u64,
    /// Each schema of a tool.
    #[serde(deserialize_with = "between::<1, 16_384, _>")]
    pub schema_kib: u64,
    /// Nesting of a schema; `serde_json` accepts none above 128.
    #[serde(deserialize_with = "between::<1, 128, _>")]
    pub schema_depth: u64,
    /// Characters of the name under which a tool of a server of others is offered; model APIs take 64.
    #[serde(deserialize_with = "between::<32, 64, _>")]
    pub upstream_name_chars: u64,
    /// Calls at one time.
    #[serde(deserialize_with = "between::<1, 10_000, _>")]
    pub concurrent_calls: u64,
    /// Calls of one caller in a minute.
    #[serde(deserialize_with = "between::<1, 1_000_000_000, _>")]
    pub calls_per_minute: u64,
    /// Output of a command kept for later, each stream.
    #[serde(deserialize_with = "between::<0, 1_048_576, _>")]
    pub kept_stream_mib: u64,
    /// Output kept in all.
    #[serde(deserialize_with = "between::<0, 1_048_576, _>")]
    pub kept_total_mib: u64,
}

impl Limits {
    /// Returns how long a command with `wait: true` may take.
    #[must_use]
    pub fn command(&self) -> Duration {
        self.explicit_wait(self.command_ms)
    }

    /// Returns how long a command is waited for when a call asks for `wait_ms`.
    #[must_use]
    pub fn explicit_wait(&self, wait_ms: u64) -> Duration {
        Duration::from_millis(wait_ms.min(self.command_max_ms))
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use std::time::Duration;

    #[test]
    fn waits_for_commands_are_capped() {
        let mut limits = Config::default().limits;
        limits.command_max_ms = 1000;
        assert_eq!((limits.command(), limits.explicit_wait(10)), (Duration::from_secs(1), Duration::from_millis(10)));
        assert_eq!(limits.explicit_wait(u64::MAX), Duration::from_secs(1));
    }
}
