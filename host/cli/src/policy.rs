//! `toolcrib policy`: what a call may do and which line decides, and whether the locks hold for what is installed.

use super::screen::{BOLD, Page, Table};
use super::setup::Setup;
use super::{Global, completions, print_json};
use clap_complete::ArgValueCompleter;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use toolcrib::config::Lock;
use toolcrib::envelope::Failure;
use toolcrib::policy::explain::Clause;
use toolcrib::tools::manifest::Manifest;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Say what a call of a tool may do, and which line decides
    Explain {
        /// Name of the tool
        #[arg(add = ArgValueCompleter::new(completions::tools))]
        tool: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say how far this machine is locked, and which plugins that refuses; exits with 1 where it refuses one
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    match arguments {
        Arguments::Explain { tool, json } => explain(&setup, tool, *json),
        Arguments::Check { json } => check(&setup, *json).await,
    }
}

async fn check(setup: &Setup, as_json: bool) -> Result<ExitCode, Failure> {
    let (policy, tools) = (setup.host.policy(), &setup.context.tools);
    let level = policy.level();
    let mut refused: Vec<(&Arc<Manifest>, Failure)> = Vec::new();
    // Those that came with the program are named by the lock itself.
    for plugin in tools.plugins().chain(tools.barred()).filter(|plugin| !plugin.id.is_builtin()) {
        let failure = setup.host.ready(plugin, &setup.context).await.err();
        // What is switched off, or broken, is no lock's doing.
        refused.extend(failure.filter(|failure| code(failure).is_some()).map(|failure| (plugin, failure)));
    }
    let is_there = |name: &&str| tools.plugins().chain(tools.barred()).any(|plugin| plugin.name() == *name);
    let missing: BTreeSet<&str> = policy.locks().iter().flat_map(Lock::vetted).filter(|name| !is_there(name)).collect();
    let exit = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if as_json {
        let locks = policy.locks().iter().map(Lock::described);
        let row = |(plugin, failure): &(&Arc<Manifest>, Failure)| json!({ "name": plugin.name(), "origin": plugin.id.origin(), "sha256": plugin.sha256(), "code": code(failure), "reason": failure.message });
        print_json(&json!({
            "level": level.number(),
            "why": level.words(),
            "locks": locks.map(|(place, what)| json!({ "place": place, "what": what })).collect::<Vec<_>>(),
            "refused": refused.iter().map(row).collect::<Vec<_>>(),
            "missing": missing,
        }))?;
        return Ok(exit);
    }
    let mut page = Page::default();
    page.add_in(BOLD, &format!("level {}", level.number())).add(&format!(": {}", level.words())).end(2);
    for (place, what) in policy.locks().iter().map(Lock::described) {
        page.add(&format!("{place}: {what}")).end(2);
    }
    for (plugin, failure) in &refused {
        let code = code(failure).unwrap_or_default();
        page.add(&format!("{}: {code}: {}", plugin.id.origin(), failure.message)).end(2);
    }
    for name in missing {
        page.add(&format!("{name}: vetted, and in no directory of plugins")).end(2);
    }
    page.print()?;
    Ok(exit)
}

/// The code of a lock's refusal.
fn code(failure: &Failure) -> Option<&str> {
    failure.data.as_ref()?.get("code")?.as_str()
}

fn explain(setup: &Setup, tool: &str, json: bool) -> Result<ExitCode, Failure> {
    let plugin = setup.context.tools.plugin_of(tool)?;
    let clauses = setup.host.policy().explain(plugin, &setup.settings);
    if json {
        let clauses = clauses.iter().map(Clause::to_json).collect::<Vec<_>>();
        return print_json(&json!({ "tool": tool, "plugin": plugin.id.label(), "clauses": clauses }));
    }
    let mut page = Page::default();
    page.add_in(BOLD, tool).add(&format!(", of plugin {}", plugin.id.label())).end(0);
    page.print()?;
    table(&clauses).print()
}

/// One row a clause.
pub(super) fn table(clauses: &[Clause]) -> Table {
    let mut table = Table::new(&["capability", "verdict", "what", "decided by"]);
    for clause in clauses {
        table.row([clause.subject, clause.verdict, &clause.detail, &clause.decided_by]);
    }
    table
}
