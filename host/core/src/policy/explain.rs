//! `toolcrib policy explain`: what a call of a tool may do, and which line decides, in the words of the grants themselves.

use super::admission::{Admission, Barred, Decider};
use super::browser::BrowserGrant;
use super::connections::open_to_all;
use super::embedder::EmbedderGrant;
use super::exec::ExecGrant;
use super::files::{CREDENTIALS, FilesGrant};
use super::http::HttpGrant;
use super::jobs::JobsGrant;
use super::lock::Enforced;
use super::mail::MailGrant;
use super::programs::ProgramsGrant;
use super::records::RecordsGrant;
use super::schedules::SchedulesGrant;
use super::search::Search;
use super::shell::ShellGrant;
use super::upstream::UpstreamGrant;
use super::vetting::Vetted;
use super::{Grants, Policy};
use crate::capability::Capability;
use crate::config::{
    Allowlist, CellNetwork, Confine, ConfineFloor, ConfineMode, FilesConfirm, HeldFiles, HostList, LeakAction,
    LeakGate, LockMode, Origin, Part, ProgramSection, Settings, Template, Unconfined, UpstreamConfirm, WORKSPACE,
};
use crate::envelope::Failure;
use crate::tools::manifest::Manifest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What is held of what commands make.
fn held(confine: &Confine) -> (&'static str, String, &'static str) {
    let opens = "what acts when somebody enters the directory, opens it or types a git command";
    let kept = listed(&confine.keep, "nothing");
    let held = match confine.held {
        HeldFiles::None => {
            return ("allowed", "what they make that acts by itself is told, and not held".into(), "confine.held");
        }
        HeldFiles::Opens => opens.to_owned(),
        HeldFiles::Words => format!("{opens}, and what agents take for their user's word"),
        HeldFiles::All => format!("{opens}, what agents take for their user's word, and what builds obey"),
    };
    ("asks", format!("what they make is held until a person says yes: {held}; but for: {kept}"), "confine.held")
}

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
        let (grants, origins, locks) = match self.admit(plugin) {
            Ok(admission) => {
                (self.grants_for(&admission), self.rights(&admission).origins, self.explain_locks(&admission))
            }
            Err(Barred { decider, failure, .. }) => {
                let Decider { key, place } = &*decider;
                let decided_by = match place {
                    Some(place) => format!("{key} ({place})"),
                    None => decided(settings, key),
                };
                return vec![Clause { subject: "calls", verdict: "denied", detail: failure.message, decided_by }];
            }
        };
        let settings = &Settings { origins: settings.origins.with(&origins), ..settings.clone() };
        let mut clauses = Vec::new();
        for capability in plugin.capabilities.iter().copied() {
            match capability {
                Capability::Shell | Capability::Panes | Capability::PaneSessions => {
                    clauses.extend(self.explain_shell(&grants, plugin, settings))
                }
                Capability::Exec => match grants.exec() {
                    Ok(grant) => clauses.extend(self.explain_programs(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Programs => match grants.programs() {
                    Ok(grant) => clauses.extend(self.explain_declared(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Files => match grants.files() {
                    Ok(grant) => clauses.extend(explain_files(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Http => clauses.extend(self.explain_http(&grants, plugin, settings)),
                Capability::Browser => match grants.browser() {
                    Ok(grant) => clauses.extend(explain_browser(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Mail => match grants.mail() {
                    Ok(grant) => clauses.push(explain_mail(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Embedder => match grants.embedder() {
                    Ok(grant) => clauses.extend(explain_events(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Introspect => match grants.introspect() {
                    Ok(()) => clauses.push(Clause {
                        subject: "introspect",
                        verdict: "allowed",
                        detail: "looks at settings, documents, and what the session's toolset declares".into(),
                        decided_by: "built in, or its section".into(),
                    }),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Records => match grants.records() {
                    Ok(grant) => clauses.extend(explain_records(grant, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Jobs => match grants.jobs() {
                    Ok(grant) => clauses.extend(self.explain_jobs(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Schedules => match grants.schedules() {
                    Ok(grant) => clauses.extend(self.explain_schedules(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Upstream => match grants.upstream() {
                    Ok(grant) => clauses.extend(explain_upstream(grant, plugin, settings)),
                    Err(refusal) => clauses.push(self.explain_refusal(capability, refusal, plugin, settings)),
                },
                Capability::Events => clauses.push(Clause {
                    subject: "events",
                    verdict: "allowed",
                    detail: "reports the progress of the call, within caps".into(),
                    decided_by: decided(settings, "limits.events"),
                }),
            }
        }
        clauses.extend(explain_config(grants.config(), plugin, settings));
        if clauses.is_empty() {
            let detail = "only computes; it imports no capability".into();
            clauses.push(Clause { subject: "nothing", verdict: "allowed", detail, decided_by: "its imports".into() });
        }
        if !self.config.secret.is_empty() {
            clauses.push(self.explain_leaks(settings));
        }
        locks.into_iter().chain(clauses).collect()
    }

    /// Explains what happens to secrets on their way out.
    fn explain_leaks(&self, settings: &Settings) -> Clause {
        let leaks = &self.config.leaks;
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
        Clause { subject: "leaks", verdict: "denied", detail, decided_by: decided(settings, "leaks.results") }
    }

    /// Why each lock lets the plugin be there.
    fn explain_locks(&self, admission: &Admission<'_>) -> Vec<Clause> {
        let admitted = self.locks.iter().zip(&admission.vetted);
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
    fn explain_refusal(
        &self,
        capability: Capability,
        refusal: Failure,
        plugin: &Manifest,
        settings: &Settings,
    ) -> Clause {
        let own = |key: &str| format!("plugin.{}.{key}", plugin.name());
        let off = self.switch(capability, plugin).filter(|(_, is_on)| !is_on);
        let mut keys: Vec<String> = off.map(|(key, _)| key.to_owned()).into_iter().collect();
        // A line about the bytes that were allowed does not decide on others.
        if !self.has_other_bytes(plugin) {
            keys.extend(capability.section().grants.iter().map(|key| own(key)));
        }
        keys.push(own("sha256"));
        let is_set = |key: &&String| settings.origins.get(key).is_some_and(|origin| *origin != Origin::Default);
        let decided_by = match keys.iter().find(is_set) {
            Some(key) => decided(settings, key),
            None => format!("no [plugin.{}] section", plugin.name()),
        };
        Clause { subject: capability.name(), verdict: "denied", detail: refusal.message, decided_by }
    }

    fn explain_shell(&self, grants: &Grants, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
        let own = format!("plugin.{}.shell", plugin.name());
        let grant = match grants.shell() {
            Err(refusal) => return vec![self.explain_refusal(Capability::Shell, refusal, plugin, settings)],
            Ok(grant) => grant,
        };
        let granted = if settings.origins.get(&own).is_some() { decided(settings, &own) } else { "built in".into() };
        let runs = match grant.pane {
            Ok(()) => "may run commands, and use panes where there is tmux",
            Err(_) => "may run commands, each in a process of its own",
        };
        let own = Clause { subject: "shell", verdict: "allowed", detail: runs.into(), decided_by: granted };
        [own].into_iter().chain(self.explain_commands("shell", grant, settings)).collect()
    }

    /// Explains which programs a plugin may start, and what binds them.
    fn explain_programs(&self, grant: &ExecGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
        let key = format!("plugin.{}.exec.programs", plugin.name());
        let decided_by = if settings.origins.get(&key).is_some() { decided(settings, &key) } else { "built in".into() };
        let programs = distinct(grant.programs().iter().map(|list| listed(list, "none")).collect());
        let detail = format!("programs: {}", programs.join(", of these only "));
        let own = Clause { subject: "exec", verdict: "allowed", detail, decided_by };
        [own].into_iter().chain(self.explain_commands("exec", grant.commands(), settings)).collect()
    }

    /// Explains which tools a plugin may submit as jobs, and what binds them.
    fn explain_jobs(&self, grant: &JobsGrant, plugin: &Manifest, settings: &Settings) -> [Clause; 2] {
        let key = format!("plugin.{}.jobs", plugin.name());
        let granted = if settings.origins.get(&key).is_some() { decided(settings, &key) } else { "built in".into() };
        let tools = distinct(grant.tools().iter().map(|list| listed(list, "none")).collect());
        let unattended = listed(&self.config.tools.unattended, "none");
        let clause = |detail, decided_by| Clause { subject: "jobs", verdict: "allowed", detail, decided_by };
        [
            clause(format!("submits jobs of these tools: {}", tools.join(", of these only ")), granted),
            clause(
                format!(
                    "a person is asked about commands when they are submitted; of other tools only these run as jobs: {unattended}"
                ),
                decided(settings, "tools.unattended"),
            ),
        ]
    }

    /// Explains what a plugin may have done at set times, and what binds that.
    fn explain_schedules(&self, grant: &SchedulesGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
        let key = format!("plugin.{}.schedules", plugin.name());
        let decided_by = if settings.origins.get(&key).is_some() { decided(settings, &key) } else { "built in".into() };
        let most = self.config.schedules.most;
        let detail = format!("has jobs and events at set times, at most {most} of one agent");
        let mut clauses = vec![Clause { subject: "schedules", verdict: "allowed", detail, decided_by }];
        match grant.events() {
            Ok(events) => clauses.extend(explain_events(events, plugin, settings)),
            Err(refusal) => clauses.push(self.explain_refusal(Capability::Embedder, refusal, plugin, settings)),
        }
        match grant.jobs() {
            Ok(jobs) => clauses.extend(self.explain_jobs(jobs, plugin, settings)),
            Err(refusal) => clauses.push(self.explain_refusal(Capability::Jobs, refusal, plugin, settings)),
        }
        clauses
    }

    /// Explains which declared programs a plugin may run, and what binds them.
    fn explain_declared(&self, grant: &ProgramsGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
        let program = |(name, section): (&str, &ProgramSection)| {
            format!("{name} ({}, sha256 {})", section.path.display(), &section.sha256[..12])
        };
        let key = match plugin.id.is_program() {
            true => format!("program.{}.path", plugin.name()),
            false => format!("plugin.{}.programs", plugin.name()),
        };
        let decided_by = if settings.origins.get(&key).is_some() { decided(settings, &key) } else { "built in".into() };
        let detail =
            format!("declared programs: {}", listed(&grant.declared().map(program).collect::<Vec<_>>(), "none"));
        let own = Clause { subject: "programs", verdict: "allowed", detail, decided_by };
        [own].into_iter().chain(self.explain_commands("programs", grant.commands(), settings)).collect()
    }

    /// Explains what binds all commands of a plugin.
    fn explain_commands(&self, subject: &'static str, grant: &ShellGrant, settings: &Settings) -> Vec<Clause> {
        let (verdict, detail) = if grant.confirms() {
            ("asks", "a person is shown every command first")
        } else {
            ("allowed", "commands run without a question")
        };
        let patterns = self.config.tools.shell_denylist.join("`, `");
        let denied =
            if patterns.is_empty() { "no command".into() } else { format!("commands that match `{patterns}`") };
        let clause = |verdict, detail: String, key: &str| {
            let decided_by = decided(settings, key);
            Clause { subject, verdict, detail, decided_by }
        };
        let mut clauses = vec![clause(verdict, detail.into(), "tools.shell_confirm")];
        clauses.extend(self.explain_cells().into_iter().map(|(verdict, detail, key)| clause(verdict, detail, key)));
        clauses.push(clause("denied", denied, "tools.shell_denylist"));
        if !grant.secrets.is_empty() {
            let detail = format!("commands that name them get the secrets: {}", grant.secrets.join(", "));
            clauses.push(clause("allowed", detail, "tools.shell_secrets"));
        }
        clauses
    }

    /// Explains how commands are confined on this machine: verdict, detail, and the setting that decides.
    fn explain_cells(&self) -> Vec<(&'static str, String, &'static str)> {
        let confine = &self.config.confine;
        let mode = match confine.mode {
            ConfineMode::Off => {
                return vec![("allowed", "commands have all rights of the user".into(), "confine.mode")];
            }
            ConfineMode::Auto => "commands run confined; where they cannot be, a person is asked about each",
            ConfineMode::Required => "commands run confined, or not at all",
        };
        let floor = match confine.floor {
            ConfineFloor::Full => "confined is what runs in namespaces of its own",
            ConfineFloor::Partial => {
                "where there can be no namespaces, partially confined counts, too: what can be read stays so, and a person is asked about each"
            }
        };
        let is_unasked = confine.network != CellNetwork::Full && !confine.ask;
        let name = |path: &PathBuf| match path.to_str() {
            Some(WORKSPACE) => "the workspace".to_owned(),
            Some(_) | None => path.display().to_string(),
        };
        let shown = |paths: &[PathBuf]| paths.iter().map(name).collect::<Vec<_>>();
        let written = listed(&shown(&confine.write), "nowhere");
        let hidden =
            listed(&[vec!["credentials, histories, Toolcrib's own state".into()], shown(&confine.hide)].concat(), "");
        let read = match &confine.read {
            Allowlist::Any => "they read all of the home but what is hidden".to_owned(),
            Allowlist::Only(list) => {
                format!(
                    "of the home they read, besides what they write and programs: {}",
                    listed(&shown(list), "nothing")
                )
            }
        };
        let caches: Vec<_> = confine.caches.iter().map(|name| format!("~/{name}")).collect();
        let mut clauses = vec![
            ("allowed", mode.into(), "confine.mode"),
            ("allowed", floor.into(), "confine.floor"),
            ("allowed", format!("confined commands write below: {written}"), "confine.write"),
            ("denied", format!("they cannot write there: {}", listed(&confine.protect, "nothing")), "confine.protect"),
            held(confine),
            ("allowed", format!("they write into copies of: {}", listed(&caches, "nothing")), "confine.caches"),
            ("allowed", read, "confine.read"),
            ("denied", format!("they cannot read: {hidden}"), "confine.hide"),
            ("allowed", format!("they are {}", confine.network.words()), "confine.network"),
        ];
        match confine.network {
            CellNetwork::None | CellNetwork::Full => {}
            CellNetwork::Egress => {
                let (hosts, ports) = (listed(&confine.hosts, "none"), listed(&confine.ports, "none"));
                let others = "; whether they reach another public one a person is asked";
                clauses.push(("allowed", format!("hosts that they reach: {hosts}{others}"), "confine.hosts"));
                let open = open_to_all(&confine.hosts);
                if !open.is_empty() {
                    let detail =
                        format!("of these serve everybody, so that data can leave by them: {}", open.join(", "));
                    clauses.push(("allowed", detail, "confine.hosts"));
                }
                clauses.push(("allowed", format!("ports of hosts: {ports}"), "confine.ports"));
            }
        }
        if confine.memory.bytes().is_some() {
            let detail = format!(
                "the commands of a cell take no more memory together than {}; where that cannot be enforced, none runs",
                confine.memory
            );
            clauses.push(("denied", detail, "confine.memory"));
        }
        if confine.debug {
            clauses.push(("allowed", "they look into processes of their own, as debuggers do".into(), "confine.debug"));
        }
        if is_unasked {
            clauses.push(("allowed", "those that need no more rights run without a question".into(), "confine.ask"));
        }
        clauses.push(match (confine.mode, confine.unconfined) {
            (ConfineMode::Off | ConfineMode::Auto, Unconfined::Ask) => {
                let again = "one that its cell refused something a person may let run unconfined, once, when it is called again";
                ("asks", again.into(), "confine.unconfined")
            }
            (ConfineMode::Required, Unconfined::Ask | Unconfined::Never) => ("denied", "none is ever let out of its cell".into(), "confine.mode"),
            (ConfineMode::Off | ConfineMode::Auto, Unconfined::Never) => {
                ("denied", "none is ever let out of its cell".into(), "confine.unconfined")
            }
        });
        clauses
    }

    fn explain_http(&self, grants: &Grants, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
        match grants.http() {
            Err(refusal) => vec![self.explain_refusal(Capability::Http, refusal, plugin, settings)],
            Ok(grant) => {
                let mut clauses = explain_requests(grant, plugin, settings);
                clauses.extend(self.explain_targets(settings));
                clauses
            }
        }
    }

    /// Explains what binds the requests of all plugins.
    fn explain_targets(&self, settings: &Settings) -> Vec<Clause> {
        let tools = &self.config.tools;
        let clause = |key: &str, is_allowed: bool, detail: String| {
            let verdict = if is_allowed { "allowed" } else { "denied" };
            Clause { subject: "http", verdict, detail, decided_by: decided(settings, &format!("tools.{key}")) }
        };
        let (domains, ranges, ports) = (&tools.fetch_allowed_domains, &tools.fetch_private_ranges, &tools.fetch_ports);
        let allowed = match domains {
            HostList::Any => "every public host".into(),
            HostList::Only(entries) => listed(entries, "no host"),
        };
        let private = match ranges.is_empty() {
            true => "private addresses, except those of hosts that `fetch_allowed_domains` names".into(),
            false => format!("private addresses: {}", listed(ranges, "none")),
        };
        vec![
            clause("fetch_allowed_domains", *domains != HostList::NOTHING, allowed),
            clause("fetch_blocked_domains", false, listed(&tools.fetch_blocked_domains, "no host")),
            clause("fetch_private_ranges", !ranges.is_empty(), private),
            clause("fetch_ports", !ports.is_empty(), format!("ports of public addresses: {}", listed(ports, "none"))),
            clause("fetch_plain_http", tools.fetch_plain_http, "requests without encryption".into()),
        ]
    }
}

/// Explains what a plugin may do with a browser. What binds its connections besides is said of requests.
fn explain_browser(grant: &BrowserGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
    let clause = |name: &str, is_allowed: bool, detail: String| {
        let key = format!("plugin.{}.browser.{name}", plugin.name());
        let decided_by = if settings.origins.get(&key).is_some() { decided(settings, &key) } else { "built in".into() };
        let verdict = if is_allowed { "allowed" } else { "denied" };
        Clause { subject: "browser", verdict, detail, decided_by }
    };
    let shown = |hosts: &HostList| match hosts {
        HostList::Any => "every host that requests may reach".to_owned(),
        HostList::Only(entries) => listed(entries, "no host"),
    };
    let hosts = distinct(grant.hosts().iter().map(shown).collect()).join(", of these only ");
    let (profiles, secrets) = (grant.profiles(), grant.secrets());
    vec![
        clause("hosts", true, format!("pages, and all that they load, from: {hosts}")),
        clause("profiles", !profiles.is_empty(), format!("profiles that stay: {}", listed(&profiles, "none"))),
        clause("evaluate", grant.evaluates(), "scripts of its own in pages".into()),
        clause("downloads", grant.downloads(), "files that pages download are kept".into()),
        clause("uploads", grant.uploads(), "files that it may read are given to pages".into()),
        clause("secrets", !secrets.is_empty(), format!("secrets in password fields: {}", listed(&secrets, "none"))),
    ]
}

/// What a server's tools may do, and what it reaches itself.
fn explain_upstream(grant: &UpstreamGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
    let (section, name) = (grant.section(), plugin.name());
    let asked = match section.confirm {
        UpstreamConfirm::None => "without a question".to_owned(),
        UpstreamConfirm::Writes if section.reads.is_empty() => "a person is asked about each call".to_owned(),
        UpstreamConfirm::Writes => format!("a person is asked about each call but of {}", section.reads.join(", ")),
        UpstreamConfirm::All => "a person is asked about each call".to_owned(),
    };
    let clause = |subject, detail, key: &str| {
        let decided_by = decided(settings, &format!("upstream.{name}.{key}"));
        Clause { subject, verdict: "allowed", detail, decided_by }
    };
    let calls = clause("calls of the server", asked, "confirm");
    if !section.url.is_empty() {
        let detail = format!("it is elsewhere, and gets what it is sent: {}", section.url);
        return vec![calls, clause("place of the server", detail, "url")];
    }
    let hosts: Vec<String> = section.hosts.iter().map(ToString::to_string).collect();
    let hosts = if hosts.is_empty() { "no host".to_owned() } else { hosts.join(", ") };
    let paths = |list: &[PathBuf]| list.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let files = match (section.read.is_empty(), section.write.is_empty()) {
        (true, true) => "its own home".to_owned(),
        (false, true) => format!("its own home, and reads {}", paths(&section.read)),
        (true, false) => format!("its own home, and writes {}", paths(&section.write)),
        (false, false) => format!("its own home, reads {} and writes {}", paths(&section.read), paths(&section.write)),
    };
    vec![
        calls,
        clause("network of the server", format!("confined, it reaches {hosts}"), "hosts"),
        clause("files of the server", format!("confined, it sees what the system brings and {files}"), "write"),
    ]
}

fn explain_mail(grant: &MailGrant, plugin: &Manifest, settings: &Settings) -> Clause {
    let key = format!("plugin.{}.mail", plugin.name());
    let decided_by = if settings.origins.get(&key).is_some() { decided(settings, &key) } else { "built in".into() };
    let detail =
        format!("reads the mail of these accounts, and changes nothing: {}", listed(&grant.accounts(), "none"));
    Clause { subject: "mail", verdict: "allowed", detail, decided_by }
}

/// Who decides where no setting does.
const BUILT_IN: &str = "built in";

/// Explains what binds the requests of one plugin.
fn explain_requests(grant: &HttpGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
    let clause = |verdict, detail, decided_by| Clause { subject: "http", verdict, detail, decided_by };
    let own = |name: &str| {
        let key = format!("plugin.{}.http.{name}", plugin.name());
        if settings.origins.get(&key).is_some() { decided(settings, &key) } else { BUILT_IN.into() }
    };
    let base = own("base");
    let hosts = match Search::of(plugin) {
        Some(Search::Page) if base == BUILT_IN => decided(settings, "tools.search_endpoint"),
        Some(Search::Page | Search::Brave | Search::Searxng) => base,
        None => own("hosts"),
    };
    let (verdict, asked) = if grant.confirms() {
        ("asks", "a person is shown every request first")
    } else {
        ("allowed", "requests are made without a question")
    };
    let mut clauses = vec![
        clause("allowed", format!("requests to {}", reached(grant.hosts())), hosts),
        clause("allowed", format!("methods: {}", listed(&grant.methods(), "none")), own("methods")),
        clause("allowed", below(grant.paths()), own("paths")),
        clause(verdict, asked.into(), decided(settings, "tools.fetch_confirm")),
    ];
    let headers: Vec<_> = grant.headers().collect();
    if !headers.is_empty() {
        clauses.push(clause("allowed", format!("the host adds: {}", headers.join("; ")), own("headers")));
    }
    clauses
}

/// Explains what a plugin may keep.
fn explain_records(grant: &RecordsGrant, settings: &Settings) -> [Clause; 2] {
    let clause = |verdict, detail: &str, key| Clause {
        subject: "records",
        verdict,
        detail: detail.into(),
        decided_by: decided(settings, key),
    };
    let (verdict, asked) = match grant.confirms() {
        true => ("asks", "a person is shown the changes that it wants approved"),
        false => ("allowed", "nobody is asked about changes"),
    };
    [
        clause("allowed", "keeps documents of its own for the agent, within limits", "store.items"),
        clause(verdict, asked, "tools.records_confirm"),
    ]
}

/// Explains what binds the events of one plugin.
fn explain_events(grant: &EmbedderGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
    let key = format!("plugin.{}.embedder.kinds", plugin.name());
    let granted = if settings.origins.get(&key).is_some() { decided(settings, &key) } else { "built in".into() };
    let kinds = distinct(grant.kinds().iter().map(|list| listed(list, "none")).collect());
    let clause = |verdict, detail, decided_by| Clause { subject: "embedder", verdict, detail, decided_by };
    let (verdict, asked) = match grant.confirms() {
        [] => ("allowed", "events go to the embedder without a question".to_owned()),
        kinds => ("asks", format!("a person is shown events of these kinds first: {}", listed(kinds, "none"))),
    };
    vec![
        clause("allowed", format!("events for the embedder: {}", kinds.join(", of these only ")), granted),
        clause(verdict, asked, decided(settings, "embedder.confirm")),
    ]
}

/// The values that it gets, whatever it imports.
fn explain_config(config: &BTreeMap<String, Template>, plugin: &Manifest, settings: &Settings) -> Option<Clause> {
    if config.is_empty() {
        return None;
    }
    let secrets = |template: &Template| template.parts().iter().any(|part| matches!(part, Part::Secret(_)));
    let shown = |(name, template): (&String, &Template)| match secrets(template) {
        true => format!("`{name}`, where a word stands for the secret"),
        false => format!("`{name}`"),
    };
    let detail = format!("gets the values {}", config.iter().map(shown).collect::<Vec<_>>().join(", "));
    let decided_by = decided(settings, &format!("plugin.{}.config", plugin.name()));
    Some(Clause { subject: "config", verdict: "allowed", detail, decided_by })
}

fn explain_files(grant: &FilesGrant, plugin: &Manifest, settings: &Settings) -> Vec<Clause> {
    let own = |verb: &str| format!("plugin.{}.files.{verb}", plugin.name());
    let (read, write) = (own("read"), own("write"));
    let clause = |subject, lists: &[Allowlist], key: &str, otherwise: String| {
        let is_denied = lists.contains(&Allowlist::NOTHING);
        let section = format!("plugin.{}.sha256", plugin.name());
        let decided_by = match settings.origins.get(key) {
            Some(_) => decided(settings, key),
            // The section grants other things, and not this.
            None if is_denied && settings.origins.get(&section).is_some() => {
                format!("no `{key}` beside {}", decided(settings, &section))
            }
            None => otherwise,
        };
        Clause { subject, verdict: if is_denied { "denied" } else { "allowed" }, detail: places(lists), decided_by }
    };
    let mut clauses = vec![
        clause("files.read", grant.readable(), &read, decided(settings, "tools.files_read_paths")),
        clause("files.write", grant.writable(), &write, decided(settings, "tools.files_allowed_paths")),
    ];
    if !grant.readable().contains(&Allowlist::NOTHING) {
        let bounds = grant.bounds_of_reading();
        let verdict = if bounds.contains(&Allowlist::NOTHING) { "denied" } else { "allowed" };
        let decided_by = decided(settings, "tools.files_read_paths");
        clauses.push(Clause { subject: "files.read", verdict, detail: places(bounds), decided_by });
        let closed = CREDENTIALS.map(|class| class.what).join(", ");
        let detail = format!("Toolcrib's own state, /proc, /sys, /dev, {closed}");
        clauses.push(Clause { subject: "files.read", verdict: "denied", detail, decided_by: "built in".into() });
    }
    if !grant.writable().contains(&Allowlist::NOTHING) {
        clauses.push(explain_asked(grant.confirms(), settings));
    }
    clauses
}

/// Explains which writes a person is asked about.
fn explain_asked(confirms: FilesConfirm, settings: &Settings) -> Clause {
    let (verdict, detail) = match confirms {
        FilesConfirm::Never => ("allowed", "no write is asked about"),
        FilesConfirm::RunsLater => ("asks", "a person is shown writes to files that run later"),
        FilesConfirm::Outside => {
            ("asks", "a person is shown writes outside the workspace, and to files that run later")
        }
        FilesConfirm::Always => ("asks", "a person is shown every write"),
    };
    let decided_by = decided(settings, "tools.files_confirm");
    Clause { subject: "files.write", verdict, detail: detail.into(), decided_by }
}

fn decided(settings: &Settings, key: &str) -> String {
    settings.origins.get(key).map_or_else(|| key.to_owned(), |origin| format!("{key} ({origin})"))
}

fn places(lists: &[Allowlist]) -> String {
    if lists.contains(&Allowlist::NOTHING) {
        return "nowhere".into();
    }
    let shown = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let named: Vec<String> = lists
        .iter()
        .filter_map(|list| match list {
            Allowlist::Any => None,
            Allowlist::Only(paths) => Some(shown(paths)),
        })
        .collect();
    let named = distinct(named);
    if named.is_empty() {
        "everything that is not protected".into()
    } else {
        format!("below {}", named.join(", and also below "))
    }
}

fn reached(lists: &[HostList]) -> String {
    let named = lists.iter().filter_map(|list| match list {
        HostList::Any => None,
        HostList::Only(entries) => Some(listed(entries, "no host")),
    });
    let named = distinct(named.collect());
    if named.is_empty() { "every host".into() } else { named.join(", of these only ") }
}

fn below(lists: &[Vec<String>]) -> String {
    let named = distinct(lists.iter().map(|prefixes| listed(prefixes, "none")).collect());
    if named.is_empty() { "every path".into() } else { format!("paths below {}", named.join(", and also below ")) }
}

/// Several locks may say the same.
fn distinct(lists: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for list in lists {
        if !all.contains(&list) {
            all.push(list);
        }
    }
    all
}

fn listed(entries: &[impl ToString], none: &str) -> String {
    let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
    if entries.is_empty() { none.into() } else { entries.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostPattern;

    #[test]
    fn hosts_are_named_by_every_list_that_binds() {
        let only =
            |names: &[&str]| HostList::Only(names.iter().map(|name| HostPattern::exact(name).unwrap()).collect());
        assert_eq!(reached(&[HostList::Any]), "every host");
        assert_eq!(reached(&[HostList::Any, only(&["a.com", "*.b.com"])]), "a.com, *.b.com");
        assert_eq!(reached(&[only(&["a.com", "b.com"]), only(&["b.com"])]), "a.com, b.com, of these only b.com");
        assert_eq!(reached(&[HostList::NOTHING]), "no host");
    }

    #[test]
    fn paths_are_named_by_every_list_that_binds() {
        let (v1, x) = (vec!["/v1".to_owned(), "/v2".to_owned()], vec!["/v1/x".to_owned()]);
        assert_eq!(below(&[]), "every path");
        assert_eq!(below(&[v1, x]), "paths below /v1, /v2, and also below /v1/x");
    }
}
