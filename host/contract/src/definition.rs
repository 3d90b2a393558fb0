//! What a plugin says of a tool, checked before anyone relies on it, and the tool that comes of it.
//!
//! Texts are sanitised and bounded here, once; schemas in `schema.rs`.

use crate::folded::{choices, folded};
use crate::manifest::Manifest;
use crate::mended;
use crate::request::check_depth;
use crate::schema::Admitted;
use base::envelope::Failure;
use base::event_kind::is_kind;
use base::text::sanitize;
use config::Limits;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

pub use crate::folded::composition;
pub use crate::mended::dropped;

/// Counts the versions of what is checked of a definition, here and in `schema.rs`: what was checked by another is checked anew.
pub const CHECKS: u32 = 4;

/// Kinds that a tool may name.
const MOST_KINDS: usize = 32;
/// Bytes of a title: a label of one line.
const TITLE_BYTES: usize = 256;
/// How many faults of a call's arguments are reported at once.
const FAULTS_TOLD: usize = 5;

/// A tool in a plugin's own words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Definition {
    /// 1 to 64 of `A-Za-z0-9_-`.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// One sentence.
    pub summary: String,
    /// When to choose it.
    pub guidance: Guidance,
    /// Long-form help.
    pub usage: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the result.
    pub output_schema: Option<Value>,
    /// The kinds of events that it hands to the embedder: where one of them is not taken, it is not offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// An object among its results is the outcome of a command: `exit_code`, `stdout`, `stderr`, and `notices` if there are any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_command: bool,
}

/// When a model should choose a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guidance {
    /// What it is for.
    pub when_to_use: String,
    /// What it is not for.
    pub when_not_to_use: String,
    /// How it differs from its neighbours.
    pub disambiguation: String,
    /// Calls as a model would write them.
    pub examples: Vec<String>,
}

/// Arguments that a tool takes.
#[derive(Debug)]
pub struct Validated {
    /// What it is called with, and what everything on the way decides about.
    pub arguments: Value,
    /// What of a call was left out, for whoever called.
    pub notices: Vec<String>,
}

/// A tool that can be called.
pub struct Tool {
    definition: Definition,
    description: String,
    input: Admitted,
    output: Admitted,
    plugin: Arc<Manifest>,
}

impl Definition {
    /// The same without what a screen obeys or hides.
    fn cleaned(self) -> Self {
        let clean = |text: String| sanitize::text(&text).into_owned();
        let Guidance { when_to_use, when_not_to_use, disambiguation, examples } = self.guidance;
        let guidance = Guidance {
            when_to_use: clean(when_to_use),
            when_not_to_use: clean(when_not_to_use),
            disambiguation: clean(disambiguation),
            examples: examples.into_iter().map(clean).collect(),
        };
        Self {
            title: self.title.map(|title| sanitize::line(&title).into_owned()),
            summary: clean(self.summary),
            guidance,
            usage: self.usage.map(clean),
            ..self
        }
    }

    /// The description that a model reads: summary, the parts of the guidance that say something, usage.
    #[must_use]
    pub fn description(&self) -> String {
        let Guidance { when_to_use, when_not_to_use, disambiguation, examples } = &self.guidance;
        let mut text = self.summary.clone();
        let parts =
            [("When to use", when_to_use), ("When NOT to use", when_not_to_use), ("Disambiguation", disambiguation)];
        let said = parts.into_iter().filter(|(_, said)| !said.is_empty());
        for (index, (part, said)) in said.enumerate() {
            let _ = write!(text, "{}{part}: {said}", if index == 0 { "\n\n" } else { "\n" });
        }
        if !examples.is_empty() {
            text += "\nExamples:";
        }
        for example in examples {
            let _ = write!(text, "\n- {example}");
        }
        if let Some(usage) = &self.usage {
            let _ = write!(text, "\n\n## Usage\n{usage}");
        }
        text
    }
}

impl Tool {
    /// Takes a definition that this program has checked before, under the same limits.
    pub fn checked_before(definition: Definition, plugin: Arc<Manifest>) -> Self {
        let definition = definition.cleaned();
        let (input, output) = (Admitted::before(), Admitted::before());
        Self { description: definition.description(), input, output, plugin, definition }
    }

    /// Checks a definition; an error is the reason to refuse the plugin.
    pub fn new(definition: Definition, plugin: Arc<Manifest>, limits: &Limits) -> Result<Self, String> {
        let definition = definition.cleaned();
        let name = &definition.name;
        if let Some(title) = definition.title.as_ref().filter(|title| title.len() > TITLE_BYTES) {
            return Err(format!("the title of `{name}` is {} bytes, more than {TITLE_BYTES}", title.len()));
        }
        if definition.events.len() > MOST_KINDS || !definition.events.iter().all(|kind| is_kind(kind)) {
            return Err(format!("`{name}` names what are not kinds of events, or more than {MOST_KINDS} of them"));
        }
        let description = definition.description();
        if description.len() as u64 > limits.description_bytes {
            return Err(format!(
                "the description of `{name}` is {} bytes, more than {}",
                description.len(),
                limits.description_bytes
            ));
        }
        let input = Admitted::admit(&definition.input_schema, limits)
            .map_err(|fault| format!("the input schema of `{name}` {fault}"))?;
        if definition.input_schema["type"] != "object" {
            return Err(format!("the input schema of `{name}` is not of type object"));
        }
        let output = definition.output_schema.as_ref().map(|schema| Admitted::admit(schema, limits)).transpose();
        let output = output.map_err(|fault| format!("the output schema of `{name}` {fault}"))?.unwrap_or_default();
        Ok(Self { description, input, output, plugin, definition })
    }

    /// The same without arguments that are set for it; what it says in words stays.
    pub fn without(&self, is_set: impl Fn(&str) -> bool) -> Self {
        let mut definition = self.definition.clone();
        let schema = &mut definition.input_schema;
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !is_set(name));
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str().is_none_or(|name| !is_set(name)));
        }
        Self::checked_before(definition, self.plugin.clone())
    }

    /// What it is called by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Whether people ask for it by name, and models are not offered it.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.plugin.prompts.iter().any(|prompt| prompt == self.name())
    }

    /// Whether all is read by it that its server has to read.
    #[must_use]
    pub fn is_reader(&self) -> bool {
        self.plugin.reader.as_deref() == Some(self.name())
    }

    /// What the plugin said of it.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The description that a model reads.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The plugin that it belongs to.
    #[must_use]
    pub fn plugin(&self) -> &Arc<Manifest> {
        &self.plugin
    }

    /// Checks a call's arguments, mended where there is no doubt about what is meant. A `null` for an optional argument counts as omitted.
    ///
    /// # Errors
    ///
    /// `invalid_arguments`, with each that does not fit.
    pub fn validate(&self, mut arguments: Value) -> Result<Validated, Failure> {
        let (name, schema) = (&self.definition.name, &self.definition.input_schema);
        mended::settle(&mut arguments, schema);
        if let Some(fault) = too_large(&arguments, schema) {
            return Err(self.unfit(&fault));
        }
        // What is valid as it is means what it says.
        if self.input.faults(schema, &arguments)?.is_empty() {
            return Ok(Validated { arguments, notices: Vec::new() });
        }
        let notices = mended::drop_added(&mut arguments, name, schema);
        mended::read_texts(&mut arguments, schema);
        mended::settle(&mut arguments, schema);
        check_depth(&arguments)?;
        let faults = self.input.faults(schema, &arguments)?;
        if faults.is_empty() {
            return Ok(Validated { arguments, notices });
        }
        let mut told: Vec<String> = faults.iter().take(FAULTS_TOLD).map(|fault| describe(fault, schema)).collect();
        let more = faults.len() - told.len();
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        Err(self.unfit(&told.join("; ")))
    }

    fn unfit(&self, faults: &str) -> Failure {
        let Definition { name, input_schema, .. } = &self.definition;
        Failure::invalid(format!("arguments of `{name}`: {faults}"))
            .hint(format!("`{name}` takes {}", signature(input_schema)))
    }

    /// Checks a result against the schema that the plugin promised.
    ///
    /// # Errors
    ///
    /// `execution_failed`, with what does not fit.
    pub fn check_result(&self, result: &Value) -> Result<(), Failure> {
        match self.misfit(result)? {
            None => Ok(()),
            Some(misfit) => Err(Failure::failed(misfit).hint("this is a fault of the plugin")),
        }
    }

    /// What of a result does not fit the schema that was promised; none where there is no such thing.
    ///
    /// # Errors
    ///
    /// `limit`, where the result is too large to be checked.
    pub fn misfit(&self, result: &Value) -> Result<Option<String>, Failure> {
        let Some(schema) = &self.definition.output_schema else { return Ok(None) };
        let faults = self.output.faults(schema, result)?;
        let name = &self.definition.name;
        Ok(faults.first().map(|fault| {
            format!("`{name}` returned a result that does not fit its own schema: {}", describe(fault, schema))
        }))
    }
}

/// One fault of a value that `schema` was to describe, in words that say what to change.
fn describe(fault: &ValidationError<'_>, schema: &Value) -> String {
    let place = fault.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let text = match fault.kind() {
        ValidationErrorKind::Required { property } => format!("`{}` is missing", property.as_str().unwrap_or_default()),
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let at = if place.is_empty() { schema } else { &Value::Null };
            let named: Vec<String> = unexpected.iter().map(|name| misspelt(name, at)).collect();
            format!("unknown argument {}", named.join(", "))
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. }
            if place.is_empty() && lacks_each(fault.instance(), schema) =>
        {
            let sets: Vec<String> = choices(schema).iter().map(|names| ticked(names).join(" and ")).collect();
            format!("needs {}", sets.join(", or "))
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            let wanted = fault.schema_path().as_str().rsplit_once('/').and_then(|(above, _)| schema.pointer(above));
            wanted.map_or_else(
                || fault.to_string(),
                |wanted| format!("{} is none of: {}", fault.instance(), kind(wanted)),
            )
        }
        ValidationErrorKind::Enum { options } => {
            // `null` means that an argument is omitted.
            let options = options.as_array().into_iter().flatten().filter(|option| !option.is_null());
            let options: Vec<String> = options.map(ToString::to_string).collect();
            let listed = match options.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
                None => "nothing".into(),
            };
            format!("{} is not one of {listed}", fault.instance())
        }
        _ => fault.to_string(),
    };
    let text = sanitize::line(&text).into_owned();
    let text: String = if text.chars().count() > 300 { text.chars().take(300).chain(['…']).collect() } else { text };
    if place.is_empty() { text } else { format!("`{}`: {text}", sanitize::line(&place)) }
}

/// An integer that no argument can hold: to JSON Schema there is no largest one.
fn too_large(arguments: &Value, schema: &Value) -> Option<String> {
    let is_integer = |name: &str| match &schema["properties"][name]["type"] {
        Value::String(kind) => kind == "integer",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "integer") && !kinds.iter().any(|kind| kind == "number"),
        _ => false,
    };
    // A smaller one was written as an integer before.
    let is_whole = |value: &Value| value.is_f64() && value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let (name, value) = arguments.as_object()?.iter().find(|(name, value)| is_whole(value) && is_integer(name))?;
    Some(format!("`{name}`: {value} is too large"))
}

fn ticked(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}

/// Whether of each set of arguments that would do there is one missing.
fn lacks_each(given: &Value, schema: &Value) -> bool {
    let sets = choices(schema);
    let lacks = |names: &Vec<&str>| names.iter().any(|name| given.get(*name).is_none());
    !sets.is_empty() && sets.iter().all(lacks)
}

/// A name that the schema does not have, with the one that was probably meant.
fn misspelt(name: &str, schema: &Value) -> String {
    let known = schema["properties"].as_object().into_iter().flatten().map(|(known, _)| known);
    let scored = known.map(|known| (strsim::jaro_winkler(known, name), known)).filter(|(score, _)| *score > 0.75);
    match scored.max_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((_, known)) => format!("`{name}` (did you mean `{known}`?)"),
        None => format!("`{name}`"),
    }
}

/// The arguments of a schema in one line: ``{"path": string, "offset"?: integer}``.
pub fn signature(schema: &Value) -> String {
    let schema = &*folded(schema);
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let arguments: Vec<String> = properties
        .map(|(name, property)| {
            let mark = if is_required(name) { "" } else { "?" };
            format!("{name:?}{mark}: {}", kind(property))
        })
        .collect();
    format!("{{{}}}", arguments.join(", "))
}

/// What is in a list: an object with its fields, whose values are not gone into.
fn item(schema: &Value) -> String {
    match schema["properties"].as_object() {
        None => kind(schema),
        Some(fields) => format!("{{{}}}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
    }
}

fn kind(schema: &Value) -> String {
    let any_of =
        |schemas: &Vec<Value>| schemas.iter().map(kind).filter(|kind| kind != "null").collect::<Vec<_>>().join(" | ");
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter(|value| !value.is_null()).map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    match &schema["type"] {
        Value::String(list) if list == "array" && schema["items"].is_object() => {
            format!("[{}]", item(&schema["items"]))
        }
        Value::String(kind) => match schema["minimum"].as_i64() {
            Some(least) => format!("{kind} from {least}"),
            None => kind.clone(),
        },
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect::<Vec<_>>().join(" | ")
        }
        _ => ["anyOf", "oneOf"].iter().find_map(|key| schema[*key].as_array()).map_or_else(|| "any".into(), any_of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_integer_that_nothing_can_hold_is_too_large() {
        let schema =
            json!({ "properties": { "offset": { "type": ["integer", "null"] }, "share": { "type": "number" } } });
        let fault = |arguments: &Value| too_large(arguments, &schema);
        assert_eq!(fault(&json!({ "offset": 1e20 })).as_deref(), Some("`offset`: 1e+20 is too large"));
        for fits in [json!({ "offset": u64::MAX }), json!({ "offset": 1.5 }), json!({ "share": 1e20 }), json!([])] {
            assert_eq!(fault(&fits), None, "{fits}");
        }
    }

    #[test]
    fn a_signature_says_what_is_in_a_list() {
        let pair = json!({ "type": "object", "properties": { "key": {}, "value": {} } });
        let schema = json!({
            "properties": {
                "args": { "type": "array", "items": { "type": "string" } },
                "env": { "type": "array", "items": pair },
                "any": { "type": "array" },
            },
            "required": ["args"],
        });
        assert_eq!(signature(&schema), r#"{"args": [string], "env"?: [{key, value}], "any"?: array}"#);
    }
}
