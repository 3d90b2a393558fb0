//! What a model is shown of a job.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use toolcrib_sdk::jobs::{self, Job, Piece, State};
use toolcrib_sdk::{JsonSchema, Result, schemars};

/// Characters of the beginning of each stream, and bytes of its end.
pub(crate) const HEAD: u32 = 2_000;
const TAIL: u32 = 2_000;

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateName {
    Pending,
    Running,
    Done,
    Error,
    Cancelled,
    Orphaned,
}

impl From<State> for StateName {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Running => Self::Running,
            State::Done => Self::Done,
            State::Error => Self::Error,
            State::Cancelled => Self::Cancelled,
            State::Orphaned => Self::Orphaned,
        }
    }
}

impl From<StateName> for State {
    fn from(state: StateName) -> Self {
        match state {
            StateName::Pending => Self::Pending,
            StateName::Running => Self::Running,
            StateName::Done => Self::Done,
            StateName::Error => Self::Error,
            StateName::Cancelled => Self::Cancelled,
            StateName::Orphaned => Self::Orphaned,
        }
    }
}

pub(crate) fn is_end(state: State) -> bool {
    match state {
        State::Pending | State::Running => false,
        State::Done | State::Error | State::Cancelled | State::Orphaned => true,
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Status {
    job_id: String,
    /// The program or tool.
    bin: String,
    state: StateName,
    /// Of the program or command, once it has ended; -1 when a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The beginning and the end.
    stdout: String,
    stderr: String,
    /// Bytes of all that was printed; `job_watch` returns it piece by piece.
    stdout_bytes: u64,
    stderr_bytes: u64,
    /// Why it is in this state, or what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// What the tool returned, where it is neither a program nor a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Value>,
    labels: BTreeMap<String, String>,
    made_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    began_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<u64>,
}

/// A job with the beginning and the end of each stream.
pub(crate) fn status(job: Job) -> Result<Status> {
    let tail = |piece: &Piece| piece.total.saturating_sub(TAIL.into()).max(piece.end);
    let starts = [tail(&job.stdout), tail(&job.stderr)];
    let has_more = |piece: &Piece| piece.end < piece.total;
    let (mut stdout, mut stderr) = (job.stdout.text.clone(), job.stderr.text.clone());
    if has_more(&job.stdout) || has_more(&job.stderr) {
        let end = jobs::follow(&job.id, starts[0], starts[1], TAIL + 4, Duration::ZERO)?;
        for (shown, before, after) in [(&mut stdout, &job.stdout, &end.stdout), (&mut stderr, &job.stderr, &end.stderr)]
        {
            let left_out = after.start - before.end;
            if left_out > 0 {
                shown.push_str(&format!("\n[{left_out} bytes left out]\n"));
            }
            // A character may have been cut in two.
            shown.push_str(after.text.trim_start_matches(char::REPLACEMENT_CHARACTER));
        }
    }
    let outcome = job.outcome.filter(|_| job.exit_code.is_none() && stdout.is_empty() && stderr.is_empty());
    Ok(Status {
        job_id: job.id,
        bin: job.tool,
        state: job.state.into(),
        exit_code: job.exit_code,
        stdout,
        stderr,
        stdout_bytes: job.stdout.total,
        stderr_bytes: job.stderr.total,
        cause: job.cause,
        outcome: outcome.and_then(|outcome| serde_json::from_str(&outcome).ok()),
        labels: job.labels.into_iter().collect(),
        made_ms: job.made_ms,
        began_ms: job.began_ms,
        ended_ms: job.ended_ms,
    })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Row {
    job_id: String,
    bin: String,
    state: StateName,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The first 200 characters.
    stdout: String,
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    labels: BTreeMap<String, String>,
    made_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<u64>,
}

pub(crate) fn row(job: Job) -> Row {
    Row {
        job_id: job.id,
        bin: job.tool,
        state: job.state.into(),
        exit_code: job.exit_code,
        stdout: job.stdout.text,
        stderr: job.stderr.text,
        cause: job.cause,
        labels: job.labels.into_iter().collect(),
        made_ms: job.made_ms,
        ended_ms: job.ended_ms,
    }
}
