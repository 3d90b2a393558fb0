//! `file_edit`: replaces one piece of text in a file by another.

mod tool;

toolcrib_sdk::export!(tool::FileEdit);
