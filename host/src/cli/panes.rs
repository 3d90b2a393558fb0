//! `toolcrib attach` and `toolcrib sessions`: the managed tmux, for the person beside the agent.

use super::setup::{Setup, usage};
use super::{Global, print};
use crate::backend::local;
use crate::envelope::{Failure, Kind};
use crate::tmux::Tmux;
use comfy_table::{ContentArrangement, Table, presets};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args)]
pub(super) struct Attach {
    /// A session's name; the default one when absent
    session: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct Sessions {
    /// End the sessions that nobody is attached to, with all that runs in them
    #[arg(long)]
    prune: bool,
}

async fn tmux(setup: &Setup) -> Result<&Tmux, Failure> {
    setup.context.panes.managed().await?.map(Arc::as_ref).ok_or_else(|| {
        Failure::new(Kind::Unavailable, "there is no managed tmux here: it is not installed, or switched off")
            .hint("install tmux; `--no-tmux` and `tmux.enabled = false` switch it off")
    })
}

pub(super) async fn attach(global: &Global, arguments: &Attach) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let tmux = tmux(&setup).await?;
    let name = tmux.session_name(arguments.session.as_deref())?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(usage("`attach` needs a terminal").hint("start it where you sit"));
    }
    if !tmux.found().await?.iter().any(|found| found.ours && found.name == name) {
        return Err(Failure::failed(format!("there is no session `{name}` yet"))
            .hint("it comes with the first command; `toolcrib sessions` lists what is there"));
    }
    let command = tmux.attach_command(&name).await?;
    // What is open to the backend is closed: the program takes its own way there.
    drop(setup);
    let error = local::become_program(&command);
    Err(Failure::new(Kind::Unavailable, format!("tmux could not be started: {error}")))
}

pub(super) async fn sessions(global: &Global, arguments: &Sessions) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let tmux = tmux(&setup).await?;
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["session", "panes", "people", ""]);
    if !io::stdout().is_terminal() {
        table.force_no_tty();
    }
    for found in tmux.found().await?.into_iter().filter(|found| found.ours) {
        let is_ended = arguments.prune && found.attached == 0;
        if is_ended {
            tmux.end_session(&found.name).await?;
        }
        let said = if is_ended { "ended" } else { "" };
        table.add_row([&found.name, &found.panes.to_string(), &found.attached.to_string(), said]);
    }
    print(&format!("{table}\n"))
}
