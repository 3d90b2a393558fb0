//! What a model states of an action.

use serde::{Deserialize, Serialize};

/// How much a model says that an action may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// Much.
    High,
}

impl Risk {
    /// As people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What a model states before an action that touches state. Shown and audited, never believed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Declaration {
    /// How much it may do.
    pub risk: Risk,
    /// It changes something.
    pub mutation: bool,
    /// It needs more rights than the user's own.
    pub privesc: bool,
    /// Why it is needed.
    pub why: String,
}
