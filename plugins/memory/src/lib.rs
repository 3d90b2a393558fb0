//! `memory`: what an agent has learned of its people and its work. It is found again by its words, and by what belongs to it.
//!
//! `keep.rs` says how memories are kept, `rank.rs` which are the best; the tools are in `save.rs`, `recall.rs` and `tidy.rs`.

mod keep;
mod rank;
mod recall;
mod save;
mod tidy;

use recall::MemoryRecall;
use save::MemorySave;
use tidy::{MemoryConsolidate, MemoryDelete};

toolcrib_sdk::export!(MemorySave, MemoryRecall, MemoryDelete, MemoryConsolidate);
