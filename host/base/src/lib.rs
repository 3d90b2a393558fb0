//! What all crates of the host use: results and failures of calls, texts, Toolcrib's own files, and types that several crates share.
//!
//! - [`envelope`]: what a call came to. [`text`]: texts made fit to be shown.
//! - [`disk`]: own files, by descriptor. [`dirs`]: where they lie. [`paths`], [`mountinfo`], [`unchanged`] and [`watches`]: what else is asked of
//!   file systems.
//! - [`capability`]: what a plugin can be granted. [`principal`]: who calls. [`workspace`]: where. [`environment`]: with which variables.
//! - [`target`] and [`addresses`]: where a URL leads. [`event_kind`]: names of events.
//!
//! It depends on no other crate of the host.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod addresses;
pub mod admitted;
pub mod builtin;
pub mod capability;
pub mod declaration;
pub mod dirs;
pub mod disk;
pub mod envelope;
pub mod environment;
pub mod event_kind;
pub mod input;
pub mod mountinfo;
pub mod own_listener;
pub mod paths;
pub mod principal;
pub mod target;
pub mod text;
pub mod unchanged;
pub mod watches;
pub mod workspace;
