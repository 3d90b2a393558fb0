//! Managed tmux: sessions and panes that people can watch and join, on any backend.
//!
//! - `commands.rs` puts commands together, `control.rs` reads and writes tmux's control mode, `client.rs` keeps one such client a session;
//! - `server.rs` brings up the server and sessions, `names.rs` says what is ours, `found.rs` what is there;
//! - `shell.rs` says what panes run, and in which cell;
//! - `pane.rs` finds, makes and ends panes, `screen.rs` looks at one and types into it what `base::input` read, `run.rs` runs a command in
//!   one, with the wrapper of `wrapper.rs`, `extra.rs` makes a pane for one command, `left_running.rs` knows how commands went on that nobody
//!   waited for; `hold.rs` says whose a pane is, `condition.rs` what it is doing, `line.rs` empties the line at
//!   its prompt, `look.rs` asks the kernel where nothing else tells;
//! - `terminals.rs` says whether a terminal is a pane;
//! - `own.rs` is the pane that this program was started in, where nothing is managed.
//!
//! The server is ours alone: its socket lies in a directory of mode 0700, and it reads no configuration of the user's. What may be done
//! at all is decided before, in `policy/`.
//!
//! It depends on `policy`, which decides, on `backend`, where tmux runs, and on `base` and `config`.

#![allow(missing_docs, reason = "public for the other crates of the host: what embedders see is `toolcrib`")]

mod client;
mod commands;
mod condition;
mod control;
mod extra;
mod found;
mod hold;
mod left_running;
mod line;
mod look;
mod names;
mod own;
mod pane;
mod run;
mod screen;
mod server;
mod shell;
mod terminals;
mod version;
mod wrapper;

use base::input::Unfinished;
pub use found::{Found, FoundPane};
pub use left_running::{End, Left, Look};
pub use own::OwnPane;
pub use pane::{Pane, Place, Selector};
pub use run::{Begun, Ended, Run, TURN};
pub use screen::View;
pub use terminals::we_are_in_a_pane;
pub use version::Version;

use backend::{Backend, TmuxThere};
use base::envelope::{Failure, Kind};
use base::workspace::Workspace;
use client::Client;
use config::{Config, Remedies};
use futures_util::future::{BoxFuture, join_all};
use left_running::LeftRunning;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, OnceCell};

/// The panes that calls can reach.
#[derive(Clone, Default)]
pub enum Panes {
    /// None: commands run as plain processes.
    #[default]
    None,
    /// The one that this program was started in, as the user chose; commands that are waited for run as plain processes.
    Own(Arc<OwnPane>),
    /// Those of a managed tmux, where commands then run.
    Managed(Arc<Tmux>),
}

impl Panes {
    /// The managed tmux, where its backend has one. The backend is asked when this is asked first.
    ///
    /// # Errors
    ///
    /// When the backend cannot be reached, or has no tmux though that was demanded.
    pub fn managed(&self) -> BoxFuture<'_, Result<Option<&Arc<Tmux>>, Failure>> {
        Box::pin(async move {
            match self {
                Self::Managed(tmux) if tmux.is_there().await? => Ok(Some(tmux)),
                Self::Managed(tmux) if tmux.is_demanded => Err(tmux.unusable().await?),
                Self::Managed(_) | Self::Own(_) | Self::None => Ok(None),
            }
        })
    }

    /// Takes leave of the servers that were attached to; sessions and what runs in them stay.
    pub fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Self::Managed(tmux) = self else { return };
            let sessions = std::mem::take(&mut *tmux.sessions.lock().await);
            join_all(sessions.values().map(|session| session.client.leave())).await;
        })
    }
}

/// The managed tmux of one host, opened when it is first needed.
pub struct Tmux {
    backend: Arc<dyn Backend>,
    /// Where the shells of the panes run, when that is elsewhere: panes of this machine that lead there.
    inside: Option<Arc<dyn Backend>>,
    /// Without it commands may not run.
    is_demanded: bool,
    /// The notice that there is no tmux was given.
    has_told: AtomicBool,
    /// The prefix of everything that is ours.
    owner: String,
    /// The session that somebody asked for instead of the workspace's own.
    asked: Option<String>,
    /// What is worked on; none where another machine has to be asked first.
    workspace: Option<Workspace>,
    home: OnceCell<Home>,
    max_sessions: u64,
    max_panes: u64,
    remedies: Remedies,
    shell: String,
    /// Commands may get panes for themselves.
    has_extra: bool,
    /// The id of the pane where the last command went that named none, if that is not the shared one.
    unnamed: parking_lot::Mutex<Option<String>>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    left: Arc<LeftRunning>,
}

/// Where a host belongs: the session that is meant when none is named, and where its shells begin. Further sessions are this one's: they
/// carry its name, and are counted with it.
struct Home {
    session: String,
    root: PathBuf,
    /// What tells its directory from others.
    digest: String,
}

/// A session of ours, with its client.
pub struct Session {
    name: String,
    /// What the server knows it by, whatever a person may have named it since.
    id: String,
    client: Client,
    /// Tells this server from one that took its place: its ids count for it alone.
    generation: String,
    /// The process of our client, as the server knows it.
    client_pid: String,
    /// Files of staged commands, where the shells of the panes run.
    directory: String,
    /// Where Toolcrib keeps files of its own, where its server is.
    own: PathBuf,
    /// Where its shells begin.
    root: PathBuf,
    /// Where that is.
    place: Arc<dyn Backend>,
    /// The same, when it is elsewhere.
    inside: Option<Arc<dyn Backend>>,
    /// Who works in a pane just now, in this process.
    turns: parking_lot::Mutex<HashMap<u32, Arc<Mutex<Turn>>>>,
    /// Panes by name, as they were found last: their numbers, and which cells their shells are in.
    known: parking_lot::Mutex<HashMap<String, (u32, String)>>,
    unfinished: Unfinished,
    left: Arc<LeftRunning>,
    /// The server is one of this machine.
    is_here: bool,
}

/// What this process knows of a pane that it works in.
struct Turn {
    /// How many commands its shell has not taken up.
    attempts: u32,
    /// It is known where the cursor is at the prompt after the last command.
    is_settled: Arc<AtomicBool>,
}

impl Default for Turn {
    fn default() -> Self {
        Self { attempts: 0, is_settled: Arc::new(true.into()) }
    }
}

/// What is said of a pane that was known and is not there any more.
const GONE: &str = "the pane is gone";

impl Tmux {
    /// Prepares the managed tmux of a backend; nothing is started yet. `session` takes the place of the workspace's own; the workspace of
    /// another machine is the directory where commands begin there. When tmux `is_demanded`, a backend without it is a failure; else
    /// commands run as plain processes there.
    ///
    /// # Errors
    ///
    /// When the session's name cannot be one.
    pub fn new(
        backend: Arc<dyn Backend>,
        workspace: Option<Workspace>,
        config: &Config,
        session: Option<&str>,
        is_demanded: bool,
    ) -> Result<Self, Failure> {
        Self::owned(names::owner(&config.agent.name), backend, workspace, config, session, is_demanded)
    }

    /// The same with panes that lead to another place, where no tmux is needed. They are sessions of their own for each such place and each
    /// workspace here, and end with the connection.
    ///
    /// # Errors
    ///
    /// When the session's name cannot be one.
    pub fn leading_to(
        backend: Arc<dyn Backend>,
        inside: Arc<dyn Backend>,
        workspace: Workspace,
        config: &Config,
        session: Option<&str>,
    ) -> Result<Self, Failure> {
        let owner = names::owner(&format!("{}-{}", config.agent.name, inside.name()));
        Ok(Self { inside: Some(inside), ..Self::owned(owner, backend, Some(workspace), config, session, true)? })
    }

    fn owned(
        owner: String,
        backend: Arc<dyn Backend>,
        workspace: Option<Workspace>,
        config: &Config,
        session: Option<&str>,
        is_demanded: bool,
    ) -> Result<Self, Failure> {
        let tmux = &config.tmux;
        Ok(Self {
            backend,
            inside: None,
            is_demanded,
            has_told: AtomicBool::new(false),
            asked: names::asked(&owner, session)?,
            owner,
            workspace,
            home: OnceCell::new(),
            max_sessions: tmux.max_sessions,
            max_panes: tmux.max_panes,
            remedies: config.remedies(),
            shell: tmux.default_shell.clone(),
            has_extra: tmux.extra_panes,
            unnamed: parking_lot::Mutex::default(),
            left: Arc::default(),
            sessions: Mutex::default(),
        })
    }

    async fn home(&self) -> Result<&Home, Failure> {
        let find = async || {
            let workspace = match &self.workspace {
                Some(workspace) => workspace.clone(),
                None => Workspace::at(self.backend.facts().await?.directory.clone()),
            };
            let session = self.asked.clone().unwrap_or_else(|| names::default_session(&self.owner, &workspace));
            Ok(Home { session, digest: workspace.digest(), root: workspace.root })
        };
        self.home.get_or_try_init(find).await
    }

    /// The full name of a session of this workspace; none means the default one.
    ///
    /// # Errors
    ///
    /// When it is not a valid name, or the backend cannot be reached.
    pub fn session_name<'a>(&'a self, name: Option<&'a str>) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(async move { names::session(&self.home().await?.session, name) })
    }

    /// The backend has tmux.
    ///
    /// # Errors
    ///
    /// When the backend cannot be reached.
    pub fn is_there(&self) -> BoxFuture<'_, Result<bool, Failure>> {
        Box::pin(async move { Ok(self.backend.facts().await?.tmux == TmuxThere::Yes) })
    }

    /// What is to be said of a session that is not attached to yet; that takes a trip to the backend.
    pub fn attaching<'a>(&'a self, session: Option<&'a str>) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let name = self.session_name(session).await.ok()?;
            let is_open = self.sessions.lock().await.get(&name).is_some_and(|session| session.client.is_open());
            (!is_open).then(|| format!("attaching to the tmux session `{name}` on {}", self.backend.name()))
        })
    }

    /// Where its server is, for people.
    pub fn place(&self) -> &str {
        self.backend.name()
    }

    /// The notice, given once, when there is no tmux.
    pub fn absence(&self) -> BoxFuture<'_, Result<Option<String>, Failure>> {
        Box::pin(async move {
            let is_told = self.has_told.swap(true, Ordering::Relaxed);
            if is_told {
                return Ok(None);
            }
            let why = self.unusable().await?.message;
            Ok(Some(format!("{why}, so commands run as plain processes there")))
        })
    }

    /// Why commands cannot run in panes.
    async fn unusable(&self) -> Result<Failure, Failure> {
        let name = self.backend.name();
        Ok(match self.backend.facts().await?.tmux {
            TmuxThere::Yes | TmuxThere::No => server::no_tmux(name),
            TmuxThere::NoRoom => server::no_room(name),
        })
    }

    /// The directory where relative paths of file tools begin, if a pane is in another one. None in panes that lead elsewhere: where their
    /// shells are is not known.
    pub fn other_than<'a>(&'a self, directory: &'a str) -> BoxFuture<'a, Option<PathBuf>> {
        Box::pin(async move {
            if self.inside.is_some() {
                return None;
            }
            let facts = self.backend.facts().await.ok()?;
            (!directory.is_empty() && facts.directory != Path::new(directory)).then(|| facts.directory.clone())
        })
    }

    async fn is_default(&self, session: &str) -> Result<bool, Failure> {
        Ok(self.home().await?.session == session)
    }
}

/// The name of the default session that an agent of this name has in a workspace.
#[must_use]
pub fn default_session(agent: &str, workspace: &Workspace) -> String {
    names::default_session(&names::owner(agent), workspace)
}

impl Session {
    /// What a model may know a pane by: its number, and the server for which that counts.
    fn pane_id(&self, pane: u32) -> String {
        format!("%{pane}@{}", self.generation)
    }

    /// The failure is that its client has gone: another one can be attached.
    fn is_left_by(&self, failure: &Failure) -> bool {
        failure.kind == Kind::Unavailable && !self.client.is_open()
    }

    /// The turn of a pane; calls of this host take it one after the other.
    fn turn(&self, pane: u32) -> Arc<Mutex<Turn>> {
        self.turns.lock().entry(pane).or_default().clone()
    }
}
