//! What a command leaves in git directories, and how it is taken over: nothing that it wrote there reaches the real one but what is decided here.
//!
//! What lies in a git directory acts by itself: settings name programs, hooks are programs, and a few files lead git elsewhere. So in a cell an
//! overlay covers the directory (`cell/gates.rs` of the crate `backend`, with `bell.rs` for what is written between calls), for each one that
//! commands reach (`find.rs`).
//!
//! What was written is read where it lands (`upper.rs`). Each file is of a known kind (`parts.rs`), and is taken over as values (`apply.rs`, with
//! `refs.rs`, `config.rs` and `todo.rs`; `whole.rs` checks objects) into the directory itself (`real.rs`). A repository that commands make is made
//! anew by the same rules (`fresh.rs`). `had.rs` knows what the person's repository had before, and which remotes are the person's. The gitoxide
//! crates read and write the formats. What a person is asked about is decided in `policy`.
//!
//! It depends on base, and on file_access for which directories git obeys.
#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod apply;
pub mod bell;
mod config;
pub mod find;
pub mod fresh;
pub mod had;
pub mod moment;
pub mod parts;
pub mod real;
mod refs;
mod todo;
pub mod upper;
mod whole;

pub use apply::{Act, Ask, Report};
pub use find::{Found, find, obeyed};
pub use had::{Blob, Remote, had, holds, may_come_from, note_made};

/// Does what a person said yes to, in a git directory on this machine.
pub fn make(directory: &std::path::Path, act: &Act) -> std::io::Result<()> {
    let opened = rustix::fs::open(directory, base::disk::DIRECTORY, rustix::fs::Mode::empty())?;
    act.make(&real::Real::new(opened))
}

/// Where the rooms of gates are in Toolcrib's state, each in one of its workspace.
pub const ROOMS: &str = "git";
/// Where a cell has what is written over git directories; only the host gets there.
pub const ROOM: &str = "/run/.gates";
