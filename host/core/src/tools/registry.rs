//! The tools by name: which components there are, what they say of themselves, and which were refused.
//!
//! A plugin is read at start, loaded when it is first needed, and asked for its definitions once per digest.
//! What a definition must be like is `definition.rs`, what a plugin shows before it is loaded `manifest.rs`, how it is loaded `provider/`.

use crate::tools::provider::{Code, Component, LoadError, Provider, Ready, Refused};
use base::envelope::{Failure, Kind};
use base::text::names::folded;
use base::text::sanitize;
use base::text::tool_names::meant;
use config::{Limits, server_of};
use contract::manifest::Manifest;
use guest::reach::Reach;
use guest::sandbox::Sandbox;
use parking_lot::Mutex;
use policy::Policy;
use policy::event::EventSink;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OnceCell;

/// All tools of a host.
#[derive(Default)]
pub struct Registry {
    entries: Vec<Arc<Entry>>,
    by_tool: HashMap<String, Arc<Manifest>>,
    /// The name of each tool by what it reads like, and the plugins likewise.
    by_folded: HashMap<String, String>,
    plugins_by_folded: HashMap<String, Arc<Manifest>>,
    refused: Vec<Refused>,
    /// Plugins that policy does not admit: they take no names, and are never loaded.
    barred: Vec<Arc<Manifest>>,
}

/// A plugin, and what came of it when it was first needed.
struct Entry {
    provider: Box<dyn Provider>,
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

impl Entry {
    fn new(provider: Box<dyn Provider>) -> Self {
        Self { provider, ready: OnceCell::new(), refusal: Mutex::default() }
    }

    fn manifest(&self) -> &Arc<Manifest> {
        self.provider.manifest()
    }

    /// It is what this provider would load: the same bytes from the same place.
    fn is(&self, manifest: &Manifest) -> bool {
        self.manifest().id == manifest.id
    }

    /// Loads the plugin; one at a time does, the others wait for what comes of it.
    async fn ready(
        &self,
        sandbox: &Arc<Sandbox>,
        scope: impl FnOnce() -> Reach,
        events: &dyn EventSink,
    ) -> Result<&Ready, Failure> {
        let load = async || self.provider.load(sandbox, scope(), events).await;
        self.ready.get_or_try_init(|| Box::pin(self.attempt(load))).await
    }

    /// The code of a plugin that is ready, likewise.
    async fn code<'r>(
        &self,
        ready: &'r Ready,
        sandbox: &Arc<Sandbox>,
        limits: &Limits,
        events: &dyn EventSink,
    ) -> Result<&'r Code, Failure> {
        let load = async || self.provider.code(sandbox, limits, events).await;
        ready.code().get_or_try_init(|| Box::pin(self.attempt(load))).await
    }

    async fn attempt<T>(&self, load: impl AsyncFnOnce() -> Result<T, LoadError>) -> Result<T, Failure> {
        let standing = self.refusal.lock().clone();
        if let Some(standing) = standing.filter(|refusal| refusal.until.is_none_or(|until| Instant::now() < until)) {
            return Err(self.refused(&standing));
        }
        let begin = Instant::now();
        let (reason, until) = match load().await {
            Ok(loaded) => return Ok(loaded),
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
            None if self.manifest().id.is_builtin() => "this is a fault of Toolcrib, or a limit is too low".into(),
            None => "fix or remove its file".into(),
        };
        Failure::new(Kind::Unavailable, format!("plugin `{}` was refused: {reason}", self.manifest().name())).hint(hint)
    }
}

impl Registry {
    /// Takes what a source has and `policy` admits. What cannot be used is listed as refused; of what `known` has in the same bytes, the
    /// code is used again.
    pub(super) fn read(
        providers: impl Iterator<Item = Result<Box<dyn Provider>, Refused>>,
        policy: &Policy,
        known: Option<&Self>,
    ) -> Self {
        let (mut registry, known) = (Self::default(), known.map_or(&[][..], |known| &known.entries));
        for provider in providers {
            match provider {
                Ok(provider) if policy.admit(provider.manifest()).is_err() => {
                    registry.barred.push(provider.manifest().clone());
                }
                provider => registry.take(provider, known),
            }
        }
        policy.keep_checked();
        registry
    }

    /// Whether the same plugins are there, in the same bytes, and the same were refused.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let refused = |registry: &Self| -> Vec<(String, String)> {
            registry.refused.iter().map(|refused| (refused.origin.clone(), refused.reason.clone())).collect()
        };
        let barred = |registry: &Self| registry.barred.iter().map(|plugin| plugin.id.clone()).collect::<Vec<_>>();
        self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(|(one, other)| Arc::ptr_eq(one, other))
            && refused(self) == refused(other)
            && barred(self) == barred(other)
    }

    fn take(&mut self, provider: Result<Box<dyn Provider>, Refused>, known: &[Arc<Entry>]) {
        if let Err(refused) = provider.and_then(|provider| self.add(provider, known)) {
            let reason = sanitize::line(&refused.reason).into_owned();
            self.refused.push(Refused { reason, ..refused });
        }
    }

    fn add(&mut self, provider: Box<dyn Provider>, known: &[Arc<Entry>]) -> Result<(), Refused> {
        let manifest = provider.manifest().clone();
        if let Some(reason) = self.conflict(&manifest, None) {
            return Err(Refused { origin: manifest.id.origin().to_owned(), reason });
        }
        let known = known.iter().find(|known| known.is(&manifest)).cloned();
        let entry = known.unwrap_or_else(|| Arc::new(Entry::new(provider)));
        for tool in &manifest.tools {
            self.by_folded.insert(folded(tool), tool.clone());
            self.by_tool.insert(tool.clone(), entry.manifest().clone());
        }
        self.plugins_by_folded.insert(manifest.id.folded(), entry.manifest().clone());
        self.entries.push(entry);
        Ok(())
    }

    /// Says why a plugin cannot be added to those that exist; the one whose file is `instead_of` would go.
    #[must_use]
    pub fn conflict(&self, plugin: &Manifest, instead_of: Option<&str>) -> Option<String> {
        let stays = |other: &&Arc<Manifest>| {
            instead_of.is_none_or(|origin| other.id.is_builtin() || other.id.origin() != origin)
        };
        if let Some(other) = self.plugins_by_folded.get(&plugin.id.folded()).filter(stays) {
            return Some(format!("a plugin `{}` exists already, {}", other.name(), other.id.place()));
        }
        plugin.tools.iter().find_map(|tool| {
            let taken = self.by_folded.get(&folded(tool))?;
            let other = Some(&self.by_tool[taken]).filter(stays)?;
            Some(format!("its tool `{tool}` could be confused with `{taken}` of plugin `{}`", other.name()))
        })
    }

    /// One component by itself, whether policy would admit it or not: that is judged when it is needed.
    #[must_use]
    pub fn of(component: Component) -> Self {
        let mut registry = Self::default();
        registry.take(Ok(Box::new(component)), &[]);
        registry
    }

    /// All plugins that policy admits: the built-in ones first, then by directory and name.
    pub fn plugins(&self) -> impl Iterator<Item = &Arc<Manifest>> {
        self.entries.iter().map(|entry| entry.manifest())
    }

    /// Plugins that policy does not admit; [`Policy::admit`] says why.
    pub fn barred(&self) -> impl Iterator<Item = &Arc<Manifest>> {
        self.barred.iter()
    }

    /// Loads a plugin of this registry and learns its tools, the first time.
    ///
    /// # Errors
    ///
    /// `unavailable`, with what is wrong with the plugin; `busy` when the sandbox has no room for it now.
    pub(crate) async fn ready(
        &self,
        plugin: &Arc<Manifest>,
        sandbox: &Arc<Sandbox>,
        scope: impl FnOnce() -> Reach,
        events: &dyn EventSink,
    ) -> Result<&Ready, Failure> {
        self.entry(plugin)?.ready(sandbox, scope, events).await
    }

    /// The code of a plugin of this registry that is ready, loaded the first time.
    ///
    /// # Errors
    ///
    /// As [`Self::ready`].
    pub(crate) async fn code<'r>(
        &self,
        plugin: &Arc<Manifest>,
        ready: &'r Ready,
        sandbox: &Arc<Sandbox>,
        limits: &Limits,
        events: &dyn EventSink,
    ) -> Result<&'r Code, Failure> {
        match ready.code().get() {
            Some(code) => Ok(code),
            None => self.entry(plugin)?.code(ready, sandbox, limits, events).await,
        }
    }

    fn entry(&self, plugin: &Arc<Manifest>) -> Result<&Arc<Entry>, Failure> {
        let is_it = |entry: &&Arc<Entry>| Arc::ptr_eq(entry.manifest(), plugin);
        self.entries.iter().find(is_it).ok_or_else(|| {
            let message =
                format!("plugin `{}` is admitted now, and was not when tools were last looked for", plugin.name());
            Failure::new(Kind::Unavailable, message).hint("try again in a moment")
        })
    }

    /// What cannot be used, though policy may admit it. A plugin that fails when it is first needed says so itself.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Finds the plugin of a member of a toolset: of a tool, or the server whose tools it names all.
    #[must_use]
    pub fn find_plugin(&self, member: &str) -> Option<Arc<Manifest>> {
        match server_of(member) {
            Some(server) => self.plugins().find(|plugin| plugin.server() == Some(server)).cloned(),
            None => self.plugin_of(member).ok().cloned(),
        }
    }

    /// Finds the plugin that offers a tool, or would if policy admitted it.
    ///
    /// # Errors
    ///
    /// `unknown_tool`, with the name that was probably meant.
    pub fn plugin_of(&self, tool: &str) -> Result<&Arc<Manifest>, Failure> {
        let barred = || self.barred.iter().find(|plugin| plugin.tools.iter().any(|name| name == tool));
        self.by_tool.get(tool).or_else(barred).ok_or_else(|| {
            let shown: String = tool.chars().take(64).collect();
            let failure = Failure::new(Kind::UnknownTool, format!("there is no tool `{shown}`"));
            match meant(tool, self.by_tool.keys().map(String::as_str)) {
                Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                None => failure.hint("`toolcrib tools` lists the tools"),
            }
        })
    }
}
