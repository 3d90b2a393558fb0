//! From settings to grants: what each plugin may do, and the words of every refusal.
//!
//! Settings are read in `config`. A grant is made only here, and a capability acts only through its grant. What a decision may know of its call
//! is a `Scope`: the session, who asks and who answers, the record, and the guard of what leaves.
//!
//! It depends on what it decides on (`file_access`, `backend`, `command`, `contract`, `keys`, `leaks`, `kept_output`, `secrets`), on `config`, `vetting`,
//! `audit`, `chained_log` and `base`; on nothing that acts for a call.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

pub mod admission;
pub mod approval;
pub mod browser;
pub mod confine;
pub mod connections;
pub mod embedder;
pub mod event;
pub mod exec;
pub mod explain;
mod files;
mod grants;
pub mod guard;
pub mod held;
pub mod host_reads;
pub mod hosts;
pub mod http;
pub mod in_force;
pub mod introspect;
pub mod jobs;
pub mod keys;
mod let_out;
pub mod lock;
pub mod mail;
pub mod own_cell;
pub mod programs;
pub mod purpose;
pub mod records;
pub mod rules;
pub mod run;
pub mod schedules;
pub mod scope;
mod search;
pub mod session;
pub mod shell;
pub mod toolset;
pub mod typing;
pub mod upstream;
pub mod writes;

pub use ::vetting;
use admission::Admission;
use base::capability::{Capability, Switch};
use base::dirs::Dirs;
use base::disk::OwnDir;
use base::envelope::Failure;
use command::Denylist;
pub use config::Level;
use config::{Ceiling, Config, Needed, Origin, Origins, PluginRights, Settings, Template};
use confine::Confine;
use contract::manifest::{Manifest, PluginId};
use file_access::Protected;
use held::Watch;
use host_reads::HostReads;
use lock::Enforced;
use parking_lot::Mutex;
use rules::KeptRules;
use search::searches;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vetting::Vetted;
use vetting::marks::Marks;

// The grant that decides on each capability: how it is made and explained, its file says.
grants::grants! {
    Shell | Panes | PaneSessions => shell: shell::ShellGrant,
    Exec => exec: exec::ExecGrant,
    Programs => programs: programs::ProgramsGrant,
    Files => files: file_access::FilesGrant,
    Http => http: http::HttpGrant,
    Browser => browser: browser::BrowserGrant,
    Mail => mail: mail::MailGrant,
    Embedder => embedder: embedder::EmbedderGrant,
    Introspect => introspect: introspect::IntrospectGrant,
    Records => records: records::RecordsGrant,
    Jobs => jobs: jobs::JobsGrant,
    Schedules => schedules: schedules::SchedulesGrant,
    Upstream => upstream: Arc<upstream::UpstreamGrant>,
}

/// What contexts are called that say who an agent is (Spacebot, OpenOtters).
const IDENTITIES: [&str; 3] = ["SOUL", "IDENTITY", "ROLE"];
/// Plugins whose grants are kept.
const GRANTS_KEPT: usize = 1024;

/// The settings of this host, ready to decide.
pub struct Policy {
    config: Arc<Config>,
    locks: Vec<Enforced>,
    level: Level,
    /// What was seen of lists; none where no lock has one.
    marks: Option<Arc<Marks>>,
    /// What whoever starts this should know.
    notice: Option<String>,
    /// The rights of plugins that locks bind, as they were vetted then.
    bound: Mutex<HashMap<PluginId, Bound>>,
    /// What plugins may do that no lock binds.
    granted: Mutex<HashMap<PluginId, Arc<Grants>>>,
    denylist: Arc<Denylist>,
    confine: Arc<Confine>,
    rules: Arc<KeptRules>,
    protected: Arc<Protected>,
    /// The same for another place, by names.
    elsewhere: Arc<Protected>,
    reads: HostReads,
}

/// The rights of a plugin under locks.
#[derive(Clone)]
struct Bound {
    vetted: Vec<Option<Arc<Vetted>>>,
    rights: Arc<PluginRights>,
    /// The settings within these locks, whose hints name their lines.
    config: Arc<Config>,
    /// Where what locks changed comes from.
    origins: Arc<Origins>,
}

impl Bound {
    /// Whether it is of these very statements.
    fn is_of(&self, vetted: &[Option<Arc<Vetted>>]) -> bool {
        let is_same = |one: &Option<Arc<Vetted>>, other: &Option<Arc<Vetted>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        self.vetted.len() == vetted.len() && self.vetted.iter().zip(vetted).all(|(one, other)| is_same(one, other))
    }
}

impl Policy {
    /// Prepares what the settings say; `policies` are the files that hold policy, which no plugin may write.
    ///
    /// # Errors
    ///
    /// When a pattern of the denylist cannot be enforced, or a directory cannot be one that confined commands write in.
    pub fn new(settings: &Settings, dirs: &Dirs, policies: &[PathBuf]) -> Result<Self, Failure> {
        Self::with(None, Arc::default(), None, settings, dirs, policies)
    }

    /// The policy of other settings, which remembers what this one has seen.
    pub fn anew(&self, settings: &Settings, dirs: &Dirs, policies: &[PathBuf]) -> Result<Self, Failure> {
        let policy = Self::with(self.marks.clone(), self.confine.watch(), None, settings, dirs, policies)?;
        policy.rules.look_again();
        Ok(policy)
    }

    /// The same for the sessions of a toolset, whose grant is in these settings.
    pub(crate) fn of_toolset(
        &self,
        toolset: &str,
        settings: &Settings,
        dirs: &Dirs,
        policies: &[PathBuf],
    ) -> Result<Self, Failure> {
        let policy = Self::with(self.marks.clone(), self.confine.watch(), Some(toolset), settings, dirs, policies)?;
        policy.rules.look_again();
        Ok(policy)
    }

    fn with(
        marks: Option<Arc<Marks>>,
        watch: Arc<Watch>,
        toolset: Option<&str>,
        settings: &Settings,
        dirs: &Dirs,
        policies: &[PathBuf],
    ) -> Result<Self, Failure> {
        // Only where lists can be rolled back: without one nothing is written for this.
        let has_lists = settings.locks.iter().any(|lock| lock.signed.is_some());
        let mut notice = None;
        let open = || {
            let (marks, told) = Marks::open(OwnDir::open(&dirs.state));
            notice = told;
            Arc::new(marks)
        };
        let marks = has_lists.then(|| marks.unwrap_or_else(open));
        let config = Arc::new(settings.config.clone());
        check_secrets(&config)?;
        check_accounts(&config)?;
        let denylist = Arc::new(Denylist::parse(&config.tools.shell_denylist)?.of(config.remedies()));
        // Of a trail elsewhere the whole directory: rotated files and the key are beside it. Likewise of a list, with its signatures.
        let lists = settings.locks.iter().filter_map(|lock| Some(lock.signed.as_ref()?.list.as_path()));
        let own = settings.trail.file.as_deref().into_iter().chain(lists).filter_map(Path::parent);
        let policies: Vec<_> = policies.iter().cloned().chain(own.map(Path::to_owned)).collect();
        let closed =
            || Protected::new(dirs, &policies).with(&secrets::files(&config, dirs), "a secret of Toolcrib's settings");
        let identities = identities(&config);
        let protected = closed().with(&identities, "what an agent is, which `context_show` shows");
        let elsewhere = Protected::elsewhere();
        let level = Level::of(&settings.locks, rustix::process::geteuid().as_raw(), config.confine.mode);
        let locks = settings.locks.iter().map(|lock| Enforced::new(lock.clone(), marks.as_ref())).collect();
        let (protected, elsewhere) = (Arc::new(protected), Arc::new(elsewhere));
        let confine = Arc::new(Confine::new(&config, dirs, &protected, watch, toolset)?);
        let path = dirs.environment.get("PATH").map(OsStr::to_owned).unwrap_or_default();
        let rules = KeptRules::new(settings, confine.clone(), std::env::split_paths(&path).collect())?;
        let rules = Arc::new(rules);
        // What only the host shows is no secret to it.
        let to_host = if identities.is_empty() { protected.clone() } else { Arc::new(closed()) };
        let reads = HostReads::new(to_host, confine.clone(), dirs.home.clone());
        let (bound, granted) = (Mutex::default(), Mutex::default());
        Ok(Self {
            config,
            locks,
            level,
            marks,
            notice,
            bound,
            granted,
            denylist,
            confine,
            rules,
            protected,
            elsewhere,
            reads,
        })
    }

    /// What whoever starts this should know.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// What opens files that the host reads for itself.
    #[must_use]
    pub fn host_reads(&self) -> &HostReads {
        &self.reads
    }

    /// The rules that answer questions.
    #[must_use]
    pub fn rules(&self) -> &Arc<KeptRules> {
        &self.rules
    }

    /// How far the machine is locked for this process.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// The settings that decide.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns what a plugin may do, for listings; one that is not admitted may do nothing.
    #[must_use]
    pub fn grants_of(&self, plugin: &Manifest) -> Arc<Grants> {
        self.admit(plugin)
            .map_or_else(|barred| Arc::new(Grants::refused(&barred.failure)), |admission| self.grants_for(&admission))
    }

    /// Returns what an admitted plugin may do. For what it does not import it has no grant: it cannot ask for it.
    #[must_use]
    pub fn grants_for(&self, admission: &Admission<'_>) -> Arc<Grants> {
        let plugin = admission.manifest();
        // What locks leave of rights may be another thing at another time; settings stay what they are.
        if !self.locks.is_empty() {
            return Arc::new(self.grants_now(admission));
        }
        let mut all = self.granted.lock();
        if let Some(grants) = all.get(&plugin.id) {
            return grants.clone();
        }
        let grants = Arc::new(self.grants_now(admission));
        // Plugins that come and go do not pile up.
        if all.len() >= GRANTS_KEPT {
            all.clear();
        }
        all.insert(plugin.id.clone(), grants.clone());
        grants
    }

    fn grants_now(&self, admission: &Admission<'_>) -> Grants {
        let plugin = admission.manifest();
        let bound = self.rights(admission);
        let mut grants = Grants { config: bound.rights.config.clone(), ..Grants::none() };
        for capability in plugin.capabilities.iter().copied() {
            let is_on = self.switched_on(capability, plugin);
            grants.add(capability, is_on, self, plugin, &bound);
        }
        grants
    }

    /// The rights of an admitted plugin: what settings give it, within what locks leave it.
    fn rights(&self, admission: &Admission<'_>) -> Bound {
        let plugin = admission.manifest();
        let rights = |config: &Config| config.plugin_rights(plugin.name(), plugin.sha256(), plugin.id.is_builtin());
        let is_bound =
            self.locks.iter().zip(&admission.vetted).any(|(lock, vetted)| lock.binds(plugin, vetted.is_some()));
        if !is_bound {
            let (vetted, config) = (Vec::new(), self.config.clone());
            return Bound { vetted, rights: Arc::new(rights(&config)), config, origins: Arc::default() };
        }
        let mut all = self.bound.lock();
        if let Some(bound) = all.get(&plugin.id).filter(|bound| bound.is_of(&admission.vetted)) {
            return bound.clone();
        }
        let nothing = Ceiling::nothing(&self.locks[0].lock.place);
        let (mut gets, mut at_most) = (None, Vec::new());
        for (lock, vetted) in self.locks.iter().zip(&admission.vetted) {
            let (given, ceilings) = lock.ceilings(plugin, vetted.as_deref(), &nothing);
            // What the second lock gives is no more than what it leaves.
            at_most.extend(given.filter(|_| gets.is_some()));
            gets = gets.or(given);
            at_most.extend(ceilings);
        }
        let (config, origins) = self.config.under_locks(plugin.name(), plugin.sha256(), gets, &at_most);
        let vetted = admission.vetted.clone();
        let (rights, origins) = (Arc::new(rights(&config)), Arc::new(origins));
        let bound = Bound { vetted, rights, config: Arc::new(config), origins };
        all.insert(plugin.id.clone(), bound.clone());
        bound
    }

    /// Says why a plugin has no right to a capability, and what would give it: a line of its section, or an option of `allow`.
    fn not_granted(
        &self,
        plugin: &Manifest,
        bound: &Bound,
        capability: Capability,
        line: &str,
        option: &str,
    ) -> Failure {
        let (name, file) = (plugin.name(), plugin.id.origin());
        let (why, hint) = if plugin.id.is_builtin() {
            ("which its section takes away", format!("remove the key from [plugin.{name}], or write `{line}`"))
        } else if self.has_other_bytes(plugin) {
            (
                "but these are not the bytes that were allowed",
                format!(
                    "look at it with `toolcrib plugin inspect {file}`, then allow it: `toolcrib plugin allow {file} {option}`"
                ),
            )
        } else if self.allowed_digest(name).is_some() {
            ("which the policy does not grant", format!("add `{line}` under [plugin.{name}]"))
        } else {
            ("which the policy does not grant", format!("allow it: `toolcrib plugin allow {file} {option}`"))
        };
        let remedies = bound.config.remedies();
        let hint = remedies.hint(&format!("plugin.{name}.sha256"), &Needed::Entry(plugin.sha256()), hint);
        let is_switch = capability.is_switch();
        let wanted = if is_switch { Needed::On } else { Needed::Any };
        let keys = capability.section().grants.iter().map(|key| format!("plugin.{name}.{key}"));
        // The first that decides is named.
        let hint = keys.rev().fold(hint, |hint, key| remedies.hint(&key, &wanted, hint));
        // What locks leave of lists that each give something may be nothing.
        let key = format!("plugin.{name}.{}", line.split(' ').next().unwrap_or_default());
        let hint = match bound.origins.get(&key) {
            Some(Origin::Narrowed(place)) => format!("the operator's policy decides this: `{key}` in {place}"),
            _ => hint,
        };
        Failure::denied(format!("`{name}` needs `{}`, {why}", capability.name())).hint(hint)
    }

    fn allowed_digest(&self, name: &str) -> Option<&str> {
        self.config.plugin.get(name)?.sha256.as_deref()
    }

    /// Whether its section is about other bytes than these.
    fn has_other_bytes(&self, plugin: &Manifest) -> bool {
        let digest = self.allowed_digest(plugin.name());
        digest.is_some_and(|digest| !digest.eq_ignore_ascii_case(plugin.sha256()))
    }

    /// The key of `[tools]` that switches a capability for every plugin, and what it says; none where there is no such switch.
    fn switch(&self, capability: Capability, plugin: &Manifest) -> Option<(&'static str, bool)> {
        let tools = &self.config.tools;
        Some(match capability.switched_by()? {
            Switch::Shell => ("tools.shell_enabled", tools.shell_enabled),
            Switch::Files => ("tools.files_enabled", tools.files_enabled),
            Switch::Fetch if plugin.search.is_some() => ("tools.search_enabled", tools.search_enabled),
            // A provider from elsewhere needs both.
            Switch::Fetch if searches(plugin) && !tools.search_enabled => ("tools.search_enabled", false),
            Switch::Fetch => ("tools.fetch_enabled", tools.fetch_enabled),
            Switch::Browser => ("tools.browser_enabled", tools.browser_enabled),
            Switch::Mail => ("tools.mail_enabled", tools.mail_enabled),
        })
    }

    fn switched_on(&self, capability: Capability, plugin: &Manifest) -> Result<(), Failure> {
        let Some((key, false)) = self.switch(capability, plugin) else { return Ok(()) };
        let name = capability.decided_with().name();
        let line = format!(
            "set `{} = true` under [tools]; `toolcrib config show --origin` says where it was switched off",
            key.trim_start_matches("tools.")
        );
        Err(Failure::denied(format!("`{name}` is switched off by `{key} = false`")).hint(self.config.remedies().hint(
            key,
            &Needed::On,
            line,
        )))
    }
}

/// The files that say who an agent is: contexts of toolsets by the names that they have for that. An agent that writes them makes itself another.
fn identities(config: &Config) -> Vec<PathBuf> {
    let contexts = config.toolset.values().flat_map(|toolset| &toolset.context);
    let is_identity = |name: &str| IDENTITIES.iter().any(|identity| name.eq_ignore_ascii_case(identity));
    contexts.filter(|(name, _)| is_identity(name)).map(|(_, context)| context.file.clone()).collect()
}

/// Checks that each secret which commands are to get may be given to them.
fn check_secrets(config: &Config) -> Result<(), Failure> {
    let is_lent = |name: &&String| config.secret.get(*name).is_some_and(|section| section.env);
    match config.tools.shell_secrets.iter().find(|name| !is_lent(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("`shell_secrets` under [tools] names `{name}`, which no command may get");
            Err(Failure::invalid(message).hint(format!("set `env = true` under [secret.{name}], or remove it")))
        }
    }
}

/// Checks that each mail account can be one.
fn check_accounts(config: &Config) -> Result<(), Failure> {
    match config.mail.iter().find_map(|(name, section)| Some((name, section.flaw()?))) {
        None => Ok(()),
        Some((name, (what, line))) => {
            Err(Failure::invalid(format!("[mail.{name}] {what}")).hint(format!("write {line}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Sources;
    use contract::manifest;
    use contract::manifest::PluginId;

    /// Whoever was granted nothing is refused everything that a section can grant, by a line or an option that would.
    #[test]
    fn a_plugin_without_a_section_is_refused_every_capability_that_needs_a_grant() {
        let home = tempfile::tempdir().unwrap();
        let dirs = Dirs::below(home.path());
        let settings = Settings::load(&Sources { home: dirs.home.clone(), ..Sources::default() }).unwrap();
        let policy = Policy::new(&settings, &dirs, &[]).unwrap();
        for capability in Capability::ALL {
            let id = PluginId {
                name: "stranger".into(),
                sha256: "0".repeat(64),
                origin: manifest::Origin::File("s.wasm".into()),
            };
            let manifest = Manifest::new(id, vec!["stranger".into()], vec![capability], Vec::new()).unwrap();
            let needs_a_grant = !capability.section().grants.is_empty();
            let refusal = policy.grants_of(&manifest).refusal(capability);
            assert_eq!(refusal.is_some(), needs_a_grant, "{capability:?}");
            assert_eq!(Grants::none().refusal(capability).is_some(), needs_a_grant, "{capability:?}");
            let clause = policy.explain(&manifest, &settings).remove(0);
            assert_eq!(clause.verdict, if needs_a_grant { "denied" } else { "allowed" }, "{capability:?}");
        }
    }
}
