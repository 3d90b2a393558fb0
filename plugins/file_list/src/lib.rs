//! `file_list`: what a directory has.

mod tool;

toolcrib_sdk::export!(tool::FileList);
