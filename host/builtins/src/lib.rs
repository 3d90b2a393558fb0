//! The tools that come with Toolcrib, as components with their digests: built from `plugins/` by `build.rs`.

/// The components: file name, sha256 in hex, bytes.
pub const BUILTINS: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
