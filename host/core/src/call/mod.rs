//! One call, from request to envelope. The path itself is here: looked up, admitted, run.
//!
//! - `context.rs`: who calls, and how to reach them;
//! - `accepted.rs`: the scope of a call, the bound on its time, its lines on the audit trail;
//! - `outcome.rs`: what a guest answered, as the caller gets it;
//! - `running.rs`: the calls that run; `rate_limit.rs`: how many a caller may make.
//!
//! Doors translate and decide nothing; what a tool does on the way is `sandbox/` and `capability/` of the crate `guest`.

mod accepted;
mod context;
mod outcome;
pub(crate) mod rate_limit;
pub mod running;

pub use base::principal::Principal;
pub use context::CallContext;
pub use contract::request::{ARGUMENTS_BYTES, ARGUMENTS_DEPTH, Arguments, Request};
pub use policy::session;

use crate::Host;
use crate::tools::provider::Ready;
pub(crate) use accepted::Call;
use base::capability::Capability;
use base::envelope::{Envelope, Failure, Kind, Output};
use contract::definition::{Tool, Validated};
use contract::manifest::Manifest;
use contract::request::check_length;
use futures_util::future::BoxFuture;
use guest::capability::embedder::Scheduled;
pub(crate) use outcome::{check_failure, check_output};
use policy::admission::{Admission, Barred, Unbarred};
use policy::session::CallKey;
use policy::toolset;
use policy::{Grants, Policy};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// What only looks at a pane may be called so many times as often: it waits for what somebody else does there.
const POLLS: u64 = 3;
/// How often a call that runs looks whether its plugin was taken back.
const REVOKED_LOOK: Duration = Duration::from_secs(1);

/// A request with the plugin that has its tool and the policy that decides on it. Looked up once for a call.
pub(crate) struct Resolved<'c> {
    pub(crate) policy: &'c Policy,
    request: &'c Request,
    context: &'c CallContext,
    /// The plugin, which no lock bars; the failure if no plugin has the tool.
    found: Result<Found<'c>, Failure>,
}

struct Found<'c> {
    plugin: &'c Arc<Manifest>,
    unbarred: Unbarred<'c, 'c>,
}

/// A request that was admitted, before anything of it runs.
pub(crate) struct Prepared<'c> {
    admission: Admission<'c>,
    ready: &'c Ready,
    work: Work<'c>,
}

/// What a call does once it is admitted.
enum Work<'c> {
    /// A guest runs. The arguments are as its tool has them.
    Guest { tool: &'c Tool, validated: Validated },
    /// The host hands over an event whose time has come.
    Event(&'c Scheduled),
}

impl<'c> Resolved<'c> {
    /// The plugin that the request is about.
    ///
    /// # Errors
    ///
    /// `unknown_tool`.
    pub(crate) fn plugin(&self) -> Result<&'c Arc<Manifest>, Failure> {
        Ok(self.found()?.plugin)
    }

    fn found(&self) -> Result<&Found<'c>, Failure> {
        self.found.as_ref().map_err(Clone::clone)
    }
}

impl Host {
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
            let resolved = match self.resolve(&policy, &request, context) {
                Ok(resolved) => resolved,
                Err(barred) => {
                    if let Some(by) = barred.by_a_lock() {
                        self.audit.refused_call(&call.reach.tool, by.code);
                    }
                    return call.refuse(barred.failure);
                }
            };
            // Boxed: it has KiB of state, and each future around it would hold, and move, them twice.
            let work = Box::pin(self.try_call(&resolved, &call));
            let work = call.on_record(resolved.policy.is_locked(), work);
            let outcome = call.bounded(work, self.revoked(&resolved)).await;
            call.finish(outcome).await
        })
    }

    /// Looks up the plugin of a request, and asks the locks whether it may be there.
    pub(crate) fn resolve<'c>(
        &self,
        policy: &'c Policy,
        request: &'c Request,
        context: &'c CallContext,
    ) -> Result<Resolved<'c>, Barred> {
        let found = match context.tools.plugin_of(&request.tool) {
            Ok(plugin) => Ok(Found { plugin, unbarred: self.unbarred(policy, plugin)? }),
            Err(unknown) => Err(unknown),
        };
        Ok(Resolved { policy, request, context, found })
    }

    /// Asks the locks whether a plugin may be there. A refusal goes on record.
    fn unbarred<'p, 'm>(&self, policy: &'p Policy, plugin: &'m Manifest) -> Result<Unbarred<'p, 'm>, Barred> {
        policy.check_locks(plugin).inspect_err(|barred| {
            if let Some(by) = barred.by_a_lock() {
                self.audit.refused(plugin, &by);
            }
        })
    }

    /// Returns the refusal once the plugin of a request was taken back.
    pub(crate) async fn revoked(&self, resolved: &Resolved<'_>) -> Failure {
        loop {
            tokio::time::sleep(REVOKED_LOOK).await;
            // While another cannot be obeyed, the lists of the one before take back what they do.
            let policy = self.policy.obeyed().unwrap_or_else(|_| self.policy());
            let Ok(found) = &resolved.found else { continue };
            if policy.has_revoked(found.plugin)
                && let Err(barred) = self.unbarred(&policy, found.plugin)
            {
                return barred.failure;
            }
        }
    }

    /// Admits a request and carries it out.
    pub(crate) async fn try_call(&self, resolved: &Resolved<'_>, call: &Call<'_>) -> Result<Output, Failure> {
        let _permit = match resolved.context.purpose.is_counted() {
            true => Some(self.permit(resolved)?),
            false => None,
        };
        call.know_plugin(resolved.plugin()?);
        let Prepared { admission, ready, work } = self.prepared(resolved).await?;
        let grants = resolved.policy.grants_for(&admission);
        match work {
            Work::Guest { tool, validated } => self.run_guest(resolved, call, grants, ready, tool, validated).await,
            Work::Event(event) => {
                call.reach.accept()?;
                let result = event.hand_over(grants.schedules()?, &call.reach).await?;
                Ok(Output { result, ..Output::default() })
            }
        }
    }

    /// Decides on a request as far as that can be done before anything of it runs.
    pub(crate) async fn prepared<'c>(&self, resolved: &Resolved<'c>) -> Result<Prepared<'c>, Failure> {
        let Resolved { policy, request, context, .. } = resolved;
        let Found { plugin, unbarred } = resolved.found()?;
        match &context.event {
            None => context.session.admit(&request.tool, plugin)?,
            Some(_) => context.session.admit_in_a_turn(&request.tool, plugin)?,
        }
        policy.rules().admit_tool(&request.tool, &*context.backend, &self.approvals).await?;
        let admission = unbarred.admit()?;
        let ready = self.loaded(plugin, context).await?;
        self.admit_definitions(policy, plugin, ready)?;
        if let Some(event) = &context.event {
            return Ok(Prepared { admission, ready, work: Work::Event(event) });
        }
        let tool = ready.tool(&request.tool).expect("a ready plugin has the tools that it showed");
        let mut given = request.arguments.parse()?;
        let bound = context.session.bound(&request.tool);
        if let (Some(bound), Some(toolset)) = (bound, context.session.toolset()) {
            toolset::set(toolset.name(), &request.tool, bound, &mut given)?;
        }
        Ok(Prepared { admission, ready, work: Work::Guest { tool, validated: tool.validate(given)? } })
    }

    /// Runs a guest, unless the session has had this call too often.
    async fn run_guest(
        &self,
        Resolved { policy, request, context, .. }: &Resolved<'_>,
        call: &Call<'_>,
        grants: Arc<Grants>,
        ready: &Ready,
        tool: &Tool,
        Validated { arguments, notices }: Validated,
    ) -> Result<Output, Failure> {
        let text = arguments.to_string();
        check_length(&text)?;
        let key = CallKey::new(&context.principal, &request.tool, &arguments, &text);
        context.session.check_repeats(&key)?;
        let (plugin, reach) = (tool.plugin(), &call.reach);
        notices.into_iter().for_each(|notice| reach.guard.notice(notice));
        let polls = plugin.capabilities.contains(&Capability::Panes) && !plugin.calls(Capability::Panes, "send");
        let most = policy.config().tools.equal_calls * if polls { POLLS } else { 1 };
        context.session.count_equal(&key, most)?.into_iter().for_each(|notice| reach.guard.notice(notice));
        let code = context.tools.code(plugin, ready, &self.sandbox, &reach.limits, &*context.events).await?;
        let outcome = code.call(&self.sandbox, tool, &text, grants, reach).await;
        if reach.has_touched_state() {
            context.session.note_change(&key);
        }
        context.session.remember(key, outcome.as_ref().err());
        outcome
    }

    /// Counts a call among those of its caller, and among those that run.
    fn permit(&self, Resolved { policy, context, .. }: &Resolved<'_>) -> Result<SemaphorePermit<'_>, Failure> {
        self.rates.check(&context.principal)?;
        let config = policy.config();
        let most = config.limits.concurrent_calls;
        self.permits.try_acquire().map_err(|_| {
            let hint = config.remedies().raise("limits.concurrent_calls", most, "try again when some have ended");
            Failure::new(Kind::Busy, format!("too many calls are running (limit: {most})")).hint(hint)
        })
    }
}
