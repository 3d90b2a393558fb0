//! `toolcrib policy explain`: what a call of a tool may do, and which line decides, in the words of the grants themselves.

mod commands;
pub(crate) mod words;

use super::admission::{Admission, Barred, Decider};
use super::lock::Enforced;
use super::rules::Rule;
use super::{Grants, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use config::{LeakAction, LeakGate, LockMode, Origin, Origins, Part, Settings, Template, Verdict};
use contract::manifest::Manifest;
use serde_json::{Value, json};
use std::sync::Arc;
use vetting::Vetted;

/// Who decides where no setting does.
pub(crate) const BUILT_IN: &str = "built in";

/// One line of the answer.
pub struct Clause {
    /// What it is about: a capability or a rule.
    pub subject: &'static str,
    /// `allowed`, `asks` or `denied`.
    pub verdict: &'static str,
    /// What exactly.
    pub detail: String,
    /// The setting that decides, and where its value comes from.
    pub decided_by: String,
}

impl Clause {
    /// The clause for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "subject": self.subject, "verdict": self.verdict, "detail": self.detail, "decided_by": self.decided_by })
    }
}

impl Policy {
    /// Explains what `plugin` may do: one clause per capability that it imports, and what else binds it.
    #[must_use]
    pub fn explain(&self, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
        let admission = match self.admit(plugin) {
            Ok(admission) => admission,
            Err(Barred { decider, failure, .. }) => {
                let Decider { key, place } = &*decider;
                let decided_by = match place {
                    Some(place) => format!("{key} ({place})"),
                    None => decided(&settings.origins, key),
                };
                return vec![Clause { subject: "calls", verdict: "denied", detail: failure.message, decided_by }];
            }
        };
        let grants = self.grants_for(&admission);
        let origins = settings.origins.with(&self.rights(&admission).origins);
        let explained = Explained { policy: self, plugin, grants: &grants, origins };
        let capabilities = plugin.capabilities.iter().flat_map(|capability| explained.capability(*capability));
        let mut clauses: Vec<_> = capabilities.chain(explained.config()).collect();
        clauses.extend(explained.rules());
        if clauses.is_empty() {
            let detail = "only computes; it imports no capability".into();
            clauses.push(Clause { subject: "nothing", verdict: "allowed", detail, decided_by: "its imports".into() });
        }
        if !self.config.secret.is_empty() {
            clauses.push(explained.leaks());
        }
        explained.locks(&admission).into_iter().chain(clauses).collect()
    }
}

/// A plugin that is explained, with what it was granted and where settings come from.
pub(crate) struct Explained<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) plugin: &'a Manifest,
    grants: &'a Grants,
    pub(crate) origins: Origins,
}

impl Explained<'_> {
    fn capability(&self, capability: Capability) -> Vec<Clause> {
        let clauses = self.grants.clauses(capability, self);
        self.granted(capability.decided_with(), clauses)
    }

    /// What is said of a grant, or why there is none.
    pub(crate) fn granted(&self, capability: Capability, clauses: Result<Vec<Clause>, Failure>) -> Vec<Clause> {
        clauses.unwrap_or_else(|refusal| vec![self.refusal(capability, refusal)])
    }

    /// A setting, and where its value comes from.
    pub(crate) fn decided(&self, key: &str) -> String {
        decided(&self.origins, key)
    }

    /// A line of the plugin's section, if it is there.
    pub(crate) fn own(&self, key: &str) -> String {
        self.decided_or_built_in(&format!("plugin.{}.{key}", self.plugin.name()))
    }

    pub(crate) fn decided_or_built_in(&self, key: &str) -> String {
        if self.origins.get(key).is_some() { self.decided(key) } else { BUILT_IN.into() }
    }

    /// What happens to secrets on their way out.
    fn leaks(&self) -> Clause {
        let leaks = &self.policy.config.leaks;
        let results = match leaks.results {
            LeakAction::Warn => "pass with a notice",
            LeakAction::Redact => "are taken out of results",
            LeakAction::Block => "hold a result back",
        };
        let gate = |what: &str, gate: LeakGate| match gate {
            LeakGate::Warn => format!("{what} pass with a notice"),
            LeakGate::Block => format!("{what} are refused"),
        };
        let gates = [("requests", leaks.requests), ("commands", leaks.commands), ("writes", leaks.writes)];
        let gates = gates.map(|(what, action)| gate(what, action)).join(", ");
        let events = match leaks.embedder {
            LeakAction::Warn => "events pass with a notice",
            LeakAction::Redact => "events pass without it",
            LeakAction::Block => "events are refused",
        };
        let detail = format!("values of secrets {results}; with one in them {gates}, {events}");
        Clause { subject: "leaks", verdict: "denied", detail, decided_by: self.decided("leaks.results") }
    }

    /// The rules that calls of it may meet.
    fn rules(&self) -> Vec<Clause> {
        let rules = self.policy.rules.now();
        let meets = |rule: &&Rule| {
            let is_about = self.plugin.capabilities.iter().any(|capability| rule.is_about(*capability));
            is_about && !rule.line.is_over()
        };
        let clause = |rule: &Rule| {
            let verdict = match rule.line.verdict {
                Verdict::Allow => "allowed",
                Verdict::Deny => "denied",
            };
            let (detail, decided_by) = (rule.line.section.to_string(), rule.line.place.to_string());
            Clause { subject: "rule", verdict, detail, decided_by }
        };
        rules.all().filter(meets).map(clause).collect()
    }

    /// Why each lock lets the plugin be there.
    fn locks(&self, admission: &Admission<'_>) -> Vec<Clause> {
        let admitted = self.policy.locks.iter().zip(&admission.vetted);
        let clause = |(lock, vetted): (&Enforced, &Option<Arc<Vetted>>)| {
            let detail = match vetted {
                Some(vetted) => {
                    let (said, signers) = (&vetted.statement.said, vetted.signers.iter().map(String::as_str));
                    let signers = signers.collect::<Vec<_>>().join(", ");
                    format!("vetted as {} (sequence {}) by {signers}", said.version, said.sequence)
                }
                None if admission.manifest().id.is_builtin() => "came with the program, and may be used".into(),
                None if lock.lock.plugins != LockMode::Off => "named with these bytes".into(),
                None => "any plugin may be there".into(),
            };
            Clause { subject: "lock", verdict: "allowed", detail, decided_by: lock.lock.place.to_string() }
        };
        admitted.map(clause).collect()
    }

    /// A refusal, with the setting that decides: the switch or the line of the section that is not at its default, or the section's digest.
    fn refusal(&self, capability: Capability, refusal: Failure) -> Clause {
        let own = |key: &str| format!("plugin.{}.{key}", self.plugin.name());
        let off = self.policy.switch(capability, self.plugin).filter(|(_, is_on)| !is_on);
        let mut keys: Vec<String> = off.map(|(key, _)| key.to_owned()).into_iter().collect();
        // A line about the bytes that were allowed does not decide on others.
        if !self.policy.has_other_bytes(self.plugin) {
            keys.extend(capability.section().grants.iter().map(|key| own(key)));
        }
        keys.push(own("sha256"));
        let is_set = |key: &&String| self.origins.get(key).is_some_and(|origin| *origin != Origin::Default);
        let decided_by = match keys.iter().find(is_set) {
            Some(key) => self.decided(key),
            None => format!("no [plugin.{}] section", self.plugin.name()),
        };
        Clause { subject: capability.name(), verdict: "denied", detail: refusal.message, decided_by }
    }

    pub(crate) fn progress(&self) -> Vec<Clause> {
        vec![Clause {
            subject: "events",
            verdict: "allowed",
            detail: "reports the progress of the call, within caps".into(),
            decided_by: self.decided("limits.events"),
        }]
    }

    /// The values that it gets, whatever it imports.
    fn config(&self) -> Option<Clause> {
        let config = self.grants.config();
        if config.is_empty() {
            return None;
        }
        let secrets = |template: &Template| template.parts().iter().any(|part| matches!(part, Part::Secret(_)));
        let shown = |(name, template): (&String, &Template)| match secrets(template) {
            true => format!("`{name}`, where a word stands for the secret"),
            false => format!("`{name}`"),
        };
        let detail = format!("gets the values {}", config.iter().map(shown).collect::<Vec<_>>().join(", "));
        let decided_by = self.decided(&format!("plugin.{}.config", self.plugin.name()));
        Some(Clause { subject: "config", verdict: "allowed", detail, decided_by })
    }
}

fn decided(origins: &Origins, key: &str) -> String {
    origins.get(key).map_or_else(|| key.to_owned(), |origin| format!("{key} ({origin})"))
}
