//! What a server asks of a client, and what comes back: forms, a model's words, roots.
//!
//! Up to 2025-11-25 these are requests of their own; from 2026-07-28 on they are part of a result that wants more input.

use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, ListRootsRequest, ListRootsResult, SamplingMessage,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A form whose fields all have to be filled in.
pub(super) fn form(message: &str, fields: &Value) -> ElicitRequestParams {
    let required: Vec<_> = fields.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    let schema = json!({"type": "object", "properties": fields, "required": required});
    let requested_schema = serde_json::from_value(schema).expect("the forms of the fixture are of the protocol's kind");
    ElicitRequestParams::FormElicitationParams { meta: None, message: message.into(), requested_schema }
}

/// A question to the client's model.
pub(super) fn sampling(prompt: &str, max_tokens: u32) -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], max_tokens)
}

/// The form as part of a result.
pub(super) fn for_form(message: &str, fields: &Value) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(form(message, fields)))
}

/// The question as part of a result.
pub(super) fn for_sampling(prompt: &str, max_tokens: u32) -> InputRequest {
    InputRequest::CreateMessage(CreateMessageRequest::new(sampling(prompt, max_tokens)))
}

pub(super) fn for_roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// The result that asks for more.
///
/// # Errors
///
/// The client did not declare what it takes to answer.
pub(super) fn input_required(
    context: &RequestContext<RoleServer>,
    requests: impl IntoIterator<Item = (&'static str, InputRequest)>,
    state: Option<String>,
) -> Result<InputRequiredResult, ErrorData> {
    let requests: InputRequests = requests.into_iter().map(|(key, request)| (key.into(), request)).collect();
    match requests.values().find(|request| !is_supported(context, request)) {
        Some(request) => Err(ErrorData::missing_required_client_capability(needed(request))),
        None => Ok(InputRequiredResult::new(Some(requests), state)),
    }
}

/// Whether the client declared that it can answer.
pub(super) fn is_supported(context: &RequestContext<RoleServer>, request: &InputRequest) -> bool {
    let declared = context.client_capabilities().unwrap_or_default();
    let needed = needed(request);
    (needed.elicitation.is_none() || declared.elicitation.is_some())
        && (needed.sampling.is_none() || declared.sampling.is_some())
        && (needed.roots.is_none() || declared.roots.is_some())
}

fn needed(request: &InputRequest) -> ClientCapabilities {
    match request {
        InputRequest::CreateMessage(_) => ClientCapabilities::builder().enable_sampling().build(),
        InputRequest::ListRoots(_) => ClientCapabilities::builder().enable_roots().build(),
        _ => ClientCapabilities::builder().enable_elicitation().build(),
    }
}

/// What was filled into one field of a form that the client accepted.
pub(super) fn field(responses: Option<&InputResponses>, key: &str, field: &str) -> Option<Value> {
    let answer: ElicitResult = response(responses, key)?;
    (answer.action == ElicitationAction::Accept).then_some(answer.content?.get(field)?.clone())
}

/// The same as text.
pub(super) fn text(responses: Option<&InputResponses>, key: &str, name: &str) -> Option<String> {
    field(responses, key, name)?.as_str().map(str::to_owned)
}

/// What the model said.
pub(super) fn sampled(responses: Option<&InputResponses>, key: &str) -> Option<String> {
    words(&response(responses, key)?)
}

pub(super) fn words(result: &CreateMessageResult) -> Option<String> {
    Some(result.message.content.first()?.as_text()?.text.clone())
}

/// The URIs of the roots.
pub(super) fn roots(responses: Option<&InputResponses>, key: &str) -> Option<Vec<String>> {
    let result: ListRootsResult = response(responses, key)?;
    Some(result.roots.into_iter().map(|root| root.uri).collect())
}

/// What does not read as an answer is as good as none: it is asked for again.
fn response<T: DeserializeOwned>(responses: Option<&InputResponses>, key: &str) -> Option<T> {
    serde_json::from_value(responses?.get(key)?.clone()).ok()
}
