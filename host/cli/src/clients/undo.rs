//! What `toolcrib setup` wrote, and taking it back: the file as it was, or, if it was changed since, without what was written.

use super::super::plugin::unavailable;
use super::super::setup::{cannot, usage};
use super::edit::Back;
use super::file::{Found, bytes, keep};
use super::plan::Missing;
use base::disk::OwnDir;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toolcrib::envelope::Failure;

/// The file in the state directory.
const RECORD: &str = "clients.json";
/// How the name of a file as it was ends.
const SUFFIX: &str = ".before-toolcrib";

/// What was written to one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Written {
    sha256: String,
    /// The file as it was; none if it was missing.
    backup: Option<PathBuf>,
    /// What takes it back, the last first.
    back: Vec<Back>,
}

/// What was written to all files.
pub(super) struct Record {
    state: OwnDir,
    files: BTreeMap<PathBuf, Written>,
}

/// How a file is taken back.
pub(super) struct Undo {
    pub(super) found: Found,
    /// The text that it gets; none if it is removed.
    pub(super) after: Option<String>,
    /// It is the file as it was, byte for byte.
    pub(super) is_exact: bool,
}

impl Record {
    pub(super) fn open(state: &Path) -> Result<Self, Failure> {
        let state = OwnDir::open(state).map_err(unavailable)?;
        let text = state.read(RECORD).map_err(unavailable)?;
        let files = text.map(|text| serde_json::from_slice(&text)).transpose().map_err(|error| {
            usage(format!("`{}` is not a record of this program: {error}", state.path().join(RECORD).display()))
        })?;
        Ok(Self { state, files: files.unwrap_or_default() })
    }

    /// Writes a file, keeps it as it was, and notes how to take that back; returns where the file is kept.
    pub(super) fn write(&mut self, missing: &Missing, after: &str) -> Result<Option<PathBuf>, Failure> {
        let found = &missing.found;
        found.unchanged()?;
        let before = self.files.get(&found.target).cloned();
        let backup = match (&before, &found.bytes) {
            (Some(before), _) => before.backup.clone(),
            (None, None) => None,
            (None, Some(_)) => Some(keep(&found.target, SUFFIX).map_err(|error| cannot(&found.target, &error))?),
        };
        let back = missing.back.iter().cloned().chain(before.into_iter().flat_map(|before| before.back)).collect();
        let written = Written { sha256: digest(after.as_bytes()), backup: backup.clone(), back };
        self.files.insert(found.target.clone(), written);
        // Noted before it is written: a file that nobody can take back would be worse than a note of nothing.
        self.save()?;
        found.write(after)?;
        Ok(backup)
    }

    /// How a file is taken back; none if nothing was written to it.
    pub(super) fn undo(&self, file: &Path) -> Result<Option<Undo>, Failure> {
        let found = Found::open(file)?;
        let Some(written) = self.files.get(&found.target) else { return Ok(None) };
        let Some(now) = &found.bytes else {
            return Ok(Some(Undo { found, after: None, is_exact: true }));
        };
        if digest(now) == written.sha256 {
            match &written.backup {
                None => return Ok(Some(Undo { found, after: None, is_exact: true })),
                Some(backup) => {
                    let before = bytes(backup)?.and_then(|bytes| String::from_utf8(bytes).ok());
                    if let Some(before) = before {
                        return Ok(Some(Undo { found, after: Some(before), is_exact: true }));
                    }
                }
            }
        }
        let after = found.changed(&steps(&found.value, &written.back))?;
        Ok(Some(Undo { found, after: Some(after), is_exact: false }))
    }

    /// Takes a file back. What was kept of it is removed with an exact undo alone.
    pub(super) fn take_back(&mut self, undo: &Undo) -> Result<(), Failure> {
        let found = &undo.found;
        match (&undo.after, &found.bytes) {
            (Some(after), _) => found.write(after)?,
            (None, Some(_)) => {
                found.unchanged()?;
                std::fs::remove_file(&found.target).map_err(|error| cannot(&found.file, &error))?;
            }
            (None, None) => {}
        }
        let written = self.files.remove(&found.target);
        self.save()?;
        match written.and_then(|written| written.backup).filter(|_| undo.is_exact && undo.after.is_some()) {
            Some(backup) => std::fs::remove_file(&backup).map_err(|error| cannot(&backup, &error)),
            None => Ok(()),
        }
    }

    fn save(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(&self.files).map_err(|error| usage(error.to_string()))?;
        self.state.replace(RECORD, &text).map_err(unavailable)
    }
}

/// The steps that take changes back from a file as it is now.
fn steps(value: &Value, back: &[Back]) -> Vec<super::edit::Step> {
    let mut value = value.clone();
    let mut steps = Vec::new();
    for back in back {
        if let Some(step) = back.step(&value) {
            step.make(&mut value);
            steps.push(step);
        }
    }
    steps
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
