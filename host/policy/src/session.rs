//! What outlives a call: one caller's failures that repeat, what it has seen, and the approvals given for the whole session.
//!
//! Nothing here is written to disk but what a session was opened with, for its jobs; a session ends with its process or connection.

use crate::approval::ActionKind;
use crate::toolset::Toolset;
use ::http::Extensions;
use base::capability::Capability;
use base::envelope::Failure;
use base::principal::Principal;
use base::text::id::random_id;
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// After so many identical failures the next identical call gets a remedy instead of a run.
const FAILURES_BEFORE_REMEDY: u32 = 2;
/// A failure is forgotten after this long: the world may have changed.
const FAILURE_LIFETIME: Duration = Duration::from_secs(60);
/// Failures remembered at once; the oldest goes first.
const FAILURES_KEPT: usize = 256;
/// Places whose last look is remembered; beyond, all are forgotten.
const LOOKS_KEPT: usize = 64;

/// Commands remembered that were refused something by their cells; the oldest goes first.
const REFUSED_KEPT: usize = 16;
/// After so many a question is not asked again in the session.
const NOES_BEFORE_SILENCE: u32 = 2;
/// Questions remembered that a person said no to; beyond, all are forgotten.
const NOES_KEPT: usize = 256;
/// Calls whose equals are counted; beyond, all are forgotten.
const EQUALS_KEPT: usize = 256;
/// Names of kept output that a session may read; the oldest goes first, as it does on disk.
const OUTPUTS_KEPT: usize = 256;

/// One caller's memory.
#[derive(Default)]
pub struct Session {
    failures: Mutex<HashMap<CallKey, Repeated>>,
    looks: Mutex<HashMap<String, Look>>,
    approved: Arc<Mutex<HashSet<ApprovalKey>>>,
    asking: Arc<tokio::sync::Mutex<()>>,
    outputs: Arc<Mutex<VecDeque<String>>>,
    /// The ends of what the last result said.
    tails: Mutex<Vec<Vec<u8>>>,
    refused: Arc<Mutex<VecDeque<(CommandKey, String)>>>,
    /// What a person said no to, and how often.
    noes: Arc<Mutex<HashMap<RefusalKey, u32>>>,
    /// Under which conditions a person answered last, for each thing that an approval would cover.
    conditions: Arc<Mutex<HashMap<ApprovalKey, Vec<String>>>>,
    opened: Option<Arc<Opened>>,
    /// The kinds of events that were answered since the turn began.
    told: Mutex<BTreeSet<String>>,
    equals: Mutex<Equals>,
    /// The places where a result said that nothing is held back there.
    warned_of: Mutex<BTreeSet<String>>,
    /// What services keep for it, one of each type: it ends with the session.
    slots: Arc<Mutex<Extensions>>,
    id: Arc<OnceLock<String>>,
}

/// How often equal calls were made while nothing else changed anything.
#[derive(Default)]
struct Equals {
    /// Calls that may have changed something.
    changes: u64,
    calls: HashMap<CallKey, Times>,
}

#[derive(Default)]
struct Times {
    times: u64,
    /// The changes by such calls, and by all others up to the first of these.
    own: u64,
    others: u64,
}

/// The toolset that a session was opened on.
struct Opened {
    toolset: Arc<Toolset>,
    /// What it was given for its constants.
    given: Map<String, Value>,
    state: Mutex<Turn>,
}

/// Where a session is in its turns.
#[derive(Clone, Copy, Default)]
struct Turn {
    is_open: bool,
    /// How often its tools have changed.
    generation: u64,
}

/// Kinds of events that are remembered of one turn.
const KINDS_KEPT: usize = 64;

/// What makes two calls the same: who asks, the tool, and the digest of the arguments in canonical form, which may be MiB.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CallKey {
    principal: Principal,
    tool: String,
    arguments: [u8; 32],
}

/// What a person's "yes for this session" covers: one plugin, by its bytes, with one kind of action of one capability on one backend.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ApprovalKey {
    pub plugin: String,
    pub capability: Capability,
    pub kind: ActionKind,
    pub backend: String,
}

impl ApprovalKey {
    /// `sha256` is the digest of the plugin, `backend` where its actions land.
    pub(crate) fn new(sha256: &str, capability: Capability, kind: ActionKind, backend: &str) -> Self {
        Self { plugin: sha256.to_owned(), capability, kind, backend: backend.to_owned() }
    }
}

/// What a person said no to: what an approval would cover, and the very action that a caller wanted.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct RefusalKey {
    covered: ApprovalKey,
    principal: Principal,
    action: [u8; 32],
}

impl RefusalKey {
    pub(crate) fn new(covered: &ApprovalKey, principal: &Principal, action: &str, details: Option<&str>) -> Self {
        let action = Sha256::new().chain_update(action).chain_update([0]).chain_update(details.unwrap_or_default());
        Self { covered: covered.clone(), principal: principal.clone(), action: action.finalize().into() }
    }

    /// Of an action of which the approval names all.
    pub(crate) fn of_covered(covered: &ApprovalKey, principal: &Principal) -> Self {
        Self::new(covered, principal, &covered.backend, None)
    }
}

/// What makes two commands the same: who calls, the plugin by its bytes, the backend, and the digest of the whole text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CommandKey {
    principal: Principal,
    plugin: String,
    backend: String,
    text: [u8; 32],
}

impl CommandKey {
    /// `sha256` is the digest of the plugin, `backend` where the command runs.
    pub(crate) fn new(principal: &Principal, sha256: &str, backend: &str, text: impl AsRef<[u8]>) -> Self {
        let text = Sha256::digest(text.as_ref()).into();
        Self { principal: principal.clone(), plugin: sha256.to_owned(), backend: backend.to_owned(), text }
    }
}

/// What was found at a place that changes.
struct Look {
    digest: [u8; 32],
    first: Instant,
}

struct Repeated {
    failure: Failure,
    times: u32,
    last: Instant,
}

impl CallKey {
    /// `text` is the arguments as JSON.
    pub fn new(principal: &Principal, tool: &str, arguments: &Value, text: &str) -> Self {
        let arguments = match is_sorted(arguments) {
            true => Sha256::digest(text),
            false => {
                let mut arguments = arguments.clone();
                arguments.sort_all_objects();
                Sha256::digest(arguments.to_string())
            }
        };
        Self { principal: principal.clone(), tool: tool.into(), arguments: arguments.into() }
    }
}

/// Whether all objects have their members in the order of their names.
fn is_sorted(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.keys().is_sorted() && members.values().all(is_sorted),
        Value::Array(items) => items.iter().all(is_sorted),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

impl Session {
    /// A memory that sees the tools of a toolset. `given` are the constants that it wants of the session, by name.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where one is missing, or is not wanted.
    pub fn on(toolset: Arc<Toolset>, given: Map<String, Value>) -> Result<Self, Failure> {
        let needs = toolset.needs();
        let name = toolset.name();
        if let Some(missing) = needs.iter().find(|need| !given.contains_key(**need)) {
            let message = format!("toolset `{name}` wants `{missing}` of its session");
            return Err(Failure::invalid(message).hint(format!("give `{missing}` where the session is opened")));
        }
        if let Some(odd) = given.keys().find(|given| !needs.contains(given.as_str())) {
            let wanted: Vec<_> = needs.iter().map(|need| format!("`{need}`")).collect();
            let wanted = if wanted.is_empty() { "nothing".to_owned() } else { wanted.join(", ") };
            return Err(Failure::invalid(format!("toolset `{name}` has no use for `{odd}`"))
                .hint(format!("it wants {wanted} of its session")));
        }
        let opened = Opened { toolset, given, state: Mutex::default() };
        Ok(Self { opened: Some(Arc::new(opened)), ..Self::default() })
    }

    /// The toolset that it was opened on.
    #[must_use]
    pub fn toolset(&self) -> Option<&Arc<Toolset>> {
        self.opened.as_ref().map(|opened| &opened.toolset)
    }

    /// Another memory on the same toolset, with turns of its own that begin where these are.
    #[must_use]
    pub fn another(&self) -> Self {
        let opened = self.opened.as_ref().map(|opened| {
            let (toolset, given, state) = (opened.toolset.clone(), opened.given.clone(), *opened.state.lock());
            Arc::new(Opened { toolset, given, state: Mutex::new(state) })
        });
        Self { opened, ..Self::default() }
    }

    /// Begins or ends a turn. Tools that are there for a turn come and go with it.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where there is no toolset, or it is so already.
    pub fn turn(&self, begins: bool) -> Result<(), Failure> {
        let opened = self.opened.as_ref();
        let opened = opened.ok_or_else(|| Failure::invalid("a session without a toolset has no turns"))?;
        let mut state = opened.state.lock();
        if state.is_open == begins {
            let (is, hint) = if begins { ("is open already", "end it first") } else { ("is open", "begin one first") };
            let message = format!("{} turn {is}", if begins { "a" } else { "no" });
            return Err(Failure::invalid(message).hint(hint));
        }
        state.is_open = begins;
        state.generation += 1;
        if begins {
            self.told.lock().clear();
        }
        Ok(())
    }

    /// The kinds of events that the embedder has answered since the turn began, or the session where it has none: whether a reply was sent, or
    /// an outcome told.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        self.told.lock().iter().cloned().collect()
    }

    /// Whether no result has said so of this place yet; from here on one has.
    pub(crate) fn warns_of(&self, place: &str) -> bool {
        self.warned_of.lock().insert(place.to_owned())
    }

    pub fn remember_told(&self, kind: &str) {
        let mut told = self.told.lock();
        if told.len() < KINDS_KEPT {
            told.insert(kind.to_owned());
        }
    }

    /// How often its tools have changed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.opened.as_ref().map_or(0, |opened| opened.state.lock().generation)
    }

    /// Whether its toolset has a tool, at least while a turn is open.
    ///
    /// # Errors
    ///
    /// `unavailable` where it does not.
    pub fn admit_in_a_turn(&self, tool: &str, plugin: &Manifest) -> Result<(), Failure> {
        self.toolset().map_or(Ok(()), |toolset| toolset.admit(tool, plugin, true))
    }

    /// Refuses a tool of a plugin that its toolset does not have now.
    pub fn admit(&self, tool: &str, plugin: &Manifest) -> Result<(), Failure> {
        match &self.opened {
            None => Ok(()),
            Some(opened) => opened.toolset.admit(tool, plugin, opened.state.lock().is_open),
        }
    }

    /// What is set of the arguments of a tool.
    pub fn bound(&self, tool: &str) -> Option<Map<String, Value>> {
        self.opened.as_ref().and_then(|opened| opened.toolset.bound(tool, &opened.given))
    }

    /// What it was opened with, by name.
    pub fn given(&self) -> Map<String, Value> {
        self.opened.as_ref().map(|opened| opened.given.clone()).unwrap_or_default()
    }

    /// Its agent, or this program's where it says none.
    pub fn agent(&self, otherwise: &str) -> String {
        let opened = self.opened.as_ref();
        opened.and_then(|opened| opened.given.get("agent")?.as_str()).unwrap_or(otherwise).to_owned()
    }

    /// A fresh memory that shares approvals, refusals of cells, browsers, connections to mail servers and kept output with this one, but neither looks nor failures.
    pub fn beside(&self) -> Self {
        let (approved, asking, outputs) = (self.approved.clone(), self.asking.clone(), self.outputs.clone());
        let (refused, opened, id) = (self.refused.clone(), self.opened.clone(), self.id.clone());
        let (slots, noes, conditions) = (self.slots.clone(), self.noes.clone(), self.conditions.clone());
        Self { approved, asking, outputs, refused, noes, conditions, slots, opened, id, ..Self::default() }
    }

    /// A fresh memory for a call that only finds out what would be done. It has this one's approvals where whoever asks is part of this
    /// program: to others a person gave none.
    pub fn rehearsing(&self, has_approvals: bool) -> Self {
        let approved = if has_approvals { self.approved.clone() } else { Arc::default() };
        let (asking, opened, id) = (self.asking.clone(), self.opened.clone(), self.id.clone());
        Self { approved, asking, opened, id, ..Self::default() }
    }

    /// What a service keeps for it.
    pub fn slot<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.slots.lock().get_or_insert_default::<Arc<T>>().clone()
    }

    /// What jobs know it by: 32 hex digits, which no other session has.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.get_or_init(random_id)
    }

    /// The same, where anything was called by it.
    pub fn id_if_known(&self) -> Option<&str> {
        self.id.get().map(String::as_str)
    }

    /// Refuses a call that has just failed the same way often enough.
    pub fn check_repeats(&self, key: &CallKey) -> Result<(), Failure> {
        let mut failures = self.failures.lock();
        failures.retain(|_, repeated| repeated.last.elapsed() < FAILURE_LIFETIME);
        match failures.get(key) {
            Some(repeated) if repeated.times >= FAILURES_BEFORE_REMEDY => Err(remedy(&key.tool, repeated)),
            _ => Ok(()),
        }
    }

    /// Remembers how a call that ran has ended.
    pub fn remember(&self, key: CallKey, failure: Option<&Failure>) {
        let mut failures = self.failures.lock();
        let Some(failure) = failure.filter(|failure| failure.kind.is_deterministic()) else {
            failures.remove(&key);
            return;
        };
        if failures.len() >= FAILURES_KEPT
            && let Some(oldest) = failures.iter().min_by_key(|(_, repeated)| repeated.last).map(|(key, _)| key.clone())
        {
            failures.remove(&oldest);
        }
        let fresh = || Repeated { failure: failure.clone(), times: 0, last: Instant::now() };
        let repeated = failures.entry(key).or_insert_with(fresh);
        if repeated.failure != *failure {
            *repeated = fresh();
        }
        repeated.times += 1;
        repeated.last = Instant::now();
    }

    /// Counts a call among its equals: those with the same arguments, since another call has changed something. Returns what is to be said of
    /// it, where it is more than half of so many.
    ///
    /// # Errors
    ///
    /// `limit` where it would be one more than that.
    pub fn count_equal(&self, key: &CallKey, most: u64) -> Result<Option<String>, Failure> {
        let mut equals = self.equals.lock();
        if equals.calls.len() >= EQUALS_KEPT && !equals.calls.contains_key(key) {
            equals.calls.clear();
        }
        let changes = equals.changes;
        let call = equals.calls.entry(key.clone()).or_default();
        let others = changes - call.own;
        if call.times == 0 || others != call.others {
            (call.times, call.others) = (0, others);
        }
        let tool = &key.tool;
        if call.times >= most {
            let message =
                format!("`{tool}` was called {most} times with these arguments, and nothing else has changed");
            return Err(Failure::limit(message).hint("try something else, or say where you are stuck"));
        }
        call.times += 1;
        let is_much = call.times > most / 2 && call.times > 1;
        let times = call.times;
        Ok(is_much.then(|| {
            format!(
                "this is call {times} of `{tool}` with these arguments, and nothing else has changed (limit: {most})"
            )
        }))
    }

    /// A call may have changed something: others that are equal to earlier ones may have another result now.
    pub fn note_change(&self, key: &CallKey) {
        let mut equals = self.equals.lock();
        equals.changes += 1;
        if let Some(call) = equals.calls.get_mut(key) {
            call.own += 1;
        }
    }

    /// Something changed in the world: what failed before may work now.
    pub fn forget_failures(&self) {
        self.failures.lock().clear();
    }

    /// Notes what was found at a place; returns since when it is the same.
    pub fn unchanged(&self, place: String, text: &str) -> Option<Duration> {
        let digest = Sha256::digest(text).into();
        let mut looks = self.looks.lock();
        if let Some(look) = looks.get(&place).filter(|look| look.digest == digest) {
            return Some(look.first.elapsed());
        }
        if looks.len() >= LOOKS_KEPT {
            looks.clear();
        }
        looks.insert(place, Look { digest, first: Instant::now() });
        None
    }

    /// Something was done: what is seen next is news, also when it looks the same.
    pub(crate) fn forget_looks(&self) {
        self.looks.lock().clear();
    }

    /// Lets the session read on in what was cut of its output.
    pub fn remember_output(&self, name: &str) {
        let mut outputs = self.outputs.lock();
        if outputs.len() >= OUTPUTS_KEPT {
            outputs.pop_front();
        }
        outputs.push_back(name.to_owned());
    }

    /// Names of kept output that the session may read, the oldest first.
    pub fn outputs(&self) -> Vec<String> {
        self.outputs.lock().iter().cloned().collect()
    }

    /// The ends of the texts of the last result, which the next one may go on with.
    pub(crate) fn tails(&self) -> Vec<Vec<u8>> {
        self.tails.lock().clone()
    }

    pub(crate) fn remember_tails(&self, tails: Vec<Vec<u8>>) {
        *self.tails.lock() = tails;
    }

    /// Remembers what the cell of a command refused it.
    pub(crate) fn remember_refused(&self, command: CommandKey, what: String) {
        let mut refused = self.refused.lock();
        refused.retain(|(other, _)| *other != command);
        if refused.len() >= REFUSED_KEPT {
            refused.pop_front();
        }
        refused.push_back((command, what));
    }

    /// Takes what its cell refused a command when it ran last; it is not there a second time.
    pub(crate) fn take_refused(&self, command: &CommandKey) -> Option<String> {
        let mut refused = self.refused.lock();
        let place = refused.iter().position(|(other, _)| other == command)?;
        refused.remove(place).map(|(_, what)| what)
    }

    pub(crate) fn is_approved(&self, key: &ApprovalKey) -> bool {
        self.approved.lock().contains(key)
    }

    /// Waits until no other question of this session is open.
    pub fn ask(&self) -> BoxFuture<'_, tokio::sync::MutexGuard<'_, ()>> {
        Box::pin(async move { self.asking.lock().await })
    }

    pub fn approve(&self, key: ApprovalKey) {
        self.approved.lock().insert(key);
    }

    /// Remembers that a person said no.
    pub(crate) fn refuse(&self, key: RefusalKey) {
        let mut noes = self.noes.lock();
        if noes.len() >= NOES_KEPT && !noes.contains_key(&key) {
            noes.clear();
        }
        *noes.entry(key).or_default() += 1;
    }

    /// The conditions that the last answered question did not have; none where there was no last one.
    pub(crate) fn changed(&self, key: &ApprovalKey, mut conditions: Vec<String>) -> Vec<String> {
        let answered = self.conditions.lock();
        let last = answered.get(key);
        conditions.retain(|condition| last.is_some_and(|last| !last.contains(condition)));
        conditions
    }

    /// Remembers under which conditions a person has answered.
    pub(crate) fn answered_under(&self, key: &ApprovalKey, conditions: Vec<String>) {
        self.conditions.lock().insert(key.clone(), conditions);
    }

    /// A person said no to the same so often that nobody is asked again.
    pub(crate) fn is_refused(&self, key: &RefusalKey) -> bool {
        self.noes.lock().get(key).is_some_and(|times| *times >= NOES_BEFORE_SILENCE)
    }
}

fn remedy(tool: &str, repeated: &Repeated) -> Failure {
    let Repeated { failure, times, .. } = repeated;
    let advice = "change the arguments, or fix what the message names and wait a minute";
    Failure {
        kind: failure.kind,
        message: format!("`{tool}` was not run again: these arguments failed {times} times with: {}", failure.message),
        hint: Some(failure.hint.as_ref().map_or_else(|| advice.to_owned(), |hint| format!("{hint}; {advice}"))),
        data: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_members_makes_no_other_call() {
        let who = Principal::from("a");
        let key = |text: &str| CallKey::new(&who, "x", &serde_json::from_str(text).unwrap(), text);
        assert!(key(r#"{"a":[{"b":1,"c":2}],"d":3}"#) == key(r#"{"d":3,"a":[{"c":2,"b":1}]}"#));
        assert!(key(r#"{"a":1,"b":2}"#) != key(r#"{"a":2,"b":1}"#));
    }

    #[test]
    fn equal_calls_are_counted_until_another_one_changes_something() {
        let (session, who) = (Session::default(), Principal::from("a"));
        let key = |tool: &str| CallKey::new(&who, tool, &json!({}), "{}");
        // Its own changes do not make a call another one.
        for time in 1..=7 {
            let said = session.count_equal(&key("test"), 7).expect("one of seven");
            assert_eq!(said.is_some(), time > 3, "{time}");
            session.note_change(&key("test"));
        }
        assert!(session.count_equal(&key("test"), 7).is_err());
        session.note_change(&key("edit"));
        for _ in 0..100 {
            assert_eq!(session.count_equal(&key("test"), 7), Ok(None));
            session.note_change(&key("test"));
            session.note_change(&key("edit"));
        }
        assert!(session.count_equal(&key("other"), 1).is_ok() && session.count_equal(&key("other"), 1).is_err());
    }

    #[test]
    fn a_refusal_is_remembered_of_one_command_and_once() {
        let (session, who) = (Session::default(), Principal::from("a"));
        let key = |plugin: &str, backend: &str, text: &str| CommandKey::new(&who, plugin, backend, text);
        session.remember_refused(key("a", "local", "x"), "the network".into());
        for other in [
            key("b", "local", "x"),
            key("a", "docker:x", "x"),
            key("a", "local", "x "),
            CommandKey::new(&"b".into(), "a", "local", "x"),
        ] {
            assert_eq!(session.take_refused(&other), None);
        }
        assert_eq!(session.beside().take_refused(&key("a", "local", "x")).as_deref(), Some("the network"));
        assert_eq!(session.take_refused(&key("a", "local", "x")), None);
        for number in 0..=REFUSED_KEPT {
            session.remember_refused(key("a", "local", &number.to_string()), String::new());
        }
        assert_eq!(session.take_refused(&key("a", "local", "0")), None);
        assert!(session.take_refused(&key("a", "local", "1")).is_some());
    }

    #[test]
    fn a_yes_for_the_session_covers_one_plugin_capability_kind_and_backend() {
        let session = Session::default();
        let key = |sha256: &str, capability, kind, backend: &str| ApprovalKey::new(sha256, capability, kind, backend);
        session.approve(key("a", Capability::Shell, ActionKind::Command, "local"));
        assert!(session.is_approved(&key("a", Capability::Shell, ActionKind::Command, "local")));
        for other in [
            key("b", Capability::Shell, ActionKind::Command, "local"),
            key("a", Capability::Panes, ActionKind::Command, "local"),
            key("a", Capability::Shell, ActionKind::Look, "local"),
            key("a", Capability::Shell, ActionKind::Command, "docker:x"),
        ] {
            assert!(!session.is_approved(&other));
        }
    }
}
