//! The keys of a client's entry, read by their meaning. What is not taken over is said, and what is unknown is listed.

use super::super::super::setup::usage;
use super::read::Entry;
use serde_json::{Map, Value};
use toolcrib::envelope::Failure;

/// What an entry says, as far as it is taken over.
#[derive(Default)]
pub(super) struct Fields {
    /// The program and its arguments; empty where it has a `url`.
    pub(super) command: Vec<String>,
    pub(super) url: String,
    pub(super) variables: Vec<(String, String)>,
    /// Variables of the user's environment that it is given under their own names.
    pub(super) passed: Vec<String>,
    pub(super) headers: Vec<(String, String)>,
    /// Headers whose values are variables of the user's environment.
    pub(super) passed_headers: Vec<(String, String)>,
    /// The variable of the user's environment that has its token.
    pub(super) bearer: Option<String>,
    /// The tools that are offered, if not all are.
    pub(super) allowed: Option<Vec<String>>,
    pub(super) denied: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) is_disabled: bool,
    /// What is not taken over, a sentence each.
    pub(super) notes: Vec<String>,
    pub(super) unknown: Vec<String>,
}

/// The longest time of a call that a section takes, in milliseconds.
const MOST_MS: u64 = 86_400_000;

impl Fields {
    /// Reads an entry.
    ///
    /// # Errors
    ///
    /// When a key that is taken over has a value of another type.
    pub(super) fn of(entry: &Entry) -> Result<Self, Failure> {
        let Some(fields) = &entry.fields else { return Err(usage("its entry is not a table")) };
        let mut read = Self::default();
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            read.take(key, value)
                .ok_or_else(|| usage(format!("its `{}` has a type that is not known", key.escape_debug())))?;
        }
        if !fields.contains_key("command") {
            read.command.clear();
        }
        Ok(read)
    }

    /// Takes a key; none where its value has another type.
    fn take(&mut self, key: &str, value: &Value) -> Option<()> {
        match key {
            "command" => self.command.insert(0, value.as_str()?.to_owned()),
            "args" => self.command.extend(texts(value)?),
            "url" | "serverUrl" | "httpUrl" => value.as_str()?.clone_into(&mut self.url),
            "env" => self.variables = pairs(value)?,
            "env_vars" => self.passed = names(value)?,
            "headers" | "http_headers" => self.headers.extend(pairs(value)?),
            "env_http_headers" => self.passed_headers = pairs(value)?,
            "bearer_token_env_var" => self.bearer = Some(value.as_str()?.to_owned()),
            "includeTools" | "enabled_tools" => self.allowed = Some(texts(value)?),
            "tools" if value.is_array() => self.allowed = Some(texts(value)?),
            "disabledTools" | "excludeTools" | "disabled_tools" => self.denied.extend(texts(value)?),
            "disabled" => self.is_disabled |= value.as_bool()?,
            "enabled" => self.is_disabled |= !value.as_bool()?,
            "tool_timeout_sec" => self.timeout_ms = milliseconds(value.as_f64()? * 1000.0),
            "timeout" => self.timeout_ms = milliseconds(value.as_f64()?),
            "type" => self.take_type(value.as_str()?),
            "description" | "name" => {}
            "trust" | "approve" | "autoApprove" | "alwaysAllow" | "default_tools_approval_mode" | "tools" => {
                let said = if value.is_object() || value.is_array() { String::new() } else { format!(" = {value}") };
                self.notes.push(format!(
                    "`{key}`{said} is not taken over: `confirm` and `reads` of its section say which calls a person is asked about"
                ));
            }
            "headersHelper" | "oauth" | "auth" | "authProviderType" | "scopes" => {
                self.notes
                    .push(format!("`{key}` is not taken over: give the server its login by a header or a variable"));
            }
            "envFile" => {
                self.notes.push("the variables of its `envFile` are not read: set those that the server needs".into())
            }
            "cwd" => self.notes.push("`cwd` is not taken over: the server is started in a home of its own".into()),
            "sandbox" | "sandboxEnabled" | "dev" | "required" | "startup_timeout_sec" | "startup_timeout_ms" => {
                self.notes.push(format!("`{key}` is not taken over"));
            }
            unknown => self.unknown.push(unknown.to_owned()),
        }
        Some(())
    }

    fn take_type(&mut self, kind: &str) {
        if kind == "sse" {
            self.notes
                .push("its `type` is `sse`: the server may speak only that older form, which is not supported".into());
        }
    }
}

fn milliseconds(given: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within its bounds")]
    let whole = |given: f64| given.clamp(1.0, MOST_MS as f64) as u64;
    given.is_finite().then(|| whole(given))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(text).collect()
}

fn pairs(value: &Value) -> Option<Vec<(String, String)>> {
    let object: &Map<String, Value> = value.as_object()?;
    let given = object.iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

/// Names, or tables with a `name`.
fn names(value: &Value) -> Option<Vec<String>> {
    let name = |entry: &Value| entry.as_str().or_else(|| entry.get("name")?.as_str()).map(str::to_owned);
    value.as_array()?.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::super::clients::Client;
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn read(entry: Value) -> Result<Fields, Failure> {
        Fields::of(&Entry {
            client: Client::Codex,
            file: "/x".into(),
            table: Vec::new(),
            name: "x".into(),
            fields: entry.as_object().cloned(),
            inputs: BTreeMap::new(),
            is_refused: false,
        })
    }

    #[test]
    fn keys_are_taken_noted_or_listed() {
        let fields = read(json!({
            "args": ["a", 1], "command": "p", "env": { "A": "x", "B": true, "C": null }, "env_vars": ["D", { "name": "E" }],
            "tool_timeout_sec": 1.5, "enabled": false, "trust": true, "disabled_tools": ["t"], "enabled_tools": [], "odd": 1,
        }))
        .unwrap();
        assert_eq!(fields.command, ["p", "a", "1"]);
        assert_eq!(fields.variables, [("A".into(), "x".into()), ("B".into(), "true".into())]);
        assert_eq!(
            (fields.passed, fields.timeout_ms, fields.is_disabled),
            (vec!["D".into(), "E".into()], Some(1500), true)
        );
        assert_eq!((fields.denied, fields.allowed), (vec!["t".to_owned()], Some(vec![])));
        assert!(fields.notes[0].starts_with("`trust` = true is not taken over"), "{:?}", fields.notes);
        assert_eq!(fields.unknown, ["odd"]);
        assert!(read(json!({ "command": ["p"] })).is_err() && read(json!("p")).is_err());
    }
}
