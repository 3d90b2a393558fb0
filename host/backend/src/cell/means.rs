//! By what commands are confined: steps of a ladder. Which of them there are at a place, and why not, `policy/confine/ladder.rs` says.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// By what a command is confined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Namespaces that this program makes.
    Namespaces,
    /// Namespaces that bubblewrap makes, which is this program.
    Bwrap(PathBuf),
    /// A domain of Landlock, and the filter of system calls.
    Landlock,
}

impl Means {
    /// What is out of reach is decided by namespaces, files that can be read included.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Namespaces | Self::Bwrap(_) => true,
            Self::Landlock => false,
        }
    }

    /// As people read it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bwrap(_) => "bwrap",
            Self::Landlock => "Landlock",
        }
    }

    /// What is so confined; the usual way needs no name.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            Self::Namespaces => "confined",
            Self::Bwrap(_) => "confined by bwrap",
            Self::Landlock => "partially confined by Landlock",
        }
    }
}
