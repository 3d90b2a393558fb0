//! Guests: each call gets a fresh store with all limits on it, and reaches the host by capabilities alone.
//!
//! - `sandbox/` makes the stores and runs what is in them;
//! - `capability/` has one file for each interface of `wit/`: check the grant, act, convert;
//! - `reach.rs` is what a capability may reach: the scope of its call, and the services of the host; `later.rs` is one that the host fills in,
//!   as jobs are calls.
//!
//! It depends on `engine` and `contract`, on `policy`, `file_access` and `command`, which decide, on the services (`backend`, `browser`, `egress`,
//! `embedder`, `mail`, `store`, `tmux`), and on `audit`, `base`, `config`, `kept_output`, `leaks` and `secrets`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod capability;
pub mod later;
pub mod reach;
pub mod sandbox;
