//! Which of what commands make is held, and which of it nobody has to be asked about.

use super::store::Shelf;
use super::take::Content;
use backend::Facts;
use base::text::sanitize;
use config::HeldFiles;
use file_access::{Acting, ends_with, obeyed_by_name};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// By what something acts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Acts {
    /// What happens, as a question says it.
    pub(super) what: &'static str,
    acting: Acting,
}

/// What a person protects by its name.
const PROTECTED: Acts = Acts { what: "`protect` under [confine] names it", acting: Acting::Opens };

/// What settings of git name.
pub(super) const NAMED: Acts = Acts { what: "settings of git name it: git runs or obeys it", acting: Acting::Opens };

/// What leads to a directory of `PATH`.
pub(super) const ON_PATH: Acts = Acts { what: "programs on PATH are found through it", acting: Acting::Opens };
/// A program in such a directory that takes the place of another one, and any other.
const IN_PLACE: Acts =
    Acts { what: "it runs instead of the program of that name elsewhere on PATH", acting: Acting::Opens };
pub(super) const PROGRAM: Acts =
    Acts { what: "it runs when its name is typed, as its directory is on PATH", acting: Acting::Builds };
/// What Toolcrib itself looks for on `PATH`.
const OWN: [&str; 5] = ["tmux", "ssh", "docker", "podman", "bwrap"];

/// What becomes of something that a command made or changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Held,
    Told,
}

/// What settings say, and where that is.
#[derive(Clone, Debug)]
pub struct Rules {
    held: HeldFiles,
    /// Names that are not held.
    keep: Arc<Vec<String>>,
    protect: Arc<Vec<String>>,
    /// Directories of `PATH`, as it names them.
    pub(super) path: Vec<PathBuf>,
    /// Toolcrib's state.
    pub(super) state: PathBuf,
    workspace: PathBuf,
    home: PathBuf,
}

impl Default for Rules {
    fn default() -> Self {
        let (keep, protect) = (Arc::default(), Arc::default());
        let [state, workspace, home] = [const { PathBuf::new() }; 3];
        Self { held: HeldFiles::None, keep, protect, path: Vec::new(), state, workspace, home }
    }
}

impl Rules {
    pub fn new(held: HeldFiles, keep: &Arc<Vec<String>>, protect: &Arc<Vec<String>>, facts: &Facts) -> Self {
        let (keep, protect) = (keep.clone(), protect.clone());
        let (path, workspace) = (facts.surroundings.path.clone(), facts.workspace.root.clone());
        let (state, home) = (facts.own.clone(), facts.home.clone());
        Self { held, keep, protect, path, state, workspace, home }
    }

    /// Toolcrib's state, and the workspace.
    pub(super) fn place(&self) -> (&Path, &Path) {
        (&self.state, &self.workspace)
    }

    /// What settings of git name in these directories.
    pub(super) fn named(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        git::obeyed(roots, &self.home)
    }

    /// By what a path below a directory that commands write acts, if it does by its last name.
    pub(super) fn acts(&self, at: &Path) -> Option<Acts> {
        let by_name = obeyed_by_name(at).map(|later| Acts { what: later.what, acting: later.acting });
        if self.protect.iter().any(|name| ends_with(name, at)) {
            return Some(Acts { what: by_name.map_or(PROTECTED.what, |acts| acts.what), ..PROTECTED });
        }
        by_name
    }

    /// By what a program acts that lies in a directory of `PATH`.
    pub(super) fn program(&self, directory: &Path, name: &OsStr) -> Acts {
        let is_elsewhere = |entry: &PathBuf| {
            entry.join(name).symlink_metadata().is_ok() && entry.canonicalize().is_ok_and(|entry| entry != directory)
        };
        let is_in_place = OWN.iter().any(|own| *own == name) || self.path.iter().any(is_elsewhere);
        if is_in_place { IN_PLACE } else { PROGRAM }
    }

    /// What becomes of something that a command made, or changed where it is known.
    pub(super) fn verdict(&self, acts: Acts, at: &Path, is_change: bool) -> Verdict {
        let is_held = match acts.acting {
            Acting::Opens => self.held >= HeldFiles::Opens,
            Acting::Words => self.held >= HeldFiles::Words && !is_change,
            Acting::Builds => self.held >= HeldFiles::All && !is_change,
        };
        if is_held && !self.is_kept(at) { Verdict::Held } else { Verdict::Told }
    }

    /// Settings say that a path is not held.
    pub(super) fn is_kept(&self, at: &Path) -> bool {
        at.ancestors().any(|above| self.keep.iter().any(|name| ends_with(name, above)))
    }

    /// A person said yes to this very file once.
    pub(super) fn was_allowed(&self, path: &Path, content: &Content) -> bool {
        Shelf::open(&self.state).is_ok_and(|shelf| shelf.was_allowed(path, content))
    }

    /// A path for notices: in the workspace, from there on.
    pub(super) fn name(&self, path: &Path) -> String {
        let name = path.strip_prefix(&self.workspace).unwrap_or(path);
        sanitize::visible_line(&name.to_string_lossy())
    }
}
