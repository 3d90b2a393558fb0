//! `toolcrib plugin check`: what a host, a model and a reviewer would find wrong with a component.

use super::super::choice::Choice;
use super::super::report::{Report, Verdict};
use super::super::setup::Setup;
use super::super::{print, print_json};
use super::{names, open, place};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use toolcrib::capability::Capability;
use toolcrib::envelope::Failure;
use toolcrib::formats::{Format, Strictness};
use toolcrib::tools::definition::{Guidance, Tool};
use toolcrib::tools::manifest::Manifest;

#[derive(clap::Args)]
pub(in super::super) struct Check {
    /// The component
    file: PathBuf,
    /// Fail on notes as well, as a build server may want
    #[arg(long)]
    deny_notes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn check(setup: &Setup, arguments: &Check) -> Result<ExitCode, Failure> {
    let mut report = Report::default();
    look(setup, arguments, &mut report).await;
    let is_bad = report.is_bad() || (arguments.deny_notes && report.count(Verdict::Note) > 0);
    if arguments.json {
        print_json(&report.to_json())?;
    } else {
        report.page().print()?;
        let (bad, notes) = (report.count(Verdict::Bad), report.count(Verdict::Note));
        let next =
            if is_bad { String::new() } else { format!("; next: toolcrib plugin add {}", arguments.file.display()) };
        print(&format!("{bad} bad, {notes} to note{next}\n"))?;
    }
    Ok(ExitCode::from(u8::from(is_bad)))
}

async fn look(setup: &Setup, arguments: &Check, report: &mut Report) {
    let opened = open(setup, &arguments.file).and_then(|component| Ok((component, open(setup, &arguments.file)?)));
    let (component, again) = match opened {
        Ok(components) => components,
        Err(fault) => return report.fault("form", &fault),
    };
    let plugin = component.manifest().clone();
    let size = format!("{} KiB", plugin.size.div_ceil(1024));
    report.line(Verdict::Good, "form", format!("a component of {size}; asks for {}", asked(&plugin)));
    // Its own version of before may be there.
    let place = place(setup, &plugin);
    match setup.context.tools.conflict(&plugin, Some(&place.display().to_string())) {
        None => report.line(Verdict::Good, "names", plugin.tools.join(", ")),
        Some(reason) => report.line(Verdict::Bad, "names", format!("{reason}: rename the tool or the file")),
    }
    rights(&plugin, report);
    // What a lock keeps away is not run to find out what else is wrong with it.
    if let Err(barred) = setup.host.policy().check_locks(&plugin) {
        return report.fault("lock", &barred.failure);
    }
    let begin = Instant::now();
    let tools = match setup.host.tools_of_component(component, &setup.context).await {
        Ok(tools) => tools,
        Err(fault) => return report.fault("definitions", &fault),
    };
    report.line(
        Verdict::Good,
        "load",
        format!("{} ms; more where its code is not cached", begin.elapsed().as_millis()),
    );
    match setup.host.same_definitions_of(again, &setup.context).await {
        Ok(_) => report.line(Verdict::Good, "definitions", "the same at other times and with other random numbers"),
        Err(fault) => report.fault("definitions", &fault),
    }
    for tool in &tools {
        words(tool, &tools, setup, report);
        schemas(tool, report);
        examples(tool, report);
        formats(tool, setup, report);
    }
}

fn asked(plugin: &Manifest) -> String {
    let asked: Vec<Capability> =
        plugin.capabilities.iter().copied().filter(|capability| *capability != Capability::Events).collect();
    if asked.is_empty() { "nothing".into() } else { names(&asked) }
}

/// Imports that its code does not call: a reader of its rights would wonder.
fn rights(plugin: &Manifest, report: &mut Report) {
    for capability in &plugin.capabilities {
        if !plugin.functions.iter().any(|(called, _)| called == capability) {
            let name = capability.name();
            report.line(
                Verdict::Note,
                "rights",
                format!("imports `{name}` and calls nothing of it: remove it from its world"),
            );
        }
    }
}

/// What a model reads to choose the tool.
fn words(tool: &Tool, all: &[Arc<Tool>], setup: &Setup, report: &mut Report) {
    let (name, definition) = (tool.name(), tool.definition());
    let mut note = |text: String| report.line(Verdict::Note, "guidance", format!("`{name}`: {text}"));
    let summary = definition.summary.trim();
    if summary.is_empty() {
        note("it has no summary: say in one sentence what it does".into());
    } else if summary.trim_end_matches('.').contains(". ") || summary.contains('\n') {
        note("its summary is more than one sentence: move the rest to `usage`".into());
    }
    let Guidance { when_to_use, when_not_to_use, disambiguation, examples } = &definition.guidance;
    let parts = [
        (when_to_use, "when to use it"),
        (when_not_to_use, "when not to use it"),
        (disambiguation, "how it differs from its neighbours"),
    ];
    let missing = parts.into_iter().filter_map(|(text, what)| text.trim().is_empty().then_some(what));
    let missing = missing.collect::<Vec<_>>().join(", ");
    if !missing.is_empty() {
        note(format!("it does not say {missing}: models choose worse without it"));
    }
    let takes_arguments = definition.input_schema["properties"].as_object().is_none_or(|all| !all.is_empty());
    if examples.is_empty() && takes_arguments {
        note("it has no examples of its arguments".into());
    }
    let is_known =
        |other: &str| all.iter().any(|tool| tool.name() == other) || setup.context.tools.plugin_of(other).is_ok();
    for other in named_tools(disambiguation).filter(|other| !is_known(other)) {
        note(format!("its disambiguation names `{other}`, which is not a tool here"));
    }
}

/// Words in backticks that look like the names of tools.
fn named_tools(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.contains('_') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
}

fn schemas(tool: &Tool, report: &mut Report) {
    let definition = tool.definition();
    let mut faults = Vec::new();
    undescribed(&definition.input_schema, "", &mut faults);
    for fault in faults {
        report.line(Verdict::Note, "schema", format!("`{}`: {fault}", tool.name()));
    }
    if definition.output_schema.is_none() {
        report.line(Verdict::Note, "schema", format!("`{}`: it has no output schema", tool.name()));
    }
}

/// Arguments that a model has to guess, and objects that take any other.
fn undescribed(schema: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    if schema.get("additionalProperties").is_none() {
        let place = if at.is_empty() { "its input".into() } else { format!("`{at}`") };
        faults.push(format!("{place} does not say `additionalProperties`: set it to false"));
    }
    for (name, property) in properties {
        let place = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        if property.get("description").is_none() && property.get("$ref").is_none() {
            faults.push(format!("argument `{place}` has no description"));
        }
        undescribed(property, &place, faults);
        undescribed(&property["items"], &place, faults);
    }
}

fn examples(tool: &Tool, report: &mut Report) {
    for example in &tool.definition().guidance.examples {
        let fault = match serde_json::from_str(example) {
            Err(error) => Some(format!("is not JSON: {error}")),
            Ok(arguments) => tool.validate(arguments).err().map(|failure| failure.message),
        };
        if let Some(fault) = fault {
            report.line(Verdict::Bad, "examples", format!("`{}`: the example {example}: {fault}", tool.name()));
        }
    }
}

/// What the model APIs would not say as the tool does.
fn formats(tool: &Tool, setup: &Setup, report: &mut Report) {
    for format in Format::ALL {
        let offers = vec![setup.host.offer(tool, &setup.context)];
        match format.definitions(offers, Strictness::Auto) {
            Ok(definitions) => definitions
                .report
                .iter()
                .for_each(|line| report.line(Verdict::Note, "formats", format!("{}: {line}", Choice::name(format)))),
            Err(fault) => report.fault("formats", &fault),
        }
    }
}
