//! The program around Toolcrib, which alone can speak to people and move its agents: the *embedder*.
//!
//! A tool hands it an event through the capability `embedder`; what may be handed over is decided in `policy/embedder.rs`. A door implements
//! [`Embedder`] its own way; those that speak in lines share [`Link`].
//!
//! It depends on `base` and `policy`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod agents;
mod approver;
mod link;

pub use approver::EmbedderAsked;
pub use base::event_kind::{KindPattern, any_covers, is_kind};
pub use link::{AnswerLine, ErrorLine, Link};

use async_trait::async_trait;
use base::envelope::Failure;
use base::principal::Principal;
pub use policy::embedder::{AttachedFile, QUESTION};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a tool hands to the embedder. Texts that people will see are sanitised.
#[derive(Clone, Debug)]
pub struct EmbedderEvent {
    /// The call that it comes from.
    pub call: String,
    /// Who called.
    pub principal: Principal,
    /// The tool that was called.
    pub tool: String,
    /// For example `message.send`.
    pub kind: String,
    /// A JSON object, whose members are those of the kind.
    pub payload: Value,
    /// What the session was opened with: the channel, the worker …, which no model gives.
    pub bindings: Map<String, Value>,
    /// Files that belong to it.
    pub files: Vec<AttachedFile>,
    /// How long an answer is waited for; none where none is.
    pub deadline: Option<Duration>,
}

/// How an event came to its end, which is one.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The embedder's answer, a JSON value.
    Answered(Value),
    /// The embedder could not do it, or would not.
    Failed(Failure),
    /// It was never delivered: why.
    Unavailable(String),
    /// It was delivered, and whoever had it is gone: it may have been done. Why.
    Lost(String),
    /// It was withdrawn, as the host had asked.
    Withdrawn,
}

/// The program around the host.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The kinds of events that it takes. Tools that hand over others are not offered.
    fn kinds(&self) -> Vec<KindPattern>;

    /// Hands an event over and waits for its end. Once `withdrawn` is cancelled nobody waits any more: the answer that is there already, or
    /// [`End::Withdrawn`]. Dropped, it is withdrawn as well.
    async fn ask(&self, event: EmbedderEvent, withdrawn: CancellationToken) -> End;

    /// Hands an event over without waiting; false where there was no room for it, and it is gone.
    fn tell(&self, event: EmbedderEvent) -> bool;

    /// Whether it takes events of a kind.
    fn takes(&self, kind: &str) -> bool {
        any_covers(&self.kinds(), kind)
    }
}

/// There is no program around the host that takes events.
pub struct NoEmbedder;

#[async_trait]
impl Embedder for NoEmbedder {
    fn kinds(&self) -> Vec<KindPattern> {
        Vec::new()
    }

    async fn ask(&self, _: EmbedderEvent, _: CancellationToken) -> End {
        End::Unavailable("there is no embedder".into())
    }

    fn tell(&self, _: EmbedderEvent) -> bool {
        false
    }
}
