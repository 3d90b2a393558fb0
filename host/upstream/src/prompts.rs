//! Prompts: words for a conversation that a server has ready, and that people ask for by name. They are called as tools are.

use super::resources::Named;
use super::result::{Block, Embedded, nonsense};
use base::envelope::{Failure, Output, is_media_type};
use base64::prelude::{BASE64_STANDARD as BASE64, Engine};
use parking_lot::Mutex;
use policy::scope::Scope;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What settings call a prompt. No tool of a server is called so, and none can become one of these.
pub(super) fn own_name(name: &str) -> String {
    format!("prompt:{name}")
}

/// What it is offered as, behind the name of its server.
pub(super) fn offered(name: &str) -> String {
    format!("prompt_{name}")
}

/// What its server calls it.
pub(super) fn name(definition: &Map<String, Value>) -> &str {
    definition.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The schema of its arguments, all of which are texts.
///
/// # Errors
///
/// What is wrong with what its server says of them, as the rest of a sentence.
pub(super) fn schema(definition: &Map<String, Value>) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct Argument {
        name: String,
        description: Option<String>,
        #[serde(default)]
        required: bool,
    }
    let said = definition.get("arguments").cloned().unwrap_or(Value::Null);
    let arguments: Option<Vec<Argument>> =
        serde_json::from_value(said).map_err(|error| format!("has arguments that make no sense: {error}"))?;
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for argument in arguments.unwrap_or_default() {
        let mut property = json!({ "type": "string" });
        if let Some(description) = argument.description {
            property["description"] = description.into();
        }
        if argument.required {
            required.push(argument.name.clone());
        }
        properties.insert(argument.name, property);
    }
    Ok(json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }))
}

/// What a server has answered: the result of `prompts/get` without content of unknown kinds.
pub(super) fn output(
    server: &str,
    answer: &RawValue,
    scope: &Arc<Scope>,
    named: &Mutex<Named>,
) -> Result<Output, Failure> {
    #[derive(Deserialize)]
    struct Said {
        description: Option<String>,
        #[serde(default)]
        messages: Vec<Message<Value>>,
    }
    let said: Said = serde_json::from_str(answer.get()).map_err(|error| nonsense(server, &error))?;
    let (mut messages, mut notices) = (Vec::new(), Vec::new());
    for Message { role, content } in said.messages {
        match content_of(content, server, named) {
            Some(content) if matches!(role.as_str(), "user" | "assistant") => messages.push(Message { role, content }),
            Some(_) | None => notices.push("a message of a kind that is not known here was left out".to_owned()),
        }
    }
    notices.dedup();
    let mut result = json!({ "messages": messages });
    if let Some(description) = said.description {
        result["description"] = description.into();
    }
    scope.check_size("result", result.to_string().len())?;
    Ok(Output { result, notices, ..Output::default() })
}

#[derive(Deserialize, Serialize)]
struct Message<C> {
    role: String,
    content: C,
}

/// The content of a message; addresses are those under which it is read here.
fn content_of(content: Value, server: &str, named: &Mutex<Named>) -> Option<Value> {
    let is_base64 = |data: &str| BASE64.decode(data).is_ok();
    let named = |uri: &str| {
        named.lock().remember(uri);
        super::resources::address(server, uri)
    };
    Some(match serde_json::from_value(content).ok()? {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Image { data, mime_type } if is_base64(&data) && is_media_type(&mime_type, "image") => {
            json!({ "type": "image", "data": data, "mimeType": mime_type })
        }
        Block::Audio { data, mime_type } if is_base64(&data) && is_media_type(&mime_type, "audio") => {
            json!({ "type": "audio", "data": data, "mimeType": mime_type })
        }
        Block::Resource { resource: Embedded { uri, text: Some(text), mime_type, .. } } => {
            let mut resource = json!({ "uri": named(&uri), "text": text });
            if let Some(mime_type) = mime_type {
                resource["mimeType"] = mime_type.into();
            }
            json!({ "type": "resource", "resource": resource })
        }
        Block::ResourceLink { uri, name } => {
            json!({ "type": "resource_link", "uri": named(&uri), "name": name.as_str().unwrap_or(&uri) })
        }
        Block::Image { .. } | Block::Audio { .. } | Block::Resource { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_texts_and_those_that_are_required_are() {
        let definition = json!({ "name": "p", "arguments": [
            { "name": "city", "description": "a town", "required": true }, { "name": "state" },
        ] });
        let schema = schema(definition.as_object().unwrap()).expect("arguments");
        assert_eq!(schema["properties"]["city"], json!({ "type": "string", "description": "a town" }));
        assert_eq!(schema["required"], json!(["city"]));
        assert!(super::schema(json!({ "arguments": "none" }).as_object().unwrap()).is_err());
        assert!(super::schema(json!({ "name": "p" }).as_object().unwrap()).is_ok());
    }
}
