//! From what a server answers to the result of a call.

use super::accepted::AcceptedKind;
use super::listing::shown;
use super::prompts;
use super::resources::{self, Named};
use base::envelope::{Content, Failure, Kind, Output};
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use parking_lot::Mutex;
use policy::scope::PART_BYTES;
use policy::scope::Scope;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// Characters of a result's text that are handed on whole, and what is shown of a longer one, which is kept.
pub(super) const WHOLE_CHARS: usize = 128 << 10;
const HEAD_CHARS: usize = 24_000;
/// Bytes of what a failure says.
const MESSAGE_BYTES: usize = 8 << 10;
/// What a result is that wants something of its client first.
const INPUT_REQUIRED: &str = "input_required";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said<'s> {
    /// Null of a server that has nothing to say beside what is structured.
    #[serde(borrow)]
    content: Option<Vec<&'s RawValue>>,
    #[serde(borrow)]
    structured_content: Option<&'s RawValue>,
    #[serde(default)]
    is_error: bool,
    result_type: Option<String>,
}

/// A part of an answer: of a tool's result, or of a prompt's message.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
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
        #[serde(default)]
        name: Value,
    },
    Resource {
        resource: Embedded,
    },
}

/// What is read, with its address.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Embedded {
    pub(super) uri: String,
    pub(super) text: Option<String>,
    pub(super) blob: Option<String>,
    pub(super) mime_type: Option<String>,
}

/// What was answered to a call, as its result. Addresses in it are remembered as those that the server has named.
///
/// # Errors
///
/// `execution_failed` where the server says that it failed, or what it says makes no sense.
pub(super) async fn output(
    server: &str,
    kind: AcceptedKind,
    answer: &RawValue,
    scope: &Arc<Scope>,
    named: &Mutex<Named>,
) -> Result<Output, Failure> {
    let said: Said<'_> = serde_json::from_str(answer.get()).map_err(|error| nonsense(server, &error))?;
    if said.result_type.as_deref() == Some(INPUT_REQUIRED) {
        let message = format!("`{server}` wants something of its client before it goes on, which no setting allows");
        return Err(Failure::new(Kind::ExecutionFailed, message).hint("give all that it needs among the arguments"));
    }
    match kind {
        AcceptedKind::Tool => of_tool(server, said, scope, named).await,
        AcceptedKind::Prompt => prompts::output(server, answer, scope, named),
        AcceptedKind::Resources => resources::output(server, answer, scope, named).await,
    }
}

async fn of_tool(server: &str, said: Said<'_>, scope: &Arc<Scope>, named: &Mutex<Named>) -> Result<Output, Failure> {
    let (mut texts, mut content, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    for block in said.content.unwrap_or_default() {
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
            // What it names lies with the server, and only the server is asked for it.
            Ok(Block::ResourceLink { uri, .. }) => {
                named.lock().remember(&uri);
                texts.push(format!("[{uri}]"));
            }
            Ok(Block::Resource { resource: Embedded { uri, text, .. } }) => {
                named.lock().remember(&uri);
                texts.push(match text {
                    Some(text) => format!("[{uri}]\n{text}"),
                    None => format!("[{uri}, which is not text]"),
                });
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
    scope.check_size("result", structured + content.iter().map(bytes).sum::<usize>())?;
    let structured = said.structured_content.map(|structured| serde_json::from_str::<Value>(structured.get()));
    let result = match structured.transpose().map_err(|error| nonsense(server, &error))? {
        Some(whole) => {
            // Most say the same once more, as text.
            texts.retain(|text| !repeats(text, &whole));
            if !texts.is_empty() {
                let shown = kept(texts.join("\n"), 0, WHOLE_CHARS, scope, &mut notices).await;
                content.push(Content::Text(shown.text));
            }
            whole
        }
        None => kept(texts.join("\n"), 0, WHOLE_CHARS, scope, &mut notices).await.text.into(),
    };
    Ok(Output { result, content, notices, ..Output::default() })
}

/// Whether a text says no more than what is structured: all of that, or its only field.
fn repeats(text: &str, whole: &Value) -> bool {
    let only = whole.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    let parsed = serde_json::from_str::<Value>(text).ok();
    parsed.as_ref().is_some_and(|parsed| parsed == whole || only == Some(parsed))
        || only.and_then(Value::as_str) == Some(text)
}

pub(super) fn nonsense(server: &str, error: &serde_json::Error) -> Failure {
    Failure::failed(format!("`{server}` answers what makes no sense: {error}"))
}

/// What is shown of a text.
pub(super) struct Shown {
    pub(super) text: String,
    /// The file that has all of a longer one.
    pub(super) file: Option<String>,
    pub(super) is_cut: bool,
}

/// A text, or the beginning of one for which there is no room, which is kept. It is the text of that number in its answer.
pub(super) async fn kept(
    text: String,
    number: usize,
    room: usize,
    scope: &Arc<Scope>,
    notices: &mut Vec<String>,
) -> Shown {
    if text.len() <= room {
        return Shown { text, file: None, is_cut: false };
    }
    let redacted = scope.guard.redact(&text);
    let name = if number == 0 { format!("{}.answer", scope.id) } else { format!("{}.answer{number}", scope.id) };
    let mut capture = scope.output.capture(name, HEAD_CHARS.min(room), usize::MAX);
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
    Shown { text: captured.text, file: captured.stored, is_cut: true }
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
