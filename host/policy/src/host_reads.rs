//! What the host reads for itself by a path of settings, or beside a file of such: texts of toolsets, usage pages, plugins with their words. No link
//! is followed that a command could have made; and what tools show is bound by the rules of file tools: no credential, nothing of Toolcrib's state.
//!
//! Opening is `disk/reading.rs`.

use crate::confine::Confine;
use base::disk::{Named, Unreadable, open_named, open_named_directory};
use file_access::{KERNEL, Protected, TooMany};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads for the host.
#[derive(Clone)]
pub struct HostReads {
    /// What is closed to tools, but for what only the host shows them.
    protected: Arc<Protected>,
    confine: Arc<Confine>,
    /// As settings have it.
    home: PathBuf,
}

impl HostReads {
    pub fn new(protected: Arc<Protected>, confine: Arc<Confine>, home: PathBuf) -> Self {
        Self { protected, confine, home }
    }

    /// Returns the text of a file, which may have so many bytes.
    ///
    /// # Errors
    ///
    /// Why it is not read.
    pub fn text(&self, path: &Path, most: u64) -> Result<String, Unreadable> {
        String::from_utf8(self.shown(path)?.read(most)?).map_err(|_| Unreadable::Binary)
    }

    /// Opens a directory in which something is to be made.
    ///
    /// # Errors
    ///
    /// Why it is not opened.
    pub fn directory(&self, path: &Path) -> Result<File, Unreadable> {
        open_named_directory(path, &|link| self.is_out_of_reach(link)).map(|named| named.file)
    }

    /// Opens a file that nobody is shown, such as a component.
    ///
    /// # Errors
    ///
    /// Why it is not read.
    pub fn open(&self, path: &Path) -> Result<Named, Unreadable> {
        open_named(path, &|link| self.is_out_of_reach(link))
    }

    /// Opens a file whose text somebody is shown.
    ///
    /// # Errors
    ///
    /// Why it is not read.
    pub fn shown(&self, path: &Path) -> Result<Named, Unreadable> {
        let named = self.open(path)?;
        let shown = named.path.display();
        if let Some(kernel) = KERNEL.iter().find(|kernel| named.path.starts_with(kernel)) {
            return Err(Unreadable::Closed(format!("`{shown}` is below `{kernel}`")));
        }
        if let Err(failure) = self.protected.refuse(&named.path) {
            return Err(Unreadable::Closed(failure.message));
        }
        if named.found.nlink() <= 1 {
            return Ok(named);
        }
        // A hard link has a path that no rule knows.
        match self.protected.holding((named.found.dev(), named.found.ino())) {
            Ok(None) => Ok(named),
            Ok(Some(root)) => Err(Unreadable::Closed(format!("`{shown}` is also a file of `{}`", root.display()))),
            Err(TooMany) => Err(Unreadable::Closed(format!("`{shown}` has further names, too many to compare"))),
        }
    }

    /// Whether no command writes where this lies, whatever its workspace is.
    fn is_out_of_reach(&self, link: &Path) -> bool {
        let Some(directory) = link.parent() else { return true };
        // Copies of caches and the homes of servers are in the state.
        if directory.starts_with(&self.protected.state) {
            return false;
        }
        self.home.starts_with(directory) || self.confine.never_workspace(directory).is_some()
    }
}
