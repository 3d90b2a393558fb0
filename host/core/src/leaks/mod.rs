//! Secrets in text: the values this host knows, and what has the shape of a secret.
//!
//! What a finding leads to (a refusal, a redaction, a notice) is left to the callers, and so is where values come from.
//!
//! - [`Known`] finds exact values in every form that an encoder or a serialiser gives them, and puts `[secret:NAME]` in
//!   their place. [`Stream`] does the same for bytes that arrive in pieces.
//! - [`shapes`] finds what looks like a vendor's token, a private key, or a password in a URL, whoever it belongs to.
//!
//! Both take time linear in the input. What neither finds: a value that is compressed, encrypted, spelled out, encoded
//! twice, or parted by other text. In pieces of a stream, hex that is spaced and values with line ends in them pass as well.

#[cfg(test)]
mod corpus;
mod forms;
mod guard;
mod known;
mod layout;
#[cfg(test)]
mod sample;
pub(crate) mod shapes;
mod stand_ins;
mod stream;

pub(crate) use guard::{Exit, Guard, Redactor, each_leaf};
pub(crate) use known::{Known, why_weak};
pub(crate) use stand_ins::StandIns;
pub(crate) use stream::Stream;
