//! What a server wants to know in the middle of a call ("elicitation"), where settings allow it to ask: a person is shown its words with what it
//! proposes, and a yes gives it just that.
//!
//! Nothing is filled in, and no secret is given: what a server needs belongs among the arguments of a call, and its secrets into its section.

use super::listing::shown;
use super::message::NO_METHOD;
use super::wire::{Unanswered, Via};
use base::envelope::Failure;
use base::text::sanitize;
use config::UpstreamElicitation;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The method by which servers ask.
pub(super) const METHOD: &str = "elicitation/create";
/// Questions of a server in one call.
pub(super) const MOST: usize = 4;
/// Fields of a question, bytes of what is proposed for all, and characters of its words.
const MOST_FIELDS: usize = 32;
const MOST_BYTES: usize = 8 << 10;
const MOST_CHARS: usize = 2000;
/// What the names of secrets have in them.
const SECRET: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "credential",
    "privatekey",
    "cvv",
    "otp",
    "pin",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    mode: Option<String>,
    message: String,
    #[serde(default)]
    requested_schema: Form,
}

#[derive(Default, Deserialize)]
struct Form {
    #[serde(default)]
    properties: BTreeMap<String, Map<String, Value>>,
    #[serde(default)]
    required: Vec<String>,
}

/// A result that wants something first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Round<'r> {
    result_type: Option<String>,
    #[serde(borrow, default)]
    input_requests: BTreeMap<String, Asked<'r>>,
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Asked<'r> {
    method: String,
    #[serde(borrow)]
    params: &'r RawValue,
}

/// Whether a server may ask here.
pub(super) fn is_allowed(via: &Via<'_>) -> bool {
    match via.grant.section().elicitation {
        UpstreamElicitation::Ask => true,
        UpstreamElicitation::Refuse => false,
    }
}

/// What its request for input is answered with, as JSON.
pub(super) async fn answered(params: &RawValue, via: &Via<'_>) -> Value {
    let (words, content) = match proposed(params.get()) {
        Ok(proposed) => proposed,
        Err(why) => {
            via.scope.guard.notice(format!("a question of the server was declined: {why}"));
            return json!({ "action": "decline" });
        }
    };
    let proposal = if content.is_empty() { None } else { serde_json::to_string_pretty(&content).ok() };
    match via.grant.admit_answer(&words, proposal.as_deref(), via.scope).await {
        Ok(()) => json!({ "action": "accept", "content": content }),
        Err(refusal) => {
            let why = shown(&refusal.message);
            via.scope.guard.notice(format!("a question of the server was declined: {why}"));
            json!({ "action": "decline" })
        }
    }
}

/// What a call goes on with after a result that wants something first: members for its parameters. None where the result is the last one. `left` is
/// how many questions it may still ask.
pub(super) async fn went_on(result: &RawValue, left: &mut usize, via: &Via<'_>) -> Result<Option<String>, Unanswered> {
    if !is_allowed(via) {
        return Ok(None);
    }
    let Ok(round) = serde_json::from_str::<Round<'_>>(result.get()) else { return Ok(None) };
    if round.result_type.as_deref() != Some("input_required") {
        return Ok(None);
    }
    // One that asks nothing counts as well: it could go on for ever.
    *left = left.checked_sub(round.input_requests.len().max(1)).ok_or_else(too_often)?;
    let mut responses = Map::new();
    for (key, asked) in round.input_requests {
        let answer = match asked.method.as_str() {
            METHOD => answered(asked.params, via).await,
            // It wants what this client never said that it has.
            other => {
                let why = format!("it wants `{}` before it goes on, which is not answered here", shown(other));
                return Err(Unanswered::Lost(Failure::failed(why).data(json!({ "code": NO_METHOD }))));
            }
        };
        responses.insert(key, answer);
    }
    let state = round.request_state.map(|state| format!(",\"requestState\":{}", Value::from(state)));
    Ok(Some(format!(",\"inputResponses\":{}{}", Value::from(responses), state.unwrap_or_default())))
}

/// Why a call does not go on that has asked too often.
fn too_often() -> Unanswered {
    Unanswered::Lost(Failure::limit(format!("it asked more questions than a call may have (limit: {MOST})")))
}

/// The words of a question, and what its server proposes to answer.
fn proposed(params: &str) -> Result<(String, Map<String, Value>), String> {
    let wanted: Wanted =
        serde_json::from_str(params).map_err(|error| format!("it makes no sense: {}", shown(&error.to_string())))?;
    if let Some(mode) = wanted.mode.filter(|mode| mode != "form") {
        return Err(format!("it wants a person to do something elsewhere (`{}`)", shown(&mode)));
    }
    let Form { properties, required } = wanted.requested_schema;
    if properties.len() > MOST_FIELDS {
        return Err(format!("it has more than {MOST_FIELDS} fields"));
    }
    let name = |field: &str| sanitize::beginning(field, 64);
    let mut content = Map::new();
    for (field, said) in properties {
        if is_secret(&field, &said) {
            return Err(format!(
                "it asks for a secret, `{}`; what a server logs in with stands in its section",
                name(&field)
            ));
        }
        match said.get("default") {
            Some(proposal) => drop(content.insert(field, proposal.clone())),
            None if required.contains(&field) => {
                return Err(format!("it wants `{}` and proposes nothing; say it among the arguments", name(&field)));
            }
            None => {}
        }
    }
    if Value::from(content.clone()).to_string().len() > MOST_BYTES {
        return Err(format!("what it proposes has more than {} KiB", MOST_BYTES >> 10));
    }
    Ok((wanted.message.chars().take(MOST_CHARS).collect(), content))
}

/// Whether a field looks like one for a secret.
fn is_secret(field: &str, said: &Map<String, Value>) -> bool {
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if text("format") == "password" {
        return true;
    }
    [field.to_owned(), text("title"), text("description")].iter().any(|text| {
        let words: Vec<String> =
            text.split(|char: char| !char.is_alphanumeric()).map(str::to_ascii_lowercase).collect();
        let whole = words.concat();
        SECRET.iter().any(|secret| match secret.len() {
            // Short ones are parts of other words.
            ..=3 => words.iter().any(|word| word == secret),
            _ => whole.contains(secret),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: Value) -> Result<Map<String, Value>, String> {
        let params = json!({ "message": "Which?", "requestedSchema": schema }).to_string();
        proposed(&params).map(|(_, content)| content)
    }

    #[test]
    fn what_is_proposed_is_what_is_given() {
        let schema = json!({ "properties": {
            "name": { "type": "string", "default": "Ann" }, "age": { "type": "integer", "default": 30 }, "note": { "type": "string" },
        }, "required": ["name"] });
        assert_eq!(Value::from(of(schema).unwrap()), json!({ "name": "Ann", "age": 30 }));
        let missing = json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] });
        assert!(of(missing).unwrap_err().contains("proposes nothing"));
        assert!(proposed(r#"{"message":"x","mode":"url","url":"https://a.example"}"#).is_err());
        assert!(proposed("[]").is_err());
    }

    #[test]
    fn no_secret_is_given() {
        for field in ["password", "userPassword", "API key", "api_key", "access-token", "PIN", "Client Secret"] {
            let schema = json!({ "properties": { field: { "type": "string", "default": "x" } } });
            assert!(of(schema).unwrap_err().contains("asks for a secret"), "{field}");
        }
        let described = json!({ "properties": { "x": { "type": "string", "description": "Your passphrase" } } });
        assert!(of(described).is_err());
        for field in ["pinned", "spinning", "name", "option"] {
            assert!(of(json!({ "properties": { field: { "type": "string", "default": "x" } } })).is_ok(), "{field}");
        }
    }
}
