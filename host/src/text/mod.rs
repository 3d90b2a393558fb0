//! What is done to texts: cleaning them for readers, measuring rows, quoting for shells, names and ids.

pub(crate) mod columns;
pub(crate) mod id;
pub(crate) mod names;
pub mod sanitize;
pub(crate) mod shell_quote;
