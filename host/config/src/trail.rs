//! How the audit trail is kept.

use serde::Serialize;
use std::path::PathBuf;

/// Where the trail of a host is, and how it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrailSettings {
    /// Its file, if it is not the one in the state directory.
    pub file: Option<PathBuf>,
    pub keeping: Keeping,
    /// Whether there has to be a key that seals it.
    pub sealed: bool,
}

/// A policy file, and the digest of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyDigest {
    /// Where it is.
    pub path: PathBuf,
    /// SHA-256 in hex; none where there was no such file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// When lines are forced to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncAt {
    /// Each line.
    Line,
    /// Each seal.
    #[default]
    Seal,
    /// When the system thinks fit.
    Never,
}

/// How a trail is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// A file that would get longer is renamed, and the next begun.
    pub rotate_bytes: u64,
    /// So many renamed files are kept.
    pub keep: usize,
    /// When lines are forced to the disk.
    pub sync: SyncAt,
    /// Whether the system's log gets the head of each seal.
    pub syslog: bool,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { rotate_bytes: 256 << 20, keep: 32, sync: SyncAt::Seal, syslog: false }
    }
}
