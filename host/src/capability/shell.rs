//! `wit/shell.wit`: commands, by the backend, after the grant admitted them.

use super::Refusal;
use super::bindings::toolcrib::plugin::{shell, types};
use crate::backend::{Process, ProcessEvent, ProcessSpec};
use crate::envelope::{Failure, Kind, duration};
use crate::event::Event;
use crate::output::{Capture, Captured};
use crate::policy::approval::Declaration;
use crate::policy::shell::AdmittedCommand;
use crate::sandbox::State;
use crate::sanitize;
use crate::scope::Scope;
use serde_json::json;
use std::io;
use std::time::Duration;
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
    in_pane: bool,
}

impl shell::Host for State {}

impl shell::HostCommand for State {
    async fn new(&mut self, text: String, declaration: types::Declaration) -> wasmtime::Result<Resource<Command>> {
        self.meter.charge_bytes(text.len() + declaration.why.len())?;
        let declaration = declaration.into();
        let command = Command { text, declaration, wait: shell::Wait::UntilExit, head: DEFAULT_HEAD, in_pane: false };
        Ok(self.table.push(command)?)
    }

    async fn in_pane(&mut self, command: Resource<Command>, pane: types::Pane) -> wasmtime::Result<()> {
        self.table.get_mut(&command)?.in_pane = pane.session.or(pane.pane).or(pane.target).is_some();
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
        let grant = self.grants.shell()?.clone();
        let command = self.table.get(&command)?.clone();
        let plan = plan(&command, &self.scope)?;
        let admitted = grant.admit(command.text, command.declaration, &self.scope).await?;
        Ok(run(&admitted, &plan, &self.scope).await?)
    }

    async fn drop(&mut self, command: Resource<Command>) -> wasmtime::Result<()> {
        self.table.delete(command)?;
        Ok(())
    }
}

impl From<types::Declaration> for Declaration {
    fn from(declaration: types::Declaration) -> Self {
        let risk = match declaration.risk {
            types::Risk::Low => "low",
            types::Risk::Medium => "medium",
            types::Risk::High => "high",
        };
        Self { risk, mutation: declaration.mutation, privesc: declaration.privesc, why: declaration.why }
    }
}

/// What was found valid before anybody is asked.
struct Plan {
    wait: Duration,
    head_chars: usize,
    head_bytes: usize,
}

fn plan(command: &Command, scope: &Scope) -> Result<Plan, Failure> {
    if command.declaration.why.trim().is_empty() {
        return Err(Failure::invalid("`why` is blank").hint("say in a sentence why the command is needed"));
    }
    if command.declaration.why.len() > WHY_BYTES {
        return Err(Failure::invalid(format!("`why` is more than {WHY_BYTES} bytes")).hint("say it in a sentence"));
    }
    if command.text.trim().is_empty() {
        return Err(Failure::invalid("the command is blank").hint("give a script for `sh`"));
    }
    if command.text.contains('\0') {
        return Err(Failure::invalid("the command contains a NUL byte").hint("write NUL as `\\0` of printf"));
    }
    if command.in_pane {
        return Err(needs_tmux("a session or pane was named, which", "leave `session` and `pane` away"));
    }
    let limits = &scope.limits;
    let wait = match command.wait {
        shell::Wait::UntilExit => limits.command(),
        shell::Wait::AtMostMs(wait) if wait > limits.command_max_ms => {
            let most = duration(Duration::from_millis(limits.command_max_ms));
            let message = format!("a wait of {} is over the limit of {most}", duration(Duration::from_millis(wait)));
            return Err(Failure::invalid(message).hint("wait less, or raise `command_max_ms` under [limits]"));
        }
        shell::Wait::AtMostMs(wait) => Duration::from_millis(wait),
        shell::Wait::Dispatch => {
            return Err(needs_tmux("`wait: false`", "leave `wait` away, or give a duration such as \"10m\""));
        }
    };
    let head_bytes = usize::try_from(limits.result_kib << 10).unwrap_or(usize::MAX);
    Ok(Plan { wait, head_chars: command.head as usize, head_bytes })
}

fn needs_tmux(what: &str, hint: &str) -> Failure {
    Failure::new(Kind::Unavailable, format!("{what} needs tmux, which this backend does not have")).hint(hint)
}

/// How a command came to its end.
enum End {
    Exited(i32),
    TimedOut,
    Cancelled,
}

async fn run(command: &AdmittedCommand, plan: &Plan, scope: &Scope) -> Result<shell::Outcome, Failure> {
    scope.emit(Event::Started { detail: sanitize::line(command.text()).into_owned() });
    // Whatever comes of it, the world may have changed.
    scope.touch_state();
    let spec = ProcessSpec::shell(command.text(), command.environment().to_vec(), &scope.id);
    let mut process = scope.backend.start(spec).await?;
    let mut stdout = Stream::new("stdout", plan, scope);
    let mut stderr = Stream::new("stderr", plan, scope);
    let _waiting = scope.clock.waiting();
    let followed = follow(&mut *process, plan.wait, &mut stdout, &mut stderr, scope).await;
    match followed.map_err(|error| lost(&error))? {
        End::Exited(exit_code) => {
            let left = process.left_running().await;
            let notices = (!left.is_empty()).then(|| left_running(&left)).into_iter().collect();
            let (stdout, stderr) = (stdout.finish().await.into(), stderr.finish().await.into());
            Ok(shell::Outcome::Finished(shell::Finished { exit_code, stdout, stderr, notices }))
        }
        End::TimedOut => {
            let message = format!("timed out waiting for the command after {}", duration(plan.wait));
            let failure = Failure::new(Kind::TimedOut, message).hint(
                "the command was ended; give `wait` more time, or start it in the background with its output in a file",
            );
            Err(ended(failure, &mut *process, stdout, stderr).await)
        }
        End::Cancelled => Err(ended(Failure::cancelled(), &mut *process, stdout, stderr).await),
    }
}

async fn follow(
    process: &mut dyn Process,
    wait: Duration,
    stdout: &mut Stream<'_>,
    stderr: &mut Stream<'_>,
    scope: &Scope,
) -> io::Result<End> {
    let timeout = tokio::time::sleep(wait);
    tokio::pin!(timeout);
    loop {
        tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Ok(End::Cancelled),
            () = &mut timeout => return Ok(End::TimedOut),
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
    let (stdout, stderr) = (stdout.finish().await, stderr.finish().await);
    let stored: Vec<&String> = stdout.stored.iter().chain(&stderr.stored).collect();
    let mut data = json!({ "stdout": stdout.text, "stderr": stderr.text });
    if !stored.is_empty() {
        data["stored"] = json!(stored);
    }
    if survivors > 0 {
        data["survivors"] = json!(survivors);
    }
    failure.data(data)
}

fn lost(error: &io::Error) -> Failure {
    Failure::new(Kind::OutcomeUnknown, format!("the command was started, then lost: {error}"))
        .hint("look whether it had its effect before you run it again")
}

fn left_running(pids: &[u32]) -> String {
    let list: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let (list, one) = (list.join(" "), pids.len() == 1);
    let what = if one { "a process that the command started is" } else { "processes that the command started are" };
    format!("{what} still running: {list} (end with `kill {list}`)")
}

/// One stream of the command: into the bounded store, and as clean text to whoever watches.
struct Stream<'s> {
    capture: Capture<'s>,
    scope: &'s Scope,
    event: fn(String) -> Event,
    undecoded: Vec<u8>,
    cleaner: sanitize::Stream,
}

impl<'s> Stream<'s> {
    fn new(name: &'static str, plan: &Plan, scope: &'s Scope) -> Self {
        let event = match name {
            "stderr" => |text| Event::Stderr { text },
            _ => |text| Event::Stdout { text },
        };
        let capture = scope.output.capture(format!("{}-{name}", scope.id), plan.head_chars, plan.head_bytes);
        Self { capture, scope, event, undecoded: Vec::new(), cleaner: sanitize::Stream::new() }
    }

    async fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes).await;
        if !self.scope.is_watched() {
            return;
        }
        self.undecoded.extend_from_slice(bytes);
        let text = decode(&mut self.undecoded);
        self.emit(text);
    }

    fn emit(&mut self, text: String) {
        let text = self.cleaner.push(&text);
        if !text.is_empty() {
            self.scope.emit((self.event)(text));
        }
    }

    async fn finish(mut self) -> Captured {
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.undecoded)).into_owned();
        self.emit(rest);
        let last = std::mem::replace(&mut self.cleaner, sanitize::Stream::new()).finish();
        if !last.is_empty() {
            self.scope.emit((self.event)(last));
        }
        self.capture.finish().await
    }
}

/// Takes the text out of the bytes; a sequence that is not complete yet stays.
fn decode(bytes: &mut Vec<u8>) -> String {
    let incomplete = bytes.utf8_chunks().last().map_or(0, |chunk| {
        let is_cut = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if is_cut { chunk.invalid().len() } else { 0 }
    });
    let rest = bytes.split_off(bytes.len() - incomplete);
    String::from_utf8_lossy(&std::mem::replace(bytes, rest)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_not_complete_waits_for_its_rest() {
        let mut bytes = "a🙂".as_bytes()[..3].to_vec();
        assert_eq!(decode(&mut bytes), "a");
        bytes.extend_from_slice(&"a🙂".as_bytes()[3..]);
        assert_eq!((decode(&mut bytes).as_str(), bytes.is_empty()), ("🙂", true));
    }

    #[test]
    fn bytes_that_are_not_text_do_not_hold_up_what_follows() {
        let mut bytes = b"a\xff\xfeb\xf0\x9f".to_vec();
        assert_eq!(decode(&mut bytes), "a\u{fffd}\u{fffd}b");
        assert_eq!(bytes, b"\xf0\x9f");
    }
}
