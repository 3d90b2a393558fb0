//! How a result looks: text for a person at a terminal, or the exact bytes of one field. A program gets the envelope itself.

use super::screen::{is_one_terminal, is_terminal, notice, print, print_bytes, print_json, report};
use super::setup::usage;
use serde_json::Value;
use std::borrow::Cow;
use toolcrib::envelope::{Content, Envelope, Failure, Output};

/// What to write of an envelope.
pub(super) enum Form {
    /// Text where a person reads it, else the envelope.
    Usual,
    /// The envelope, wherever it goes.
    Json,
    /// One field of the result, by its path.
    Raw(String),
}

/// Writes the envelope, and to stderr what it says beside its result.
pub(super) fn show(envelope: &Envelope, form: &Form) -> Result<(), Failure> {
    match (form, &envelope.outcome) {
        (Form::Raw(place), Ok(output)) => {
            raw(output, place)?;
            output.notices.iter().for_each(|text| notice(text));
        }
        (Form::Usual, Ok(output)) if is_terminal() => {
            text(output)?;
            output.notices.iter().for_each(|text| notice(text));
        }
        (Form::Raw(_), Err(failure)) => _ = report(failure),
        (Form::Usual, Err(failure)) if is_terminal() => {
            failure.data.iter().try_for_each(|data| print(&shown(data)).map(|_| ()))?;
            report(failure);
        }
        (Form::Usual | Form::Json, outcome) => {
            print_json(&envelope.to_json())?;
            tell(outcome.as_ref().err());
        }
    }
    Ok(())
}

/// Reports a failure in words, unless the person has just read it in the result.
pub(super) fn tell(failure: Option<&Failure>) {
    if let Some(failure) = failure.filter(|_| !is_one_terminal()) {
        report(failure);
    }
}

fn text(output: &Output) -> Result<(), Failure> {
    let mut text = shown(&output.result);
    for content in &output.content {
        text += &match content {
            Content::Text(text) => line(text),
            Content::Link(uri) => line(uri),
            Content::Image(media_type, bytes) | Content::Audio(media_type, bytes) => {
                line(&format!("[{media_type}, {} bytes]", bytes.len()))
            }
        };
    }
    print(&text).map(|_| ())
}

/// A value as a person reads it: a text as it is, fields below each other, what is empty left out.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => line(text),
        Value::Bool(_) | Value::Number(_) => line(&value.to_string()),
        Value::Array(items) => {
            let gap = if items.iter().any(is_nested) { "\n" } else { "" };
            items.iter().map(shown).collect::<Vec<_>>().join(gap)
        }
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| field(name, &shown(value), is_nested(value))).collect()
        }
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn field(name: &str, shown: &str, is_nested: bool) -> String {
    match shown.trim_end_matches('\n') {
        "" => String::new(),
        text if text.contains('\n') || is_nested => {
            let rows: String = shown.lines().map(|row| format!("{}\n", format!("  {row}").trim_end())).collect();
            format!("{name}:\n{rows}")
        }
        text => format!("{name}: {text}\n"),
    }
}

/// The text, with an end of line.
fn line(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Writes one field, and adds nothing to it.
fn raw(output: &Output, place: &str) -> Result<(), Failure> {
    let found = find(&output.result, place).map(Raw::from).or_else(|| part(&output.content, place));
    match found.ok_or_else(|| missing(output, place))? {
        Raw::Text(text) if is_terminal() => print(&line(&text)),
        Raw::Text(text) => print_bytes(text.as_bytes()),
        Raw::Bytes(media_type, _) if is_terminal() => {
            return Err(usage(format!("`{place}` is {media_type}, which a terminal does not show"))
                .hint("write it to a file: add `> FILE`"));
        }
        Raw::Bytes(_, bytes) => print_bytes(bytes),
    }
    .map(|_| ())
}

/// What a field holds.
enum Raw<'o> {
    Text(Cow<'o, str>),
    Bytes(&'o str, &'o [u8]),
}

impl<'o> From<&'o Value> for Raw<'o> {
    fn from(value: &'o Value) -> Self {
        Self::Text(value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed))
    }
}

/// Returns what is at a path: `.` is all, `a.0.b` goes down by name and number, and so does JSON's own pointer `/a/0/b`.
fn find<'v>(value: &'v Value, place: &str) -> Option<&'v Value> {
    if place == "." {
        return Some(value);
    }
    if place.starts_with('/') {
        return value.pointer(place);
    }
    place.split('.').try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Returns the part of the content that `content.0` names.
fn part<'o>(content: &'o [Content], place: &str) -> Option<Raw<'o>> {
    let number: usize = place.strip_prefix("content.")?.parse().ok()?;
    Some(match content.get(number)? {
        Content::Text(text) | Content::Link(text) => Raw::Text(text.into()),
        Content::Image(media_type, bytes) | Content::Audio(media_type, bytes) => Raw::Bytes(media_type, bytes),
    })
}

fn missing(output: &Output, place: &str) -> Failure {
    let fields = output.result.as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`"));
    let parts = (0..output.content.len()).map(|number| format!("`content.{number}`"));
    let there: Vec<String> = fields.chain(parts).chain(["`.` for all of it".into()]).collect();
    usage(format!("the call succeeded, and its result has no field `{place}`"))
        .hint(format!("it has {}", there.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_stand_below_each_other_and_empty_ones_are_left_out() {
        let result = json!({ "exit_code": 0, "stdout": "one\ntwo\n", "stderr": "", "notices": [], "done": true });
        assert_eq!(shown(&result), "exit_code: 0\nstdout:\n  one\n  two\ndone: true\n");
        assert_eq!(shown(&json!("text")), "text\n");
        let hits =
            json!({ "results": [{ "title": "A", "url": "a" }, { "title": "B", "url": "b" }], "tags": ["x", "y"] });
        let expected = "results:\n  title: A\n  url: a\n\n  title: B\n  url: b\ntags:\n  x\n  y\n";
        assert_eq!(shown(&hits), expected);
    }

    #[test]
    fn a_field_is_found_by_names_and_numbers() {
        let result = json!({ "a": [{ "b.c": "deep" }], "d": 1 });
        for (place, expected) in [("a.0", json!({ "b.c": "deep" })), ("/a/0/b.c", json!("deep")), ("d", json!(1))] {
            assert_eq!(find(&result, place), Some(&expected), "{place}");
        }
        assert_eq!(find(&result, "."), Some(&result));
        assert!(["", "a.1", "a.x", "d.0", "e"].iter().all(|place| find(&result, place).is_none()));
    }
}
