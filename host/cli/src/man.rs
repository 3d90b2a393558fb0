//! `toolcrib man`: the manual page of the program or of one subcommand, made from the same texts as `--help`.

use super::setup::usage;
use super::{Cli, print_bytes};
use clap::CommandFactory;
use clap_mangen::Man;
use std::process::ExitCode;
use toolcrib::envelope::{Failure, Kind};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  toolcrib man | man -l -
  toolcrib man policy explain > toolcrib-policy-explain.1")]
pub(super) struct Arguments {
    /// The subcommand that the page is about; default: the program
    subcommand: Vec<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    // Gives each subcommand its full name.
    command.build();
    for name in &arguments.subcommand {
        let found = command.find_subcommand(name).filter(|found| !found.is_hide_set()).cloned();
        command = found.ok_or_else(|| {
            usage(format!("`{}` has no subcommand `{name}`", command.get_bin_name().unwrap_or("toolcrib")))
                .hint("`toolcrib --help` lists them")
        })?;
    }
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::new(Kind::Internal, format!("the page could not be made: {error}")))?;
    print_bytes(&page)
}
