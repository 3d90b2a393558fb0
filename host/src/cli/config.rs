//! `toolcrib config show`: the effective settings, as the file that would say the same.

use super::setup::{dirs, load, sources};
use super::{Global, notice, print};
use crate::envelope::Failure;
use std::process::ExitCode;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Show the effective settings as TOML
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
    },
}

pub(super) fn run(global: &Global, Arguments::Show { origin }: &Arguments) -> Result<ExitCode, Failure> {
    let settings = load(&sources(global, &dirs()?)?)?;
    settings.notices.iter().for_each(|text| notice(text));
    print(&settings.render(*origin))
}
