//! Threads on which deep recursion and a panic do no harm. They are kept: making one costs more than parsing most scripts.

use super::Unparsable;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

// The 50 MiB of `cost.rs` with a margin. The kernel provides only the pages that a script really touches.
const STACK: usize = 64 << 20;
/// Far beyond what the caps leave to do.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same for all that is read of one command: each line that is typed is parsed for itself.
const PATIENCE_OF_ALL: Duration = Duration::from_secs(10);
/// Threads that wait for work; beyond, they end.
const KEPT: usize = 2;

thread_local! {
    /// Whether this thread has such a stack.
    static IS_LARGE: Cell<bool> = const { Cell::new(false) };
}

type Job = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<mpsc::Sender<Job>>> = Mutex::new(Vec::new());

/// Runs `work` on a large stack, which may be that of the caller. A thread that overstays or panics is not used again; the caps make sure that
/// it ends.
pub(super) fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Unparsable> + Send + 'static,
) -> Result<T, Unparsable> {
    if IS_LARGE.get() {
        return work();
    }
    let (sender, receiver) = mpsc::channel();
    let thread = hand_over(Box::new(move || drop(sender.send(work()))))?;
    let done = receiver.recv_timeout(PATIENCE).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => Unparsable::TooSlow,
        mpsc::RecvTimeoutError::Disconnected => Unparsable::Failed,
    })?;
    keep(thread);
    done
}

/// The same for all that `work` parses, for a caller that serves others meanwhile: whoever waits for a thread of its own to wait for this one
/// is woken twice.
pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Unparsable> {
    let (sender, receiver) = oneshot::channel();
    let thread = hand_over(Box::new(move || drop(sender.send(work()))))?;
    let done = tokio::time::timeout(PATIENCE_OF_ALL, receiver).await.map_err(|_| Unparsable::TooSlow)?;
    let done = done.map_err(|_| Unparsable::Failed)?;
    keep(thread);
    Ok(done)
}

/// Lets a thread wait for more.
fn keep(thread: mpsc::Sender<Job>) {
    let mut idle = IDLE.lock();
    if idle.len() < KEPT {
        idle.push(thread);
    }
}

/// Gives the job to a thread that waits, or to a new one; it ends when what is returned is dropped.
fn hand_over(job: Job) -> Result<mpsc::Sender<Job>, Unparsable> {
    let idle = IDLE.lock().pop();
    let thread = idle.map_or_else(start, Ok)?;
    thread.send(job).map_err(|_| Unparsable::Failed)?;
    Ok(thread)
}

fn start() -> Result<mpsc::Sender<Job>, Unparsable> {
    let (sender, jobs) = mpsc::channel::<Job>();
    let work = move || {
        IS_LARGE.set(true);
        jobs.into_iter().for_each(|job| job());
    };
    let thread = thread::Builder::new().name("command-parser".to_owned()).stack_size(STACK).spawn(work);
    thread.map(|_| sender).map_err(|_| Unparsable::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_costs_its_own_work_only() {
        for _ in 0..4 {
            assert_eq!(run::<u8>(|| panic!("on purpose")), Err(Unparsable::Failed));
            assert_eq!(run(|| Ok(1)), Ok(1));
        }
    }

    #[tokio::test]
    async fn what_is_parsed_aside_needs_no_further_thread_and_may_panic() {
        let here = || thread::current().id();
        let ran = aside(move || (here(), run(move || Ok(here())))).await.expect("it ran");
        assert_eq!(ran.1, Ok(ran.0));
        assert_ne!(ran.0, here());
        assert_eq!(aside(|| run::<u8>(|| panic!("on purpose"))).await, Err(Unparsable::Failed));
        assert_eq!(aside(|| run(|| Ok(1))).await, Ok(Ok(1)));
    }

    #[test]
    fn much_work_at_once_is_done_at_once() {
        let all: Vec<_> = (0..20).map(|number| thread::spawn(move || run(move || Ok(number)))).collect();
        let done: Vec<u32> = all.into_iter().map(|one| one.join().expect("no panic").expect("done")).collect();
        assert_eq!(done, (0..20).collect::<Vec<_>>());
    }
}
