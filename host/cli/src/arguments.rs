//! A call's arguments on the command line: one JSON object, `-` for one on stdin, or key=value pairs.

use super::setup::{Setup, usage};
use base::text::sanitize;
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;
use toolcrib::call::{ARGUMENTS_BYTES, Arguments};
use toolcrib::envelope::Failure;
use toolcrib::tools::definition::Tool;

/// Bytes of a word that a hint repeats.
const OFFERED_BYTES: usize = 200;

/// Arguments, and the hint to give when they turn out not to be valid.
pub(super) struct Given {
    pub(super) arguments: Arguments,
    pub(super) offer: Option<String>,
}

impl From<Arguments> for Given {
    fn from(arguments: Arguments) -> Self {
        Self { arguments, offer: None }
    }
}

/// Reads what follows the tool's name.
pub(super) async fn read(setup: &Setup, tool: &str, words: &[String]) -> Result<Given, Failure> {
    match words {
        [] => Ok(Arguments::Json(Value::Object(Map::new())).into()),
        [dash] if dash == "-" => {
            read_stdin(ARGUMENTS_BYTES, &setup.context.cancel).await.map(|text| Arguments::Text(text).into())
        }
        [text] if is_json(text) => Ok(Arguments::Text(text.clone()).into()),
        [word] if !word.contains('=') => {
            let offer = find(setup, tool).await.and_then(|tool| offer(&tool, word));
            Ok(Given { arguments: Arguments::Text(word.clone()), offer })
        }
        pairs => {
            let tool = find(setup, tool).await;
            let schema = tool.as_ref().map_or(&Value::Null, |tool| &tool.definition().input_schema);
            Ok(Arguments::Json(key_values(pairs, schema)?.into()).into())
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '"'])
}

/// The tool, for its schema; none if there is no such tool, which the call then reports.
async fn find(setup: &Setup, tool: &str) -> Option<Arc<Tool>> {
    let plugin = setup.context.tools.plugin_of(tool).ok()?;
    setup.host.ready(plugin, &setup.context).await.ok()?.tool(tool).cloned()
}

/// What a bare word was probably meant to be: the value of the first argument that has to be there.
fn offer(tool: &Tool, word: &str) -> Option<String> {
    let schema = &tool.definition().input_schema;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut names =
        required.chain(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()));
    let pair = format!("{}={word}", names.next()?);
    // Nobody types so long a word again, and one that the screen would show changed cannot be copied.
    if word.len() > OFFERED_BYTES || sanitize::line(word) != word {
        return None;
    }
    Some(format!("did you mean `{}`?", base::text::shell_quote::readable(&pair)))
}

/// Reads stdin, one byte more than `most` at most.
pub(super) async fn read_stdin(most: usize, cancel: &CancellationToken) -> Result<String, Failure> {
    let mut text = String::new();
    let mut input = tokio::io::stdin().take(most as u64 + 1);
    tokio::select! {
        read = input.read_to_string(&mut text) => read.map_err(|error| usage(format!("stdin: {error}")))?,
        () = cancel.cancelled() => return Err(Failure::cancelled()),
    };
    Ok(text)
}

/// Arguments as pairs, each name once.
fn key_values(pairs: &[String], schema: &Value) -> Result<Map<String, Value>, Failure> {
    let mut values = Map::new();
    for pair in pairs {
        let (key, value) = key_value(pair, schema)?;
        match values.entry(key) {
            Entry::Vacant(place) => _ = place.insert(value),
            Entry::Occupied(given) => {
                return Err(usage(format!("`{}` is given twice", given.key()))
                    .hint(format!("omit `{pair}` or the one before it")));
            }
        }
    }
    Ok(values)
}

/// A value is text if the tool's schema asks for text, else JSON if it parses as JSON, else text.
fn key_value(pair: &str, schema: &Value) -> Result<(String, Value), Failure> {
    if is_json(pair) {
        return Err(usage(format!("`{pair}` cannot be combined with other arguments"))
            .hint("give one JSON object, or key=value pairs"));
    }
    let Some((key, value)) = pair.split_once('=') else {
        return Err(usage(format!("`{pair}` is not key=value")).hint("give one JSON object, `-`, or key=value pairs"));
    };
    let text = Value::String(value.into());
    let takes_text = schema["properties"][key]["type"] == "string";
    let value = if takes_text { text } else { serde_json::from_str(value).unwrap_or(text) };
    Ok((key.into(), value))
}
