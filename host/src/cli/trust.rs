//! `toolcrib trust`: a project's settings may widen once the user has accepted their very bytes.

use super::print;
use super::setup::{PROJECT_SETTINGS, dirs, usage, working_directory};
use crate::dirs::{Dirs, write_private};
use crate::envelope::{Failure, Kind};
use crate::policy::files::canonical;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The file to accept; ./toolcrib.toml when left away
    file: Option<PathBuf>,
    /// Take the acceptance back
    #[arg(long)]
    revoke: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let dirs = dirs()?;
    let file = working_directory()?.join(arguments.file.as_deref().unwrap_or(Path::new(PROJECT_SETTINGS)));
    let cannot = |error: std::io::Error| usage(format!("`{}`: {error}", file.display()));
    // A file that has gone can still lose its trust.
    let path = canonical(&file);
    let known = std::fs::read_to_string(dirs.trusted()).unwrap_or_default();
    let others = known.lines().filter(|line| line.split_once("  ").is_none_or(|(_, other)| Path::new(other) != path));
    let mut lines: Vec<String> = others.map(str::to_owned).collect();
    if !arguments.revoke {
        // `DIGEST  PATH`, as `sha256sum` writes it.
        lines.push(format!("{}  {}", digest(&path).map_err(cannot)?, path.display()));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    write_private(&dirs.trusted(), text.as_bytes()).map_err(|error| {
        Failure::new(Kind::Unavailable, format!("`{}` cannot be written: {error}", dirs.trusted().display()))
    })?;
    let done =
        if arguments.revoke { "no longer trusted" } else { "trusted as it is now; a change takes the trust away" };
    print(&format!("{} is {done}\n", path.display()))
}

/// Returns the digest under which the user has accepted the file.
pub(super) fn accepted(file: &Path, dirs: &Dirs) -> Option<String> {
    let path = std::fs::canonicalize(file).ok()?;
    let known = std::fs::read_to_string(dirs.trusted()).ok()?;
    let mut entries = known.lines().filter_map(|line| line.split_once("  "));
    entries.find(|(_, other)| Path::new(other) == path).map(|(digest, _)| digest.to_owned())
}

/// Returns whether the user has accepted the file as it is now.
pub(super) fn is_trusted(file: &Path, dirs: &Dirs) -> bool {
    digest(file).is_ok_and(|digest| accepted(file, dirs) == Some(digest))
}

fn digest(path: &Path) -> std::io::Result<String> {
    Ok(hex::encode(Sha256::digest(std::fs::read(path)?)))
}
