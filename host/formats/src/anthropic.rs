//! Anthropic: messages.

use super::results::{ToolResult, base64};
use super::strict::{self, Dialect};
use super::{Declared, Shape, ToolCall};
use base::envelope::Content;
use serde_json::{Value, json};

/// Media types of `Base64ImageSource`.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// `Tool`, `ToolUseBlock` and `ToolResultBlockParam`.
pub(super) struct Messages;

impl Shape for Messages {
    fn tool(&self, Declared { offer, input, is_strict, .. }: Declared<'_>) -> Value {
        let mut tool =
            json!({ "name": offer.definition.name, "description": offer.description, "input_schema": input });
        if is_strict {
            tool["strict"] = true.into();
        }
        tool
    }

    /// Only when it is asked for: a request has few strict tools at most, and one too many fails as a whole.
    fn dialect(&self) -> Option<&'static Dialect> {
        Some(&strict::ANTHROPIC)
    }

    fn call_example(&self) -> &'static str {
        r#"{"type":"tool_use","id":"toolu_1","name":"time","input":{}}"#
    }

    fn read(&self, message: &Value) -> Option<ToolCall> {
        let id = message.get("id").filter(|id| id.is_string() && message["type"] == "tool_use")?;
        ToolCall::new(Some(id), &message["name"], Some(message.get("input").filter(|input| input.is_object())?))
    }

    fn calls_field(&self) -> Option<&'static str> {
        Some("content")
    }

    fn is_beside_calls(&self, part: &Value) -> bool {
        ["text", "thinking", "redacted_thinking"].iter().any(|kind| part["type"] == *kind)
    }

    fn part(&self, content: &Content) -> Option<Value> {
        let Content::Image(media_type, bytes) = content else { return None };
        let source = json!({ "type": "base64", "media_type": media_type, "data": base64(bytes) });
        IMAGES.contains(&media_type.as_str()).then(|| json!({ "type": "image", "source": source }))
    }

    fn answer(&self, call: &ToolCall, result: ToolResult) -> Value {
        let text = json!({ "type": "text", "text": result.text });
        let content: Value = [text].into_iter().chain(result.parts).collect();
        let mut answer = json!({ "type": "tool_result", "tool_use_id": call.id, "content": content });
        if result.is_error {
            answer["is_error"] = true.into();
        }
        answer
    }
}
