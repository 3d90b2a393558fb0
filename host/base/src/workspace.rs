//! The workspace: the repository around the working directory, else that directory itself.
//!
//! What belongs to a workspace is decided where it is used: the default session in `tmux/`, which writes are asked in `access/lib.rs`.

use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of the digest that tells directories of one name apart.
const DIGEST_BYTES: usize = 4;

/// What a person works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Absolute, without any link.
    pub root: PathBuf,
    /// The last part of the root, as people would call it; `root` for `/`.
    pub name: String,
}

impl Workspace {
    /// Finds the nearest repository that `start` lies in. The search ends below the home and within the file system of `start`: a repository
    /// of a whole home or disk is not what a person works on. A `.git` of somebody else does not count, as git itself ignores it.
    #[must_use]
    pub fn find(start: &Path, home: &Path) -> Self {
        let start = canonical(start);
        let (home, device) = (canonical(home), device(&start));
        let is_near = |dir: &&Path| *dir != home && dir.parent().is_some() && self::device(dir) == device;
        let repository = start.ancestors().take_while(is_near).find(|dir| is_repository(dir));
        Self::at(repository.unwrap_or(&start).to_owned())
    }

    /// The workspace with this root; for a place where no repository is searched for.
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        let name = root.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
        Self { root, name }
    }

    /// Tells it from directories of the same name.
    #[must_use]
    pub fn digest(&self) -> String {
        hex::encode(&Sha256::digest(self.root.as_os_str().as_bytes())[..DIGEST_BYTES])
    }

    /// Whether a path without links lies in it. Nothing lies in `/`: a program that was started there was started nowhere in particular.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.root.parent().is_some() && path.starts_with(&self.root)
    }
}

/// `.git` is a directory, or a file in worktrees and submodules; it and what it lies in are this user's.
fn is_repository(dir: &Path) -> bool {
    let is_own = |path: &Path| {
        let found = std::fs::symlink_metadata(path).ok();
        found.filter(|found| found.uid() == rustix::process::geteuid().as_raw())
    };
    is_own(dir).is_some() && is_own(&dir.join(".git")).is_some_and(|git| git.is_dir() || git.is_file())
}

fn device(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.dev())
}

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    fn tree(dirs: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = canonical(dir.path());
        for below in dirs {
            create_dir_all(root.join(below)).expect("a directory");
        }
        (dir, root)
    }

    #[test]
    fn the_nearest_repository_is_the_workspace() {
        let (_dir, root) = tree(&["a/.git", "a/b/c", "a/sub/x"]);
        write(root.join("a/sub/.git"), "gitdir: ../.git/modules/sub\n").expect("a submodule");
        let found = |start: &str| Workspace::find(&root.join(start), Path::new("/nowhere")).root;
        assert_eq!(found("a/b/c"), root.join("a"));
        assert_eq!(found("a/sub/x"), root.join("a/sub"));
    }

    #[test]
    fn without_a_repository_it_is_the_working_directory() {
        let (_dir, root) = tree(&["a/b"]);
        symlink(root.join("a/b"), root.join("link")).expect("a link");
        let found = Workspace::find(&root.join("link"), Path::new("/nowhere"));
        assert_eq!(found, Workspace { root: root.join("a/b"), name: "b".into() });
    }

    #[test]
    fn a_repository_of_the_whole_home_is_not_a_workspace() {
        let (_dir, root) = tree(&["home/.git", "home/work/x"]);
        assert_eq!(Workspace::find(&root.join("home/work/x"), &root.join("home")).root, root.join("home/work/x"));
        assert_eq!(Workspace::find(&root.join("home"), &root.join("home")).root, root.join("home"));
    }

    #[test]
    fn a_link_named_git_makes_no_repository() {
        let (_dir, root) = tree(&["a/b", "elsewhere"]);
        symlink(root.join("elsewhere"), root.join("a/.git")).expect("a link");
        assert_eq!(Workspace::find(&root.join("a/b"), Path::new("/nowhere")).root, root.join("a/b"));
    }

    #[test]
    fn a_repository_of_somebody_else_does_not_count() {
        let (_dir, root) = tree(&["a/.git", "a/b"]);
        if std::os::unix::fs::chown(root.join("a/.git"), Some(65534), None).is_err() {
            return eprintln!("skipped: only the superuser gives files away");
        }
        assert_eq!(Workspace::find(&root.join("a/b"), Path::new("/nowhere")).root, root.join("a/b"));
    }

    #[test]
    fn a_repository_in_a_directory_of_somebody_else_does_not_count() {
        let (_dir, root) = tree(&["a/.git", "a/b"]);
        if std::os::unix::fs::chown(root.join("a"), Some(65534), None).is_err() {
            return eprintln!("skipped: only the superuser gives files away");
        }
        assert_eq!(Workspace::find(&root.join("a/b"), Path::new("/nowhere")).root, root.join("a/b"));
    }

    #[test]
    fn nothing_lies_in_the_root_of_the_file_system() {
        assert!(!Workspace::at("/".into()).contains(Path::new("/tmp/x")));
        assert!(Workspace::at("/tmp".into()).contains(Path::new("/tmp/x")));
        assert!(!Workspace::at("/tmp".into()).contains(Path::new("/tmpx")));
        assert_eq!(Workspace::at("/".into()).name, "root");
    }
}
