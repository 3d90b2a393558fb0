//! The audit trail: one line when a call is accepted, one with its outcome; append-only, a single write each.
//!
//! A call that is dropped half-way still gets its outcome line (`call.rs`). The trail is not synced per call.

use crate::disk::OwnDir;
use crate::envelope::Failure;
use crate::policy::approval::Declaration;
use crate::sanitize;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// Its file, in the state directory.
pub(crate) const TRAIL: &str = "audit.jsonl";
/// Characters that a line keeps of what an action was, and of any other text.
const WHAT_CHARS: usize = 4096;
const TEXT_CHARS: usize = 1024;
/// Actions that a line tells one by one; of the others it has the number.
const ACTIONS_TOLD: usize = 100;

/// An open trail, or none when the home cannot be written (the host says so once).
pub struct Audit(Option<File>);

/// One thing that a call did or was refused.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Action {
    /// The capability's name.
    pub(crate) capability: &'static str,
    /// What exactly: a command, a path.
    pub(crate) what: String,
    /// What the model declared, where the capability asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) declaration: Option<Declaration>,
    /// Who or what decided, and how.
    pub(crate) decision: String,
}

/// What a call did, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Actions {
    told: Vec<Action>,
    more: u64,
}

impl Actions {
    /// Takes an action, its texts cleaned and cut.
    pub(crate) fn push(&mut self, action: Action) {
        if self.told.len() == ACTIONS_TOLD {
            self.more += 1;
            return;
        }
        self.told.push(Action {
            capability: action.capability,
            what: cut(&sanitize::visible(&action.what), WHAT_CHARS),
            declaration: action.declaration.map(|said| Declaration { why: line(&said.why), ..said }),
            decision: line(&action.decision),
        });
    }
}

fn line(text: &str) -> String {
    cut(&sanitize::line(text), TEXT_CHARS)
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Whom a line speaks of.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Subject<'s> {
    pub(crate) call: &'s str,
    pub(crate) principal: &'s str,
    pub(crate) tool: &'s str,
    /// Digest of the component; absent for a tool that does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin_sha256: Option<&'s str>,
    pub(crate) backend: &'s str,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Entry<'e> {
    Accepted,
    Outcome {
        outcome: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        duration_ms: u128,
        #[serde(skip_serializing_if = "<[Action]>::is_empty")]
        actions: &'e [Action],
        #[serde(skip_serializing_if = "is_zero")]
        more_actions: u64,
    },
}

#[derive(Serialize)]
struct Line<'l> {
    time: String,
    #[serde(flatten)]
    subject: Subject<'l>,
    #[serde(flatten)]
    entry: Entry<'l>,
}

impl Audit {
    /// Opens the trail for appending; only this user may read it.
    ///
    /// # Errors
    ///
    /// When the file cannot be made, or is not this user's own.
    pub(crate) fn open(state: &OwnDir) -> io::Result<Self> {
        Ok(Self(Some(state.append(TRAIL)?)))
    }

    /// Keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    pub(crate) fn accepted(&self, subject: Subject<'_>) {
        self.write(subject, Entry::Accepted);
    }

    pub(crate) fn outcome(&self, subject: Subject<'_>, failure: Option<&Failure>, spent: Duration, actions: &Actions) {
        let outcome = failure.map_or("ok", |failure| failure.kind.name());
        let message = failure.map(|failure| line(&failure.message));
        let (duration_ms, Actions { told, more }) = (spent.as_millis(), actions);
        self.write(subject, Entry::Outcome { outcome, message, duration_ms, actions: told, more_actions: *more });
    }

    fn write(&self, subject: Subject<'_>, entry: Entry<'_>) {
        let Some(mut file) = self.0.as_ref() else { return };
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let mut line = serde_json::to_vec(&Line { time, subject, entry }).expect("an audit line is plain data");
        line.push(b'\n');
        // A full disk must not end calls that are under way; locked deployments decide otherwise.
        let _ = file.write_all(&line);
    }
}
