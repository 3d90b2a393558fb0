//! The tools that come with Toolcrib, as components with their digests: built from `plugins/` by `build.rs`.

/// The components: file name, sha256 in hex, bytes.
// Not a constant: every use of one is a copy of its own, and each weighs 4 MB in the program.
pub static BUILTINS: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
