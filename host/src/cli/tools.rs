//! `toolcrib tools`: what there is, as a table, as JSON or as a model API takes it; one tool with all it says.

use super::setup::{Setup, usage};
use super::{Global, notice, print, print_json};
use crate::call::Host;
use crate::definition::{Tool, signature};
use crate::envelope::Failure;
use crate::formats::{self, Strictness};
use anstyle::Style;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Show this tool alone, with all that it says of itself
    name: Option<String>,
    /// How to print; a model API gets the tools that can be called, and stderr what it is not told
    #[arg(long, default_value = "table", value_parser = format())]
    format: Format,
    /// Force the model to keep to the schemas, where its API can
    #[arg(long, value_enum, value_name = "WHEN")]
    strict: Option<Strictness>,
}

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Table,
    Json,
    Api(formats::Format),
}

fn format() -> impl TypedValueParser<Value = Format> {
    let table = PossibleValue::new("table").help("For people");
    let json = PossibleValue::new("json").help("All that is known, of every tool");
    let apis = formats::Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new([table, json].into_iter().chain(apis)).map(|name| match name.as_str() {
        "table" => Format::Table,
        "json" => Format::Json,
        name => Format::Api(formats::Format::from_str(name, false).expect("only possible values come here")),
    })
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let format = arguments.format;
    if arguments.strict.is_some() && !matches!(format, Format::Api(_)) {
        return Err(usage("`--strict` is for the format of a model API").hint("add `--format openai-chat` or another"));
    }
    let setup = Setup::new(global).await?;
    let host = &*setup.host;
    let tools = match &arguments.name {
        Some(name) => vec![one(&setup, name).await?],
        None => all(&setup).await,
    };
    match (format, &arguments.name) {
        (Format::Table, Some(_)) => print(&page(&tools[0], host)),
        (Format::Table, None) => print(&format!("{}\n", table(&tools, host))),
        (Format::Json, Some(_)) => print_json(&describe(&tools[0], host)),
        (Format::Json, None) => print_json(&tools.iter().map(|tool| describe(tool, host)).collect()),
        (Format::Api(api), Some(_)) => match host.denial(&tools[0]) {
            Some(denial) => Err(denial),
            None => define(api, arguments, &tools, host),
        },
        (Format::Api(api), None) => define(api, arguments, &tools, host),
    }
}

async fn one(setup: &Setup, name: &str) -> Result<Arc<Tool>, Failure> {
    let ready = setup.host.ready(setup.context.tools.plugin_of(name)?, &setup.context).await?;
    Ok(ready.tool(name).expect("a ready plugin has the tools that it showed").clone())
}

/// Prints the definitions of the tools that can be called; what they leave away goes to stderr.
fn define(api: formats::Format, arguments: &Arguments, tools: &[Arc<Tool>], host: &Host) -> Result<ExitCode, Failure> {
    let mut offers = Vec::new();
    for tool in tools {
        match host.denial(tool) {
            None => offers.push(host.offer(tool)),
            Some(denial) => {
                let hint = denial.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                notice(&format!("`{}` is left away: {}{hint}", tool.definition().name, denial.message));
            }
        }
    }
    let definitions = api.definitions(offers, arguments.strict.unwrap_or_default())?;
    definitions.report.iter().for_each(|line| notice(line));
    print_json(&definitions.json)
}

/// Loads every plugin; those that cannot be loaded are told on stderr and left away.
async fn all(setup: &Setup) -> Vec<Arc<Tool>> {
    let offered = setup.host.offered(&setup.context).await;
    offered.notices.iter().for_each(|text| notice(text));
    offered.tools
}

fn describe(tool: &Tool, host: &Host) -> Value {
    let (definition, plugin) = (tool.definition(), tool.plugin());
    let denial = host.denial(tool);
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

fn table(tools: &[Arc<Tool>], host: &Host) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["tool", "what it does", "needs", "plugin", "state"]);
    for tool in tools {
        let plugin = tool.plugin();
        let state = match host.denial(tool) {
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

fn page(tool: &Tool, host: &Host) -> String {
    let bold = Style::new().bold();
    let plugin = tool.plugin();
    let mut page =
        format!("{bold}{}{bold:#}, of plugin {}\n\n{}\n\n", tool.definition().name, plugin.label(), tool.description());
    page += &format!("{bold}Arguments{bold:#} {}\n", signature(&tool.definition().input_schema));
    page += &arguments(&tool.definition().input_schema);
    if let Some(denial) = host.denial(tool) {
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
