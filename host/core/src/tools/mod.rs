//! Tools: where they come from, what they say of themselves, and which of them a caller is offered.

pub mod definition;
pub(crate) mod dialect;
pub mod fetch;
mod files;
pub(crate) mod foreign;
pub(crate) mod listing;
pub mod manifest;
mod pack;
pub mod provider;
pub mod registry;
pub mod schema;
pub mod search;
mod seen;
pub mod source;
mod words;

pub use listing::{AllTools, Offered, families};
pub use words::words_file;
