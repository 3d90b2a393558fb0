//! The embedder as the one who answers approvals, where the user's settings say so (`[approval] embedder`). A question is an event, and its answer is
//! bound to what was shown: it names the digest of that.

use super::{Embedder, EmbedderEvent, End};
use async_trait::async_trait;
use base::principal::Principal;
use policy::approval::{Answer, ApprovalRequest, Approver};
use policy::embedder::QUESTION;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What an embedder answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    decision: Decision,
    digest: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Once,
    Session,
    Unconfined,
    No,
}

/// The embedder of one call, as the one who is asked.
pub struct EmbedderAsked {
    /// Who takes the questions.
    pub embedder: Arc<dyn Embedder>,
    /// Who called.
    pub principal: Principal,
    /// What the session was opened with.
    pub bindings: Map<String, Value>,
    /// How long an answer is waited for.
    pub timeout: Duration,
}

#[async_trait]
impl Approver for EmbedderAsked {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let payload = payload(request);
        let digest = payload["digest"].clone();
        let event = EmbedderEvent {
            call: String::new(),
            principal: self.principal.clone(),
            tool: request.tool.clone(),
            kind: QUESTION.into(),
            payload,
            bindings: self.bindings.clone(),
            files: Vec::new(),
            deadline: Some(self.timeout),
        };
        // Whoever asks drops this when nobody waits any more: the question is withdrawn then.
        match self.embedder.ask(event, CancellationToken::new()).await {
            End::Answered(answer) => answer_of(answer, &digest),
            End::Failed(failure) => nobody(format!("the embedder did not answer the question: {}", failure.message)),
            End::Unavailable(why) | End::Lost(why) => nobody(format!("the embedder cannot be asked: {why}")),
            End::Withdrawn => nobody("the question was withdrawn".into()),
        }
    }

    fn name(&self) -> &'static str {
        "the embedder"
    }
}

/// The question with the same words as at every door, and the digest of all of it.
fn payload(request: &ApprovalRequest) -> Value {
    let plain = |text: &str| text.to_owned();
    let rows: Vec<Value> = request.foreign().map(|part| json!({ "label": part.label, "text": part.text })).collect();
    let mut decisions = vec!["once", "session", "no"];
    if request.out().is_some() {
        decisions.push("unconfined");
    }
    let mut question = json!({
        "headline": request.headline(plain),
        "rows": rows,
        "summary": request.summary(plain),
        "session": request.all(),
        "decisions": decisions,
    });
    question["digest"] = hex::encode(Sha256::digest(question.to_string())).into();
    question
}

/// Only an answer to this very question counts.
fn answer_of(answer: Value, digest: &Value) -> Answer {
    let Ok(Decided { decision, digest: of }) = serde_json::from_value(answer) else {
        return nobody("the embedder's answer is not one: it wants {\"decision\": …, \"digest\": …}".into());
    };
    if digest.as_str() != Some(of.as_str()) {
        return nobody("the embedder answered another question: its `digest` is not that of what was shown".into());
    }
    match decision {
        Decision::Once => Answer::Yes,
        Decision::Session => Answer::YesForSession,
        // Where it was not offered it is not a yes: the host knows.
        Decision::Unconfined => Answer::Unconfined,
        Decision::No => Answer::No,
    }
}

fn nobody(reason: String) -> Answer {
    Answer::Nobody { reason, hint: "call again when the embedder can ask its user".into() }
}
