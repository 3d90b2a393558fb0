//! `toolcrib policy explain`: what a call of a tool may do, and which line decides, in the words of the grants themselves.

mod commands;
mod web;
mod words;

use super::admission::{Admission, Barred, Decider};
use super::embedder::EmbedderGrant;
use super::jobs::JobsGrant;
use super::lock::Enforced;
use super::mail::MailGrant;
use super::records::RecordsGrant;
use super::schedules::SchedulesGrant;
use super::{Grants, Policy};
use base::capability::Capability;
use base::envelope::Failure;
use config::{Allowlist, FilesConfirm, LeakAction, LeakGate, LockMode, Origin, Origins, Part, Settings, Template};
use contract::manifest::Manifest;
use file_access::{CREDENTIALS, FilesGrant};
use serde_json::{Value, json};
use std::sync::Arc;
use vetting::Vetted;
use words::{distinct, listed, places};

/// Who decides where no setting does.
const BUILT_IN: &str = "built in";

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
struct Explained<'a> {
    policy: &'a Policy,
    plugin: &'a Manifest,
    grants: &'a Grants,
    origins: Origins,
}

impl Explained<'_> {
    fn capability(&self, capability: Capability) -> Vec<Clause> {
        let grants = self.grants;
        let clauses = match capability {
            Capability::Shell | Capability::Panes | Capability::PaneSessions => {
                grants.shell().map(|grant| self.shell(grant))
            }
            Capability::Exec => grants.exec().map(|grant| self.exec(grant)),
            Capability::Programs => grants.programs().map(|grant| self.programs(grant)),
            Capability::Files => grants.files().map(|grant| self.files(grant)),
            Capability::Http => grants.http().map(|grant| self.http(grant)),
            Capability::Browser => grants.browser().map(|grant| self.browser(grant)),
            Capability::Mail => grants.mail().map(|grant| self.mail(grant)),
            Capability::Embedder => grants.embedder().map(|grant| self.events(grant)),
            Capability::Introspect => grants.introspect().map(|()| introspect()),
            Capability::Records => grants.records().map(|grant| self.records(grant)),
            Capability::Jobs => grants.jobs().map(|grant| self.jobs(grant)),
            Capability::Schedules => grants.schedules().map(|grant| self.schedules(grant)),
            Capability::Upstream => grants.upstream().map(|grant| self.upstream(grant)),
            Capability::Events => Ok(self.progress()),
        };
        self.granted(capability.decided_with(), clauses)
    }

    /// What is said of a grant, or why there is none.
    fn granted(&self, capability: Capability, clauses: Result<Vec<Clause>, Failure>) -> Vec<Clause> {
        clauses.unwrap_or_else(|refusal| vec![self.refusal(capability, refusal)])
    }

    /// A setting, and where its value comes from.
    fn decided(&self, key: &str) -> String {
        decided(&self.origins, key)
    }

    /// A line of the plugin's section, if it is there.
    fn own(&self, key: &str) -> String {
        self.decided_or_built_in(&format!("plugin.{}.{key}", self.plugin.name()))
    }

    fn decided_or_built_in(&self, key: &str) -> String {
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

    fn files(&self, grant: &FilesGrant) -> Vec<Clause> {
        let own = |key: &str| format!("plugin.{}.{key}", self.plugin.name());
        let (read, write, section) = (own("files.read"), own("files.write"), own("sha256"));
        let clause = |subject, lists: &[Allowlist], key: &str, otherwise: String| {
            let is_denied = lists.contains(&Allowlist::NOTHING);
            let decided_by = match self.origins.get(key) {
                Some(_) => self.decided(key),
                // The section grants other things, and not this.
                None if is_denied && self.origins.get(&section).is_some() => {
                    format!("no `{key}` beside {}", self.decided(&section))
                }
                None => otherwise,
            };
            Clause { subject, verdict: if is_denied { "denied" } else { "allowed" }, detail: places(lists), decided_by }
        };
        let mut clauses = vec![
            clause("files.read", grant.readable(), &read, self.decided("tools.files_read_paths")),
            clause("files.write", grant.writable(), &write, self.decided("tools.files_allowed_paths")),
        ];
        if !grant.readable().contains(&Allowlist::NOTHING) {
            let bounds = grant.bounds_of_reading();
            let verdict = if bounds.contains(&Allowlist::NOTHING) { "denied" } else { "allowed" };
            let decided_by = self.decided("tools.files_read_paths");
            clauses.push(Clause { subject: "files.read", verdict, detail: places(bounds), decided_by });
            let closed = CREDENTIALS.map(|class| class.what).join(", ");
            let detail = format!("Toolcrib's own state, /proc, /sys, /dev, {closed}");
            clauses.push(Clause { subject: "files.read", verdict: "denied", detail, decided_by: BUILT_IN.into() });
        }
        if !grant.writable().contains(&Allowlist::NOTHING) {
            clauses.push(self.writes(grant.confirms()));
        }
        clauses
    }

    /// Which writes a person is asked about.
    fn writes(&self, confirms: FilesConfirm) -> Clause {
        let (verdict, detail) = match confirms {
            FilesConfirm::Never => ("allowed", "no write is asked about"),
            FilesConfirm::RunsLater => ("asks", "a person is shown writes to files that run later"),
            FilesConfirm::Outside => {
                ("asks", "a person is shown writes outside the workspace, and to files that run later")
            }
            FilesConfirm::Always => ("asks", "a person is shown every write"),
        };
        let decided_by = self.decided("tools.files_confirm");
        Clause { subject: "files.write", verdict, detail: detail.into(), decided_by }
    }

    fn mail(&self, grant: &MailGrant) -> Vec<Clause> {
        let detail =
            format!("reads the mail of these accounts, and changes nothing: {}", listed(&grant.accounts(), "none"));
        vec![Clause { subject: "mail", verdict: "allowed", detail, decided_by: self.own("mail") }]
    }

    /// What binds its events.
    fn events(&self, grant: &EmbedderGrant) -> Vec<Clause> {
        let kinds = distinct(grant.kinds().iter().map(|list| listed(list, "none")).collect());
        let clause = |verdict, detail, decided_by| Clause { subject: "embedder", verdict, detail, decided_by };
        let (verdict, asked) = match grant.confirms() {
            [] => ("allowed", "events go to the embedder without a question".to_owned()),
            kinds => ("asks", format!("a person is shown events of these kinds first: {}", listed(kinds, "none"))),
        };
        vec![
            clause(
                "allowed",
                format!("events for the embedder: {}", kinds.join(", of these only ")),
                self.own("embedder.kinds"),
            ),
            clause(verdict, asked, self.decided("embedder.confirm")),
        ]
    }

    fn progress(&self) -> Vec<Clause> {
        vec![Clause {
            subject: "events",
            verdict: "allowed",
            detail: "reports the progress of the call, within caps".into(),
            decided_by: self.decided("limits.events"),
        }]
    }

    /// What it may keep.
    fn records(&self, grant: &RecordsGrant) -> Vec<Clause> {
        let clause = |verdict, detail: &str, key| Clause {
            subject: "records",
            verdict,
            detail: detail.into(),
            decided_by: self.decided(key),
        };
        let (verdict, asked) = match grant.confirms() {
            true => ("asks", "a person is shown the changes that it wants approved"),
            false => ("allowed", "nobody is asked about changes"),
        };
        vec![
            clause("allowed", "keeps documents of its own for the agent, within limits", "store.items"),
            clause(verdict, asked, "tools.records_confirm"),
        ]
    }

    /// Which tools it may submit as jobs, and what binds them.
    fn jobs(&self, grant: &JobsGrant) -> Vec<Clause> {
        let tools = distinct(grant.tools().iter().map(|list| listed(list, "none")).collect());
        let unattended = listed(&self.policy.config.tools.unattended, "none");
        let clause = |detail, decided_by| Clause { subject: "jobs", verdict: "allowed", detail, decided_by };
        vec![
            clause(format!("submits jobs of these tools: {}", tools.join(", of these only ")), self.own("jobs")),
            clause(
                format!(
                    "a person is asked about commands when they are submitted; of other tools only these run as jobs: {unattended}"
                ),
                self.decided("tools.unattended"),
            ),
        ]
    }

    /// What it may have done at set times, and what binds that.
    fn schedules(&self, grant: &SchedulesGrant) -> Vec<Clause> {
        let most = self.policy.config.schedules.most;
        let detail = format!("has jobs and events at set times, at most {most} of one agent");
        let decided_by = self.own("schedules");
        let mut clauses = vec![Clause { subject: "schedules", verdict: "allowed", detail, decided_by }];
        clauses.extend(self.granted(Capability::Embedder, grant.events().map(|events| self.events(events))));
        clauses.extend(self.granted(Capability::Jobs, grant.jobs().map(|jobs| self.jobs(jobs))));
        clauses
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

fn introspect() -> Vec<Clause> {
    vec![Clause {
        subject: "introspect",
        verdict: "allowed",
        detail: "looks at settings, documents, and what the session's toolset declares".into(),
        decided_by: "built in, or its section".into(),
    }]
}

fn decided(origins: &Origins, key: &str) -> String {
    origins.get(key).map_or_else(|| key.to_owned(), |origin| format!("{key} ({origin})"))
}
