//! What is done to texts: cleaning them for readers, measuring rows, quoting for shells, reading escapes, names and ids.

pub mod columns;
pub mod id;
pub mod lines;
pub mod names;
pub mod octal;
pub mod sanitize;
pub mod shell_quote;
pub mod tool_names;
