//! `file_search` and `file_find`: the lines that have a pattern, and the files that have a name, below a directory.
//!
//! The host searches. Here its finds become the text that a model reads.

mod find;
mod said;
mod search;

toolcrib_sdk::export!(search::FileSearch, find::FileFind);
