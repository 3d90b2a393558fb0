//! Tools: where they come from, what they say of themselves, and which of them a caller is offered.

mod definitions;
pub mod fetch;
mod files;
pub(crate) mod listing;
mod pack;
pub mod provider;
pub mod registry;
mod seen;
pub mod source;

pub use contract::words::words_file;
pub use contract::{definition, manifest, schema};
pub use definitions::Compiled;
pub use listing::{AllTools, Offered};
