//! What a capability may know of the call it serves: who asks, when to stop, where output and events go, what to audit.
//!
//! Made and closed with its `Call`; a plugin's guest code never sees it.

use crate::audit::{Action, Actions, Audit, Subject};
use crate::backend::Backend;
use crate::browser::Programs;
use crate::call::Principal;
use crate::call::session::Session;
use crate::capability::embedder::Pending;
use crate::config::{Config, Leaks, Limits, Remedies};
use crate::egress::Egress;
use crate::embedder::agents::AgentSessions;
use crate::embedder::{Embedder, NoEmbedder};
use crate::embeddings::Embeddings;
use crate::envelope::Failure;
use crate::event::{Event, EventSink, GuestEvents, NoEvents};
use crate::jobs::Jobs;
use crate::jobs::rehearsal::Purpose;
use crate::kept_output::OutputStore;
use crate::leaks::{Guard, StandIns};
use crate::policy::approval::{Approvals, Approver, Nobody};
use crate::policy::in_force::InForce;
use crate::sandbox::trial::Trial;
use crate::secrets::Secrets;
use crate::store::Store;
use crate::text::id::random_id;
use crate::tmux::Panes;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One call, seen from inside.
pub(crate) struct Scope {
    /// 128 random bits in hex; marks the call's processes and kept output.
    pub(crate) id: String,
    pub(crate) principal: Principal,
    pub(crate) tool: String,
    pub(crate) session: Arc<Session>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) panes: Panes,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) embedder: Arc<dyn Embedder>,
    /// The events of all calls that wait for the embedder.
    pub(crate) pending: Arc<Pending>,
    pub(crate) agents: Arc<AgentSessions>,
    pub(crate) store: Arc<Store>,
    pub(crate) jobs: Arc<Jobs>,
    /// What the call is made for.
    pub(crate) purpose: Purpose,
    pub(crate) cancel: CancellationToken,
    pub(crate) output: Arc<OutputStore>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) browsers: Arc<Programs>,
    pub(crate) secrets: Arc<Secrets>,
    /// The settings, for who may look at them.
    pub(crate) settings: Weak<InForce>,
    /// Looks after what leaves the call.
    pub(crate) guard: Guard,
    /// What is other about it, where somebody tries the plugin.
    pub(crate) trial: Trial,
    /// What its guest has in place of secrets.
    pub(crate) stand_ins: StandIns,
    pub(crate) limits: Limits,
    pub(crate) remedies: Remedies,
    pub(crate) clock: Clock,
    /// How far the guest's clock is ahead of this machine's.
    pub(crate) ahead: Duration,
    /// Digest of the plugin's component, once it is known.
    pub(crate) plugin: OnceLock<String>,
    audit: Weak<Audit>,
    /// What came of the first line in the audit trail, once that is written.
    accepted: OnceLock<Result<Option<String>, Failure>>,
    events: Arc<dyn EventSink>,
    guest_events: GuestEvents,
    actions: Mutex<Recorded>,
    touched_state: AtomicBool,
    kept: Mutex<Vec<String>>,
}

/// The actions of a call so far.
#[derive(Default)]
struct Recorded {
    actions: Actions,
    /// They are written down: nothing is added.
    closed: bool,
}

/// What a scope is made of.
pub(crate) struct ScopeParts {
    pub(crate) principal: Principal,
    pub(crate) tool: String,
    pub(crate) session: Arc<Session>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) panes: Panes,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) agents: Arc<AgentSessions>,
    pub(crate) store: Arc<Store>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) purpose: Purpose,
    pub(crate) cancel: CancellationToken,
    pub(crate) output: Arc<OutputStore>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) browsers: Arc<Programs>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) settings: Weak<InForce>,
    pub(crate) leaks: Leaks,
    pub(crate) trial: Trial,
    pub(crate) limits: Limits,
    pub(crate) remedies: Remedies,
    /// Where the call is recorded, if it is one.
    pub(crate) audit: Weak<Audit>,
}

impl Scope {
    pub(crate) fn new(parts: ScopeParts) -> Self {
        Self {
            id: parts.purpose.id().unwrap_or_else(random_id),
            principal: parts.principal,
            tool: parts.tool,
            session: parts.session,
            backend: parts.backend,
            panes: parts.panes,
            approver: parts.approver,
            approvals: parts.approvals,
            embedder: parts.embedder,
            pending: parts.pending,
            agents: parts.agents,
            store: parts.store,
            jobs: parts.jobs,
            purpose: parts.purpose,
            cancel: parts.cancel,
            output: parts.output,
            egress: parts.egress,
            browsers: parts.browsers,
            guard: Guard::new(parts.secrets.clone(), parts.leaks, parts.remedies.clone()),
            trial: parts.trial,
            stand_ins: StandIns::default(),
            secrets: parts.secrets,
            settings: parts.settings,
            guest_events: GuestEvents::new(&parts.limits),
            limits: parts.limits,
            remedies: parts.remedies,
            clock: Clock::start(),
            ahead: Duration::ZERO,
            plugin: OnceLock::new(),
            audit: parts.audit,
            accepted: OnceLock::new(),
            events: parts.events,
            actions: Mutex::default(),
            touched_state: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    /// The scope in which a plugin is asked what it offers: nobody watches, nobody approves.
    pub(crate) fn for_definitions(config: &Config, backend: Arc<dyn Backend>, egress: Arc<Egress>) -> Self {
        Self::of_host("definitions", config, backend, egress, Arc::new(Secrets::none()))
    }

    /// The scope of what the host does for no call: the same.
    pub(crate) fn of_host(
        what: &str,
        config: &Config,
        backend: Arc<dyn Backend>,
        egress: Arc<Egress>,
        secrets: Arc<Secrets>,
    ) -> Self {
        let store = Arc::new(Store::new(PathBuf::new(), config.store.clone(), Embeddings::none()));
        Self::new(ScopeParts {
            principal: "toolcrib".into(),
            tool: what.into(),
            session: Arc::default(),
            backend,
            panes: Panes::None,
            events: Arc::new(NoEvents),
            approver: Arc::new(Nobody),
            approvals: Arc::default(),
            embedder: Arc::new(NoEmbedder),
            pending: Arc::new(Pending::new(config.embedder.max_pending)),
            agents: Arc::default(),
            jobs: Arc::new(Jobs::new(store.clone(), config, String::new())),
            store,
            purpose: Purpose::Act,
            cancel: CancellationToken::new(),
            output: Arc::new(OutputStore::none()),
            egress,
            browsers: Arc::default(),
            secrets,
            settings: Weak::new(),
            leaks: config.leaks.clone(),
            trial: Trial::default(),
            limits: config.limits.clone(),
            remedies: Remedies::default(),
            audit: Weak::new(),
        })
    }

    /// The same at another time, for the guest.
    pub(crate) fn ahead(self, ahead: Duration) -> Self {
        Self { ahead, ..self }
    }

    /// Whom lines of the audit trail speak of.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            call: &self.id,
            principal: &self.principal,
            tool: &self.tool,
            plugin_sha256: self.plugin.get().map(String::as_str),
            backend: self.backend.name(),
            toolset: self.session.toolset().map(|toolset| toolset.name()),
        }
    }

    /// Writes the first line of the call, unless that was done. Nothing leaves the call before: grants and events are behind this.
    ///
    /// # Errors
    ///
    /// `unavailable` where a record is required and cannot be made.
    pub(crate) fn accept(&self) -> Result<(), Failure> {
        let accept = || self.audit.upgrade().map_or(Ok(None), |audit| audit.accepted(self.subject()));
        self.accepted.get_or_init(accept).as_ref().map(|_| ()).map_err(Failure::clone)
    }

    /// What came of the first line, if it was written by now: what the result has to say where it is missing.
    pub(crate) fn accepted(&self) -> Option<&Result<Option<String>, Failure>> {
        self.accepted.get()
    }

    /// Emits an event of the host's own.
    pub(crate) fn emit(&self, event: Event) {
        if self.accept().is_ok() {
            self.emit_last(event);
        }
    }

    /// Emits the event that ends all others.
    pub(crate) fn emit_last(&self, event: Event) {
        self.events.emit(self.guard.event(event));
    }

    /// Somebody looks at the events.
    pub(crate) fn is_watched(&self) -> bool {
        self.events.is_watched()
    }

    /// Emits an event of the guest's with so many bytes of text, within its caps.
    pub(crate) fn emit_for_guest(&self, text_bytes: usize, event: impl FnOnce() -> Event) {
        if self.accept().is_ok() {
            self.guest_events.emit(&*self.events, text_bytes, || self.guard.event(event()));
        }
    }

    /// Milliseconds since the session has looked at `what` and found the same text; none when it is new.
    pub(crate) fn unchanged_ms(&self, what: String, text: &str) -> Option<u64> {
        self.session.unchanged(what, text).map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Keeps an action for the audit trail, while that is not closed.
    pub(crate) fn record(&self, action: Action) {
        let action = self.guard.recorded(action);
        let mut recorded = self.actions.lock();
        if !recorded.closed {
            recorded.actions.push(action);
        }
    }

    /// What is done beside a guest, as its requests are, may find the call at its end: then it is on no record, and must not be done.
    ///
    /// # Errors
    ///
    /// `cancelled`, once the record is closed.
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.actions.lock().closed { Err(Failure::cancelled()) } else { Ok(()) }
    }

    /// All actions of the call, which has come to its end.
    pub(crate) fn close(&self) -> Actions {
        let mut recorded = self.actions.lock();
        recorded.closed = true;
        recorded.actions.clone()
    }

    /// Keeps the actions of a call that is part of this one.
    pub(crate) fn record_all(&self, actions: Actions) {
        self.actions.lock().actions.add(actions);
    }

    pub(crate) fn actions(&self) -> Actions {
        self.actions.lock().actions.clone()
    }

    /// Notes a file of output that was cut.
    pub(crate) fn remember_kept(&self, path: &str) {
        self.kept.lock().push(path.to_owned());
    }

    pub(crate) fn kept(&self) -> Vec<String> {
        self.kept.lock().clone()
    }

    /// Notes that the call has changed something, so that earlier failures may not repeat.
    pub(crate) fn touch_state(&self) {
        self.touched_state.store(true, Ordering::Relaxed);
        self.session.forget_looks();
    }

    pub(crate) fn has_touched_state(&self) -> bool {
        self.touched_state.load(Ordering::Relaxed)
    }
}

/// The call's own time: it stands still while the call waits for a command or a person.
pub(crate) struct Clock {
    state: Mutex<ClockState>,
    changed: Notify,
}

struct ClockState {
    spent: Duration,
    running_since: Instant,
    waits: u32,
}

/// Stops the clock while it lives.
pub(crate) struct Waiting<'c>(&'c Clock);

impl Clock {
    fn start() -> Self {
        let state = ClockState { spent: Duration::ZERO, running_since: Instant::now(), waits: 0 };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(crate) fn waiting(&self) -> Waiting<'_> {
        let mut state = self.state.lock();
        if state.waits == 0 {
            let ran = state.running_since.elapsed();
            state.spent += ran;
        }
        state.waits += 1;
        self.changed.notify_one();
        Waiting(self)
    }

    /// The call waits for a command or a person, not for its guest.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state.lock().waits > 0
    }

    fn left(&self, budget: Duration) -> Option<Duration> {
        let state = self.state.lock();
        (state.waits == 0).then(|| budget.saturating_sub(state.spent + state.running_since.elapsed()))
    }

    /// Returns when the call has spent `budget` of its own time.
    pub(crate) async fn spent(&self, budget: Duration) {
        loop {
            match self.left(budget) {
                Some(Duration::ZERO) => return,
                Some(left) => {
                    let _ = tokio::time::timeout(left, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.waits -= 1;
        if state.waits == 0 {
            state.running_since = Instant::now();
        }
        self.0.changed.notify_one();
    }
}
