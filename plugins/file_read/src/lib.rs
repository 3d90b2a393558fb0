//! `file_read`: the text of a file, or some of its lines with their numbers.

mod tool;

toolcrib_sdk::export!(tool::FileRead);
