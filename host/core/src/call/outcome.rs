//! What a guest answered, as the caller gets it: within the bounds of a result, and without characters that would deceive who reads it.

use base::envelope::{Content, Failure, Kind, Output};
use base::text::sanitize;
use contract::definition::Tool;
use guest::capability::bindings::exports::toolcrib::plugin::tools;
use guest::capability::bindings::toolcrib::plugin::types;
use policy::scope::{PART_BYTES, Scope};
use std::borrow::Cow;

/// Takes what the guest answered, within the bounds of a result and of its own schema.
pub(crate) fn check_output(output: tools::Output, tool: &Tool, scope: &Scope) -> Result<Output, Failure> {
    let parts = output.content.iter().map(content_bytes).chain(output.notices.iter().map(String::len));
    let bytes = parts.map(|bytes| bytes + PART_BYTES).sum::<usize>();
    scope.check_size("result", output.json.len() + bytes)?;
    let result = serde_json::from_str(&output.json).map_err(|error| {
        Failure::failed(format!("the plugin's result is not JSON: {error}")).hint("this is a fault of the plugin")
    })?;
    tool.check_result(&result)?;
    let content = output.content.into_iter().map(Content::from).collect();
    Ok(Output { result, content, notices: output.notices, is_of_command: tool.definition().is_of_command })
}

/// Takes the failure that the guest returned, within the bounds of a result.
pub(crate) fn check_failure(failure: types::Failure, scope: &Scope) -> Failure {
    let types::Failure { kind, message, hint, data } = failure;
    let bytes = [Some(&message), hint.as_ref(), data.as_ref()].into_iter().flatten().map(String::len).sum();
    if let Err(too_large) = scope.check_size("failure", bytes) {
        return too_large;
    }
    let data = data.and_then(|data| serde_json::from_str(&data).ok().map(Box::new));
    Failure { kind: Kind::from_guest(&kind), message, hint, data }
}

fn content_bytes(content: &tools::Content) -> usize {
    match content {
        tools::Content::Text(text) | tools::Content::Link(text) => text.len(),
        tools::Content::Image((kind, bytes)) | tools::Content::Audio((kind, bytes)) => kind.len() + bytes.len(),
    }
}

fn clean(text: &mut String) {
    if let Cow::Owned(cleaned) = sanitize::text(text) {
        *text = cleaned;
    }
}

pub(super) fn clean_output(mut output: Output) -> Output {
    let changed = sanitize::json(&mut output.result);
    output.notices.iter_mut().for_each(clean);
    for content in &mut output.content {
        match content {
            Content::Text(text) | Content::Link(text) | Content::Image(text, _) | Content::Audio(text, _) => {
                clean(text)
            }
        }
    }
    let parts = output.content.len();
    output.content.retain(Content::is_what_it_says);
    if output.content.len() < parts {
        output.notices.push("an image or audio was left out whose media type is that of something else".into());
    }
    if changed {
        output.notices.push("control characters were removed from the result or made visible".into());
    }
    output
}

pub(super) fn clean_failure(mut failure: Failure) -> Failure {
    clean(&mut failure.message);
    failure.hint.iter_mut().for_each(clean);
    failure.data.iter_mut().for_each(|data| _ = sanitize::json(data));
    failure
}
