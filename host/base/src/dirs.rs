//! Where Toolcrib keeps things, by the XDG rules. What is Toolcrib's own there is opened by `disk.rs`.

use crate::environment::Environment;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The audit trail in the state.
pub const TRAIL: &str = "audit.jsonl";

/// The directories of one user, and the environment.
#[derive(Clone)]
pub struct Dirs {
    /// The user's home.
    pub home: PathBuf,
    /// `toolcrib.toml`.
    pub config: PathBuf,
    /// The user's plugins.
    pub data: PathBuf,
    /// Audit, compiled code, keys, kept output, trusted projects.
    pub state: PathBuf,
    /// The variables of the user's environment: they say where other programs keep credentials, and are what commands can be given.
    pub environment: Environment,
}

impl Dirs {
    /// Directories below one root, for tests and embedders.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        Self {
            home: root.join("home"),
            config: root.join("config"),
            data: root.join("data"),
            state: root.join("state"),
            environment: Environment::default(),
        }
    }

    /// Where a path of the settings leads: `~/` is the user's home.
    #[must_use]
    pub fn expand(&self, path: &str) -> PathBuf {
        path.strip_prefix("~/").map_or_else(|| path.into(), |below| self.home.join(below))
    }

    /// The user's settings.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.config.join("toolcrib.toml")
    }

    /// Where every `.wasm` is loaded from.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.data.join("plugins")
    }

    /// The audit trail, one JSON line an entry.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.state.join(TRAIL)
    }

    /// The sockets of programs whose calls can be listed.
    #[must_use]
    pub fn calls(&self) -> PathBuf {
        self.state.join("calls")
    }

    /// Output that was cut, kept for later reading.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.state.join("output")
    }
}

/// Returns the directory that a file is in, also for a bare name, whose `Path::parent` is empty.
#[must_use]
pub fn directory_of(file: &Path) -> Option<&Path> {
    file.parent().map(|directory| if directory == Path::new("") { Path::new(".") } else { directory })
}

/// Replaces a file of the user's own, such as settings, whole or not at all; one that was there keeps its mode.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let before = std::fs::metadata(path).map(|metadata| metadata.permissions());
    // Temporary files of this library are made with mode 0600.
    put(path, bytes, 0o700, before.ok())
}

/// Replaces a file that everybody may read, such as a policy of the machine, whole or not at all.
pub fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put(path, bytes, 0o755, Some(Permissions::from_mode(0o644)))
}

fn put(path: &Path, bytes: &[u8], directories: u32, permissions: Option<Permissions>) -> io::Result<()> {
    let directory = directory_of(path).unwrap_or(path);
    if !directory.is_dir() {
        std::fs::DirBuilder::new().mode(directories).recursive(true).create(directory)?;
        // Whatever this process's mask is.
        std::fs::set_permissions(directory, Permissions::from_mode(directories))?;
    }
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_data()?;
    file.persist(path)?;
    // Its name is to outlast a crash, too.
    File::open(directory)?.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_in_the_working_directory() {
        for (file, directory) in [("a.toml", "."), ("./a.toml", "."), ("b/a.toml", "b"), ("/a.toml", "/")] {
            assert_eq!(directory_of(Path::new(file)), Some(Path::new(directory)), "{file}");
        }
        assert_eq!(directory_of(Path::new("/")), None);
    }
}
