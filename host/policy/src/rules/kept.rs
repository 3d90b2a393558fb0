//! The rules in force: those of the user's file as it is now, and those of the policies.
//!
//! The file is looked at before each question. It is not read again where a command of this very program could have changed it.

use super::compiled::{Rule, Rules};
use super::path::Programs;
use super::{CommandSubject, Subject};
use crate::approval::{Approvals, By};
use crate::confine::Confine;
use crate::confine::Confinement;
use crate::scope::Scope;
use backend::Backend;
use base::envelope::Failure;
use command::Destination;
use command::rules::{CommandPattern, Simple, prove};
use config::{RuleSection, Settings};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most rules that one answer makes, and the longest text that they are made of, in bytes.
const OFFERED: usize = 5;
const OFFERED_BYTES: usize = 500;

/// The rules in force.
pub struct KeptRules {
    settings: Settings,
    allows: bool,
    confine: Arc<Confine>,
    path: Vec<PathBuf>,
    state: Mutex<State>,
}

struct State {
    rules: Arc<Rules>,
    seen: Stamp,
}

/// A file that was changed so few seconds ago may have been changed once more since it was read: it is read again for the first call.
const RECENT: i64 = 2;

/// What tells one version of the file from another.
type Stamp = Option<(u64, u64, i64, i64)>;

impl KeptRules {
    /// The rules of these settings.
    ///
    /// # Errors
    ///
    /// Where one cannot be kept.
    pub(crate) fn new(settings: &Settings, confine: Arc<Confine>, path: Vec<PathBuf>) -> Result<Self, Failure> {
        let allows = settings.config.approval.rules;
        let rules = Arc::new(Rules::new(&settings.rules, allows)?);
        let state = Mutex::new(State { rules, seen: None });
        let kept = Self { settings: settings.clone(), allows, confine, path, state };
        kept.state.lock().seen = kept.stamp().filter(|stamp| !is_recent(stamp));
        Ok(kept)
    }

    /// The file may have changed since these settings were read.
    pub(crate) fn look_again(&self) {
        self.state.lock().seen = None;
    }

    /// Those that were read last.
    #[must_use]
    pub fn now(&self) -> Arc<Rules> {
        self.state.lock().rules.clone()
    }

    /// Whether rules may allow anything here.
    #[must_use]
    pub fn allows(&self) -> bool {
        self.allows
    }

    /// The refusal of what a rule denies. Nobody is asked then.
    pub(crate) async fn denied(&self, subject: &Subject, scope: &Scope) -> Option<(Failure, By)> {
        let rules = self.read_again(&*scope.backend, &scope.approvals).await;
        let found = rules.denying(subject, &scope.tool);
        if found.is_empty() {
            return None;
        }
        let workspace = workspace(&*scope.backend).await;
        let rule = found.into_iter().map(|at| rules.rule(at)).find(|rule| rule.counts_in(&workspace))?;
        Some((refusal(rule), format!("a rule: {}", rule.line).into()))
    }

    /// The refusal of a connection that no call makes: a page or a program goes on. Whose tool it was, and where, is not known then, so each rule
    /// counts that denies it anywhere.
    pub(crate) fn denied_of_no_call(&self, subject: &Subject) -> Option<(Failure, By)> {
        let rules = self.now();
        let mut found = rules.denying(subject, "").into_iter().map(|at| rules.rule(at));
        let rule = found.find(|rule| !rule.line.is_over())?;
        Some((refusal(rule), format!("a rule: {}", rule.line).into()))
    }

    /// Refuses each call of a tool that a rule denies by its name alone.
    ///
    /// # Errors
    ///
    /// `denied`, with the rule and where it stands.
    pub fn admit_tool<'a>(
        &'a self,
        tool: &'a str,
        backend: &'a dyn Backend,
        approvals: &'a Approvals,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let rules = self.read_again(backend, approvals).await;
            if !rules.denies_tools() {
                return Ok(());
            }
            let workspace = workspace(backend).await;
            rules.denying_tool(tool, &workspace).map_or(Ok(()), |rule| Err(refusal(rule)))
        })
    }

    /// Whether a rule denies a tool by its name alone, in whatever workspace.
    #[must_use]
    pub fn denies_tools(&self) -> bool {
        self.now().denies_tools()
    }

    /// Why a rule denies a tool by its name alone, for lists.
    #[must_use]
    pub fn denied_tool(&self, tool: &str, workspace: &Path) -> Option<Failure> {
        self.now().denying_tool(tool, workspace).map(refusal)
    }

    /// Which rules allow it, for the record; none where somebody has to be asked.
    pub(crate) async fn allowed(&self, subject: &Subject, scope: &Scope) -> Option<By> {
        let rules = self.read_again(&*scope.backend, &scope.approvals).await;
        if rules.allows_nothing() {
            return None;
        }
        let workspace = workspace(&*scope.backend).await;
        let found = match subject {
            Subject::Command(command) => self.covering(command, rules.clone(), workspace, scope).await,
            Subject::Host(_) | Subject::Write(_) | Subject::Call => {
                let found = rules.allowing(subject, &scope.tool);
                found.into_iter().find(|at| rules.rule(*at).counts_in(&workspace)).map(|at| vec![at])
            }
        };
        let mut shown: Vec<String> = found?.into_iter().map(|at| rules.rule(at).line.to_string()).collect();
        shown.dedup();
        Some(format!("a rule: {}", shown.join("; ")).into())
    }

    /// The rules that would allow it from now on; none where no rule can.
    pub(crate) async fn offered(&self, subject: &Subject, scope: &Scope) -> Vec<RuleSection> {
        if !self.allows {
            return Vec::new();
        }
        match subject {
            Subject::Command(command) => {
                let is_readable = command.goes_to != Destination::Program && scope.backend.is_this_machine();
                let [text] = command.texts.as_slice() else { return Vec::new() };
                let (text, is_fed, workspace) = (text.clone(), command.is_fed, workspace(&*scope.backend).await);
                let programs = self.programs(&workspace);
                let offer = command::aside(move || offered_commands(&text, is_fed, &programs, &workspace));
                if is_readable { offer.await.unwrap_or_default() } else { Vec::new() }
            }
            Subject::Host(target) => vec![RuleSection { host: Some(target.server()), ..RuleSection::default() }],
            Subject::Write(path) => {
                let path = path.display().to_string();
                let is_plain = !path.contains(['*', '?', '[', ']', '{', '}', '\\']);
                is_plain.then(|| RuleSection { write: Some(path), ..RuleSection::default() }).into_iter().collect()
            }
            Subject::Call => vec![RuleSection { tool: Some(scope.tool.clone()), ..RuleSection::default() }],
        }
    }

    /// Reads the file again: a person has just written it.
    pub fn reload(&self) {
        let stamp = self.stamp();
        let read = self.settings.rules_anew().ok();
        if let Some(rules) = read.and_then(|lines| Rules::new(&lines, self.allows).ok()) {
            *self.state.lock() = State { rules: Arc::new(rules), seen: stamp };
        }
    }

    /// The rules for each command of a script; none where one has none.
    async fn covering(
        &self,
        command: &CommandSubject,
        rules: Arc<Rules>,
        workspace: PathBuf,
        scope: &Scope,
    ) -> Option<Vec<usize>> {
        let is_readable = match command.goes_to {
            Destination::Process | Destination::Pane => scope.backend.is_this_machine(),
            // Whatever runs there reads it in its own way.
            Destination::Program => false,
        };
        let [text] = command.texts.as_slice() else { return None };
        if !is_readable {
            return None;
        }
        let (text, is_fed, tool) = (text.clone(), command.is_fed, scope.tool.clone());
        let programs = self.programs(&workspace);
        let decide = move || {
            let counts = |rule: &Rule| rule.counts_in(&workspace);
            rules.cover(&text, is_fed, Some(&tool), &programs, &counts)
        };
        let covered = command::aside(decide).await?.ok()?;
        let mut all = Vec::new();
        for command in covered {
            all.extend(command.by.ok()?);
        }
        (!all.is_empty()).then_some(all)
    }

    /// Where programs are found from this workspace.
    #[must_use]
    pub fn programs(&self, workspace: &Path) -> Programs {
        let written = self.confine.written().cloned().chain([base::paths::canonical(workspace)]);
        Programs { path: self.path.clone(), written: written.collect() }
    }

    /// The rules as the file has them now, where no command could have written it.
    async fn read_again(&self, backend: &dyn Backend, approvals: &Approvals) -> Arc<Rules> {
        let stamp = self.stamp();
        let (rules, seen) = {
            let state = self.state.lock();
            (state.rules.clone(), state.seen)
        };
        if stamp == seen || approvals.has_let_out() {
            return rules;
        }
        let confinement = self.confine.at(backend).await;
        let is_safe = matches!(confinement, Ok(Confinement::Cell(profile)) if profile.by.is_full());
        let mut state = self.state.lock();
        state.seen = stamp;
        let read = if is_safe { self.settings.rules_anew().ok() } else { None };
        // What cannot be read changes nothing: the next start says why.
        if let Some(rules) = read.and_then(|lines| Rules::new(&lines, self.allows).ok()) {
            state.rules = Arc::new(rules);
        }
        state.rules.clone()
    }

    fn stamp(&self) -> Stamp {
        let found = self.settings.sources.user.as_ref()?.metadata().ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    }
}

fn is_recent((.., seconds, _): &(u64, u64, i64, i64)) -> bool {
    rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec - seconds <= RECENT
}

/// A rule for each command of a script, with all its words; none where one of them cannot have one.
fn offered_commands(text: &str, is_fed: bool, programs: &Programs, workspace: &Path) -> Vec<RuleSection> {
    let rule = |simple: &Simple| {
        let pattern = simple.shown();
        CommandPattern::parse(&pattern).ok()?.covers(simple).ok()?;
        let is_known = simple.is_of_the_shell() || simple.program().contains('/');
        (is_known || programs.check(simple.program()).is_ok()).then_some(())?;
        let workspace = Some(workspace.display().to_string());
        Some(RuleSection { command: Some(pattern), workspace, ..RuleSection::default() })
    };
    let commands = prove(text, is_fed).unwrap_or_default();
    // A person has to see all of what would be written.
    if commands.len() > OFFERED || text.len() > OFFERED_BYTES {
        return Vec::new();
    }
    let mut rules = commands.iter().map(rule).collect::<Option<Vec<_>>>().unwrap_or_default();
    rules.dedup();
    rules
}

async fn workspace(backend: &dyn Backend) -> PathBuf {
    backend.facts().await.map(|facts| facts.workspace.root.clone()).unwrap_or_default()
}

fn refusal(rule: &Rule) -> Failure {
    let place = &rule.line.place;
    match rule.number {
        Some(number) => Failure::denied("denied by a rule of yours").hint(format!(
            "the rule is `{}` in {place}; only the user can remove it: `toolcrib policy rules remove {number}`",
            rule.line
        )),
        None => Failure::denied("denied by a rule of the operator's policy")
            .hint(format!("the rule is `{}` in {place}", rule.line)),
    }
}
