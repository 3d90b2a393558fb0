//! What a caller is offered: the tools of all plugins that load, and of them those that policy and place let be called.
//!
//! Every door lists by this; what a tool may do in a call is decided again when it is called.

use crate::Host;
use crate::call::CallContext;
use base::capability::Capability;
use base::envelope::{Failure, Kind};
use base::event_kind::any_covers;
use contract::definition::Tool;
use contract::manifest::Manifest;
use formats::Offer;
use futures_util::future::{BoxFuture, join_all};
use guest::capability::embedder::not_taken;
use policy::toolset::narrowed;
use policy::{Grants, Policy, typing};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tmux::Panes;

/// Tools that load, and what is to be said of those that do not.
pub struct Offered {
    /// As the caller's session has them, in the order of their plugins.
    pub tools: Vec<Arc<Tool>>,
    /// Likewise what people ask for by name, and models are not offered.
    pub prompts: Vec<Arc<Tool>>,
    /// A line each, for people.
    pub notices: Vec<String>,
}

/// Every tool, and why those that are not offered are not.
pub struct AllTools {
    /// As the caller's session has them, in the order of their plugins; a reason where it is not offered.
    pub tools: Vec<(Arc<Tool>, Option<Failure>)>,
    /// A line each, for people: of plugins that do not load, and of a place that cannot be asked.
    pub notices: Vec<String>,
}

/// Typing could succeed: the only pane is not one where questions are answered.
fn can_type(context: &CallContext) -> bool {
    !matches!(context.panes, Panes::Own(_)) || typing::check_own(context.approver.is_read()).is_ok()
}

/// Why the place has no use for a plugin; none where it has one.
fn useless_here(plugin: &Manifest, missing: &[Capability], context: &CallContext) -> Option<Failure> {
    let unavailable = |why: String, hint: &str| Some(Failure::new(Kind::Unavailable, why).hint(hint));
    if let Some(lacking) = plugin.capabilities.iter().find(|needed| missing.contains(needed)) {
        let why = format!("it needs `{}`, and there are no managed panes here", lacking.name());
        return unavailable(why, "`toolcrib doctor` says what tmux lacks");
    }
    if plugin.capabilities.contains(&Capability::Embedder) && context.embedder.kinds().is_empty() {
        let why = "it needs an embedder, a program around this one that takes its events, and there is none";
        return unavailable(
            why.into(),
            "see docs/embedding.md: `toolcrib run --embedder KIND`, `toolcrib serve --embedder WHERE` and the library have one",
        );
    }
    if plugin.id.is_program() && !context.backend.is_this_machine() {
        let why = format!("declared programs run on this machine alone, and calls land on {}", context.backend.name());
        return unavailable(why, "`exec` starts programs there");
    }
    if plugin.calls(Capability::Panes, "send") && !can_type(context) {
        return unavailable("the only pane is one where questions are answered".into(), "use managed panes");
    }
    None
}

/// Why a tool that hands over events is of no use here; none where the embedder takes all of their kinds.
fn not_taken_here(tool: &Tool, context: &CallContext) -> Option<Failure> {
    let kinds = context.embedder.kinds();
    let untaken = tool.definition().events.iter().find(|kind| !any_covers(&kinds, kind))?;
    Some(not_taken(untaken))
}

/// Capabilities that could only fail: without panes those of panes.
async fn missing(context: &CallContext, notices: &mut Vec<String>) -> &'static [Capability] {
    match (&context.panes, context.panes.managed().await) {
        (_, Ok(Some(_))) => &[],
        (Panes::Own(_), _) => &[Capability::PaneSessions],
        (_, Ok(None)) => &[Capability::Panes, Capability::PaneSessions],
        (_, Err(unreachable)) => {
            notices.push(format!("{}; what it offers is not known", unreachable.message));
            &[]
        }
    }
}

/// The workspace, if a rule may deny a tool there: a place that does not answer is waited for.
async fn workspace(policy: &Policy, context: &CallContext) -> PathBuf {
    if !policy.rules().denies_tools() {
        return PathBuf::new();
    }
    context.backend.facts().await.map(|facts| facts.workspace.root.clone()).unwrap_or_default()
}

/// The family of a tool that nobody has asked for: no toolset of the session names it, nor do settings offer its family.
fn not_on_request(policy: &Policy, plugin: &Manifest, context: &CallContext) -> Option<&'static str> {
    let family = plugin.family?;
    let is_offered = policy.config().tools.offer.iter().any(|offered| offered == family);
    (!is_offered && context.session.toolset().is_none()).then_some(family)
}

impl Host {
    /// Loads every plugin that the place has a use for.
    pub fn offered<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Offered> {
        Box::pin(async move {
            let mut notices: Vec<String> = context.tools.refused().iter().map(ToString::to_string).collect();
            let missing = missing(context, &mut notices).await;
            let is_usable = |plugin: &&Arc<Manifest>| {
                useless_here(plugin, missing, context).or_else(|| self.lacks(plugin, context)).is_none()
            };
            let policy = self.policy();
            let workspace = workspace(&policy, context).await;
            let is_there = |plugin: &Manifest, tool: &str| {
                context.session.admit(tool, plugin).is_ok()
                    && not_on_request(&policy, plugin, context).is_none()
                    && policy.rules().denied_tool(tool, &workspace).is_none()
            };
            let is_wanted = |plugin: &&Arc<Manifest>| plugin.tools.iter().any(|tool| is_there(plugin, tool));
            let plugins = context.tools.plugins().filter(is_usable).filter(is_wanted);
            let mut tools = self.tools_of(plugins, context, &mut notices).await;
            tools.retain(|tool| {
                let (plugin, name) = (tool.plugin(), tool.name());
                let is_usable =
                    not_taken_here(tool, context).or_else(|| self.withheld(plugin, name, context)).is_none();
                is_usable && is_there(plugin, name)
            });
            let (prompts, tools) = tools.into_iter().partition(|tool| tool.is_prompt());
            Offered { tools, prompts, notices }
        })
    }

    /// Loads every plugin: each tool with why it is not offered, if it is not.
    pub fn all_tools<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, AllTools> {
        Box::pin(async move {
            let mut notices: Vec<String> = context.tools.refused().iter().map(ToString::to_string).collect();
            // The place is asked once: a host that does not answer is waited for each time.
            let lacks = missing(context, &mut notices).await;
            let tools = self.tools_of(context.tools.plugins(), context, &mut notices).await;
            let workspace = workspace(&self.policy(), context).await;
            let with_reason = |tool: Arc<Tool>| {
                let missing = self.why_missing(&tool, lacks, &workspace, context);
                (tool, missing)
            };
            AllTools { tools: tools.into_iter().map(with_reason).collect(), notices }
        })
    }

    /// The tools of plugins, as the caller's session has them; of a plugin that does not load, what is wrong with it.
    async fn tools_of<'p>(
        &self,
        plugins: impl Iterator<Item = &'p Arc<Manifest>>,
        context: &CallContext,
        notices: &mut Vec<String>,
    ) -> Vec<Arc<Tool>> {
        let mut tools = Vec::new();
        for ready in join_all(plugins.map(|plugin| self.ready(plugin, context))).await {
            match ready {
                Ok(ready) => tools.extend(
                    ready.tools().iter().map(|tool| narrowed(tool, context.session.bound(tool.name()).as_ref())),
                ),
                Err(failure) => notices.push(failure.message),
            }
        }
        tools
    }

    /// The resources that a server of others has listed last for this caller, by the tool that reads them: objects of the protocol, with its own
    /// addresses. Where a toolset says which resource is read, it lists none.
    #[must_use]
    pub fn listed_resources(&self, reader: &Tool, context: &CallContext) -> Vec<Value> {
        if context.session.bound(reader.name()).is_some_and(|bound| !bound.is_empty()) {
            return Vec::new();
        }
        self.upstreams.resources(context.principal.as_str(), reader.plugin().name())
    }

    /// A tool as this caller is offered it.
    ///
    /// # Errors
    ///
    /// `unavailable` where its toolset does not have it.
    pub fn as_offered(&self, tool: &Arc<Tool>, context: &CallContext) -> Result<Arc<Tool>, Failure> {
        context.session.admit(tool.name(), tool.plugin())?;
        Ok(narrowed(tool, context.session.bound(tool.name()).as_ref()))
    }

    /// The tool as a list of definitions has it.
    pub fn offer<'t>(&self, tool: &'t Tool, context: &CallContext) -> Offer<'t> {
        let policy = self.within(self.policy(), context);
        let grants = policy.map(|policy| policy.grants_of(tool.plugin()));
        Offer::new(tool, &grants.unwrap_or_else(|_| Arc::new(Grants::none())))
    }

    /// Why a tool is not offered to this caller; none where it is.
    pub fn missing<'a>(&'a self, tool: &'a Tool, context: &'a CallContext) -> BoxFuture<'a, Option<Failure>> {
        Box::pin(async move {
            let lacks = missing(context, &mut Vec::new()).await;
            self.why_missing(tool, lacks, &workspace(&self.policy(), context).await, context)
        })
    }

    /// The same, where it is known which capabilities the place lacks.
    fn why_missing(
        &self,
        tool: &Tool,
        lacks: &[Capability],
        workspace: &Path,
        context: &CallContext,
    ) -> Option<Failure> {
        let refused = context.session.admit(tool.name(), tool.plugin()).err();
        if let Some(failure) = refused.or_else(|| self.policy().rules().denied_tool(tool.name(), workspace)) {
            return Some(failure);
        }
        // Before the family: listed or not, without one it cannot be called.
        let useless = useless_here(tool.plugin(), lacks, context).or_else(|| self.lacks(tool.plugin(), context));
        if let Some(failure) = useless.or_else(|| not_taken_here(tool, context)) {
            return Some(failure);
        }
        if let Some(failure) = self.withheld(tool.plugin(), tool.name(), context) {
            return Some(failure);
        }
        if tool.is_prompt() {
            let why = "it is a prompt: people ask for it by its name, and models are not offered it";
            return self.denial(tool, context).or_else(|| Some(Failure::new(Kind::Unavailable, why)));
        }
        if let Some(family) = not_on_request(&self.policy(), tool.plugin(), context) {
            let why = format!(
                "it is one of the family `{family}`, which is listed on request; a call by its name works all the same"
            );
            let hint = format!(
                "`--offer {family}`, or \"{family}\" in `offer` under [tools], lists it, or name the tool in a toolset"
            );
            return Some(Failure::new(Kind::Unavailable, why).hint(hint));
        }
        self.denial(tool, context)
    }

    /// The first reason why a call of the tool would be denied.
    pub fn denial(&self, tool: &Tool, context: &CallContext) -> Option<Failure> {
        let policy = match self.within(self.policy(), context) {
            Ok(policy) => policy,
            Err(failure) => return Some(failure),
        };
        if let Err(barred) = policy.admit(tool.plugin()) {
            return Some(barred.failure);
        }
        let grants = policy.grants_of(tool.plugin());
        let plugin = tool.plugin();
        let needed = plugin.capabilities.iter().filter(|capability| !plugin.unsure.contains(capability));
        needed.copied().find_map(|capability| grants.refusal(capability))
    }

    /// What a plugin needs that settings or this machine do not have.
    fn lacks(&self, plugin: &Manifest, context: &CallContext) -> Option<Failure> {
        self.lacks_browser(plugin).or_else(|| self.lacks_account(plugin, context))
    }

    /// Why a plugin that reads mail has no account to read; none if it has one, needs none, or may read no mail anyway.
    fn lacks_account(&self, plugin: &Manifest, context: &CallContext) -> Option<Failure> {
        let needs = plugin.capabilities.contains(&Capability::Mail) && !plugin.unsure.contains(&Capability::Mail);
        let policy = needs.then(|| self.within(self.policy(), context).ok())??;
        policy.grants_of(plugin).mail().ok()?.lacks_account()
    }

    /// Why a plugin that needs a browser has none; none where it has one, or needs none.
    fn lacks_browser(&self, plugin: &Manifest) -> Option<Failure> {
        self.services.browsers.find().err().filter(|_| plugin.capabilities.contains(&Capability::Browser))
    }

    /// Why a tool is withheld that is another one by now than was accepted of its server.
    fn withheld(&self, plugin: &Manifest, tool: &str, context: &CallContext) -> Option<Failure> {
        let is_upstream = plugin.id.is_upstream();
        is_upstream.then(|| self.upstreams.withheld(context.principal.as_str(), plugin.name(), tool)).flatten()
    }
}
