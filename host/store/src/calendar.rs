//! What keeps schedules: rows that change by compare-and-set. `queue.rs` does in SQLite.

use super::schedule::{Course, Kept, Schedule};
use crate::engine::Swapped;
use base::envelope::Failure;
use futures_util::future::BoxFuture;

/// What came of saving.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// There was none of that name.
    New,
    /// In the place of another.
    Replaced,
    /// There is another one of that name.
    There,
}

/// What there is to do.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// Schedules that are due, have fired something that has not ended, or were looked at by a clock that has been set back since.
    pub schedules: Vec<Kept>,
    /// The due time of the first of the others.
    pub next_ms: Option<u64>,
}

/// Schedules, and what is wrong with each that cannot be read.
pub type Listed = (Vec<Kept>, Vec<Failure>);

/// The schedules.
pub trait Calendar: Send + Sync {
    /// Keeps a schedule, in the place of the one with the key `over`, or of none. Its agent may have at most so many.
    fn save<'a>(
        &'a self,
        schedule: &'a Schedule,
        course: &'a Course,
        over: Option<&'a str>,
        most: u64,
    ) -> BoxFuture<'a, Result<Saved, Failure>>;

    /// One of an agent's.
    fn schedule<'a>(&'a self, agent: &'a str, name: &'a str) -> BoxFuture<'a, Result<Option<Kept>, Failure>>;

    /// Those of an agent, or of all, by agents and names; each that cannot be read is a fault.
    fn schedules<'a>(&'a self, agent: Option<&'a str>) -> BoxFuture<'a, Result<Listed, Failure>>;

    /// Changes how far one is that still has the revision with which it was read.
    fn move_on<'a>(&'a self, kept: &'a Kept, course: &'a Course) -> BoxFuture<'a, Result<Swapped, Failure>>;

    /// Forgets one; false where there is none. `of`: only as it was read.
    fn forget<'a>(
        &'a self,
        agent: &'a str,
        name: &'a str,
        of: Option<&'a Kept>,
    ) -> BoxFuture<'a, Result<bool, Failure>>;

    /// What there is to do for programs of these lanes.
    fn due<'a>(&'a self, lanes: &'a [String], now_ms: u64) -> BoxFuture<'a, Result<Due, Failure>>;
}
