//! Tools that ask the client in the middle of a call, as the revisions up to 2025-11-25 have it.

use super::ask;
use super::catalog::{Call, Entry, said};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ElicitRequestParams, ErrorData};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "test_sampling",
        summary: "Asks the client's model.",
        input: || one_text("prompt", "What the model is asked."),
        call: |call| Box::pin(sample(call)),
    },
    Entry {
        name: "test_elicitation",
        summary: "Asks the user for a name and an address.",
        input: || one_text("message", "What the user is asked."),
        call: |call| Box::pin(elicit_contact(call)),
    },
    Entry::plain("test_elicitation_sep1034_defaults", "Asks with a form whose fields have defaults.", |call| {
        Box::pin(elicit(call, "Please check these values", defaults()))
    }),
    Entry::plain("test_elicitation_sep1330_enums", "Asks with a form of all kinds of choices.", |call| {
        Box::pin(elicit(call, "Please choose", choices()))
    }),
];

fn one_text(name: &str, description: &str) -> Value {
    json!({
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
        "additionalProperties": false,
    })
}

async fn sample(call: Call) -> Result<CallToolResponse, ErrorData> {
    Ok(match call.context.peer.create_message(ask::sampling(&call.text("prompt"), 100)).await {
        Ok(answer) => said(format!("LLM response: {}", ask::words(&answer).unwrap_or_default())).into(),
        Err(error) => refused(&error),
    })
}

async fn elicit_contact(call: Call) -> Result<CallToolResponse, ErrorData> {
    let fields = json!({
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    });
    let form = ask::form(&call.text("message"), &fields);
    Ok(filled(&call, form, "User response: ").await)
}

async fn elicit(call: Call, message: &str, fields: Value) -> Result<CallToolResponse, ErrorData> {
    Ok(filled(&call, ask::form(message, &fields), "Elicitation completed: ").await)
}

async fn filled(call: &Call, form: ElicitRequestParams, lead: &str) -> CallToolResponse {
    match call.context.peer.create_elicitation(form).await {
        Ok(answer) => {
            let action = json!(answer.action);
            let content = answer.content.unwrap_or_default();
            said(format!("{lead}action={}, content={content}", action.as_str().unwrap_or_default())).into()
        }
        Err(error) => refused(&error),
    }
}

fn refused(error: &ServiceError) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(format!("the client could not be asked: {error}"))]).into()
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    })
}

fn choices() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = |last: &str| {
        ["First", "Second", "Third"]
            .iter()
            .zip(1..)
            .map(|(nth, i)| json!({"const": format!("value{i}"), "title": format!("{nth} {last}")}))
            .collect::<Value>()
    };
    json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    })
}
