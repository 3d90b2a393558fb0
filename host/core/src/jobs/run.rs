//! Running a job: a call like any other, of the session that submitted it, with nobody there.

use super::Door;
use super::output::Spool;
use super::submit::{check_unattended, identity};
use super::worker::{Outcome, Runner};
use crate::Host;
use crate::call::{Arguments, CallContext, Request};
use crate::schedules::ScheduleState;
use crate::tools::registry::Registry;
use backend::local;
use base::envelope::{Envelope, Failure, Kind, Output};
use embedder::NoEmbedder;
use futures_util::future::BoxFuture;
use guest::capability::embedder::Scheduled;
use policy::purpose::{AtSubmission, JobCall, Purpose};
use policy::session::Session;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::engine::{Engine, Stream};
use store::job::{Fired, Held, JobState, Spec};
use store::schedule::MISSED;
use tokio_util::sync::CancellationToken;

/// Runs the jobs of one host.
pub(super) struct OfHost {
    pub(super) door: Arc<Door>,
}

impl Runner for OfHost {
    fn run<'a>(&'a self, job: &'a Held, output: Arc<Spool>, cancel: CancellationToken) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let missed = |why: &str| Outcome {
                state: JobState::Cancelled,
                exit_code: None,
                cause: Some(format!("{MISSED}{why}")),
                json: None,
            };
            if let Some(fired) = &job.spec.fired
                && let Some(why) = self.missed(&job.spec.agent, fired).await
            {
                return missed(&why);
            }
            let ran = async {
                let host = self.door.host()?;
                let context = self.context(&host, job, output, cancel)?;
                let Spec { tool, arguments, .. } = &job.spec;
                let request = Request { tool: tool.clone(), arguments: Arguments::Text(arguments.clone()) };
                Ok((host.call(request, &context).await, context.event))
            };
            match ran.await {
                Err(failure) => ended(&Envelope::new(Err::<Output, Failure>(failure))),
                // What was certainly not handed over has not failed.
                Ok((Envelope { outcome: Err(failure), .. }, Some(event))) if event.never_came() => {
                    missed(&format!("{}: {}", failure.kind.name(), failure.message))
                }
                Ok((envelope, _)) => ended(&envelope),
            }
        })
    }

    fn hold(&self, call: &str, until: Option<Duration>) {
        if self.door.context.backend.is_this_machine() {
            local::end_at(call, until);
        }
    }

    fn sweep<'a>(&'a self, call: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            local::end_call(call).await;
        })
    }
}

impl OfHost {
    fn context(
        &self,
        host: &Host,
        held: &Held,
        output: Arc<Spool>,
        cancel: CancellationToken,
    ) -> Result<CallContext, Failure> {
        let job = &held.spec;
        let tools = (self.door.tools)();
        check_bytes(&tools, &job.tool, &job.plugin)?;
        let session = match &job.toolset {
            Some(toolset) => Session::on(host.toolset(toolset)?, job.given.clone())?,
            None => Session::default(),
        };
        let context = self.door.context(tools.clone()).session(Arc::new(session));
        let call = JobCall { id: held.call(), recurs: job.fired.as_ref().map(|fired| fired.words.clone()) };
        let event = match &job.fired {
            Some(fired @ Fired { event: Some(approved), .. }) => {
                let payload = event(fired, job)?;
                let timeout = Duration::from_millis(job.at_most_ms);
                Some(Arc::new(Scheduled::new(payload, timeout, *approved)))
            }
            fired => {
                // Other settings, or another policy, may be in force by now.
                let policy = host.within(host.policy.obeyed()?, &context)?;
                check_unattended(&policy, tools.plugin_of(&job.tool)?, &job.tool)?;
                if let Some(fired) = fired {
                    check_bytes(&tools, &fired.by_tool, &fired.by_plugin)?;
                    let by = tools.plugin_of(&fired.by_tool)?;
                    context.session.admit_in_a_turn(&fired.by_tool, by)?;
                    policy.grants_for(&policy.admit(by)?).schedules()?.jobs()?.admit(&job.tool)?;
                }
                None
            }
        };
        let approver = AtSubmission { admitted: job.admitted.clone(), policy: host.policy.clone() };
        Ok(context
            .principal(job.principal.clone())
            .approver(Arc::new(approver))
            .embedder(match &event {
                Some(_) => self.door.context.embedder.clone(),
                None => Arc::new(NoEmbedder),
            })
            .events(output)
            .cancel(cancel)
            .purpose(Purpose::Job(Arc::new(call)))
            .event(event))
    }

    /// Why a firing does not begin any more, if it does not: it waited too long, or its schedule is another one by now.
    async fn missed(&self, agent: &str, fired: &Fired) -> Option<String> {
        let host = self.door.host().ok()?;
        let engine = host.jobs.engine();
        if engine.now_ms() > fired.until_ms {
            return Some("it was not begun in time".into());
        }
        match engine.schedule(agent, &fired.schedule).await {
            Err(failure) => Some(failure.message),
            Ok(Some(kept)) if kept.schedule.key == fired.key => match kept.course.state {
                ScheduleState::Active | ScheduleState::Over => None,
                state @ (ScheduleState::Paused | ScheduleState::Disabled) => {
                    Some(format!("its schedule is {}", state.name()))
                }
            },
            Ok(Some(_)) => Some("its schedule was replaced".into()),
            Ok(None) => Some("its schedule was removed".into()),
        }
    }
}

/// Refuses a tool that is of another plugin than when it was admitted.
fn check_bytes(tools: &Registry, tool: &str, admitted: &str) -> Result<(), Failure> {
    match identity(tools.plugin_of(tool)?) == admitted {
        true => Ok(()),
        false => {
            let message = format!("`{tool}` is another one than when the job was submitted");
            Err(Failure::denied(message).hint("submit it anew"))
        }
    }
}

/// What a schedule hands over.
fn event(fired: &Fired, job: &Spec) -> Result<Value, Failure> {
    let data: Value = serde_json::from_str(&job.arguments)
        .map_err(|error| Failure::new(Kind::Internal, format!("the data of a schedule are not JSON: {error}")))?;
    let due = job.labels.get("due");
    Ok(json!({ "schedule": fired.schedule, "due": due, "due_ms": fired.due_ms, "data": data }))
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
