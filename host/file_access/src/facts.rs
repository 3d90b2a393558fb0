//! Facts about the place where a backend acts: its directories, and whether tmux is there.

use crate::later::Surroundings;
use base::workspace::Workspace;
use std::path::PathBuf;

/// See [`Facts::tmux`].
const TMUX: &str = "tmux";

/// Facts about the place where a backend acts.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Where commands and relative paths of file tools begin.
    pub directory: PathBuf,
    /// The home of the user as whom commands run.
    pub home: PathBuf,
    /// Where Toolcrib keeps files of its own.
    pub own: PathBuf,
    /// Whether commands can run in panes.
    pub tmux: TmuxThere,
    /// The workspace there; on a container or another host it is the directory where commands begin.
    pub workspace: Workspace,
    /// Where programs and the home are: by these a path is known as one that a program runs or obeys later.
    pub surroundings: Surroundings,
}

impl Facts {
    /// The directory of Toolcrib's own files for panes.
    pub fn tmux(&self) -> PathBuf {
        self.own.join(TMUX)
    }

    /// Where the workspace's copies of directories are.
    pub fn caches(&self) -> PathBuf {
        self.own.join("caches").join(self.workspace.digest())
    }

    /// Where the shells of the workspace's panes read what they are to run.
    pub fn staged(&self) -> PathBuf {
        self.tmux().join(self.workspace.digest())
    }
}

/// Whether tmux can be used at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TmuxThere {
    /// tmux is on the `PATH` that commands get.
    Yes,
    /// tmux is not there.
    No,
    /// tmux is there, but no directory can be written for its socket.
    NoRoom,
}
