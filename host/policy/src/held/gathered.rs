//! What looks have found that nobody was told of yet, and how that is said.

use super::rules::Rules;
use super::store::Taken;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What one command is told of; more are counted.
const MOST_TOLD: usize = 3;

/// What is to be told.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) told: BTreeMap<PathBuf, (&'static str, &'static str)>,
    /// In an order that does not depend on what was seen first.
    pub(super) lines: BTreeSet<String>,
    pub(super) let_through: BTreeSet<PathBuf>,
    pub(super) passed: BTreeSet<PathBuf>,
    /// Programs in directories of `PATH`.
    pub(super) programs: BTreeSet<PathBuf>,
    pub(super) taken: Vec<Taken>,
    pub(super) repositories: BTreeSet<PathBuf>,
}

impl Gathered {
    /// What is to be said of all but what was taken.
    pub(super) fn told(&self, rules: &Rules) -> Vec<String> {
        let mut lines: Vec<String> = self.lines.iter().take(MOST_TOLD).cloned().collect();
        let more = self.lines.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            lines.push(format!("so it was with {more} more, which lie beside their places under names `.held-…`"));
        }
        let told = self.told.iter().map(|(path, (how, what))| format!("`{}` was {how}: {what}", rules.name(path)));
        lines.extend(told.take(MOST_TOLD));
        let more = self.told.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            lines.push(format!("{more} more were made or changed of what runs or is obeyed later"));
        }
        let listed = |paths: &BTreeSet<PathBuf>| {
            let names: Vec<String> =
                paths.iter().take(MOST_TOLD).map(|path| format!("`{}`", rules.name(path))).collect();
            let more = paths.len().saturating_sub(MOST_TOLD);
            if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
        };
        if !self.let_through.is_empty() {
            lines.push(format!("not held, as the repository had it before: {}", listed(&self.let_through)));
        }
        if !self.programs.is_empty() {
            let (count, programs) = (self.programs.len(), listed(&self.programs));
            lines.push(format!("programs were made or changed in directories on PATH ({count}): {programs}"));
        }
        if !self.passed.is_empty() {
            let (count, passed) = (self.passed.len(), listed(&self.passed));
            lines.push(format!("files with names of what acts by itself were made where programs keep what they install ({count}): {passed}"));
        }
        lines
    }
}
