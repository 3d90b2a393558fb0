//! A process on this machine: what it prints, its end, and all that ends with it.

use super::{Piped, first_line};
use crate::cell::{Joined, Walls};
use crate::spawn::{self, CellEnd};
use crate::{Process, ProcessEvent, tree};
use async_trait::async_trait;
use base::envelope::{Failure, Kind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::process::{WaitId, WaitIdOptions};
use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// How much is read from a stream at a time.
const CHUNK: usize = 64 << 10;

pub(super) struct LocalProcess {
    pub(super) leader: u32,
    end: End,
    call: String,
    /// The process starts no others, so only itself has to be ended.
    pub(super) alone: bool,
    pub(super) stdout: Stream,
    stderr: Stream,
    /// Held as long as the cell is to live that another program makes.
    lifeline: Option<OwnedFd>,
    /// The cell that it has joined.
    joined: Option<Joined>,
    /// The first process of a cell, which told how its command ended, and is not gone yet.
    told_by: Option<OwnedFd>,
    /// Another program makes its cell, which may yet fail.
    is_made_yet: bool,
    ended_with_it: usize,
    exited: Option<i32>,
}

/// By what its end is known. These are waited for, so they may pass for pipes.
enum End {
    /// A pidfd.
    Process(pipe::Receiver),
    /// The lifeline of a cell: its first process tells by it how the command ended when all else is gone, some time before the kernel has
    /// taken the cell apart. It is held as long as that is to live.
    Cell { lifeline: pipe::Receiver, first: OwnedFd },
}

impl End {
    fn source(&self) -> &pipe::Receiver {
        match self {
            Self::Process(source) | Self::Cell { lifeline: source, .. } => source,
        }
    }
}

/// Takes the status of the first process of a cell when that has ended, too.
async fn bury_first(leader: u32, first: OwnedFd) {
    let first = pipe::Receiver::from_owned_fd_unchecked(first);
    if let Ok(first) = &first {
        let _ = first.readable().await;
    }
    let reap =
        |first: &pipe::Receiver| _ = rustix::process::waitid(WaitId::PidFd(first.as_fd()), WaitIdOptions::EXITED);
    tree::bury_leader(leader, || first.as_ref().ok().map(reap));
}

impl LocalProcess {
    pub(super) fn new(
        Piped { started, stdout, stderr }: Piped,
        call: String,
        walls: Option<&Walls>,
    ) -> io::Result<Self> {
        let spawn::Started { pid: leader, handle, lifeline } = started;
        let (end, lifeline) = match (walls, lifeline) {
            (Some(Walls::Cell(_) | Walls::Living(_)), Some(lifeline)) => {
                (End::Cell { lifeline: pipe::Receiver::from_owned_fd_unchecked(lifeline)?, first: handle }, None)
            }
            (None | Some(_), lifeline) => (End::Process(pipe::Receiver::from_owned_fd_unchecked(handle)?), lifeline),
        };
        let (stdout, stderr) = (Stream::new(stdout)?, Stream::new(stderr)?);
        let is_made_yet = matches!(walls, Some(Walls::Bwrap(_)));
        let joined = match walls {
            Some(Walls::Living(joined)) => Some(joined.clone()),
            None | Some(Walls::Cell(_) | Walls::Bwrap(_) | Walls::Domain(_)) => None,
        };
        let (alone, told_by, ended_with_it, exited) = (false, None, 0, None);
        Ok(Self {
            leader,
            end,
            call,
            alone,
            stdout,
            stderr,
            lifeline,
            joined,
            told_by,
            is_made_yet,
            ended_with_it,
            exited,
        })
    }

    /// Waits until the first process of a cell is there that another program makes.
    async fn is_made(&mut self) -> io::Result<bool> {
        let Some(lifeline) = self.lifeline.as_ref().filter(|_| self.is_made_yet) else { return Ok(true) };
        let lifeline = pipe::Receiver::from_owned_fd_unchecked(lifeline.try_clone()?)?;
        lifeline.readable().await?;
        self.is_made_yet = false;
        Ok(spawn::Started::says_it_is_there(&lifeline))
    }

    /// Waits for output or for the end, whichever comes first.
    async fn wait(&mut self) -> io::Result<Option<ProcessEvent>> {
        tokio::select! {
            bytes = self.stdout.receive() => Ok(Some(ProcessEvent::Stdout(bytes?))),
            bytes = self.stderr.receive() => Ok(Some(ProcessEvent::Stderr(bytes?))),
            ended = self.end.source().readable() => {
                ended?;
                self.reap()?;
                self.stdout.mark_end()?;
                self.stderr.mark_end()?;
                Ok(None)
            }
        }
    }

    /// Takes a piece of what a leader that has ended left in its pipes.
    fn rest(&mut self) -> io::Result<Option<ProcessEvent>> {
        if let Some(bytes) = self.stdout.rest()? {
            return Ok(Some(ProcessEvent::Stdout(bytes)));
        }
        Ok(self.stderr.rest()?.map(ProcessEvent::Stderr))
    }

    /// Takes the status of a leader that has ended.
    fn reap(&mut self) -> io::Result<()> {
        let told = match &self.end {
            End::Cell { lifeline, first } => match CellEnd::read(lifeline) {
                Some(end) => {
                    self.told_by = Some(first.try_clone()?);
                    Some(end)
                }
                // It was ended itself.
                None => {
                    let reap = || rustix::process::waitid(WaitId::PidFd(first.as_fd()), WaitIdOptions::EXITED);
                    tree::bury_leader(self.leader, reap)?;
                    None
                }
            },
            End::Process(handle) => {
                let reap = || rustix::process::waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED);
                let status = tree::bury_leader(self.leader, reap)?;
                let lifeline = self.lifeline.take();
                if let Some(lifeline) = lifeline.as_ref().filter(|_| self.is_made_yet) {
                    self.is_made_yet = !spawn::Started::says_it_is_there(lifeline);
                }
                let of_cell = lifeline.and_then(CellEnd::read);
                of_cell.or_else(|| Some(CellEnd { left: 0, status: status?.exit_status() }))
            }
        };
        self.ended_with_it = told.as_ref().map_or(0, |end| end.left as usize);
        self.exited = Some(told.and_then(|end| end.status).unwrap_or(-1));
        Ok(())
    }
}

#[async_trait]
impl Process for LocalProcess {
    async fn begun(&mut self) -> Result<(), Failure> {
        let unavailable =
            |why: String| Failure::new(Kind::Unavailable, format!("the command cannot be confined: {why}"));
        if self.is_made().await.map_err(|error| unavailable(error.to_string()))? {
            return Ok(());
        }
        let mut said = Vec::new();
        while let Ok(event) = self.next().await {
            match event {
                ProcessEvent::Stderr(bytes) => said.extend(bytes),
                ProcessEvent::Stdout(_) => {}
                ProcessEvent::Exited(_) => break,
            }
        }
        Err(unavailable(first_line(&said)))
    }

    async fn next(&mut self) -> io::Result<ProcessEvent> {
        loop {
            let event = match self.exited {
                None => self.wait().await?,
                Some(status) => Some(self.rest()?.unwrap_or(ProcessEvent::Exited(status))),
            };
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    async fn end(&mut self) -> Option<usize> {
        if self.exited.is_some() {
            return Some(0);
        }
        let (ended, left) = tree::end(self.leader, &self.call).await;
        // It was killed: this does not wait long.
        let _ = self.end.source().readable().await;
        let _ = self.reap();
        tree::bury(&ended);
        Some(left)
    }

    async fn left_running(&mut self) -> Vec<u32> {
        tree::adopt(self.leader, &self.call)
    }

    fn ended_with_it(&self) -> usize {
        self.ended_with_it
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        match self.exited {
            Some(_) => {}
            // A client of a server: killed at once, it would leave what it started at the other side; and a container's engine has a
            // process below it that must reap what ends there.
            None if self.alone => tree::end_alone(self.leader),
            None => tree::end_at_once(self.leader, &self.call),
        }
        // Nobody waits for what is left to do; done before, it would hold up who wants to know what came of the command.
        let (Some(first), Ok(runtime)) = (self.told_by.take(), tokio::runtime::Handle::try_current()) else { return };
        let (bury, joined, after) = (bury_first(self.leader, first), self.joined.take(), runtime.clone());
        drop(runtime.spawn_blocking(move || {
            joined.iter().for_each(Joined::prepare);
            after.spawn(bury);
        }));
    }
}

/// The reading end of a child's pipe.
pub(super) struct Stream {
    pub(super) receiver: Option<pipe::Receiver>,
    /// Bytes that stood in the pipe when the child exited. What comes later is written by others, who may never stop.
    left: usize,
}

impl Stream {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        // The runtime would ask whether it is a pipe, and how it is read.
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Self { receiver: Some(pipe::Receiver::from_owned_fd_unchecked(pipe)?), left: 0 })
    }

    /// Waits for bytes; never returns for a stream that has ended.
    async fn receive(&mut self) -> io::Result<Vec<u8>> {
        while let Some(receiver) = &mut self.receiver {
            // Many wait here, and nothing is held for them meanwhile.
            receiver.readable().await?;
            let mut buffer = Vec::with_capacity(CHUNK);
            // The runtime takes a buffer that was not filled for a pipe that is empty, and does not look again.
            match receiver.read_buf(&mut buffer).await? {
                0 => self.receiver = None,
                _ => return Ok(buffer),
            }
        }
        std::future::pending().await
    }

    fn mark_end(&mut self) -> io::Result<()> {
        if let Some(receiver) = &self.receiver {
            self.left = usize::try_from(rustix::io::ioctl_fionread(receiver)?).unwrap_or(usize::MAX);
        }
        Ok(())
    }

    /// Returns a piece of what stood in the pipe at the end. Read straight from the descriptor: the runtime may not know of it yet.
    fn rest(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(receiver) = self.receiver.as_ref().filter(|_| self.left > 0) else { return Ok(None) };
        let mut buffer = vec![0; CHUNK.min(self.left)];
        let length = rustix::io::read(receiver, &mut buffer)?;
        self.left -= length;
        buffer.truncate(length);
        Ok(Some(buffer))
    }
}
