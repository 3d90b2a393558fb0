//! Tools that need more input and say so in their result, as 2026-07-28 has it: the client calls again with the answers.

use super::ask;
use super::catalog::{Call, Entry, done, said};
use rmcp::model::{CallToolResponse, ErrorData, InputRequest, SealOptions};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) const TOOLS: &[Entry] = &[
    Entry::plain("test_input_required_result_elicitation", "Asks for a name and greets it.", |call| done(name(&call))),
    Entry::plain("test_streaming_elicitation", "Asks for a name in its result, not beside it.", |call| {
        done(name(&call))
    }),
    Entry::plain("test_input_required_result_sampling", "Asks the client's model.", |call| {
        done(capital(&call, "capital_question"))
    }),
    Entry::plain("test_missing_capability", "Asks the client's model, for which the client has to have one.", |call| {
        done(capital(&call, "question"))
    }),
    Entry::plain("test_input_required_result_list_roots", "Asks for the client's roots.", |call| done(roots(&call))),
    Entry::plain("test_input_required_result_request_state", "Asks, and wants its state back.", |call| {
        done(confirm(&call))
    }),
    Entry::plain("test_input_required_result_tampered_state", "Asks, and refuses a state that was changed.", |call| {
        done(confirm(&call))
    }),
    Entry::plain("test_input_required_result_multiple_inputs", "Asks three things at once.", |call| done(three(&call))),
    Entry::plain("test_input_required_result_multi_round", "Asks twice.", |call| done(rounds(&call))),
    Entry::plain("test_input_required_result_capabilities", "Asks for what the client can answer.", |call| {
        done(whatever_is_possible(&call))
    }),
];

/// How long a client may take to answer.
const STATE_LASTS: Duration = Duration::from_secs(600);

impl Call {
    /// Asks for more.
    pub(super) fn wants<const N: usize>(
        &self,
        requests: [(&'static str, InputRequest); N],
        state: Option<String>,
    ) -> Result<CallToolResponse, ErrorData> {
        ask::input_required(&self.context, requests, state).map(Into::into)
    }

    /// One field of a form that came back.
    pub(super) fn answer(&self, key: &str, field: &str) -> Option<String> {
        ask::text(self.request.input_responses.as_ref(), key, field)
    }

    /// The state to send along: signed, and of use with this tool only.
    fn sealed(&self, state: &str) -> Option<String> {
        let options = SealOptions::new().associated_data(self.request.name.as_bytes()).ttl(STATE_LASTS);
        Some(self.fixture.seal.seal_with(state.as_bytes(), &options))
    }

    /// The state that came back, if any did.
    fn opened(&self) -> Result<Option<String>, ErrorData> {
        let Some(state) = &self.request.request_state else { return Ok(None) };
        let opened = self.fixture.seal.open_with(state, self.request.name.as_bytes());
        let opened = opened.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        Ok(Some(String::from_utf8_lossy(&opened).into_owned()))
    }
}

/// A form of one field that takes a text.
pub(super) fn one_text(message: &str, name: &str) -> InputRequest {
    ask::for_form(message, &json!({name: {"type": "string"}}))
}

fn name(call: &Call) -> Result<CallToolResponse, ErrorData> {
    match call.answer("user_name", "name") {
        Some(name) => Ok(said(format!("Hello, {name}!")).into()),
        None => call.wants([("user_name", one_text("What is your name?", "name"))], None),
    }
}

fn capital(call: &Call, key: &'static str) -> Result<CallToolResponse, ErrorData> {
    match ask::sampled(call.request.input_responses.as_ref(), key) {
        Some(text) => Ok(said(text).into()),
        None => call.wants([(key, ask::for_sampling("What is the capital of France?", 100))], None),
    }
}

fn roots(call: &Call) -> Result<CallToolResponse, ErrorData> {
    match ask::roots(call.request.input_responses.as_ref(), "client_roots") {
        Some(roots) => Ok(said(format!("The roots are: {}", roots.join(", "))).into()),
        None => call.wants([("client_roots", ask::for_roots())], None),
    }
}

fn confirm(call: &Call) -> Result<CallToolResponse, ErrorData> {
    let answer = ask::field(call.request.input_responses.as_ref(), "confirm", "ok");
    match (call.opened()?, answer) {
        (Some(_), Some(Value::Bool(ok))) => Ok(said(format!("state-ok, and the answer was {ok}")).into()),
        _ => {
            let form = ask::for_form("Please confirm", &json!({"ok": {"type": "boolean"}}));
            call.wants([("confirm", form)], call.sealed("asked"))
        }
    }
}

fn three(call: &Call) -> Result<CallToolResponse, ErrorData> {
    let responses = call.request.input_responses.as_ref();
    let answers =
        (call.answer("user_name", "name"), ask::sampled(responses, "greeting"), ask::roots(responses, "client_roots"));
    match (call.opened()?, answers) {
        (Some(_), (Some(name), Some(greeting), Some(roots))) => {
            Ok(said(format!("{greeting} {name} has {} roots.", roots.len())).into())
        }
        _ => call.wants(
            [
                ("user_name", one_text("What is your name?", "name")),
                ("greeting", ask::for_sampling("Generate a greeting", 50)),
                ("client_roots", ask::for_roots()),
            ],
            call.sealed("asked"),
        ),
    }
}

/// The state carries the first answer to the last round.
fn rounds(call: &Call) -> Result<CallToolResponse, ErrorData> {
    let state = call.opened()?;
    let name = state.as_deref().and_then(|state| state.strip_prefix("name="));
    match (state.as_deref(), name, call.answer("step1", "name"), call.answer("step2", "color")) {
        (_, Some(name), _, Some(color)) => Ok(said(format!("{name} likes {color}.")).into()),
        (_, Some(name), _, None) => ask_color(call, name),
        (Some("asked"), None, Some(name), _) => ask_color(call, &name),
        _ => call.wants([("step1", one_text("Step 1: What is your name?", "name"))], call.sealed("asked")),
    }
}

fn ask_color(call: &Call, name: &str) -> Result<CallToolResponse, ErrorData> {
    let form = one_text("Step 2: What is your favorite color?", "color");
    call.wants([("step2", form)], call.sealed(&format!("name={name}")))
}

fn whatever_is_possible(call: &Call) -> Result<CallToolResponse, ErrorData> {
    if call.request.input_responses.is_some() {
        return Ok(said("Thank you for the answers.").into());
    }
    let mut requests = vec![
        ("user_name", one_text("What is your name?", "name")),
        ("greeting", ask::for_sampling("Generate a greeting", 50)),
        ("client_roots", ask::for_roots()),
    ];
    requests.retain(|(_, request)| ask::is_supported(&call.context, request));
    if requests.is_empty() {
        return Ok(said("There is nothing that this client could be asked.").into());
    }
    ask::input_required(&call.context, requests, None).map(Into::into)
}
