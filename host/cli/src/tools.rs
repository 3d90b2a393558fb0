//! `toolcrib tools`: what there is, as a table, as JSON or as a model API takes it; one tool with all it says.

use super::screen::{BOLD, Page, Table};
use super::setup::{Setup, constant, usage};
use super::{Global, choice, completions, notice, print_json};
use base::text::sanitize;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap_complete::ArgValueCompleter;
use comfy_table::Color;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use toolcrib::Host;
use toolcrib::call::CallContext;
use toolcrib::envelope::Failure;
use toolcrib::formats::{self, Strictness};
use toolcrib::tools::AllTools;
use toolcrib::tools::definition::{Tool, signature};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Show only this tool, with everything that it says about itself
    #[arg(add = ArgValueCompleter::new(completions::tools))]
    name: Option<String>,
    /// Output format; for a model API only the tools that can be called, and stderr says what was omitted
    #[arg(long, default_value = "table", value_parser = format())]
    format: Format,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Force the model to follow the schemas, if its API can
    #[arg(long, value_parser = choice::one_of::<Strictness>(), value_name = "WHEN")]
    strict: Option<Strictness>,
    /// Show the tools of this toolset, as a session on it has them
    #[arg(long, value_name = "NAME")]
    toolset: Option<String>,
    /// A constant that the toolset wants of its session; the value is JSON, or text (repeatable)
    #[arg(long, value_name = "NAME=VALUE", requires = "toolset", value_parser = constant)]
    bind: Vec<(String, Value)>,
    /// Show the tools that are not offered as well, and why they are not
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Say whether a tool is offered, and if it is not, why
    #[arg(long, value_name = "TOOL", conflicts_with_all = ["name", "format", "json", "strict", "all"])]
    why: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Table,
    Json,
    Api(formats::Format),
}

fn format() -> impl TypedValueParser<Value = Format> {
    let table = PossibleValue::new("table").help("For people");
    let json = PossibleValue::new("json").help("All that is known about every tool");
    PossibleValuesParser::new([table, json].into_iter().chain(choice::values::<formats::Format>())).map(|name| {
        match name.as_str() {
            "table" => Format::Table,
            "json" => Format::Json,
            name => Format::Api(choice::named(name).expect("only possible values come here")),
        }
    })
}

pub(super) async fn run(global: &Global, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let format = if arguments.json { Format::Json } else { arguments.format };
    if arguments.strict.is_some() && !matches!(format, Format::Api(_)) {
        return Err(usage("`--strict` is for the format of a model API").hint("add `--format openai-chat` or another"));
    }
    if arguments.all && matches!(format, Format::Api(_)) {
        return Err(usage("a model is given the tools that are offered to it")
            .hint("leave `--all` out; `--offer`, `offer` under [tools] or a toolset says what else is offered"));
    }
    let mut setup = Setup::new(global).await?;
    setup.open(arguments.toolset.as_deref(), &arguments.bind)?;
    if let Some(name) = &arguments.why {
        return why(&setup, name).await;
    }
    let from = From { host: &setup.host, context: &setup.context };
    if arguments.all {
        return every_one(format, &from).await;
    }
    let tools = match &arguments.name {
        Some(name) => vec![one(&setup, name).await?],
        None => {
            let offered = setup.host.offered(&setup.context).await;
            offered.notices.iter().for_each(|text| notice(text));
            offered.tools
        }
    };
    match (format, &arguments.name) {
        (Format::Table, Some(_)) => page(&tools[0], &from).print(),
        (Format::Table, None) => table(&tools, &from).print(),
        (Format::Json, Some(_)) => print_json(&describe(&tools[0], &from)),
        (Format::Json, None) => print_json(&tools.iter().map(|tool| describe(tool, &from)).collect()),
        (Format::Api(api), Some(_)) => match from.denial(&tools[0]) {
            Some(denial) => Err(denial),
            None => define(api, arguments, &tools, &from),
        },
        (Format::Api(api), None) => define(api, arguments, &tools, &from),
    }
}

/// Whom the tools are offered to, and by whom.
struct From<'s> {
    host: &'s Host,
    context: &'s CallContext,
}

impl From<'_> {
    fn denial(&self, tool: &Tool) -> Option<Failure> {
        self.host.denial(tool, self.context)
    }
}

/// Says whether a tool is offered, and if it is not, why: the first reason of those for which it could be missing.
async fn why(setup: &Setup, name: &str) -> Result<ExitCode, Failure> {
    let context = &setup.context;
    let reason = match context.tools.plugin_of(name) {
        Err(failure) => Some(failure),
        Ok(plugin) => match setup.host.ready(plugin, context).await {
            Err(failure) => Some(failure),
            Ok(ready) => {
                let tool = ready.tool(name).expect("a ready plugin has the tools that it showed");
                setup.host.missing(tool, context).await
            }
        },
    };
    let mut page = Page::default();
    match reason {
        None => page.add(&format!("`{name}` is offered")).end(0),
        Some(failure) => {
            page.add(&format!("`{name}` is not offered: {}", failure.message)).end(0);
            failure.hint.iter().for_each(|hint| _ = page.add(hint).end(0));
            &mut page
        }
    };
    page.print()
}

async fn one(setup: &Setup, name: &str) -> Result<Arc<Tool>, Failure> {
    let ready = setup.host.ready(setup.context.tools.plugin_of(name)?, &setup.context).await?;
    let tool = ready.tool(name).expect("a ready plugin has the tools that it showed");
    setup.host.as_offered(tool, &setup.context)
}

/// Prints the definitions of the tools that can be called; what they omit goes to stderr.
fn define(
    api: formats::Format,
    arguments: &Arguments,
    tools: &[Arc<Tool>],
    from: &From<'_>,
) -> Result<ExitCode, Failure> {
    let mut offers = Vec::new();
    for tool in tools {
        match from.denial(tool) {
            None => offers.push(from.host.offer(tool, from.context)),
            Some(denial) => {
                let hint = denial.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                notice(&format!("`{}` is omitted: {}{hint}", tool.definition().name, denial.message));
            }
        }
    }
    let definitions = api.definitions(offers, arguments.strict.unwrap_or_default())?;
    definitions.report.iter().for_each(|line| notice(line));
    definitions.json.map_or(Ok(ExitCode::SUCCESS), |list| print_json(&list))
}

/// Shows the tools of all plugins, each with why it is not offered.
async fn every_one(format: Format, from: &From<'_>) -> Result<ExitCode, Failure> {
    let AllTools { tools, notices } = from.host.all_tools(from.context).await;
    notices.iter().for_each(|text| notice(text));
    if format == Format::Json {
        let described = tools.iter().map(|(tool, missing)| {
            let mut described = describe(tool, from);
            described["offered"] = missing.is_none().into();
            described["missing"] = missing.as_ref().map(Failure::to_json).into();
            described
        });
        return print_json(&described.collect());
    }
    let mut table = Table::new(&["tool", "what it does", "offered"]);
    for (tool, missing) in &tools {
        let cells = |offered| [tool.name(), &tool.definition().summary, offered];
        match missing {
            None => table.row_in(Color::Green, cells("yes")),
            Some(failure) => table.row_in(Color::Yellow, cells(&format!("no: {}", failure.message))),
        }
    }
    table.print()
}

fn describe(tool: &Tool, from: &From<'_>) -> Value {
    let (definition, plugin) = (tool.definition(), tool.plugin());
    let denial = from.denial(tool);
    json!({
        "name": definition.name,
        "title": definition.title,
        "description": tool.description(),
        "inputSchema": definition.input_schema,
        "outputSchema": definition.output_schema,
        "plugin": { "name": plugin.name(), "builtin": plugin.id.is_builtin(), "sha256": plugin.sha256(), "capabilities": plugin.capabilities },
        "available": denial.is_none(),
        "denial": denial.map(|denial| denial.to_json()),
    })
}

fn table(tools: &[Arc<Tool>], from: &From<'_>) -> Table {
    let mut table = Table::new(&["tool", "what it does", "needs", "plugin", "state"]);
    for tool in tools {
        let plugin = tool.plugin();
        let needs = super::plugin::names(&plugin.capabilities);
        let origin = if plugin.id.is_builtin() { "built in" } else { plugin.id.origin() };
        let cells = |state| [&tool.definition().name, &tool.definition().summary, &needs, origin, state];
        match from.denial(tool) {
            None => table.row_in(Color::Green, cells("ready")),
            Some(denial) => table.row_in(Color::Yellow, cells(&denial.hint.unwrap_or(denial.message))),
        }
    }
    table
}

fn page(tool: &Tool, from: &From<'_>) -> Page {
    let mut page = Page::default();
    page.add_in(BOLD, &tool.definition().name).add(&format!(", of plugin {}", tool.plugin().id.label())).end(0).end(0);
    page.lines(tool.description()).end(0);
    let schema = &tool.definition().input_schema;
    page.add_in(BOLD, "Arguments").add(&format!(" {}", signature(schema))).end(2);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let description = property["description"].as_str().unwrap_or("(not described)");
        page.add(&format!("  {name}: {}", sanitize::line(description))).end(4);
    }
    if let Some(denial) = from.denial(tool) {
        page.end(0).add_in(BOLD, "Not available").add(&format!(": {}", denial.message)).end(0);
        denial.hint.iter().for_each(|hint| _ = page.add(hint).end(0));
    }
    page
}
