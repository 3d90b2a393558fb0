//! `wit/shell.wit`: commands, by the backend or in one of its panes, after the grant admitted them.

mod in_pane;
pub(super) mod process;
mod stream;

use super::Refusal;
use super::bindings::toolcrib::plugin::{shell, types};
use crate::reach::Reach;
use crate::sandbox::State;
use base::envelope::{Failure, Kind, duration};
use base::text::sanitize;
use command::Destination;
use egress::Calling;
use in_pane::Target;
use kept_output::Captured;
use policy::approval::{Declaration, Risk, Site};
use policy::confine::Notices;
use policy::event::Event;
use policy::held::Watched;
use policy::run::Run;
use policy::shell::{AdmittedCommand, ShellGrant, Wanted};
use process::{Given, PlainProcess};
use serde_json::{Value, json};
use std::time::Duration;
use stream::Stream;
use tmux::{Panes, Selector};
use wasmtime::component::Resource;

/// Characters of each stream that a guest gets when it does not say.
const DEFAULT_HEAD: u32 = 4000;
/// Bytes of the reason that a model gives for a command: a person reads it whole.
const WHY_BYTES: usize = 1024;

/// A command that a guest prepares: the host's side of the resource.
#[derive(Clone)]
pub struct Command {
    text: String,
    declaration: Declaration,
    wait: shell::Wait,
    head: u32,
    tail: u32,
    pane: Selector,
    given: Given,
    is_alone: bool,
}

impl shell::Host for State {}

impl shell::HostCommand for State {
    async fn new(&mut self, text: String, declaration: types::Declaration) -> wasmtime::Result<Resource<Command>> {
        self.meter.charge_bytes(text.len() + declaration.why.len())?;
        let declaration = declaration.into();
        let (wait, head, tail, pane) = (shell::Wait::UntilExit, DEFAULT_HEAD, 0, Selector::default());
        let (given, is_alone) = (Given::default(), false);
        let command = Command { text, declaration, wait, head, tail, pane, given, is_alone };
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

    async fn tail(&mut self, command: Resource<Command>, chars: u32) -> wasmtime::Result<()> {
        self.table.get_mut(&command)?.tail = chars;
        Ok(())
    }

    async fn environment(&mut self, command: Resource<Command>, name: String, value: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(name.len() + value.len())?;
        self.table.get_mut(&command)?.given.variables.push((name, value));
        Ok(())
    }

    async fn directory(&mut self, command: Resource<Command>, path: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(path.len())?;
        self.table.get_mut(&command)?.given.directory = Some(path);
        Ok(())
    }

    async fn stdin(&mut self, command: Resource<Command>, bytes: Vec<u8>) -> wasmtime::Result<()> {
        self.meter.charge_bytes(bytes.len())?;
        self.table.get_mut(&command)?.given.input = bytes;
        Ok(())
    }

    async fn own_process(&mut self, command: Resource<Command>) -> wasmtime::Result<()> {
        self.table.get_mut(&command)?.is_alone = true;
        Ok(())
    }

    async fn run(&mut self, command: Resource<Command>) -> Result<shell::Outcome, Refusal> {
        let grant = self.grants()?.shell()?.clone();
        let command = self.table.get(&command)?.clone();
        // The shell of a pane is what earlier commands made of it: functions, aliases, `PATH`. Only a grant that names panes leads into one;
        // any other command gets a process that nothing ran in before.
        let lent = grant.lent(&command.text);
        check_lent(&lent, &command, &self.scope)?;
        let is_alone = command.is_alone || !command.given.is_nothing();
        check_alone(is_alone, &command)?;
        let with = command.given.located(&self.scope).await?;
        let tmux = match grant.pane() {
            Ok(()) if lent.is_empty() && !is_alone => self.scope.panes.managed().await?.cloned(),
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
        let target =
            tmux.as_ref().map(|tmux| Target::new(tmux, &command.pane, confinement.cell(), plan.dispatch, &self.scope));
        let process = PlainProcess::new(&*self.scope.backend, &with);
        let site = target.as_ref().map_or(&process as &dyn Site, |target| target);
        let Command { text, declaration, .. } = command;
        let (run, is_awaited) = (Run::Script(text), !plan.dispatch);
        let declaration = Some(declaration);
        let wanted = Wanted { run, with: with.clone(), declaration, goes_to, is_awaited };
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
            None => shell::Outcome::Finished(process::run(&admitted, &plan, &self.scope).await?.into()),
        })
    }

    async fn drop(&mut self, command: Resource<Command>) -> wasmtime::Result<()> {
        self.table.delete(command)?;
        Ok(())
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
fn check_lent(lent: &[String], command: &Command, scope: &Reach) -> Result<(), Failure> {
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

/// What has a process of its own is in no pane, and is waited for.
fn check_alone(is_alone: bool, command: &Command) -> Result<(), Failure> {
    if is_alone && command.pane != Selector::default() {
        let message = "what sets a variable, a directory or an input has a process of its own, and is in no pane";
        return Err(Failure::invalid(message).hint("omit `session` and `pane`"));
    }
    match command.wait {
        shell::Wait::Dispatch if is_alone => {
            let message = "what sets a variable, a directory or an input has a process of its own, and is waited for";
            Err(Failure::invalid(message).hint("omit `wait`, or give a duration such as \"10m\""))
        }
        shell::Wait::Dispatch | shell::Wait::UntilExit | shell::Wait::AtMostMs(_) => Ok(()),
    }
}

/// What was found valid before anybody is asked.
pub(super) struct Plan {
    wait: Duration,
    /// Not waited for at all.
    dispatch: bool,
    /// It runs in a pane where there are any.
    wants_pane: bool,
    head_chars: usize,
    tail_chars: usize,
    head_bytes: usize,
}

impl Plan {
    /// For what has a process of its own.
    pub(super) fn alone(wait: Duration, head: u32, tail: u32, scope: &Reach) -> Self {
        let (head_chars, tail_chars) = (head as usize, tail as usize);
        Self { wait, dispatch: false, wants_pane: false, head_chars, tail_chars, head_bytes: head_bytes(scope) }
    }

    /// Reads what a command has printed as its output is read.
    pub(super) async fn read(&self, printed: &[u8], scope: &Reach) -> Captured {
        let mut stream = Stream::new("stdout", self, scope);
        stream.push(printed).await;
        stream.finish().await
    }
}

fn head_bytes(scope: &Reach) -> usize {
    usize::try_from(scope.limits.result_kib << 10).unwrap_or(usize::MAX)
}

/// How long what says so is waited for.
pub(super) fn at_most(wait: u64, scope: &Reach) -> Result<Duration, Failure> {
    let most = scope.limits.command_max_ms;
    if wait <= most {
        return Ok(Duration::from_millis(wait));
    }
    let (wait, shown) = (Duration::from_millis(wait), duration(Duration::from_millis(most)));
    let hint = scope.remedies.raise("limits.command_max_ms", most, "give a shorter `wait`");
    Err(Failure::invalid(format!("a wait of {} is too long (limit: {shown})", duration(wait))).hint(hint))
}

fn plan(command: &Command, has_panes: bool, grant: &ShellGrant, scope: &Reach) -> Result<Plan, Failure> {
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
        shell::Wait::AtMostMs(wait) => at_most(wait, scope)?,
        shell::Wait::Dispatch if has_panes => limits.command(),
        shell::Wait::Dispatch => {
            let hint = "omit `wait`, or give a duration such as \"10m\"";
            return Err(grant.pane().err().unwrap_or_else(|| needs_tmux("`wait: false`", hint)));
        }
    };
    let dispatch = matches!(command.wait, shell::Wait::Dispatch);
    let (wants_pane, head_bytes) = (grant.pane().is_ok(), head_bytes(scope));
    let (head_chars, tail_chars) = (command.head as usize, command.tail as usize);
    Ok(Plan { wait, dispatch, wants_pane, head_chars, tail_chars, head_bytes })
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

/// The connections that were refused to a command.
fn refused(calling: Option<&Calling>) -> Vec<String> {
    calling.map(Calling::refusals).unwrap_or_default()
}

/// All that is to be said of a command in its cell. Calling it again is offered only where that refused it something: a bound that was met is
/// not remembered.
fn with_way_out(
    Notices { bounds, mut refusals }: Notices,
    calling: Option<&Calling>,
    command: &AdmittedCommand,
    scope: &Reach,
) -> Vec<String> {
    refusals.extend(refused(calling));
    let way_out = command.remember(&refusals, scope);
    bounds.into_iter().chain(refusals).chain(way_out).chain(command.unheld(scope)).collect()
}

/// What a command made that runs or is obeyed later.
async fn made(watched: Option<Watched>, command: &AdmittedCommand, scope: &Reach) -> Vec<String> {
    match watched {
        Some(watched) => watched.end(command.asker(), scope).await,
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

/// What a command that did not come to its end had printed.
fn printed(stdout: Captured, stderr: Captured) -> Value {
    let stored: Vec<&String> = stdout.stored.iter().chain(&stderr.stored).collect();
    let mut data = json!({ "stdout": stdout.text, "stderr": stderr.text });
    if !stored.is_empty() {
        data["stored"] = json!(stored);
    }
    data
}
