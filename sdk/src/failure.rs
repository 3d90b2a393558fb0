//! Why a call has no result.

use crate::bindings::toolcrib::plugin::types;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// A result, or why there is none.
pub type Result<T> = std::result::Result<T, Failure>;

/// The sort of a failure. The set is open: a kind that this version does not know passes through as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind(Cow<'static, str>);

impl Kind {
    /// The arguments cannot be used as they are.
    pub const INVALID_ARGUMENTS: Self = Self(Cow::Borrowed("invalid_arguments"));
    /// Policy or a person said no.
    pub const DENIED: Self = Self(Cow::Borrowed("denied"));
    /// A limit was met.
    pub const LIMIT: Self = Self(Cow::Borrowed("limit"));
    /// The time for the call or its command ran out.
    pub const TIMED_OUT: Self = Self(Cow::Borrowed("timed_out"));
    /// The caller ended the call.
    pub const CANCELLED: Self = Self(Cow::Borrowed("cancelled"));
    /// Something that is needed is in use; the same call may work later.
    pub const BUSY: Self = Self(Cow::Borrowed("busy"));
    /// Something that is needed is not there.
    pub const UNAVAILABLE: Self = Self(Cow::Borrowed("unavailable"));
    /// The effect may or may not have happened.
    pub const OUTCOME_UNKNOWN: Self = Self(Cow::Borrowed("outcome_unknown"));
    /// The action was tried and failed.
    pub const EXECUTION_FAILED: Self = Self(Cow::Borrowed("execution_failed"));
    /// A fault of the plugin itself.
    pub const INTERNAL: Self = Self(Cow::Borrowed("internal"));

    /// Returns the name in envelopes, for example `invalid_arguments`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Why a call has no result. Any `std` error becomes one through `?`, of the kind [`Kind::EXECUTION_FAILED`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: Kind,
    /// A lowercase fragment for the model: what happened, values in backticks, limits with their unit.
    pub message: String,
    /// The argument to change or the line to add.
    pub hint: Option<String>,
    /// What is known all the same, as JSON text: partial output, a pane's id.
    pub data: Option<String>,
}

impl Failure {
    /// Returns a failure of that kind, without hint and data.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, data: None }
    }

    /// Returns a failure for arguments that cannot be used.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::INVALID_ARGUMENTS, message)
    }

    /// Returns a failure for an action that was tried and did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::EXECUTION_FAILED, message)
    }

    /// Returns a failure for something that is not allowed.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Kind::DENIED, message)
    }

    /// Returns a failure for something that is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Kind::UNAVAILABLE, message)
    }

    /// Returns a failure for a limit that was met; `message` names it with its unit.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Kind::LIMIT, message)
    }

    /// Returns a failure for a fault of the plugin itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::INTERNAL, message)
    }

    /// Adds what to change.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what is known all the same. Data that JSON cannot express is left out.
    #[must_use]
    pub fn data(mut self, data: &impl Serialize) -> Self {
        self.data = serde_json::to_string(data).ok();
        self
    }

    pub(crate) fn from_host(failure: types::Failure) -> Self {
        let types::Failure { kind, message, hint, data } = failure;
        Self { kind: Kind(kind.into()), message, hint, data }
    }

    pub(crate) fn into_wit(self) -> types::Failure {
        let Self { kind, message, hint, data } = self;
        types::Failure { kind: kind.0.into_owned(), message, hint, data }
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

// `Failure` is not itself a `std` error: that would forbid this.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<u8> {
        Ok(text.parse()?)
    }

    #[test]
    fn a_std_error_becomes_a_failed_execution() {
        let failure = parsed("300").unwrap_err();
        assert_eq!(failure, Failure::failed("number too large to fit in target type"));
    }

    #[test]
    fn a_kind_of_a_newer_host_passes_through() {
        let newer = types::Failure { kind: "throttled".into(), message: "later".into(), hint: None, data: None };
        assert_eq!(Failure::from_host(newer).into_wit().kind, "throttled");
    }

    #[test]
    fn data_is_json_text() {
        assert_eq!(Failure::limit("too much").data(&["a", "b"]).data.as_deref(), Some(r#"["a","b"]"#));
    }
}
