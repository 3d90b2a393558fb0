//! Who calls, and how to reach them.

use crate::tools::registry::Registry;
use audit::Batch;
use backend::Backend;
use base::principal::Principal;
use embedder::{Embedder, NoEmbedder};
use guest::capability::embedder::Scheduled;
use guest::sandbox::trial::Trial;
use policy::approval::{Approver, Nobody};
use policy::event::{EventSink, NoEvents};
use policy::purpose::Purpose;
use policy::session::Session;
use std::sync::Arc;
use tmux::Panes;
use tokio_util::sync::CancellationToken;

/// Who calls, and how to reach them. Begins with [`CallContext::new`]; what differs is set by the methods of the same names.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// Who asks, for audit, rates and repeats.
    pub principal: Principal,
    /// The caller's memory across calls.
    pub session: Arc<Session>,
    /// The tools as this session sees them.
    pub tools: Arc<Registry>,
    /// Where effects land.
    pub backend: Arc<dyn Backend>,
    /// The panes that calls can reach.
    pub panes: Panes,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Who can be asked.
    pub approver: Arc<dyn Approver>,
    /// The program around the host.
    pub embedder: Arc<dyn Embedder>,
    /// Ends the call: politely, then for certain.
    pub cancel: CancellationToken,
    /// The calls that are answered with this one.
    pub(super) batch: Option<Arc<Batch>>,
    /// What the call is made for.
    pub(crate) purpose: Purpose,
    /// An event whose time has come, which the call hands over: no guest runs.
    pub(crate) event: Option<Arc<Scheduled>>,
    pub(crate) trial: Trial,
}

impl CallContext {
    /// A caller whom nobody watches or approves, without panes or an embedder, who is never cancelled.
    #[must_use]
    pub fn new(principal: impl Into<Principal>, tools: Arc<Registry>, backend: Arc<dyn Backend>) -> Self {
        Self {
            principal: principal.into(),
            session: Arc::default(),
            tools,
            backend,
            panes: Panes::None,
            events: Arc::new(NoEvents),
            approver: Arc::new(Nobody),
            embedder: Arc::new(NoEmbedder),
            cancel: CancellationToken::new(),
            batch: None,
            purpose: Purpose::Act,
            event: None,
            trial: Trial::default(),
        }
    }

    /// The same for another caller.
    #[must_use]
    pub fn principal(self, principal: impl Into<Principal>) -> Self {
        Self { principal: principal.into(), ..self }
    }

    /// The same with another memory.
    #[must_use]
    pub fn session(self, session: Arc<Session>) -> Self {
        Self { session, ..self }
    }

    /// The same with other tools.
    #[must_use]
    pub fn tools(self, tools: Arc<Registry>) -> Self {
        Self { tools, ..self }
    }

    /// The same with effects elsewhere.
    #[must_use]
    pub fn backend(self, backend: Arc<dyn Backend>) -> Self {
        Self { backend, ..self }
    }

    /// The same with other panes.
    #[must_use]
    pub fn panes(self, panes: Panes) -> Self {
        Self { panes, ..self }
    }

    /// The same with events that go elsewhere.
    #[must_use]
    pub fn events(self, events: Arc<dyn EventSink>) -> Self {
        Self { events, ..self }
    }

    /// The same with somebody else to ask.
    #[must_use]
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        Self { approver, ..self }
    }

    /// The same with a program around it that takes events.
    #[must_use]
    pub fn embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, ..self }
    }

    /// The same, recorded with others.
    #[must_use]
    pub fn batch(self, batch: Option<Arc<Batch>>) -> Self {
        Self { batch, ..self }
    }

    /// The same, by which an author tries a plugin.
    #[must_use]
    pub fn trial(self, trial: Trial) -> Self {
        Self { trial, ..self }
    }

    /// The same, made for something else.
    pub(crate) fn purpose(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }

    /// The same, to hand over an event.
    pub(crate) fn event(self, event: Option<Arc<Scheduled>>) -> Self {
        Self { event, ..self }
    }

    /// The same, ended by another token.
    #[must_use]
    pub fn cancel(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }
}
