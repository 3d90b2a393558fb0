//! OpenAI: chat completions and responses.

use super::results::{ToolResult, base64};
use super::strict::{self, Dialect};
use super::{Declared, Shape, ToolCall};
use base::envelope::Content;
use serde_json::{Value, json};

/// The guide to function calling names this bound; not every server enforces it.
const DESCRIPTION_CHARS: usize = 1024;

/// `ChatCompletionTool`, `ChatCompletionMessageToolCall` and `ChatCompletionToolMessageParam`.
pub(super) struct Chat;

impl Shape for Chat {
    fn tool(&self, Declared { offer, input, is_strict, .. }: Declared<'_>) -> Value {
        let function = json!({
            "name": offer.definition.name,
            "description": offer.description,
            "parameters": input,
            "strict": is_strict,
        });
        json!({ "type": "function", "function": function })
    }

    fn dialect(&self) -> Option<&'static Dialect> {
        Some(&strict::OPENAI)
    }

    fn is_strict_by_default(&self) -> bool {
        true
    }

    fn description_chars(&self) -> usize {
        DESCRIPTION_CHARS
    }

    fn call_example(&self) -> &'static str {
        r#"{"id":"call_1","type":"function","function":{"name":"time","arguments":"{}"}}"#
    }

    fn read(&self, message: &Value) -> Option<ToolCall> {
        let function = &message["function"];
        let id = message.get("id").filter(|id| id.is_string() && message["type"] == "function")?;
        ToolCall::new(Some(id), &function["name"], Some(function.get("arguments")?))
    }

    fn calls_field(&self) -> Option<&'static str> {
        Some("tool_calls")
    }

    fn answer(&self, call: &ToolCall, result: ToolResult) -> Value {
        json!({ "role": "tool", "tool_call_id": call.id, "content": result.text })
    }
}

/// `FunctionTool`, `ResponseFunctionToolCall` and `ResponseInputItem.FunctionCallOutput`.
pub(super) struct Responses;

impl Shape for Responses {
    fn tool(&self, Declared { offer, input, is_strict, .. }: Declared<'_>) -> Value {
        json!({
            "type": "function",
            "name": offer.definition.name,
            "description": offer.description,
            "parameters": input,
            "strict": is_strict,
        })
    }

    fn dialect(&self) -> Option<&'static Dialect> {
        Chat.dialect()
    }

    fn is_strict_by_default(&self) -> bool {
        true
    }

    fn description_chars(&self) -> usize {
        DESCRIPTION_CHARS
    }

    fn call_example(&self) -> &'static str {
        r#"{"type":"function_call","call_id":"call_1","name":"time","arguments":"{}"}"#
    }

    fn read(&self, message: &Value) -> Option<ToolCall> {
        let id = message.get("call_id").filter(|id| id.is_string() && message["type"] == "function_call")?;
        ToolCall::new(Some(id), &message["name"], Some(message.get("arguments")?))
    }

    fn calls_field(&self) -> Option<&'static str> {
        Some("output")
    }

    fn is_beside_calls(&self, part: &Value) -> bool {
        part["type"] == "message" || part["type"] == "reasoning"
    }

    fn part(&self, content: &Content) -> Option<Value> {
        let Content::Image(media_type, bytes) = content else { return None };
        let url = format!("data:{media_type};base64,{}", base64(bytes));
        Some(json!({ "type": "input_image", "image_url": url, "detail": "auto" }))
    }

    fn answer(&self, call: &ToolCall, result: ToolResult) -> Value {
        let output = if result.parts.is_empty() {
            result.text.into()
        } else {
            let text = json!({ "type": "input_text", "text": result.text });
            [text].into_iter().chain(result.parts).collect::<Value>()
        };
        json!({ "type": "function_call_output", "call_id": call.id, "output": output })
    }
}
