//! Google: Gemini.

use super::results::{ToolResult, base64};
use super::{Declared, Shape, ToolCall};
use base::envelope::Content;
use serde_json::{Value, json};

/// `Tool` with `FunctionDeclaration`s, `FunctionCall` and `FunctionResponse`.
pub(super) struct Gemini;

impl Shape for Gemini {
    fn tool(&self, Declared { offer, input, .. }: Declared<'_>) -> Value {
        json!({ "name": offer.definition.name, "description": offer.description, "parametersJsonSchema": input })
    }

    fn list(&self, tools: Vec<Value>) -> Value {
        json!({ "functionDeclarations": tools })
    }

    fn refuses_name(&self, name: &str) -> Option<&'static str> {
        let is_good = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        (!is_good).then_some("a name has to start with a letter or `_` here")
    }

    fn call_example(&self) -> &'static str {
        r#"{"functionCall":{"name":"time","args":{}}}"#
    }

    /// The part of a message, or the call in it, as JSON has them or as Google's own SDK dumps them: fields in snake case, and
    /// null for each that is not there. A call that is still being streamed has other fields, and is none yet.
    fn read(&self, message: &Value) -> Option<ToolCall> {
        let call = call_of(message).unwrap_or(message);
        let mut fields = call.as_object()?.iter().filter(|(_, value)| !value.is_null());
        let is_whole = fields.all(|(name, _)| ["id", "name", "args"].contains(&name.as_str()));
        let arguments = call.get("args").filter(|arguments| !arguments.is_null());
        let is_object = arguments.is_none_or(Value::is_object);
        let id = call.get("id").filter(|id| id.is_string());
        ToolCall::new(id, &call["name"], arguments).filter(|_| is_whole && is_object)
    }

    fn calls_field(&self) -> Option<&'static str> {
        Some("parts")
    }

    fn is_beside_calls(&self, part: &Value) -> bool {
        call_of(part).is_none() && part.get("name").is_none()
    }

    fn part(&self, content: &Content) -> Option<Value> {
        let (Content::Image(media_type, bytes) | Content::Audio(media_type, bytes)) = content else { return None };
        Some(json!({ "inlineData": { "mimeType": media_type, "data": base64(bytes) } }))
    }

    /// A result goes as text: of an object the API would read `$ref` keys as its own.
    fn answer(&self, call: &ToolCall, result: ToolResult) -> Value {
        let key = if result.is_error { "error" } else { "output" };
        let mut response = json!({});
        if let Some(id) = &call.id {
            response["id"] = id.clone();
        }
        response["name"] = call.request.tool.clone().into();
        response["response"] = json!({ key: result.text });
        if !result.parts.is_empty() {
            response["parts"] = result.parts.into();
        }
        json!({ "functionResponse": response })
    }
}

fn call_of(part: &Value) -> Option<&Value> {
    ["functionCall", "function_call"].iter().filter_map(|field| part.get(field)).find(|call| !call.is_null())
}
