//! `toolcrib panes ports`: the servers in the panes of this workspace, and how the person's own browser reaches them.

use super::super::call::cancel_on_signal;
use super::super::screen::{Table, print_json};
use super::super::setup::Setup;
use super::super::{Global, notice};
use super::{line, tmux};
use backend::cell::PaneCell;
use egress::publish_port;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use toolcrib::envelope::{Failure, Kind};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in super::super) struct Ports {
    #[command(subcommand)]
    command: Option<OfPorts>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum OfPorts {
    /// Open a port of a pane's server on this machine, at `http://127.0.0.1:PORT`, until Ctrl-C or the end of the pane
    Publish {
        /// The port at which the server listens
        #[arg(value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
        /// The port of this machine; default: the same
        #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
        at: Option<u16>,
    },
}

/// A cell with panes of this workspace, and the ports at which their commands listen.
struct Found {
    cell: PaneCell,
    panes: BTreeSet<String>,
    ports: BTreeSet<u16>,
}

pub(super) async fn ports(global: &Global, arguments: &Ports) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let cells = cells(&setup).await?;
    match arguments.command {
        Some(OfPorts::Publish { port, at }) => publish(global, &setup, cells, port, at.unwrap_or(port)).await,
        None => list(global, &setup, &cells, arguments.json),
    }
}

fn list(global: &Global, setup: &Setup, cells: &[Found], as_json: bool) -> Result<ExitCode, Failure> {
    let published = &setup.settings.config.confine.publish;
    let mut table = Table::new(&["port", "panes", "on this machine"]);
    let mut rows = Vec::<Value>::new();
    for found in cells {
        let panes: Vec<&str> = found.panes.iter().map(String::as_str).collect();
        for port in &found.ports {
            let url = published.contains(port).then(|| format!("http://127.0.0.1:{port}"));
            let number = port.to_string();
            let shown = url.clone().unwrap_or_else(|| format!("`{} {port}`", line(global, "panes ports publish")));
            table.row([number.as_str(), &panes.join(", "), &shown]);
            rows.push(json!({ "port": port, "panes": panes, "url": url }));
        }
    }
    if as_json { print_json(&rows.into()) } else { table.print() }
}

/// The cells that panes of this workspace are in.
async fn cells(setup: &Setup) -> Result<Vec<Found>, Failure> {
    let backend = &setup.context.backend;
    let tmux = tmux(setup).await?;
    let Some(profile) = setup.host.policy().cell(&**backend).await? else { return Ok(Vec::new()) };
    let mut all = BTreeMap::<u64, Found>::new();
    for session in tmux.found().await?.into_iter().filter(|session| session.here) {
        for pane in session.panes {
            // A pane that has ended since is skipped.
            let Some(cell) = backend.pane_cell(&profile, &pane.process) else { continue };
            let (Ok(number), Ok(ports)) = (cell.number(), cell.listening()) else { continue };
            let found = all.entry(number).or_insert_with(|| Found { cell, panes: BTreeSet::new(), ports });
            found.panes.extend(pane.pane);
        }
    }
    Ok(all.into_values().collect())
}

async fn publish(global: &Global, setup: &Setup, cells: Vec<Found>, port: u16, at: u16) -> Result<ExitCode, Failure> {
    let listening: Vec<String> = cells.iter().flat_map(|found| &found.ports).map(u16::to_string).collect();
    let found = cells.into_iter().find(|found| found.ports.contains(&port));
    let found = found.ok_or_else(|| {
        let refusal =
            Failure::new(Kind::Unavailable, format!("nothing listens on port {port} in a pane of this workspace"));
        match listening.is_empty() {
            true => refusal.hint("start the server in a pane first"),
            false => refusal.hint(format!("servers in panes listen on {}", listening.join(", "))),
        }
    })?;
    cancel_on_signal(setup.context.cancel.clone())?;
    let begun = move |address| notice(&format!("http://{address} leads to port {port} of the cell; Ctrl-C ends it"));
    let cannot = |error: std::io::Error| {
        let hint = format!("`{} {port} --at OTHER` uses another port", line(global, "panes ports publish"));
        Failure::new(Kind::Unavailable, format!("port {at} of this machine cannot be used: {error}")).hint(hint)
    };
    tokio::select! {
        ended = publish_port(found.cell, port, at, begun) => ended.map_err(cannot)?,
        () = setup.context.cancel.cancelled() => return Ok(ExitCode::SUCCESS),
    }
    notice("the pane of the cell has ended");
    Ok(ExitCode::SUCCESS)
}
