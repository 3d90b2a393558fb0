//! A host: made of settings and directories, called, and asked what it offers.
//!
//! What becomes of one call on its way is `call/`. A home that cannot be written costs the caches and the trail, and says so.

use crate::audit::{Audit, SEAL_LOOK};
use crate::browser::Programs;
use crate::call::rate_limit::Rates;
use crate::call::running::{Calls, RunningCall};
use crate::call::scope::Scope;
use crate::call::session::CallKey;
use crate::call::{Call, CallContext, Request, check_length};
use crate::capability::Capability;
use crate::capability::embedder::Pending;
use crate::config::{DAY, LeakAction, Limits, MailSection, Settings, UpstreamSection};
use crate::dirs::Dirs;
use crate::disk::{OwnDir, told};
use crate::egress::Egress;
use crate::embedder::agents::AgentSessions;
use crate::embeddings::Embeddings;
use crate::envelope::{Envelope, Failure, Kind, Output};
use crate::formats::Offer;
use crate::jobs::Jobs;
use crate::jobs::rehearsal::Purpose;
use crate::kept_output::{KeptFile, OutputStore};
use crate::policy::admission::{Admission, Barred};
use crate::policy::approval::{Approvals, InAdvance};
use crate::policy::in_force::InForce;
use crate::policy::lock::Code;
use crate::policy::{Grants, Policy};
use crate::sandbox::{CodeCache, Compiler, Sandbox};
use crate::secrets::Secrets;
use crate::store::Store;
use crate::tmux::Panes;
use crate::tools::definition::Tool;
use crate::tools::listing::{AllTools, Offered, family, missing, not_taken_here, useless_here};
use crate::tools::manifest::{Manifest, Origin};
use crate::tools::provider::{Component, Ready};
use crate::tools::registry::Registry;
use crate::tools::source::{Builtin, PluginSource};
use crate::toolset::{self, Toolset, narrowed};
use crate::upstream::{Accepted, Look, Upstreams};
use futures_util::future::{BoxFuture, join_all};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Days from now at which a plugin has to say the same as today: another day, another year, after 2038.
const OTHER_TIMES: [u64; 3] = [1, 400, 5000];
/// What only looks at a pane may be called so many times as often: it waits for what somebody else does there.
const POLLS: u64 = 3;
/// How often a call that runs looks whether its plugin was taken back.
const REVOKED_LOOK: Duration = Duration::from_secs(1);

/// The family of a tool that nobody has asked for: no toolset of the session names it, nor do settings offer its family.
fn not_on_request(policy: &Policy, plugin: &Manifest, tool: &str, context: &CallContext) -> Option<&'static str> {
    let family = family(plugin, tool)?;
    let is_offered = policy.config().tools.offer.iter().any(|offered| offered == family);
    (!is_offered && context.session.toolset().is_none()).then_some(family)
}

/// A plugin, and what came of compiling it.
pub type Compiled = (Arc<Manifest>, Result<(), Failure>);

/// Returns when what was given up has ended, commands beyond this machine and browsers of sessions that are over, as far as that takes a bearable
/// time: a program that ends waits for that.
pub fn ended() -> BoxFuture<'static, ()> {
    Box::pin(async move {
        tokio::join!(crate::backend::ended(), crate::browser::ended());
    })
}

/// Everything that calls share.
pub struct Host {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) policy: Arc<InForce>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) output: Arc<OutputStore>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) browsers: Arc<Programs>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) permits: Semaphore,
    pub(crate) rates: Rates,
    pub(crate) calls: Calls,
    pub(crate) approvals: Arc<Approvals>,
    /// The events that wait for an embedder.
    pub(crate) pending: Arc<Pending>,
    pub(crate) agents: Arc<AgentSessions>,
    pub(crate) store: Arc<Store>,
    pub(crate) jobs: Arc<Jobs>,
}

/// What a request comes to before anything of it runs.
pub(crate) struct Prepared<'c> {
    admission: Admission<'c>,
    ready: &'c Ready,
    tool: &'c Tool,
    /// As the tool has them.
    arguments: Value,
}

impl Host {
    /// Prepares a host. `policies` are the files and directories that decide what plugins may do; no plugin may write them. Returns it with its notices.
    ///
    /// # Errors
    ///
    /// When a setting cannot be enforced or the engine cannot start.
    pub fn new(
        settings: &Settings,
        dirs: &Dirs,
        policies: &[PathBuf],
        compiler: Compiler,
    ) -> Result<(Self, Vec<String>), Failure> {
        let limits = &settings.config.limits;
        let mut notices = settings.notices.clone();
        let policy = InForce::new(settings, dirs, policies)?;
        notices.extend(policy.policy().notice().map(str::to_owned));
        let mut or_without = |what: &str, error: std::io::Error| notices.push(format!("{what}: {}", told(&error)));
        let state = || OwnDir::open(&dirs.state);
        let cache = state().and_then(|state| CodeCache::open(&state)).unwrap_or_else(|error| {
            or_without("compiled code is not kept", error);
            CodeCache::none()
        });
        let (audit, unaudited) = Audit::of(settings, dirs);
        let audit = Arc::new(audit);
        audit.keep_sealed(SEAL_LOOK);
        let policy = Arc::new(policy.audited(&audit));
        unaudited.into_iter().for_each(|error| or_without("nothing is audited", error));
        let (stream, total) = (limits.kept_stream_mib << 20, limits.kept_total_mib << 20);
        let output = state().and_then(|_| OutputStore::open(dirs.output(), stream, total)).unwrap_or_else(|error| {
            or_without("cut output is not kept", error);
            OutputStore::none()
        });
        // Jobs have room of their own, in programs that may run any.
        let jobs = if limits.concurrent_calls > 1 { settings.config.jobs.pool } else { 0 };
        let room = Limits { concurrent_calls: limits.concurrent_calls + jobs, ..limits.clone() };
        let sandbox = Sandbox::new(&room, cache, compiler)
            .map_err(|error| Failure::new(Kind::Internal, format!("the sandbox could not start: {error:#}")))?;
        let permits = usize::try_from(limits.concurrent_calls).unwrap_or(Semaphore::MAX_PERMITS);
        let permits = Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        let rates = Rates::new(limits.calls_per_minute, settings.config.remedies());
        let egress = Arc::new(Egress::of(&settings.config, dirs));
        let secrets = Arc::new(Secrets::new(&settings.config, dirs)?);
        let (sandbox, output, calls) = (Arc::new(sandbox), Arc::new(output), Calls::default());
        let pending = Arc::new(Pending::new(settings.config.embedder.max_pending));
        let embeddings = Embeddings::of(&settings.config.embeddings, dirs, &policy, &egress, &secrets)?;
        let store = Arc::new(Store::new(dirs.state.clone(), settings.config.store.clone(), embeddings));
        let jobs = Arc::new(Jobs::new(store.clone(), &settings.config, settings.below_policies()));
        let approvals = Arc::default();
        let host = Self {
            sandbox,
            policy,
            audit,
            output,
            browsers: Arc::new(Programs::new(&settings.config, dirs)),
            upstreams: Arc::new(Upstreams::new(dirs, &egress, &secrets)),
            egress,
            secrets,
            permits,
            rates,
            calls,
            approvals,
            pending,
            agents: Arc::default(),
            store,
            jobs,
        };
        Ok((host, notices))
    }

    /// Takes a request to its envelope. Whatever happens on the way, there is exactly one outcome.
    pub fn call<'a>(&'a self, request: Request, context: &'a CallContext) -> BoxFuture<'a, Envelope> {
        Box::pin(async move {
            let obeyed = self.policy.obeyed().and_then(|policy| self.within(policy, context));
            let known = obeyed.as_ref().map_or_else(|_| self.policy(), Arc::clone);
            let call = Call::begin(self, &known, &request, context);
            let policy = match obeyed {
                Ok(policy) => policy,
                Err(refusal) => return call.refuse(refusal),
            };
            if let Some((code, refusal)) = self.locked_out(&policy, &request, context) {
                self.audit.refused_call(&call.scope.tool, code.name());
                return call.refuse(refusal);
            }
            // Boxed: it has KiB of state, and each future around it would hold, and move, them twice.
            let work = Box::pin(self.try_call(&policy, &request, context, &call));
            let outcome = call.bounded(call.on_record(policy.is_locked(), work), self.revoked(&request, context)).await;
            call.finish(outcome).await
        })
    }

    /// A policy within what the caller's toolset leaves of it.
    pub(crate) fn within(&self, policy: Arc<Policy>, context: &CallContext) -> Result<Arc<Policy>, Failure> {
        match context.session.toolset().filter(|toolset| toolset.narrows()) {
            None => Ok(policy),
            Some(toolset) => self.policy.within(&policy, toolset.name()),
        }
    }

    /// The toolset of this name.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where there is none, or it would give more than there is.
    pub fn toolset(&self, name: &str) -> Result<Arc<Toolset>, Failure> {
        let policy = self.policy();
        let toolset = Toolset::of(policy.config(), name)?;
        if toolset.narrows() {
            self.policy.within(&policy, name)?;
        }
        Ok(Arc::new(toolset))
    }

    /// The word of a lock against the plugin of a request.
    pub(crate) fn locked_out(
        &self,
        policy: &Policy,
        request: &Request,
        context: &CallContext,
    ) -> Option<(Code, Failure)> {
        let plugin = context.tools.plugin_of(&request.tool).ok()?;
        let barred = policy.check_locks(plugin).err()?;
        self.audit.refused(plugin, &barred);
        Some((barred.code?, barred.failure))
    }

    /// Returns the refusal once the plugin of a request was taken back.
    pub(crate) async fn revoked(&self, request: &Request, context: &CallContext) -> Failure {
        loop {
            tokio::time::sleep(REVOKED_LOOK).await;
            // While another cannot be obeyed, the lists of the one before take back what they do.
            let policy = self.policy.obeyed().unwrap_or_else(|_| self.policy());
            let Ok(plugin) = context.tools.plugin_of(&request.tool) else { continue };
            if policy.has_revoked(plugin)
                && let Some((_, refusal)) = self.locked_out(&policy, request, context)
            {
                return refusal;
            }
        }
    }

    pub(crate) async fn try_call(
        &self,
        policy: &Policy,
        request: &Request,
        context: &CallContext,
        call: &Call<'_>,
    ) -> Result<Output, Failure> {
        let _permit = match context.purpose {
            Purpose::Act => {
                self.rates.check(&context.principal)?;
                Some(self.permit(policy)?)
            }
            // Its submission was counted, and the pool of jobs is a bound of its own; what is rehearsed is part of a call that has one.
            Purpose::Job(_) | Purpose::Fire(..) | Purpose::Rehearse(_) => None,
        };
        let plugin = context.tools.plugin_of(&request.tool)?;
        call.know_plugin(plugin);
        if let Purpose::Fire(_, event) = &context.purpose {
            context.session.admit_in_a_turn(&request.tool)?;
            let admission = policy.admit(plugin)?;
            self.admit_definitions(policy, plugin, self.loaded(plugin, context).await?)?;
            let grants = policy.grants_for(&admission);
            call.scope.accept()?;
            let result = event.hand_over(grants.schedules()?, &call.scope).await?;
            return Ok(Output { result, content: Vec::new(), notices: Vec::new() });
        }
        let Prepared { admission, ready, tool, arguments } = self.prepared(policy, plugin, request, context).await?;
        let text = arguments.to_string();
        check_length(&text)?;
        let key = CallKey::new(&context.principal, &request.tool, &arguments, &text);
        context.session.check_repeats(&key)?;
        let polls = plugin.capabilities.contains(&Capability::Panes) && !plugin.calls(Capability::Panes, "send");
        let most = policy.config().tools.equal_calls * if polls { POLLS } else { 1 };
        context.session.count_equal(&key, most)?.into_iter().for_each(|notice| call.scope.guard.notice(notice));
        let (grants, scope) = (policy.grants_for(&admission), &call.scope);
        let code = context.tools.code(plugin, ready, &self.sandbox, &scope.limits, &*context.events).await?;
        let outcome = code.call(&self.sandbox, tool, &text, grants, scope).await;
        if scope.has_touched_state() {
            context.session.note_change(&key);
        }
        context.session.remember(key, outcome.as_ref().err());
        outcome
    }

    /// Decides on a request as far as that can be done before anything of it runs.
    pub(crate) async fn prepared<'c>(
        &self,
        policy: &Policy,
        plugin: &'c Arc<Manifest>,
        request: &Request,
        context: &'c CallContext,
    ) -> Result<Prepared<'c>, Failure> {
        context.session.admit(&request.tool)?;
        let admission = policy.admit(plugin)?;
        let ready = self.loaded(plugin, context).await?;
        self.admit_definitions(policy, plugin, ready)?;
        let tool = ready.tool(&request.tool).expect("a ready plugin has the tools that it showed");
        let mut given = request.arguments.parse()?;
        let bound = context.session.bound(&request.tool);
        if let (Some(bound), Some(toolset)) = (bound, context.session.toolset()) {
            toolset::set(toolset.name(), &request.tool, bound, &mut given)?;
        }
        Ok(Prepared { admission, ready, tool, arguments: tool.validate(given)? })
    }

    fn permit(&self, policy: &Policy) -> Result<SemaphorePermit<'_>, Failure> {
        let config = policy.config();
        let most = config.limits.concurrent_calls;
        self.permits.try_acquire().map_err(|_| {
            let hint = config.remedies().raise("limits.concurrent_calls", most, "try again when some have ended");
            Failure::new(Kind::Busy, format!("too many calls are running (limit: {most})")).hint(hint)
        })
    }

    /// Loads an admitted plugin and learns its tools, the first time. What was allowed under the same bytes, but said something else of its
    /// tools, is refused.
    pub fn ready<'a>(
        &'a self,
        plugin: &'a Arc<Manifest>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<&'a Ready, Failure>> {
        Box::pin(async move {
            let policy = self.policy();
            policy.admit(plugin)?;
            let ready = self.loaded(plugin, context).await?;
            self.admit_definitions(&policy, plugin, ready)?;
            Ok(ready)
        })
    }

    /// Admits what a loaded plugin says of its tools. Under a lock that is on record.
    fn admit_definitions(&self, policy: &Policy, plugin: &Manifest, ready: &Ready) -> Result<(), Failure> {
        policy.admit_definitions(plugin, ready.definitions())?;
        if policy.is_locked() {
            self.audit.admitted(plugin);
        }
        Ok(())
    }

    /// Asks a component that nobody has to have admitted for the digest of its definitions. It gets no rights for that.
    ///
    /// # Errors
    ///
    /// As a call of its tools, where it cannot be loaded.
    pub fn definitions_of<'a>(
        &'a self,
        component: Component,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let alone = context.clone().tools(Arc::new(Registry::of(component)));
            let plugin = alone.tools.plugins().next().expect("nothing else is there that it could collide with");
            Ok(self.loaded(plugin, &alone).await?.definitions().to_owned())
        })
    }

    /// Asks a component that nobody has to have admitted for its tools. It gets no rights for that.
    ///
    /// # Errors
    ///
    /// As [`Self::definitions_of`].
    pub fn tools_of_component<'a>(
        &'a self,
        component: Component,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<Arc<Tool>>, Failure>> {
        Box::pin(async move {
            let alone = context.clone().tools(Arc::new(Registry::of(component)));
            let plugin = alone.tools.plugins().next().expect("nothing else is there that it could collide with");
            Ok(self.loaded(plugin, &alone).await?.tools().to_vec())
        })
    }

    /// As [`Self::definitions_of`], asked anew at other times and with other random numbers.
    ///
    /// # Errors
    ///
    /// As there; `denied` where it does not always say the same.
    pub fn same_definitions_of<'a>(
        &'a self,
        component: Component,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move {
            let alone = context.clone().tools(Arc::new(Registry::of(component)));
            let plugin = alone.tools.plugins().next().expect("nothing else is there that it could collide with");
            let ready = self.loaded(plugin, &alone).await?;
            let policy = self.policy();
            let code = alone.tools.code(plugin, ready, &self.sandbox, &policy.config().limits, &*alone.events).await?;
            for days in OTHER_TIMES {
                let scope = Scope::for_definitions(self.policy().config(), alone.backend.clone(), self.egress.clone());
                let scope = scope.ahead(Duration::from_secs(days * DAY));
                if code.definitions(&self.sandbox, scope).await?.is_some_and(|said| said != ready.definitions()) {
                    let message = format!("plugin `{}` does not always say the same of its tools", plugin.name());
                    return Err(Failure::denied(message)
                        .hint("it may ask the clock or random numbers: such a plugin cannot be vetted"));
                }
            }
            Ok(ready.definitions().to_owned())
        })
    }

    /// Compiles the plugins that are there and not compiled yet, so that no first call waits for that. Servers of others, which are not
    /// compiled, are not started. Returns what came of each.
    pub fn compile<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Vec<Compiled>> {
        Box::pin(async move {
            let is_compiled = |plugin: &&Arc<Manifest>| !matches!(plugin.id.origin, Origin::Upstream { .. });
            let compile = async |plugin: &Arc<Manifest>| {
                let ready = self.ready(plugin, context).await?;
                let policy = self.policy();
                context.tools.code(plugin, ready, &self.sandbox, &policy.config().limits, &*context.events).await?;
                Ok(())
            };
            let plugins = context.tools.plugins().filter(is_compiled);
            join_all(plugins.map(async |plugin| (plugin.clone(), compile(plugin).await))).await
        })
    }

    /// Loads a plugin of the context's registry, whatever it says of its tools.
    async fn loaded<'c>(&self, plugin: &Arc<Manifest>, context: &'c CallContext) -> Result<&'c Ready, Failure> {
        let policy = self.policy();
        let scope = || Scope::for_definitions(policy.config(), context.backend.clone(), self.egress.clone());
        context.tools.ready(plugin, &self.sandbox, scope, &*context.events).await
    }

    /// The browser that tools get, and that it can be confined, which is tried.
    ///
    /// # Errors
    ///
    /// `unavailable`, with what is missing.
    pub fn browser(&self) -> BoxFuture<'_, Result<PathBuf, Failure>> {
        Box::pin(async move {
            let program = self.browsers.find()?;
            self.browsers.check_confined().await?;
            Ok(program)
        })
    }

    /// Starts a server that others wrote, in a cell as its section says, to see what it offers, and ends it. None of its tools is called.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where a plugin has its name; `unavailable` where it cannot be started or confined, or does not speak as it should.
    pub fn look_at_upstream<'a>(
        &'a self,
        name: &'a str,
        section: &'a UpstreamSection,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Look, Failure>> {
        Box::pin(async move {
            let mut others = context.tools.plugins().filter(|plugin| !plugin.id.is_upstream());
            if let Some(other) = others.find(|plugin| plugin.id.has_name(name)) {
                let message = format!("a plugin `{}` exists already, {}", other.name(), other.id.place());
                return Err(Failure::invalid(message).hint("give the server another name"));
            }
            let policy = self.policy();
            let (backend, egress) = (context.backend.clone(), self.egress.clone());
            let scope = Scope::of_host("upstream", policy.config(), backend, egress, self.secrets.clone());
            let grant = Arc::new(policy.upstream_to_look_at(name, section));
            let scope = Arc::new(scope);
            let look = self.upstreams.look(name, section, &grant, &scope).await;
            look.map_err(|failure| scope.guard.redact_failure(failure))
        })
    }

    /// Says whether every lock lets a server of others be there by this section, with what was accepted by it. Whoever accepts a server asks before
    /// the section is written.
    ///
    /// # Errors
    ///
    /// `denied`, with the line of the policy, and with the lines that would name the server.
    pub fn check_upstream(&self, name: &str, section: &UpstreamSection, accepted: &Accepted) -> Result<(), Failure> {
        // A section that offers nothing is nothing that a lock would have to let be there.
        let Ok(server) = Manifest::of_upstream(name, section, accepted) else { return Ok(()) };
        let Err(Barred { code, failure, .. }) = self.policy().check_locks(&server) else { return Ok(()) };
        let decides = failure.hint.clone().filter(|_| matches!(code, Some(Code::NotVetted | Code::OtherBytes)));
        Err(match decides {
            Some(decides) => failure.hint(format!(
                "{decides}; these lines of that policy would name it: `[lock.upstream.{name}]`, `sha256 = \"{}\"`",
                section.accepted
            )),
            None => failure,
        })
    }

    /// The mail accounts of the settings, with what stands against the use of each, if anything does. No server is asked.
    #[must_use]
    pub fn mail(&self) -> Vec<(String, Result<(), String>)> {
        let policy = self.policy();
        let checked: BTreeMap<&str, Result<(), String>> = self.secrets.check().into_iter().collect();
        let found = |account: &MailSection| {
            account.lent().iter().try_for_each(|(name, server)| {
                let section = policy.config().secret.get(name);
                let (Some(section), Some(found)) = (section, checked.get(name.as_str())) else {
                    return Err(format!("there is no secret `{name}`: `toolcrib secret set {name}` makes it"));
                };
                found.clone()?;
                match section.hosts.iter().any(|host| host.covers_name(server)) {
                    true => Ok(()),
                    false => Err(format!("`hosts` under [secret.{name}] does not name `{server}`")),
                }
            })
        };
        policy.config().mail.iter().map(|(name, account)| (name.clone(), found(account))).collect()
    }

    /// Why a plugin that needs a browser has none; none where it has one, or needs none.
    fn lacks_browser(&self, plugin: &Manifest) -> Option<Failure> {
        self.browsers.find().err().filter(|_| plugin.capabilities.contains(&Capability::Browser))
    }

    /// Why a tool is withheld that is another one by now than was accepted of its server.
    fn withheld(&self, plugin: &Manifest, tool: &str, context: &CallContext) -> Option<Failure> {
        let is_upstream = plugin.id.is_upstream();
        is_upstream.then(|| self.upstreams.withheld(context.principal.as_str(), plugin.name(), tool)).flatten()
    }

    /// Loads every plugin that the place has a use for.
    pub fn offered<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Offered> {
        Box::pin(async move {
            let mut notices: Vec<String> = context.tools.refused().iter().map(ToString::to_string).collect();
            let missing = missing(context, &mut notices).await;
            let is_usable = |plugin: &&Arc<Manifest>| {
                useless_here(plugin, missing, context).is_none() && self.lacks_browser(plugin).is_none()
            };
            let policy = self.policy();
            let is_there = |plugin: &Manifest, tool: &str| {
                context.session.admit(tool).is_ok() && not_on_request(&policy, plugin, tool, context).is_none()
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

    /// The resources that a server of others has listed last for this caller, by the tool that reads them: objects of the protocol, with its own
    /// addresses. Where a toolset says which resource is read, it lists none.
    #[must_use]
    pub fn listed_resources(&self, reader: &Tool, context: &CallContext) -> Vec<Value> {
        if context.session.bound(reader.name()).is_some_and(|bound| !bound.is_empty()) {
            return Vec::new();
        }
        self.upstreams.resources(context.principal.as_str(), reader.plugin().name())
    }

    /// Loads every plugin: each tool with why it is not offered, if it is not.
    pub fn all_tools<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, AllTools> {
        Box::pin(async move {
            let mut notices: Vec<String> = context.tools.refused().iter().map(ToString::to_string).collect();
            // The place is asked once: a host that does not answer is waited for each time.
            let lacks = missing(context, &mut notices).await;
            let tools = self.tools_of(context.tools.plugins(), context, &mut notices).await;
            let with_reason = |tool: Arc<Tool>| {
                let missing = self.why_missing(&tool, lacks, context);
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

    /// A tool as this caller is offered it.
    ///
    /// # Errors
    ///
    /// `unavailable` where its toolset does not have it.
    pub fn as_offered(&self, tool: &Arc<Tool>, context: &CallContext) -> Result<Arc<Tool>, Failure> {
        context.session.admit(tool.name())?;
        Ok(narrowed(tool, context.session.bound(tool.name()).as_ref()))
    }

    /// Why a tool is not offered to this caller; none where it is.
    pub fn missing<'a>(&'a self, tool: &'a Tool, context: &'a CallContext) -> BoxFuture<'a, Option<Failure>> {
        Box::pin(async move {
            let lacks = missing(context, &mut Vec::new()).await;
            self.why_missing(tool, lacks, context)
        })
    }

    /// The same, where it is known which capabilities the place lacks.
    fn why_missing(&self, tool: &Tool, lacks: &[Capability], context: &CallContext) -> Option<Failure> {
        if let Err(failure) = context.session.admit(tool.name()) {
            return Some(failure);
        }
        // Before the family: listed or not, without one it cannot be called.
        let useless = useless_here(tool.plugin(), lacks, context).or_else(|| self.lacks_browser(tool.plugin()));
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
        if let Some(family) = not_on_request(&self.policy(), tool.plugin(), tool.name(), context) {
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

    /// The tool as a list of definitions has it.
    pub fn offer<'t>(&self, tool: &'t Tool, context: &CallContext) -> Offer<'t> {
        let policy = self.within(self.policy(), context);
        let grants = policy.map(|policy| policy.grants_of(tool.plugin()));
        Offer::new(tool, &grants.unwrap_or_else(|_| Arc::new(Grants::none())))
    }

    /// Returns when nothing is made in the background any more of what calls have kept, or the time is over.
    pub fn settled(&self, most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.store.settled(most).await;
        })
    }

    /// The calls that run, the oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<RunningCall> {
        self.calls.running()
    }

    /// Ends a call, as its caller could; false where none of that id runs.
    pub fn cancel(&self, call: &str) -> bool {
        self.calls.cancel(call)
    }

    /// The questions that wait for a person.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Whether questions of such calls may be answered by another program of this user: only where no command of theirs could be that program.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn lets_others_answer<'a>(&'a self, context: &'a CallContext) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            match context.panes {
                Panes::Own(_) => {
                    return Err("what is typed into the pane that it was started in is not confined".into());
                }
                Panes::Managed(_) | Panes::None => {}
            }
            if self.approvals.has_let_out() {
                return Err("a person has let one of its commands out of its cell".into());
            }
            self.policy().confines_all(&*context.backend).await
        })
    }

    /// The secrets of this host, by name.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// A text of kept output as it is handed out: a secret may have come to be known since it was kept.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        match self.policy().config().leaks.results {
            LeakAction::Warn => text.to_owned(),
            LeakAction::Redact | LeakAction::Block => self.secrets.known().redact(text).into_owned(),
        }
    }

    /// A text without the values of secrets, whatever settings say of results: for what is put into a file that others read.
    #[must_use]
    pub fn without_secrets(&self, text: &str) -> String {
        self.secrets.known().redact(text).into_owned()
    }

    /// A file of kept output, by its name.
    pub fn kept(&self, name: &str) -> Option<KeptFile> {
        self.output.kept_by_name(name)
    }

    /// The record of this host.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// What decides in this host, as it was last read.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.policy()
    }

    /// Puts further settings in force from now on, each `key=value` as an argument of `--set`: behind those that the host was made with, and in
    /// the place of those that an earlier call of this put in force. So a program that embeds a host can grant a plugin in each of its builds
    /// what it may do, as rights are bound to the bytes. Policies narrow these as any others, and no lock goes away by them. Calls that have begun
    /// keep what they began with. The trail has it as `changed`.
    ///
    /// Only the program that made the host can call this: it is on no road of a tool or of a client.
    ///
    /// # Errors
    ///
    /// `usage` where one is not a setting, or is one that is set up when a host is made, such as a limit; `unavailable` while the policy files
    /// say what cannot be obeyed. All stays as it was then.
    pub fn set(&self, settings: &[String]) -> Result<(), Failure> {
        self.policy.set(settings)
    }

    /// The approver of `--yes`.
    #[must_use]
    pub fn always_yes(&self) -> InAdvance {
        self.policy.always_yes()
    }

    /// Where plugins come from: those that came with the program, and every `.wasm` of the directories, as far as this host's policy admits
    /// them. A policy may name other directories.
    #[must_use]
    pub fn plugin_source(&self, builtins: &'static [Builtin], directories: Vec<PathBuf>) -> PluginSource {
        PluginSource::new(builtins, directories, self.policy.clone()).of_host(
            &self.audit,
            &self.sandbox,
            &self.upstreams,
        )
    }
}
