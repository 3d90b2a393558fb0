//! Arguments of `run_shell`, and the declaration that tools which change something take.

use serde_json::{Value, json};

/// A command, declared as one that changes something.
#[must_use]
pub fn command(text: &str) -> Value {
    declared(json!({ "command": text }))
}

/// The same, with a time to wait, such as `500ms`.
#[must_use]
pub fn waiting(text: &str, wait: impl Into<Value>) -> Value {
    with(command(text), "wait", wait)
}

/// A command, declared as one that changes nothing.
#[must_use]
pub fn harmless(text: &str) -> Value {
    with(command(text), "mutation", false)
}

/// Adds what the tools that change something want to know.
#[must_use]
pub fn declared(mut arguments: Value) -> Value {
    for (name, value) in
        [("risk", json!("low")), ("mutation", json!(true)), ("privesc", json!(false)), ("why", json!("a test"))]
    {
        arguments[name] = value;
    }
    arguments
}

/// Arguments with one of another value, or one more.
#[must_use]
pub fn with(mut arguments: Value, name: &str, value: impl Into<Value>) -> Value {
    arguments[name] = value.into();
    arguments
}
