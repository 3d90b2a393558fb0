//! `toolcrib trust`: a project's settings may widen once the user has accepted exactly these bytes, in that directory.

use super::setup::{PROJECT_SETTINGS, dirs, load, project_settings, sources, usage, working_directory};
use super::{Global, audit, print};
use ::config::project_sha256;
use base::disk::{OwnDir, told};
use base::paths::canonical;
use base::text::sanitize;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::dirs::Dirs;
use toolcrib::envelope::{Failure, Kind};

/// What the user has accepted, in the state directory.
const TRUSTED: &str = "trusted.toml";

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The file to accept; default: the project's toolcrib.toml, in this directory or above it
    file: Option<PathBuf>,
    /// Withdraw the acceptance
    #[arg(long)]
    revoke: bool,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Trusted {
    #[serde(default)]
    project: Vec<Project>,
}

/// The settings of one directory. Paths in them are relative to it: the same bytes elsewhere mean something else.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Project {
    directory: String,
    sha256: String,
}

impl Trusted {
    fn read(state: &OwnDir) -> io::Result<Self> {
        let Some(bytes) = state.read(TRUSTED)? else { return Ok(Self::default()) };
        toml::from_slice(&bytes).map_err(|error| {
            let path = state.path().join(TRUSTED);
            io::Error::other(format!("`{}` is not what `toolcrib trust` writes: {}", path.display(), error.message()))
        })
    }

    fn write(&self, state: &OwnDir) -> io::Result<()> {
        state.replace(TRUSTED, toml::to_string(self).expect("paths and digests are TOML").as_bytes())
    }
}

/// What cannot be read cannot be trusted.
fn unread(error: &str) -> Failure {
    usage(error).hint(format!("`{PROJECT_SETTINGS}` lies in the project's directory: go there, or give its path"))
}

pub(super) fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (here, dirs) = (working_directory()?, dirs()?);
    let found = || project_settings(&here, &dirs.home, &dirs.settings()).unwrap_or_else(|| here.join(PROJECT_SETTINGS));
    let file = arguments.file.as_ref().map_or_else(found, |file| here.join(file));
    if file.file_name().is_none_or(|name| name != PROJECT_SETTINGS) {
        return Err(usage(format!("`{}` is not a project's `{PROJECT_SETTINGS}`", file.display())));
    }
    // Trust can also be withdrawn from a file that has gone.
    let directory = directory_of(&canonical(file.parent().unwrap_or(&file)))?;
    let shown = Path::new(&directory).join(PROJECT_SETTINGS);
    let cannot = |error: io::Error| Failure::new(Kind::Unavailable, format!("trust cannot be kept: {}", told(&error)));
    let state = OwnDir::open(&dirs.state).map_err(cannot)?;
    let mut trusted = Trusted::read(&state).map_err(cannot)?;
    trusted.project.retain(|project| project.directory != directory);
    if !arguments.revoke {
        if shown.is_symlink() {
            return Err(usage(format!("`{}` is a link, and links are never trusted", shown.display()))
                .hint("put the settings themselves there"));
        }
        trusted
            .project
            .push(Project { directory, sha256: project_sha256(&shown).map_err(|error| unread(&error.to_string()))? });
    }
    trusted.write(&state).map_err(cannot)?;
    let done =
        if arguments.revoke { "no longer trusted" } else { "trusted as it is now; a change takes the trust away" };
    let shown = sanitize::line(&shown.display().to_string()).into_owned();
    let settings = load(&sources(global, &dirs)?)?;
    audit::changed(&settings, &dirs, &format!("{shown} is {done}"));
    print(&format!("{shown} is {done}\n"))
}

/// Returns the digest under which the user has accepted the settings of the directory that this file is in. Never of a link: its
/// target is somebody else's to choose.
pub(super) fn accepted(file: &Path, dirs: &Dirs) -> Option<String> {
    if file.is_symlink() {
        return None;
    }
    let directory = std::fs::canonicalize(file.parent()?).ok()?;
    let trusted = Trusted::read(&OwnDir::open(&dirs.state).ok()?).ok()?;
    let project = trusted.project.into_iter().find(|project| Path::new(&project.directory) == directory)?;
    Some(project.sha256)
}

/// Returns whether the user has accepted the file as it is now.
pub(super) fn is_trusted(file: &Path, dirs: &Dirs) -> bool {
    project_sha256(file).is_ok_and(|digest| accepted(file, dirs) == Some(digest))
}

fn directory_of(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| usage(format!("`{}` is not UTF-8, so it cannot be trusted", path.display())))
}
