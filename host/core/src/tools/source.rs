//! Where plugins come from: what came with this program, declared programs, servers of others, and the files of directories. Here policy decides which of them are there at all,
//! before one takes a name.

pub use base::builtin::{Builtin, SearchBase, SearchServer};

use super::provider::{Component, PROGRAM, Program, Provider, Refused, Server, Template};
use super::registry::Registry;
use super::seen::Seen;
use audit::Audit;
use config::{ProgramSection, UpstreamSection};
use guest::sandbox::Sandbox;
use policy::in_force::InForce;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use tokio::sync::watch;
use upstream::Upstreams;

/// What a registry is read from, and read from again when it changes.
#[derive(Clone)]
pub struct PluginSource {
    builtins: &'static [Builtin],
    /// Those of the user: a policy may name others.
    directories: Vec<PathBuf>,
    policy: Arc<InForce>,
    /// What is told of plugins that a lock refuses.
    audit: Weak<Audit>,
    /// Keeps what was found of components, where somebody does.
    sandbox: Option<Arc<Sandbox>>,
    /// Starts the servers of others, where somebody does.
    upstreams: Option<Arc<Upstreams>>,
}

impl PluginSource {
    /// The built-in components, the programs and the servers that settings declare, and every `.wasm` of the directories, as far as `policy` admits them; it may
    /// name other directories.
    #[must_use]
    pub fn new(builtins: &'static [Builtin], directories: Vec<PathBuf>, policy: Arc<InForce>) -> Self {
        Self { builtins, directories, policy, audit: Weak::new(), sandbox: None, upstreams: None }
    }

    /// The same for a host: on its record, and with what it keeps between starts.
    #[must_use]
    pub(crate) fn of_host(self, audit: &Arc<Audit>, sandbox: &Arc<Sandbox>, upstreams: &Arc<Upstreams>) -> Self {
        let (sandbox, upstreams) = (Some(sandbox.clone()), Some(upstreams.clone()));
        Self { audit: Arc::downgrade(audit), sandbox, upstreams, ..self }
    }

    /// The directories, in the order in which they are read.
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        self.policy.policy().plugin_directories(self.directories.clone()).0
    }

    /// The components in directories of the user that the policy does not name.
    #[must_use]
    pub fn unread(&self) -> Vec<PathBuf> {
        let read = self.directories();
        let unread = self.directories.iter().filter(|directory| !read.contains(directory));
        unread.flat_map(|directory| components_in(directory)).collect()
    }

    /// Other directories whose files decide which plugins are there.
    #[must_use]
    pub fn deciding_directories(&self) -> Vec<PathBuf> {
        self.policy.directories()
    }

    /// Told when another policy decides which plugins are there.
    #[must_use]
    pub fn policy_changes(&self) -> watch::Receiver<()> {
        self.policy.changes()
    }

    /// Reads everything. What cannot be used is listed as refused.
    #[must_use]
    pub fn load(&self) -> Registry {
        let registry = self.read(None);
        self.record(&registry);
        registry
    }

    /// Reads everything anew; plugins whose bytes are the same stay compiled. Nothing if nothing has changed.
    #[must_use]
    pub fn reload(&self, before: &Registry) -> Option<Registry> {
        self.policy.look_anew();
        let anew = self.read(Some(before));
        self.record(&anew);
        (!anew.is_same(before)).then_some(anew)
    }

    fn record(&self, registry: &Registry) {
        let Some(audit) = self.audit.upgrade() else { return };
        let policy = self.policy.policy();
        let refused = registry.barred().filter_map(|plugin| Some((&**plugin, policy.check_locks(plugin).err()?)));
        let refused: Vec<_> = refused.collect();
        let by_locks = refused.iter().filter_map(|(plugin, barred)| Some((*plugin, barred.by_a_lock()?)));
        audit.refused_at_start(&by_locks.collect::<Vec<_>>());
    }

    fn read(&self, known: Option<&Registry>) -> Registry {
        let (policy, seen) = (self.policy.policy(), Seen::read(self.sandbox.clone()));
        let (limits, trusting) = (&policy.config().limits, !policy.is_locked());
        let plugins = self.builtins.iter().filter(|builtin| builtin.name != PROGRAM);
        let builtins = plugins.map(|builtin| Component::builtin(*builtin, &seen));
        let programs = self.programs(&seen);
        let files = self.directories().into_iter().flat_map(|directory| components_in(&directory));
        let files = files.map(|file| Component::found(&file, limits, &seen, trusting, policy.host_reads()));
        let provider = |component: Result<_, _>| component.map(|component| Box::new(component) as Box<dyn Provider>);
        let providers = builtins.map(provider).chain(programs).chain(self.servers()).chain(files.map(provider));
        let registry = Registry::read(providers, &policy, known);
        seen.keep(|sha256| registry.plugins().chain(registry.barred()).any(|plugin| plugin.sha256() == sha256));
        registry
    }
}

impl PluginSource {
    /// The declared programs.
    fn programs(&self, seen: &Seen) -> Vec<Result<Box<dyn Provider>, Refused>> {
        let (policy, program) = (self.policy.policy(), self.builtins.iter().find(|builtin| builtin.name == PROGRAM));
        let Some(program) = program.filter(|_| !policy.config().program.is_empty()) else { return Vec::new() };
        let template = match Component::builtin(*program, seen) {
            Ok(component) => Arc::new(Template::new(component)),
            Err(refused) => return vec![Err(refused)],
        };
        let program = |(name, section): (&String, &ProgramSection)| {
            let program = Program::new(name, section, template.clone(), policy.host_reads())?;
            Ok(Box::new(program) as Box<dyn Provider>)
        };
        policy.config().program.iter().map(program).collect()
    }
}

impl PluginSource {
    /// The servers of others.
    fn servers(&self) -> Vec<Result<Box<dyn Provider>, Refused>> {
        let policy = self.policy.policy();
        let server = |(name, section): (&String, &UpstreamSection)| {
            let server = Server::new(name, section, self.policy.config_directory(), self.upstreams.clone())?;
            Ok(Box::new(server) as Box<dyn Provider>)
        };
        policy.config().upstream.iter().map(server).collect()
    }
}

fn components_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "wasm")).collect();
    files.sort();
    files
}
