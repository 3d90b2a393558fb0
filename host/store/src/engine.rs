//! What keeps jobs: rows that change by compare-and-set, a bell that says which wait, output that grows, and workers that may be gone.
//!
//! The row decides, the bell only rings: to have heard of a job is no right to run it. `queue.rs` keeps them in SQLite, for all
//! programs of one machine; an engine for several machines has an answer that this one never gives, [`Swapped::Unknown`].

use super::job::{Held, JobState, Progress, Spec};
use crate::calendar::Calendar;
use base::envelope::{Failure, Kind};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;

/// By which programs something can be run.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// Calls: by those that act at the same place by the same settings.
    pub calls: String,
    /// Events: by those at the same place whose embedder takes them.
    pub events: String,
}

impl Lanes {
    pub fn of(&self, is_event: bool) -> &str {
        if is_event { &self.events } else { &self.calls }
    }

    /// Tells one place from all others.
    pub fn place(&self) -> &str {
        &self.events
    }
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Swapped {
    /// It stands, under this revision.
    Won(u64),
    /// The row had another revision.
    Lost,
    /// The answer was lost: it may stand.
    Unknown,
}

/// What came of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    /// There is a new job.
    New,
    /// The token was used before: that job's id.
    There(String),
}

/// What a list of jobs is to have.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Of this agent, or of all.
    pub agent: Option<String>,
    pub session: Option<String>,
    /// Of one of these tools, or of all.
    pub tools: Option<Vec<String>>,
    pub state: Option<JobState>,
    pub labels: BTreeMap<String, String>,
    pub limit: u32,
    /// The cursor of the page before.
    pub after: Option<String>,
}

/// Jobs, the newest first.
#[derive(Debug, Default)]
pub struct Page {
    pub jobs: Vec<Held>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// How long ended jobs are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    pub days: u64,
    /// Of one agent.
    pub jobs: u64,
    /// Output of all, in bytes.
    pub output_bytes: u64,
}

/// The rows.
pub trait Rows: Send + Sync {
    /// Makes a job, unless its token was used within a day. At most `most` of its agent may wait.
    fn create<'a>(
        &'a self,
        spec: &'a Spec,
        progress: &'a Progress,
        most: u64,
    ) -> BoxFuture<'a, Result<Created, Failure>>;

    /// The job of this agent that a token stands for.
    fn of_token<'a>(&'a self, agent: &'a str, token: &'a str) -> BoxFuture<'a, Result<Option<Held>, Failure>>;

    /// One job.
    fn read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Held>, Failure>>;

    /// Changes a job that still has the revision with which it was read.
    fn swap<'a>(
        &'a self,
        id: &'a str,
        revision: u64,
        progress: &'a Progress,
    ) -> BoxFuture<'a, Result<Swapped, Failure>>;

    /// Jobs by what they are, the newest first; without their arguments.
    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, Failure>>;

    /// The jobs of which something runs, whoever runs it, also those that were cancelled meanwhile.
    fn running<'a>(&'a self) -> BoxFuture<'a, Result<Vec<Held>, Failure>>;

    /// Of these, the jobs that have another revision.
    fn changed<'a>(&'a self, known: Vec<(String, u64)>) -> BoxFuture<'a, Result<Vec<String>, Failure>>;

    /// Forgets ended jobs that are old, or one too many. Returns how many.
    fn expire<'a>(&'a self, keeping: Keeping) -> BoxFuture<'a, Result<u64, Failure>>;

    /// Milliseconds since 1970, by the clock that all programs at this engine share.
    fn now_ms(&self) -> u64;
}

/// What says which jobs wait.
pub trait Bell: Send + Sync {
    /// Says that one waits.
    fn ring<'a>(&'a self, lane: &'a str, id: &'a str) -> BoxFuture<'a, ()>;

    /// Jobs that may wait, as they are, at most so many, the oldest first; none of these sessions.
    fn take<'a>(
        &'a self,
        lane: &'a str,
        most: usize,
        without: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Held>, Failure>>;

    /// Returns when something may have changed that was not heard of: here at once, elsewhere within moments.
    fn rung<'a>(&'a self, heard: &'a mut Heard) -> BoxFuture<'a, ()>;
}

/// How often a bell was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Because of what this program did.
    pub here: u64,
    /// Because of what another did.
    pub elsewhere: u64,
}

/// A stream of what a job says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// What its call gave in the end, as JSON.
    Outcome,
}

impl Stream {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "out",
            Self::Stderr => "err",
            Self::Outcome => "json",
        }
    }
}

/// A piece of output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    pub bytes: Vec<u8>,
    /// Bytes of the whole stream, so far.
    pub total: u64,
}

/// What jobs say. One run of a job has one writer; what another run writes is never among it.
pub trait Output: Send + Sync {
    /// Adds to a stream of a run that has so many bytes.
    fn append<'a>(
        &'a self,
        id: &'a str,
        epoch: u64,
        stream: Stream,
        at: u64,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// At most so many bytes from this one on.
    fn piece<'a>(
        &'a self,
        id: &'a str,
        epoch: u64,
        stream: Stream,
        from: u64,
        most: usize,
    ) -> BoxFuture<'a, Result<Piece, Failure>>;
}

/// The programs that run jobs.
pub trait Workers: Send + Sync {
    /// Returns when there may be jobs: nothing is made by waiting for some.
    fn ready<'a>(&'a self) -> BoxFuture<'a, ()>;

    /// Makes this program one of them; its name.
    fn enlist<'a>(&'a self) -> BoxFuture<'a, Result<String, Failure>>;

    /// Whether a worker is certainly gone; none where that cannot be known.
    fn is_gone<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Option<bool>>;
}

/// All of it.
pub trait Engine: Rows + Bell + Output + Workers + Calendar {}

impl<T: Rows + Bell + Output + Workers + Calendar> Engine for T {}

/// How long a lost answer is waited out before the row is read again.
const AGAIN: Duration = Duration::from_millis(10);
/// How often.
const TIMES: u32 = 500;

/// What came of a change in the end.
#[derive(Debug, PartialEq)]
pub enum Settled {
    /// It stands.
    Won(Held),
    /// Another came first: the job as it is now, if it is there.
    Lost(Option<Held>),
}

/// Changes a job; where the answer is lost, finds out what stands.
pub fn settle<'a>(
    engine: &'a dyn Engine,
    held: &'a Held,
    progress: Progress,
) -> BoxFuture<'a, Result<Settled, Failure>> {
    Box::pin(async move {
        let id = &held.spec.id;
        let mut may_stand = false;
        for _ in 0..TIMES {
            match engine.swap(id, held.revision, &progress).await {
                Ok(Swapped::Won(revision)) => {
                    return Ok(Settled::Won(Held { progress, revision, spec: held.spec.clone() }));
                }
                Ok(Swapped::Lost) => {
                    let now = engine.read(id).await?;
                    // It may have been this very change, whose answer was lost before.
                    return Ok(match now {
                        Some(now) if may_stand && now.progress.is_of(&progress) => Settled::Won(now),
                        now => Settled::Lost(now),
                    });
                }
                Ok(Swapped::Unknown) => may_stand = true,
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(AGAIN).await;
        }
        Err(Failure::new(Kind::Unavailable, "the store of jobs gives no answer"))
    })
}
