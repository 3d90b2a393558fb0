//! From an envelope to what every result message has: a text, parts that are not text, and whether it is an error.

use super::Shape;
use base::envelope::{Content, Envelope, Failure, Output};
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use serde_json::{Map, Value, json};

/// What came of a call, as a conversation has it.
#[non_exhaustive]
pub struct ToolResult {
    /// The envelope as JSON, or the failure in words; over MCP, what is to be read first.
    pub text: String,
    /// Images and the like, as the API writes them; over MCP, before them the texts that follow the first.
    pub parts: Vec<Value>,
    /// The result, if it is an object, and over MCP if it is not read as text.
    pub structured: Option<Value>,
    /// Over MCP: the envelope for programs, which is the metadata of the result.
    pub meta: Option<Map<String, Value>>,
    /// The call failed.
    pub is_error: bool,
}

impl ToolResult {
    /// The envelope as its text.
    pub(super) fn enveloped(envelope: Envelope, shape: &dyn Shape) -> Self {
        match &envelope.outcome {
            Ok(output) => {
                let (text, parts) = success(&envelope, output, shape);
                let structured = envelope.outcome.ok().map(|output| output.result).filter(Value::is_object);
                Self { text, parts, structured, meta: None, is_error: false }
            }
            Err(failure) => {
                Self { text: words(failure), parts: Vec::new(), structured: None, meta: None, is_error: true }
            }
        }
    }
}

/// The envelope in one line. The bytes of images and audio follow as parts where the API takes them.
fn success(envelope: &Envelope, output: &Output, shape: &dyn Shape) -> (String, Vec<Value>) {
    if output.content.is_empty() {
        return (serde_json::to_string(envelope).expect("an envelope is plain data"), Vec::new());
    }
    let parts: Vec<Option<Value>> = output.content.iter().map(|content| shape.part(content)).collect();
    (without_bytes(envelope, &parts).to_string(), parts.into_iter().flatten().collect())
}

/// The envelope, which of images and audio has kind and size. These parts of it are shown beside it.
pub(super) fn without_bytes(envelope: &Envelope, parts: &[Option<Value>]) -> Value {
    let mut json = envelope.to_json();
    let contents = envelope.outcome.as_ref().map_or(&[][..], |output| &output.content);
    let shown = json.get_mut("content").and_then(Value::as_array_mut);
    for ((shown, content), part) in shown.into_iter().flatten().zip(contents).zip(parts) {
        if let Content::Image(media_type, bytes) | Content::Audio(media_type, bytes) = content {
            let is_shown = part.is_some();
            *shown = json!({ "type": shown["type"], "mimeType": media_type, "bytes": bytes.len(), "shown": is_shown });
        }
    }
    json
}

/// The message, what to change, and what is known all the same: the output so far of a command that took too long.
fn words(failure: &Failure) -> String {
    let lines = [Some(failure.to_text()), failure.hint.clone(), failure.data.as_ref().map(ToString::to_string)];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Bytes as every API takes them.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}
