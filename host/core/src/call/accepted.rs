//! A call that was accepted: its scope, the bound on its time, and its lines on the audit trail.

use super::context::CallContext;
use super::outcome::{clean_failure, clean_output};
use super::running::Listed;
use crate::Host;
use audit::{Actions, Audit, Batch, Ended, Recorded};
use base::envelope::{Envelope, Failure, Kind, Output};
use base::text::sanitize;
use contract::manifest::Manifest;
use contract::request::Request;
use embedder::{EmbedderAsked, QUESTION};
use engine::compile::panic_text;
use futures_util::FutureExt;
use guest::reach::Reach;
use kept_output::OutputStore;
use policy::Policy;
use policy::approval::Approver;
use policy::event::Event;
use policy::scope::{Scope, ScopeParts};
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

/// How long a guest may go on after it was asked to stop, when it waits for nothing.
const GUEST_GRACE: Duration = Duration::from_millis(50);

/// Who is asked: the embedder, where the user's settings say so and it takes questions.
fn approver(policy: &Policy, context: &CallContext) -> Arc<dyn Approver> {
    let approval = &policy.config().approval;
    if !approval.embedder || context.approver.answers_in_advance() || !context.embedder.takes(QUESTION) {
        return context.approver.clone();
    }
    Arc::new(EmbedderAsked {
        embedder: context.embedder.clone(),
        principal: context.principal.clone(),
        bindings: context.session.given(),
        timeout: Duration::from_millis(approval.timeout_ms),
    })
}

/// A call that was accepted. Dropped before its end, it still leaves its outcome in the audit trail.
pub(crate) struct Call<'h> {
    audit: &'h Audit,
    pub(crate) reach: Arc<Reach>,
    batch: Option<Arc<Batch>>,
    _listed: Listed<'h>,
    begin: Instant,
    /// Whether its outcome goes on record; what a lock refuses is only counted.
    recorded: bool,
    finished: bool,
}

impl<'h> Call<'h> {
    pub(crate) fn begin(host: &'h Host, policy: &Policy, request: &Request, context: &CallContext) -> Self {
        let recorded = context.purpose.is_on_record();
        let scope = Scope::new(ScopeParts {
            principal: context.principal.clone(),
            tool: host.secrets.known().redact(&sanitize::line(&request.tool)).chars().take(64).collect(),
            session: context.session.clone(),
            backend: context.backend.clone(),
            events: context.events.clone(),
            approver: approver(policy, context),
            cancel: context.cancel.child_token(),
            approvals: host.approvals.clone(),
            output: match context.purpose.keeps_output() {
                true => host.output.clone(),
                false => Arc::new(OutputStore::none()),
            },
            secrets: host.secrets.clone(),
            leaks: policy.config().leaks.clone(),
            limits: policy.config().limits.clone(),
            remedies: policy.config().remedies(),
            rules: Some(policy.rules().clone()),
            audit: match recorded {
                true => Arc::downgrade(&host.audit),
                false => Weak::new(),
            },
            purpose: context.purpose.clone(),
        });
        let scope = Arc::new(scope);
        let reach = Arc::new(Reach {
            scope: scope.clone(),
            services: host.services.clone(),
            panes: context.panes.clone(),
            embedder: context.embedder.clone(),
            trial: context.trial.clone(),
            ahead: Duration::ZERO,
        });
        let listed = host.calls.list(&scope);
        let (audit, batch) = (&*host.audit, context.batch.clone());
        Self { audit, reach, batch, _listed: listed, begin: Instant::now(), recorded, finished: false }
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
        let actions = self.reach.actions();
        let outcome = self.cleaned(outcome);
        self.close(outcome.as_ref().err());
        (outcome, actions)
    }

    pub(crate) fn know_plugin(&self, plugin: &Manifest) {
        let _ = self.reach.plugin.set(plugin.sha256().to_owned());
    }

    /// Does the work, and has it on record before anybody waits for it; where it is `guarded`, before anything runs.
    pub(crate) async fn on_record(
        &self,
        guarded: bool,
        work: impl Future<Output = Result<Output, Failure>>,
    ) -> Result<Output, Failure> {
        if guarded || self.audit.is_required() {
            self.reach.accept()?;
        }
        let mut work = pin!(work);
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending()
                && let Err(refused) = self.reach.accept()
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
        let limits = &self.reach.limits;
        if self.reach.cancel.is_cancelled() {
            return Err(Failure::cancelled());
        }
        // A fault of ours ends this call alone.
        let work = AssertUnwindSafe(work).catch_unwind();
        let mut work = pin!(work.map(|outcome| outcome.unwrap_or_else(|panic| Err(fault(&*panic)))));
        let stopped = tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = self.reach.cancel.cancelled() => Failure::cancelled(),
            () = self.reach.clock.spent(Duration::from_millis(limits.call_ms)) => timed_out(&self.reach.scope),
            refusal = revoked => refusal,
        };
        // A command has to be ended, and takes its time; a guest that computes or sleeps has nothing to wind down.
        let grace = if self.reach.clock.is_waiting() { Duration::from_millis(limits.grace_ms) } else { GUEST_GRACE };
        self.reach.cancel.cancel();
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
        let outcome = self.reach.guard.outcome(cleaned, &self.reach.session);
        if outcome.is_ok() && self.reach.has_touched_state() {
            self.reach.session.forget_failures();
        }
        outcome
    }

    fn envelope(&self, outcome: Result<Output, Failure>) -> Envelope {
        Envelope { kept: self.reach.kept(), ..Envelope::new(outcome) }
    }

    /// Has its lines written, with those of others where it has a batch.
    fn close(&mut self, failure: Option<&Failure>) -> Recorded {
        self.finished = true;
        // The record holds no secret, whatever a result may.
        let redacted = failure.map(|failure| self.reach.guard.redact_failure(failure.clone()));
        let (subject, actions) = (self.reach.subject(), self.reach.close());
        let ended = Ended { failure: redacted.as_ref(), spent: self.begin.elapsed(), actions: &actions };
        let recorded = match self.reach.accepted() {
            _ if !self.recorded => Recorded::Now(None),
            None => self.audit.whole(subject, &ended, self.batch.as_ref()),
            Some(accepted) => {
                let outcome = self.audit.outcome(subject, &ended);
                Recorded::Now(accepted.as_ref().ok().cloned().flatten().or(outcome))
            }
        };
        let outcome = failure.map_or("ok", |failure| failure.kind.name());
        // The outcome is decided; a sink that fails now must not cost the caller the answer.
        let _ = catch_unwind(AssertUnwindSafe(|| self.reach.emit_last(Event::Completed { outcome })));
        recorded
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.reach.cancel.cancel();
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
