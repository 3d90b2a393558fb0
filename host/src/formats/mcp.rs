//! The Model Context Protocol: `tools/list` and `tools/call`, with JSON-RPC round them or without.

use super::results::ToolResult;
use super::{Declared, Shape, ToolCall};
use crate::envelope::Content;
use serde_json::{Value, json};

/// `ListToolsResult`, `CallToolRequest` and `CallToolResult`.
pub(super) struct Mcp;

/// Leaves away that an optional argument may be null: clients stumble over several types, and the host takes null as left away anyway.
fn without_nulls(mut schema: Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, property) in properties.into_iter().flatten().filter(|(name, _)| !required.contains(&json!(name))) {
        if let Some(types) = property.get_mut("type").and_then(Value::as_array_mut) {
            types.retain(|one| one != "null");
        }
        if let Some([one]) = property["type"].as_array().map(Vec::as_slice) {
            property["type"] = one.clone();
        }
    }
    schema
}

impl Shape for Mcp {
    fn tool(&self, Declared { offer, input, output, .. }: Declared<'_>) -> Value {
        let mut tool = json!({ "name": offer.definition.name });
        if let Some(title) = &offer.definition.title {
            tool["title"] = title.clone().into();
        }
        tool["description"] = offer.description.into();
        tool["inputSchema"] = without_nulls(input);
        if let Some(output) = output {
            tool["outputSchema"] = output;
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
