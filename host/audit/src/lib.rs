//! The audit trail: who called what and what came of it, which plugins were admitted or refused, who changed what they may do.
//!
//! A call leaves a line when it is accepted, before it does anything or waits, and one with its outcome, also one that is dropped half-way
//! (`call/`); one that did nothing writes both at once, unless a record is required or a lock is in force. The file is
//! that of `chained_log`. Where a line cannot be written, the call is refused if settings require a record (`audit.required`); otherwise its result
//! says that the line is missing.
//!
//! It depends on `base`, `config`, `contract`, and on `chained_log` for the file that the trail is written to.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod batch;
mod plugins;
#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use chained_log::beside::{Beside, Sealing};
pub use chained_log::chain::Head;
pub use chained_log::verify;
pub use plugins::ByLock;

use base::capability::Capability;
use base::declaration::Declaration;
use base::dirs::{Dirs, TRAIL};
use base::disk::{OwnDir, told};
use base::envelope::{Failure, Kind};
use base::principal::Principal;
use base::text::sanitize;
use chained_log::chain::{Chain, LINE_BYTES, now};
use config::Level;
use config::Settings;
use config::trail::{PolicyDigest, TrailSettings};
use contract::manifest::PluginId;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Characters that a line keeps of what an action was, and of any other text.
const WHAT_CHARS: usize = 4096;
const TEXT_CHARS: usize = 1024;
/// Flags that the first line lists, and characters of each.
const FLAGS_TOLD: usize = 64;
const FLAG_CHARS: usize = 256;
/// Actions that a line lists one by one; the others are only counted.
const ACTIONS_TOLD: usize = 100;
/// What one call that runs may need for its outcome.
const CALL_RESERVE: u64 = LINE_BYTES as u64;
/// How often a process that writes no line looks whether a seal is due.
pub const SEAL_LOOK: Duration = Duration::from_secs(60);

/// The trail of a host.
pub struct Audit {
    place: Place,
    /// A call that is not recorded is refused.
    required: bool,
    /// The first line of this process, while it is not written.
    opening: Mutex<Option<First>>,
    /// Calls that have no outcome yet.
    running: AtomicU64,
    refusals: Mutex<HashMap<String, Refusals>>,
    /// What was told last of each plugin: that it was admitted, or the code of its refusal.
    told: Mutex<HashMap<PluginId, &'static str>>,
}

/// The first line of a process.
struct First {
    line: Value,
    /// SHA-256 of this program's file, while it is taken; for machines whose auditor asks which program wrote.
    program: Option<JoinHandle<io::Result<String>>>,
}

impl First {
    fn text(&mut self) -> Vec<u8> {
        if let Some(program) = self.program.take() {
            let digest = program.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            self.line["program_sha256"] = digest.unwrap_or_else(|error| format!("not taken: {error}")).into();
        }
        self.line.to_string().into_bytes()
    }
}

/// SHA-256 of the file that this process runs, also where another has its name by now.
fn program_sha256() -> io::Result<String> {
    let mut hash = Sha256::new();
    let (mut file, mut piece) = (File::open("/proc/self/exe")?, vec![0; 1 << 20]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex::encode(hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}

/// Where the trail is.
enum Place {
    Chain(Box<Chain>),
    /// Nowhere, for this reason; the host said so when it started.
    Nowhere(String),
}

/// How often a tool that is refused was asked for since the last line about it.
struct Refusals {
    code: String,
    told: Instant,
    untold: u64,
}

/// What the first line of a process says of it.
#[derive(Clone, Debug, Default, Serialize)]
struct Opening<'o> {
    /// How far the machine is locked.
    level: u8,
    /// The policy files in force, with the digests of their bytes.
    policies: Vec<&'o PolicyDigest>,
    /// What the command line says of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
}

/// One thing that a call did or was refused.
#[derive(Clone, Debug, Serialize)]
pub struct Action {
    /// What was used.
    pub capability: Capability,
    /// What exactly: a command, a path.
    pub what: String,
    /// How the command ran, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<String>,
    /// What the model declared, where the capability asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declaration: Option<Declaration>,
    /// Who or what decided, and how.
    pub decision: String,
}

/// What a call did, in order.
#[derive(Clone, Debug, Default)]
pub struct Actions {
    told: Vec<Action>,
    more: u64,
}

impl Actions {
    /// Takes those of another call, which was part of this one.
    pub fn add(&mut self, others: Self) {
        others.told.into_iter().for_each(|action| self.push(action));
        self.more += others.more;
    }

    /// Takes an action, its texts cleaned and cut.
    pub fn push(&mut self, action: Action) {
        if self.told.len() == ACTIONS_TOLD {
            self.more += 1;
            return;
        }
        self.told.push(Action {
            capability: action.capability,
            what: cut(&sanitize::visible(&action.what), WHAT_CHARS),
            confinement: action.confinement.map(|told| cut(&sanitize::visible_line(&told), TEXT_CHARS)),
            declaration: action.declaration.map(|said| Declaration { why: line(&said.why), ..said }),
            decision: line(&action.decision),
        });
    }
}

fn line(text: &str) -> String {
    sanitize::beginning(text, TEXT_CHARS)
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Whom a line speaks of.
#[derive(Clone, Copy, Serialize)]
pub struct Subject<'s> {
    pub call: &'s str,
    pub principal: &'s Principal,
    pub tool: &'s str,
    /// Digest of the component; absent for a tool that does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin_sha256: Option<&'s str>,
    pub backend: &'s str,
    /// The toolset of the session, if it was opened on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolset: Option<&'s str>,
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
    // First: whoever reads the chain looks for the event there.
    #[serde(flatten)]
    entry: Entry<'l>,
    time: String,
    #[serde(flatten)]
    subject: Subject<'l>,
}

/// Something that is no call.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'e> {
    /// A plugin was loaded.
    Admitted { plugin: &'e str, plugin_sha256: &'e str, origin: &'e str },
    /// A plugin was refused by a lock.
    Refused { plugin: &'e str, plugin_sha256: &'e str, origin: &'e str, code: &'e str, place: &'e str },
    /// Built-in plugins were refused by a lock: all of them in a line, as there are many and nobody added them.
    RefusedBuiltins { what: &'e str, code: &'e str, place: &'e str, plugins: &'e [&'e str] },
    /// A tool of such a plugin was called; so often since the last such line.
    RefusedCalls { tool: &'e str, code: &'e str, calls: u64 },
    /// A policy file has changed, and is obeyed from now on; or it is not, and no call is accepted.
    PolicyChanged {
        path: &'e str,
        /// What it is now; none where there is no such file.
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<&'e str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        not_obeyed: Option<&'e str>,
    },
    /// A person changed what plugins or projects may do, or what is installed.
    Changed { what: &'e str },
}

fn not_recorded(reason: &str) -> String {
    format!("this call is not in the audit trail: {reason}")
}

/// What came of the lines of a call.
pub enum Recorded {
    /// They are written; or are not, for this reason.
    Now(Option<String>),
    /// They are written with those of others.
    With(Arc<Batch>),
}

/// How a call ended.
pub struct Ended<'e> {
    pub failure: Option<&'e Failure>,
    pub spent: Duration,
    pub actions: &'e Actions,
}

impl Ended<'_> {
    /// As many of its actions as fit into a line.
    fn line(&self, subject: Subject<'_>) -> Vec<u8> {
        let Self { failure, spent, actions } = self;
        let outcome = failure.map_or("ok", |failure| failure.kind.name());
        let message = failure.map(|failure| line(&failure.message));
        let duration_ms = spent.as_millis();
        let text = |told: usize| {
            let (actions, more_actions) = (&actions.told[..told], actions.more + (actions.told.len() - told) as u64);
            let message = message.clone();
            let entry = Entry::Outcome { outcome, message, duration_ms, actions, more_actions };
            Line { entry, time: now(), subject }.text()
        };
        let mut told_actions = actions.told.len();
        let mut line = text(told_actions);
        while line.len() > LINE_BYTES && told_actions > 0 {
            told_actions /= 2;
            line = text(told_actions);
        }
        line
    }
}

impl Audit {
    /// The trail that settings speak of. Where it cannot be kept, the host goes on without, unless it is required; also returns why.
    #[must_use]
    pub fn of(settings: &Settings, dirs: &Dirs) -> (Self, Option<io::Error>) {
        let user = rustix::process::geteuid().as_raw();
        let level = Level::of(&settings.locks, user, settings.config.confine.mode).number();
        let policies = settings.policies.iter().filter(|policy| policy.sha256.is_some()).collect();
        let clean = |flag: &String| sanitize::beginning(flag, FLAG_CHARS);
        let flags = settings.sources.flags.iter().take(FLAGS_TOLD).map(clean).collect();
        let opening = Opening { level, policies, flags };
        let place = place(&settings.trail, dirs);
        let opened = Self::open(place, &settings.trail, settings.config.audit.required, &opening);
        // 30 ms for 40 MB, which a start has time for while it does other things; only where somebody vetted what runs.
        if !settings.locks.is_empty()
            && let Some(first) = opened.0.opening.lock().as_mut()
        {
            first.program = std::thread::Builder::new().name("program digest".into()).spawn(program_sha256).ok();
        }
        opened
    }

    fn open(
        place: io::Result<(OwnDir, String)>,
        settings: &TrailSettings,
        required: bool,
        opening: &Opening<'_>,
    ) -> (Self, Option<io::Error>) {
        let chain =
            place.and_then(|(directory, name)| Chain::open(directory, &name, settings.keeping, settings.sealed));
        let (place, error) = match chain {
            Ok(chain) => (Place::Chain(Box::new(chain)), None),
            Err(error) => (Place::Nowhere(told(&error)), Some(error)),
        };
        let program = env!("CARGO_PKG_VERSION");
        let mut line = json!({ "event": "opened", "time": now(), "program": program, "pid": std::process::id() });
        let said = serde_json::to_value(opening).expect("an audit line is plain data");
        let fields = line.as_object_mut().expect("an object");
        fields.extend(said.as_object().cloned().unwrap_or_default());
        let opening = Mutex::new(Some(First { line, program: None }));
        (
            Self {
                place,
                required,
                opening,
                running: AtomicU64::new(0),
                refusals: Mutex::default(),
                told: Mutex::default(),
            },
            error,
        )
    }

    /// Records that a call begins. Returns what its result has to say if it is not on record.
    ///
    /// # Errors
    ///
    /// `unavailable` when a record is required and cannot be made: nothing may happen then.
    pub fn accepted(&self, subject: Subject<'_>) -> Result<Option<String>, Failure> {
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        let reason = match &self.place {
            Place::Chain(chain) => {
                let reserve = self.required.then_some(running * CALL_RESERVE);
                match self.append(chain, vec![Line::accepted(subject)], reserve) {
                    Ok(()) => return Ok(None),
                    Err(error) => told(&error),
                }
            }
            Place::Nowhere(_) if !self.required => return Ok(None),
            Place::Nowhere(reason) => reason.clone(),
        };
        if !self.required {
            return Ok(Some(not_recorded(&reason)));
        }
        let message = format!("no call runs without a line in the audit trail (`audit.required`): {reason}");
        Err(Failure::new(Kind::Unavailable, message)
            .hint("make room for the trail and let this user write it, then try again"))
    }

    /// Records how a call ended. Returns what its result has to say if that is not on record.
    pub fn outcome(&self, subject: Subject<'_>, ended: &Ended<'_>) -> Option<String> {
        self.running.fetch_sub(1, Ordering::Relaxed);
        let Place::Chain(chain) = &self.place else { return None };
        let error = self.append(chain, vec![ended.line(subject)], None).err()?;
        Some(format!("the outcome of this call is not in the audit trail: {}", told(&error)))
    }

    /// Records a call that has ended and did nothing: that it began, and how it ended; by itself, unless it has a batch that is not written.
    pub fn whole(&self, subject: Subject<'_>, ended: &Ended<'_>, batch: Option<&Arc<Batch>>) -> Recorded {
        if matches!(self.place, Place::Nowhere(_)) {
            return Recorded::Now(None);
        }
        let lines = [Line::accepted(subject), ended.line(subject)];
        let taken = match batch {
            Some(batch) => batch.take(lines).map(|()| batch.clone()),
            None => Err(lines),
        };
        match taken {
            Ok(batch) => Recorded::With(batch),
            Err(lines) => Recorded::Now(self.calls(lines.into())),
        }
    }

    /// Writes lines of calls. Returns what the result of each has to say if they are not on record.
    fn calls(&self, lines: Vec<Vec<u8>>) -> Option<String> {
        let Place::Chain(chain) = &self.place else { return None };
        self.append(chain, lines, None).err().map(|error| not_recorded(&told(&error)))
    }

    /// Whether nothing runs without a record.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Records something that is no call. Returns what has to be said if it is not on record.
    pub fn record(&self, event: Event<'_>) -> Option<String> {
        let Place::Chain(chain) = &self.place else { return None };
        let mut line = serde_json::to_value(event).expect("an audit line is plain data");
        let fields = line.as_object_mut().expect("an object");
        for text in fields.values_mut() {
            if let Value::String(text) = text {
                *text = self::line(text);
            }
        }
        fields.insert("time".into(), now().into());
        let error = self.append(chain, vec![line.to_string().into_bytes()], None).err()?;
        Some(format!("this is not in the audit trail: {}", told(&error)))
    }

    /// Records that a person changed what plugins or projects may do, or what is installed. Returns what has to be said if it is not on record.
    pub fn changed(&self, what: &str) -> Option<String> {
        self.record(Event::Changed { what })
    }

    /// Records that a policy file has changed, and why that is not obeyed, if it is not.
    pub fn policy_changed(&self, file: &PolicyDigest, not_obeyed: Option<&str>) {
        let (path, sha256) = (&*file.path.display().to_string(), file.sha256.as_deref());
        let not_obeyed = not_obeyed.map(|why| sanitize::beginning(why, TEXT_CHARS));
        self.record(Event::PolicyChanged { path, sha256, not_obeyed: not_obeyed.as_deref() });
    }

    /// Makes the key that seals the trail from here on; returns it, which is the only copy.
    ///
    /// # Errors
    ///
    /// Why there can be none: the trail cannot be written, or has a key.
    pub fn begin_seals(settings: &Settings, dirs: &Dirs) -> io::Result<[u8; 32]> {
        let chain = looked_after(settings, dirs)?;
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        chain.begin_seals(&key)?;
        // Also told to those that write now: whoever sees a new line looks for the key.
        let line = json!({ "event": "sealing", "time": now() });
        chain.append(&[line.to_string().into_bytes()], None)?;
        Ok(key)
    }

    /// Ends the file of the trail, full or not, and begins the next; returns the name that the old one got. Root does so where another user
    /// writes into a directory of root's.
    ///
    /// # Errors
    ///
    /// Why it cannot be done: the trail has no line yet, or is not this user's to rename.
    pub fn rotate(settings: &Settings, dirs: &Dirs) -> io::Result<String> {
        looked_after(settings, dirs)?.rotate_now()
    }

    /// Sees to it that what this process wrote is sealed when that is due, also while nothing is called, by a look each `look`.
    pub fn keep_sealed(self: &Arc<Self>, look: Duration) {
        let audit = Arc::downgrade(self);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(look).await;
                let Some(audit) = audit.upgrade() else { return };
                // It may wait for the lock of the file.
                let _ = tokio::task::spawn_blocking(move || audit.seal_what_is_due()).await;
            }
        });
    }

    fn seal_what_is_due(&self) {
        if let Place::Chain(chain) = &self.place
            && self.opening.lock().is_none()
        {
            // One that fails is due at the next line, too, whose call says why.
            let _ = chain.seal_if_due();
        }
    }

    /// Adds lines, the first of this process after the one that says who writes.
    fn append(&self, chain: &Chain, mut lines: Vec<Vec<u8>>, reserve: Option<u64>) -> io::Result<()> {
        let mut opening = self.opening.lock();
        match opening.as_mut() {
            None => {
                drop(opening);
                chain.append(&lines, reserve)
            }
            Some(first) => {
                lines.insert(0, first.text());
                chain.append(&lines, reserve)?;
                *opening = None;
                Ok(())
            }
        }
    }
}

/// The directory of the trail, and its file there.
fn place(settings: &TrailSettings, dirs: &Dirs) -> io::Result<(OwnDir, String)> {
    match &settings.file {
        None => Ok((OwnDir::open(&dirs.state)?, TRAIL.to_owned())),
        Some(file) => OwnDir::of_file(file),
    }
}

/// The trail for whoever looks after it: also root, for a user who writes it in a directory of root's.
fn looked_after(settings: &Settings, dirs: &Dirs) -> io::Result<Chain> {
    let (directory, name) = place(&settings.trail, dirs)?;
    Chain::open(directory.for_owner_of(&name)?, &name, settings.trail.keeping, false)
}

impl Drop for Audit {
    /// The last line of a process that wrote any; nobody is left who could be told that it is missing.
    fn drop(&mut self) {
        if let Place::Chain(chain) = &self.place
            && self.opening.get_mut().is_none()
        {
            let untold: Vec<_> = self.refusals.get_mut().drain().filter(|(_, known)| known.untold > 0).collect();
            for (tool, known) in untold {
                self.record(Event::RefusedCalls { tool: &tool, code: &known.code, calls: known.untold });
            }
            let line = json!({ "event": "closed", "time": now(), "pid": std::process::id() });
            let closed = chain.append(&[line.to_string().into_bytes()], None);
            let _ = closed.and_then(|()| chain.seal());
        }
    }
}

impl<'l> Line<'l> {
    fn accepted(subject: Subject<'l>) -> Vec<u8> {
        Self { entry: Entry::Accepted, time: now(), subject }.text()
    }

    fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an audit line is plain data")
    }
}
