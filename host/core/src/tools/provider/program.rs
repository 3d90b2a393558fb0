//! A declared program: the component that is the tool of every one of them, under the program's name and with its usage page.

use super::{Code, Component, LoadError, Provider, Ready, Refused, Said};
use backend::sealed::program_sha256;
use config::{Limits, ProgramSection};
use contract::definition::{Definition, Guidance};
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use guest::reach::Reach;
use guest::sandbox::{Guest, Sandbox};
use policy::Policy;
use policy::event::EventSink;
use policy::host_reads::HostReads;
use policy::programs::{USAGE_BYTES, UsagePage, usage_page};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The built-in component that each declared program is a tool of. It is no plugin by itself.
pub(in crate::tools) const PROGRAM: &str = "program";

/// The component, and its code once one of the programs was called.
pub(in crate::tools) struct Template {
    component: Component,
    guest: OnceCell<Arc<Guest>>,
}

/// One program.
pub(in crate::tools) struct Program {
    manifest: Arc<Manifest>,
    about: String,
    page: Option<String>,
    template: Arc<Template>,
}

impl Template {
    pub(in crate::tools) fn new(component: Component) -> Self {
        Self { component, guest: OnceCell::new() }
    }
}

impl Program {
    /// Takes what is declared as `name`. Its file is looked at when it is run.
    pub(in crate::tools) fn new(
        name: &str,
        section: &ProgramSection,
        template: Arc<Template>,
        reads: &HostReads,
    ) -> Result<Self, Refused> {
        // What cannot be read is said by `doctor`: the program can be run without it.
        let page = usage_page(section, reads).ok().flatten().map(|page| page.text);
        let manifest = Manifest::of_program(name, section, page.as_deref());
        let refused = |reason| Refused { origin: name.to_owned(), reason };
        Ok(Self { manifest: Arc::new(manifest.map_err(refused)?), about: section.about.clone(), page, template })
    }

    /// What the component says of its tool, as this program's.
    fn definition(&self, said: &Definition) -> Definition {
        let own = |text: &str| text.replace(&format!("`{PROGRAM}`"), &format!("`{}`", self.manifest.name()));
        let Guidance { when_to_use, when_not_to_use, disambiguation, examples } = &said.guidance;
        Definition {
            name: self.manifest.name().to_owned(),
            title: None,
            summary: self.about.clone(),
            guidance: Guidance {
                when_to_use: own(when_to_use),
                when_not_to_use: own(when_not_to_use),
                disambiguation: own(disambiguation),
                examples: examples.clone(),
            },
            usage: self.page.clone(),
            ..said.clone()
        }
    }
}

impl Provider for Program {
    fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    fn load<'a>(
        &'a self,
        sandbox: &'a Arc<Sandbox>,
        scope: Reach,
        events: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Ready, LoadError>> {
        Box::pin(async move {
            // The page is the user's, and has a bound of its own.
            let page = self.page.as_ref().map_or(0, String::len) as u64;
            let limits = Limits { description_bytes: scope.limits.description_bytes + page, ..scope.limits.clone() };
            let component = self.template.component.load(sandbox, scope, events).await?;
            let definitions: Vec<_> = component.tools().iter().map(|tool| self.definition(tool.definition())).collect();
            let json = serde_json::to_vec(&definitions).expect("definitions are plain data");
            Ok(Ready::new(&self.manifest, None, &Said { definitions, json }, &limits)?)
        })
    }

    fn code<'a>(
        &'a self,
        sandbox: &'a Arc<Sandbox>,
        limits: &'a Limits,
        events: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Code, LoadError>> {
        Box::pin(async move {
            let Template { component, guest } = &*self.template;
            let guest =
                guest.get_or_try_init(async || component.guest(sandbox, limits, events).await.map(Arc::new)).await?;
            Ok(Code::Program(guest.clone()))
        })
    }
}

/// What is wrong with what is declared as `name`, for people: what keeps it from being run, and what it is only worse for.
#[must_use]
pub fn program_faults(name: &str, section: &ProgramSection, policy: &Policy) -> (Vec<String>, Vec<String>) {
    let (mut faults, mut notes) = (Vec::new(), Vec::new());
    if section.missing().is_some() {
        // It has no tool, and its manifest says why.
        return (faults, notes);
    }
    let path = section.path.display();
    match program_sha256(&section.path) {
        Err(error) => faults.push(format!("`{name}`: `{path}` cannot be run: {error}")),
        Ok(found) if found.eq_ignore_ascii_case(&section.sha256) => {}
        Ok(found) => faults.push(format!("`{name}`: the sha256 of `{path}` is {found}, not {}", section.sha256)),
    }
    let page = section.usage.as_ref().map_or_else(String::new, |page| page.display().to_string());
    match usage_page(section, policy.host_reads()) {
        Err(error) => notes.push(format!("`{name}` has no usage page: `{page}`: {error}")),
        Ok(None) if section.usage.is_some() => notes.push(format!("`{name}` has no usage page: `{page}` is empty")),
        Ok(Some(UsagePage { is_cut: true, .. })) => {
            notes.push(format!(
                "the usage page of `{name}`, `{page}`, is cut: models read its first {} KiB",
                USAGE_BYTES >> 10
            ));
        }
        Ok(_) => {}
    }
    (faults, notes)
}
