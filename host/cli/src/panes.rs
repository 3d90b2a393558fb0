//! `toolcrib attach` and `toolcrib panes`: the managed tmux, for the person beside the agent.

mod ports;

use super::screen::{Table, print_json};
use super::setup::{Setup, usage};
use super::{Global, PanesAt, notice, print};
use base::text::shell_quote;
use serde_json::json;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use tmux::{Found, FoundPane};
use toolcrib::backend::local;
use toolcrib::envelope::{Failure, Kind};
use toolcrib::tmux::Tmux;

#[derive(clap::Args)]
pub(super) struct Attach {
    /// A session of this workspace, or the full name of one of another workspace; default: this workspace's default session
    session: Option<String>,
}

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Panes {
    #[command(subcommand)]
    command: Option<OfPanes>,
    /// Show the sessions of all workspaces, not only of this one
    #[arg(long)]
    all: bool,
    /// End the sessions with no client attached, and everything that runs in them
    #[arg(long)]
    prune: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum OfPanes {
    /// End the shared pane, and what runs in it; the next command begins a new shell there
    Restart {
        /// A session of this workspace, or the full name of one of another workspace; default: this workspace's default session
        session: Option<String>,
    },
    /// List the ports at which servers in panes listen, or publish one
    Ports(ports::Ports),
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
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(usage("`attach` needs a terminal").hint("run it in a terminal of your own"));
    }
    let session = tmux.meant(arguments.session.as_deref()).await.map_err(|missing| {
        let list = line(global, "panes");
        let hint = format!("the first command makes it; `{list} --all` lists the sessions that exist");
        if missing.hint.is_none() { missing.hint(hint) } else { missing }
    })?;
    let command = tmux.attach_command(&session).await?;
    // Closes our connection to the backend: tmux opens its own.
    drop(setup);
    let error = local::become_program(&command);
    Err(Failure::new(Kind::Unavailable, format!("tmux could not be started: {error}")))
}

/// The line that runs a subcommand with the options by which this one found its target.
pub(super) fn line(global: &Global, subcommand: &str) -> String {
    let Global {
        config,
        policy: _,
        plugins: _,
        set,
        offer: _,
        tmux,
        no_tmux: _,
        container,
        engine,
        ssh,
        panes,
        yes: _,
        own_pane: _,
    } = global;
    let option = |name: &str, value: Option<&str>| value.map(|value| [format!("--{name}"), value.to_owned()]);
    let panes = panes.filter(|panes| *panes == PanesAt::Host).map(|_| "host");
    let pairs = [
        option("config", config.as_deref().and_then(std::path::Path::to_str)),
        option("container", container.as_deref()),
        option("engine", engine.map(toolcrib::backend::container::Engine::program)),
        option("ssh", ssh.as_deref()),
        option("panes", panes),
    ];
    let set = set.iter().filter_map(|setting| option("set", Some(setting)));
    let mut words: Vec<String> = pairs.into_iter().flatten().chain(set).flatten().collect();
    words.extend(tmux.as_ref().filter(|name| !name.is_empty()).map(|name| format!("--tmux={name}")));
    let words = words.iter().map(|word| shell_quote::readable(word));
    ["toolcrib".to_owned()].into_iter().chain(words).chain([subcommand.to_owned()]).collect::<Vec<_>>().join(" ")
}

pub(super) async fn panes(global: &Global, arguments: &Panes) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Some(OfPanes::Ports(arguments)) => ports::ports(global, arguments).await,
        Some(OfPanes::Restart { session }) => restart(global, session.as_deref()).await,
        None => list(global, arguments).await,
    }
}

async fn restart(global: &Global, session: Option<&str>) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let tmux = tmux(&setup).await?;
    let session = tmux.meant(session).await?.session;
    tmux.end_shared(&session).await?;
    print(&format!(
        "the shared pane of {session} has ended, with what ran in it; the next command begins a new shell\n"
    ))
}

async fn list(global: &Global, arguments: &Panes) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let tmux = tmux(&setup).await?;
    let mut table = Table::new(&["session", "people", "pane", "directory", "runs"]);
    let mut sessions = Vec::new();
    let (shown, others): (Vec<_>, Vec<_>) =
        tmux.found().await?.into_iter().partition(|found| found.here || arguments.all);
    for found in &shown {
        let is_ended = arguments.prune && found.people == 0;
        if is_ended {
            tmux.end_session(&found.session).await?;
        }
        rows(found, is_ended).iter().for_each(|row| table.row(row.iter().map(String::as_str)));
        let mut session = json!(found);
        session["ended"] = is_ended.into();
        sessions.push(session);
    }
    if !others.is_empty() {
        let count = others.len();
        let what = if count == 1 { "session belongs" } else { "sessions belong" };
        notice(&format!("{count} more {what} to other directories: `{} --all`", line(global, "panes")));
    }
    if arguments.json { print_json(&sessions.into()) } else { table.print() }
}

/// One row per pane; what is the same for the whole session is in the first.
fn rows(found: &Found, is_ended: bool) -> Vec<[String; 5]> {
    let name = match &found.renamed {
        Some(renamed) => format!("{} (now `{renamed}`)", found.session),
        None => found.session.clone(),
    };
    let row = |(number, pane): (usize, &FoundPane)| {
        let (name, people) = if number == 0 { (name.clone(), found.people.to_string()) } else { Default::default() };
        let runs = if is_ended { "ended".into() } else { runs(pane) };
        let called = pane.pane.clone().unwrap_or_else(|| "(a person's)".into());
        [name, people, called, pane.directory.clone(), runs]
    };
    found.panes.iter().enumerate().map(row).collect()
}

/// What runs in a pane, and whose it is.
fn runs(pane: &FoundPane) -> String {
    match &pane.command {
        Some(command) if pane.left_behind => format!("`{command}`, left by a host that is gone"),
        Some(command) => format!("`{command}`, for the agent"),
        None => pane.program.clone(),
    }
}
