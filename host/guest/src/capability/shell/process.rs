//! A command as a process of its own: what it begins with, where it lands, and how it is followed to its end.

use super::stream::Stream;
use super::{End, Plan, made, printed, shell, told, with_way_out};
use crate::capability::bindings::toolcrib::plugin::{exec, programs};
use crate::capability::undo::checkpoint;
use crate::reach::Reach;
use backend::{Backend, Process, ProcessEvent, absolute};
use base::envelope::{Failure, Kind, duration};
use base::paths::normal;
use futures_util::future::BoxFuture;
use kept_output::Captured;
use policy::approval::{Landing, Site};
use policy::run::With;
use policy::shell::AdmittedCommand;
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tmux::Panes;

/// What a guest sets for what it runs.
#[derive(Clone, Default)]
pub(crate) struct Given {
    pub variables: Vec<(String, String)>,
    /// As it was given.
    pub directory: Option<String>,
    pub input: Vec<u8>,
}

impl Given {
    pub(crate) fn is_nothing(&self) -> bool {
        self.variables.is_empty() && self.directory.is_none() && self.input.is_empty()
    }

    /// The same where the call lands. Nothing is decided by it: a command could go anywhere itself.
    pub(crate) async fn located(&self, scope: &Reach) -> Result<With, Failure> {
        let directory = match &self.directory {
            None => None,
            Some(path) => {
                let facts = scope.backend.facts().await?;
                let whole = absolute(path, &facts.directory, &facts.home)?;
                let mounted = scope.session.toolset().and_then(|toolset| toolset.mounted(&normal(&whole)));
                Some(mounted.map_or(whole, |(path, _)| path))
            }
        };
        let with = With { variables: self.variables.clone(), directory, input: self.input.clone() };
        with.check()?;
        Ok(with)
    }
}

/// Where commands land that run as plain processes.
pub(crate) struct PlainProcess<'b> {
    backend: &'b dyn Backend,
    /// Where it begins, if that is not where commands begin.
    directory: Option<PathBuf>,
}

impl<'b> PlainProcess<'b> {
    pub(crate) fn new(backend: &'b dyn Backend, with: &With) -> Self {
        Self { backend, directory: with.directory.clone() }
    }
}

impl Site for PlainProcess<'_> {
    fn landing<'a>(&'a self) -> BoxFuture<'a, Result<Landing, Failure>> {
        Box::pin(async move {
            let directory = match &self.directory {
                Some(directory) => directory.display().to_string(),
                None => self.backend.facts().await?.directory.display().to_string(),
            };
            Ok(Landing { backend: self.backend.name().into(), directory: Some(directory), ..Landing::default() })
        })
    }
}

/// What came of a process that has ended.
pub struct Ran {
    exit_code: i32,
    stdout: Captured,
    stderr: Captured,
    notices: Vec<String>,
}

impl Ran {
    pub fn exit_code(&self) -> i32 {
        self.exit_code
    }

    /// Its status as a failure, with both streams.
    pub fn failed(self, what: &str) -> Failure {
        let how = match self.exit_code {
            -1 => "was ended by a signal".to_owned(),
            status => format!("ended with exit status {status}"),
        };
        let mut data = printed(self.stdout, self.stderr);
        data["exit_code"] = json!(self.exit_code);
        told(Failure::failed(format!("`{what}` {how}")).data(data), self.notices, None)
    }
}

impl From<Ran> for shell::Finished {
    fn from(Ran { exit_code, stdout, stderr, notices }: Ran) -> Self {
        Self { exit_code, stdout: stdout.into(), stderr: stderr.into(), notices }
    }
}

impl From<Ran> for programs::Finished {
    fn from(Ran { exit_code, stdout, stderr, notices }: Ran) -> Self {
        Self { exit_code, stdout: stdout.into(), stderr: stderr.into(), notices }
    }
}

impl From<Ran> for exec::Finished {
    fn from(Ran { exit_code, stdout, stderr, notices }: Ran) -> Self {
        Self { exit_code, stdout: stdout.into(), stderr: stderr.into(), notices }
    }
}

/// Runs a command that was admitted, and follows it to its end.
pub(crate) async fn run(command: &AdmittedCommand, plan: &Plan, scope: &Arc<Reach>) -> Result<Ran, Failure> {
    let calling = scope.services.egress.serve_command(command, &scope.scope)?;
    checkpoint(command.cell().map(|cell| &**cell), scope).await;
    let mut watched = command.watch(false, &*scope.backend).await;
    command.enter(&mut watched, &*scope.backend);
    let before = command.met(&*scope.backend);
    let spec = command.process(&scope.id);
    let _waiting = scope.clock.waiting();
    let mut process = tokio::select! {
        started = scope.backend.start(spec) => started?,
        () = scope.cancel.cancelled() => return Err(Failure::cancelled()),
    };
    let mut stdout = Stream::new("stdout", plan, scope);
    let mut stderr = Stream::new("stderr", plan, scope);
    let start = Instant::now();
    let stopped = tokio::select! {
        biased;
        () = scope.cancel.cancelled() => Some(End::Cancelled),
        () = tokio::time::sleep(plan.wait) => Some(End::TimedOut),
        failure = scope.backend.lost() => Some(End::Lost(failure)),
        begun = process.begun() => begun.map(|()| None)?,
    };
    let wait = plan.wait.saturating_sub(start.elapsed());
    let followed = match stopped {
        Some(end) => Ok(end),
        None => follow(&mut *process, wait, &mut stdout, &mut stderr, scope).await,
    };
    let end = match followed {
        Ok(end) => end,
        Err(error) => return Err(lost(&error).data(printed(stdout.finish().await, stderr.finish().await))),
    };
    match end {
        End::Exited(exit_code) => {
            let (left, ended) = (process.left_running().await, process.ended_with_it());
            let absence = match &scope.panes {
                Panes::Managed(tmux) if plan.wants_pane => tmux.absence().await.unwrap_or_default(),
                Panes::Managed(_) | Panes::Own(_) | Panes::None => None,
            };
            let left = (!left.is_empty()).then(|| left_running(&left));
            let ended = (ended > 0).then(|| ended_with_it(ended, plan.wants_pane));
            let (stdout, stderr) = (stdout.finish().await, stderr.finish().await);
            let made = made(watched, command, scope).await;
            let of_cell = command.notices(exit_code, &stderr.text, before, &*scope.backend).await;
            let of_cell = with_way_out(of_cell, calling.as_ref(), command, scope);
            let out = match command.is_out() {
                true => Some(let_out(command, &*scope.backend).await?),
                false => None,
            };
            let notices = out.into_iter().chain(left).chain(ended).chain(made).chain(of_cell).chain(absence).collect();
            Ok(Ran { exit_code, stdout, stderr, notices })
        }
        End::TimedOut => {
            let message = format!("timed out waiting for the command after {}", duration(plan.wait));
            let failure = Failure::new(Kind::TimedOut, message).hint(
                "the command was ended; give a longer `wait`, or start it in the background with its output in a file",
            );
            let failure = ended(failure, Duration::MAX, &mut *process, stdout, stderr).await;
            Err(told(failure, made(watched, command, scope).await, calling.as_ref()))
        }
        End::Cancelled => {
            // Where the end takes longer, what was printed is still told in time; it goes on all the same.
            let most = Duration::from_millis(scope.limits.grace_ms) * 3 / 4;
            Err(ended(Failure::cancelled(), most, &mut *process, stdout, stderr).await)
        }
        End::Lost(failure) => Err(failure.data(printed(stdout.finish().await, stderr.finish().await))),
    }
}

/// How a command ran that a person let out of its cell.
async fn let_out(command: &AdmittedCommand, backend: &dyn Backend) -> Result<String, Failure> {
    let directory = match command.begins_in() {
        Some(directory) => directory.display().to_string(),
        None => backend.facts().await?.directory.display().to_string(),
    };
    Ok(format!(
        "a person let this command out of its cell: it ran unconfined, this once, as a process of its own in `{directory}`"
    ))
}

async fn follow(
    process: &mut dyn Process,
    wait: Duration,
    stdout: &mut Stream<'_>,
    stderr: &mut Stream<'_>,
    scope: &Reach,
) -> io::Result<End> {
    let (timeout, lost) = (tokio::time::sleep(wait), scope.backend.lost());
    tokio::pin!(timeout, lost);
    loop {
        tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Ok(End::Cancelled),
            () = &mut timeout => return Ok(End::TimedOut),
            failure = &mut lost => return Ok(End::Lost(failure)),
            event = process.next() => match event? {
                ProcessEvent::Stdout(bytes) => stdout.push(&bytes).await,
                ProcessEvent::Stderr(bytes) => stderr.push(&bytes).await,
                ProcessEvent::Exited(status) => return Ok(End::Exited(status)),
            },
        }
    }
}

/// Ends the process, which is waited for so long at `most`, and gives the failure what the command had printed.
async fn ended(
    failure: Failure,
    most: Duration,
    process: &mut dyn Process,
    stdout: Stream<'_>,
    stderr: Stream<'_>,
) -> Failure {
    let survivors = tokio::time::timeout(most, process.end()).await.ok().flatten();
    let mut data = printed(stdout.finish().await, stderr.finish().await);
    match survivors {
        Some(0) => {}
        Some(survivors) => data["survivors"] = json!(survivors),
        None => data["survivors"] = json!("unknown"),
    }
    failure.data(data)
}

fn lost(error: &io::Error) -> Failure {
    Failure::new(Kind::OutcomeUnknown, format!("the command was started, then lost: {error}"))
        .hint("check whether it had its effect before you run it again")
}

/// What a confined command started in the background ends with it.
fn ended_with_it(count: usize, has_panes: bool) -> String {
    let what = if count == 1 {
        "a process that the command started".into()
    } else {
        format!("{count} processes that the command started")
    };
    let instead = if has_panes { "; what is to run on belongs in a pane (`wait: false`)" } else { "" };
    format!("{what} ended with it, as its cell did{instead}")
}

fn left_running(pids: &[u32]) -> String {
    let list: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let (list, one) = (list.join(" "), pids.len() == 1);
    let what = if one { "a process that the command started is" } else { "processes that the command started are" };
    format!("{what} still running: {list} (end with `kill {list}`)")
}
