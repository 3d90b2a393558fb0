//! Calls that are begun and answered together: what they leave in the trail is one write, made before anybody sees an answer.

use super::Audit;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The records of such calls. A call that ends before [`Batch::write`] waits for it; one that ends later is recorded by itself.
pub struct Batch {
    audit: Arc<Audit>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lines: Vec<Vec<u8>>,
    waiting: Vec<Waker>,
    calls: usize,
    /// What each of their results has to say, once they are written.
    written: Option<Option<String>>,
}

impl Batch {
    /// One of calls that this trail records.
    #[must_use]
    pub fn of(audit: Arc<Audit>) -> Arc<Self> {
        Arc::new(Self { audit, state: Mutex::default() })
    }

    /// How many calls have come to their end in it.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.state.lock().calls
    }

    /// Writes what the calls have left, which then go on.
    pub fn write(&self) {
        let mut state = self.state.lock();
        if state.written.is_some() {
            return;
        }
        let lines = std::mem::take(&mut state.lines);
        let told = if lines.is_empty() { None } else { self.audit.calls(lines) };
        state.written = Some(told);
        state.waiting.drain(..).for_each(Waker::wake);
    }

    /// Takes the lines of a call. Gives them back where the others are written.
    pub fn take(&self, lines: [Vec<u8>; 2]) -> Result<(), [Vec<u8>; 2]> {
        let mut state = self.state.lock();
        if state.written.is_some() {
            return Err(lines);
        }
        state.lines.extend(lines);
        state.calls += 1;
        Ok(())
    }

    /// Waits until they are written; returns what the result has to say if they are not on record.
    pub fn written(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            poll_fn(|context| {
                let mut state = self.state.lock();
                if let Some(told) = &state.written {
                    return Poll::Ready(told.clone());
                }
                state.waiting.push(context.waker().clone());
                Poll::Pending
            })
            .await
        })
    }
}

impl Drop for Batch {
    /// What has ended is on record, also where nobody waits for it any more.
    fn drop(&mut self) {
        self.write();
    }
}
