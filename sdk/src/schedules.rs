//! Schedules: jobs and events at set times, of this session's agent. They stay until they are removed.
//!
//! ```no_run
//! use toolcrib_sdk::{Result, schedules::Plan};
//!
//! fn each_morning(data: &str) -> Result<Vec<String>> {
//!     let saved = Plan::new("morning").event(data).cron("0 9 * * 1-5").zone("Europe/Berlin").save()?;
//!     Ok(saved.next)
//! }
//! ```

use crate::duration::milliseconds;
use crate::host::schedules;
use crate::{Failure, Result};
use std::time::Duration;

pub use schedules::{Came, Last, Schedule, State};

/// A schedule on its way: say what it does and when, each in one way, then [`save`](Self::save).
#[derive(Debug)]
pub struct Plan(schedules::Plan);

impl Plan {
    /// Returns a schedule with an id: 1 to 50 letters, digits, `_` and `-`.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(schedules::Plan::new(id))
    }

    /// Has it hand an event `schedule.fired` over each time; `data` is JSON, at most 64 KiB.
    #[must_use]
    pub fn event(self, data: &str) -> Self {
        self.0.event(data);
        self
    }

    /// Has it submit a job each time: a call of a tool; `arguments` is its JSON object.
    #[must_use]
    pub fn job(self, tool: &str, arguments: &str) -> Self {
        self.0.job(tool, arguments);
        self
    }

    /// Has it fire by the clock: minute, hour, day of the month, month, day of the week; 0 and 7 are Sunday.
    #[must_use]
    pub fn cron(self, expression: &str) -> Self {
        self.0.cron(expression);
        self
    }

    /// Has it fire at intervals from now on: a minute or more, unless settings say otherwise.
    #[must_use]
    pub fn every(self, time: Duration) -> Self {
        self.0.every_ms(milliseconds(time));
        self
    }

    /// Sets the time zone, such as `Europe/Berlin`; the default is that of settings, or of the machine.
    #[must_use]
    pub fn zone(self, name: &str) -> Self {
        self.0.zone(name);
        self
    }

    /// Has it end with the first firing.
    #[must_use]
    pub fn once(self) -> Self {
        self.0.once();
        self
    }

    /// Has it fire only from the beginning of the first hour of the day to that of the second, each 0 to 23.
    #[must_use]
    pub fn hours(self, start: u8, end: u8) -> Self {
        self.0.hours(start, end);
        self
    }

    /// Sets how long a firing may take; the default is 10 minutes.
    #[must_use]
    pub fn at_most(self, time: Duration) -> Self {
        self.0.timeout_ms(milliseconds(time));
        self
    }

    /// Puts it in the place of one of the same id, if there is one.
    #[must_use]
    pub fn replace(self) -> Self {
        self.0.replace();
        self
    }

    /// Saves it.
    ///
    /// # Errors
    /// `busy` where there is one of that id, `invalid_arguments`, `denied` also by a person, `limit`, or `unavailable` where nothing here would
    /// fire it.
    pub fn save(self) -> Result<Schedule> {
        self.0.save().map_err(Failure::from_host)
    }
}

/// Returns all of them, by ids.
///
/// # Errors
/// `denied` or `unavailable`.
pub fn list_all() -> Result<Vec<Schedule>> {
    schedules::list_all().map_err(Failure::from_host)
}

/// Removes one; what it has begun goes on.
///
/// # Errors
/// `invalid_arguments` where there is none.
pub fn remove(id: &str) -> Result<()> {
    schedules::remove(id).map_err(Failure::from_host)
}

/// Has one fire no more until it is resumed.
///
/// # Errors
/// As [`remove`].
pub fn pause(id: &str) -> Result<Schedule> {
    schedules::pause(id).map_err(Failure::from_host)
}

/// Has one fire from now on, also one that was disabled.
///
/// # Errors
/// As [`remove`].
pub fn resume(id: &str) -> Result<Schedule> {
    schedules::resume(id).map_err(Failure::from_host)
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::schedules::{Came, Last, Schedule, State};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES, Plan::SIGNATURES];

    functions! { "schedules":
        list_all() -> Vec<Schedule>;
        remove(id: &str) -> ();
        pause(id: &str) -> Schedule;
        resume(id: &str) -> Schedule;
    }

    resource! { "schedules": Plan(id: &str) {
        set event(data: &str);
        set job(tool: &str, arguments: &str);
        set cron(expression: &str);
        set every_ms(ms: u64);
        set zone(name: &str);
        set once();
        set hours(start: u8, end: u8);
        set timeout_ms(ms: u64);
        set replace();
        end save -> Schedule;
    } }

    read! {
        Last { due, came, why, job }
        Schedule { id, state, when, zone, tool, content, next, failures, last, running, waits }
    }

    enums! {
        Came { Done, Failed, Missed, Cancelled }
        State { Active, Paused, Disabled, Over }
    }
}
