//! Directories that are as they were: so what was missing in them is missing still.

use std::collections::HashMap;
use std::fs::metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What changed so long ago has a time of its own: file systems count in steps of at most two seconds (FAT).
const SETTLED: Duration = Duration::from_secs(3);

/// The directories that tell whether something has come into being at the paths that are watched.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    /// None of those that were not there.
    stamps: HashMap<PathBuf, Option<Stamp>>,
    /// Something of them had changed too short a time ago, or cannot be told by any directory.
    is_unsettled: bool,
}

/// Which directory it is, and when something was made, removed or renamed in it last.
#[derive(Debug, PartialEq)]
struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(directory: &Path) -> Option<Self> {
        let found = metadata(directory).ok().filter(|found| found.is_dir())?;
        let changed = (found.ctime(), found.ctime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), changed })
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let changed = u64::try_from(self.changed.0).map(Duration::from_secs);
        changed.is_ok_and(|changed| changed + SETTLED < now)
    }
}

fn is_missing(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

impl Directories {
    /// Keeps the nearest directory above a path, before somebody looks what is there: whatever comes into being on the way to it does so in
    /// that directory. Says whether that is the one that would hold it: if not, there is nothing at the path.
    pub(crate) fn watch(&mut self, path: &Path) -> bool {
        for (missing, directory) in path.ancestors().skip(1).enumerate() {
            if !self.stamps.contains_key(directory) {
                let stamp = Stamp::of(directory);
                self.is_unsettled |= match &stamp {
                    Some(stamp) => !stamp.is_settled(),
                    // What a link leads to that leads nowhere may come into being anywhere, and what cannot be looked at may be there.
                    None => directory.is_symlink() || metadata(directory).is_err_and(|error| !is_missing(error.kind())),
                };
                self.stamps.insert(directory.to_owned(), stamp);
            }
            if self.stamps[directory].is_some() {
                return missing == 0;
            }
        }
        false
    }

    /// There is something that no directory tells.
    pub(crate) fn distrust(&mut self) {
        self.is_unsettled = true;
    }

    /// Nothing has changed in any of them since.
    pub(crate) fn hold(&self) -> bool {
        let is_same =
            |(directory, stamp): (&PathBuf, &Option<Stamp>)| stamp.is_none() || Stamp::of(directory) == *stamp;
        !self.is_unsettled && self.stamps.iter().all(is_same)
    }

    /// The same as if all had been settled long ago.
    #[cfg(test)]
    pub(crate) fn settled(self) -> Self {
        Self { is_unsettled: false, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_on_the_way_that_leads_nowhere_is_not_relied_on() {
        let root = tempfile::tempdir().expect("a directory");
        symlink(root.path().join("later"), root.path().join("link")).expect("a link");
        // So that nothing but the link can be what is not relied on.
        std::thread::sleep(SETTLED + Duration::from_millis(1100));
        let (mut through, mut beside) = (Directories::default(), Directories::default());
        assert!(beside.watch(&root.path().join("missing")) && !beside.watch(&root.path().join("missing/below")));
        assert!(!through.watch(&root.path().join("link/below")));
        assert!(beside.hold() && !through.hold());
    }
}
