//! What a caller asks for: a tool and its arguments, held to bounds before anything else is done with them.

use crate::schema::depth;
use base::envelope::Failure;
use serde_json::Value;

/// How deep a call's arguments may be nested.
pub const ARGUMENTS_DEPTH: u64 = 64;
/// How large a call's arguments may be, in bytes.
pub const ARGUMENTS_BYTES: usize = 4 << 20;

/// What a caller asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// Arguments as they came.
#[derive(Clone, Debug)]
pub enum Arguments {
    /// A JSON value; an object, or the text of one, as model APIs hand it over.
    Json(Value),
    /// Text that should be a JSON object.
    Text(String),
}

impl Arguments {
    pub fn parse(&self) -> Result<Value, Failure> {
        let text = match self {
            Self::Json(Value::String(text)) | Self::Text(text) => text,
            Self::Json(value) => return check_arguments(value.clone()),
        };
        check_length(text)?;
        let value = serde_json::from_str(text).map_err(|error| {
            let hint = match error.is_eof() {
                true => {
                    "give one JSON object; this one breaks off: add the `\"`, `}` or `]` that is missing at its end"
                }
                false => "give one JSON object, such as {\"path\": \"a.txt\"}",
            };
            Failure::invalid(format!("the arguments are not JSON: {error}")).hint(hint)
        })?;
        check_arguments(value)
    }
}

pub fn check_length(text: &str) -> Result<(), Failure> {
    if text.len() <= ARGUMENTS_BYTES {
        return Ok(());
    }
    Err(Failure::invalid(format!("the arguments are more than {ARGUMENTS_BYTES} bytes"))
        .hint("put large content into a file"))
}

fn check_arguments(value: Value) -> Result<Value, Failure> {
    if !value.is_object() {
        return Err(Failure::invalid("the arguments are not a JSON object")
            .hint("give one JSON object, such as {\"path\": \"a.txt\"}"));
    }
    check_depth(&value)?;
    Ok(value)
}

pub(crate) fn check_depth(value: &Value) -> Result<(), Failure> {
    if depth(value) > ARGUMENTS_DEPTH {
        return Err(Failure::invalid(format!("the arguments nest deeper than {ARGUMENTS_DEPTH} levels")));
    }
    Ok(())
}
