//! One call, from request to envelope: what it is asked, how it is bounded, and its one outcome.
//!
//! The path itself is `Host::call`; doors translate and decide nothing; what a tool does on the way is `sandbox/` and `capability/`.

mod principal;
pub(crate) mod rate_limit;
pub mod running;
pub(crate) mod scope;
pub mod session;

use crate::Host;
use crate::audit::{Actions, Audit, Batch, Ended, Recorded};
use crate::backend::Backend;
use crate::capability::bindings::exports::toolcrib::plugin::tools;
use crate::capability::bindings::toolcrib::plugin::types;
use crate::embedder::{Embedder, NoEmbedder};
use crate::envelope::{Content, Envelope, Failure, Kind, Output};
use crate::event::{Event, EventSink, NoEvents};
use crate::jobs::rehearsal::Purpose;
use crate::kept_output::OutputStore;
use crate::policy::Policy;
use crate::policy::approval::{Approver, Nobody};
use crate::sandbox::compile::panic_text;
use crate::sandbox::trial::Trial;
use crate::text::sanitize;
use crate::tmux::Panes;
use crate::tools::definition::Tool;
use crate::tools::manifest::Manifest;
use crate::tools::registry::Registry;
use crate::tools::schema::depth;
use futures_util::FutureExt;
pub use principal::Principal;
use running::Listed;
use scope::{Scope, ScopeParts};
use serde_json::Value;
use session::Session;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How deep a call's arguments may be nested.
pub const ARGUMENTS_DEPTH: u64 = 64;
/// How large a call's arguments may be, in bytes.
pub const ARGUMENTS_BYTES: usize = 4 << 20;

/// What a part of a result costs besides its text: its entry here, and its JSON in every envelope.
pub(crate) const PART_BYTES: usize = 256;

/// How long a guest may go on after it was asked to stop, when it waits for nothing.
const GUEST_GRACE: Duration = Duration::from_millis(50);

/// What a caller asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// Arguments as they came.
#[derive(Clone, Debug)]
pub enum Arguments {
    /// A JSON value; an object, or the text of one, as model APIs hand it over.
    Json(Value),
    /// Text that should be a JSON object.
    Text(String),
}

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
    batch: Option<Arc<Batch>>,
    /// What the call is made for.
    pub(crate) purpose: Purpose,
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

    /// The same, ended by another token.
    #[must_use]
    pub fn cancel(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }
}

impl Arguments {
    pub(crate) fn parse(&self) -> Result<Value, Failure> {
        let text = match self {
            Self::Json(Value::String(text)) | Self::Text(text) => text,
            Self::Json(value) => return check_arguments(value.clone()),
        };
        check_length(text)?;
        let value = serde_json::from_str(text).map_err(|error| {
            let hint = match error.is_eof() {
                true => {
                    "give one JSON object; this one breaks off: add the `\"`, `}` or `]` that is missing at its end"
                }
                false => "give one JSON object, such as {\"path\": \"a.txt\"}",
            };
            Failure::invalid(format!("the arguments are not JSON: {error}")).hint(hint)
        })?;
        check_arguments(value)
    }
}

pub(crate) fn check_length(text: &str) -> Result<(), Failure> {
    if text.len() <= ARGUMENTS_BYTES {
        return Ok(());
    }
    Err(Failure::invalid(format!("the arguments are more than {ARGUMENTS_BYTES} bytes"))
        .hint("put large content into a file"))
}

fn check_arguments(value: Value) -> Result<Value, Failure> {
    if !value.is_object() {
        return Err(Failure::invalid("the arguments are not a JSON object")
            .hint("give one JSON object, such as {\"path\": \"a.txt\"}"));
    }
    if depth(&value) > ARGUMENTS_DEPTH {
        return Err(Failure::invalid(format!("the arguments nest deeper than {ARGUMENTS_DEPTH} levels")));
    }
    Ok(value)
}

/// A call that was accepted. Dropped before its end, it still leaves its outcome in the audit trail.
pub(crate) struct Call<'h> {
    audit: &'h Audit,
    pub(crate) scope: Arc<Scope>,
    batch: Option<Arc<Batch>>,
    _listed: Listed<'h>,
    begin: Instant,
    /// Whether its outcome goes on record; what a lock refuses is only counted.
    recorded: bool,
    finished: bool,
}

impl<'h> Call<'h> {
    pub(crate) fn begin(host: &'h Host, policy: &Policy, request: &Request, context: &CallContext) -> Self {
        let scope = Scope::new(ScopeParts {
            principal: context.principal.clone(),
            tool: host.secrets.known().redact(&sanitize::line(&request.tool)).chars().take(64).collect(),
            session: context.session.clone(),
            backend: context.backend.clone(),
            panes: context.panes.clone(),
            events: context.events.clone(),
            approver: context.approver.clone(),
            cancel: context.cancel.child_token(),
            approvals: host.approvals.clone(),
            embedder: context.embedder.clone(),
            pending: host.pending.clone(),
            agents: host.agents.clone(),
            store: host.store.clone(),
            jobs: host.jobs.clone(),
            output: match &context.purpose {
                Purpose::Act | Purpose::Rehearse(_) => host.output.clone(),
                // What it says is kept as the job's.
                Purpose::Job(_) | Purpose::Fire(..) => Arc::new(OutputStore::none()),
            },
            egress: host.egress.clone(),
            browsers: host.browsers.clone(),
            secrets: host.secrets.clone(),
            settings: Arc::downgrade(&host.policy),
            leaks: policy.config().leaks.clone(),
            trial: context.trial.clone(),
            limits: policy.config().limits.clone(),
            remedies: policy.config().remedies(),
            audit: match &context.purpose {
                Purpose::Act | Purpose::Job(_) | Purpose::Fire(..) => Arc::downgrade(&host.audit),
                // The call that it is part of is on record.
                Purpose::Rehearse(_) => Weak::new(),
            },
            purpose: context.purpose.clone(),
        });
        let scope = Arc::new(scope);
        let listed = host.calls.list(&scope);
        // What only finds out what would be done is part of a call that is on record.
        let recorded = !matches!(context.purpose, Purpose::Rehearse(_));
        let (audit, batch) = (&*host.audit, context.batch.clone());
        Self { audit, scope, batch, _listed: listed, begin: Instant::now(), recorded, finished: false }
    }

    /// Answers what was refused before it was accepted: it has no line of its own in the audit trail, however often it is asked for.
    pub(crate) fn refuse(mut self, refusal: Failure) -> Envelope {
        self.recorded = false;
        let outcome = self.cleaned(Err(refusal));
        self.close(outcome.as_ref().err());
        self.envelope(outcome)
    }

    /// Ends what was only to find out what would be done; returns what was decided on the way.
    pub(crate) fn rehearsed(mut self, outcome: Result<Output, Failure>) -> (Result<Output, Failure>, Actions) {
        let actions = self.scope.actions();
        let outcome = self.cleaned(outcome);
        self.close(outcome.as_ref().err());
        (outcome, actions)
    }

    pub(crate) fn know_plugin(&self, plugin: &Manifest) {
        let _ = self.scope.plugin.set(plugin.sha256().to_owned());
    }

    /// Does the work, and has it on record before anybody waits for it; where it is `guarded`, before anything runs.
    pub(crate) async fn on_record(
        &self,
        guarded: bool,
        work: impl Future<Output = Result<Output, Failure>>,
    ) -> Result<Output, Failure> {
        if guarded || self.audit.is_required() {
            self.scope.accept()?;
        }
        let mut work = pin!(work);
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending()
                && let Err(refused) = self.scope.accept()
            {
                return Poll::Ready(Err(refused));
            }
            polled
        })
        .await
    }

    /// Runs the work within the call's time. At its end, when the caller cancels, or once it is `revoked`, the work is asked to stop, then
    /// dropped.
    pub(crate) async fn bounded(
        &self,
        work: impl Future<Output = Result<Output, Failure>>,
        revoked: impl Future<Output = Failure>,
    ) -> Result<Output, Failure> {
        let limits = &self.scope.limits;
        if self.scope.cancel.is_cancelled() {
            return Err(Failure::cancelled());
        }
        // A fault of ours ends this call alone.
        let work = AssertUnwindSafe(work).catch_unwind();
        let mut work = pin!(work.map(|outcome| outcome.unwrap_or_else(|panic| Err(fault(&*panic)))));
        let stopped = tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = self.scope.cancel.cancelled() => Failure::cancelled(),
            () = self.scope.clock.spent(Duration::from_millis(limits.call_ms)) => timed_out(&self.scope),
            refusal = revoked => refusal,
        };
        // A command has to be ended, and takes its time; a guest that computes or sleeps has nothing to wind down.
        let grace = if self.scope.clock.is_waiting() { Duration::from_millis(limits.grace_ms) } else { GUEST_GRACE };
        self.scope.cancel.cancel();
        match tokio::time::timeout(grace, work).await {
            // It came to its own end after all, or says what it had done by then.
            Ok(Ok(output)) => Ok(output),
            Ok(Err(failure)) if failure.kind == Kind::Cancelled => Err(stopped.also(failure.data)),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(stopped),
        }
    }

    /// Makes the envelope: clean texts, one outcome in the audit trail, one last event.
    pub(crate) async fn finish(mut self, outcome: Result<Output, Failure>) -> Envelope {
        let mut outcome = self.cleaned(outcome);
        let unrecorded = match self.close(outcome.as_ref().err()) {
            Recorded::Now(told) => told,
            Recorded::With(batch) => batch.written().await,
        };
        if let Ok(output) = &mut outcome {
            output.notices.extend(unrecorded);
        }
        self.envelope(outcome)
    }

    /// The outcome as whoever gets it reads it.
    fn cleaned(&self, outcome: Result<Output, Failure>) -> Result<Output, Failure> {
        // Only what was cleaned reads as whoever gets it will read it.
        let cleaned = outcome.map(clean_output).map_err(clean_failure);
        let outcome = self.scope.guard.outcome(cleaned, &self.scope.session);
        if outcome.is_ok() && self.scope.has_touched_state() {
            self.scope.session.forget_failures();
        }
        outcome
    }

    fn envelope(&self, outcome: Result<Output, Failure>) -> Envelope {
        Envelope { kept: self.scope.kept(), ..Envelope::new(outcome) }
    }

    /// Has its lines written, with those of others where it has a batch.
    fn close(&mut self, failure: Option<&Failure>) -> Recorded {
        self.finished = true;
        // The record holds no secret, whatever a result may.
        let redacted = failure.map(|failure| self.scope.guard.redact_failure(failure.clone()));
        let (subject, actions) = (self.scope.subject(), self.scope.close());
        let ended = Ended { failure: redacted.as_ref(), spent: self.begin.elapsed(), actions: &actions };
        let recorded = match self.scope.accepted() {
            _ if !self.recorded => Recorded::Now(None),
            None => self.audit.whole(subject, &ended, self.batch.as_ref()),
            Some(accepted) => {
                let outcome = self.audit.outcome(subject, &ended);
                Recorded::Now(accepted.as_ref().ok().cloned().flatten().or(outcome))
            }
        };
        let outcome = failure.map_or("ok", |failure| failure.kind.name());
        // The outcome is decided; a sink that fails now must not cost the caller the answer.
        let _ = catch_unwind(AssertUnwindSafe(|| self.scope.emit_last(Event::Completed { outcome })));
        recorded
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.scope.cancel.cancel();
            self.close(Some(&Failure::cancelled()));
        }
    }
}

fn fault(panic: &(dyn Any + Send)) -> Failure {
    Failure::new(Kind::Internal, format!("internal error in the host: {}", panic_text(panic)))
        .hint("please report it; other calls are not affected")
}

fn timed_out(scope: &Scope) -> Failure {
    let call_ms = scope.limits.call_ms;
    Failure::new(Kind::TimedOut, format!("the call took more than {call_ms} ms of its own time"))
        .hint(scope.remedies.raise("limits.call_ms", call_ms, "ask for less in one call"))
}

/// Takes what the guest answered, within the bounds of a result and of its own schema.
pub(crate) fn check_output(output: tools::Output, tool: &Tool, scope: &Scope) -> Result<Output, Failure> {
    let parts = output.content.iter().map(content_bytes).chain(output.notices.iter().map(String::len));
    let bytes = parts.map(|bytes| bytes + PART_BYTES).sum::<usize>();
    check_size("result", output.json.len() + bytes, scope)?;
    let result = serde_json::from_str(&output.json).map_err(|error| {
        Failure::failed(format!("the plugin's result is not JSON: {error}")).hint("this is a fault of the plugin")
    })?;
    tool.check_result(&result)?;
    Ok(Output { result, content: output.content.into_iter().map(Content::from).collect(), notices: output.notices })
}

/// Takes the failure that the guest returned, within the bounds of a result.
pub(crate) fn check_failure(failure: types::Failure, scope: &Scope) -> Failure {
    let types::Failure { kind, message, hint, data } = failure;
    let bytes = [Some(&message), hint.as_ref(), data.as_ref()].into_iter().flatten().map(String::len).sum();
    if let Err(too_large) = check_size("failure", bytes, scope) {
        return too_large;
    }
    let data = data.and_then(|data| serde_json::from_str(&data).ok().map(Box::new));
    Failure { kind: Kind::from_guest(&kind), message, hint, data }
}

/// Holds what is answered against the bound of a result.
pub(crate) fn check_size(what: &str, bytes: usize, scope: &Scope) -> Result<(), Failure> {
    let most = scope.limits.result_kib;
    if bytes as u64 <= most << 10 {
        return Ok(());
    }
    Err(Failure::limit(format!("limit: {what} {most} KiB, this one has {bytes} bytes")).hint(scope.remedies.raise(
        "limits.result_kib",
        most,
        "ask for less",
    )))
}

fn content_bytes(content: &tools::Content) -> usize {
    match content {
        tools::Content::Text(text) | tools::Content::Link(text) => text.len(),
        tools::Content::Image((kind, bytes)) | tools::Content::Audio((kind, bytes)) => kind.len() + bytes.len(),
    }
}

impl From<tools::Content> for Content {
    fn from(content: tools::Content) -> Self {
        match content {
            tools::Content::Text(text) => Self::Text(text),
            tools::Content::Image((kind, bytes)) => Self::Image(kind, bytes),
            tools::Content::Audio((kind, bytes)) => Self::Audio(kind, bytes),
            tools::Content::Link(uri) => Self::Link(uri),
        }
    }
}

fn clean(text: &mut String) {
    if let std::borrow::Cow::Owned(cleaned) = sanitize::text(text) {
        *text = cleaned;
    }
}

fn clean_output(mut output: Output) -> Output {
    let changed = sanitize::json(&mut output.result);
    output.notices.iter_mut().for_each(clean);
    for content in &mut output.content {
        match content {
            Content::Text(text) | Content::Link(text) | Content::Image(text, _) | Content::Audio(text, _) => {
                clean(text)
            }
        }
    }
    let parts = output.content.len();
    output.content.retain(Content::is_what_it_says);
    if output.content.len() < parts {
        output.notices.push("an image or audio was left out whose media type is that of something else".into());
    }
    if changed {
        output.notices.push("control characters were removed from the result or made visible".into());
    }
    output
}

fn clean_failure(mut failure: Failure) -> Failure {
    clean(&mut failure.message);
    failure.hint.iter_mut().for_each(clean);
    failure.data.iter_mut().for_each(|data| _ = sanitize::json(data));
    failure
}
