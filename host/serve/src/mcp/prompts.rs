//! Prompts of servers of others: words for a conversation that a person asks for. They are called as tools are, and passed on as prompts.

use super::Inner;
use super::call::{Outcome, refused};
use super::tools::{FRESH_MS, page};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use toolcrib::envelope::Output;
use toolcrib::tools::definition::Tool;

impl Inner {
    /// Lists the prompts that follow `cursor`, which is the name of the last one of the page before.
    pub(super) async fn list_prompts(
        &self,
        cursor: Option<String>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let _turn = self.lists.acquire().await;
        self.client.has_room().await;
        let mut prompts = self.prompts(self.sessions.of(context)?).await;
        prompts.sort_by(|one, other| one.name().cmp(other.name()));
        let (prompts, next) = page(&prompts, cursor, |prompt| prompt.name());
        let prompts: Vec<Value> = prompts.iter().map(|prompt| definition(prompt)).collect();
        let mut list = json!({
            "prompts": prompts, "resultType": "complete", "ttlMs": FRESH_MS, "cacheScope": "private",
        });
        if let Some(next) = next {
            list["nextCursor"] = next.into();
        }
        serde_json::from_value(list).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Asks a server for a prompt.
    pub(super) async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let tools = self.catalog.current();
        let is_prompt = tools.plugins().any(|plugin| plugin.prompts.contains(&request.name));
        if !is_prompt {
            let data = json!({ "name": request.name });
            return Err(ErrorData::invalid_params("there is no such prompt", Some(data)));
        }
        let mut params = CallToolRequestParams::new(request.name);
        params.arguments = request.arguments;
        (params.request_state, params.input_responses) = (request.request_state, request.input_responses);
        match self.call_for(params, context).await? {
            Outcome::InputRequired(wanted) => Ok(wanted.into()),
            Outcome::Ended(envelope, _) => envelope.outcome.map_err(refused).and_then(got).map(GetPromptResponse::from),
        }
    }
}

/// A prompt as clients have it: the schema of its arguments is a list of these.
fn definition(prompt: &Tool) -> Value {
    let said = prompt.definition();
    let required = said.input_schema["required"].as_array().cloned().unwrap_or_default();
    let arguments = said.input_schema["properties"].as_object().into_iter().flatten().map(|(name, schema)| {
        let mut argument = json!({ "name": name, "required": required.contains(&json!(name)) });
        if let Some(description) = schema.get("description") {
            argument["description"] = description.clone();
        }
        argument
    });
    let mut definition =
        json!({ "name": prompt.name(), "description": said.summary, "arguments": arguments.collect::<Vec<_>>() });
    if let Some(title) = &said.title {
        definition["title"] = title.clone().into();
    }
    definition
}

/// What the call of a prompt has for the client.
fn got(output: Output) -> Result<GetPromptResult, ErrorData> {
    let mut result = json!({ "messages": output.result.get("messages"), "resultType": "complete" });
    if let Some(description) = output.result.get("description") {
        result["description"] = description.clone();
    }
    if !output.notices.is_empty() {
        result["_meta"] = json!({ "notices": output.notices });
    }
    serde_json::from_value(result)
        .map_err(|error| ErrorData::internal_error(format!("the prompt is not valid in MCP: {error}"), None))
}
