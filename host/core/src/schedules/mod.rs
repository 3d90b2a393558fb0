//! Schedules: jobs and events at set times. A firing is a job that a schedule submits, under a token that its due time is part of: whoever
//! submits that, it is one.
//!
//! - `timing.rs` says when one is due, `schedule.rs` what one is, `calendar.rs` what keeps them; in SQLite, `store/jobs.rs` does;
//! - `firing.rs` fires what is due and sees to what came of it, as long as a program runs jobs (`../jobs/`);
//! - `save.rs` is how plugins make and change them, `look.rs` what operators see and change.

pub(crate) mod calendar;
pub(crate) mod firing;
mod look;
mod save;
pub(crate) mod schedule;
#[cfg(test)]
mod tests;
mod timing;

pub use look::{ScheduleShown, SchedulesLook, SchedulesShown};
pub(crate) use save::{Change, Does, Planned};
pub use schedule::{Came, ScheduleState};
pub(crate) use timing::{Rule, is_zone};

/// The kind of event that is handed over at a set time.
pub const FIRED: &str = "schedule.fired";
