//! `wit/programs.wit`: declared programs, as commands are run, from a copy of the file that nobody can change.

use super::Refusal;
use super::bindings::toolcrib::plugin::programs;
use super::exec::check_words;
use super::shell::process::{self, PlainProcess};
use super::shell::{Plan, at_most};
use crate::sandbox::State;
use backend::Backend;
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use command::Destination;
use config::{ProgramResult, ProgramSection};
use policy::event::Event;
use policy::programs::usage_page;
use policy::programs::{ProgramsGrant, admit_file};
use policy::run::{Declared, Run, With};
use policy::shell::Wanted;
use wasmtime::component::Resource;

/// Characters of the beginning of each stream that a guest gets when it does not say.
const DEFAULT_HEAD: u32 = 4000;

/// A program that a guest prepares: the host's side of the resource.
#[derive(Clone)]
pub struct ProgramRun {
    program: String,
    arguments: Vec<String>,
    input: Vec<u8>,
    at_most: Option<u64>,
    head: u32,
    tail: u32,
}

impl ProgramRun {
    /// What is to run, from the file as it is now.
    async fn declared(&self, section: &ProgramSection, backend: &dyn Backend) -> Result<Declared, Failure> {
        let path = section.path.display().to_string();
        let argv: Vec<String> =
            [path].into_iter().chain(section.arguments.iter().chain(&self.arguments).cloned()).collect();
        check_words(&argv)?;
        let sealed = backend.seal(&section.path).await?;
        Ok(Declared { argv, environment: section.environment.clone(), sealed })
    }
}

impl programs::Host for State {
    async fn declared(&mut self) -> Result<Vec<programs::Program>, Refusal> {
        let grants = self.grants()?;
        let grant = grants.programs()?;
        let policy = self.scope.services.settings.upgrade().map(|settings| settings.policy());
        let page = |section: &ProgramSection| usage_page(section, policy.as_ref()?.host_reads()).ok().flatten();
        let program = |(name, section): (&str, &ProgramSection)| programs::Program {
            name: name.to_owned(),
            about: section.about.clone(),
            usage: page(section).map(|page| page.text),
        };
        Ok(grant.declared().map(program).collect())
    }
}

impl programs::HostRun for State {
    async fn new(&mut self, program: String, arguments: Vec<String>) -> wasmtime::Result<Resource<ProgramRun>> {
        let bytes: usize = arguments.iter().map(String::len).sum();
        self.meter.charge_bytes(program.len() + bytes)?;
        let (input, at_most, head, tail) = (Vec::new(), None, DEFAULT_HEAD, 0);
        Ok(self.table.push(ProgramRun { program, arguments, input, at_most, head, tail })?)
    }

    async fn stdin(&mut self, run: Resource<ProgramRun>, bytes: Vec<u8>) -> wasmtime::Result<()> {
        self.meter.charge_bytes(bytes.len())?;
        self.table.get_mut(&run)?.input = bytes;
        Ok(())
    }

    async fn at_most_ms(&mut self, run: Resource<ProgramRun>, ms: u64) -> wasmtime::Result<()> {
        self.table.get_mut(&run)?.at_most = Some(ms);
        Ok(())
    }

    async fn head_and_tail(&mut self, run: Resource<ProgramRun>, head: u32, tail: u32) -> wasmtime::Result<()> {
        let run = self.table.get_mut(&run)?;
        (run.head, run.tail) = (head, tail);
        Ok(())
    }

    async fn start(&mut self, run: Resource<ProgramRun>) -> Result<programs::Finished, Refusal> {
        let grant: ProgramsGrant = self.grants()?.programs()?.clone();
        let run = self.table.get(&run)?.clone();
        let section = grant.admit(&run.program)?;
        let with = With { input: run.input.clone(), ..With::default() };
        with.check()?;
        let declared = run.declared(section, &*self.scope.backend).await?;
        let admitted = admit_file(&run.program, section, &declared.sealed);
        let commands = grant.commands();
        let what = Run::Declared(declared);
        if let Err(refusal) = admitted {
            commands.record_refused(&what, &with, None, &refusal, &self.scope);
            return Err(refusal.into());
        }
        let most = section.timeout_ms.min(self.scope.limits.command_max_ms);
        let wait = at_most(run.at_most.unwrap_or(most).min(most), &self.scope)?;
        let plan = Plan::alone(wait, run.head, run.tail, &self.scope);
        let confinement = commands.confinement(&self.scope).await?;
        let site = PlainProcess::new(&*self.scope.backend, &with);
        let (goes_to, is_awaited) = (Destination::Process, true);
        let wanted = Wanted { run: what, with: with.clone(), declaration: None, goes_to, is_awaited };
        let admitted = commands.admit(wanted, &confinement, &site, &self.scope).await?;
        self.scope.emit(Event::Started { detail: sanitize::line(admitted.text()).into_owned() });
        // Whatever comes of it, the world may have changed.
        self.scope.touch_state();
        let ran = process::run(&admitted, &plan, &self.scope).await.map_err(|failure| {
            match failure.kind == Kind::TimedOut {
                true => failure.hint(format!(
                    "it was ended with all that it started; `timeout_ms` under [program.{}] decides",
                    run.program
                )),
                false => failure,
            }
        })?;
        match section.result {
            ProgramResult::Exit0 if ran.exit_code() != 0 => Err(ran.failed(&run.program).into()),
            ProgramResult::Exit0 | ProgramResult::Any => Ok(ran.into()),
        }
    }

    async fn drop(&mut self, run: Resource<ProgramRun>) -> wasmtime::Result<()> {
        self.table.delete(run)?;
        Ok(())
    }
}
