//! Jobs: calls of tools that outlive their caller, of this session's agent.
//!
//! A person is asked about a command when it is submitted, and nobody while it runs.
//!
//! ```no_run
//! use std::time::Duration;
//! use toolcrib_sdk::{Result, jobs::{self, State, Submission}};
//!
//! fn sorted(text: &str) -> Result<Option<String>> {
//!     let arguments = format!(r#"{{"stdin":{text:?}}}"#);
//!     let id = Submission::new("sort", &arguments).at_most(Duration::from_secs(60)).submit()?;
//!     let job = jobs::wait(&id, Duration::from_secs(10), true, 4_000)?;
//!     Ok((job.state == State::Done).then_some(job.stdout.text))
//! }
//! ```

use crate::duration::milliseconds;
use crate::host::jobs;
use crate::{Failure, Result};
use std::time::Duration;

pub use jobs::{Job, Page, Piece, State};

/// A call on its way to be a job: set what differs from the defaults, then [`submit`](Self::submit).
#[derive(Debug)]
pub struct Submission(jobs::Submission);

impl Submission {
    /// Returns a call of a tool; `arguments` is its JSON object. A declared program is a tool that takes `args` and `stdin`.
    #[must_use]
    pub fn new(tool: &str, arguments: &str) -> Self {
        Self(jobs::Submission::new(tool, arguments))
    }

    /// Adds a label, by which [`Query::label`] finds it: at most 16.
    #[must_use]
    pub fn label(self, name: &str, value: &str) -> Self {
        self.0.label(name, value);
        self
    }

    /// Sets how long it may take once it runs; the default is 10 minutes.
    #[must_use]
    pub fn at_most(self, time: Duration) -> Self {
        self.0.at_most_ms(milliseconds(time));
        self
    }

    /// Has the same token of this agent within a day be the same job.
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.0.token(token);
        self
    }

    /// Has it go on when its session is closed.
    #[must_use]
    pub fn outlive_session(self) -> Self {
        self.0.outlive_session();
        self
    }

    /// Lets it be run again where the program that ran it is lost.
    #[must_use]
    pub fn may_repeat(self) -> Self {
        self.0.may_repeat();
        self
    }

    /// Submits it; returns its id.
    ///
    /// # Errors
    /// `invalid_arguments` also where there is no such tool, `denied` also by a person, `unavailable` where nothing here runs jobs, or `limit`.
    pub fn submit(self) -> Result<String> {
        self.0.submit().map_err(Failure::from_host)
    }
}

/// Returns a job as it is now, with the first `head` characters of each stream.
///
/// # Errors
/// `invalid_arguments` where there is no such job of this agent.
pub fn get(id: &str, head: u32) -> Result<Job> {
    jobs::get(id, head).map_err(Failure::from_host)
}

/// Returns a job at its end, or as it is when the time is over. `with_call`: where this call is cancelled meanwhile, so is a job that this
/// session submitted.
///
/// # Errors
/// As [`get`]; `cancelled`.
pub fn wait(id: &str, at_most: Duration, with_call: bool, head: u32) -> Result<Job> {
    jobs::wait(id, milliseconds(at_most), with_call, head).map_err(Failure::from_host)
}

/// Returns what a job printed from these bytes on, as soon as there is any, it has ended or the time is over: at most `most` bytes of each
/// stream.
///
/// # Errors
/// As [`get`]; `cancelled`.
pub fn follow(id: &str, stdout_start: u64, stderr_start: u64, most: u32, at_most: Duration) -> Result<Job> {
    jobs::follow(id, stdout_start, stderr_start, most, milliseconds(at_most)).map_err(Failure::from_host)
}

/// Ends a job: one that waits never begins, one that runs is ended with all that it started.
///
/// # Errors
/// As [`get`]; `execution_failed` where it had ended.
pub fn cancel(id: &str) -> Result<Job> {
    jobs::cancel(id).map_err(Failure::from_host)
}

/// Returns the tools that can be submitted now: declared programs first.
///
/// # Errors
/// `unavailable` where nothing here runs jobs.
pub fn tools() -> Result<Vec<String>> {
    jobs::tools().map_err(Failure::from_host)
}

/// A look at the agent's jobs.
#[derive(Debug)]
pub struct Query(jobs::Query);

impl Default for Query {
    fn default() -> Self {
        Self::new()
    }
}

impl Query {
    /// Returns a look at this session's jobs.
    #[must_use]
    pub fn new() -> Self {
        Self(jobs::Query::new())
    }

    /// Also those of the agent's other sessions.
    #[must_use]
    pub fn all_sessions(self) -> Self {
        self.0.all_sessions();
        self
    }

    /// Only those in this state.
    #[must_use]
    pub fn in_state(self, state: State) -> Self {
        self.0.in_state(state);
        self
    }

    /// Only those with this label.
    #[must_use]
    pub fn label(self, name: &str, value: &str) -> Self {
        self.0.label(name, value);
        self
    }

    /// How many to return at most: 20 without it, at most 100.
    #[must_use]
    pub fn limit(self, jobs: u32) -> Self {
        self.0.limit(jobs);
        self
    }

    /// Goes on where a page ended.
    #[must_use]
    pub fn after(self, cursor: &str) -> Self {
        self.0.after(cursor);
        self
    }

    /// Looks: the newest first.
    ///
    /// # Errors
    /// `invalid_arguments`, `denied` or `unavailable`.
    pub fn run(self) -> Result<Page> {
        self.0.run().map_err(Failure::from_host)
    }
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::jobs::{Job, Page, Piece, State};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES, Submission::SIGNATURES, Query::SIGNATURES];

    functions! { "jobs":
        get(id: &str, head: u32) -> Job;
        wait(id: &str, at_most_ms: u64, with_call: bool, head: u32) -> Job;
        follow(id: &str, stdout_start: u64, stderr_start: u64, most: u32, at_most_ms: u64) -> Job;
        cancel(id: &str) -> Job;
        tools() -> Vec<String>;
    }

    resource! { "jobs": Submission(tool: &str, arguments: &str) {
        set at_most_ms(ms: u64);
        set token(token: &str);
        set outlive_session();
        set may_repeat();
        add labels by label(name: &str, value: &str);
        end submit -> String;
    } }

    resource! { "jobs": Query() {
        set all_sessions();
        set in_state(state: State);
        set limit(items: u32);
        set after(cursor: &str);
        add labels by label(name: &str, value: &str);
        end run -> Page;
    } }

    read! {
        Job {
            id, tool, state, exit_code, stdout, stderr, outcome, cause, labels, made_ms, began_ms, ended_ms, stopped
        }
        Page { jobs, next }
        Piece { text, start, end, total }
    }

    enums! {
        State { Pending, Running, Done, Error, Cancelled, Orphaned }
    }
}
