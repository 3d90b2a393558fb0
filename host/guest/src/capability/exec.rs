//! `wit/exec.wit`: programs without a shell between, as commands are: by the backend, after the grant admitted them.

use super::Refusal;
use super::bindings::toolcrib::plugin::{exec, types};
use super::shell::check_why;
use super::shell::process::{self, Given, PlainProcess};
use super::shell::{Plan, at_most};
use crate::sandbox::State;
use base::envelope::Failure;
use base::text::sanitize;
use command::Destination;
use policy::approval::Declaration;
use policy::event::Event;
use policy::run::Run;
use policy::shell::Wanted;
use wasmtime::component::Resource;

/// Characters of the beginning of each stream that a guest gets when it does not say.
const DEFAULT_HEAD: u32 = 4000;
/// Words of a program, and their bytes: a line that a person can read.
const WORDS: usize = 1000;
const WORD_BYTES: usize = 128 << 10;

/// A program that a guest prepares: the host's side of the resource.
#[derive(Clone)]
pub struct Process {
    argv: Vec<String>,
    declaration: Declaration,
    given: Given,
    at_most: Option<u64>,
    head: u32,
    tail: u32,
}

impl Process {
    /// Refuses what cannot be started.
    fn check(&self) -> Result<(), Failure> {
        check_why(&self.declaration)?;
        let program = self.argv[0].as_str();
        if program.trim().is_empty() {
            return Err(Failure::invalid("the program is blank").hint("give a name such as `git`, or an absolute path"));
        }
        // Where it is found is for the host to say, and must not depend on where it begins.
        if program.contains('/') && !program.starts_with('/') {
            let shown = sanitize::line(program);
            return Err(Failure::invalid(format!("`{shown}` is neither a name nor an absolute path"))
                .hint("give a name that is found on PATH, or a path that begins with `/`"));
        }
        check_words(&self.argv)
    }
}

/// Refuses words that a program cannot be given.
pub(super) fn check_words(argv: &[String]) -> Result<(), Failure> {
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(Failure::invalid("an argument contains a NUL byte").hint("no program can be given one"));
    }
    if argv.len() > WORDS || argv.iter().any(|word| word.len() > WORD_BYTES) {
        let message = format!("limit: {WORDS} arguments of {} KiB each", WORD_BYTES >> 10);
        return Err(Failure::limit(message).hint("give long input as its standard input, or in a file"));
    }
    Ok(())
}

impl exec::Host for State {}

impl exec::HostProcess for State {
    async fn new(
        &mut self,
        program: String,
        arguments: Vec<String>,
        declaration: types::Declaration,
    ) -> wasmtime::Result<Resource<Process>> {
        let bytes: usize = arguments.iter().map(String::len).sum();
        self.meter.charge_bytes(program.len() + bytes + declaration.why.len())?;
        let argv = [program].into_iter().chain(arguments).collect();
        let (declaration, given, at_most) = (declaration.into(), Given::default(), None);
        Ok(self.table.push(Process { argv, declaration, given, at_most, head: DEFAULT_HEAD, tail: 0 })?)
    }

    async fn environment(&mut self, process: Resource<Process>, name: String, value: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(name.len() + value.len())?;
        self.table.get_mut(&process)?.given.variables.push((name, value));
        Ok(())
    }

    async fn directory(&mut self, process: Resource<Process>, path: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(path.len())?;
        self.table.get_mut(&process)?.given.directory = Some(path);
        Ok(())
    }

    async fn stdin(&mut self, process: Resource<Process>, bytes: Vec<u8>) -> wasmtime::Result<()> {
        self.meter.charge_bytes(bytes.len())?;
        self.table.get_mut(&process)?.given.input = bytes;
        Ok(())
    }

    async fn at_most_ms(&mut self, process: Resource<Process>, ms: u64) -> wasmtime::Result<()> {
        self.table.get_mut(&process)?.at_most = Some(ms);
        Ok(())
    }

    async fn head_and_tail(&mut self, process: Resource<Process>, head: u32, tail: u32) -> wasmtime::Result<()> {
        let process = self.table.get_mut(&process)?;
        (process.head, process.tail) = (head, tail);
        Ok(())
    }

    async fn run(&mut self, process: Resource<Process>) -> Result<exec::Finished, Refusal> {
        let grant = self.grants()?.exec()?.clone();
        let process = self.table.get(&process)?.clone();
        process.check()?;
        let with = process.given.located(&self.scope).await?;
        let named = grant.admit(&process.argv[0]);
        let variables = || with.variables.iter().try_for_each(|(name, _)| grant.admit_variable(name));
        if let Err(refusal) = named.and_then(|()| variables()) {
            let (run, declaration) = (Run::Program(process.argv), Some(process.declaration));
            grant.commands().record_refused(&run, &with, declaration, &refusal, &self.scope);
            return Err(refusal.into());
        }
        let wait = process.at_most.map_or(Ok(self.scope.limits.command()), |ms| at_most(ms, &self.scope))?;
        let plan = Plan::alone(wait, process.head, process.tail, &self.scope);
        let commands = grant.commands();
        let confinement = commands.confinement(&self.scope).await?;
        let site = PlainProcess::new(&*self.scope.backend, &with);
        let (run, goes_to) = (Run::Program(process.argv), Destination::Process);
        let wanted =
            Wanted { run, with: with.clone(), declaration: Some(process.declaration), goes_to, is_awaited: true };
        let admitted = commands.admit(wanted, &confinement, &site, &self.scope).await?;
        self.scope.emit(Event::Started { detail: sanitize::line(admitted.text()).into_owned() });
        // Whatever comes of it, the world may have changed.
        self.scope.touch_state();
        Ok(process::run(&admitted, &plan, &self.scope).await?.into())
    }

    async fn drop(&mut self, process: Resource<Process>) -> wasmtime::Result<()> {
        self.table.delete(process)?;
        Ok(())
    }
}
