#![doc = include_str!("../README.md")]

mod answer;
#[doc(hidden)]
pub mod bindings;
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
pub mod pane_sessions;
pub mod panes;
pub mod programs;
pub mod records;
pub mod schedules;
mod schema;
pub mod shell;
mod tool;
mod types;

pub use answer::{Content, attach, notice};
pub use failure::{Failure, Kind, Result};
pub use schemars::{self, JsonSchema};
pub use tool::{Guidance, Tool};
pub use types::{Captured, Declaration, Pane, Risk, truncated};

/// What `export!` expands to; nothing here is for authors.
#[doc(hidden)]
pub mod __private {
    pub use crate::export::{Entry, Plugin, names, names_len};
}
