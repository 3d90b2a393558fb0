//! Where in the directories that commands write something lies, and by what it acts there.

use crate::held::links::Links;
use crate::held::rules::{Acts, Rules};
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories that programs fill, and nobody opens.
const PASSED: [&str; 4] = ["node_modules", "site-packages", "target", "vendor"];

/// A directory below one that commands write.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) root: Arc<Path>,
    /// Relative to the root.
    pub(super) at: PathBuf,
    /// What the directory itself, or one above it, acts by.
    pub(super) acts: Option<Acts>,
    pub(super) is_passed: bool,
}

impl Place {
    pub(super) fn top(root: &Arc<Path>) -> Self {
        Self { root: root.clone(), at: PathBuf::new(), acts: None, is_passed: false }
    }

    /// A directory by its path below the root.
    pub(super) fn at(root: &Arc<Path>, at: &Path, rules: &Rules, links: &Links) -> Self {
        at.iter().fold(Self::top(root), |place, part| place.below(part, rules, links))
    }

    pub(super) fn below(&self, name: &OsStr, rules: &Rules, links: &Links) -> Self {
        let at = self.at.join(name);
        let acts = self.acts_in(name, rules, links);
        let is_passed = self.is_passed || PASSED.iter().any(|passed| *passed == name);
        Self { root: self.root.clone(), at, acts, is_passed: is_passed && !links.lead_to(&self.path(name)) }
    }

    /// By what something in it acts, if it does.
    pub(super) fn acts_in(&self, name: &OsStr, rules: &Rules, links: &Links) -> Option<Acts> {
        self.acts.or_else(|| rules.acts(&self.at.join(name))).or_else(|| links.acts(&self.path(name)))
    }

    pub(super) fn path(&self, name: &OsStr) -> PathBuf {
        self.root.join(&self.at).join(name)
    }

    /// The repository that it lies in, or is.
    pub(super) fn repository(&self) -> Option<&Path> {
        self.at.ancestors().filter(|above| above.ends_with(".git")).last()
    }

    fn key(&self) -> (&Path, &Path) {
        (&self.root, &self.at)
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
