//! `toolcrib config show`: the effective settings, as the file that would say the same.

use super::setup::{dirs, load, sources};
use super::{Global, notice, print, print_json};
use std::process::ExitCode;
use toolcrib::envelope::Failure;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Show the effective settings as TOML
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
        /// Print JSON: each setting by its key, with its value and where it comes from
        #[arg(long, conflicts_with = "origin")]
        json: bool,
    },
}

pub(super) fn run(global: &Global, Arguments::Show { origin, json }: &Arguments) -> Result<ExitCode, Failure> {
    let settings = load(&sources(global, &dirs()?)?)?;
    settings.notices.iter().for_each(|text| notice(text));
    if *json { print_json(&settings.to_json()) } else { print(&settings.render(*origin)) }
}
