//! `file_write`: writes a whole text file, and makes the directories above it.

mod tool;

toolcrib_sdk::export!(tool::FileWrite);
