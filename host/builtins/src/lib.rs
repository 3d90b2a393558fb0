//! The tools that come with Toolcrib, as components with their digests: built from `plugins/` by `build.rs`.

/// The components: file name, sha256 in hex, bytes, and what it says of its tools as JSON (`definitions.json` beside its sources); nothing where
/// that was written for other sources than these, and it has to be asked.
// Not a constant: every use of one is a copy of its own, and each weighs 4 MB in the program.
pub static BUILTINS: &[(&str, &str, &[u8], &str)] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// Digests of what they are built from, but for the SDK, by name: sha256 in hex.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
