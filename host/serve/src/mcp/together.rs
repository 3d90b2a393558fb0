//! Calls that came together. The thread that reads them begins them, some at a time, which are recorded and answered together; where many wait,
//! another thread helps, and the first goes on to read while that one ends its part.

use super::Door;
use super::in_place::{Begun, Called, InPlace};
use parking_lot::Mutex;
use rmcp::service::{Peer, RoleServer, RxJsonRpcMessage};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;
use toolcrib::audit::Batch;

/// Calls that are recorded, and whose answers are written, together.
const AT_ONCE: usize = 8;
/// Calls that wait together, so many that another thread helps.
const SEVERAL: usize = 16;

/// The calls of one client that wait for their first turn, and those that go on after it.
pub(super) struct Together {
    door: Door,
    state: Mutex<State>,
    /// Some go on, or there is no help any more.
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Called>,
    go_on: Vec<RxJsonRpcMessage<RoleServer>>,
    has_help: bool,
}

/// Another thread helps, while this lives.
struct Help(Arc<Together>);

impl Drop for Help {
    fn drop(&mut self) {
        self.0.state.lock().has_help = false;
        self.0.changed.notify_waiters();
    }
}

impl Together {
    pub(super) fn new(door: Door) -> Arc<Self> {
        Arc::new(Self { door, state: Mutex::default(), changed: Notify::new() })
    }

    /// Begins these calls. When it returns none waits any more; the last ones may still be at their first turn on the other thread.
    pub(super) fn begin(self: &Arc<Self>, calls: Vec<Called>, peer: &Peer<RoleServer>) {
        let needs_help = {
            let mut state = self.state.lock();
            state.waiting.extend(calls);
            state.waiting.len() >= SEVERAL && !std::mem::replace(&mut state.has_help, true)
        };
        if needs_help {
            let (help, peer) = (Help(self.clone()), peer.clone());
            // A task could wait for this very thread.
            tokio::task::spawn_blocking(move || help.0.work(&peer));
        }
        self.work(peer);
    }

    /// The calls that go on, as requests like others.
    pub(super) fn go_on(&self) -> Vec<RxJsonRpcMessage<RoleServer>> {
        std::mem::take(&mut self.state.lock().go_on)
    }

    /// Returns when some go on.
    pub(super) async fn some_go_on(&self) {
        self.until(|state| !state.go_on.is_empty()).await;
    }

    /// Returns when all have had their first turn.
    pub(super) async fn all_begun(&self) {
        self.until(|state| !state.has_help).await;
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            // Made before the check: `notify_waiters` reaches only those that exist, so a change in between would be lost.
            let changed = self.changed.notified();
            if is_so(&self.state.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Begins calls until none waits.
    fn work(&self, peer: &Peer<RoleServer>) {
        loop {
            let some: Vec<Called> = {
                let waiting = &mut self.state.lock().waiting;
                let count = waiting.len().min(AT_ONCE);
                waiting.drain(..count).collect()
            };
            if some.is_empty() {
                return;
            }
            let go_on = self.begin_some(some, peer);
            if !go_on.is_empty() {
                self.state.lock().go_on.extend(go_on);
                self.changed.notify_waiters();
            }
            // The client reads these while the next ones are made.
            self.door.0.client.write();
        }
    }

    /// Begins so many calls as are recorded together; answers those that have ended, and returns the others.
    fn begin_some(&self, calls: Vec<Called>, peer: &Peer<RoleServer>) -> Vec<RxJsonRpcMessage<RoleServer>> {
        let batch = (calls.len() > 1).then(|| Batch::of(&self.door.0.host));
        let ended = || batch.as_ref().map_or(0, |batch| batch.calls());
        let mut begun = Vec::with_capacity(calls.len());
        for called in calls {
            let before = ended();
            let call = self.door.begin(called, Some(peer), batch.as_ref());
            begun.push((call, ended() > before));
        }
        if let Some(batch) = &batch {
            batch.write();
        }
        let mut go_on = Vec::new();
        for (call, waits_for_record) in begun {
            let call = match call {
                Begun::GoesOn(called) if waits_for_record => self.door.begin(*called, Some(peer), None),
                other => other,
            };
            match call {
                Begun::Answered(answer) => _ = self.door.0.client.put(&answer),
                Begun::GoesOn(called) => go_on.push(called.into_message()),
            }
        }
        go_on
    }
}
