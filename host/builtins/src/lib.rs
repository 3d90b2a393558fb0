//! The tools that come with Toolcrib, as components with their digests: built from `plugins/` by `build.rs`. It depends on base.

pub use base::builtin::Builtin;
use base::builtin::{SearchBase, SearchServer};

/// The components, in the order of their names.
// Not a constant: every use of one is a copy of its own, and each weighs 4 MB in the program.
pub static BUILTINS: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// Digests of what they are built from, but for the SDK, by name: sha256 in hex.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
