//! `wit/jobs.wit`: calls that outlive their caller, of the session's agent, which no guest names.

use super::Refusal;
use super::bindings::toolcrib::plugin::jobs;
use crate::later::{Text, View, Wanted};
use crate::sandbox::State;
use base::envelope::Failure;
use std::time::Duration;
use store::engine::Query;
use store::job::JobState;
use wasmtime::component::Resource;

/// Jobs of a page, where the guest does not say, and at most.
const LIMIT: u32 = 20;
const MOST: u32 = 100;
/// Bytes of a stream that are handed out at once.
const FOLLOWED: usize = 1 << 20;

/// A call that a guest prepares to be a job: the host's side of the resource.
#[derive(Clone)]
pub struct Submission(Wanted);

/// A look that a guest prepares.
#[derive(Clone)]
pub struct Look {
    query: Query,
    all_sessions: bool,
}

impl From<JobState> for jobs::State {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Pending => Self::Pending,
            JobState::Running => Self::Running,
            JobState::Done => Self::Done,
            JobState::Error => Self::Error,
            JobState::Cancelled => Self::Cancelled,
            JobState::Orphaned => Self::Orphaned,
        }
    }
}

impl From<jobs::State> for JobState {
    fn from(state: jobs::State) -> Self {
        match state {
            jobs::State::Pending => Self::Pending,
            jobs::State::Running => Self::Running,
            jobs::State::Done => Self::Done,
            jobs::State::Error => Self::Error,
            jobs::State::Cancelled => Self::Cancelled,
            jobs::State::Orphaned => Self::Orphaned,
        }
    }
}

impl State {
    /// A job as a guest sees it: what it printed may hold a secret that has come to be known since.
    fn job(&self, View { held, stdout, stderr, outcome }: View) -> jobs::Job {
        let clean = |text: &str| self.scope.guard.redact_result(text).into_owned();
        let piece = |Text { text, start, end, total }: Text| jobs::Piece { text: clean(&text), start, end, total };
        let (spec, progress) = (held.spec, held.progress);
        let own = [("session", spec.session), ("agent", spec.agent), ("origin", spec.principal)];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        jobs::Job {
            id: spec.id,
            tool: spec.tool,
            state: progress.state.into(),
            exit_code: progress.exit_code,
            stdout: piece(stdout),
            stderr: piece(stderr),
            outcome: outcome.as_deref().map(clean),
            cause: progress.cause.as_deref().map(clean),
            labels: own.chain(spec.labels).collect(),
            made_ms: spec.made_ms,
            began_ms: progress.began_ms,
            ended_ms: progress.ended_ms,
            stopped: progress.stopped,
        }
    }

    /// How long something may be waited for: as long as a command, at most.
    fn patience(&self, ms: u64) -> Duration {
        Duration::from_millis(ms.min(self.scope.limits.command_max_ms))
    }
}

impl jobs::Host for State {
    async fn get(&mut self, id: String, head: u32) -> Result<jobs::Job, Refusal> {
        self.meter.charge_bytes(id.len())?;
        let grant = self.grants()?.jobs()?.clone();
        let view = self.scope.services.jobs.get(&id, head, &grant, &self.scope).await?;
        Ok(self.job(view))
    }

    async fn wait(&mut self, id: String, at_most_ms: u64, with_call: bool, head: u32) -> Result<jobs::Job, Refusal> {
        self.meter.charge_bytes(id.len())?;
        let grant = self.grants()?.jobs()?.clone();
        let patience = self.patience(at_most_ms);
        let view = self.scope.services.jobs.wait(&id, patience, with_call, head, &grant, &self.scope).await?;
        Ok(self.job(view))
    }

    async fn follow(
        &mut self,
        id: String,
        stdout_start: u64,
        stderr_start: u64,
        most: u32,
        at_most_ms: u64,
    ) -> Result<jobs::Job, Refusal> {
        self.meter.charge_bytes(id.len())?;
        let grant = self.grants()?.jobs()?.clone();
        let (most, patience) = ((most as usize).min(FOLLOWED), self.patience(at_most_ms));
        let starts = [stdout_start, stderr_start];
        let view = self.scope.services.jobs.follow(&id, starts, most, patience, &grant, &self.scope).await?;
        Ok(self.job(view))
    }

    async fn cancel(&mut self, id: String) -> Result<jobs::Job, Refusal> {
        self.meter.charge_bytes(id.len())?;
        let grant = self.grants()?.jobs()?.clone();
        let view = self.scope.services.jobs.cancel(&id, &grant, &self.scope).await?;
        self.scope.touch_state();
        Ok(self.job(view))
    }

    async fn tools(&mut self) -> Result<Vec<String>, Refusal> {
        let grant = self.grants()?.jobs()?.clone();
        Ok(self.scope.services.jobs.tools(&grant, &self.scope)?)
    }
}

impl jobs::HostSubmission for State {
    async fn new(&mut self, tool: String, arguments: String) -> wasmtime::Result<Resource<Submission>> {
        self.meter.charge_bytes(tool.len() + arguments.len())?;
        Ok(self.table.push(Submission(Wanted { tool, arguments, ..Wanted::default() }))?)
    }

    async fn label(&mut self, submission: Resource<Submission>, name: String, value: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(name.len() + value.len())?;
        self.table.get_mut(&submission)?.0.labels.insert(name, value);
        Ok(())
    }

    async fn at_most_ms(&mut self, submission: Resource<Submission>, ms: u64) -> wasmtime::Result<()> {
        self.table.get_mut(&submission)?.0.at_most_ms = Some(ms);
        Ok(())
    }

    async fn token(&mut self, submission: Resource<Submission>, token: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(token.len())?;
        self.table.get_mut(&submission)?.0.token = Some(token);
        Ok(())
    }

    async fn outlive_session(&mut self, submission: Resource<Submission>) -> wasmtime::Result<()> {
        self.table.get_mut(&submission)?.0.outlives = true;
        Ok(())
    }

    async fn may_repeat(&mut self, submission: Resource<Submission>) -> wasmtime::Result<()> {
        self.table.get_mut(&submission)?.0.repeatable = true;
        Ok(())
    }

    async fn submit(&mut self, submission: Resource<Submission>) -> Result<String, Refusal> {
        let grant = self.grants()?.jobs()?.clone();
        let wanted = self.table.get(&submission)?.0.clone();
        let (jobs, scope) = (self.scope.services.jobs.clone(), self.scope.clone());
        Ok(jobs.submit(wanted, &grant, &scope).await?)
    }

    async fn drop(&mut self, submission: Resource<Submission>) -> wasmtime::Result<()> {
        self.table.delete(submission)?;
        Ok(())
    }
}

impl jobs::HostQuery for State {
    async fn new(&mut self) -> wasmtime::Result<Resource<Look>> {
        let query = Query { limit: LIMIT, ..Query::default() };
        Ok(self.table.push(Look { query, all_sessions: false })?)
    }

    async fn all_sessions(&mut self, look: Resource<Look>) -> wasmtime::Result<()> {
        self.table.get_mut(&look)?.all_sessions = true;
        Ok(())
    }

    async fn in_state(&mut self, look: Resource<Look>, state: jobs::State) -> wasmtime::Result<()> {
        self.table.get_mut(&look)?.query.state = Some(state.into());
        Ok(())
    }

    async fn label(&mut self, look: Resource<Look>, name: String, value: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(name.len() + value.len())?;
        self.table.get_mut(&look)?.query.labels.insert(name, value);
        Ok(())
    }

    async fn limit(&mut self, look: Resource<Look>, items: u32) -> wasmtime::Result<()> {
        self.table.get_mut(&look)?.query.limit = items;
        Ok(())
    }

    async fn after(&mut self, look: Resource<Look>, cursor: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(cursor.len())?;
        self.table.get_mut(&look)?.query.after = Some(cursor);
        Ok(())
    }

    async fn run(&mut self, look: Resource<Look>) -> Result<jobs::Page, Refusal> {
        let grant = self.grants()?.jobs()?.clone();
        let Look { mut query, all_sessions } = self.table.get(&look)?.clone();
        if query.limit == 0 || query.limit > MOST {
            let message = format!("a page has 1 to {MOST} jobs, not {}", query.limit);
            return Err(Failure::invalid(message).hint("`next` of a page leads to the next one").into());
        }
        if !all_sessions {
            query.session = Some(self.scope.session.id().to_owned());
        }
        let (views, next) = self.scope.services.jobs.list(query, &grant, &self.scope).await?;
        Ok(jobs::Page { jobs: views.into_iter().map(|view| self.job(view)).collect(), next })
    }

    async fn drop(&mut self, look: Resource<Look>) -> wasmtime::Result<()> {
        self.table.delete(look)?;
        Ok(())
    }
}
