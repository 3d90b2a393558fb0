//! Where tools come from: a `Provider` shows a manifest, and makes its plugin ready when one of its tools is first needed.
//!
//! A component of our world is one kind, any other component a second, a declared program a third, a server that speaks MCP a fourth. The next is
//! one more file here, one more variant of `Code`, and its files in `source.rs`. Policy, registry, listings and audit see manifests, and need
//! no change; `toolcrib plugin inspect|add|allow` open components only.

mod component;
mod foreign;
mod program;
mod upstream;

pub use component::Component;
pub(in crate::tools) use component::{Shown, TOOLS_SECTION};
pub(crate) use foreign::Typed;
pub use program::program_faults;
pub(in crate::tools) use program::{PROGRAM, Program, Template};
use upstream::Remote;
pub(in crate::tools) use upstream::Server;

use crate::call::{check_failure, check_output};
use base::envelope::{Failure, Kind, Output};
use config::Limits;
use contract::definition::{Definition, Guidance, Tool};
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use guest::capability::bindings::exports::toolcrib::plugin::tools;
use guest::reach::Reach;
use guest::sandbox::{Guest, Sandbox};
use policy::Grants;
use policy::event::EventSink;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The hint that names a kind of events.
const EVENTS: &str = "embedder";
/// Likewise of a hint about the result, and the only value that it can have.
const RESULT: &str = "result";
const COMMAND: &str = "command";

/// What a plugin comes from.
pub(crate) trait Provider: Send + Sync {
    /// What it shows before anything of it runs.
    fn manifest(&self) -> &Arc<Manifest>;

    /// Learns what it offers. It gets no rights for that.
    fn load<'a>(
        &'a self,
        sandbox: &'a Arc<Sandbox>,
        scope: Reach,
        events: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Ready, LoadError>>;

    /// Makes what runs when one of its tools is called.
    fn code<'a>(
        &'a self,
        sandbox: &'a Arc<Sandbox>,
        limits: &'a Limits,
        events: &'a dyn EventSink,
    ) -> BoxFuture<'a, Result<Code, LoadError>>;
}

/// What runs when a tool is called.
pub(crate) enum Code {
    /// A component of our own world.
    Component(Guest),
    /// A component of any other world, with its functions.
    Typed(Typed),
    /// The component that is the tool of every declared program.
    Program(Arc<Guest>),
    /// A server that others wrote.
    Upstream(Remote),
}

/// A plugin that has said what it offers.
pub struct Ready {
    /// Made with it, or when one of its tools is called for the first time.
    code: OnceCell<Code>,
    tools: Vec<Arc<Tool>>,
    /// Digest of what it said of its tools, in hex.
    definitions: String,
}

/// Why a plugin could not be loaded.
pub(crate) enum LoadError {
    /// The fault is in its bytes.
    Broken(String),
    /// The next attempt may go well: a process was killed, the machine was busy or out of memory.
    Passing(String),
    /// The sandbox has no room now.
    Busy(Failure),
}

/// A plugin that cannot be used, and why.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Its file, or its name when it came with Toolcrib.
    pub origin: String,
    /// A lowercase sentence.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "plugin `{}` was refused: {}", self.origin, self.reason)
    }
}

impl From<String> for LoadError {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

impl Code {
    /// Runs one tool, once, with what was granted. What it answers is held against the bounds of a result and its own schema.
    pub(crate) async fn call(
        &self,
        sandbox: &Sandbox,
        tool: &Tool,
        arguments: &str,
        grants: Arc<Grants>,
        scope: &Arc<Reach>,
    ) -> Result<Output, Failure> {
        let (name, own) = (tool.name(), scope.clone());
        let answered = match self {
            Self::Component(guest) => sandbox.instantiate(guest, grants, own).await?.call(name, arguments).await?,
            Self::Typed(typed) => typed.call(sandbox, name, arguments, grants, own).await?,
            // Which program it is, its grant says.
            Self::Program(guest) => sandbox.instantiate(guest, grants, own).await?.call(PROGRAM, arguments).await?,
            Self::Upstream(remote) => {
                let mut output = remote.call(name, arguments, &grants, scope).await?;
                // It has done its work, and whoever takes that for a failure does it again.
                let misfit = tool.misfit(&output.result).unwrap_or_else(|failure| Some(failure.message));
                output.notices.extend(misfit.map(|misfit| format!("{misfit}; it is handed on as it is")));
                return Ok(output);
            }
        };
        match answered {
            Ok(output) => check_output(output, tool, scope),
            Err(failure) => Err(check_failure(failure, scope)),
        }
    }
}

impl Code {
    /// Asks once more what it offers, in an instance of its own. Returns the digest of that, or nothing where it follows from the bytes.
    pub(crate) async fn definitions(&self, sandbox: &Sandbox, scope: Reach) -> Result<Option<String>, Failure> {
        let guest = match self {
            Self::Component(guest) => guest,
            Self::Program(guest) => guest,
            Self::Typed(_) | Self::Upstream(_) => return Ok(None),
        };
        let said = sandbox.definitions(guest, scope).await?;
        let definitions = read_definitions(said).map_err(|reason| Failure::new(Kind::Unavailable, reason))?;
        Ok(Some(digest(&serde_json::to_vec(&definitions).expect("definitions are plain data"))))
    }
}

/// Reads what a component said of its tools.
pub(in crate::tools) fn read_definitions(said: Vec<tools::Definition>) -> Result<Vec<Definition>, String> {
    said.into_iter().map(read_definition).collect()
}

fn read_definition(said: tools::Definition) -> Result<Definition, String> {
    let schema = |text: &str, which| {
        serde_json::from_str(text).map_err(|error| format!("its {which} schema is not JSON: {error}"))
    };
    Ok(Definition {
        input_schema: schema(&said.input_schema, "input")?,
        output_schema: said.output_schema.as_deref().map(|text| schema(text, "output")).transpose()?,
        name: said.name,
        title: said.title,
        summary: said.summary,
        guidance: Guidance {
            when_to_use: said.guidance.when_to_use,
            when_not_to_use: said.guidance.when_not_to_use,
            disambiguation: said.guidance.disambiguation,
            examples: said.guidance.examples,
        },
        usage: said.usage,
        // Of hints that this host does not know nothing is kept.
        is_of_command: said.hints.iter().any(|(key, value)| key == RESULT && value == COMMAND),
        events: said.hints.into_iter().filter(|(key, _)| key == EVENTS).map(|(_, kind)| kind).collect(),
    })
}

/// What a plugin said of its tools, and that word for word.
struct Said {
    definitions: Vec<Definition>,
    json: Vec<u8>,
}

/// The digest by which definitions are known.
fn digest(json: &[u8]) -> String {
    hex::encode(Sha256::digest(json))
}

impl Ready {
    /// Checks what a plugin said of itself, also against the names that its manifest shows.
    fn new(manifest: &Arc<Manifest>, code: Option<Code>, said: &Said, limits: &Limits) -> Result<Self, String> {
        let mut names: Vec<&str> = said.definitions.iter().map(|definition| definition.name.as_str()).collect();
        let mut shown: Vec<&str> = manifest.tools.iter().map(String::as_str).collect();
        names.sort_unstable();
        shown.sort_unstable();
        if names != shown {
            return Err(format!("its definitions name the tools {names:?}, and the plugin shows {shown:?}"));
        }
        let tool = |definition: &Definition| Tool::new(definition.clone(), manifest.clone(), limits).map(Arc::new);
        let tools = said.definitions.iter().map(tool).collect::<Result<_, _>>()?;
        Ok(Self { code: OnceCell::new_with(code), tools, definitions: digest(&said.json) })
    }

    /// Takes what this program has checked before, under the same limits. The code is made when it is needed.
    fn checked_before(manifest: &Arc<Manifest>, said: Said) -> Self {
        let tool = |definition| Arc::new(Tool::checked_before(definition, manifest.clone()));
        let tools = said.definitions.into_iter().map(tool).collect();
        Self { code: OnceCell::new(), tools, definitions: digest(&said.json) }
    }

    /// Digest of what it said of its tools, in hex.
    pub fn definitions(&self) -> &str {
        &self.definitions
    }

    pub(super) fn code(&self) -> &OnceCell<Code> {
        &self.code
    }

    pub(crate) fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Finds a tool by its exact name.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.definition().name == name)
    }
}
