//! `toolcrib tools`: what there is, as a table or as JSON; one tool with its whole description.

use super::setup::Setup;
use super::{Global, notice, print, print_json};
use crate::definition::{Tool, signature};
use crate::envelope::Failure;
use crate::policy::Policy;
use anstyle::Style;
use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Show this tool alone, with all that it says of itself
    name: Option<String>,
    /// How to print; `table` when left away
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let setup = Setup::new(global)?;
    let format = arguments.format.unwrap_or(Format::Table);
    if let Some(name) = &arguments.name {
        let ready = setup.host.ready(setup.context.tools.plugin_of(name)?, &setup.context).await?;
        let tool = ready.tool(name).expect("a ready plugin has the tools that it showed");
        return if format == Format::Json {
            print_json(&describe(tool, setup.host.policy()))
        } else {
            print(&page(tool, setup.host.policy()))
        };
    }
    let tools = all(&setup).await;
    if format == Format::Json {
        return print_json(&tools.iter().map(|tool| describe(tool, setup.host.policy())).collect());
    }
    print(&format!("{}\n", table(&tools, setup.host.policy())))
}

/// Loads every plugin; those that cannot be loaded are told on stderr and left away.
async fn all(setup: &Setup) -> Vec<Arc<Tool>> {
    let mut tools = Vec::new();
    for refused in setup.context.tools.refused() {
        notice(&format!("plugin `{}` was refused: {}", refused.origin, refused.reason));
    }
    for plugin in setup.context.tools.plugins() {
        match setup.host.ready(plugin, &setup.context).await {
            Ok(ready) => tools.extend(ready.tools().iter().cloned()),
            Err(failure) => notice(&failure.message),
        }
    }
    tools
}

/// The first reason why a call of the tool would be denied.
fn denial(tool: &Tool, policy: &Policy) -> Option<Failure> {
    let grants = policy.grants_for(tool.plugin());
    tool.plugin().capabilities().into_iter().find_map(|capability| match capability {
        "shell" => grants.shell().err(),
        "files" => grants.files().err(),
        _ => None,
    })
}

fn describe(tool: &Tool, policy: &Policy) -> Value {
    let (definition, plugin) = (tool.definition(), tool.plugin());
    let denial = denial(tool, policy);
    json!({
        "name": definition.name,
        "title": definition.title,
        "description": tool.description(),
        "inputSchema": definition.input_schema,
        "outputSchema": definition.output_schema,
        "plugin": { "name": plugin.name(), "builtin": plugin.is_builtin(), "sha256": plugin.sha256(), "capabilities": plugin.capabilities() },
        "available": denial.is_none(),
        "denial": denial.map(|denial| denial.to_json()),
    })
}

fn table(tools: &[Arc<Tool>], policy: &Policy) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["tool", "what it does", "needs", "plugin", "state"]);
    for tool in tools {
        let plugin = tool.plugin();
        let state = match denial(tool, policy) {
            None => Cell::new("ready").fg(Color::Green),
            Some(denial) => Cell::new(denial.hint.unwrap_or(denial.message)).fg(Color::Yellow),
        };
        let needs = plugin.capabilities().join(", ");
        let origin = if plugin.is_builtin() { "built in" } else { plugin.origin() };
        let cells = [&tool.definition().name, &tool.definition().summary, &needs, origin].map(Cell::new);
        table.add_row(cells.into_iter().chain([state]));
    }
    if !io::stdout().is_terminal() {
        table.force_no_tty();
    }
    table
}

fn page(tool: &Tool, policy: &Policy) -> String {
    let bold = Style::new().bold();
    let plugin = tool.plugin();
    let mut page =
        format!("{bold}{}{bold:#}, of plugin {}\n\n{}\n\n", tool.definition().name, plugin.label(), tool.description());
    page += &format!("{bold}Arguments{bold:#} {}\n", signature(&tool.definition().input_schema));
    page += &arguments(&tool.definition().input_schema);
    if let Some(denial) = denial(tool, policy) {
        page += &format!("\n{bold}Not available{bold:#}: {}\n", denial.message);
        page += &denial.hint.map(|hint| format!("{hint}\n")).unwrap_or_default();
    }
    page
}

fn arguments(schema: &Value) -> String {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let line = |(name, property): (&String, &Value)| {
        format!("  {name}: {}\n", property["description"].as_str().unwrap_or("(not described)"))
    };
    properties.map(line).collect()
}
