//! Where a program is found by its name: a rule about the name counts only for one that no command of an agent could have put there.

use base::paths::canonical;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Directories that every program may write in.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The directories of `PATH`, and those that commands write in.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    pub path: Vec<PathBuf>,
    pub written: Vec<PathBuf>,
}

impl Programs {
    /// Checks the program that a shell would run by this name.
    ///
    /// # Errors
    ///
    /// Why a rule about the name does not count, as a fragment.
    pub fn check(&self, name: &str) -> Result<(), String> {
        for directory in &self.path {
            if !directory.is_absolute() {
                return Err("an entry of PATH depends on the directory".into());
            }
            let file = directory.join(name);
            let Ok(found) = file.metadata() else { continue };
            if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
                continue;
            }
            let real = canonical(&file);
            let is_open = found.permissions().mode() & 0o002 != 0;
            if is_open || self.is_written(&canonical(directory)) || self.is_written(&real) {
                return Err(format!("commands may have written `{}`", file.display()));
            }
            return Ok(());
        }
        Err(format!("`{name}` is not on PATH"))
    }

    fn is_written(&self, path: &Path) -> bool {
        SHARED.iter().any(|shared| path.starts_with(shared)) || self.written.iter().any(|root| path.starts_with(root))
    }
}
