#![doc = include_str!("../README.md")]

mod answer;
#[doc(hidden)]
pub mod bindings;
pub mod browser;
pub mod duration;
pub mod embedder;
pub mod events;
pub mod exec;
mod export;
mod failure;
pub mod files;
pub mod http;
pub mod introspect;
pub mod jobs;
#[cfg(feature = "log")]
mod logs;
pub mod mail;
pub mod pane_sessions;
pub mod panes;
pub mod programs;
pub mod records;
pub mod schedules;
mod schema;
pub mod shell;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod tool;
mod types;

/// The host's interfaces: in a component the bindings.
#[cfg(target_arch = "wasm32")]
pub(crate) use bindings::toolcrib::plugin as host;
// Elsewhere what a test has played.
#[cfg(not(target_arch = "wasm32"))]
testing::played::interfaces! {
    shell exec programs files panes pane_sessions http browser mail embedder introspect records jobs schedules events
}

pub use answer::{Content, attach, notice};
pub use failure::{Failure, Kind, Result};
#[cfg(feature = "log")]
pub use log;
pub use schemars::{self, JsonSchema};
pub use tool::{Guidance, Tool};
pub use types::{Captured, Declaration, Pane, Risk, truncated};

/// What `export!` expands to; nothing here is for authors.
#[doc(hidden)]
pub mod __private {
    pub use crate::export::{Entry, Plugin, names, names_len};
}
