//! `[program.NAME]`: programs that the user has declared. `tools/provider/program.rs` makes a tool of each, `policy/programs.rs` decides who
//! may run it.

use super::{absolute, between, environment_names, sha256_hex};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::PathBuf;

/// Milliseconds that a program may take where its section does not say.
const TIMEOUT_MS: u64 = 60_000;
/// A day.
const MOST_MS: u64 = 86_400_000;
/// Characters of what a program is about.
const ABOUT_CHARS: usize = 500;

/// `[program.NAME]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSection {
    /// Its file on this machine: absolute.
    #[serde(default, deserialize_with = "absolute")]
    pub path: PathBuf,
    /// The digest of that, as 64 hex digits: no other file is run.
    #[serde(default, deserialize_with = "digest")]
    pub sha256: String,
    /// What it is for, in a sentence.
    #[serde(default, deserialize_with = "sentence")]
    pub about: String,
    /// A file with its usage page, which models read: absolute.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "own_absolute")]
    pub usage: Option<PathBuf>,
    /// Arguments that come before those of a call.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "arguments")]
    pub arguments: Vec<String>,
    /// Variables of the host that it gets besides those that commands always get.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "environment_names")]
    pub environment: Vec<String>,
    /// How long it may take, in milliseconds.
    #[serde(default = "usual_timeout", deserialize_with = "between::<1, MOST_MS, _>")]
    pub timeout_ms: u64,
    /// Which exit statuses are results.
    #[serde(default)]
    pub result: ProgramResult,
}

/// Which exit statuses of a program are results, and not failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramResult {
    /// 0 alone.
    #[default]
    #[serde(rename = "exit-0")]
    Exit0,
    /// All.
    Any,
}

impl ProgramSection {
    /// A line that it has to have, and has not: settings are read line by line.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        let lines = [
            ("path", self.path.as_os_str().is_empty()),
            ("sha256", self.sha256.is_empty()),
            ("about", self.about.is_empty()),
        ];
        lines.into_iter().find(|(_, is_missing)| *is_missing).map(|(line, _)| line)
    }
}

fn usual_timeout() -> u64 {
    TIMEOUT_MS
}

fn own_absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    absolute(deserializer).map(Some)
}

fn digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    sha256_hex(&String::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("must be 64 hex digits"))
}

fn sentence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let fits = !text.trim().is_empty() && text.chars().count() <= ABOUT_CHARS && !text.contains(char::is_control);
    let refused = || D::Error::custom(format!("must be a sentence of at most {ABOUT_CHARS} characters, in one line"));
    fits.then_some(text).ok_or_else(refused)
}

fn arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let arguments = Vec::<String>::deserialize(deserializer)?;
    let has_nul = arguments.iter().any(|argument| argument.contains('\0'));
    if has_nul { Err(D::Error::custom("no program can be given a NUL byte")) } else { Ok(arguments) }
}
