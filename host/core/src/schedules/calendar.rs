//! What keeps schedules: rows that change by compare-and-set. `store/jobs.rs` does in SQLite.

use super::schedule::{Course, Kept, Schedule};
use crate::envelope::Failure;
use crate::jobs::engine::Swapped;
use async_trait::async_trait;

/// What came of saving.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Saved {
    /// There was none of that name.
    New,
    /// In the place of another.
    Replaced,
    /// There is another one of that name.
    There,
}

/// What there is to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Due {
    /// Schedules that are due, have fired something that has not ended, or were looked at by a clock that has been set back since.
    pub(crate) schedules: Vec<Kept>,
    /// The due time of the first of the others.
    pub(crate) next_ms: Option<u64>,
}

/// The schedules.
#[async_trait]
pub(crate) trait Calendar: Send + Sync {
    /// Keeps a schedule, in the place of the one with the key `over`, or of none. Its agent may have at most so many.
    async fn save(&self, schedule: &Schedule, course: &Course, over: Option<&str>, most: u64)
    -> Result<Saved, Failure>;

    /// One of an agent's.
    async fn schedule(&self, agent: &str, name: &str) -> Result<Option<Kept>, Failure>;

    /// Those of an agent, or of all, by agents and names; each that cannot be read is a fault.
    async fn schedules(&self, agent: Option<&str>) -> Result<(Vec<Kept>, Vec<Failure>), Failure>;

    /// Changes how far one is that still has the revision with which it was read.
    async fn move_on(&self, kept: &Kept, course: &Course) -> Result<Swapped, Failure>;

    /// Forgets one; false where there is none. `of`: only as it was read.
    async fn forget(&self, agent: &str, name: &str, of: Option<&Kept>) -> Result<bool, Failure>;

    /// What there is to do for programs of these lanes.
    async fn due(&self, lanes: &[String], now_ms: u64) -> Result<Due, Failure>;
}
