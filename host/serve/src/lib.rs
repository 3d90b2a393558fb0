//! Serving a host to agents: doors translate, they decide nothing.

mod catalog;
pub mod embedder;
pub mod mcp;
mod notices;

pub use catalog::Catalog;
pub use notices::Notices;
