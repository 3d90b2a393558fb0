//! Where plugins come from: what came with the program, and the files of directories. Here policy decides which of them are there at all,
//! before one takes a name.

use super::provider::{Component, Provider, Refused};
use super::registry::Registry;
use crate::audit::Audit;
use crate::policy::in_force::InForce;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// A component that comes with the program: file name, sha256 in hex, bytes.
pub type Builtin = (&'static str, &'static str, &'static [u8]);

/// What a registry is read from, and read from again when it changes.
#[derive(Clone)]
pub struct PluginSource {
    builtins: &'static [Builtin],
    /// Those of the user: a policy may name others.
    directories: Vec<PathBuf>,
    policy: Arc<InForce>,
    /// What is told of plugins that a lock refuses.
    audit: Weak<Audit>,
}

impl PluginSource {
    /// The built-in components, and every `.wasm` of the directories, as far as `policy` admits them; it may name other directories.
    #[must_use]
    pub fn new(builtins: &'static [Builtin], directories: Vec<PathBuf>, policy: Arc<InForce>) -> Self {
        Self { builtins, directories, policy, audit: Weak::new() }
    }

    /// The same, on record.
    #[must_use]
    pub(crate) fn audited(self, audit: &Arc<Audit>) -> Self {
        Self { audit: Arc::downgrade(audit), ..self }
    }

    /// The directories, in the order in which they are read.
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        self.policy.policy().plugin_directories(self.directories.clone()).0
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
        let registry = Registry::read(self.providers(), &self.policy.policy(), None);
        self.record(&registry);
        registry
    }

    /// Reads everything anew; plugins whose bytes are the same stay compiled. Nothing if nothing has changed.
    #[must_use]
    pub fn reload(&self, before: &Registry) -> Option<Registry> {
        self.policy.look_anew();
        let anew = Registry::read(self.providers(), &self.policy.policy(), Some(before));
        self.record(&anew);
        (!anew.is_same(before)).then_some(anew)
    }

    fn record(&self, registry: &Registry) {
        let Some(audit) = self.audit.upgrade() else { return };
        let policy = self.policy.policy();
        for plugin in registry.barred() {
            if let Err(barred) = policy.check_locks(plugin) {
                audit.refused(plugin, &barred);
            }
        }
    }

    fn providers(&self) -> impl Iterator<Item = Result<Box<dyn Provider>, Refused>> {
        let builtins = self.builtins.iter().map(|builtin| Component::builtin(*builtin));
        let policy = self.policy.policy();
        let files = self.directories().into_iter().flat_map(|directory| components_in(&directory));
        let components = builtins.chain(files.map(move |file| Component::open(&file, &policy.config().limits)));
        components.map(|component| component.map(|component| Box::new(component) as Box<dyn Provider>))
    }
}

fn components_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "wasm")).collect();
    files.sort();
    files
}
