//! `toolcrib policy explain`: what a call may do, and which line decides.

use super::screen::{BOLD, Page, Table};
use super::setup::Setup;
use super::{Global, completions, print_json};
use clap_complete::ArgValueCompleter;
use serde_json::json;
use std::process::ExitCode;
use toolcrib::envelope::Failure;
use toolcrib::policy::explain::Clause;

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
}

pub(super) async fn run(global: &Global, Arguments::Explain { tool, json }: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let plugin = setup.context.tools.plugin_of(tool)?;
    let clauses = setup.host.policy().explain(plugin, &setup.settings);
    if *json {
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
