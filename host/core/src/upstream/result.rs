//! From what a server answers to the result of a call.

use super::listing::shown;
use crate::call::scope::Scope;
use crate::call::{PART_BYTES, check_size};
use crate::envelope::{Content, Failure, Kind, Output};
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// Characters of a result's text that are handed on whole, and what is shown of a longer one, which is kept.
const WHOLE_CHARS: usize = 128 << 10;
const HEAD_CHARS: usize = 24_000;
/// Bytes of what a failure says.
const MESSAGE_BYTES: usize = 8 << 10;
/// What a result is that wants something of its client first.
const INPUT_REQUIRED: &str = "input_required";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said<'s> {
    #[serde(borrow, default)]
    content: Vec<&'s RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'s RawValue>,
    #[serde(default)]
    is_error: bool,
    result_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: String,
        mime_type: String,
    },
    ResourceLink {
        uri: String,
    },
    Resource {
        resource: Embedded,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    uri: String,
    text: Option<String>,
}

/// What a tool has answered, as the result of its call.
///
/// # Errors
///
/// `execution_failed` where the server says that it failed, or what it says makes no sense.
pub(super) async fn output(server: &str, answer: &RawValue, scope: &Arc<Scope>) -> Result<Output, Failure> {
    let nonsense =
        |error: serde_json::Error| Failure::failed(format!("`{server}` answers what makes no sense: {error}"));
    let said: Said<'_> = serde_json::from_str(answer.get()).map_err(nonsense)?;
    if said.result_type.as_deref() == Some(INPUT_REQUIRED) {
        let message = format!("`{server}` wants something of its client before it goes on, which no setting allows");
        return Err(Failure::new(Kind::ExecutionFailed, message).hint("give all that it needs among the arguments"));
    }
    let (mut texts, mut content, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    for block in said.content {
        match serde_json::from_str::<Block>(block.get()) {
            Ok(Block::Text { text }) => texts.push(text),
            Ok(Block::Image { data, mime_type }) => match BASE64.decode(data) {
                Ok(bytes) => content.push(Content::Image(mime_type, bytes)),
                Err(_) => notices.push("an image was left out that is not base64".to_owned()),
            },
            Ok(Block::Audio { data, mime_type }) => match BASE64.decode(data) {
                Ok(bytes) => content.push(Content::Audio(mime_type, bytes)),
                Err(_) => notices.push("audio was left out that is not base64".to_owned()),
            },
            // What it names lies with the server, and nobody fetches it from here.
            Ok(Block::ResourceLink { uri }) => texts.push(format!("[{uri}]")),
            Ok(Block::Resource { resource: Embedded { uri, text: Some(text) } }) => {
                texts.push(format!("[{uri}]\n{text}"))
            }
            Ok(Block::Resource { resource: Embedded { uri, text: None } }) => {
                texts.push(format!("[{uri}, which is no text]"))
            }
            Err(_) => notices.push("content of a kind that is not known here was left out".to_owned()),
        }
    }
    notices.dedup();
    if said.is_error {
        let text = texts.join("\n");
        let message = if text.trim().is_empty() { "it says no more than that".to_owned() } else { cut(&text) };
        return Err(Failure::failed(format!("`{server}`: {message}")));
    }
    let bytes = |content: &Content| match content {
        Content::Image(kind, bytes) | Content::Audio(kind, bytes) => kind.len() + bytes.len() + PART_BYTES,
        // A long text is kept.
        Content::Text(_) | Content::Link(_) => 0,
    };
    let structured = said.structured_content.map_or(0, |structured| structured.get().len());
    check_size("result", structured + content.iter().map(bytes).sum::<usize>(), scope)?;
    let structured = said.structured_content.map(|structured| serde_json::from_str::<Value>(structured.get()));
    let result = match structured.transpose().map_err(nonsense)? {
        Some(whole) => {
            // Most say the same once more, as text.
            texts.retain(|text| !repeats(text, &whole));
            if !texts.is_empty() {
                content.push(Content::Text(kept(texts.join("\n"), scope, &mut notices).await));
            }
            whole
        }
        None => kept(texts.join("\n"), scope, &mut notices).await.into(),
    };
    Ok(Output { result, content, notices })
}

/// Whether a text says no more than what is structured: all of that, or its only field.
fn repeats(text: &str, whole: &Value) -> bool {
    let only = whole.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    let parsed = serde_json::from_str::<Value>(text).ok();
    parsed.as_ref().is_some_and(|parsed| parsed == whole || only == Some(parsed))
        || only.and_then(Value::as_str) == Some(text)
}

/// A text, or the beginning of a long one, which is kept.
async fn kept(text: String, scope: &Arc<Scope>, notices: &mut Vec<String>) -> String {
    if text.len() <= WHOLE_CHARS {
        return text;
    }
    let redacted = scope.guard.redact(&text);
    let mut capture = scope.output.capture(format!("{}.answer", scope.id), HEAD_CHARS, usize::MAX);
    capture.push(redacted.as_bytes()).await;
    let captured = capture.finish().await;
    let whole = match &captured.stored {
        Some(path) => {
            scope.remember_kept(path);
            format!("all of it is in {path}")
        }
        None => "the rest could not be kept".to_owned(),
    };
    notices.push(format!("the text has {} bytes, of which this is the beginning: {whole}", captured.bytes));
    captured.text
}

/// The failure that a server has put in words.
pub(super) fn refused(server: &str, code: i64, message: &str) -> Failure {
    Failure::failed(format!("`{server}`: {}", shown(message))).data(json!({ "code": code }))
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(MESSAGE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
