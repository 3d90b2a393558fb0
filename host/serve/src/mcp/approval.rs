//! Asking the person at the client: in the older eras while the request runs, in the newer one by letting the call wait for a
//! second request.
//!
//! A call hands its question to whoever serves the request, and waits. In the newer era the waiting call is held here, under a random
//! word that is sealed into the `requestState`: it opens once, for the same caller, tool and arguments, and not for long. A question
//! that is asked again does not run the action again.

use super::LAST_WORD;
use super::call::Running;
use async_trait::async_trait;
use base::text::id::random_id;
use base::text::{columns, sanitize};
use parking_lot::Mutex;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, InputResponses, RequestStateCodec, SealOptions, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use toolcrib::config::Verdict;
use toolcrib::policy::approval::{Answer, ApprovalRequest, Approver};

/// Calls that wait for a person at one time.
const MAX_WAITING: usize = 100;
/// The name of the question, under which its answer comes.
const QUESTION: &str = "approval";
/// The field of the form, and its values.
const FIELD: &str = "decision";
const ONCE: &str = "allow once";
const SESSION: &str = "allow for this session";
const UNCONFINED: &str = "allow once, unconfined";
const DENY: &str = "deny";
/// No person answers sooner: what comes before that, and is no yes, the client says by itself.
const SOONEST: Duration = Duration::from_millis(300);
/// Columns of a row, so that no client has to scroll to its end.
const ROW_COLUMNS: usize = 76;

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
                "use a client with elicitation; or, if the policy allows it, start `toolcrib --yes serve` or set {}",
                request.kind.setting()
            ),
        }
    }

    fn name(&self) -> &'static str {
        "nobody"
    }

    fn is_read(&self) -> bool {
        false
    }
}

/// A client that can be asked by whoever serves its request.
pub(super) struct Deferred {
    pub(super) asking: mpsc::Sender<Asked>,
    /// It answers each question in a request of its own, so that none has to wait for another.
    pub(super) is_stateless: bool,
}

/// A question of a call that waits for its answer.
pub(super) struct Asked {
    pub(super) request: ApprovalRequest,
    pub(super) answer: oneshot::Sender<Answer>,
    pub(super) since: Instant,
}

#[async_trait]
impl Approver for Deferred {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { request: request.clone(), answer, since: Instant::now() };
        // Whoever would answer has gone if either fails.
        let _ = self.asking.send(asked).await;
        answered.await.unwrap_or_else(|_| Answer::Nobody {
            reason: "the client has not come back with an answer".into(),
            hint: "send the call again".into(),
        })
    }

    fn name(&self) -> &'static str {
        "the person at the client"
    }

    fn asks_one_at_a_time(&self) -> bool {
        !self.is_stateless
    }
}

impl Asked {
    /// Asks a client of the older eras, from within its request: over HTTP the question then goes where the request's answer goes. The
    /// client is notified when it is withdrawn; over HTTP on the stream that it has opened by GET, if any.
    pub(super) async fn elicit(self, context: &RequestContext<RoleServer>) {
        let Self { request, mut answer, since } = self;
        let question = ServerRequest::ElicitRequest(ElicitRequest::new(form(&request)));
        let sent = context.peer.send_cancellable_request(question, PeerRequestOptions::no_options()).await;
        let answered = match sent {
            Ok(mut question) => tokio::select! {
                answered = &mut question.rx => answered.unwrap_or(Err(ServiceError::TransportClosed)),
                () = answer.closed() => {
                    let told = question.cancel(Some("the question is no longer open".into()));
                    let _ = timeout(LAST_WORD, told).await;
                    return;
                }
            },
            Err(error) => Err(error),
        };
        // What a client that has given the call up says of its question comes after that, and counts no more.
        if context.ct.is_cancelled() {
            return answer.closed().await;
        }
        let says = match answered {
            Ok(ClientResult::ElicitResult(result)) => answer_of(&result, since.elapsed()),
            Ok(_) => Answer::No,
            // A client that has left ends its calls, which is not for an answer to do.
            Err(ServiceError::TransportClosed) => return answer.closed().await,
            Err(error) => Answer::Nobody {
                reason: format!("the client did not answer the question: {error}"),
                hint: "try again, or run the action where you can be asked".into(),
            },
        };
        let _ = answer.send(says);
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
    pub(super) since: Instant,
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
        let Asked { request, answer, since } = asked;
        let word = random_id();
        let mut waiting = self.waiting.lock();
        // Those whose time is up have come to their end by themselves.
        waiting.retain(|_, waiting| !waiting.running.has_ended());
        if waiting.len() >= MAX_WAITING {
            return Err(Waiting { running, answer, since });
        }
        waiting.insert(word.clone(), Waiting { running, answer, since });
        let options = SealOptions::new().associated_data(binding).ttl(self.lifetime);
        let state = self.codec.seal_with(word.as_bytes(), &options);
        let question = InputRequest::Elicitation(ElicitRequest::new(form(&request)));
        Ok(InputRequiredResult::new(Some([(QUESTION.to_owned(), question)].into()), Some(state)))
    }

    /// Takes the call that the state was made for, once.
    pub(super) fn take(&self, state: &str, binding: &[u8]) -> Option<Waiting> {
        let word = self.codec.open_with(state, binding).ok()?;
        let word = String::from_utf8(word).ok()?;
        self.waiting.lock().remove(&word)
    }
}

/// The person's answer among those that came with a request, so long after the question; without one, no.
pub(super) fn answer_among(responses: Option<&InputResponses>, after: Duration) -> Answer {
    result_among(responses).map_or(Answer::No, |result| answer_of(&result, after))
}

fn result_among(responses: Option<&InputResponses>) -> Option<ElicitResult> {
    serde_json::from_value(responses?.get(QUESTION)?.clone()).ok()
}

/// Whether a client came back with a decision, and not only for the result.
pub(super) fn has_decided(responses: Option<&InputResponses>) -> bool {
    result_among(responses).is_some_and(|result| result.action != ElicitationAction::Cancel)
}

/// Only a plain yes is one. Clients that declare forms and show none decline at once, or accept without an answer: that is no person's no.
fn answer_of(result: &ElicitResult, after: Duration) -> Answer {
    let decision = result.content.as_ref().and_then(|content| content.get(FIELD));
    let unseen = |how: &str| Answer::Unseen { how: format!("the client {how}") };
    match (&result.action, decision.and_then(Value::as_str)) {
        (ElicitationAction::Accept, Some(ONCE)) => Answer::Yes,
        (ElicitationAction::Accept, Some(SESSION)) => Answer::YesForSession,
        // Where it was not offered it is not a yes: the host knows.
        (ElicitationAction::Accept, Some(UNCONFINED)) => Answer::Unconfined,
        (ElicitationAction::Accept, _) if decision.is_none() => {
            unseen("accepted the question without an answer in its form")
        }
        (ElicitationAction::Decline, _) if after < SOONEST => unseen("declined the question at once"),
        (ElicitationAction::Cancel, _) if after < SOONEST => unseen("cancelled the question at once"),
        _ => Answer::No,
    }
}

/// The whole action, and what can be answered.
fn form(request: &ApprovalRequest) -> ElicitRequestParams {
    let mut decisions = vec![ONCE, SESSION, DENY];
    let mut covers = format!("`{SESSION}` covers {} until the session ends", request.all());
    if let Some(out) = request.out() {
        decisions.insert(2, UNCONFINED);
        covers += &format!("; `{UNCONFINED}` covers {out}");
    }
    let schema = json!({
        "type": "object",
        "properties": { FIELD: {
            "type": "string",
            "title": "Decision",
            "description": covers,
            "enum": decisions,
        } },
        "required": [FIELD],
    });
    let requested_schema: ElicitationSchema =
        serde_json::from_value(schema).expect("the form is one of the protocol's");
    ElicitRequestParams::FormElicitationParams { meta: None, message: question(request), requested_schema }
}

/// Headline, what comes from outside in quoted rows, and the headline again: a form that is scrolled shows it at either end.
fn question(request: &ApprovalRequest) -> String {
    let plain = |text: &str| text.to_owned();
    let foreign = request.foreign().map(|part| quoted(part.label, part.text)).collect::<String>();
    let (headline, summary) = (request.headline(plain), request.summary(plain));
    format!("{headline}\n\n{foreign}{}\n{summary}", kept(request))
}

/// A text in rows that no row of the host's looks like.
fn quoted(label: &str, text: &str) -> String {
    let rows = text.lines().flat_map(|line| columns::rows(line, ROW_COLUMNS));
    let rows = rows.map(|row| format!("{} {}\n", if row.start == 0 { ">" } else { ">…" }, row.text));
    format!("{label}:\n{}", rows.collect::<String>())
}

/// What a person types in a terminal to answer it always so; empty where no rule can. The action is in it, so that it is quoted.
fn kept(request: &ApprovalRequest) -> String {
    let lines = |verdict| sanitize::visible(&request.rule_lines(verdict).join("\n")).into_owned();
    if request.rules.is_empty() {
        return String::new();
    }
    quoted("to answer this always", &lines(Verdict::Allow)) + &quoted("or never", &lines(Verdict::Deny))
}
