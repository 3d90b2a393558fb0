//! `wit/shell.wit`: commands, by the backend or in one of its panes, after the grant admitted them.

mod in_pane;
mod stream;

use super::Refusal;
use super::bindings::toolcrib::plugin::{shell, types};
use crate::backend::{Backend, Process, ProcessEvent, ProcessSpec};
use crate::call::scope::Scope;
use crate::egress::Calling;
use crate::envelope::{Failure, Kind, duration};
use crate::event::Event;
use crate::kept_output::Captured;
use crate::policy::approval::{Declaration, Landing, Risk, Site};
use crate::policy::command::Destination;
use crate::policy::confine::Look;
use crate::policy::shell::{AdmittedCommand, ShellGrant, Wanted};
use crate::sandbox::State;
use crate::text::sanitize;
use crate::tmux::{Panes, Selector};
use async_trait::async_trait;
use in_pane::Target;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::Stream;
use wasmtime::component::Resource;

/// Characters of each stream that a guest gets when it does not say.
const DEFAULT_HEAD: u32 = 4000;
/// Bytes of the reason that a model gives for a command: a person reads it whole.
const WHY_BYTES: usize = 1024;

/// A command that a guest prepares: the host's side of the resource.
#[derive(Clone)]
#[expect(unreachable_pub, reason = "the generated bindings name it as public")]
pub struct Command {
    text: String,
    declaration: Declaration,
    wait: shell::Wait,
    head: u32,
    pane: Selector,
}

impl shell::Host for State {}

impl shell::HostCommand for State {
    async fn new(&mut self, text: String, declaration: types::Declaration) -> wasmtime::Result<Resource<Command>> {
        self.meter.charge_bytes(text.len() + declaration.why.len())?;
        let declaration = declaration.into();
        let command =
            Command { text, declaration, wait: shell::Wait::UntilExit, head: DEFAULT_HEAD, pane: Selector::default() };
        Ok(self.table.push(command)?)
    }

    async fn in_pane(&mut self, command: Resource<Command>, pane: types::Pane) -> wasmtime::Result<()> {
        self.table.get_mut(&command)?.pane = pane.into();
        Ok(())
    }

    async fn wait(&mut self, command: Resource<Command>, wait: shell::Wait) -> wasmtime::Result<()> {
        self.table.get_mut(&command)?.wait = wait;
        Ok(())
    }

    async fn head(&mut self, command: Resource<Command>, chars: u32) -> wasmtime::Result<()> {
        self.table.get_mut(&command)?.head = chars;
        Ok(())
    }

    async fn run(&mut self, command: Resource<Command>) -> Result<shell::Outcome, Refusal> {
        let grant = self.grants()?.shell()?.clone();
        let command = self.table.get(&command)?.clone();
        // The shell of a pane is what earlier commands made of it: functions, aliases, `PATH`. Only a grant that names panes leads into one;
        // any other command gets a process that nothing ran in before.
        let lent = grant.lent(&command.text);
        check_lent(&lent, &command, &self.scope)?;
        let tmux = match grant.pane() {
            Ok(()) if lent.is_empty() => self.scope.panes.managed().await?.cloned(),
            Ok(()) | Err(_) => None,
        };
        // At a prompt nobody can tell when a command ends, so only one that is not waited for goes there.
        let is_dispatch = matches!(command.wait, shell::Wait::Dispatch) && grant.pane().is_ok();
        let own = if let (Panes::Own(own), true) = (&self.scope.panes, is_dispatch) { Some(own.clone()) } else { None };
        let plan = plan(&command, tmux.is_some() || own.is_some(), &grant, &self.scope)?;
        if let Some(own) = own {
            let place = self.type_command(own, &command.pane, &command.text, command.declaration).await?;
            return Ok(shell::Outcome::Dispatched(place.id));
        }
        let confinement = grant.confinement(&self.scope).await?;
        let goes_to = if tmux.is_some() { Destination::Pane } else { Destination::Process };
        let target = tmux.as_ref().map(|tmux| Target::new(tmux, &command.pane, confinement.cell(), &self.scope));
        let process = PlainProcess(&*self.scope.backend);
        let site = target.as_ref().map_or(&process as &dyn Site, |target| target);
        let Command { text, declaration, .. } = command;
        let wanted = Wanted { text, declaration, goes_to, is_awaited: !plan.dispatch };
        let admitted = grant.admit(wanted, &confinement, site, &self.scope).await?;
        if let (Some(name), Panes::Managed(_)) = (lent.first(), &self.scope.panes) {
            self.scope.guard.notice(format!("it ran in a process of its own, as it gets the secret `{name}`"));
        }
        self.scope.emit(Event::Started { detail: sanitize::line(admitted.text()).into_owned() });
        // Whatever comes of it, the world may have changed.
        self.scope.touch_state();
        // The shell of a pane is confined: what is let out is a process of its own.
        Ok(match target.filter(|_| !admitted.is_out()) {
            Some(target) => in_pane::run(&admitted, target, &plan, &self.scope).await?,
            None => run(&admitted, &plan, &self.scope).await?,
        })
    }

    async fn drop(&mut self, command: Resource<Command>) -> wasmtime::Result<()> {
        self.table.delete(command)?;
        Ok(())
    }
}

/// Where commands land that run as plain processes.
struct PlainProcess<'b>(&'b dyn Backend);

#[async_trait]
impl Site for PlainProcess<'_> {
    async fn landing(&self) -> Result<Landing, Failure> {
        let directory = self.0.facts().await?.directory.display().to_string();
        Ok(Landing { backend: self.0.name().into(), directory: Some(directory), ..Landing::default() })
    }
}

impl From<types::Declaration> for Declaration {
    fn from(declaration: types::Declaration) -> Self {
        let risk = match declaration.risk {
            types::Risk::Low => Risk::Low,
            types::Risk::Medium => Risk::Medium,
            types::Risk::High => Risk::High,
        };
        Self { risk, mutation: declaration.mutation, privesc: declaration.privesc, why: declaration.why }
    }
}

/// A reason is given, and short enough to be read.
pub(super) fn check_why(declaration: &Declaration) -> Result<(), Failure> {
    if declaration.why.trim().is_empty() {
        return Err(Failure::invalid("`why` is blank").hint("say in a sentence why it is needed"));
    }
    if declaration.why.len() > WHY_BYTES {
        return Err(Failure::invalid(format!("`why` is more than {WHY_BYTES} bytes")).hint("say it in a sentence"));
    }
    Ok(())
}

/// What gets a secret has a process of its own, on this machine: a pane's shell would keep it for whoever comes next.
fn check_lent(lent: &[String], command: &Command, scope: &Scope) -> Result<(), Failure> {
    let Some(name) = lent.first() else { return Ok(()) };
    let gets = format!("the command names the secret `{name}`, and what gets one");
    if !scope.backend.is_this_machine() {
        return Err(Failure::denied(format!("{gets} runs on this machine alone, not on {}", scope.backend.name()))
            .hint("run it without the secret, or on this machine"));
    }
    if command.pane != Selector::default() {
        return Err(Failure::invalid(format!("{gets} runs in a process of its own, not in a pane"))
            .hint("omit `session` and `pane`"));
    }
    match command.wait {
        shell::Wait::UntilExit | shell::Wait::AtMostMs(_) => Ok(()),
        shell::Wait::Dispatch => {
            Err(Failure::invalid(format!("{gets} runs in a process of its own, and is waited for"))
                .hint("omit `wait`, or give a duration such as \"10m\""))
        }
    }
}

/// What was found valid before anybody is asked.
struct Plan {
    wait: Duration,
    /// Not waited for at all.
    dispatch: bool,
    /// It runs in a pane where there are any.
    wants_pane: bool,
    head_chars: usize,
    head_bytes: usize,
}

fn plan(command: &Command, has_panes: bool, grant: &ShellGrant, scope: &Scope) -> Result<Plan, Failure> {
    check_why(&command.declaration)?;
    if command.text.trim().is_empty() {
        return Err(Failure::invalid("the command is blank").hint("give a script for `sh`"));
    }
    if command.text.contains('\0') {
        return Err(Failure::invalid("the command contains a NUL byte").hint("write NUL as `\\0` of printf"));
    }
    if command.pane != Selector::default() && !has_panes {
        let hint = "omit `session` and `pane`";
        return Err(grant.pane().err().unwrap_or_else(|| needs_tmux("a session or pane was named, which", hint)));
    }
    let limits = &scope.limits;
    let wait = match command.wait {
        shell::Wait::UntilExit => limits.command(),
        shell::Wait::AtMostMs(wait) if wait > limits.command_max_ms => {
            let most = duration(Duration::from_millis(limits.command_max_ms));
            let message = format!("a wait of {} is too long (limit: {most})", duration(Duration::from_millis(wait)));
            let hint = scope.remedies.raise("limits.command_max_ms", limits.command_max_ms, "give a shorter `wait`");
            return Err(Failure::invalid(message).hint(hint));
        }
        shell::Wait::AtMostMs(wait) => Duration::from_millis(wait),
        shell::Wait::Dispatch if has_panes => limits.command(),
        shell::Wait::Dispatch => {
            let hint = "omit `wait`, or give a duration such as \"10m\"";
            return Err(grant.pane().err().unwrap_or_else(|| needs_tmux("`wait: false`", hint)));
        }
    };
    let head_bytes = usize::try_from(limits.result_kib << 10).unwrap_or(usize::MAX);
    let dispatch = matches!(command.wait, shell::Wait::Dispatch);
    Ok(Plan { wait, dispatch, wants_pane: grant.pane().is_ok(), head_chars: command.head as usize, head_bytes })
}

fn needs_tmux(what: &str, hint: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("{what} needs tmux, which this host does not use here")).hint(hint)
}

/// How a command came to its end.
enum End {
    Exited(i32),
    TimedOut,
    Cancelled,
    /// The backend cannot be used any more.
    Lost(Failure),
}

async fn run(command: &AdmittedCommand, plan: &Plan, scope: &Arc<Scope>) -> Result<shell::Outcome, Failure> {
    let calling = command.serve(scope)?;
    let look = command.look(false, &*scope.backend).await;
    let spec = ProcessSpec::shell(command.text(), command.environment().to_vec(), &scope.id);
    let spec = ProcessSpec { cell: command.cell().cloned(), secrets: command.secrets().to_vec(), ..spec };
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
            let made = made(look).await;
            let refusals = command.notices(exit_code, &stderr.text, &*scope.backend).await;
            let refusals = with_way_out(refusals, calling.as_ref(), command, scope);
            let out = match command.is_out() {
                true => Some(let_out(&*scope.backend).await?),
                false => None,
            };
            let notices = out.into_iter().chain(left).chain(ended).chain(made).chain(refusals).chain(absence).collect();
            let (stdout, stderr) = (stdout.into(), stderr.into());
            Ok(shell::Outcome::Finished(shell::Finished { exit_code, stdout, stderr, notices }))
        }
        End::TimedOut => {
            let message = format!("timed out waiting for the command after {}", duration(plan.wait));
            let failure = Failure::new(Kind::TimedOut, message).hint(
                "the command was ended; give a longer `wait`, or start it in the background with its output in a file",
            );
            let failure = ended(failure, &mut *process, stdout, stderr).await;
            Err(told(failure, made(look).await, calling.as_ref()))
        }
        End::Cancelled => Err(ended(Failure::cancelled(), &mut *process, stdout, stderr).await),
        End::Lost(failure) => Err(failure.data(printed(stdout.finish().await, stderr.finish().await))),
    }
}

/// The connections that were refused to a command.
fn refused(calling: Option<&Calling>) -> Vec<String> {
    calling.map(Calling::refusals).unwrap_or_default()
}

/// All that its cell refused a command, and what comes of calling it again.
fn with_way_out(
    mut refusals: Vec<String>,
    calling: Option<&Calling>,
    command: &AdmittedCommand,
    scope: &Scope,
) -> Vec<String> {
    refusals.extend(refused(calling));
    let way_out = command.remember(&refusals, scope);
    refusals.extend(way_out);
    refusals
}

/// How a command ran that a person let out of its cell.
async fn let_out(backend: &dyn Backend) -> Result<String, Failure> {
    let directory = backend.facts().await?.directory.display().to_string();
    Ok(format!(
        "a person let this command out of its cell: it ran unconfined, this once, as a process of its own in `{directory}`"
    ))
}

/// What a command made that runs or is obeyed later.
async fn made(look: Option<Look>) -> Vec<String> {
    match look {
        Some(look) => look.end().await,
        None => Vec::new(),
    }
}

/// Both for a command that did not come to its end: it may have tried again and again.
fn told(failure: Failure, made: Vec<String>, calling: Option<&Calling>) -> Failure {
    let notices = [made, refused(calling)].concat();
    if notices.is_empty() {
        return failure;
    }
    let mut data = failure.data.as_deref().cloned().unwrap_or_else(|| json!({}));
    data["notices"] = json!(notices);
    failure.data(data)
}

async fn follow(
    process: &mut dyn Process,
    wait: Duration,
    stdout: &mut Stream<'_>,
    stderr: &mut Stream<'_>,
    scope: &Scope,
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

/// Ends the process and gives the failure what the command had printed.
async fn ended(failure: Failure, process: &mut dyn Process, stdout: Stream<'_>, stderr: Stream<'_>) -> Failure {
    let survivors = process.end().await;
    let mut data = printed(stdout.finish().await, stderr.finish().await);
    match survivors {
        Some(0) => {}
        Some(survivors) => data["survivors"] = json!(survivors),
        None => data["survivors"] = json!("unknown"),
    }
    failure.data(data)
}

/// What a command that did not come to its end had printed.
fn printed(stdout: Captured, stderr: Captured) -> Value {
    let stored: Vec<&String> = stdout.stored.iter().chain(&stderr.stored).collect();
    let mut data = json!({ "stdout": stdout.text, "stderr": stderr.text });
    if !stored.is_empty() {
        data["stored"] = json!(stored);
    }
    data
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
