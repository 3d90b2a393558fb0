//! Answers in advance.

use serde::{Deserialize, Serialize};

/// The answers that were given for a job when it was submitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Admitted {
    /// Digests of the questions.
    pub questions: Vec<String>,
    /// Somebody read them.
    pub were_read: bool,
    /// Who answered.
    pub by: String,
}
