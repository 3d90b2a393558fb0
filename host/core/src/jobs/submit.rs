//! Submitting a job: the call is checked as far as it can be, a person is asked about the command that it would run, then it waits.

use super::{Door, Jobs};
use crate::Host;
use crate::call::{Arguments, Call, CallContext, Request};
use crate::tools::registry::Registry;
use audit::Action;
use base::capability::{Capability, Deed};
use base::envelope::{Failure, Kind, duration};
use base::text::id::random_id;
use base::text::sanitize;
use config::Needed;
use contract::manifest::Manifest;
use contract::schema::depth;
use guest::later::Wanted;
use policy::Policy;
use policy::guard::Exit;
use policy::jobs::JobsGrant;
use policy::purpose::{Purpose, Rehearsal};
use policy::scope::Scope;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use store::engine::Created;
use store::job::{Admitted, Progress, Spec, check_labels, given_token};

/// Bytes of a job's arguments, and of what its session was opened with; how deep that may be nested.
const ARGUMENTS_BYTES: usize = 256 << 10;
const GIVEN_DEPTH: u64 = 64;
/// Bytes of a token.
const TOKEN_BYTES: usize = 128;
/// Tools that are named where one cannot be submitted.
const NAMED: usize = 20;

/// A call that is to be a job, by whom it is wanted and what it would run with.
pub(crate) struct Submission<'s> {
    pub(crate) wanted: &'s Wanted,
    pub(crate) door: &'s Door,
    pub(crate) tools: &'s Arc<Registry>,
    pub(crate) grant: &'s JobsGrant,
    pub(crate) scope: &'s Scope,
}

/// A call as it was admitted.
pub(crate) struct Rehearsed {
    /// The digest of the tool's plugin.
    pub(crate) plugin: String,
    pub(crate) admitted: Admitted,
}

impl Jobs {
    /// Submits a call; returns the job's id.
    pub(crate) async fn submit(&self, wanted: Wanted, grant: &JobsGrant, scope: &Scope) -> Result<String, Failure> {
        let door = self.door()?;
        check_labels(&wanted.labels)?;
        check_token(wanted.token.as_deref())?;
        let at_most_ms = self.at_most(wanted.at_most_ms, scope)?;
        let tools = (door.tools)();
        let submission = Submission { wanted: &wanted, door: &door, tools: &tools, grant, scope };
        submission.check()?;
        let agent = grant.agent(&scope.session);
        let token = wanted.token.as_deref().map(given_token);
        if let Some(token) = token.as_deref().filter(|_| self.engine.is_there())
            && let Some(there) = self.engine().of_token(&agent, token).await?
        {
            return same_call(&there.spec, &wanted.tool, &wanted.arguments);
        }
        let Rehearsed { plugin, admitted } = submission.rehearse(None).await?;
        let toolset = scope.session.toolset();
        let spec = Spec {
            id: random_id(),
            agent,
            session: scope.session.id().to_owned(),
            principal: scope.principal.as_str().to_owned(),
            tool: wanted.tool,
            plugin,
            arguments: wanted.arguments,
            toolset: toolset.map(|toolset| toolset.name().to_owned()),
            given: scope.session.given(),
            labels: wanted.labels,
            token,
            at_most_ms,
            outlives: wanted.outlives,
            repeatable: wanted.repeatable,
            admitted,
            fired: None,
            made_ms: self.engine().now_ms(),
        };
        let created =
            self.engine().create(&spec, &Progress::submitted(door.lanes.calls.clone()), self.config.pending).await?;
        let is_program = tools.plugin_of(&spec.tool).is_ok_and(|plugin| plugin.id.is_program());
        let kind = if is_program { "the program" } else { "the tool" };
        let (id, how) = match created {
            Created::New => {
                self.engine().ring(&door.lanes.calls, &spec.id).await;
                (spec.id, "submitted")
            }
            // Somebody used the token while this was looked at.
            Created::There(id) => match self.engine().read(&id).await? {
                Some(there) => (same_call(&there.spec, &spec.tool, &spec.arguments)?, "found by its token"),
                None => (id, "found by its token"),
            },
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

    /// How long a job may take.
    pub(crate) fn at_most(&self, wanted: Option<u64>, scope: &Scope) -> Result<u64, Failure> {
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
        Ok(tool_names(&(door.tools)(), &host, grant, scope))
    }
}

impl Submission<'_> {
    /// Refuses a call that can be no job, as far as that can be told before it is gone through.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Self { wanted, door, tools, grant, scope } = self;
        check_place(door, scope)?;
        check_lengths(wanted, scope)?;
        check_given(scope)?;
        if tools.plugin_of(&wanted.tool).is_err() {
            return Err(unknown(&wanted.tool, &tool_names(tools, &*door.host()?, grant, scope)));
        }
        grant.admit(&wanted.tool)?;
        check_secrets(wanted, scope)
    }

    /// Runs the checks and the approvals of a call that will run later as a job. `recurs` is the schedule, if it repeats.
    pub(crate) async fn rehearse(&self, recurs: Option<String>) -> Result<Rehearsed, Failure> {
        // A yes for the session is none for what stays.
        let has_approvals = self.grant.is_of_builtin() && recurs.is_none();
        let rehearsal = Rehearsal::of(recurs);
        let plugin = self.door.host()?.rehearse(self, has_approvals, &rehearsal).await?;
        Ok(Rehearsed { plugin, admitted: rehearsal.admitted(self.scope.approver.is_read()) })
    }
}

impl Host {
    /// Finds out what a call would do, as far as it is admitted before it is begun; returns the digest of its plugin.
    async fn rehearse(
        &self,
        Submission { wanted, door, tools, scope, .. }: &Submission<'_>,
        has_approvals: bool,
        rehearsal: &Arc<Rehearsal>,
    ) -> Result<String, Failure> {
        let request = Request { tool: wanted.tool.clone(), arguments: Arguments::Text(wanted.arguments.clone()) };
        let context = door
            .context(Arc::clone(tools))
            .principal(scope.principal.clone())
            .session(Arc::new(scope.session.rehearsing(has_approvals)))
            .approver(scope.approver.clone())
            .cancel(scope.cancel.child_token())
            .purpose(Purpose::Rehearse(rehearsal.clone()));
        let policy = self.within(self.policy.obeyed()?, &context)?;
        let resolved = self.resolve(&policy, &request, &context)?;
        let plugin = resolved.plugin()?;
        check_lifetime(&request, plugin, scope)?;
        check_unattended(resolved.policy, plugin, &request.tool)?;
        let identity = identity(plugin);
        if !is_asked_at_submission(plugin) {
            self.prepared(&resolved).await?;
            return Ok(identity);
        }
        // A person may take their time.
        let _waiting = scope.clock.waiting();
        let call = Call::begin(self, resolved.policy, &request, &context);
        let work = Box::pin(self.try_call(&resolved, &call));
        let outcome = call.bounded(work, self.revoked(&resolved)).await;
        let (outcome, actions) = call.rehearsed(outcome);
        scope.record_all(actions);
        match outcome {
            // Whatever it says of a command that did not begin.
            Err(_) if rehearsal.has_reached() => Ok(identity),
            Err(failure) => Err(failure),
            Ok(_) => Ok(identity),
        }
    }
}

/// What a plugin has to be still when a job of it runs: these bytes; of this program, whatever they are by then.
pub(crate) fn identity(plugin: &Manifest) -> String {
    match plugin.id.is_builtin() {
        true => format!("built in: {}", plugin.name()),
        false => plugin.id.approved_as().to_owned(),
    }
}

/// The tools of a registry that can be submitted.
fn tool_names(tools: &Registry, host: &Host, grant: &JobsGrant, scope: &Scope) -> Vec<String> {
    let toolset = scope.session.toolset().filter(|toolset| toolset.narrows());
    let narrowed = toolset.and_then(|toolset| host.policy.within(&host.policy(), toolset.name()).ok());
    let policy = narrowed.unwrap_or_else(|| host.policy());
    let can_be = |plugin: &Manifest, tool: &str| {
        grant.has(tool) && lives_on(tool, plugin, scope) && check_unattended(&policy, plugin, tool).is_ok()
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
    let shown = sanitize::beginning(tool, 64);
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

/// Jobs act where this program acts: a call that acts elsewhere has none.
fn check_place(door: &Door, scope: &Scope) -> Result<(), Failure> {
    let (here, there) = (door.context.backend.name(), scope.backend.name());
    if here == there {
        return Ok(());
    }
    Err(Failure::new(Kind::Unavailable, format!("jobs of this program run on {here}, and this call acts on {there}")))
}

/// What is kept as long as a job is.
fn check_lengths(wanted: &Wanted, scope: &Scope) -> Result<(), Failure> {
    if wanted.arguments.len() > ARGUMENTS_BYTES {
        let message =
            format!("a job with {} bytes of arguments is too long (limit: {ARGUMENTS_BYTES})", wanted.arguments.len());
        return Err(Failure::limit(message).hint("put large content into a file, and have that read"));
    }
    if wanted.repeatable && !scope.backend.is_this_machine() {
        let message =
            format!("a job on {} cannot be run again: what is left of it there may still run", scope.backend.name());
        return Err(Failure::invalid(message).hint("omit `may_repeat`"));
    }
    Ok(())
}

/// What the session was opened with is kept, too.
pub(crate) fn check_given(scope: &Scope) -> Result<(), Failure> {
    let given = Value::Object(scope.session.given());
    let text = given.to_string();
    if depth(&given) > GIVEN_DEPTH || text.len() > ARGUMENTS_BYTES {
        return Err(Failure::limit("what the session was opened with is too long, or nested too deeply, for jobs"));
    }
    scope.guard.check(Exit::Write, [text.as_bytes()])
}

/// Rows hold no secret.
fn check_secrets(wanted: &Wanted, scope: &Scope) -> Result<(), Failure> {
    let labels = wanted.labels.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let token = wanted.token.as_deref().map(str::as_bytes);
    let parts: Vec<&[u8]> = [wanted.arguments.as_bytes()].into_iter().chain(labels).chain(token).collect();
    scope.guard.check(Exit::Write, parts.iter().copied())
}

/// The job that a token stands for, if this is the same call.
fn same_call(there: &Spec, tool: &str, arguments: &str) -> Result<String, Failure> {
    if (there.tool.as_str(), there.arguments.as_str()) == (tool, arguments) {
        return Ok(there.id.clone());
    }
    let message = format!("this token stands for another job: {} of `{}`", there.id, there.tool);
    Err(Failure::invalid(message).hint("give another token, or the same call"))
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
fn lives_on(tool: &str, plugin: &Manifest, scope: &Scope) -> bool {
    scope.session.toolset().is_none_or(|toolset| toolset.admit(tool, plugin, false).is_ok())
}

/// Refuses what is there for a turn only: a job has none.
fn check_lifetime(request: &Request, plugin: &Manifest, scope: &Scope) -> Result<(), Failure> {
    let tool = &request.tool;
    scope.session.admit(tool, plugin)?;
    match lives_on(tool, plugin, scope) {
        true => Ok(()),
        false => {
            Err(Failure::new(Kind::Unavailable, format!("`{tool}` is there while a turn is open, and a job has none"))
                .hint("call it in the turn"))
        }
    }
}

/// Refuses a tool that may need a person's answer while it runs, unless `unattended` names it.
pub(super) fn check_unattended(policy: &Policy, plugin: &Manifest, tool: &str) -> Result<(), Failure> {
    let named = &policy.config().tools.unattended;
    if is_asked_at_submission(plugin) || named.iter().any(|name| name == tool) {
        return Ok(());
    }
    let line = format!("add {tool:?} to `unattended` under [tools]");
    let hint = policy.config().remedies().hint("tools.unattended", &Needed::Entry(tool), line);
    Err(Failure::denied(format!("`{tool}` may not run as a job, where nobody is there to be asked")).hint(hint))
}

/// A tool of ours that runs one command, or a declared program: a person is asked about that when it is submitted.
fn is_asked_at_submission(plugin: &Manifest) -> bool {
    let does = |deed: Deed| plugin.capabilities.iter().any(|capability| capability.deed() == deed);
    (plugin.id.is_builtin() || plugin.id.is_program()) && does(Deed::Command) && !does(Deed::Other)
}

/// What a job's call is made in.
pub(super) fn context_of(context: &CallContext, tools: Arc<Registry>) -> CallContext {
    CallContext::new(context.principal.clone(), tools, context.backend.clone())
}
