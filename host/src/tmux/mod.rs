//! Managed tmux: sessions and panes that people can watch and join, on any backend.
//!
//! - `control.rs` reads and writes tmux's control mode, `client.rs` keeps one such client a session;
//! - `server.rs` brings up the server and sessions, `names.rs` says what is ours;
//! - `pane.rs` finds, makes and ends panes, `screen.rs` looks at one and types into it, `run.rs` runs a command in one, with the wrapper
//!   of `wrapper.rs`;
//! - `own.rs` is the pane that this program was started in, where nothing is managed.
//!
//! The server is ours alone: its socket lies in a directory of mode 0700, and it reads no configuration of the user's. What may be done
//! at all is decided before, in `policy/`.

mod client;
mod control;
mod names;
mod own;
mod pane;
mod run;
mod screen;
mod server;
mod version;
mod wrapper;

pub use own::OwnPane;
pub(crate) use pane::{Pane, Place, Selector};
pub(crate) use run::{Ended, Run};
pub(crate) use screen::{Input, View};
pub use server::Found;
pub use version::Version;

use crate::backend::Backend;
use crate::config::Config;
use crate::envelope::Failure;
use client::Client;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::Mutex;

/// The panes that calls can reach.
#[derive(Clone, Default)]
pub enum Panes {
    /// None: commands run as plain processes.
    #[default]
    None,
    /// The one that this program was started in; commands run as plain processes.
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
    pub async fn managed(&self) -> Result<Option<&Arc<Tmux>>, Failure> {
        match self {
            Self::Managed(tmux) if tmux.is_there().await? => Ok(Some(tmux)),
            Self::Managed(tmux) if tmux.is_demanded => Err(server::no_tmux(tmux.backend.name())),
            Self::Managed(_) | Self::Own(_) | Self::None => Ok(None),
        }
    }

    /// Takes leave of the servers that were attached to; sessions and what runs in them stay.
    pub(crate) async fn leave(&self) {
        let Self::Managed(tmux) = self else { return };
        let sessions = std::mem::take(&mut *tmux.sessions.lock().await);
        join_all(sessions.values().map(|session| session.client.leave())).await;
    }
}

/// The managed tmux of one host, opened when it is first needed.
pub struct Tmux {
    backend: Arc<dyn Backend>,
    /// Where the shells of the panes run, when that is elsewhere: panes of this machine that lead there.
    inside: Option<Arc<dyn Backend>>,
    /// Without it commands may not run.
    is_demanded: bool,
    /// It was said that there is no tmux.
    has_told: AtomicBool,
    /// The prefix of everything that is ours.
    owner: String,
    /// The session that is meant when none is named.
    default: String,
    max_sessions: u64,
    max_panes: u64,
    shell: String,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

/// A session of ours, with its client.
pub(crate) struct Session {
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
    /// That place, when it is elsewhere.
    inside: Option<Arc<dyn Backend>>,
    /// Who works in a pane just now, in this process; how many commands its shell has not taken up.
    turns: std::sync::Mutex<HashMap<u32, Arc<Mutex<u32>>>>,
    /// Panes by name, as they were found last.
    known: std::sync::Mutex<HashMap<String, (u32, wrapper::Shell)>>,
}

impl Tmux {
    /// Prepares the managed tmux of a backend; nothing is started yet. `session` takes the default one's place. When it `is_demanded`,
    /// a backend without tmux is a failure; else commands run as plain processes there.
    ///
    /// # Errors
    ///
    /// When the session's name cannot be one.
    pub fn new(
        backend: Arc<dyn Backend>,
        config: &Config,
        session: Option<&str>,
        is_demanded: bool,
    ) -> Result<Self, Failure> {
        let owner = names::owner(&config.agent.name);
        let default = names::session(&owner, &owner, session)?;
        let tmux = &config.tmux;
        Ok(Self {
            backend,
            inside: None,
            is_demanded,
            has_told: AtomicBool::new(false),
            default,
            owner,
            max_sessions: tmux.max_sessions,
            max_panes: tmux.max_panes,
            shell: tmux.default_shell.clone(),
            sessions: Mutex::default(),
        })
    }

    /// The same with panes that lead to another place, where no tmux is needed. They are sessions of their own, and end with the
    /// connection.
    ///
    /// # Errors
    ///
    /// When the session's name cannot be one.
    pub fn leading_to(
        backend: Arc<dyn Backend>,
        inside: Arc<dyn Backend>,
        config: &Config,
        session: Option<&str>,
    ) -> Result<Self, Failure> {
        let owner = names::owner(&format!("{}-{}", config.agent.name, inside.name()));
        let default = names::session(&owner, &owner, session)?;
        Ok(Self { inside: Some(inside), owner, default, ..Self::new(backend, config, None, true)? })
    }

    /// The name of the default session.
    #[must_use]
    pub fn default_session(&self) -> &str {
        &self.default
    }

    /// The full name of a session; none means the default one.
    ///
    /// # Errors
    ///
    /// When it can be no name.
    pub fn session_name(&self, name: Option<&str>) -> Result<String, Failure> {
        names::session(&self.owner, &self.default, name)
    }

    /// The backend has tmux.
    ///
    /// # Errors
    ///
    /// When the backend cannot be reached.
    pub async fn is_there(&self) -> Result<bool, Failure> {
        Ok(self.backend.facts().await?.has_tmux)
    }

    /// What is to be said of a session that is not attached to yet; that takes a trip to the backend.
    pub(crate) async fn attaching(&self, session: Option<&str>) -> Option<String> {
        let name = self.session_name(session).ok()?;
        let is_open = self.sessions.lock().await.get(&name).is_some_and(|session| session.client.is_open());
        (!is_open).then(|| format!("attaching to the tmux session `{name}` on {}", self.backend.name()))
    }

    /// What is to be said, once, when there is no tmux.
    pub(crate) fn absence(&self) -> Option<String> {
        let is_told = self.has_told.swap(true, Ordering::Relaxed);
        (!is_told).then(|| format!("{} has no tmux, so commands run as plain processes there", self.backend.name()))
    }

    /// Whether a directory is the one where relative paths of file tools begin.
    pub(crate) async fn is_in(&self, directory: &str) -> bool {
        directory.is_empty() || self.backend.facts().await.is_ok_and(|facts| facts.directory.as_os_str() == directory)
    }

    fn is_default(&self, session: &str) -> bool {
        session == self.default
    }
}

impl Session {
    /// What a model may know a pane by: its number, and the server for which that counts.
    fn pane_id(&self, pane: u32) -> String {
        format!("%{pane}@{}", self.generation)
    }

    /// The turn of a pane; calls of this host take it one after the other.
    fn turn(&self, pane: u32) -> Arc<Mutex<u32>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(pane).or_default().clone()
    }
}
