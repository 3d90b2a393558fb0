//! The git gate: commands see an ordinary git directory, and nothing that they write there reaches the real one but what the host decides on.
//!
//! What lies in a git directory acts by itself: settings name programs, hooks are programs, and a few files lead git elsewhere. So in a cell an
//! overlay covers the directory (`gates.rs`, with `bell.rs` for what is written between calls), for each one that commands reach (`find.rs`).
//!
//! What was written is read where it lands (`upper.rs`). Each file is of a known kind (`parts.rs`), and is taken over as values (`apply.rs`, with
//! `refs.rs`, `config.rs` and `todo.rs`; `whole.rs` checks objects) into the directory itself (`real.rs`). A repository that commands make is made
//! anew by the same rules (`fresh.rs`). `had.rs` knows what the person's repository had before, and which remotes are the person's. The gitoxide
//! crates read and write the formats. What a person is asked about is decided in `policy/`.

mod apply;
mod bell;
mod config;
mod find;
mod fresh;
mod gates;
mod had;
mod moment;
mod parts;
mod real;
mod refs;
mod todo;
mod upper;
mod whole;

pub(crate) use apply::{Act, Ask, Report};
pub(crate) use find::{Found, find, obeyed};
pub(in crate::backend) use gates::{Gates, When};
pub(crate) use had::{Remote, had, holds, may_come_from, note_made};

/// Does what a person said yes to, in a git directory on this machine.
pub(crate) fn make(directory: &std::path::Path, act: &Act) -> std::io::Result<()> {
    let opened = rustix::fs::open(directory, crate::disk::DIRECTORY, rustix::fs::Mode::empty())?;
    act.make(&real::Real::new(opened))
}

/// Where the rooms of gates are in Toolcrib's state, each in one of its workspace.
pub(in crate::backend) const ROOMS: &str = "git";
/// Where a cell has what is written over git directories; only the host gets there.
pub(in crate::backend) const ROOM: &str = "/run/.gates";
