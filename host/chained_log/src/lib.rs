//! The file of an audit trail: lines in a chain that shows what is changed afterwards.
//!
//! [`chain`] writes it, also where many processes write at once, [`seal`] seals it, [`rotate`] ends its files, [`verify`] checks it, with
//! what [`beside`] it is known of its seals.
//!
//! It depends on `base` and `config`. `audit` says what is in the lines.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod beside;
pub mod chain;
pub mod rotate;
pub mod seal;
pub mod verify;
