//! The CPU time of one guest, by the clock of the thread that runs it.
//!
//! Time on the wall would count what others used: a guest that gives way at a tick waits for its turn, and the kernel takes threads off
//! their processors. A guest may move to another thread between two polls, never within one.

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A clock that runs while the guest's own code does. Clones are the same clock.
#[derive(Clone, Default)]
pub struct CpuClock(Arc<Counter>);

/// Times in nanoseconds. One thread at a time touches them; the executor orders the threads of successive polls.
#[derive(Default)]
struct Counter {
    spent: AtomicU64,
    /// What the wall said when the present stretch in the guest began.
    since: AtomicU64,
    in_guest: AtomicBool,
    span: Span,
}

/// What is not settled yet. The clock of a thread costs a system call, that of the wall does not, and a guest may cross the border of the host
/// a million times. So stretches are taken from the wall, and settled from time to time: the guest has used no more than its thread has
/// since.
#[derive(Default)]
struct Span {
    /// What both clocks said when it began.
    wall: AtomicU64,
    thread: AtomicU64,
    /// In the guest, by the wall.
    in_guest: AtomicU64,
}

/// A span that is shorter is taken as the wall has it: the kernel hardly ever takes a thread off its processor within it, and if so, counts
/// against the guest by no more than this.
const SHORT: u64 = 200_000;

impl CpuClock {
    /// The host hands over to the guest.
    pub(crate) fn enter_guest(&self) {
        self.0.in_guest.store(true, Relaxed);
        self.0.since.store(wall(), Relaxed);
    }

    /// The guest hands over to the host.
    pub(crate) fn leave_guest(&self) {
        self.stop(wall());
        self.0.in_guest.store(false, Relaxed);
    }

    /// What the guest has used so far; to be asked on the thread that runs it.
    pub fn spent(&self) -> Duration {
        let now = wall();
        self.stop(now);
        if now.saturating_sub(self.0.span.wall.load(Relaxed)) >= SHORT {
            self.settle(now);
            self.begin(now);
        }
        Duration::from_nanos(self.0.spent.load(Relaxed) + self.0.span.in_guest.load(Relaxed))
    }

    /// What the guest had used when its thread last let go of it.
    pub fn spent_by_then(&self) -> Duration {
        Duration::from_nanos(self.0.spent.load(Relaxed))
    }

    /// Runs work that contains a guest, and stops the clock whenever the work leaves its thread.
    pub async fn run<W: Future>(&self, work: W) -> W::Output {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            let now = wall();
            self.begin(now);
            if self.0.in_guest.load(Relaxed) {
                self.0.since.store(now, Relaxed);
            }
            let polled = work.as_mut().poll(context);
            let now = wall();
            self.stop(now);
            self.settle(now);
            polled
        })
        .await
    }

    fn begin(&self, now: u64) {
        let span = &self.0.span;
        span.wall.store(now, Relaxed);
        span.thread.store(recent_thread_time(now), Relaxed);
        span.in_guest.store(0, Relaxed);
    }

    /// Takes the present stretch in the guest, if there is one. The next begins here.
    fn stop(&self, now: u64) {
        if self.0.in_guest.load(Relaxed) {
            self.0.span.in_guest.fetch_add(now.saturating_sub(self.0.since.swap(now, Relaxed)), Relaxed);
        }
    }

    fn settle(&self, now: u64) {
        let span = &self.0.span;
        let mut in_guest = span.in_guest.swap(0, Relaxed);
        if now.saturating_sub(span.wall.load(Relaxed)) >= SHORT {
            in_guest = in_guest.min(thread_time().saturating_sub(span.thread.load(Relaxed)));
        }
        self.0.spent.fetch_add(in_guest, Relaxed);
    }
}

fn wall() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

fn thread_time() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

thread_local! {
    /// When the clock of this thread was read, by the wall, and what it said.
    static READ: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// What the clock of this thread said less than [`SHORT`] ago. It has gone on since, so who counts from here counts too much, by no more than that.
fn recent_thread_time(now: u64) -> u64 {
    READ.with(|read| {
        let (when, thread) = read.get();
        if when > 0 && now.saturating_sub(when) < SHORT {
            return thread;
        }
        let thread = thread_time();
        read.set((now, thread));
        thread
    })
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither part is ever negative.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Uses CPU time of this thread.
    fn work(time: Duration) {
        let end = thread_time() + time.as_nanos() as u64;
        while thread_time() < end {
            black_box(0);
        }
    }

    #[tokio::test]
    async fn waiting_and_the_hosts_own_work_do_not_count() {
        let clock = CpuClock::default();
        // Far from what would count wrongly, as the kernel of a busy machine counts more to a thread than it ran.
        let (wait, most) = (Duration::from_millis(250), Duration::from_millis(200));
        let guest = async {
            clock.enter_guest();
            work(Duration::from_millis(25));
            tokio::time::sleep(wait).await;
            clock.leave_guest();
            work(wait);
            clock.enter_guest();
            work(Duration::from_millis(10));
            clock.leave_guest();
        };
        clock.run(guest).await;
        assert!(clock.spent() >= Duration::from_millis(35) && clock.spent() < most, "{:?}", clock.spent());
    }

    #[tokio::test]
    async fn others_that_run_while_a_guest_gives_way_do_not_count() {
        let clock = CpuClock::default();
        let guest = async {
            clock.enter_guest();
            for _ in 0..100 {
                work(Duration::from_micros(100));
                tokio::task::yield_now().await;
            }
            clock.leave_guest();
        };
        let other = async {
            for _ in 0..100 {
                work(Duration::from_millis(5));
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(clock.run(guest), other);
        assert!(clock.spent() >= Duration::from_millis(10), "{:?}", clock.spent());
        assert!(clock.spent() < Duration::from_millis(100), "{:?}", clock.spent());
    }
}
