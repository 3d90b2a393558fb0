//! The tools by name: which components there are, what they say of themselves, and which were refused.
//!
//! A component is read at start, compiled when it is first needed, and asked for its definitions once per digest.
//! What a definition must be like is `definition.rs`, what a component shows without compiling `component.rs`.

use super::source::Builtin;
use crate::call::scope::Scope;
use crate::capability::Capability;
use crate::config::Limits;
use crate::envelope::{Failure, Kind};
use crate::event::{Compiling, EventSink};
use crate::sandbox::{Code, CompileError, Owner, Sandbox, Source};
use crate::text::names::{folded, is_name};
use crate::text::sanitize;
use crate::tools::component::Component;
use crate::tools::definition::{Definition, Tool};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OnceCell;

/// All tools of a host.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Arc<Entry>>,
    by_tool: HashMap<String, Arc<Plugin>>,
    /// The name of each tool by what it reads like.
    by_folded: HashMap<String, String>,
    refused: Vec<Refused>,
}

/// A plugin, and what came of it when it was first needed.
struct Entry {
    plugin: Arc<Plugin>,
    ready: OnceCell<Ready>,
    refusal: Mutex<Option<Refusal>>,
}

/// Why a plugin is not ready.
#[derive(Clone)]
struct Refusal {
    reason: String,
    /// When it is tried again; never, if the fault is in its bytes.
    until: Option<Instant>,
}

/// A fault that passes is not met again for so many times as long as the attempt took: a component that is slow to compile takes at most
/// a tenth of a processor.
const PAUSE: u32 = 10;

/// Why a plugin could not be loaded.
enum LoadError {
    /// The fault is in its bytes.
    Broken(String),
    /// The next attempt may go well: a process was killed, the machine was busy or out of memory.
    Passing(String),
    /// The sandbox has no room now.
    Busy(Failure),
}

/// A component that was not accepted, and why.
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

/// One component.
pub struct Plugin {
    name: String,
    origin: String,
    builtin: bool,
    component: Component,
}

/// A plugin that was compiled and has said what it offers.
pub struct Ready {
    pub(crate) code: Code,
    tools: Vec<Arc<Tool>>,
    /// Digest of what it said of its tools, in hex.
    definitions: String,
}

impl Plugin {
    /// The name that policy knows it by: its file's name without `.wasm`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file, or its name when it came with Toolcrib.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Both would answer to the same name.
    #[must_use]
    pub fn has_name_of(&self, other: &Self) -> bool {
        folded(&self.name) == folded(&other.name)
    }

    /// Both are the same bytes at the same place.
    fn is(&self, other: &Self) -> bool {
        (self.builtin, &self.origin, self.sha256()) == (other.builtin, &other.origin, other.sha256())
    }

    /// It came with this binary.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        self.builtin
    }

    /// What approvals call it.
    #[must_use]
    pub fn label(&self) -> String {
        let kind = if self.builtin { "built in" } else { "third party" };
        format!("{} ({kind})", self.name)
    }

    /// Where it comes from, in words.
    fn place(&self) -> String {
        if self.builtin { "built in".into() } else { format!("from {}", self.origin) }
    }

    /// Digest of its bytes, in hex.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.component.sha256
    }

    /// Names of its tools.
    #[must_use]
    pub fn tool_names(&self) -> &[String] {
        &self.component.tools
    }

    /// Capabilities that it imports.
    #[must_use]
    pub fn capabilities(&self) -> Vec<Capability> {
        self.component.capabilities()
    }

    /// Everything that it imports, by the full names.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.component.imports
    }

    /// Its code calls this function of a capability.
    #[must_use]
    pub fn calls(&self, capability: Capability, function: &str) -> bool {
        self.component.calls(capability, function)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.component.bytes
    }

    /// Reads a component's file without taking it into a registry.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, Refused> {
        let origin = path.display().to_string();
        let refuse = |reason| Refused { origin: origin.clone(), reason };
        let component = Component::read(path, limits).map_err(refuse)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !is_name(&name) {
            return Err(refuse(format!(
                "`{name}` is not a valid plugin name: use 1 to 64 characters of A-Z, a-z, 0-9, `_`, `-`"
            )));
        }
        Ok(Self { name, origin, builtin: false, component })
    }

    pub(super) fn builtin((name, sha256, bytes): Builtin) -> Result<Self, Refused> {
        let refuse = |reason| Refused { origin: name.into(), reason };
        let component = Component::embedded(sha256, bytes).map_err(refuse)?;
        Ok(Self { name: name.into(), origin: name.into(), builtin: true, component })
    }

    fn source(&self) -> Source {
        let Component { sha256, core_instances, .. } = &self.component;
        let owner = Owner { sha256: sha256.as_str().into(), is_builtin: self.builtin };
        Source { owner, core_instances: *core_instances }
    }

    /// Compiles it and asks for its definitions, unless both are cached.
    async fn load(
        self: &Arc<Self>,
        sandbox: Arc<Sandbox>,
        scope: Scope,
        events: &dyn EventSink,
    ) -> Result<Ready, LoadError> {
        let (limits, source) = (scope.limits.clone(), self.source());
        if let Some((code, json)) = sandbox.cached(&source)
            && let Ok(definitions) = serde_json::from_slice::<Vec<Definition>>(&json)
        {
            return Ok(self.checked(code, definitions, &json, &limits)?);
        }
        let _shown = CompilingShown::new(events);
        let code = sandbox.compile(&source, self.component.bytes.clone()).await.map_err(|error| match error {
            CompileError::Component(reason) => LoadError::Broken(reason),
            CompileError::Passing(reason) => LoadError::Passing(reason),
        })?;
        let said = sandbox.definitions(&code, scope).await.map_err(|failure| match failure.kind {
            Kind::Busy => LoadError::Busy(failure),
            Kind::TimedOut => LoadError::Passing(failure.message),
            _ => LoadError::Broken(failure.message),
        })?;
        let definitions = said.into_iter().map(Definition::try_from).collect::<Result<Vec<_>, _>>()?;
        let json = serde_json::to_vec(&definitions).expect("definitions are plain data");
        let ready = self.checked(code, definitions, &json, &limits)?;
        sandbox.keep(&source, &ready.code, json);
        Ok(ready)
    }

    /// Takes code with the definitions that `json` tells, unless something is wrong with them.
    fn checked(
        self: &Arc<Self>,
        code: Code,
        definitions: Vec<Definition>,
        json: &[u8],
        limits: &Limits,
    ) -> Result<Ready, String> {
        Ok(Ready { code, tools: self.tools(definitions, limits)?, definitions: hex::encode(Sha256::digest(json)) })
    }

    /// Checks what the plugin said of itself, also against the names that it shows from outside.
    fn tools(self: &Arc<Self>, definitions: Vec<Definition>, limits: &Limits) -> Result<Vec<Arc<Tool>>, String> {
        let mut said: Vec<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
        let mut shown: Vec<&str> = self.tool_names().iter().map(String::as_str).collect();
        said.sort_unstable();
        shown.sort_unstable();
        if said != shown {
            return Err(format!("its definitions name the tools {said:?}, its `toolcrib:tools` section {shown:?}"));
        }
        definitions.into_iter().map(|definition| Tool::new(definition, self.clone(), limits).map(Arc::new)).collect()
    }
}

/// Tells that a plugin is compiled, while it lives.
struct CompilingShown<'e>(&'e dyn EventSink);

impl<'e> CompilingShown<'e> {
    fn new(events: &'e dyn EventSink) -> Self {
        events.compiles(Compiling::Begins);
        Self(events)
    }
}

impl Drop for CompilingShown<'_> {
    fn drop(&mut self) {
        self.0.compiles(Compiling::Ended);
    }
}

impl From<String> for LoadError {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

impl Entry {
    fn new(plugin: Plugin) -> Self {
        Self { plugin: Arc::new(plugin), ready: OnceCell::new(), refusal: Mutex::default() }
    }

    /// Loads the plugin; one at a time does, the others wait for what comes of it.
    async fn ready(
        &self,
        sandbox: &Arc<Sandbox>,
        scope: impl FnOnce() -> Scope,
        events: &dyn EventSink,
    ) -> Result<&Ready, Failure> {
        self.ready.get_or_try_init(|| Box::pin(self.load(sandbox.clone(), scope, events))).await
    }

    async fn load(
        &self,
        sandbox: Arc<Sandbox>,
        scope: impl FnOnce() -> Scope,
        events: &dyn EventSink,
    ) -> Result<Ready, Failure> {
        let standing = self.refusal.lock().clone();
        if let Some(standing) = standing.filter(|refusal| refusal.until.is_none_or(|until| Instant::now() < until)) {
            return Err(self.refused(&standing));
        }
        let begin = Instant::now();
        let (reason, until) = match self.plugin.load(sandbox, scope(), events).await {
            Ok(ready) => return Ok(ready),
            Err(LoadError::Busy(failure)) => return Err(failure),
            Err(LoadError::Broken(reason)) => (reason, None),
            Err(LoadError::Passing(reason)) => (reason, Some(Instant::now() + begin.elapsed() * PAUSE)),
        };
        let refusal = Refusal { reason, until };
        let failure = self.refused(&refusal);
        *self.refusal.lock() = Some(refusal);
        Err(failure)
    }

    fn refused(&self, Refusal { reason, until }: &Refusal) -> Failure {
        let hint = match until {
            Some(until) => {
                let seconds = until.saturating_duration_since(Instant::now()).as_secs() + 1;
                format!("it is tried again when it is called after {seconds}s")
            }
            None if self.plugin.builtin => "this is a fault of Toolcrib, or a limit is too low".into(),
            None => "fix or remove its file".into(),
        };
        Failure::new(Kind::Unavailable, format!("plugin `{}` was refused: {reason}", self.plugin.name)).hint(hint)
    }
}

impl Registry {
    /// Takes what a source has. What cannot be accepted is listed as refused; of what `known` has in the same bytes, the code is used again.
    pub(super) fn read(plugins: impl Iterator<Item = Result<Plugin, Refused>>, known: Option<&Self>) -> Self {
        let (mut registry, known) = (Self::default(), known.map_or(&[][..], |known| &known.entries));
        plugins.for_each(|plugin| registry.take(plugin, known));
        registry
    }

    /// Whether the same plugins are there, in the same bytes, and the same were refused.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let refused = |registry: &Self| -> Vec<(String, String)> {
            registry.refused.iter().map(|refused| (refused.origin.clone(), refused.reason.clone())).collect()
        };
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(one, other)| Arc::ptr_eq(one, other))
            && refused(self) == refused(other)
    }

    fn take(&mut self, plugin: Result<Plugin, Refused>, known: &[Arc<Entry>]) {
        if let Err(refused) = plugin.and_then(|plugin| self.admit(plugin, known)) {
            let reason = sanitize::line(&refused.reason).into_owned();
            self.refused.push(Refused { reason, ..refused });
        }
    }

    fn admit(&mut self, plugin: Plugin, known: &[Arc<Entry>]) -> Result<(), Refused> {
        if let Some(reason) = self.conflict(&plugin, None) {
            return Err(Refused { origin: plugin.origin, reason });
        }
        let known = known.iter().find(|known| known.plugin.is(&plugin)).cloned();
        let entry = known.unwrap_or_else(|| Arc::new(Entry::new(plugin)));
        for tool in entry.plugin.tool_names() {
            self.by_folded.insert(folded(tool), tool.clone());
            self.by_tool.insert(tool.clone(), entry.plugin.clone());
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Says why a plugin cannot be added to those that exist; the one whose file is `instead_of` would go.
    #[must_use]
    pub fn conflict(&self, plugin: &Plugin, instead_of: Option<&str>) -> Option<String> {
        let stays = |other: &&Arc<Plugin>| instead_of.is_none_or(|origin| other.builtin || other.origin != origin);
        if let Some(other) = self.plugins().filter(stays).find(|other| other.has_name_of(plugin)) {
            return Some(format!("a plugin `{}` exists already, {}", other.name, other.place()));
        }
        plugin.tool_names().iter().find_map(|tool| {
            let taken = self.by_folded.get(&folded(tool))?;
            let other = Some(&self.by_tool[taken]).filter(stays)?;
            Some(format!("its tool `{tool}` could be confused with `{taken}` of plugin `{}`", other.name))
        })
    }

    /// One plugin by itself.
    #[must_use]
    pub fn of(plugin: Plugin) -> Self {
        let mut registry = Self::default();
        registry.take(Ok(plugin), &[]);
        registry
    }

    /// All plugins: the built-in ones first, then by directory and name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.entries.iter().map(|entry| &entry.plugin)
    }

    /// Compiles a plugin of this registry and learns its tools, the first time.
    ///
    /// # Errors
    ///
    /// `unavailable`, with what is wrong with the plugin; `busy` when the sandbox has no room for it now.
    pub(crate) async fn ready(
        &self,
        plugin: &Arc<Plugin>,
        sandbox: &Arc<Sandbox>,
        scope: impl FnOnce() -> Scope,
        events: &dyn EventSink,
    ) -> Result<&Ready, Failure> {
        let entry =
            self.entries.iter().find(|entry| Arc::ptr_eq(&entry.plugin, plugin)).expect("a plugin of this registry");
        entry.ready(sandbox, scope, events).await
    }

    /// Components that were not accepted. A plugin that fails when it is first needed says so itself.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Finds the plugin that offers a tool.
    ///
    /// # Errors
    ///
    /// `unknown_tool`, with the nearest names.
    pub fn plugin_of(&self, tool: &str) -> Result<&Arc<Plugin>, Failure> {
        self.by_tool.get(tool).ok_or_else(|| {
            let shown: String = tool.chars().take(64).collect();
            let failure = Failure::new(Kind::UnknownTool, format!("there is no tool `{shown}`"));
            match self.nearest(tool) {
                Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
                None => failure.hint("`toolcrib tools` lists the tools"),
            }
        })
    }

    fn nearest(&self, tool: &str) -> Option<&String> {
        let tool = folded(tool);
        let scored = self.by_tool.keys().map(|name| (strsim::jaro_winkler(&folded(name), &tool), name));
        scored.filter(|(score, _)| *score > 0.75).max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
    }
}

impl Ready {
    /// Digest of what it said of its tools, in hex.
    pub fn definitions(&self) -> &str {
        &self.definitions
    }

    pub(crate) fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Finds a tool by its exact name.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.definition().name == name)
    }
}
