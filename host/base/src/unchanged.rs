//! Directories that are as they were: so what was missing in them is missing still.

use crate::disk::Stamp;
use std::collections::HashMap;
use std::fs::{Metadata, metadata, symlink_metadata};
use std::io;
use std::path::{Path, PathBuf};

/// The directories that tell whether something has come into being at the paths that were looked at.
#[derive(Debug, Default)]
pub struct Directories {
    /// None of those that were not there.
    stamps: HashMap<PathBuf, Option<Stamp>>,
    /// One of them had changed a moment ago: a change since may have left its stamp as it was.
    is_young: bool,
    /// Something may come into being that none of them tells.
    is_untold: bool,
}

impl Directories {
    /// What a path is, links not followed. Keeps the nearest directory above it first: whatever comes into being on the way to it later does so
    /// in that directory.
    pub fn look(&mut self, path: &Path) -> io::Result<Metadata> {
        // With a slash at the end of the path, a link would be followed.
        let path: PathBuf = path.components().collect();
        self.watch(&path);
        symlink_metadata(path)
    }

    fn watch(&mut self, path: &Path) {
        // The others depend on where this program stands.
        self.is_untold |= !path.is_absolute();
        for directory in path.ancestors().skip(1) {
            if !self.stamps.contains_key(directory) {
                let stamp = self.stamp(directory);
                self.stamps.insert(directory.to_owned(), stamp);
            }
            if self.stamps[directory].is_some() {
                return;
            }
        }
    }

    fn stamp(&mut self, directory: &Path) -> Option<Stamp> {
        let found = metadata(directory);
        self.is_untold |= match &found {
            Ok(_) => false,
            // What a link leads to that leads nowhere may come into being anywhere. Who opens a closed directory changes it.
            Err(error) if is_missing(error) || error.kind() == io::ErrorKind::PermissionDenied => {
                directory.is_symlink()
            }
            // It may be there: a mount whose server is away.
            Err(_) => true,
        };
        let stamp = found.ok().filter(Metadata::is_dir).map(|found| Stamp::of(&found));
        self.is_young |= stamp.as_ref().is_some_and(|stamp| !stamp.is_settled());
        stamp
    }

    /// There is something that no directory tells.
    pub fn distrust(&mut self) {
        self.is_untold = true;
    }

    /// Nothing has changed in any of them since.
    pub fn hold(&self) -> bool {
        let is_same = |(directory, stamp): (&PathBuf, &Option<Stamp>)| {
            stamp.is_none() || metadata(directory).is_ok_and(|found| Some(Stamp::of(&found)) == *stamp)
        };
        !self.is_young && !self.is_untold && self.stamps.iter().all(is_same)
    }

    /// The same as if all had changed long ago: what tests made just now.
    pub fn settled(self) -> Self {
        Self { is_young: false, ..self }
    }
}

/// It is not there, for anybody.
pub fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn looked(path: &Path) -> (io::Result<Metadata>, Directories) {
        let mut directories = Directories::default();
        let found = directories.look(path);
        (found, directories.settled())
    }

    #[test]
    fn a_link_on_the_way_that_leads_nowhere_is_not_relied_on() {
        let root = tempfile::tempdir().expect("a directory");
        symlink(root.path().join("later"), root.path().join("link")).expect("a link");
        for (path, holds) in [("missing", true), ("missing/below", true), ("link/below", false)] {
            let (found, directories) = looked(&root.path().join(path));
            assert_eq!((found.is_err(), directories.hold()), (true, holds), "{path}");
        }
    }

    #[test]
    fn a_link_is_one_with_a_slash_behind_it_too() {
        let root = tempfile::tempdir().expect("a directory");
        symlink("later", root.path().join("link")).expect("a link");
        for path in ["link", "link/", "link/."] {
            assert!(looked(&root.path().join(path)).0.expect("it is there").is_symlink(), "{path}");
        }
    }

    #[test]
    fn what_just_changed_and_what_depends_on_the_working_directory_is_not_relied_on() {
        let root = tempfile::tempdir().expect("a directory");
        let mut directories = Directories::default();
        assert!(directories.look(&root.path().join("missing")).is_err() && !directories.hold());
        assert!(!looked(Path::new("missing/below")).1.hold());
    }
}
