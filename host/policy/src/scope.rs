//! What a decision may know of the call that it is made for: who asks, who answers, when to stop, where output and events go, what to audit.
//!
//! Made and closed with its call; a plugin's guest code never sees it. The services that capabilities need beside it are in a `Reach`.

use crate::approval::{Approvals, Approver, By, Nobody};
use crate::event::{Event, EventSink, GuestEvents, NoEvents};
use crate::guard::Guard;
use crate::purpose::Purpose;
use crate::rules::KeptRules;
use crate::session::Session;
use audit::{Action, Actions, Audit, Subject};
use backend::Backend;
use base::envelope::Failure;
use base::principal::Principal;
use base::text::id::random_id;
use config::{Config, Leaks, Limits, Remedies};
use futures_util::future::BoxFuture;
use kept_output::OutputStore;
use leaks::StandIns;
use parking_lot::Mutex;
use secrets::Secrets;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What a part of a result costs besides its text: its entry here, and its JSON in every envelope.
pub const PART_BYTES: usize = 256;

/// One call, seen from inside.
pub struct Scope {
    /// 128 random bits in hex; marks the call's processes and kept output.
    pub id: String,
    pub principal: Principal,
    pub tool: String,
    pub session: Arc<Session>,
    pub backend: Arc<dyn Backend>,
    pub approver: Arc<dyn Approver>,
    pub approvals: Arc<Approvals>,
    /// What the call is made for.
    pub purpose: Purpose,
    pub cancel: CancellationToken,
    pub output: Arc<OutputStore>,
    pub secrets: Arc<Secrets>,
    /// Looks after what leaves the call.
    pub guard: Guard,
    /// What its guest has in place of secrets.
    pub stand_ins: StandIns,
    pub limits: Limits,
    pub remedies: Remedies,
    /// The rules that answer questions; none where nobody made any.
    pub rules: Option<Arc<KeptRules>>,
    pub clock: Clock,
    /// Digest of the plugin's component, once it is known.
    pub plugin: OnceLock<String>,
    audit: Weak<Audit>,
    /// What came of the first line in the audit trail, once that is written.
    accepted: OnceLock<Result<Option<String>, Failure>>,
    events: Arc<dyn EventSink>,
    guest_events: GuestEvents,
    actions: Mutex<Recorded>,
    touched_state: AtomicBool,
    /// A person said no to something of this call.
    refused: AtomicBool,
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
pub struct ScopeParts {
    pub principal: Principal,
    pub tool: String,
    pub session: Arc<Session>,
    pub backend: Arc<dyn Backend>,
    pub events: Arc<dyn EventSink>,
    pub approver: Arc<dyn Approver>,
    pub approvals: Arc<Approvals>,
    pub purpose: Purpose,
    pub cancel: CancellationToken,
    pub output: Arc<OutputStore>,
    pub secrets: Arc<Secrets>,
    pub leaks: Leaks,
    pub limits: Limits,
    pub remedies: Remedies,
    pub rules: Option<Arc<KeptRules>>,
    /// Where the call is recorded, if it is one.
    pub audit: Weak<Audit>,
}

impl Scope {
    pub fn new(parts: ScopeParts) -> Self {
        Self {
            id: parts.purpose.id().unwrap_or_else(random_id),
            principal: parts.principal,
            tool: parts.tool,
            session: parts.session,
            backend: parts.backend,
            approver: parts.approver,
            approvals: parts.approvals,
            purpose: parts.purpose,
            cancel: parts.cancel,
            output: parts.output,
            guard: Guard::new(parts.secrets.clone(), parts.leaks, parts.remedies.clone()),
            stand_ins: StandIns::default(),
            secrets: parts.secrets,
            guest_events: GuestEvents::new(&parts.limits),
            limits: parts.limits,
            remedies: parts.remedies,
            rules: parts.rules,
            clock: Clock::start(),
            plugin: OnceLock::new(),
            audit: parts.audit,
            accepted: OnceLock::new(),
            events: parts.events,
            actions: Mutex::default(),
            touched_state: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    /// The scope of what the host does for no call: nobody watches, nobody approves.
    pub fn of_host(what: &str, config: &Config, backend: Arc<dyn Backend>, secrets: Arc<Secrets>) -> Self {
        Self::new(ScopeParts {
            principal: "toolcrib".into(),
            tool: what.into(),
            session: Arc::default(),
            backend,
            events: Arc::new(NoEvents),
            approver: Arc::new(Nobody),
            approvals: Arc::default(),
            purpose: Purpose::Act,
            cancel: CancellationToken::new(),
            output: Arc::new(OutputStore::none()),
            secrets,
            leaks: config.leaks.clone(),
            limits: config.limits.clone(),
            remedies: Remedies::default(),
            rules: None,
            audit: Weak::new(),
        })
    }

    /// Whom lines of the audit trail speak of.
    pub fn subject(&self) -> Subject<'_> {
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
    pub fn accept(&self) -> Result<(), Failure> {
        let accept = || self.audit.upgrade().map_or(Ok(None), |audit| audit.accepted(self.subject()));
        self.accepted.get_or_init(accept).as_ref().map(|_| ()).map_err(Failure::clone)
    }

    /// What came of the first line, if it was written by now: what the result has to say where it is missing.
    pub fn accepted(&self) -> Option<&Result<Option<String>, Failure>> {
        self.accepted.get()
    }

    /// Emits an event of the host's own.
    pub fn emit(&self, event: Event) {
        if self.accept().is_ok() {
            self.emit_last(event);
        }
    }

    /// Emits the event that ends all others.
    pub fn emit_last(&self, event: Event) {
        self.events.emit(self.guard.event(event));
    }

    /// A person said no to something of this call.
    pub(crate) fn note_refused(&self) {
        self.refused.store(true, Ordering::Release);
    }

    pub(crate) fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Acquire)
    }

    /// Somebody looks at the events.
    pub fn is_watched(&self) -> bool {
        self.events.is_watched()
    }

    /// Emits an event of the guest's with so many bytes of text, within its caps.
    pub fn emit_for_guest(&self, text_bytes: usize, event: impl FnOnce() -> Event) {
        if self.accept().is_ok() {
            self.guest_events.emit(&*self.events, text_bytes, || self.guard.event(event()));
        }
    }

    /// Milliseconds since the session has looked at `what` and found the same text; none when it is new.
    pub fn unchanged_ms(&self, what: String, text: &str) -> Option<u64> {
        self.session.unchanged(what, text).map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The refusal of what a rule of the user's denies.
    pub(crate) async fn denied_by_rule(&self, subject: &crate::rules::Subject) -> Option<(Failure, By)> {
        self.rules.as_ref()?.denied(subject, self).await
    }

    /// Which rule of the user's allows it.
    pub(crate) async fn allowed_by_rule(&self, subject: &crate::rules::Subject) -> Option<By> {
        self.rules.as_ref()?.allowed(subject, self).await
    }

    /// Holds what is answered against the bound of a result.
    ///
    /// # Errors
    ///
    /// `limit`, with the bound.
    pub fn check_size(&self, what: &str, bytes: usize) -> Result<(), Failure> {
        let most = self.limits.result_kib;
        if bytes as u64 <= most << 10 {
            return Ok(());
        }
        let hint = self.remedies.raise("limits.result_kib", most, "ask for less");
        Err(Failure::limit(format!("limit: {what} {most} KiB, this one has {bytes} bytes")).hint(hint))
    }

    /// Keeps an action for the audit trail, while that is not closed.
    pub fn record(&self, action: Action) {
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
    pub fn check_open(&self) -> Result<(), Failure> {
        if self.actions.lock().closed { Err(Failure::cancelled()) } else { Ok(()) }
    }

    /// All actions of the call, which has come to its end.
    pub fn close(&self) -> Actions {
        let mut recorded = self.actions.lock();
        recorded.closed = true;
        recorded.actions.clone()
    }

    /// Keeps the actions of a call that is part of this one.
    pub fn record_all(&self, actions: Actions) {
        self.actions.lock().actions.add(actions);
    }

    pub fn actions(&self) -> Actions {
        self.actions.lock().actions.clone()
    }

    /// Notes a file of output that was cut.
    pub fn remember_kept(&self, path: &str) {
        self.kept.lock().push(path.to_owned());
    }

    pub fn kept(&self) -> Vec<String> {
        self.kept.lock().clone()
    }

    /// Notes that the call has changed something, so that earlier failures may not repeat.
    pub fn touch_state(&self) {
        self.touched_state.store(true, Ordering::Relaxed);
        self.session.forget_looks();
    }

    pub fn has_touched_state(&self) -> bool {
        self.touched_state.load(Ordering::Relaxed)
    }
}

/// The call's own time: it stands still while the call waits for a command or a person.
pub struct Clock {
    state: Mutex<ClockState>,
    changed: Notify,
}

struct ClockState {
    spent: Duration,
    running_since: Instant,
    waits: u32,
}

/// Stops the clock while it lives.
pub struct Waiting<'c>(&'c Clock);

impl Clock {
    fn start() -> Self {
        let state = ClockState { spent: Duration::ZERO, running_since: Instant::now(), waits: 0 };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub fn waiting(&self) -> Waiting<'_> {
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
    pub fn is_waiting(&self) -> bool {
        self.state.lock().waits > 0
    }

    fn left(&self, budget: Duration) -> Option<Duration> {
        let state = self.state.lock();
        (state.waits == 0).then(|| budget.saturating_sub(state.spent + state.running_since.elapsed()))
    }

    /// Returns when the call has spent `budget` of its own time.
    pub fn spent(&self, budget: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                match self.left(budget) {
                    Some(Duration::ZERO) => return,
                    Some(left) => {
                        let _ = tokio::time::timeout(left, self.changed.notified()).await;
                    }
                    None => self.changed.notified().await,
                }
            }
        })
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
