//! What a capability may reach in the call that it serves: the scope that decisions are made in, and the services that the host has for it.

use crate::capability::embedder::Pending;
use crate::later::Later;
use crate::sandbox::trial::Trial;
use backend::Backend;
use browser::Programs;
use config::Config;
use egress::Egress;
use embedder::agents::AgentSessions;
use embedder::{Embedder, NoEmbedder};
use policy::in_force::InForce;
use policy::scope::Scope;
use secrets::Secrets;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::Store;
use tmux::Panes;
use undo::Undo;

/// What the host has for all calls.
pub struct Services {
    pub egress: Arc<Egress>,
    pub browsers: Programs,
    /// The events of all calls that wait for the embedder.
    pub pending: Pending,
    pub agents: AgentSessions,
    pub store: Arc<Store>,
    pub jobs: Arc<dyn Later>,
    /// What file tools changed, as it was.
    pub undo: Arc<Undo>,
    /// The settings, for who may look at them.
    pub settings: Weak<InForce>,
}

/// One call, as far as its capabilities see it.
pub struct Reach {
    pub scope: Arc<Scope>,
    pub services: Arc<Services>,
    pub panes: Panes,
    pub embedder: Arc<dyn Embedder>,
    /// What is other about it, where somebody tries the plugin.
    pub trial: Trial,
    /// How far the guest's clock is ahead of this machine's.
    pub ahead: Duration,
}

impl Reach {
    /// The reach of a plugin that is asked for its definitions. Nobody watches and nobody approves; it has no grants, so no service is open
    /// to it.
    pub fn for_definitions(config: &Config, backend: Arc<dyn Backend>, services: Arc<Services>) -> Self {
        Self {
            scope: Arc::new(Scope::of_host("definitions", config, backend, Arc::new(Secrets::none()))),
            services,
            panes: Panes::None,
            embedder: Arc::new(NoEmbedder),
            trial: Trial::default(),
            ahead: Duration::ZERO,
        }
    }

    /// The same at another time, for the guest.
    pub fn ahead(self, ahead: Duration) -> Self {
        Self { ahead, ..self }
    }
}

impl Deref for Reach {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        &self.scope
    }
}
