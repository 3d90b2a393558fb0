//! `toolcrib policy explain`: what a call may do, and which line decides.

use super::setup::Setup;
use super::{Global, print, print_json};
use crate::envelope::Failure;
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

#[derive(clap::Subcommand)]
pub(super) enum Arguments {
    /// Say what a call of a tool may do, and which line decides
    Explain {
        /// Name of the tool
        tool: String,
    },
}

pub(super) async fn run(global: &Global, Arguments::Explain { tool }: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global).await?;
    let plugin = setup.context.tools.plugin_of(tool)?;
    let clauses = setup.host.policy().explain(plugin, &setup.settings);
    if !io::stdout().is_terminal() {
        let clauses: Vec<Value> = clauses.iter().map(crate::policy::explain::Clause::to_json).collect();
        return print_json(&json!({ "tool": tool, "plugin": plugin.label(), "clauses": clauses }));
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(["capability", "verdict", "what", "decided by"]);
    for clause in clauses {
        table.add_row([clause.subject, clause.verdict, &clause.detail, &clause.decided_by]);
    }
    print(&format!("{tool}, of plugin {}\n{table}\n", plugin.label()))
}
