//! A command in a pane: found or made, waited for, followed. It is the pane's, not the call's: who stops waiting leaves it running.

use super::stream::Stream;
use super::{End, Plan, made, printed, shell, told, with_way_out};
use crate::capability::undo::checkpoint;
use crate::reach::Reach;
use backend::cell::Profile;
use base::envelope::{Failure, Kind, duration};
use command::Script;
use egress::Calling;
use futures_util::future::BoxFuture;
use kept_output::Captured;
use policy::approval::{Landing, Site};
use policy::event::{Event, Level};
use policy::held::Watched;
use policy::shell::AdmittedCommand;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tmux::{Begun, Ended, Pane, Run, Selector, Tmux};
use tokio::sync::Mutex;

/// How long a command that was interrupted may take to end.
const AFTER_INTERRUPT: Duration = Duration::from_millis(1500);
/// How long the trip there may take beside the wait, until the command runs.
const TRIP: Duration = Duration::from_secs(5);
/// How long the shared pane is waited for before a command gets a pane for itself.
const SHARED_TURN: Duration = Duration::from_secs(1);

/// The pane that a command goes to, found when it is first needed: by the question that names it, or by the command.
pub(super) struct Target<'t> {
    tmux: &'t Tmux,
    selector: &'t Selector,
    /// What its shell has to be confined to.
    cell: Option<&'t Arc<Profile>>,
    /// Whether it may be a pane for this command alone.
    extra: Extra,
    scope: &'t Arc<Reach>,
    found: Mutex<Option<Pane>>,
}

/// Whether a command gets a pane for itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    /// The command names a pane, or settings forbid it.
    Never,
    /// If the shared pane is busy.
    IfBusy,
    /// The command continues after its call.
    Always,
}

impl<'t> Target<'t> {
    pub(super) fn new(
        tmux: &'t Tmux,
        selector: &'t Selector,
        cell: Option<&'t Arc<Profile>>,
        goes_on: bool,
        scope: &'t Arc<Reach>,
    ) -> Self {
        let extra = match goes_on {
            _ if !tmux.has_extra() || *selector != Selector::default() => Extra::Never,
            true => Extra::Always,
            false => Extra::IfBusy,
        };
        Self { tmux, selector, cell, extra, scope, found: Mutex::default() }
    }

    /// Makes a pane for this command alone.
    async fn extra(&self, command: &AdmittedCommand) -> Result<Pane, Failure> {
        let text = command.text().to_owned();
        let program = command::aside(move || Script::parse(&text).ok()?.program()).await.flatten();
        let mut pane = self.tmux.extra(program.as_deref().unwrap_or("command"), self.cell, command).await?;
        pane.notices.push(format!("it runs in pane {}, whose shell is a new one", pane.shown()));
        Ok(pane)
    }

    async fn find(&self) -> Result<Pane, Failure> {
        if let Some(text) = self.tmux.attaching(self.selector.session.as_deref()).await {
            self.scope.emit(Event::Log { level: Level::Info, text });
        }
        self.tmux.find_again(self.selector, self.cell).await
    }
}

impl Site for Target<'_> {
    fn landing<'a>(&'a self) -> BoxFuture<'a, Result<Landing, Failure>> {
        Box::pin(async move {
            let mut found = self.found.lock().await;
            let mut pane = match found.take() {
                Some(pane) => pane,
                None => self.find().await?,
            };
            let mut directory = pane.directory().await;
            if directory.as_ref().is_err_and(|failure| pane.is_gone(failure)) {
                pane = self.find().await?;
                directory = pane.directory().await;
            }
            let backend = self.scope.backend.name().to_owned();
            let shown = if self.extra == Extra::Always { pane.shown_beside() } else { pane.shown() };
            let landing = Landing { backend, pane: Some(shown), directory: directory?, delay: None };
            *found = Some(pane);
            Ok(landing)
        })
    }
}

pub(super) async fn run(
    command: &AdmittedCommand,
    target: Target<'_>,
    plan: &Plan,
    scope: &Arc<Reach>,
) -> Result<shell::Outcome, Failure> {
    let _waiting = scope.clock.waiting();
    let tmux = target.tmux;
    checkpoint(command.cell().map(|cell| &**cell), scope).await;
    let mut watched = command.watch(true, &*scope.backend).await;
    let before = command.met(&*scope.backend);
    let (Begun { mut run, directory, mut notices }, calling) = start(command, &target, plan.wait, &mut watched).await?;
    if plan.dispatch {
        notices.into_iter().for_each(|notice| scope.guard.notice(notice));
        return Ok(shell::Outcome::Dispatched(run.pane()));
    }
    if let Some(files) = tmux.other_than(&directory).await {
        notices
            .push(format!("the pane's directory is `{directory}`; paths of file tools begin in `{}`", files.display()));
    }
    let mut stdout = Stream::new("stdout", plan, scope);
    let followed = follow(&mut run, plan.wait, &mut stdout, scope).await;
    match followed {
        Ok(End::Exited(exit_code)) => {
            let stdout = stdout.finish().await;
            notices.extend(made(watched, command, scope).await);
            let of_cell = command.notices(exit_code, &stdout.text, before, &*scope.backend).await;
            notices.extend(with_way_out(of_cell, calling.as_ref(), command, scope));
            let stderr = Captured::default().into();
            Ok(shell::Outcome::Finished(shell::Finished { exit_code, stdout: stdout.into(), stderr, notices }))
        }
        Ok(End::TimedOut) => {
            let message =
                format!("timed out waiting for the command after {}; it is still running", duration(plan.wait));
            let hint = format!(
                "see its progress with capture-pane, or end it with send-keys `C-c`, both with `target` as `{}`",
                run.pane()
            );
            let failure = Failure::new(Kind::TimedOut, message).hint(hint);
            Err(told(with_output(failure, &run, stdout).await, made(watched, command, scope).await, calling.as_ref()))
        }
        Ok(End::Cancelled) => {
            let ended = async {
                run.interrupt().await;
                to_end(&mut run, &mut stdout).await;
            };
            let ended = tokio::time::timeout(AFTER_INTERRUPT, ended).await;
            let failure = Failure::cancelled();
            let failure =
                if ended.is_ok() { failure } else { failure.hint("it ignored C-c and still runs in its pane") };
            Err(with_output(failure, &run, stdout).await)
        }
        Ok(End::Lost(lost)) | Err(lost) => Err(with_output(lost, &run, stdout).await),
    }
}

/// Starts the command. Neither a server that has stopped nor a link that is lost holds a call up beyond its wait.
async fn start(
    command: &AdmittedCommand,
    target: &Target<'_>,
    wait: Duration,
    watched: &mut Option<Watched>,
) -> Result<(Begun, Option<Calling>), Failure> {
    let is_typed = AtomicBool::new(false);
    let started = async {
        let mut pane = match target.found.lock().await.take() {
            _ if target.extra == Extra::Always => target.extra(command).await?,
            Some(pane) => pane,
            None => target.find().await?,
        };
        // Only now, as it may be the cell of a pane that was found.
        let calling = target.scope.services.egress.serve_command(command, &target.scope.scope)?;
        command.enter(watched, &*target.scope.backend);
        let turn = if target.extra == Extra::IfBusy { SHARED_TURN } else { tmux::TURN };
        let mut begun = pane.run(command, wait, turn, &is_typed).await;
        let is_typed_yet = || is_typed.load(Ordering::Acquire);
        if begun.as_ref().is_err_and(|failure| !is_typed_yet() && pane.is_gone(failure)) {
            pane = if target.extra == Extra::Always { target.extra(command).await? } else { target.find().await? };
            begun = pane.run(command, wait, turn, &is_typed).await;
        }
        if target.extra == Extra::IfBusy
            && let Err(busy) = &begun
            && busy.kind == Kind::Busy
            && !is_typed_yet()
        {
            let why = format!("{}, so the command has a pane for itself", busy.message);
            // Where there can be none, the shared one is waited for.
            if let Ok(extra) = target.extra(command).await {
                pane = extra;
                pane.notices.insert(0, why);
            }
            begun = pane.run(command, wait, tmux::TURN, &is_typed).await;
        }
        let mut begun = begun?;
        if *target.selector == Selector::default() {
            target.tmux.went_to(&pane);
        }
        begun.notices.splice(..0, pane.notices);
        Ok::<_, Failure>((begun, calling))
    };
    let scope = target.scope;
    let lost = tokio::select! {
        biased;
        started = started => return started,
        () = scope.cancel.cancelled() => return Err(Failure::cancelled()),
        failure = scope.backend.lost() => failure,
        () = tokio::time::sleep(wait + TRIP) => {
            let place = target.tmux.place();
            let message = format!("the tmux server on {place} did not answer within {}", duration(wait + TRIP));
            Failure::new(Kind::OutcomeUnknown, message).hint("check whether it had its effect before you run it again")
        }
    };
    if is_typed.load(Ordering::Acquire) {
        return Err(lost);
    }
    Err(Failure::new(Kind::Unavailable, lost.message).hint("nothing was run; try again when it answers"))
}

async fn follow(run: &mut Run, wait: Duration, stdout: &mut Stream<'_>, scope: &Reach) -> Result<End, Failure> {
    let (timeout, lost) = (tokio::time::sleep(wait), scope.backend.lost());
    tokio::pin!(timeout, lost);
    loop {
        tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Ok(End::Cancelled),
            () = &mut timeout => return Ok(End::TimedOut),
            failure = &mut lost => return Ok(End::Lost(failure)),
            next = run.follow() => match next? {
                Ended::Output(bytes) => stdout.push(&bytes).await,
                Ended::Exited(status) => return Ok(End::Exited(status)),
            },
        }
    }
}

async fn to_end(run: &mut Run, stdout: &mut Stream<'_>) {
    while let Ok(Ended::Output(bytes)) = run.follow().await {
        stdout.push(&bytes).await;
    }
}

async fn with_output(failure: Failure, run: &Run, stdout: Stream<'_>) -> Failure {
    let mut data = printed(stdout.finish().await, Captured::default());
    data["pane"] = json!(run.pane());
    failure.data(data)
}
