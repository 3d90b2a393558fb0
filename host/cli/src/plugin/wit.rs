//! `toolcrib plugin wit`: the contract, for binding generators and for readers.

use super::super::setup::usage;
use super::super::{print, print_bytes};
use super::authors::CONTRACT;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolcrib::envelope::Failure;

#[derive(clap::Args)]
pub(in super::super) struct Wit {
    /// Write the files into this directory, which is made if it is missing; default: print them
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn wit(arguments: &Wit) -> Result<ExitCode, Failure> {
    let Some(directory) = &arguments.out else {
        let texts: Vec<&str> = files().map(|(_, text)| text).collect();
        return print_bytes(texts.join("\n").as_bytes());
    };
    write_all(directory, files())?;
    print(&format!("wrote {} files of toolcrib:plugin@0.1.0 to {}\n", files().count(), directory.display()))
}

/// The contract's files by name.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    CONTRACT.iter().copied().filter(|(name, _)| name.ends_with(".wit"))
}

/// Writes files below a directory, with the directories that they need.
pub(super) fn write_all<'f>(
    directory: &Path,
    files: impl Iterator<Item = (&'f str, impl AsRef<str>)>,
) -> Result<(), Failure> {
    for (name, text) in files {
        let path = directory.join(name);
        let parent = path.parent().expect("a file is in a directory");
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text.as_ref()));
        written.map_err(|error| usage(format!("`{}` cannot be written: {error}", path.display())))?;
    }
    Ok(())
}
