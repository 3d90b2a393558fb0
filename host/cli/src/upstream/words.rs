//! What a server says, for a person to read before models do: all of it, as a model may obey any of it. What nobody but the server has written
//! stands behind a bar, and shows hidden characters by their code points.

use super::super::screen::{BOLD, Page};
use base::text::names::is_name;
use base::text::sanitize;
use serde_json::{Map, Value, json};
use toolcrib::config::UpstreamSection;
use toolcrib::tools::definition::{composition, signature};
use toolcrib::upstream::{Accepted, AcceptedKind, AcceptedTool, Look};

/// How far further rows of a server's text begin: behind the bar.
const BEHIND_BAR: usize = 6;

/// What a server says of itself as a whole.
pub(super) fn introduction(page: &mut Page, name: &str, accepted: &Accepted) {
    let said = |key: &str| accepted.server.get(key).and_then(Value::as_str).map(sanitize::visible_line);
    let called = match (said("name"), said("version")) {
        (None, _) => "does not name itself".to_owned(),
        (Some(called), None) => format!("calls itself `{called}`"),
        (Some(called), Some(version)) => format!("calls itself `{called}`, version `{version}`"),
    };
    page.add(&format!("`{name}` {called}. It speaks version {} of the protocol.", accepted.protocol)).end(0);
    if let Some(instructions) = &accepted.instructions {
        page.add("It has instructions for models:").end(0);
        foreign(page, instructions);
    }
}

/// A tool with all that its server says of it.
pub(super) fn tool(page: &mut Page, offered_as: &str, tool: &AcceptedTool, section: &UpstreamSection) {
    page.end(0).add_in(BOLD, offered_as).add(&format!(" {}", arguments(tool))).end(2);
    if !offered_as.ends_with(&format!("__{}", tool.name)) || tool.kind != AcceptedKind::Tool {
        page.add(&format!("  its own name: `{}`", sanitize::visible_line(&tool.name))).end(4);
    }
    foreign(page, text(tool, "description").unwrap_or_default());
    other_texts(&tool.definition).iter().for_each(|row| foreign(page, row));
    match tool.kind {
        AcceptedKind::Tool if tool.is_said_to_read() => page.add("  says that it only reads").end(4),
        AcceptedKind::Tool => page,
        AcceptedKind::Prompt => page.add("  a prompt: people ask for it, models are not offered it").end(4),
        AcceptedKind::Resources => page.add("  reads resources of the server").end(4),
    };
    if let Some(composed) = composed(tool) {
        let told =
            format!("  its arguments are listed without {composed} at the top; calls are held to the whole schema");
        page.add(&told).end(4);
    }
    if !section.offers(&tool.name) {
        page.add("  not offered: `tools` of its section does not name it").end(4);
    }
}

/// What cannot be offered, what was left out, and what it tried meanwhile.
pub(super) fn beside(page: &mut Page, look: &Look) {
    let unfit = look.unfit.iter().map(|(tool, why)| format!("`{tool}`: {why}"));
    rows(page, "These tools cannot be offered:", unfit);
    rows(page, "About its list:", look.notices.iter().cloned());
    rows(page, "While it was looked at, it was refused:", look.refused.iter().cloned());
}

/// The options that would have nobody asked about the tools that say that they only read.
pub(super) fn proposed_reads(accepted: &Accepted, section: &UpstreamSection) -> Vec<String> {
    let said = accepted.tools.values().filter(|tool| tool.is_said_to_read() && !section.only_reads(&tool.name));
    // Other names could be patterns, or more than one word in a shell. Prompts and resources have a colon in theirs.
    let is_plain = |name: &&String| name.split(':').all(is_name);
    said.map(|tool| &tool.name).filter(is_plain).map(|name| format!("--reads={name}")).collect()
}

/// A tool, for programs.
pub(super) fn tool_json(offered_as: &str, tool: &AcceptedTool, section: &UpstreamSection) -> Value {
    json!({
        "name": offered_as,
        "own_name": tool.name,
        "kind": tool.kind,
        "description": text(tool, "description"),
        "arguments": arguments(tool),
        "folded": tool.input_schema().map(|schema| composition(&schema)).unwrap_or_default(),
        "says_that_it_only_reads": tool.is_said_to_read(),
        "offered": section.offers(&tool.name),
        "definition": tool.definition,
    })
}

/// What is beside the tools, for programs.
pub(super) fn beside_json(look: &Look) -> Value {
    let unfit = look.unfit.iter().map(|(tool, why)| json!({ "tool": tool, "why": why }));
    json!({ "unfit": unfit.collect::<Vec<_>>(), "left_out": look.notices, "refused": look.refused })
}

fn text<'t>(tool: &'t AcceptedTool, key: &str) -> Option<&'t str> {
    tool.definition.get(key).and_then(Value::as_str)
}

/// What of its arguments clients cannot be told as it is.
fn composed(tool: &AcceptedTool) -> Option<String> {
    let schema = tool.input_schema().ok()?;
    let keywords: Vec<String> = composition(&schema).iter().map(|keyword| format!("`{keyword}`")).collect();
    (!keywords.is_empty()).then(|| keywords.join(", "))
}

fn arguments(tool: &AcceptedTool) -> String {
    sanitize::visible_line(&signature(&tool.input_schema().unwrap_or_default()))
}

/// A heading and rows below it, where there are any.
pub(super) fn rows(page: &mut Page, heading: &str, rows: impl Iterator<Item = String>) {
    for (number, row) in rows.enumerate() {
        if number == 0 {
            page.end(0).add(heading).end(0);
        }
        page.add(&format!("  {}", sanitize::visible_line(&row))).end(4);
    }
}

fn foreign(page: &mut Page, text: &str) {
    for line in sanitize::visible(text).lines() {
        page.add(&format!("    │ {line}")).end(BEHIND_BAR);
    }
}

/// What else a definition says, a row for each value with its path.
fn other_texts(definition: &Map<String, Value>) -> Vec<String> {
    let mut rows = Vec::new();
    for (key, value) in definition {
        gather(&mut vec![key], value, &mut rows);
    }
    rows
}

fn gather<'d>(path: &mut Vec<&'d str>, value: &'d Value, rows: &mut Vec<String>) {
    let is_flat = |items: &[Value]| items.iter().all(|item| !item.is_object() && !item.is_array());
    match (path.as_slice(), value) {
        // These are shown already.
        (["name" | "description"] | ["inputSchema", "properties", _, "type"], Value::String(_)) => {}
        (["inputSchema", "type"], Value::String(kind)) if kind == "object" => {}
        (["inputSchema", "properties"] | ["inputSchema", "properties", _], Value::Object(fields))
            if fields.is_empty() => {}
        (_, Value::Object(fields)) if !fields.is_empty() => {
            for (key, value) in fields {
                path.push(key);
                gather(path, value, rows);
                path.pop();
            }
        }
        (_, Value::Array(items)) if !is_flat(items) => items.iter().for_each(|item| gather(path, item, rows)),
        (path, value) => rows.push(format!("{}: {value}", path.join("/"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_definition_says_is_left_out() {
        let definition = json!({
            "name": "add",
            "description": "Adds.",
            "inputSchema": {
                "type": "object",
                "properties": { "a": { "type": "integer" }, "b": { "type": "integer", "description": "hidden 1" } },
                "required": ["a", "hidden 2"],
                "$defs": { "hidden 3": {}, "c": { "anyOf": [{ "title": "hidden 4" }, true] } },
            },
            "annotations": { "readOnlyHint": true },
        });
        assert_eq!(
            other_texts(definition.as_object().unwrap()),
            [
                r#"inputSchema/properties/b/description: "hidden 1""#,
                r#"inputSchema/required: ["a","hidden 2"]"#,
                "inputSchema/$defs/hidden 3: {}",
                r#"inputSchema/$defs/c/anyOf/title: "hidden 4""#,
                "inputSchema/$defs/c/anyOf: true",
                "annotations/readOnlyHint: true",
            ]
        );
    }
}
