//! What callers and operators see of jobs, and how they end them.

use super::Jobs;
use super::run::outcome_of;
use crate::Host;
use crate::call::CallContext;
use base::envelope::Failure;
use base::text::sanitize;
use futures_util::future::BoxFuture;
use guest::later::{Text, View};
use policy::jobs::JobsGrant;
use policy::scope::Scope;
use policy::session::Session;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::engine::{Heard, Piece, Query, Settled, Stream, settle};
use store::job::{Held, JobState, Progress};

/// How long the end of what a cancelled job runs is waited for.
const STOPPING: Duration = Duration::from_secs(5);
/// Jobs of one page that an operator sees.
const MOST: u32 = 1000;
/// Bytes of a stream that are read at once.
const PIECE: usize = 1 << 20;

/// How much of a job is shown.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// The first characters of each stream, and the outcome.
    Head(u32),
    /// The first characters of each stream.
    Row(u32),
}

/// As much of a piece as is whole characters.
fn text_of(Piece { bytes, total }: Piece, start: u64) -> Text {
    // The last character may come in the next piece.
    let whole = match std::str::from_utf8(&bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    };
    let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
    Text { text, start, end: start + whole as u64, total }
}

impl Jobs {
    /// One of the caller's jobs, with so many characters of each stream.
    pub(crate) async fn get(&self, id: &str, head: u32, grant: &JobsGrant, scope: &Scope) -> Result<View, Failure> {
        let held = self.held(id, grant, &scope.session).await?;
        self.view(held, Shown::Head(head)).await
    }

    /// The same at its end, or when the time is over.
    pub(crate) async fn wait(
        &self,
        id: &str,
        at_most: Duration,
        with_call: bool,
        head: u32,
        grant: &JobsGrant,
        scope: &Scope,
    ) -> Result<View, Failure> {
        let _waiting = scope.clock.waiting();
        let ended = async {
            let mut heard = Heard::default();
            loop {
                let held = self.held(id, grant, &scope.session).await?;
                if held.progress.state.is_end() {
                    return Ok::<_, Failure>(held);
                }
                self.engine().rung(&mut heard).await;
            }
        };
        tokio::select! {
            held = ended => self.view(held?, Shown::Head(head)).await,
            () = tokio::time::sleep(at_most) => self.get(id, head, grant, scope).await,
            () = scope.cancel.cancelled() => {
                let held = self.held(id, grant, &scope.session).await?;
                let is_own = held.spec.session == scope.session.id() && !held.spec.outlives;
                if with_call && is_own && !held.progress.state.is_end() {
                    self.end(held, "the call that waited for it was cancelled").await?;
                }
                Err(Failure::cancelled())
            }
        }
    }

    /// What a job printed from these bytes on, as soon as there is any, it has ended or the time is over.
    pub(crate) async fn follow(
        &self,
        id: &str,
        starts: [u64; 2],
        most: usize,
        at_most: Duration,
        grant: &JobsGrant,
        scope: &Scope,
    ) -> Result<View, Failure> {
        let _waiting = scope.clock.waiting();
        let (begun, mut heard) = (Instant::now(), Heard::default());
        loop {
            // Before its output: what it printed before its end is then read.
            let held = self.held(id, grant, &scope.session).await?;
            let stdout = self.text(&held, Stream::Stdout, starts[0], most).await?;
            let stderr = self.text(&held, Stream::Stderr, starts[1], most).await?;
            let left = at_most.saturating_sub(begun.elapsed());
            let is_news = !stdout.text.is_empty() || !stderr.text.is_empty() || held.progress.state.is_end();
            if is_news || left.is_zero() {
                let outcome = self.outcome(&held).await?;
                return Ok(View { held, stdout, stderr, outcome });
            }
            // Output rings no bell.
            let again = left.min(Duration::from_millis(200));
            tokio::select! {
                () = self.engine().rung(&mut heard) => {}
                () = tokio::time::sleep(again) => {}
                () = scope.cancel.cancelled() => return Err(Failure::cancelled()),
            }
        }
    }

    /// Ends one of the caller's jobs.
    pub(crate) async fn cancel(&self, id: &str, grant: &JobsGrant, scope: &Scope) -> Result<View, Failure> {
        let held = self.held(id, grant, &scope.session).await?;
        let _waiting = scope.clock.waiting();
        let held = self.stopped(self.end(held, "cancelled by its agent").await?).await?;
        self.view(held, Shown::Row(200)).await
    }

    /// The caller's jobs, the newest first.
    pub(crate) async fn list(
        &self,
        query: Query,
        grant: &JobsGrant,
        scope: &Scope,
    ) -> Result<(Vec<View>, Option<String>), Failure> {
        if !self.engine.is_there() {
            return Ok((Vec::new(), None));
        }
        let agent = Some(grant.agent(&scope.session));
        let lists: Vec<&Vec<String>> =
            grant.tools().iter().filter(|list| !list.iter().any(|name| name == "*")).collect();
        let tools = lists.first().map(|first| first.iter().filter(|tool| grant.has(tool)).cloned().collect());
        self.views(Query { agent, tools, ..query }, 200).await
    }

    async fn views(&self, query: Query, head: u32) -> Result<(Vec<View>, Option<String>), Failure> {
        let page = self.engine().list(&query).await?;
        let mut views = Vec::new();
        for held in page.jobs {
            let held = self.present(held).await?;
            views.push(self.view(held, Shown::Row(head)).await?);
        }
        Ok((views, page.next))
    }

    /// A job that the caller may see. Whether others have one of that id is not told.
    async fn held(&self, id: &str, grant: &JobsGrant, session: &Session) -> Result<Held, Failure> {
        let missing = || {
            let shown = sanitize::beginning(id, 64);
            Failure::invalid(format!("there is no job `{shown}`")).hint("`job_list` says which there are")
        };
        if !self.engine.is_there() {
            return Err(missing());
        }
        let agent = grant.agent(session);
        let held = self.engine().read(id).await?;
        let held = held.filter(|held| held.spec.agent == agent && grant.has(&held.spec.tool)).ok_or_else(missing)?;
        self.present(held).await
    }

    /// A job as it is: where the worker that ran it is gone, it does not run.
    async fn present(&self, held: Held) -> Result<Held, Failure> {
        let Some(worker) = &held.progress.worker else { return Ok(held) };
        if held.progress.stopped || self.engine().is_gone(worker).await != Some(true) {
            return Ok(held);
        }
        self.see_to(held).await
    }

    async fn see_to(&self, held: Held) -> Result<Held, Failure> {
        backend::local::end_call(&held.call()).await;
        let lost = super::worker::lost(&held, "its worker has ended", self.engine().now_ms());
        let now = match settle(self.engine(), &held, lost).await? {
            Settled::Won(held) | Settled::Lost(Some(held)) => held,
            Settled::Lost(None) => held,
        };
        self.engine().ring(&now.progress.lane, &now.spec.id).await;
        Ok(now)
    }

    /// Has a job end, whoever asks; what runs of it may take a moment.
    async fn end(&self, mut held: Held, why: &str) -> Result<Held, Failure> {
        loop {
            let has_begun = match held.progress.state {
                JobState::Pending => false,
                JobState::Running => true,
                JobState::Done | JobState::Error | JobState::Cancelled | JobState::Orphaned => {
                    let message = format!("the job is not running: it is {}", held.progress.state.name());
                    return Err(Failure::failed(message));
                }
            };
            let ended = held.progress.ended(JobState::Cancelled, Some(why.to_owned()), self.engine().now_ms());
            let ended = Progress { stopped: !has_begun, ..ended };
            held = match settle(self.engine(), &held, ended).await? {
                Settled::Won(held) => {
                    self.tell(&held).await;
                    return Ok(held);
                }
                Settled::Lost(Some(now)) => now,
                Settled::Lost(None) => return Err(Failure::failed("the job is not kept any more")),
            };
        }
    }

    /// Has the worker know that runs it; one of another program finds out by itself.
    async fn tell(&self, held: &Held) {
        let running = self.running.read().clone();
        if let Some(running) = running {
            running.worker.look_again(&held.spec.id);
        }
        self.engine().ring(&held.progress.lane, &held.spec.id).await;
    }

    /// A job that was cancelled, once nothing of it runs any more; as it is by then, if that takes too long.
    async fn stopped(&self, held: Held) -> Result<Held, Failure> {
        let stopped = async {
            let mut heard = Heard::default();
            loop {
                match self.engine().read(&held.spec.id).await? {
                    Some(now) if !now.progress.stopped => {}
                    Some(now) => return Ok(now),
                    None => return Ok(held.clone()),
                }
                let _ = tokio::time::timeout(Duration::from_millis(100), self.engine().rung(&mut heard)).await;
            }
        };
        tokio::time::timeout(STOPPING, stopped).await.unwrap_or_else(|_| Ok(held.clone()))
    }

    async fn view(&self, held: Held, shown: Shown) -> Result<View, Failure> {
        let (chars, with_outcome) = match shown {
            Shown::Head(chars) => (chars, true),
            Shown::Row(chars) => (chars, false),
        };
        let most = (chars as usize).saturating_mul(char::MAX.len_utf8()).min(PIECE);
        let (mut stdout, mut stderr) = (Text::default(), Text::default());
        if held.progress.epoch > 0 && chars > 0 {
            stdout = self.text(&held, Stream::Stdout, 0, most).await?;
            stderr = self.text(&held, Stream::Stderr, 0, most).await?;
            for text in [&mut stdout, &mut stderr] {
                let cut = text.text.char_indices().nth(chars as usize).map_or(text.text.len(), |(index, _)| index);
                text.text.truncate(cut);
                text.end = cut as u64;
            }
        }
        let outcome = if with_outcome { self.outcome(&held).await? } else { None };
        Ok(View { held: self.explained(held), stdout, stderr, outcome })
    }

    async fn outcome(&self, held: &Held) -> Result<Option<String>, Failure> {
        if !held.progress.state.is_end() || held.progress.epoch == 0 {
            return Ok(None);
        }
        outcome_of(self.engine(), held).await
    }

    /// Says what a job waits for that nobody here can run.
    fn explained(&self, mut held: Held) -> Held {
        let is_event = held.spec.is_event();
        let lane = self.running.read().as_ref().map(|running| running.door.lanes.of(is_event).to_owned());
        if held.progress.state == JobState::Pending && lane.is_some_and(|lane| lane != held.progress.lane) {
            held.progress.cause = Some(
                "it waits for a program that acts where it was submitted, with the settings of then; `toolcrib jobs adopt` has it run here"
                    .into(),
            );
        }
        held
    }

    async fn text(&self, held: &Held, stream: Stream, start: u64, most: usize) -> Result<Text, Failure> {
        let Held { spec, progress, .. } = held;
        if progress.epoch == 0 {
            return Ok(Text { start, end: start, ..Text::default() });
        }
        // Room for the character that may be cut at the end.
        let most = most.clamp(char::MAX.len_utf8(), PIECE);
        let piece = self.engine().piece(&spec.id, progress.epoch, stream, start, most).await?;
        Ok(text_of(piece, start))
    }
}

/// A job, as an operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct JobShown {
    /// 32 hex digits; its call has the same in the audit trail.
    pub id: String,
    /// How far it is.
    pub state: JobState,
    /// Whose it is.
    pub agent: String,
    /// Who submitted it, and in which session.
    pub origin: String,
    /// 32 hex digits.
    pub session: String,
    /// What it calls.
    pub tool: String,
    /// JSON, without secrets; a list has none.
    pub arguments: Option<String>,
    /// Those of its submission.
    pub labels: BTreeMap<String, String>,
    /// Of the program or command, once it has ended.
    pub exit_code: Option<i32>,
    /// Why it is in this state, or what it waits for.
    pub cause: Option<String>,
    /// Nothing of it is run any more.
    pub stopped: bool,
    /// How often it was begun.
    pub epoch: u64,
    /// When it was submitted, in milliseconds since 1970.
    pub made_ms: u64,
    /// When it was begun last, likewise.
    pub began_ms: Option<u64>,
    /// When it ended, likewise.
    pub ended_ms: Option<u64>,
    /// Bytes that it printed.
    pub stdout_bytes: u64,
    /// The same of its standard error.
    pub stderr_bytes: u64,
}

/// Which jobs an operator sees.
#[derive(Clone, Debug, Default)]
pub struct JobsLook {
    /// Of this agent, or of all.
    pub agent: Option<String>,
    /// In this state.
    pub state: Option<JobState>,
    /// With these labels.
    pub labels: BTreeMap<String, String>,
    /// How many at most, up to 1,000.
    pub limit: u32,
    /// The cursor of the page before.
    pub after: Option<String>,
}

/// Jobs, and where the next page begins.
pub type JobsPage = (Vec<JobShown>, Option<String>);

impl Host {
    /// Jobs of whatever agent, the newest first, and where the next page begins.
    ///
    /// # Errors
    ///
    /// `unavailable` where the store cannot be used.
    pub fn jobs(&self, look: JobsLook) -> BoxFuture<'_, Result<JobsPage, Failure>> {
        Box::pin(async move {
            if !self.jobs.engine.is_there() {
                return Ok((Vec::new(), None));
            }
            let JobsLook { agent, state, labels, limit, after } = look;
            let query = Query { agent, session: None, tools: None, state, labels, limit: limit.min(MOST), after };
            let (views, next) = self.jobs.views(query, 1).await?;
            Ok((views.into_iter().map(|view| self.job_shown(view)).collect(), next))
        })
    }

    /// The job whose id begins so.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where there is none, or several.
    pub fn job<'a>(&'a self, beginning: &'a str) -> BoxFuture<'a, Result<JobShown, Failure>> {
        Box::pin(async move {
            let held = self.held_job(beginning).await?;
            Ok(self.job_shown(self.jobs.view(held, Shown::Row(1)).await?))
        })
    }

    /// What a job printed to its standard output, or error, from this byte on: a piece, and where the next one begins.
    ///
    /// # Errors
    ///
    /// As [`Self::job`].
    pub fn job_output<'a>(
        &'a self,
        id: &'a str,
        is_stderr: bool,
        start: u64,
    ) -> BoxFuture<'a, Result<(String, u64), Failure>> {
        Box::pin(async move {
            let held = self.held_job(id).await?;
            let stream = if is_stderr { Stream::Stderr } else { Stream::Stdout };
            let Text { text, end, .. } = self.jobs.text(&held, stream, start, PIECE).await?;
            Ok((self.redacted(&text), end))
        })
    }

    /// What the call of a job gave, as JSON; none before its end.
    ///
    /// # Errors
    ///
    /// As [`Self::job`].
    pub fn job_outcome<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        Box::pin(async move {
            let held = self.held_job(id).await?;
            Ok(self.jobs.outcome(&held).await?.map(|json| self.redacted(&json)))
        })
    }

    /// Ends a job.
    ///
    /// # Errors
    ///
    /// As [`Self::job`]; `execution_failed` where it has ended.
    pub fn cancel_job<'a>(&'a self, beginning: &'a str) -> BoxFuture<'a, Result<JobShown, Failure>> {
        Box::pin(async move {
            let held = self.held_job(beginning).await?;
            let held = self.jobs.end(held, "cancelled by an operator").await?;
            self.audit.changed(&format!("cancelled job {} of {}", held.spec.id, sanitize::line(&held.spec.agent)));
            let held = self.jobs.stopped(held).await?;
            Ok(self.job_shown(self.jobs.view(held, Shown::Row(1)).await?))
        })
    }

    /// Has a job that waits run by programs of this place, with the settings of now.
    ///
    /// # Errors
    ///
    /// As [`Self::job`]; `execution_failed` where it does not wait.
    pub fn adopt_job<'a>(
        &'a self,
        beginning: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<JobShown, Failure>> {
        Box::pin(async move {
            let lanes = self.jobs.lanes(context).await?;
            let mut held = self.held_job(beginning).await?;
            let lane = lanes.of(held.spec.is_event()).to_owned();
            loop {
                if held.progress.state != JobState::Pending {
                    let message = format!("the job does not wait: it is {}", held.progress.state.name());
                    return Err(Failure::failed(message));
                }
                let adopted = Progress { lane: lane.clone(), cause: None, ..held.progress.clone() };
                held = match settle(self.jobs.engine(), &held, adopted).await? {
                    Settled::Won(held) => {
                        self.audit.changed(&format!(
                            "adopted job {} of {}",
                            held.spec.id,
                            sanitize::line(&held.spec.agent)
                        ));
                        self.jobs.engine().ring(&lane, &held.spec.id).await;
                        return Ok(self.job_shown(self.jobs.view(held, Shown::Row(1)).await?));
                    }
                    Settled::Lost(Some(now)) => now,
                    Settled::Lost(None) => return Err(Failure::failed("the job is not kept any more")),
                };
            }
        })
    }

    /// Ends the jobs of a session that is closed, but for those that were submitted to outlive it.
    pub fn close_session<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // One that submitted nothing has no name there.
            let Some(id) = session.id_if_known() else { return };
            if !self.jobs.engine.is_there() {
                return;
            }
            let mut ended = Vec::new();
            for state in [JobState::Pending, JobState::Running] {
                let session = Some(id.to_owned());
                let mut query = Query { session, state: Some(state), limit: MOST, ..Query::default() };
                loop {
                    let Ok(page) = self.jobs.engine().list(&query).await else { return };
                    for held in page.jobs.into_iter().filter(|held| !held.spec.outlives) {
                        // It may have ended meanwhile.
                        ended.extend(self.jobs.end(held, "its session was closed").await);
                    }
                    match page.next {
                        Some(next) => query.after = Some(next),
                        None => break,
                    }
                }
            }
            let stopped = ended.into_iter().map(|held| self.jobs.stopped(held));
            futures_util::future::join_all(stopped).await;
        })
    }

    async fn held_job(&self, beginning: &str) -> Result<Held, Failure> {
        let missing = || {
            let shown = sanitize::beginning(beginning, 64);
            Failure::invalid(format!("there is no job `{shown}`")).hint("`toolcrib jobs list` says which there are")
        };
        if !self.jobs.engine.is_there() {
            return Err(missing());
        }
        let held = self.jobs.engine.named(beginning).await?.ok_or_else(missing)?;
        self.jobs.present(held).await
    }

    fn job_shown(&self, View { held, stdout, stderr, .. }: View) -> JobShown {
        let Held { spec, progress, .. } = held;
        JobShown {
            id: spec.id,
            state: progress.state,
            agent: spec.agent,
            origin: spec.principal,
            session: spec.session,
            tool: spec.tool,
            arguments: Some(self.redacted(&spec.arguments)).filter(|arguments| !arguments.is_empty()),
            labels: spec.labels,
            exit_code: progress.exit_code,
            cause: progress.cause.map(|cause| self.redacted(&cause)),
            stopped: progress.stopped,
            epoch: progress.epoch,
            made_ms: spec.made_ms,
            began_ms: progress.began_ms,
            ended_ms: progress.ended_ms,
            stdout_bytes: stdout.total,
            stderr_bytes: stderr.total,
        }
    }
}
