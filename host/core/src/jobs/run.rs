//! Running a job: a call like any other, of the session that submitted it, with nobody there.

use super::Door;
use super::engine::{Engine, Stream};
use super::job::{Held, JobState, Spec};
use super::output::Spool;
use super::rehearsal::{AtSubmission, Purpose};
use super::submit::check_unattended;
use super::worker::{Outcome, Runner};
use crate::backend::local;
use crate::call::session::Session;
use crate::call::{Arguments, CallContext, Request};
use crate::envelope::{Envelope, Failure, Kind};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs the jobs of one host.
pub(super) struct OfHost {
    pub(super) door: Arc<Door>,
}

#[async_trait]
impl Runner for OfHost {
    async fn run(&self, job: &Held, output: Arc<Spool>, cancel: CancellationToken) -> Outcome {
        let host = match self.door.host() {
            Ok(host) => host,
            Err(failure) => return ended(&Envelope::new(Err(failure))),
        };
        let context = match self.context(job, output, cancel) {
            Ok(context) => context,
            Err(failure) => return ended(&Envelope::new(Err(failure))),
        };
        let Spec { tool, arguments, .. } = &job.spec;
        let request = Request { tool: tool.clone(), arguments: Arguments::Text(arguments.clone()) };
        ended(&host.call(request, &context).await)
    }

    fn hold(&self, call: &str, until: Option<Duration>) {
        if self.door.context.backend.is_this_machine() {
            local::end_at(call, until);
        }
    }

    async fn sweep(&self, call: &str) {
        local::end_call(call).await;
    }
}

impl OfHost {
    fn context(&self, held: &Held, output: Arc<Spool>, cancel: CancellationToken) -> Result<CallContext, Failure> {
        let job = &held.spec;
        let tools = (self.door.tools)();
        let plugin = tools.plugin_of(&job.tool)?;
        if plugin.id.approved_as() != job.plugin {
            let message = format!("`{}` is another one than when the job was submitted", job.tool);
            return Err(Failure::denied(message).hint("submit it anew"));
        }
        let host = self.door.host()?;
        let session = match &job.toolset {
            Some(toolset) => Session::on(host.toolset(toolset)?, job.given.clone())?,
            None => Session::default(),
        };
        let context = self.door.context(tools.clone()).session(Arc::new(session));
        // Other settings, or another policy, may be in force by now.
        check_unattended(&*host.within(host.policy.obeyed()?, &context)?, plugin, &job.tool)?;
        let approver = AtSubmission { admitted: job.admitted.clone(), policy: host.policy.clone() };
        Ok(context
            .principal(job.principal.clone())
            .approver(Arc::new(approver))
            .events(output)
            .cancel(cancel)
            .purpose(Purpose::Job(held.call().into())))
    }
}

/// What an envelope says of a job.
fn ended(envelope: &Envelope) -> Outcome {
    let code = |value: &Value| value.get("exit_code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    match &envelope.outcome {
        Ok(output) => {
            let json = json!({ "result": output.result, "notices": output.notices }).to_string();
            Outcome { state: JobState::Done, exit_code: code(&output.result), cause: None, json: Some(json) }
        }
        Err(failure) => {
            let exit_code = failure.data.as_deref().and_then(code);
            let state = match failure.kind {
                Kind::Cancelled => JobState::Cancelled,
                // It ran to its end.
                Kind::ExecutionFailed if exit_code.is_some() => JobState::Done,
                Kind::Internal
                | Kind::Usage
                | Kind::UnknownTool
                | Kind::InvalidArguments
                | Kind::Denied
                | Kind::Limit
                | Kind::TimedOut
                | Kind::Busy
                | Kind::Unavailable
                | Kind::OutcomeUnknown
                | Kind::ExecutionFailed => JobState::Error,
            };
            let cause = format!("{}: {}", failure.kind.name(), failure.message);
            let json = json!({ "error": failure.to_json() }).to_string();
            Outcome { state, exit_code, cause: Some(cause), json: Some(json) }
        }
    }
}

/// The most bytes of what a call gave that are read back.
pub(super) const OUTCOME_BYTES: usize = 4 << 20;

/// What a call gave, where it is kept.
pub(super) async fn outcome_of(engine: &dyn Engine, held: &Held) -> Result<Option<String>, Failure> {
    let Held { spec, progress, .. } = held;
    if progress.outcome.is_some() {
        return Ok(progress.outcome.clone());
    }
    let piece = engine.piece(&spec.id, progress.epoch, Stream::Outcome, 0, OUTCOME_BYTES).await?;
    Ok((!piece.bytes.is_empty()).then(|| String::from_utf8_lossy(&piece.bytes).into_owned()))
}
