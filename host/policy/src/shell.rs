//! What one plugin may do with the shell: the denylist, then a person's approval; only what passed both can run.
//!
//! Reading a command is `command.rs`, asking is `approval.rs`, running is `capability/shell.rs`.

use super::approval::{ActionKind, By, Consent, Declaration, Lending, Question, Site};
use super::confine::{Confine, Confinement, Notices};
use super::connections::Connections;
use super::held::{Asker, Watched};
use super::keys::Lender;
use super::let_out::LET_OUT;
use super::run::{self, Run, With};
use super::typing::{AdmittedInput, Keyboard, Typing};
use crate::explain::{Clause, Explained};
use crate::grants::Grant;
use crate::guard::Exit;
use crate::rules::KeptRules;
use crate::rules::{CommandSubject, Subject};
use crate::scope::Scope;
use crate::session::{ApprovalKey, CommandKey};
use crate::{Bound, Policy};
use audit::Action;
use backend::cell::{Met, Profile};
use backend::terminals::Sitting;
use backend::{Backend, ProcessSpec, Toolchains};
use base::capability::Capability;
use base::envelope::Failure;
use command::{self, Denylist, Destination, Held};
use config::{CellNetwork, Config, Needed, loads_code};
use contract::manifest::Manifest;
use futures_util::future::BoxFuture;
use leaks::Value;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What one plugin may do with the shell.
#[derive(Clone)]
pub struct ShellGrant {
    pub(super) plugin: String,
    /// Digest of the component: what an approval for the session is bound to.
    pub(super) sha256: String,
    pub(super) confirm: bool,
    pub(super) approval_timeout: Duration,
    pub(super) denylist: Arc<Denylist>,
    pub(super) confine: Arc<Confine>,
    pub(super) kept: Arc<KeptRules>,
    pub(super) environment: Vec<String>,
    /// Secrets that commands get which name them.
    pub(super) secrets: Vec<String>,
    /// Commands also run in panes, whose shell others have shaped; else why not.
    pub(super) pane: Result<(), Failure>,
}

/// A command as a plugin wants it to run.
pub struct Wanted {
    pub run: Run,
    pub with: With,
    /// None where the user has declared what it is.
    pub declaration: Option<Declaration>,
    pub goes_to: Destination,
    /// The call waits for its end.
    pub is_awaited: bool,
}

/// A command that policy and, where asked, a person admitted. Made only here.
pub struct AdmittedCommand {
    /// All of it, as people read it.
    text: String,
    run: Run,
    with: With,
    key: CommandKey,
    /// A person let it out of its cell.
    is_out: bool,
    /// The place that a person was shown.
    directory: Option<String>,
    environment: Vec<String>,
    secrets: Vec<(String, Value)>,
    cell: Option<Arc<Profile>>,
    /// It runs in a place where nothing of what it leaves is held back.
    is_elsewhere: bool,
    connections: Option<Connections>,
    confine: Arc<Confine>,
    asker: Asker,
}

impl AdmittedCommand {
    /// For whom a person is asked about what it makes.
    pub fn asker(&self) -> &Asker {
        &self.asker
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    /// Where it begins, if that is not where commands begin.
    pub fn begins_in(&self) -> Option<&Path> {
        self.with.directory.as_deref()
    }

    /// A process of a call that does it.
    pub fn process(&self, call: &str) -> ProcessSpec {
        let spec = run::process(&self.run, &self.with, self.environment.clone(), call);
        let toolchains = match self.run {
            Run::Script(_) | Run::Program(_) => Toolchains::Usable(self.cell.clone()),
            // Its section says what it gets.
            Run::Declared(_) => Toolchains::None,
        };
        ProcessSpec { cell: self.cell.clone(), toolchains, secrets: self.secrets.clone(), ..spec }
    }

    /// What it is confined to.
    pub fn cell(&self) -> Option<&Arc<Profile>> {
        self.cell.as_ref()
    }

    /// The ports of its cell that settings publish on this machine.
    pub fn published(&self) -> &[u16] {
        self.confine.published()
    }

    /// A person let it out of its cell, and out of the pane whose shell is in that.
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// What makes it the same when it is called again.
    pub(super) fn key(&self) -> &CommandKey {
        &self.key
    }

    /// Whether a person may let it out of its cell.
    pub(super) fn lets_out(&self) -> bool {
        self.confine.lets_out()
    }

    /// Its cell, and which servers it may connect to there; none where it has no network to serve.
    pub fn network(&self) -> Option<(&Arc<Profile>, Connections)> {
        self.cell.as_ref().zip(self.connections.clone())
    }

    /// Begins to look for what it makes in its cell; `goes_on` where what it starts may outlive it.
    pub fn watch<'a>(&'a self, goes_on: bool, backend: &'a dyn Backend) -> BoxFuture<'a, Option<Watched>> {
        Box::pin(async move { Some(Watched::begin(&self.confine, self.cell.as_ref()?, goes_on, backend).await) })
    }

    /// Its cell is there: what it writes into git directories there is taken over at its end.
    pub fn enter(&self, watched: &mut Option<Watched>, backend: &dyn Backend) {
        if let (Some(watched), Some(cell)) = (watched, &self.cell) {
            watched.enter(cell, backend);
        }
    }

    /// What is to be said once a session of a container or another host.
    pub fn unheld(&self, scope: &Scope) -> Option<String> {
        let place = scope.backend.name().to_owned();
        (self.is_elsewhere && scope.session.warns_of(&place)).then(|| {
            format!("on {place} nothing holds back what commands leave in git directories, or in files that act by themselves")
        })
    }

    /// How often the bounds of its cell have been met.
    pub fn met(&self, backend: &dyn Backend) -> Met {
        self.cell.as_ref().map_or_else(Met::default, |cell| backend.met(cell))
    }

    /// What is to be said of its cell, once it has ended with this status and printed this; `before` is what [`Self::met`] was when it began.
    pub fn notices<'a>(
        &'a self,
        status: i32,
        printed: &'a str,
        before: Met,
        backend: &'a dyn Backend,
    ) -> BoxFuture<'a, Notices> {
        Box::pin(async move {
            let Some(cell) = &self.cell else { return Notices::default() };
            let met = self.met(backend).since(before);
            if printed.is_empty() && met == Met::default() {
                return Notices::default();
            }
            match backend.facts().await {
                Ok(facts) => self.confine.notices(cell, &facts, met, printed, status == 0),
                Err(_) => Notices::default(),
            }
        })
    }
}

/// What is to be decided.
struct Wish<'w> {
    capability: Capability,
    confinement: &'w Confinement,
    /// The whole action, as people read it.
    shown: &'w str,
    held: Held,
    /// What is on its standard input.
    with: &'w With,
    /// The pane, for what is typed.
    keyboard: Option<Keyboard>,
    /// The secrets that it gets.
    lent: &'w [String],
    /// What its cell refused the same command before, where a person may let it out.
    refused: Option<String>,
    site: &'w dyn Site,
}

/// What a person may be asked about.
struct Asked<'a> {
    capability: Capability,
    confinement: Option<&'a Confinement>,
    shown: &'a str,
    details: Option<&'a str>,
    declaration: Option<&'a Declaration>,
    lent: &'a [String],
    refused: Option<&'a str>,
    /// What rules may answer it by.
    subject: Option<&'a Subject>,
    site: &'a dyn Site,
}

/// An action on panes that policy and, where asked, a person admitted. Made only here.
pub struct AdmittedAction {
    cell: Option<Arc<Profile>>,
}

impl AdmittedAction {
    /// What the shells of new panes are confined to.
    pub fn cell(&self) -> Option<&Arc<Profile>> {
        self.cell.as_ref()
    }
}

impl Grant for ShellGrant {
    fn of(policy: &Policy, plugin: &Manifest, bound: &Bound) -> Result<Self, Failure> {
        let rights = &bound.rights;
        if !rights.shell {
            let option = if plugin.capabilities.contains(&Capability::Shell) { "--shell" } else { "--pane" };
            return Err(policy.not_granted(plugin, bound, Capability::Shell, "shell = true", option));
        }
        Ok(policy.commands(plugin, bound))
    }

    fn clauses(&self, explained: &Explained<'_>) -> Vec<Clause> {
        let runs = match self.pane {
            Ok(()) => "may run commands, and use panes where there is tmux",
            Err(_) => "may run commands, each in a process of its own",
        };
        let own =
            Clause { subject: "shell", verdict: "allowed", detail: runs.into(), decided_by: explained.own("shell") };
        [own].into_iter().chain(explained.commands("shell", self)).collect()
    }
}

impl Policy {
    /// What decides on commands of a plugin that may run some.
    pub(super) fn commands(&self, plugin: &Manifest, bound: &Bound) -> ShellGrant {
        let rights = &bound.rights;
        ShellGrant {
            plugin: plugin.id.label(),
            sha256: plugin.id.approved_as().into(),
            confirm: self.config.tools.shell_confirm,
            approval_timeout: Duration::from_millis(self.config.approval.timeout_ms),
            denylist: self.denylist.clone(),
            confine: self.confine.clone(),
            kept: self.rules.clone(),
            environment: self.config.tools.shell_env.clone(),
            // Which plugins get a secret is written in their sections; these are for the tools that came with the program.
            secrets: if plugin.id.is_builtin() { self.config.tools.shell_secrets.clone() } else { Vec::new() },
            pane: if rights.pane { Ok(()) } else { Err(no_panes(plugin.name(), &bound.config)) },
        }
    }
}

impl ShellGrant {
    /// What its commands may connect to in a cell; none where that has no such network.
    pub fn connections(&self, cell: &Profile) -> Option<Connections> {
        match cell.network {
            CellNetwork::None | CellNetwork::Full => None,
            CellNetwork::Egress => {
                let lender = (!cell.keys.is_empty()).then(|| Arc::new(self.lender()));
                Some(Connections::new(self, self.confine.reachable(), lender))
            }
        }
    }

    /// Who lends keys to its commands in a cell.
    fn lender(&self) -> Lender {
        Lender {
            confine: self.confine.clone(),
            plugin: self.plugin.clone(),
            sha256: self.sha256.clone(),
            approval_timeout: self.approval_timeout,
            has_lent: AtomicBool::new(false),
        }
    }

    /// Whether commands may run in panes.
    ///
    /// # Errors
    ///
    /// `denied`, with the line to add.
    pub fn pane(&self) -> Result<(), Failure> {
        self.pane.clone()
    }

    /// Commands are shown to a person first.
    #[must_use]
    pub fn confirms(&self) -> bool {
        self.confirm
    }

    /// How commands run where a call lands.
    ///
    /// # Errors
    ///
    /// Where they have to be confined, and cannot be.
    pub fn confinement<'a>(&'a self, scope: &'a Scope) -> BoxFuture<'a, Result<Confinement, Failure>> {
        Box::pin(async move { self.confine.at(&*scope.backend).await })
    }

    /// How what is typed into the pane runs that this program was started in.
    ///
    /// # Errors
    ///
    /// Where it would have to be confined.
    pub fn confinement_of_own_pane(&self) -> Result<Confinement, Failure> {
        self.confine.in_own_pane()
    }

    /// The secrets that a command gets: those that its text names.
    pub fn lent(&self, text: &str) -> Vec<String> {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let words: HashSet<&str> = words.by_ref().collect();
        self.secrets.iter().filter(|name| words.contains(name.as_str())).cloned().collect()
    }

    /// Writes down that something was not even looked at.
    pub fn record_refused(
        &self,
        run: &Run,
        with: &With,
        declaration: Option<Declaration>,
        refusal: &Failure,
        scope: &Scope,
    ) {
        scope.record(Action {
            capability: run.capability(),
            what: run::shown(run, with),
            confinement: None,
            declaration,
            decision: format!("{}: {}", refusal.kind.name(), refusal.message),
        });
    }

    /// Decides on a command that runs so, and records the decision.
    pub fn admit<'a>(
        &'a self,
        Wanted { run, with, declaration, goes_to, is_awaited }: Wanted,
        confinement: &'a Confinement,
        site: &'a dyn Site,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<AdmittedCommand, Failure>> {
        Box::pin(async move {
            self.check_variables(&run, &with)?;
            let (text, capability) = (run::shown(&run, &with), run.capability());
            let lent = match &run {
                Run::Script(script) => self.lent(script),
                // Nothing in its arguments stands for a variable.
                Run::Program(_) | Run::Declared(_) => Vec::new(),
            };
            let key = self.command_key(&[text.as_bytes(), &with.input].join(&0), scope);
            // What gets a secret stays where its hosts are known.
            let refused = match is_awaited && lent.is_empty() {
                true => self.refused_before(&key, goes_to, confinement, scope).await?,
                false => None,
            };
            let held = Held::Script(text.clone(), goes_to);
            let (keyboard, with_it) = (None, &with);
            let shown = &text;
            let wish =
                Wish { capability, confinement, shown, held, with: with_it, keyboard, lent: &lent, refused, site };
            let Consent { seen, is_out, .. } = self.decide(wish, declaration, scope).await?;
            let cell = confinement.cell().filter(|_| !is_out);
            let (mut secrets, has_secret) = (Vec::new(), !lent.is_empty());
            for name in lent {
                let _waiting = scope.clock.waiting();
                let value = scope.secrets.value(&name).await?;
                secrets.push((name, value));
            }
            Ok(AdmittedCommand {
                connections: cell.and_then(|cell| self.connections(cell)).map(|own| own.of_command(&text, has_secret)),
                text,
                run,
                with,
                key,
                is_out,
                directory: seen.and_then(|landing| landing.directory),
                environment: self.environment.clone(),
                secrets,
                cell: cell.cloned(),
                is_elsewhere: *confinement == Confinement::Elsewhere,
                confine: self.confine.clone(),
                asker: Asker {
                    plugin: self.plugin.clone(),
                    sha256: self.sha256.clone(),
                    timeout: self.approval_timeout,
                    keyring: self.confine.has_network().then(|| self.confine.keyring().clone()),
                },
            })
        })
    }

    /// Refuses variables by which a program would run code that nothing in the command shows, unless the user named them.
    fn check_variables(&self, run: &Run, with: &With) -> Result<(), Failure> {
        match run {
            Run::Script(_) | Run::Program(_) => {}
            // The user named what it gets.
            Run::Declared(_) => return Ok(()),
        }
        let is_named = |name: &String| self.environment.contains(name);
        let hook = with.variables.iter().map(|(name, _)| name).find(|name| loads_code(name) && !is_named(name));
        let Some(name) = hook else { return Ok(()) };
        let message = format!("`{name}` cannot be set beside a command: programs run the code that it names");
        Err(Failure::denied(message).hint(format!(
            "write it into the text of a command, as in `{name}=… program`, or add \"{name}\" to `shell_env` under [tools]"
        )))
    }

    /// Decides on an action on sessions and panes, given as the command that it is, and records the decision.
    pub fn admit_action<'a>(
        &'a self,
        command: &'a str,
        declaration: Declaration,
        site: &'a dyn Site,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<AdmittedAction, Failure>> {
        Box::pin(async move {
            let confinement = &self.confinement(scope).await?;
            let held = Held::Script(command.to_owned(), Destination::Program);
            let (capability, keyboard, lent, refused) = (Capability::Panes, None, &[][..], None);
            let with = &With::default();
            let wish = Wish { capability, confinement, shown: command, held, with, keyboard, lent, refused, site };
            self.decide(wish, Some(declaration), scope).await?;
            Ok(AdmittedAction { cell: confinement.cell().cloned() })
        })
    }

    /// Decides on what is typed into a pane, and records the decision.
    pub fn admit_typing<'a>(
        &'a self,
        Typing { input, held, keyboard, shown }: Typing,
        declaration: Declaration,
        confinement: &'a Confinement,
        site: &'a dyn Site,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<AdmittedInput, Failure>> {
        Box::pin(async move {
            let (capability, keyboard, refused) = (Capability::Panes, Some(keyboard), None);
            let (shown, with) = (&shown, &With::default());
            let wish = Wish { capability, confinement, shown, held, with, keyboard, lent: &[], refused, site };
            self.decide(wish, Some(declaration), scope).await?;
            if confinement.cell().is_some() {
                self.confine.watch().go_on();
            }
            Ok(AdmittedInput(input))
        })
    }

    /// Decides on a look at what is on a person's own screen, and records the decision.
    pub fn admit_look<'a>(
        &'a self,
        shown: &'a str,
        site: &'a dyn Site,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (capability, confinement, declaration, refused) = (Capability::Panes, None, None, None);
            let (details, subject, lent) = (None, None, &[][..]);
            let look = Asked { capability, confinement, shown, details, declaration, lent, refused, subject, site };
            let decided = self.confirm(ActionKind::Look, look, scope).await;
            scope.record(Action {
                capability: Capability::Panes,
                what: shown.to_owned(),
                confinement: None,
                declaration: None,
                decision: told(&decided),
            });
            decided.map(|_| ()).map_err(|(failure, _)| failure)
        })
    }

    async fn decide(
        &self,
        wish: Wish<'_>,
        declaration: Option<Declaration>,
        scope: &Scope,
    ) -> Result<Consent, Failure> {
        let Wish { capability, confinement, shown, held, with, keyboard, lent, refused, site } = wish;
        let spelled: Vec<&[u8]> = [shown.as_bytes(), &with.input].into_iter().chain(held.texts()).collect();
        let leaks = scope.guard.check(Exit::Command, spelled.iter().copied());
        let leaks = leaks.map_err(|refusal| (refusal, "leaks.commands".into()));
        let subject = Subject::Command(CommandSubject::of(&held, !with.input.is_empty()));
        let checked = match leaks {
            Ok(()) => self.check(held, keyboard, scope).await,
            Err(refused) => Err(refused),
        };
        // The walls first, then what the user's rules refuse.
        let checked = match checked {
            Ok(()) => scope.denied_by_rule(&subject).await.map_or(Ok(()), Err),
            Err(refused) => Err(refused),
        };
        let subject = Some(&subject);
        let decided = match checked {
            Ok(()) => {
                let (confinement, declaration) = (Some(confinement), declaration.as_ref());
                let (refused, details) = (refused.as_deref(), with.shown_input());
                let details = details.as_deref();
                let asked =
                    Asked { capability, confinement, shown, details, declaration, lent, refused, subject, site };
                self.confirm(ActionKind::Command, asked, scope).await
            }
            Err(refused) => Err(refused),
        };
        let is_out = decided.as_ref().is_ok_and(|consent| consent.is_out);
        scope.record(Action {
            capability,
            what: shown.to_owned(),
            confinement: if is_out { Some(LET_OUT.into()) } else { confinement.told() },
            declaration,
            decision: if lent.is_empty() {
                told(&decided)
            } else {
                format!("{}; secrets: {}", told(&decided), lent.join(", "))
            },
        });
        let consent = decided.map_err(|(failure, _)| failure)?;
        // Here ends what only finds out what would be done.
        scope.purpose.begins().map(|()| consent)
    }

    /// Checks where keys would go, and the action against the denylist.
    async fn check(&self, held: Held, keyboard: Option<Keyboard>, scope: &Scope) -> Result<(), (Failure, By)> {
        if keyboard.is_none()
            && let Some(checked) = held.check_here(&self.denylist)
        {
            return checked.map_err(|failure| (failure, "tools.shell_denylist".into()));
        }
        let denylist = self.denylist.clone();
        let keyboard = keyboard.map(|keyboard| (keyboard, scope.approver.is_read()));
        let checked = command::aside(move || {
            let typed = keyboard.map_or(Ok(()), |(keyboard, is_asked)| keyboard.check(is_asked, &Sitting::now()));
            typed.map_err(|failure| (failure, "the place where questions are answered".into()))?;
            held.check(&denylist).map_err(|failure| (failure, "tools.shell_denylist".into()))
        });
        checked.await.unwrap_or_else(|| {
            let unchecked = Failure::denied("the command could not be checked against `tools.shell_denylist`");
            Err((unchecked, "tools.shell_denylist".into()))
        })
    }

    /// Returns who allowed it, or the refusal and who refused.
    async fn confirm(&self, kind: ActionKind, asked: Asked<'_>, scope: &Scope) -> Result<Consent, (Failure, By)> {
        let Asked { capability, confinement, shown, details, declaration, lent, refused, subject, site } = asked;
        let lent = self.lending(lent, confinement);
        let asks = match confinement {
            None | Some(Confinement::Off | Confinement::Elsewhere) => self.confirm,
            // No setting answers for what reads all that the user can read.
            Some(Confinement::Cell(profile)) if !profile.by.is_full() => true,
            Some(Confinement::Cell(profile)) => {
                let needs_more = declaration.is_some_and(|declaration| declaration.privesc);
                self.confirm && (self.confine.asks(profile) || needs_more)
            }
            Some(Confinement::Unconfined(_)) => true,
        };
        if !asks && refused.is_none() && lent.as_ref().is_none_or(|lent| lent.is_bounded) {
            return Ok(Consent::unasked(if self.confirm { "confine.ask" } else { "tools.shell_confirm" }));
        }
        // Another yes for the session says nothing of secrets.
        let place = match &lent {
            Some(lent) => format!("{} with {}", scope.backend.name(), lent.names),
            None => scope.backend.name().to_owned(),
        };
        let question = Question {
            key: ApprovalKey::new(&self.sha256, capability, kind, &place),
            plugin: &self.plugin,
            site,
            confinement,
            lent: lent.as_ref(),
            action: shown,
            details,
            declaration,
            subject,
            also: &[],
            refused,
            timeout: self.approval_timeout,
        };
        question.ask(scope).await
    }
}

impl ShellGrant {
    /// What a command that runs so can do with the secrets that it gets.
    fn lending(&self, names: &[String], confinement: Option<&Confinement>) -> Option<Lending> {
        if names.is_empty() {
            return None;
        }
        let (hosts, is_bounded) = match confinement {
            Some(Confinement::Cell(profile)) => match profile.network {
                CellNetwork::None => ("no host".into(), true),
                CellNetwork::Egress if profile.by.is_full() => (self.confine.reachable().shown(), true),
                // Without namespaces it has no sockets.
                CellNetwork::Egress => ("no host".into(), true),
                CellNetwork::Full => ("every host".into(), false),
            },
            Some(Confinement::Off | Confinement::Elsewhere | Confinement::Unconfined(_)) | None => {
                ("every host".into(), false)
            }
        };
        Some(Lending { names: names.join(", "), hosts, is_bounded })
    }
}

/// The decision, for the audit trail.
fn told(decided: &Result<Consent, (Failure, By)>) -> String {
    match decided {
        Ok(consent) => format!("allowed by {}", consent.by),
        Err((_, by)) => format!("denied by {by}"),
    }
}

/// The refusal for a plugin that may run commands but not use panes.
fn no_panes(name: &str, config: &Config) -> Failure {
    let line = format!("write `shell.pane = true` instead of `shell` under [plugin.{name}]");
    Failure::denied(format!("`{name}` may run commands in processes of their own, but not use panes"))
        .hint(config.remedies().hint(&format!("plugin.{name}.shell"), &Needed::Panes, line))
}
