//! Which events a plugin may hand to the program around the host: the kinds of its section, then a person's approval.
//!
//! Making and delivering an event is `capability/embedder.rs`; whether a secret is in it is `leaks/`.

use super::approval::{ActionKind, By, Landing, Question};
use crate::explain::words::{distinct, listed};
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::scope::Scope;
use crate::session::ApprovalKey;
use crate::{Bound, Policy};
use audit::Action;
use base::capability::Capability;
use base::envelope::Failure;
use base::event_kind::{KindPattern, any_covers};
use config::{Config, Needed, Remedies};
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// A file that belongs to an event, as it was when the event was handed over.
#[derive(Clone, Debug, Serialize)]
pub struct AttachedFile {
    /// As people are to see it.
    pub name: String,
    /// For example `image/png`.
    pub media_type: String,
    /// Its content.
    #[serde(skip)]
    pub content: Arc<[u8]>,
}

/// The kind of the events by which the host asks for an approval. No plugin hands one over.
pub const QUESTION: &str = "approval.ask";

/// Where events go, whatever the backend, as people read it.
const THERE: &str = "the embedder";

/// What one plugin may hand to the embedder.
#[derive(Clone)]
pub struct EmbedderGrant {
    plugin: String,
    label: String,
    sha256: String,
    kinds: Vec<Vec<KindPattern>>,
    confirm: Vec<KindPattern>,
    timeout: Duration,
    approval_timeout: Duration,
    remedies: Remedies,
}

/// What an event is, for whoever is asked and for the record.
pub struct Shown<'e> {
    pub kind: &'e str,
    pub payload: &'e Value,
    pub files: &'e [AttachedFile],
}

impl Grant for EmbedderGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        if bound.rights.kinds.iter().any(Vec::is_empty) {
            let line = "embedder.kinds = [\"message.send\"]";
            return Err(policy.not_granted(plugin, bound, Capability::Embedder, line, "--event KIND"));
        }
        Ok(Self::new(plugin, bound.rights.kinds.clone(), &bound.config))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let kinds = distinct(self.kinds().iter().map(|list| listed(list, "none")).collect());
        let clause = |verdict, detail, decided_by| Clause { subject: "embedder", verdict, detail, decided_by };
        let (verdict, asked) = match self.confirms() {
            [] => ("allowed", "events go to the embedder without a question".to_owned()),
            kinds => ("asks", format!("a person is shown events of these kinds first: {}", listed(kinds, "none"))),
        };
        vec![
            clause(
                "allowed",
                format!("events for the embedder: {}", kinds.join(", of these only ")),
                explained.own("embedder.kinds"),
            ),
            clause(verdict, asked, explained.decided("embedder.confirm")),
        ]
    }
}

impl EmbedderGrant {
    pub(super) fn new(plugin: &Manifest, kinds: Vec<Vec<KindPattern>>, config: &Config) -> Self {
        Self {
            plugin: plugin.name().into(),
            label: plugin.id.label(),
            sha256: plugin.sha256().into(),
            kinds,
            confirm: config.embedder.confirm.clone(),
            timeout: Duration::from_millis(config.embedder.timeout_ms),
            approval_timeout: Duration::from_millis(config.approval.timeout_ms),
            remedies: config.remedies(),
        }
    }

    /// The kinds that it may hand over: meant by every one of these lists.
    #[must_use]
    pub fn kinds(&self) -> &[Vec<KindPattern>] {
        &self.kinds
    }

    /// The kinds that a person is shown first.
    #[must_use]
    pub fn confirms(&self) -> &[KindPattern] {
        &self.confirm
    }

    /// How long an answer is waited for at most.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Decides on a kind.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn admit(&self, kind: &str) -> Result<(), Failure> {
        let name = &self.plugin;
        if kind == QUESTION {
            return Err(Failure::denied(format!("`{name}` may not hand over `{kind}`: only the host asks questions"))
                .hint("give the event another kind"));
        }
        if self.kinds.iter().all(|list| any_covers(list, kind)) {
            return Ok(());
        }
        Err(Failure::denied(format!("`{name}` may not hand over events of the kind `{kind}`")).hint(
            self.remedies.hint(
                &format!("plugin.{name}.embedder.kinds"),
                &Needed::Entry(kind),
                format!("add \"{kind}\" to `embedder.kinds` under [plugin.{name}]"),
            ),
        ))
    }

    /// Has a person admit an event, where settings ask for that. Returns who or what allowed it.
    pub fn approve<'a>(&'a self, event: &'a Shown<'a>, scope: &'a Scope) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            if !any_covers(&self.confirm, event.kind) {
                return Ok("embedder.confirm".into());
            }
            let mut details = serde_json::to_string_pretty(event.payload).expect("a payload is JSON");
            for file in event.files {
                let bytes = file.content.len();
                let _ = write!(details, "\nwith the file {} ({}, {bytes} bytes)", file.name, file.media_type);
            }
            let question = Question {
                // An approval for the session covers one kind: what a plugin may say it may not thereby do.
                key: ApprovalKey::new(&self.sha256, Capability::Embedder, ActionKind::Event, event.kind),
                plugin: &self.label,
                site: &Landing { backend: THERE.into(), ..Landing::default() },
                confinement: None,
                lent: None,
                action: event.kind,
                details: Some(&details),
                declaration: None,
                subject: None,
                also: &[],
                refused: None,
                timeout: self.approval_timeout,
            };
            let answer: Result<_, (Failure, By)> = question.ask(scope).await;
            answer.map(|consent| consent.by.into_owned()).map_err(|(refusal, _)| refusal)
        })
    }

    /// Writes down what became of an event: its kind, the digest of what was handed over, and its end.
    pub fn record(event: &Shown<'_>, decision: String, scope: &Scope) {
        let payload = event.payload.to_string();
        let mut what = format!("{} sha256:{} ({} bytes", event.kind, digest(payload.as_bytes()), payload.len());
        for file in event.files {
            let _ = write!(what, ", file {} sha256:{}", file.name, digest(&file.content));
        }
        what.push(')');
        scope.record(Action { capability: Capability::Embedder, confinement: None, what, declaration: None, decision });
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
