//! The calls that run in one host: who asked for what, since when, and how to end them.

use super::Principal;
use parking_lot::Mutex;
use policy::scope::Scope;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// One call that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningCall {
    /// 128 random bits in hex, as in the audit trail.
    pub id: String,
    /// Who asked for it.
    pub principal: Principal,
    /// The tool.
    pub tool: String,
    /// Where its effects land.
    pub backend: String,
    /// When it began, in milliseconds since 1970.
    pub since_unix_millis: u64,
    /// It waits for the answer of a person.
    pub asks: bool,
}

/// The calls of a host. A call is listed from when it is accepted until it has its outcome.
#[derive(Default)]
pub(crate) struct Calls(Mutex<BTreeMap<String, Entry>>);

struct Entry {
    scope: Arc<Scope>,
    since: SystemTime,
}

/// Keeps a call listed while it lives.
pub(crate) struct Listed<'c> {
    calls: &'c Calls,
    id: String,
}

impl Calls {
    pub(super) fn list(&self, scope: &Arc<Scope>) -> Listed<'_> {
        let entry = Entry { scope: scope.clone(), since: SystemTime::now() };
        self.0.lock().insert(scope.id.clone(), entry);
        Listed { calls: self, id: scope.id.clone() }
    }

    /// The calls that run, the oldest first.
    pub(crate) fn running(&self) -> Vec<RunningCall> {
        let calls = self.0.lock();
        let mut calls: Vec<&Entry> = calls.values().collect();
        calls.sort_by_key(|entry| entry.since);
        calls.into_iter().map(Entry::shown).collect()
    }

    /// Ends a call; false where none of that id runs.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        self.0.lock().get(id).map(|entry| entry.scope.cancel.cancel()).is_some()
    }
}

impl Entry {
    fn shown(&self) -> RunningCall {
        let Scope { id, principal, tool, backend, .. } = &*self.scope;
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        RunningCall {
            id: id.clone(),
            principal: principal.clone(),
            tool: tool.clone(),
            backend: backend.name().to_owned(),
            since_unix_millis: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            asks: self.scope.approvals.has_question_of(id),
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.id);
    }
}
