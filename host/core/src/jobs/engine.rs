//! What keeps jobs: rows that change by compare-and-set, a bell that says which wait, output that grows, and workers that may be gone.
//!
//! The row decides, the bell only rings: to have heard of a job is no right to run it. `store/jobs.rs` keeps them in SQLite, for all
//! programs of one machine; an engine for several machines has an answer that this one never gives, [`Swapped::Unknown`].

use super::job::{Held, JobState, Progress, Spec};
use crate::envelope::{Failure, Kind};
use crate::schedules::calendar::Calendar;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;

/// What came of a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Swapped {
    /// It stands, under this revision.
    Won(u64),
    /// The row had another revision.
    Lost,
    /// The answer was lost: it may stand.
    #[cfg_attr(not(test), expect(dead_code, reason = "SQLite never says so; an engine for several machines does"))]
    Unknown,
}

/// What came of a submission.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Created {
    /// There is a new job.
    New,
    /// The token was used before: that job's id.
    There(String),
}

/// What a list of jobs is to have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// Of this agent, or of all.
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    /// Of one of these tools, or of all.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) state: Option<JobState>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) limit: u32,
    /// The cursor of the page before.
    pub(crate) after: Option<String>,
}

/// Jobs, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) jobs: Vec<Held>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

/// How long ended jobs are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    pub(crate) days: u64,
    /// Of one agent.
    pub(crate) jobs: u64,
    /// Output of all, in bytes.
    pub(crate) output_bytes: u64,
}

/// The rows.
pub(crate) trait Rows: Send + Sync {
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
pub(crate) trait Bell: Send + Sync {
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
pub(crate) struct Heard {
    /// Because of what this program did.
    pub(crate) here: u64,
    /// Because of what another did.
    pub(crate) elsewhere: u64,
}

/// A stream of what a job says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
    /// What its call gave in the end, as JSON.
    Outcome,
}

impl Stream {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "out",
            Self::Stderr => "err",
            Self::Outcome => "json",
        }
    }
}

/// A piece of output.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of the whole stream, so far.
    pub(crate) total: u64,
}

/// What jobs say. One run of a job has one writer; what another run writes is never among it.
pub(crate) trait Output: Send + Sync {
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
pub(crate) trait Workers: Send + Sync {
    /// Returns when there may be jobs: nothing is made by waiting for some.
    fn ready<'a>(&'a self) -> BoxFuture<'a, ()>;

    /// Makes this program one of them; its name.
    fn enlist<'a>(&'a self) -> BoxFuture<'a, Result<String, Failure>>;

    /// Whether a worker is certainly gone; none where that cannot be known.
    fn is_gone<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Option<bool>>;
}

/// All of it.
pub(crate) trait Engine: Rows + Bell + Output + Workers + Calendar {}

impl<T: Rows + Bell + Output + Workers + Calendar> Engine for T {}

/// How long a lost answer is waited out before the row is read again.
const AGAIN: Duration = Duration::from_millis(10);
/// How often.
const TIMES: u32 = 500;

/// What came of a change in the end.
#[derive(Debug, PartialEq)]
pub(crate) enum Settled {
    /// It stands.
    Won(Held),
    /// Another came first: the job as it is now, if it is there.
    Lost(Option<Held>),
}

/// Changes a job; where the answer is lost, finds out what stands.
pub(crate) async fn settle(engine: &dyn Engine, held: &Held, progress: Progress) -> Result<Settled, Failure> {
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
}
