//! Calls that came together. The thread that reads them begins them, some at a time, which are recorded and answered together; where many wait,
//! another thread helps, and the first goes on to read while that one ends its part. A call that goes on after its first turn has a task, which
//! writes its answer.

use super::Door;
use super::in_place::{Begun, Called, FirstTurn, InPlace, answer};
use futures_util::FutureExt;
use parking_lot::Mutex;
use rmcp::model::{CallToolRequest, ClientRequest, ProtocolVersion, RequestId};
use rmcp::service::{Peer, RequestContext, RoleServer, RxJsonRpcMessage, Service};
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolcrib::audit::Batch;

/// Calls that are recorded, and whose answers are written, together.
const AT_ONCE: usize = 8;
/// Calls that wait together, so many that another thread helps.
const SEVERAL: usize = 16;

/// The calls of one client that wait for their first turn, and those that go on after it.
pub(super) struct Together {
    door: Door,
    state: Mutex<State>,
    /// There are requests, or there is no help any more. Whoever reads waits for this: the end of a call does not wake it.
    begun: Notify,
    /// A call has ended.
    ended: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Called>,
    has_help: bool,
    /// Calls that were not begun, as they want what only a request has.
    requests: Vec<RxJsonRpcMessage<RoleServer>>,
    /// Calls that go on.
    running: HashMap<RequestId, GoingOn>,
    /// The number of the last one.
    last: u64,
    /// Calls that have ended, and whose answers are being written.
    answering: usize,
}

/// A call that goes on. A client that uses an id again before its first call has ended gets the answer of the second.
struct GoingOn {
    number: u64,
    cancel: CancellationToken,
}

/// The records of calls, which are written also where a fault ends what begins them: whoever waits for them would wait for ever.
struct Records(Arc<Batch>);

impl Drop for Records {
    fn drop(&mut self) {
        self.0.write();
    }
}

/// Another thread helps, while this lives.
struct Help(Arc<Together>);

impl Drop for Help {
    fn drop(&mut self) {
        self.0.state.lock().has_help = false;
        self.0.begun.notify_waiters();
    }
}

impl Together {
    pub(super) fn new(door: Door) -> Arc<Self> {
        Arc::new(Self { door, state: Mutex::default(), begun: Notify::new(), ended: Notify::new() })
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

    /// The calls that are requests like others.
    pub(super) fn requests(&self) -> Vec<RxJsonRpcMessage<RoleServer>> {
        std::mem::take(&mut self.state.lock().requests)
    }

    /// Returns when there are some.
    pub(super) async fn some_requests(&self) {
        until(&self.begun, || !self.state.lock().requests.is_empty()).await;
    }

    /// Returns when all have had their first turn.
    pub(super) async fn all_begun(&self) {
        until(&self.begun, || !self.state.lock().has_help).await;
    }

    /// Returns when all have ended.
    pub(super) async fn all_ended(&self) {
        self.all_begun().await;
        let have_ended = |state: &State| state.running.is_empty() && state.answering == 0;
        until(&self.ended, || have_ended(&self.state.lock())).await;
    }

    /// How many go on.
    pub(super) fn running(&self) -> usize {
        self.state.lock().running.len()
    }

    /// Cancels a call that goes on: it gets no answer.
    pub(super) fn cancel(&self, id: &RequestId) {
        let cancelled = self.state.lock().running.remove(id);
        if let Some(call) = cancelled {
            call.cancel.cancel();
            self.ended.notify_waiters();
        }
    }

    /// Begins calls until none waits.
    fn work(self: &Arc<Self>, peer: &Peer<RoleServer>) {
        loop {
            let some: Vec<Called> = {
                let waiting = &mut self.state.lock().waiting;
                let count = waiting.len().min(AT_ONCE);
                waiting.drain(..count).collect()
            };
            if some.is_empty() {
                return;
            }
            self.begin_some(some, peer);
            // The client reads these while the next ones are made.
            self.door.0.client.write();
        }
    }

    /// Begins so many calls as are recorded together, and answers those that have ended.
    fn begin_some(self: &Arc<Self>, calls: Vec<Called>, peer: &Peer<RoleServer>) {
        let records = (calls.len() > 1).then(|| Records(self.door.0.host.batch()));
        let batch = records.as_ref().map(|records| &records.0);
        let ended = || batch.map_or(0, |batch| batch.calls());
        let mut begun = Vec::with_capacity(calls.len());
        for called in calls {
            let before = ended();
            let call = self.door.begin(called, Some(peer), batch);
            begun.push((call, ended() > before));
        }
        drop(records);
        for (call, waits_for_record) in begun {
            let call = match call {
                Begun::GoesOn(called) if waits_for_record => self.door.begin(*called, Some(peer), None),
                other => other,
            };
            match call {
                Begun::Answered(answer) => _ = self.door.0.client.put(&answer),
                Begun::GoesOn(called) if may_go_on(&called) => self.go_on(*called, peer),
                Begun::GoesOn(called) => {
                    self.state.lock().requests.push(called.into_message());
                    self.begun.notify_waiters();
                }
            }
        }
    }

    /// Whether a call that has ended is to be answered now: it was not cancelled, and its id is still its own.
    fn ends(&self, id: &RequestId, number: u64) -> bool {
        let mut state = self.state.lock();
        let is_wanted = state.running.get(id).is_some_and(|call| call.number == number);
        if is_wanted {
            state.running.remove(id);
            state.answering += 1;
        }
        is_wanted
    }

    /// Has a call go on. Through rmcp its answer would pass three tasks, and wake another thread.
    fn go_on(self: &Arc<Self>, Called { id, params, meta, extensions }: Called, peer: &Peer<RoleServer>) {
        let mut context = RequestContext::new(id.clone(), peer.clone());
        (context.meta, context.extensions) = (meta, extensions);
        let number = {
            let mut state = self.state.lock();
            state.last += 1;
            let call = GoingOn { number: state.last, cancel: context.ct.clone() };
            state.running.insert(id.clone(), call);
            state.last
        };
        let this = self.clone();
        tokio::spawn(async move {
            let called = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let outcome = AssertUnwindSafe(this.door.handle_request(called, context)).catch_unwind().await;
            if this.ends(&id, number) {
                let client = &this.door.0.client;
                // Who has gone needs none.
                let _ = client.put(&answer(outcome.ok(), id));
                client.write();
                this.state.lock().answering -= 1;
            }
            this.ended.notify_waiters();
        });
    }
}

async fn until(changed: &Notify, is_so: impl Fn() -> bool) {
    loop {
        // Made before the check: `notify_waiters` reaches only those that exist, so a change in between would be lost.
        let changed = changed.notified();
        if is_so() {
            return;
        }
        changed.await;
    }
}

/// Whether a call that was begun may have a task of its own. In a session without `initialize` a request may name a version that has it, and
/// its call then asks its client questions, which rmcp lets only its own tasks do.
fn may_go_on(called: &Called) -> bool {
    let version = called.meta.protocol_version();
    let is_older = version.is_some_and(|version| version.as_str() < ProtocolVersion::NO_INITIALIZE.as_str());
    !is_older && called.extensions.get::<FirstTurn>().is_some()
}
