//! Secrets in text: the values this host knows, and what has the shape of a secret.
//!
//! What a finding leads to (a refusal, a redaction, a notice) is left to the callers, and so is where values come from.
//!
//! - [`Known`] finds exact values in every form that an encoder or a serialiser gives them, and puts `[secret:NAME]` in
//!   their place. [`Stream`] does the same for bytes that arrive in pieces.
//! - [`Value`] is what a secret may be: no message shows it, and it can be told from other text.
//! - [`shapes`] finds what looks like a vendor's token, a private key, or a password in a URL, whoever it belongs to.
//!
//! Both take time linear in the input. What neither finds: a value that is compressed, encrypted, spelled out, encoded
//! twice, or parted by other text. In pieces of a stream, hex that is spaced and values with line ends in them pass as well.
//!
//! It depends on `base`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

#[cfg(test)]
mod corpus;
mod forms;
mod known;
mod layout;
#[cfg(test)]
mod sample;
pub mod shapes;
mod stand_ins;
mod stream;
mod value;

pub use known::{Known, why_weak};
pub use stand_ins::StandIns;
pub use stream::Stream;
pub use value::{MOST_BYTES, Value};
