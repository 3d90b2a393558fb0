//! What headers say of a call's arguments (`x-mcp-header` in the schema of a tool): whatever stands before a server can read it there.

use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The word of a schema for it.
const WORD: &str = "x-mcp-header";
/// How names of these headers begin.
const BEGIN: &str = "mcp-param-";
/// How deep a schema is looked at; deeper ones are refused elsewhere.
const DEEP: usize = 64;

/// A header of a tool: its name, and the way to its argument.
type Mirrored<'s> = (HeaderName, Vec<&'s str>);

/// The headers that a tool wants, by the schema of its arguments.
///
/// # Errors
///
/// What is wrong with one, as the rest of a sentence.
fn mirrored(schema: &Value) -> Result<Vec<Mirrored<'_>>, String> {
    let mut found = Vec::new();
    walk(schema, Some(Vec::new()), DEEP, &mut found)?;
    let mut seen = BTreeSet::new();
    match found.iter().find(|(name, _)| !seen.insert(name.as_str())) {
        Some((twice, _)) => Err(format!("has two arguments for the header `{twice}`")),
        None => Ok(found),
    }
}

/// Whether a tool can be called over HTTP.
///
/// # Errors
///
/// Why not, as the rest of a sentence.
pub(super) fn check(definition: &Map<String, Value>) -> Result<(), String> {
    definition.get("inputSchema").map_or(Ok(()), |schema| mirrored(schema).map(drop))
}

/// The headers of a call of a tool, by its definition and its arguments.
pub(super) fn headers(definition: &Map<String, Value>, arguments: &str) -> HeaderMap {
    let wanted = definition.get("inputSchema").and_then(|schema| mirrored(schema).ok()).unwrap_or_default();
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return HeaderMap::new() };
    let said = |way: &[&str]| way.iter().try_fold(&arguments, |at, key| at.get(key));
    let header = |(name, way): Mirrored<'_>| {
        let text = match said(&way)? {
            Value::String(text) => text.clone(),
            other @ (Value::Bool(_) | Value::Number(_)) => other.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((name, encoded(&text)?))
    };
    wanted.into_iter().filter_map(header).collect()
}

/// A text as a header says it: as it is, or in base64 where it could not be.
pub(super) fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    match is_plain && !text.starts_with("=?base64?") {
        true => HeaderValue::from_str(text).ok(),
        false => HeaderValue::from_str(&format!("=?base64?{}?=", BASE64.encode(text))).ok(),
    }
}

/// Looks for the word in a schema. `way` leads there by properties alone; none where something else lies between.
fn walk<'s>(
    schema: &'s Value,
    way: Option<Vec<&'s str>>,
    deep: usize,
    found: &mut Vec<Mirrored<'s>>,
) -> Result<(), String> {
    let Value::Object(words) = schema else {
        let Value::Array(several) = schema else { return Ok(()) };
        return several.iter().take_while(|_| deep > 0).try_for_each(|one| walk(one, None, deep - 1, found));
    };
    let Some(deep) = deep.checked_sub(1) else { return Ok(()) };
    if let Some(name) = words.get(WORD) {
        let way = way.as_ref().filter(|way| !way.is_empty());
        found.push((header(name, words)?, way.ok_or("has an `x-mcp-header` that is not at an argument")?.clone()));
    }
    for (word, below) in words {
        match (word.as_str(), below) {
            // Values of these are no schemas.
            ("const" | "enum" | "default" | "examples" | WORD, _) => {}
            ("properties", Value::Object(properties)) => {
                for (key, property) in properties {
                    let way = way.as_ref().map(|way| way.iter().copied().chain([key.as_str()]).collect());
                    walk(property, way, deep, found)?;
                }
            }
            ("patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.values().try_for_each(|schema| walk(schema, None, deep, found))?;
            }
            _ => walk(below, None, deep, found)?,
        }
    }
    Ok(())
}

/// The header that an argument names.
fn header(name: &Value, argument: &Map<String, Value>) -> Result<HeaderName, String> {
    let kind = argument.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return Err("has a header for an argument that is not a string, an integer or a boolean".into());
    }
    let name = name.as_str().filter(|name| !name.is_empty());
    let name = name.and_then(|name| HeaderName::from_bytes(format!("{BEGIN}{name}").as_bytes()).ok());
    name.ok_or_else(|| "has an `x-mcp-header` that is not a valid header name".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(properties: Value) -> Map<String, Value> {
        let Value::Object(tool) = json!({ "name": "x", "inputSchema": { "type": "object", "properties": properties } })
        else {
            unreachable!()
        };
        tool
    }

    #[test]
    fn arguments_are_said_in_headers() {
        let tool = tool(json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "deep": { "type": "object", "properties": { "on": { "type": "boolean", "x-mcp-header": "On" } } },
            "absent": { "type": "string", "x-mcp-header": "Absent" },
            "query": { "type": "string" },
        }));
        assert_eq!(check(&tool), Ok(()));
        let said = headers(&tool, r#"{"region":" ä","count":42,"deep":{"on":true},"absent":null,"query":"q"}"#);
        assert_eq!(said["mcp-param-region"], "=?base64?IMOk?=");
        assert_eq!(
            (&said["mcp-param-count"], &said["mcp-param-on"], said.len()),
            (&"42".parse().unwrap(), &"true".parse().unwrap(), 3)
        );
        assert_eq!(headers(&tool, r#"{"region":""}"#)["mcp-param-region"], "");
    }

    #[test]
    fn tools_with_odd_headers_are_told() {
        let odd = [
            json!({ "a": { "type": "string", "x-mcp-header": "" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "A B" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "ä" } }),
            json!({ "a": { "type": "string", "x-mcp-header": 7 } }),
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "Me" }, "b": { "type": "string", "x-mcp-header": "me" } }),
            json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } }),
        ];
        for properties in odd {
            assert!(check(&tool(properties.clone())).is_err(), "{properties}");
        }
        // The name of an argument is no word.
        assert_eq!(check(&tool(json!({ "x-mcp-header": { "type": "string" } }))), Ok(()));
    }
}
