//! Asking the person behind the client: in the older eras while the call runs, in the newer one by letting the call wait for a second request.
//!
//! A waiting call is held here, under a random word that is sealed into the `requestState`: it opens once, for the same caller, tool and
//! arguments, and not for long. Nothing that is asked for again runs again.

use super::call::Running;
use crate::policy::approval::{ActionKind, Answer, ApprovalRequest, Approver};
use crate::scope::random_id;
use async_trait::async_trait;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, InputResponses, RequestStateCodec, SealOptions,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Calls that wait for a person at one time.
const MAX_WAITING: usize = 100;
/// The name of the question, under which its answer comes.
const QUESTION: &str = "approval";
/// The field of the form, and its values.
const FIELD: &str = "decision";
const ONCE: &str = "allow once";
const SESSION: &str = "allow for this session";
const DENY: &str = "deny";

/// Whether the client can show a form.
pub(super) fn can_be_asked(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // Clients that name no mode mean forms (2025-06-18).
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// A client that has no forms.
pub(super) struct CannotBeAsked;

#[async_trait]
impl Approver for CannotBeAsked {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        Answer::Nobody {
            reason: "the action needs an approval, and this client cannot ask for one (it has no elicitation)".into(),
            hint: format!(
                "use a client with elicitation, start `toolcrib --yes serve`, or set `{} = false` under [tools]",
                request.kind.setting()
            ),
        }
    }

    fn name(&self) -> &'static str {
        "nobody"
    }
}

/// A client of the older eras, asked while the call runs.
pub(super) struct Elicit(pub(super) Peer<RoleServer>);

#[async_trait]
impl Approver for Elicit {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        match self.0.create_elicitation(form(request)).await {
            Ok(result) => answer(&result),
            Err(error) => Answer::Nobody {
                reason: format!("the client did not answer the question: {error}"),
                hint: "try again, or run the action where you can be asked".into(),
            },
        }
    }

    fn name(&self) -> &'static str {
        "the person at the client"
    }
}

/// A client of the newer era: the question is handed to whoever serves the request, and the call waits.
pub(super) struct Deferred(pub(super) mpsc::Sender<Asked>);

/// A question of a call that waits for its answer.
pub(super) struct Asked {
    pub(super) request: ApprovalRequest,
    pub(super) answer: oneshot::Sender<Answer>,
}

#[async_trait]
impl Approver for Deferred {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { request: request.clone(), answer };
        let nobody = || Answer::Nobody {
            reason: "the client has not come back with an answer".into(),
            hint: "send the call again".into(),
        };
        if self.0.send(asked).await.is_err() {
            return nobody();
        }
        answered.await.unwrap_or_else(|_| nobody())
    }

    fn name(&self) -> &'static str {
        "the person at the client"
    }

    /// Each has its own request, and is answered in a request of its own.
    fn asks_one_at_a_time(&self) -> bool {
        false
    }
}

/// Calls that wait for a second request.
pub(super) struct Pending {
    codec: RequestStateCodec,
    lifetime: Duration,
    waiting: Mutex<HashMap<String, Waiting>>,
}

/// A call that has asked.
pub(super) struct Waiting {
    pub(super) running: Running,
    pub(super) answer: oneshot::Sender<Answer>,
}

impl Pending {
    /// `lifetime` is how long a person may take.
    pub(super) fn new(lifetime: Duration) -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system has random numbers");
        let codec = RequestStateCodec::try_new(key).expect("the key is as long as it has to be");
        Self { codec, lifetime, waiting: Mutex::default() }
    }

    /// Lets a call wait for the answer; `binding` says whose it is and what it does. Gives the call back when too many wait.
    pub(super) fn park(&self, running: Running, asked: Asked, binding: &[u8]) -> Result<InputRequiredResult, Waiting> {
        let Asked { request, answer } = asked;
        let word = random_id();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Those whose time is up have come to their end by themselves.
        waiting.retain(|_, waiting| !waiting.running.has_ended());
        if waiting.len() >= MAX_WAITING {
            return Err(Waiting { running, answer });
        }
        waiting.insert(word.clone(), Waiting { running, answer });
        let options = SealOptions::new().associated_data(binding).ttl(self.lifetime);
        let state = self.codec.seal_with(word.as_bytes(), &options);
        let question = InputRequest::Elicitation(ElicitRequest::new(form(&request)));
        Ok(InputRequiredResult::new(Some([(QUESTION.to_owned(), question)].into()), Some(state)))
    }

    /// Takes the call that the state was made for, once.
    pub(super) fn take(&self, state: &str, binding: &[u8]) -> Option<Waiting> {
        let word = self.codec.open_with(state, binding).ok()?;
        let word = String::from_utf8(word).ok()?;
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&word)
    }
}

/// The person's answer among those that came with a request; without one, no.
pub(super) fn answer_among(responses: Option<&InputResponses>) -> Answer {
    let result = responses.and_then(|responses| responses.get(QUESTION)).cloned();
    let result = result.and_then(|result| serde_json::from_value::<ElicitResult>(result).ok());
    result.map_or(Answer::No, |result| answer(&result))
}

/// Only a plain yes is one.
fn answer(result: &ElicitResult) -> Answer {
    let decision = result.content.as_ref().and_then(|content| content.get(FIELD)).and_then(Value::as_str);
    match (&result.action, decision) {
        (ElicitationAction::Accept, Some(ONCE)) => Answer::Yes,
        (ElicitationAction::Accept, Some(SESSION)) => Answer::YesForSession,
        _ => Answer::No,
    }
}

/// The whole action, and what can be answered.
fn form(request: &ApprovalRequest) -> ElicitRequestParams {
    let schema = json!({
        "type": "object",
        "properties": { FIELD: {
            "type": "string",
            "title": "Decision",
            "description": format!("`{SESSION}` covers all that this plugin does in this way until the session ends"),
            "enum": [ONCE, SESSION, DENY],
        } },
        "required": [FIELD],
    });
    let requested_schema: ElicitationSchema =
        serde_json::from_value(schema).expect("the form is one of the protocol's");
    ElicitRequestParams::FormElicitationParams { meta: None, message: question(request), requested_schema }
}

fn question(request: &ApprovalRequest) -> String {
    let ApprovalRequest { kind, tool, plugin, backend, action, declaration } = request;
    let does = match kind {
        ActionKind::Command => "run on",
        ActionKind::Request => "send from",
    };
    let flags = [(declaration.mutation, ", changes something"), (declaration.privesc, ", needs more rights")];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
    let plugin = plugin.strip_prefix(tool.as_str()).map_or_else(|| format!(" of {plugin}"), str::to_owned);
    let why = if declaration.why.is_empty() { String::new() } else { format!("Why: {}\n", declaration.why) };
    format!("{tool}{plugin} wants to {does} {backend}, declared {} risk{flags}\n{why}\n{action}", declaration.risk)
}
