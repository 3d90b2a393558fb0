//! The capabilities: one file per WIT interface, each function the same three steps: check the grant, act, convert.
//!
//! What may be done is decided in `policy/`, where it lands in `backend/`. A guest reaches nothing else.

mod browser;
pub mod embedder;
mod events;
pub mod exec;
mod files;
mod http;
pub mod introspect;
mod jobs;
mod mail;
mod pane_sessions;
mod panes;
mod programs;
mod records;
mod schedules;
pub mod shell;
mod undo;
pub mod wasi;

use crate::reach::Reach;
use crate::sandbox::State;
pub use base::capability::{AllowOption, Capability};
use base::envelope::{Content, Failure};
use bindings::exports::toolcrib::plugin::tools;
use bindings::toolcrib::plugin::types;

/// What `wit/` says, as Rust.
pub mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "plugin",
        imports: { default: async | trappable },
        exports: { default: async },
        trappable_error_type: { "toolcrib:plugin/types.failure" => super::Refusal },
        with: {
            "toolcrib:plugin/shell.command": super::shell::Command,
            "toolcrib:plugin/exec.process": super::exec::Process,
            "toolcrib:plugin/programs.run": super::programs::ProgramRun,
            "toolcrib:plugin/records.batch": super::records::Batch,
            "toolcrib:plugin/records.query": super::records::Look,
            "toolcrib:plugin/jobs.submission": super::jobs::Submission,
            "toolcrib:plugin/jobs.query": super::jobs::Look,
            "toolcrib:plugin/schedules.plan": super::schedules::Plan,
            "toolcrib:plugin/http.request": super::http::Request,
            "toolcrib:plugin/embedder.event": super::embedder::Event,
        },
    });
}

/// The name of an interface of ours: `files` of `toolcrib:plugin/files@0.1.0`.
pub fn interface(import: &str) -> Option<&str> {
    import.strip_prefix("toolcrib:plugin/")?.split('@').next()
}

/// Why a host function has no result: a failure that is returned to the guest, or a trap that ends it.
pub enum Refusal {
    /// Returned to the guest.
    Failure(Failure),
    /// Ends the guest.
    Trap(wasmtime::Error),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<wasmtime::Error> for Refusal {
    fn from(error: wasmtime::Error) -> Self {
        Self::Trap(error)
    }
}

impl Reach {
    /// Does something that the call can be cancelled in. Its time does not count as the guest's.
    async fn within<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Refusal> {
        let _waiting = self.clock.waiting();
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Failure::cancelled().into()),
            done = work => Ok(done.map_err(|failure| self.guard.redact_failure(failure))?),
        }
    }
}

impl From<wasmtime::component::ResourceTableError> for Refusal {
    fn from(error: wasmtime::component::ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

impl From<tools::Content> for Content {
    fn from(content: tools::Content) -> Self {
        match content {
            tools::Content::Text(text) => Self::Text(text),
            tools::Content::Image((kind, bytes)) => Self::Image(kind, bytes),
            tools::Content::Audio((kind, bytes)) => Self::Audio(kind, bytes),
            tools::Content::Link(uri) => Self::Link(uri),
        }
    }
}

impl types::Host for State {
    fn convert_failure(&mut self, refusal: Refusal) -> wasmtime::Result<types::Failure> {
        match refusal {
            Refusal::Failure(Failure { kind, message, hint, data }) => {
                // An agent knows mounts by their names alone.
                let toolset = self.scope.session.toolset();
                let told = |text: String| toolset.map_or_else(|| text.clone(), |toolset| toolset.as_mounted(&text));
                let data = data.map(|data| told(data.to_string()));
                Ok(types::Failure { kind: kind.name().into(), message: told(message), hint: hint.map(told), data })
            }
            Refusal::Trap(error) => Err(error),
        }
    }
}

impl From<kept_output::Captured> for types::Captured {
    fn from(captured: kept_output::Captured) -> Self {
        let kept_output::Captured { text, bytes, truncated, stored } = captured;
        Self { text, bytes, truncated, stored }
    }
}
