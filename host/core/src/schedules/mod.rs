//! Schedules: jobs and events at set times. A firing is a job that a schedule submits, under a token that its due time is part of: whoever
//! submits that, it is one.
//!
//! - when one is due, what one is and what keeps them is in the crate `store`;
//! - `firing.rs` fires what is due and sees to what came of it, as long as a program runs jobs (`../jobs/`);
//! - `save.rs` is how plugins make and change them, `look.rs` what operators see and change.

pub(crate) mod firing;
mod look;
mod save;
#[cfg(test)]
mod tests;

pub use guest::later::FIRED;
pub use look::{ScheduleShown, SchedulesLook, SchedulesShown};
pub use store::schedule::{Came, ScheduleState};
