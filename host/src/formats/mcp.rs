//! The Model Context Protocol: `tools/list` and `tools/call`, with JSON-RPC round them or without.

use super::results::ToolResult;
use super::{Declared, Shape, ToolCall};
use crate::envelope::Content;
use serde_json::{Map, Value, json};

/// `ListToolsResult`, `CallToolRequest` and `CallToolResult`.
pub(super) struct Mcp;

/// Keywords whose values are no schemas.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];
/// Keywords that say nothing of whether a value fits.
const ANNOTATIONS: [&str; 3] = ["description", "title", "default"];

/// Leaves away that an optional argument may be null, which the host takes for left away anyway.
fn without_nulls(mut schema: Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, property) in properties.into_iter().flatten().filter(|(name, _)| !required.contains(&json!(name))) {
        forbid_null(property);
        let branches = property.get_mut("anyOf").and_then(Value::as_array_mut);
        branches.into_iter().flatten().for_each(forbid_null);
    }
    schema
}

fn forbid_null(schema: &mut Value) {
    let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) else { return };
    types.retain(|one| one != "null");
    if let [one] = types.as_slice() {
        schema["type"] = one.clone();
    }
}

/// Writes each `type` that lists several as `anyOf` with one each, which means the same: clients stumble over the list.
fn one_type_each(schema: Value) -> Value {
    match schema {
        Value::Array(list) => list.into_iter().map(one_type_each).collect(),
        Value::Object(fields) => {
            let each = |(name, value): (String, Value)| {
                let is_value = VALUES.contains(&name.as_str());
                (name, if is_value { value } else { one_type_each(value) })
            };
            let mut fields: Map<String, Value> = fields.into_iter().map(each).collect();
            let Some(Value::Array(types)) = fields.get("type").cloned() else { return fields.into() };
            fields.remove("type");
            let (said, checks): (Map<_, _>, Map<_, _>) =
                fields.into_iter().partition(|(name, _)| ANNOTATIONS.contains(&name.as_str()));
            let branch = |one| Value::Object([("type".to_owned(), one)].into_iter().chain(checks.clone()).collect());
            let branches = types.into_iter().map(branch).collect();
            Value::Object([("anyOf".to_owned(), branches)].into_iter().chain(said).collect())
        }
        other => other,
    }
}

impl Shape for Mcp {
    fn tool(&self, Declared { offer, input, output, .. }: Declared<'_>) -> Value {
        let mut tool = json!({ "name": offer.definition.name });
        if let Some(title) = &offer.definition.title {
            tool["title"] = title.clone().into();
        }
        tool["description"] = offer.description.into();
        tool["inputSchema"] = one_type_each(without_nulls(input));
        if let Some(output) = output {
            tool["outputSchema"] = one_type_each(output);
        }
        let effects = offer.effects;
        tool["annotations"] = json!({ "readOnlyHint": !effects.writes, "openWorldHint": effects.reaches_out });
        tool
    }

    fn list(&self, tools: Vec<Value>) -> Value {
        json!({ "tools": tools })
    }

    fn has_output_schema(&self) -> bool {
        true
    }

    fn call_example(&self) -> &'static str {
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time","arguments":{}}}"#
    }

    /// A request, or its parameters alone.
    fn read(&self, message: &Value) -> Option<ToolCall> {
        let (id, params) = match message.get("method") {
            Some(method) => (message.get("id"), message.get("params").filter(|_| method == "tools/call")?),
            None => (None, message),
        };
        let known = ["name", "arguments", "_meta", "task"];
        let is_plain = params.as_object()?.keys().all(|field| known.contains(&field.as_str()));
        let arguments = params.get("arguments");
        let is_good = is_plain && arguments.is_none_or(Value::is_object);
        let id = id.filter(|id| id.is_string() || id.is_number());
        ToolCall::new(id, &params["name"], arguments).filter(|_| is_good)
    }

    fn part(&self, content: &Content) -> Option<Value> {
        match content {
            Content::Text(_) => None,
            Content::Image(..) | Content::Audio(..) => Some(content.to_json()),
            Content::Link(uri) => Some(json!({ "type": "resource_link", "uri": uri, "name": uri })),
        }
    }

    fn answer(&self, call: &ToolCall, result: ToolResult<'_>) -> Value {
        let text = json!({ "type": "text", "text": result.text });
        let content: Value = [text].into_iter().chain(result.parts).collect();
        let mut answer = json!({ "content": content });
        if let Some(structured) = result.structured {
            answer["structuredContent"] = structured.clone();
        }
        answer["isError"] = result.is_error.into();
        match &call.id {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "result": answer }),
            None => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_list_of_types(schema: &Value) -> bool {
        match schema {
            Value::Array(list) => list.iter().any(has_list_of_types),
            Value::Object(fields) => {
                fields.get("type").is_some_and(Value::is_array) || fields.values().any(has_list_of_types)
            }
            _ => false,
        }
    }

    #[test]
    fn one_type_each_accepts_the_same_values() {
        let schemas = [
            json!({ "type": ["string", "null"], "minLength": 2, "description": "a text" }),
            json!({ "type": ["integer", "string"], "minimum": 3, "enum": [1, 5, "ab", null] }),
            json!({ "anyOf": [{ "type": ["boolean", "null"] }, { "type": "integer", "minimum": 0 }] }),
            json!({ "type": ["object", "null"], "anyOf": [{ "required": ["a"] }, { "required": ["b"] }], "properties": { "a": { "type": ["number", "null"] }, "type": { "type": "string" } } }),
            json!({ "type": ["array"], "items": { "type": ["string", "integer"] } }),
            json!({ "not": { "type": ["string", "null"] } }),
        ];
        let values = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1),
            json!(5),
            json!("a"),
            json!("ab"),
            json!([]),
            json!(["a", 1]),
            json!([1.5]),
            json!({}),
            json!({ "a": null }),
            json!({ "a": "x" }),
            json!({ "b": 1, "type": 1 }),
            json!({ "b": 1, "type": "x" }),
        ];
        for schema in schemas {
            let split = one_type_each(schema.clone());
            assert!(!has_list_of_types(&split), "{split}");
            for value in &values {
                let [before, after] = [&schema, &split].map(|schema| jsonschema::is_valid(schema, value));
                assert_eq!(before, after, "{value} by {schema} and {split}");
            }
        }
    }

    #[test]
    fn values_in_a_schema_are_left_as_they_are() {
        let schema = json!({ "const": { "type": ["a", "b"] }, "examples": [{ "type": ["c", "d"] }] });
        assert_eq!(one_type_each(schema.clone()), schema);
    }

    #[test]
    fn an_optional_argument_is_not_said_to_be_null() {
        let wait = json!({ "anyOf": [{ "type": ["boolean", "null"] }, { "type": "string" }] });
        let schema = json!({ "properties": { "a": { "type": ["string", "null"] }, "b": wait, "c": { "type": ["string", "null"] } }, "required": ["c"] });
        let told = without_nulls(schema.clone());
        assert_eq!(told["properties"]["a"], json!({ "type": "string" }));
        assert_eq!(told["properties"]["b"], json!({ "anyOf": [{ "type": "boolean" }, { "type": "string" }] }));
        assert_eq!(told["properties"]["c"], schema["properties"]["c"]);
    }
}
