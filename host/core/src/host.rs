//! A host: made of settings and directories, and what it has for all calls.
//!
//! What becomes of one call on its way is `call/`, what is offered is `tools/listing.rs`. A home that cannot be written costs the caches and the trail, and says so.

use crate::call::CallContext;
use crate::call::rate_limit::Rates;
use crate::call::running::{Calls, RunningCall};
use crate::jobs::Jobs;
use crate::tools::source::{Builtin, PluginSource};
use audit::{Audit, Batch, SEAL_LOOK};
use base::dirs::Dirs;
use base::disk::{OwnDir, told};
use base::envelope::{Failure, Kind};
use browser::Programs;
use config::{LeakAction, Limits, MailSection, Settings, ShapeAction, UpstreamSection};
use egress::Egress;
use embedder::agents::AgentSessions;
use embeddings::Embeddings;
use engine::cache::CodeCache;
use engine::compile::Compiler;
use futures_util::future::BoxFuture;
use guest::capability::embedder::Pending;
use guest::reach::Services;
use guest::sandbox::Sandbox;
use kept_output::{KeptFile, OutputStore};
use policy::Policy;
use policy::admission::Barred;
use policy::approval::{Approvals, InAdvance, Notifier};
use policy::guard::first_shape;
use policy::in_force::InForce;
use policy::lock::Code;
use policy::scope::Scope;
use policy::toolset::Toolset;
use secrets::Secrets;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tmux::Panes;
use tokio::sync::Semaphore;
use undo::Undo;
use upstream::{Accepted, Look, Upstreams};

/// Returns when what was given up has ended, commands beyond this machine and browsers of sessions that are over, as far as that takes a bearable
/// time: a program that ends waits for that.
pub fn ended() -> BoxFuture<'static, ()> {
    Box::pin(async move {
        tokio::join!(backend::ended(), browser::ended());
    })
}

/// Everything that calls share.
pub struct Host {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) policy: Arc<InForce>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) output: Arc<OutputStore>,
    pub(crate) services: Arc<Services>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) permits: Semaphore,
    pub(crate) rates: Rates,
    pub(crate) calls: Calls,
    pub(crate) approvals: Arc<Approvals>,
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
        let embeddings = Embeddings::of(&settings.config.embeddings, dirs, &policy, &egress, &secrets)?;
        let store = Arc::new(Store::new(dirs.state.clone(), settings.config.store.clone(), embeddings));
        let jobs = Arc::new(Jobs::new(store.clone(), &settings.config, settings.below_policies()));
        let notifier = Notifier::of(&settings.config.approval.notify, dirs);
        let approvals = Arc::new(Approvals::notifying(notifier));
        let upstreams = Arc::new(Upstreams::new(dirs, &egress, &secrets));
        let services = Services {
            browsers: Programs::new(&settings.config, dirs, egress.clone()),
            egress,
            pending: Pending::new(settings.config.embedder.max_pending),
            agents: AgentSessions::default(),
            store,
            jobs: jobs.clone(),
            undo: Arc::new(Undo::new(&dirs.state)),
            settings: Arc::downgrade(&policy),
        };
        let host = Self {
            sandbox,
            policy,
            audit,
            output,
            services: Arc::new(services),
            jobs,
            upstreams,
            secrets,
            permits,
            rates,
            calls,
            approvals,
        };
        Ok((host, notices))
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

    /// Records of calls that are begun and answered together.
    #[must_use]
    pub fn batch(&self) -> Arc<Batch> {
        Batch::of(self.audit.clone())
    }

    /// The browser that tools get, and that it can be confined, which is tried.
    ///
    /// # Errors
    ///
    /// `unavailable`, with what is missing.
    pub fn browser(&self) -> BoxFuture<'_, Result<PathBuf, Failure>> {
        Box::pin(async move {
            let program = self.services.browsers.find()?;
            self.services.browsers.check_confined().await?;
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
            let scope = Scope::of_host("upstream", policy.config(), context.backend.clone(), self.secrets.clone());
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
        let Ok(server) = accepted.manifest(name, section) else { return Ok(()) };
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

    /// Returns when nothing is made in the background any more of what calls have kept, or the time is over.
    pub fn settled(&self, most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.services.store.settled(most).await;
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

    /// What in a text of kept output looks like a secret, where settings hold such a text back.
    #[must_use]
    pub fn held_back(&self, text: &str) -> Option<&'static str> {
        match self.policy().config().leaks.shapes {
            ShapeAction::Off | ShapeAction::Warn => None,
            ShapeAction::Block => first_shape(text),
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
