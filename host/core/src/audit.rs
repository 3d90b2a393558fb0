//! The audit trail: one line when a call is accepted, one with its outcome; append-only, a single write each.
//!
//! A call that is dropped half-way still gets its outcome line (`call/`). The trail is not synced per call. Where a line
//! cannot be written, the call is refused if settings require a record (`audit.required`); otherwise its result says that the line is missing.

use crate::call::Principal;
use crate::capability::Capability;
use crate::disk::{OwnDir, told};
use crate::envelope::{Failure, Kind};
use crate::policy::approval::Declaration;
use crate::text::sanitize;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

/// Its file, in the state directory.
pub(crate) const TRAIL: &str = "audit.jsonl";
/// Characters that a line keeps of what an action was, and of any other text.
const WHAT_CHARS: usize = 4096;
const TEXT_CHARS: usize = 1024;
/// Actions that a line lists one by one; the others are only counted.
const ACTIONS_TOLD: usize = 100;
/// How often the end of the trail is looked at while others write: each look but the last saw it grow.
const LOOKS: u32 = 100;

/// The trail of a host.
pub struct Audit {
    place: Place,
    /// A call that is not recorded is refused.
    required: bool,
}

/// Where the trail is.
enum Place {
    State(OwnDir),
    /// Nowhere, for this reason; the host said so when it started.
    Nowhere(String),
}

/// One thing that a call did or was refused.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Action {
    /// What was used.
    pub(crate) capability: Capability,
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
    pub(crate) principal: &'s Principal,
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
    /// Keeps the trail in the state directory. Where it cannot be kept, the host goes on without, unless it is required.
    ///
    /// # Errors
    ///
    /// Also why it cannot be kept: the directory cannot be used, or the file is not this user's own.
    pub(crate) fn open(state: io::Result<OwnDir>, required: bool) -> (Self, Option<io::Error>) {
        match state.and_then(|state| state.append(TRAIL).map(|_| state)) {
            Ok(state) => (Self { place: Place::State(state), required }, None),
            Err(error) => (Self { place: Place::Nowhere(told(&error)), required }, Some(error)),
        }
    }

    /// Records that a call begins. Returns what its result has to say if it is not on record.
    ///
    /// # Errors
    ///
    /// `unavailable` when a record is required and cannot be made: nothing may happen then.
    pub(crate) fn accepted(&self, subject: Subject<'_>) -> Result<Option<String>, Failure> {
        let reason = match &self.place {
            Place::State(state) => match append(state, subject, Entry::Accepted) {
                Ok(()) => return Ok(None),
                Err(error) => told(&error),
            },
            Place::Nowhere(_) if !self.required => return Ok(None),
            Place::Nowhere(reason) => reason.clone(),
        };
        if !self.required {
            return Ok(Some(format!("this call is not in the audit trail: {reason}")));
        }
        let message = format!("no call runs without a line in the audit trail (`audit.required`): {reason}");
        Err(Failure::new(Kind::Unavailable, message)
            .hint("make room for the trail and let this user write it, then try again"))
    }

    /// Records how a call ended. Returns what its result has to say if that is not on record.
    pub(crate) fn outcome(
        &self,
        subject: Subject<'_>,
        failure: Option<&Failure>,
        spent: Duration,
        actions: &Actions,
    ) -> Option<String> {
        let Place::State(state) = &self.place else { return None };
        let outcome = failure.map_or("ok", |failure| failure.kind.name());
        let message = failure.map(|failure| line(&failure.message));
        let (duration_ms, Actions { told: actions, more }) = (spent.as_millis(), actions);
        let entry = Entry::Outcome { outcome, message, duration_ms, actions, more_actions: *more };
        let error = append(state, subject, entry).err()?;
        Some(format!("the outcome of this call is not in the audit trail: {}", told(&error)))
    }
}

/// Adds a line. The file is opened for each: it may be moved away, removed or become unusable at any time.
fn append(state: &OwnDir, subject: Subject<'_>, entry: Entry<'_>) -> io::Result<()> {
    let file = state.append(TRAIL)?;
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    // A disk that filled up, or a machine that went down, left part of a line: ours begins on a line of its own.
    let mut line = if is_torn(&file)? { vec![b'\n'] } else { Vec::new() };
    serde_json::to_writer(&mut line, &Line { time, subject, entry }).expect("an audit line is plain data");
    line.push(b'\n');
    match write_once(&file, &line)? {
        written if written == line.len() => Ok(()),
        // To write the rest would glue it to whatever another process has added by now.
        _ => Err(io::Error::from(io::ErrorKind::StorageFull)),
    }
}

/// Whether the last line has no end. While another process writes a line, a part of it can be seen, page by page; that is not a torn line.
fn is_torn(file: &File) -> io::Result<bool> {
    let mut length = file.metadata()?.len();
    // A process that adds bytes without end, and no end of a line, holds nobody up.
    for _ in 0..LOOKS {
        if ends_in_newline(file, length)? {
            return Ok(false);
        }
        // To change a mode, even into itself, takes the lock of the inode, which a write holds until all of it is there.
        file.set_permissions(file.metadata()?.permissions())?;
        let now = file.metadata()?.len();
        if now == length {
            break;
        }
        length = now;
    }
    Ok(true)
}

fn ends_in_newline(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else { return Ok(true) };
    let mut byte = [b'\n'];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == [b'\n'])
}

fn write_once(mut file: &File, line: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(line) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_adds_bytes_without_end_holds_no_call_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("state");
        let (audit, _) = Audit::open(OwnDir::open(&path), true);
        let mut trail = File::options().append(true).open(path.join(TRAIL)).expect("a trail");
        let (sender, done) = std::sync::mpsc::channel();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    trail.write_all(b"x").expect("a byte");
                }
            });
            scope.spawn(move || {
                let subject = Subject {
                    call: "1",
                    principal: &"cli".into(),
                    tool: "time",
                    plugin_sha256: None,
                    backend: "local",
                };
                let recorded = (0..100).all(|_| audit.accepted(subject).is_ok());
                let _ = sender.send(recorded);
            });
            let recorded = done.recv_timeout(Duration::from_secs(10));
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(recorded, Ok(true));
        });
    }

    #[test]
    fn no_line_that_is_being_written_counts_as_torn() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = || OwnDir::open(&directory.path().join("state")).expect("a directory of ours");
        state();
        let (threads, lines) = (8, 200);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let (audit, _) = Audit::open(Ok(state()), true);
                    let long = "x".repeat(3000);
                    let subject = Subject {
                        call: "1",
                        principal: &long.as_str().into(),
                        tool: "time",
                        plugin_sha256: None,
                        backend: "local",
                    };
                    (0..lines).for_each(|_| assert_eq!(audit.accepted(subject).expect("recorded"), None));
                });
            }
        });
        let trail = std::fs::read_to_string(directory.path().join("state").join(TRAIL)).expect("a trail");
        assert_eq!(trail.lines().count(), threads * lines);
        assert!(trail.lines().all(|line| line.starts_with('{') && line.ends_with('}')));
    }
}
