//! Waiting: for the end of a process, for output, for anything that can be asked again and again. Every wait has a limit.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Waits until `is_so`, at most a minute: only what never comes takes that long, and a loaded machine is slow.
pub fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    within(Duration::from_secs(60), what, is_so);
}

/// The same for what is many things in a row, and takes as long as all of them.
pub(crate) fn within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(5);
    while !is_so() {
        assert!(begin.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(pause);
        // Many look through all processes: what takes long is looked at less often, and leaves the machine to what is waited for.
        pause = (pause * 5 / 4).min(Duration::from_millis(50));
    }
}

/// Waits for the end of a child, which has to come by itself; none when it has not ended by then.
pub fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let status = child.try_wait().expect("a child");
    if status.is_some() {
        return status;
    }
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("a child can be watched");
    is_readable(&process, limit);
    child.try_wait().expect("a child")
}

/// Waits until there is something to read, or the end of it; false when neither came by then.
pub(crate) fn is_readable(file: impl AsFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).expect("a limit that a clock can hold");
    let readable = retry_on_intr(|| poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&limit)));
    readable.expect("an open file can be watched") > 0
}
