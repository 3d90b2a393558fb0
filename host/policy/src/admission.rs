//! Whether a plugin may be there at all. Asked before it takes a name, again when it has said what it offers, and at every call.

use super::Policy;
use super::lock::{Code, Enforced, LockRefusal, Step, directories};
use audit::ByLock;
use base::envelope::{Failure, Kind};
use config::{DAY, Needed, Place};
use contract::manifest::Manifest;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vetting::{Vetted, date};

/// A list or statement that ends within this time, in seconds, gets a notice.
const SOON: u64 = 14 * DAY;

/// That a plugin may be there. Made only here, and the only thing that grants are made of.
pub struct Admission<'m> {
    plugin: &'m Manifest,
    /// What each lock knows it was vetted as, in the order of the locks.
    pub(super) vetted: Vec<Option<Arc<Vetted>>>,
}

impl Admission<'_> {
    /// Who was admitted.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        self.plugin
    }
}

/// That no lock of a policy refuses a plugin. Made only by [`Policy::check_locks`].
pub struct Unbarred<'p, 'm> {
    policy: &'p Policy,
    plugin: &'m Manifest,
    /// What each lock knows it was vetted as, in the order of the locks.
    vetted: Vec<Option<Arc<Vetted>>>,
}

/// That a plugin may not be there, and by which line.
#[derive(Debug)]
pub struct Barred {
    /// Why a lock refuses it; none where a setting does.
    pub code: Option<Code>,
    /// What decides.
    pub decider: Box<Decider>,
    /// What a call of its tools answers.
    pub failure: Failure,
}

/// The line by which a plugin may not be there.
#[derive(Debug)]
pub struct Decider {
    /// The setting.
    pub key: String,
    /// Where it is, if a lock refuses the plugin.
    pub place: Option<Place>,
}

impl Barred {
    fn by_lock(plugin: &Manifest, refusal: LockRefusal<'_>) -> Self {
        let LockRefusal { code, reason, key, place, message, remedy } = refusal;
        let decides = format!("the operator's policy decides this: `{key}` in {place}");
        let hint = message.map_or(decides.clone(), |message| format!("{message} ({decides})"));
        let hint = remedy.map_or(hint.clone(), |remedy| format!("{hint}; {remedy}"));
        let it = if code.is_about_plugin() { "it " } else { "" };
        let failure = Failure::denied(format!("plugin `{}` was refused: {it}{reason}", plugin.name()));
        let failure = failure.hint(hint).data(json!({ "code": code.name() }));
        Self { code: Some(code), decider: Box::new(Decider { key, place: Some(place.clone()) }), failure }
    }
}

impl Barred {
    /// What the trail says of it; none where no lock refuses the plugin.
    pub fn by_a_lock(&self) -> Option<ByLock<'_>> {
        self.code.zip(self.decider.place.as_ref()).map(|(code, place)| ByLock { code: code.name(), place })
    }
}

impl From<Barred> for Failure {
    fn from(barred: Barred) -> Self {
        barred.failure
    }
}

impl<'m> Unbarred<'_, 'm> {
    /// Admits the plugin by the policy whose locks were asked.
    ///
    /// # Errors
    ///
    /// `denied`, with the line that decides.
    pub fn admit(&self) -> Result<Admission<'m>, Barred> {
        let Self { policy, plugin, vetted } = self;
        let name = plugin.name();
        if policy.config.is_enabled(name) {
            policy.check_provider(plugin)?;
            return Ok(Admission { plugin, vetted: vetted.clone() });
        }
        let key = format!("plugin.{name}.enabled");
        let line = format!("set `enabled = true` under [plugin.{name}], or remove the line");
        let failure = Failure::denied(format!("plugin `{name}` is switched off by `{key} = false`"))
            .hint(policy.config.remedies().hint(&key, &Needed::On, line));
        Err(Barred { code: None, decider: Box::new(Decider { key, place: None }), failure })
    }

    /// What locks know that it was vetted as.
    pub fn vetted(&self) -> impl Iterator<Item = &Arc<Vetted>> {
        self.vetted.iter().flatten()
    }
}

impl Policy {
    /// Admits a plugin, unless a lock refuses it, it was switched off, or another one searches the web in its place.
    ///
    /// # Errors
    ///
    /// `denied`, with the line that decides.
    pub fn admit<'m>(&self, plugin: &'m Manifest) -> Result<Admission<'m>, Barred> {
        self.check_locks(plugin)?.admit()
    }

    /// Says whether every lock lets a plugin be there, and what it was vetted as; whoever installs or allows one asks before anything is written.
    ///
    /// # Errors
    ///
    /// `denied`, with the line of the policy.
    pub fn check_locks<'m>(&self, plugin: &'m Manifest) -> Result<Unbarred<'_, 'm>, Barred> {
        let decided = self.locks.iter().map(|lock| lock.decide(plugin));
        let vetted = decided.collect::<Result<_, _>>().map_err(|refusal| Barred::by_lock(plugin, refusal))?;
        Ok(Unbarred { policy: self, plugin, vetted })
    }

    /// Whether a lock has taken a plugin back that it admitted before.
    #[must_use]
    pub fn has_revoked(&self, plugin: &Manifest) -> bool {
        self.locks.iter().any(|lock| lock.has_revoked(plugin))
    }

    /// Admits what a plugin says of its tools: bytes that were vetted or allowed may say nothing else than they did then. `definitions` is
    /// the digest of what it says now.
    ///
    /// # Errors
    ///
    /// `denied` by a lock; `unavailable` else, with what to look at.
    pub fn admit_definitions(&self, plugin: &Manifest, definitions: &str) -> Result<(), Failure> {
        let mut refusals = self.locks.iter().filter_map(|lock| lock.decide_definitions(plugin, definitions).err());
        if let Some(refusal) = refusals.next() {
            return Err(Barred::by_lock(plugin, refusal).into());
        }
        let pinned = self.config.pinned_definitions(plugin.name(), plugin.sha256());
        if plugin.has_words && pinned.is_none() && self.config.is_about(plugin.name(), plugin.sha256()) {
            let (name, file) = (plugin.name(), plugin.id.origin());
            let message =
                format!("plugin `{name}` was refused: it has words of its own, and its section does not pin them");
            return Err(Failure::new(Kind::Unavailable, message)
                .hint(format!("`toolcrib plugin allow {file}` with its rights writes `definitions`")));
        }
        if pinned.is_none_or(|pinned| pinned.eq_ignore_ascii_case(definitions)) {
            return Ok(());
        }
        let (name, file) = (plugin.name(), plugin.id.origin());
        let message = format!("plugin `{name}` was refused: its tool definitions have changed since it was allowed");
        Err(Failure::new(Kind::Unavailable, message)
            .hint(format!("look at it with `toolcrib plugin inspect {file}`, then `toolcrib plugin allow {file}`")))
    }

    /// What people vetted that ends soon, of these plugins and of the lists: the first time on a day that anybody asks.
    #[must_use]
    pub fn ending<'m>(&self, plugins: impl Iterator<Item = &'m Arc<Manifest>>) -> Vec<String> {
        let Some(marks) = &self.marks else { return Vec::new() };
        let now = marks.now();
        let statements = plugins.filter_map(|plugin| {
            let vetted = self.check_locks(plugin).ok()?.vetted.into_iter().flatten();
            let first = vetted.map(|vetted| vetted.statement.expires).min()?;
            Some((first, format!("the statement about plugin `{}`", plugin.name())))
        });
        let ends = self.locks.iter().filter_map(Enforced::list_end).chain(statements);
        let soon: Vec<_> = ends.filter(|(end, _)| *end < now + SOON).collect();
        if soon.is_empty() || !marks.is_first_of_day() {
            return Vec::new();
        }
        soon.iter().map(|(end, what)| format!("{what} ends on {}: have it vetted again before", date(*end))).collect()
    }

    /// The directories of lists: with what changes there, other plugins may be admitted.
    pub(crate) fn list_directories(&self) -> impl Iterator<Item = &Path> {
        self.locks.iter().filter_map(Enforced::list_directory)
    }

    /// Has lists looked at before the next decision.
    pub fn look_anew(&self) {
        self.locks.iter().for_each(Enforced::look_anew);
    }

    /// Revocations that no key with the role for it has signed: they take nothing back, and each text says so with the reason.
    #[must_use]
    pub fn idle_revocations(&self) -> Vec<String> {
        self.locks.iter().flat_map(Enforced::idle_revocations).collect()
    }

    /// Has what was checked of signatures known at the next start.
    pub fn keep_checked(&self) {
        if let Some(marks) = &self.marks {
            marks.keep_checked();
        }
    }

    /// Whether any lock is in force.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        !self.locks.is_empty()
    }

    /// The locks in force: the line where each begins, and what it demands.
    pub fn locks(&self) -> impl Iterator<Item = (String, String)> {
        self.locks.iter().map(Enforced::described)
    }

    /// What each lock looks at in a plugin in turn, with the line where the lock begins.
    #[must_use]
    pub fn steps(&self, plugin: &Manifest) -> Vec<(String, Vec<(Step, &'static str)>)> {
        self.locks.iter().map(|lock| (lock.lock.place.to_string(), lock.steps(plugin))).collect()
    }

    /// The names of the plugins that locks vet, and whether each has to be there.
    #[must_use]
    pub fn vetted(&self) -> BTreeMap<String, bool> {
        let mut vetted = BTreeMap::new();
        for (name, required) in self.locks.iter().flat_map(Enforced::vetted) {
            *vetted.entry(name).or_default() |= required;
        }
        vetted
    }

    /// The directories that plugins are read from, of those that the user names; with the line of the policy, where one decides.
    #[must_use]
    pub fn plugin_directories(&self, users: Vec<PathBuf>) -> (Vec<PathBuf>, Option<&Place>) {
        directories(&self.locks, users)
    }
}
