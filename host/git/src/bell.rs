//! Tells that commands have written into a git directory, when no call is there whose end would be the time to look.

use futures_util::future::BoxFuture;
use std::io;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe;

/// Bytes of events that are read at once; what they say is not looked at.
const BUFFER: usize = 4096;

/// A queue of the kernel's (inotify) that is waited for.
pub struct Bell(OwnedFd);

impl Bell {
    pub fn new(queue: &OwnedFd) -> Option<Self> {
        queue.try_clone().ok().map(Self)
    }

    /// Returns when something was written since; `false` where that cannot be known any more.
    pub fn rings(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let wait = async {
                // It is waited for, so it may pass for a pipe.
                let queue = pipe::Receiver::from_owned_fd_unchecked(self.0.try_clone()?)?;
                queue.readable().await?;
                let mut events = [0; BUFFER];
                while rustix::io::read(&queue, &mut events).is_ok_and(|bytes| bytes > 0) {}
                Ok::<_, io::Error>(())
            };
            wait.await.is_ok()
        })
    }
}
