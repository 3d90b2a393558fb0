//! What a plugin says of itself, and what is held to that: its manifest, the definitions of its tools, the schemas of what goes in and out.
//!
//! - `manifest.rs` is who it is and what it asks for, before anything of it runs;
//! - `definition.rs` is a tool in its own words, `schema.rs` checks values by what it says, `dialect.rs` reads what others write as schemas, and
//!   `folded.rs` says one as clients and model APIs take it;
//! - `foreign/` makes tools of the exports of a component that was not written for Toolcrib, and its values of JSON; `words.rs` reads what a
//!   file beside it says of them;
//! - `request.rs` is what a caller asks for, and `mended.rs` what is meant by it.
//!
//! It depends on `base` and `config`. What a plugin gets is decided in `policy`, what runs it is a provider.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod definition;
pub mod dialect;
pub mod folded;
pub mod foreign;
pub mod manifest;
pub mod mended;
pub mod request;
pub mod schema;
pub mod words;
