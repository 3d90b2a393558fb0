//! Submitting a job: the call is checked as far as it can be, a person is asked about the command that it would run, then it waits.

use super::engine::Created;
use super::job::{Progress, Spec, check_labels};
use super::rehearsal::{Purpose, Rehearsal};
use super::{Door, Jobs};
use crate::Host;
use crate::audit::Action;
use crate::call::scope::Scope;
use crate::call::{Arguments, Call, CallContext, Request};
use crate::capability::Capability;
use crate::config::Needed;
use crate::envelope::{Failure, Kind, duration};
use crate::leaks::Exit;
use crate::policy::Policy;
use crate::policy::jobs::JobsGrant;
use crate::text::id::random_id;
use crate::text::sanitize;
use crate::tools::manifest::Manifest;
use crate::tools::registry::Registry;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a token.
const TOKEN_BYTES: usize = 128;
/// Tools that are named where one cannot be submitted.
const NAMED: usize = 20;

/// A call that is to be a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) at_most_ms: Option<u64>,
    pub(crate) token: Option<String>,
    pub(crate) outlives: bool,
    pub(crate) repeatable: bool,
}

/// A call as it was admitted.
struct Rehearsed {
    /// The digest of the tool's plugin.
    plugin: String,
    rehearsal: Arc<Rehearsal>,
}

impl Jobs {
    /// Submits a call; returns the job's id.
    pub(crate) async fn submit(&self, wanted: Wanted, grant: &JobsGrant, scope: &Scope) -> Result<String, Failure> {
        let door = self.door()?;
        let host = door.host()?;
        check_labels(&wanted.labels)?;
        check_token(wanted.token.as_deref())?;
        let at_most_ms = self.at_most(wanted.at_most_ms, scope)?;
        let tools = (door.tools)();
        let names = tool_names(&tools, &host.policy(), grant, scope);
        let of_known = tools.plugin_of(&wanted.tool).map_err(|_| unknown(&wanted.tool, &names))?;
        grant.admit(&wanted.tool)?;
        let is_program = of_known.id.is_program();
        let parts = [wanted.arguments.as_bytes()].into_iter().chain(wanted.labels.values().map(String::as_bytes));
        scope.guard.check(Exit::Write, parts.collect::<Vec<_>>().iter().copied())?;
        let request = Request { tool: wanted.tool.clone(), arguments: Arguments::Text(wanted.arguments.clone()) };
        let Rehearsed { plugin, rehearsal } = host.rehearse(&request, &tools, &door, scope).await?;
        let toolset = scope.session.toolset();
        let spec = Spec {
            id: random_id(),
            agent: grant.agent(&scope.session),
            session: scope.session.id().to_owned(),
            principal: scope.principal.as_str().to_owned(),
            tool: wanted.tool,
            plugin,
            arguments: wanted.arguments,
            toolset: toolset.map(|toolset| toolset.name().to_owned()),
            given: scope.session.given(),
            labels: wanted.labels,
            token: wanted.token,
            at_most_ms,
            outlives: wanted.outlives,
            repeatable: wanted.repeatable,
            admitted: rehearsal.admitted(scope.approver.is_read()),
            made_ms: self.engine().now_ms(),
        };
        let created = self.engine().create(&spec, &Progress::begun(door.lane.clone()), self.config.pending).await?;
        let kind = if is_program { "the program" } else { "the tool" };
        let (id, how) = match created {
            Created::New => {
                self.engine().ring(&door.lane, &spec.id).await;
                (spec.id, "submitted")
            }
            Created::There(id) => (id, "found by its token"),
        };
        scope.record(Action {
            capability: Capability::Jobs,
            what: format!("job {id} of {kind} {}", sanitize::line(&spec.tool)),
            confinement: None,
            declaration: None,
            decision: how.into(),
        });
        scope.touch_state();
        Ok(id)
    }

    fn at_most(&self, wanted: Option<u64>, scope: &Scope) -> Result<u64, Failure> {
        let (most, wanted) = (self.config.max_ms, wanted.unwrap_or(self.config.timeout_ms.min(self.config.max_ms)));
        if (1..=most).contains(&wanted) {
            return Ok(wanted);
        }
        let (shown, longest) = (duration(Duration::from_millis(wanted)), duration(Duration::from_millis(most)));
        let hint = scope.remedies.raise("jobs.max_ms", most, "ask for less");
        Err(Failure::limit(format!("a job cannot take {shown} (limit: {longest})")).hint(hint))
    }

    /// The tools that can be submitted now: declared programs, then others.
    pub(crate) fn tools(&self, grant: &JobsGrant, scope: &Scope) -> Result<Vec<String>, Failure> {
        let door = self.door()?;
        let host = door.host()?;
        Ok(tool_names(&(door.tools)(), &host.policy(), grant, scope))
    }
}

impl Host {
    /// Finds out what a call would do, as far as it is admitted before it is begun.
    async fn rehearse(
        &self,
        request: &Request,
        tools: &Arc<Registry>,
        door: &Door,
        scope: &Scope,
    ) -> Result<Rehearsed, Failure> {
        let rehearsal = Arc::<Rehearsal>::default();
        let context = door
            .context(tools.clone())
            .principal(scope.principal.clone())
            .session(Arc::new(scope.session.rehearsing()))
            .approver(scope.approver.clone())
            .cancel(scope.cancel.child_token())
            .purpose(Purpose::Rehearse(rehearsal.clone()));
        let policy = self.within(self.policy.obeyed()?, &context)?;
        if let Some((_, refusal)) = self.locked_out(&policy, request, &context) {
            return Err(refusal);
        }
        check_lifetime(request, scope)?;
        let plugin = tools.plugin_of(&request.tool)?;
        check_unattended(&policy, plugin, &request.tool, scope)?;
        let rehearsed = Rehearsed { plugin: plugin.id.approved_as().to_owned(), rehearsal };
        if !is_asked_at_submission(plugin) {
            self.prepared(&policy, plugin, request, &context).await?;
            return Ok(rehearsed);
        }
        // A person may take their time.
        let _waiting = scope.clock.waiting();
        let call = Call::begin(self, &policy, request, &context);
        let work = Box::pin(self.try_call(&policy, request, &context, &call));
        let outcome = call.bounded(work, self.revoked(request, &context)).await;
        let (outcome, actions) = call.rehearsed(outcome);
        scope.record_all(actions);
        match outcome {
            // Whatever it says of a command that did not begin.
            Err(_) if rehearsed.rehearsal.has_reached() => Ok(rehearsed),
            Err(failure) => Err(failure),
            Ok(_) => Ok(rehearsed),
        }
    }
}

/// The tools of a registry that can be submitted.
fn tool_names(tools: &Registry, policy: &Policy, grant: &JobsGrant, scope: &Scope) -> Vec<String> {
    let can_be = |plugin: &Manifest, tool: &str| {
        grant.has(tool) && lives_on(tool, scope) && check_unattended(policy, plugin, tool, scope).is_ok()
    };
    let names = |is_program: bool| {
        let plugins = tools.plugins().filter(move |plugin| plugin.id.is_program() == is_program);
        let mut names: Vec<String> = plugins
            .flat_map(|plugin| plugin.tools.iter().filter(|tool| can_be(plugin, tool)).cloned().collect::<Vec<_>>())
            .collect();
        names.sort_unstable();
        names
    };
    [names(true), names(false)].concat()
}

fn unknown(tool: &str, names: &[String]) -> Failure {
    let shown: String = sanitize::line(tool).chars().take(64).collect();
    let hint = match names {
        [] => "nothing can be submitted: declare a program, or see `unattended` under [tools]".to_owned(),
        names => {
            let named: Vec<_> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
            let more = names.len() - named.len();
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("there is {}{more}", named.join(", "))
        }
    };
    Failure::invalid(format!("there is no program or tool `{shown}`")).hint(hint)
}

fn check_token(token: Option<&str>) -> Result<(), Failure> {
    match token {
        Some(token) if token.is_empty() || token.len() > TOKEN_BYTES || token.contains(char::is_control) => {
            let message = format!("a token has 1 to {TOKEN_BYTES} bytes, without control characters");
            Err(Failure::invalid(message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether the session has a tool also when no turn is open.
fn lives_on(tool: &str, scope: &Scope) -> bool {
    scope.session.toolset().is_none_or(|toolset| toolset.admit(tool, false).is_ok())
}

/// Refuses what is there for a turn only: a job has none.
fn check_lifetime(request: &Request, scope: &Scope) -> Result<(), Failure> {
    let tool = &request.tool;
    scope.session.admit(tool)?;
    match lives_on(tool, scope) {
        true => Ok(()),
        false => {
            Err(Failure::new(Kind::Unavailable, format!("`{tool}` is there while a turn is open, and a job has none"))
                .hint("call it in the turn"))
        }
    }
}

/// Refuses what nobody could be asked about while it runs, unless settings let it run so.
fn check_unattended(policy: &Policy, plugin: &Manifest, tool: &str, scope: &Scope) -> Result<(), Failure> {
    let named = &policy.config().tools.unattended;
    if is_asked_at_submission(plugin) || named.iter().any(|name| name == tool) {
        return Ok(());
    }
    let line = format!("add {tool:?} to `unattended` under [tools]");
    let hint = scope.remedies.hint("tools.unattended", &Needed::Entry(tool), line);
    Err(Failure::denied(format!("`{tool}` may not run as a job, where nobody is there to be asked")).hint(hint))
}

/// A tool of ours that runs one command, or a declared program: a person is asked about that when it is submitted.
fn is_asked_at_submission(plugin: &Manifest) -> bool {
    let runs = |capability: &Capability| match capability {
        Capability::Shell | Capability::Exec | Capability::Programs => true,
        Capability::Panes
        | Capability::PaneSessions
        | Capability::Files
        | Capability::Http
        | Capability::Embedder
        | Capability::Introspect
        | Capability::Records
        | Capability::Jobs
        | Capability::Events => false,
    };
    let acts_otherwise = |capability: &Capability| match capability {
        Capability::Panes
        | Capability::PaneSessions
        | Capability::Files
        | Capability::Http
        | Capability::Embedder
        | Capability::Records
        | Capability::Jobs => true,
        Capability::Shell | Capability::Exec | Capability::Programs | Capability::Introspect | Capability::Events => {
            false
        }
    };
    let capabilities = &plugin.capabilities;
    (plugin.id.is_builtin() || plugin.id.is_program())
        && capabilities.iter().any(runs)
        && !capabilities.iter().any(acts_otherwise)
}

/// What a job's call is made in.
pub(super) fn context_of(context: &CallContext, tools: Arc<Registry>) -> CallContext {
    CallContext::new(context.principal.clone(), tools, context.backend.clone())
}
