//! A host: made of settings and directories, called, and asked what it offers.
//!
//! What becomes of one call on its way is `call/`. A home that cannot be written costs the caches and the trail, and says so.

use crate::audit::Audit;
use crate::call::rate_limit::Rates;
use crate::call::scope::Scope;
use crate::call::session::CallKey;
use crate::call::{Call, CallContext, Request, check_failure, check_length, check_output};
use crate::capability::Capability;
use crate::config::Settings;
use crate::dirs::Dirs;
use crate::disk::{OwnDir, told};
use crate::egress::Egress;
use crate::envelope::{Envelope, Failure, Kind, Output};
use crate::formats::Offer;
use crate::kept_output::{KeptFile, OutputStore};
use crate::policy::Policy;
use crate::sandbox::{CodeCache, Compiler, Sandbox};
use crate::tools::definition::Tool;
use crate::tools::listing::{Offered, can_type, missing};
use crate::tools::registry::{Plugin, Ready};
use futures_util::future::join_all;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Everything that calls share.
pub struct Host {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) policy: Policy,
    pub(crate) audit: Audit,
    pub(crate) output: Arc<OutputStore>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) permits: Semaphore,
    pub(crate) rates: Rates,
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
        let policy = Policy::new(settings, dirs, policies)?;
        let mut or_without = |what: &str, error: std::io::Error| notices.push(format!("{what}: {}", told(&error)));
        let state = || OwnDir::open(&dirs.state);
        let cache = state().and_then(|state| CodeCache::open(&state)).unwrap_or_else(|error| {
            or_without("compiled code is not kept", error);
            CodeCache::none()
        });
        let (audit, unaudited) = Audit::open(state(), settings.config.audit.required);
        unaudited.into_iter().for_each(|error| or_without("nothing is audited", error));
        let (stream, total) = (limits.kept_stream_mib << 20, limits.kept_total_mib << 20);
        let output = state().and_then(|_| OutputStore::open(dirs.output(), stream, total)).unwrap_or_else(|error| {
            or_without("cut output is not kept", error);
            OutputStore::none()
        });
        let sandbox = Sandbox::new(limits, cache, compiler)
            .map_err(|error| Failure::new(Kind::Internal, format!("the sandbox could not start: {error:#}")))?;
        let permits = usize::try_from(limits.concurrent_calls).unwrap_or(Semaphore::MAX_PERMITS);
        let permits = Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        let rates = Rates::new(limits.calls_per_minute, settings.config.remedies());
        let network = &settings.config.network;
        let ca_file = Some(&network.ca_file).filter(|file| !file.is_empty()).map(|file| dirs.expand(file));
        let egress = Arc::new(Egress::new(network.dns_servers(), ca_file));
        let host = Self { sandbox: Arc::new(sandbox), policy, audit, output: Arc::new(output), egress, permits, rates };
        Ok((host, notices))
    }

    /// Takes a request to its envelope. Whatever happens on the way, there is exactly one outcome.
    pub async fn call(&self, request: Request, context: &CallContext) -> Envelope {
        let call = Call::begin(self, &request, context);
        let (unrecorded, outcome) = match self.audit.accepted(call.subject()) {
            // Boxed: it has KiB of state, and each future around it would hold, and move, them twice.
            Ok(unrecorded) => (unrecorded, call.bounded(Box::pin(self.try_call(&request, context, &call))).await),
            Err(refused) => (None, Err(refused)),
        };
        call.finish(outcome, unrecorded)
    }

    async fn try_call(&self, request: &Request, context: &CallContext, call: &Call<'_>) -> Result<Output, Failure> {
        self.rates.check(&context.principal)?;
        let _permit = self.permit()?;
        let plugin = context.tools.plugin_of(&request.tool)?;
        call.know_plugin(plugin);
        self.policy.check_enabled(plugin)?;
        let ready = self.ready(plugin, context).await?;
        let tool = ready.tool(&request.tool).expect("a ready plugin has the tools that it showed");
        let arguments = tool.validate(request.arguments.parse()?)?;
        let text = arguments.to_string();
        check_length(&text)?;
        let key = CallKey::new(&context.principal, &request.tool, &arguments);
        context.session.check_repeats(&key)?;
        let grants = self.policy.grants_for(plugin);
        let instance = self.sandbox.instantiate(&ready.code, grants, call.scope.clone()).await?;
        let scope = &call.scope;
        let outcome = match instance.call(&request.tool, &text).await {
            Ok(Ok(output)) => check_output(output, tool, scope),
            Ok(Err(failure)) => Err(check_failure(failure, scope)),
            Err(stopped) => Err(stopped),
        };
        context.session.remember(key, outcome.as_ref().err());
        outcome
    }

    fn permit(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let config = self.policy.config();
        let most = config.limits.concurrent_calls;
        self.permits.try_acquire().map_err(|_| {
            let hint = config.remedies().raise("limits.concurrent_calls", most, "try again when some have ended");
            Failure::new(Kind::Busy, format!("too many calls are running (limit: {most})")).hint(hint)
        })
    }

    /// Compiles a plugin and learns its tools, the first time. What was allowed under the same bytes, but said something else of its tools,
    /// is refused.
    pub async fn ready<'c>(&self, plugin: &Arc<Plugin>, context: &'c CallContext) -> Result<&'c Ready, Failure> {
        let ready = self.loaded(plugin, context).await?;
        let pinned = self.policy.config().pinned_definitions(plugin.name(), plugin.sha256());
        if pinned.is_none_or(|pinned| pinned.eq_ignore_ascii_case(ready.definitions())) {
            return Ok(ready);
        }
        let (name, file) = (plugin.name(), plugin.origin());
        let message = format!("plugin `{name}` was refused: its tool definitions have changed since it was allowed");
        Err(Failure::new(Kind::Unavailable, message)
            .hint(format!("look at it with `toolcrib plugin inspect {file}`, then `toolcrib plugin allow {file}`")))
    }

    /// As [`Self::ready`], whatever it says of its tools.
    pub async fn loaded<'c>(&self, plugin: &Arc<Plugin>, context: &'c CallContext) -> Result<&'c Ready, Failure> {
        let limits = &self.policy.config().limits;
        let scope = || Scope::for_definitions(limits, context.backend.clone(), self.egress.clone());
        context.tools.ready(plugin, &self.sandbox, scope, &*context.events).await
    }

    /// Loads every plugin that the place has a use for.
    pub async fn offered(&self, context: &CallContext) -> Offered {
        let mut notices: Vec<String> = context.tools.refused().iter().map(ToString::to_string).collect();
        let missing = missing(context, &mut notices).await;
        let can_type = can_type(context);
        let is_usable = |plugin: &&Arc<Plugin>| {
            let lacks = plugin.capabilities().iter().any(|needed| missing.contains(needed));
            let is_enabled = self.policy.config().is_enabled(plugin.name());
            is_enabled && !lacks && (can_type || !plugin.calls(Capability::Panes, "send"))
        };
        let plugins: Vec<_> = context.tools.plugins().filter(is_usable).collect();
        let mut tools = Vec::new();
        for ready in join_all(plugins.into_iter().map(|plugin| self.ready(plugin, context))).await {
            match ready {
                Ok(ready) => tools.extend(ready.tools().iter().cloned()),
                Err(failure) => notices.push(failure.message),
            }
        }
        Offered { tools, notices }
    }

    /// The first reason why a call of the tool would be denied.
    pub fn denial(&self, tool: &Tool) -> Option<Failure> {
        let grants = self.policy.grants_for(tool.plugin());
        tool.plugin().capabilities().into_iter().find_map(|capability| grants.refusal(capability))
    }

    /// The tool as a list of definitions has it.
    pub fn offer<'t>(&self, tool: &'t Tool) -> Offer<'t> {
        Offer::new(tool, &self.policy.grants_for(tool.plugin()))
    }

    /// A file of kept output, by its name.
    pub fn kept(&self, name: &str) -> Option<KeptFile> {
        self.output.kept_by_name(name)
    }

    /// What decides in this host.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}
