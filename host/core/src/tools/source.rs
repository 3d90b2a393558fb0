//! Where plugins come from: what came with the program, and the files of directories.

use super::registry::{Plugin, Registry};
use crate::config::Limits;
use std::path::{Path, PathBuf};

/// A component that comes with the program: file name, sha256 in hex, bytes.
pub type Builtin = (&'static str, &'static str, &'static [u8]);

/// What a registry is read from, and read from again when it changes.
#[derive(Clone, Debug)]
pub struct PluginSource {
    builtins: &'static [Builtin],
    directories: Vec<PathBuf>,
    limits: Limits,
}

impl PluginSource {
    /// The built-in components, and every `.wasm` of the directories within `limits`.
    #[must_use]
    pub fn new(builtins: &'static [Builtin], directories: Vec<PathBuf>, limits: Limits) -> Self {
        Self { builtins, directories, limits }
    }

    /// The directories, in the order in which they are read.
    #[must_use]
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Reads everything. What cannot be accepted is listed as refused.
    #[must_use]
    pub fn load(&self) -> Registry {
        Registry::read(self.plugins(), None)
    }

    /// Reads everything anew; plugins whose bytes are the same stay compiled. Nothing if nothing has changed.
    #[must_use]
    pub fn reload(&self, before: &Registry) -> Option<Registry> {
        let anew = Registry::read(self.plugins(), Some(before));
        (!anew.is_same(before)).then_some(anew)
    }

    fn plugins(&self) -> impl Iterator<Item = Result<Plugin, super::registry::Refused>> {
        let builtins = self.builtins.iter().map(|builtin| Plugin::builtin(*builtin));
        let files = self.directories.iter().flat_map(|directory| components_in(directory));
        builtins.chain(files.map(|file| Plugin::open(&file, &self.limits)))
    }
}

fn components_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "wasm")).collect();
    files.sort();
    files
}
