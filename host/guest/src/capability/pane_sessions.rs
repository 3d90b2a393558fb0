//! `wit/pane-sessions.wit`: sessions and panes made and ended, by the managed tmux, after the grant for `shell` admitted it.

use super::Refusal;
use super::bindings::toolcrib::plugin::{pane_sessions, panes, types};
use super::panes::no_panes;
use crate::sandbox::State;
use base::envelope::Failure;
use policy::approval::Landing;
use std::sync::Arc;
use tmux::Tmux;

impl pane_sessions::Host for State {
    async fn create_session(
        &mut self,
        session: String,
        declaration: types::Declaration,
    ) -> Result<panes::Place, Refusal> {
        let tmux = self.managed().await?;
        let name = tmux.session_name(Some(&session)).await?;
        let admitted =
            self.admit_action(&lifecycle("create-session", &name), declaration, &self.lifecycle_site()).await?;
        let made = tmux.create_session(&name, &admitted).await?;
        self.scope.touch_state();
        Ok(made.place().into())
    }

    async fn kill_session(&mut self, session: String, declaration: types::Declaration) -> Result<String, Refusal> {
        let tmux = self.managed().await?;
        let name = tmux.session_name(Some(&session)).await?;
        let admitted =
            self.admit_action(&lifecycle("kill-session", &name), declaration, &self.lifecycle_site()).await?;
        let ended = tmux.kill_session(&name, &admitted).await?;
        self.scope.touch_state();
        Ok(ended)
    }

    async fn create_pane(
        &mut self,
        session: Option<String>,
        pane: String,
        declaration: types::Declaration,
    ) -> Result<panes::Place, Refusal> {
        let tmux = self.managed().await?;
        let selector = tmux.canonical(session.as_deref(), &pane).await?;
        let admitted = self
            .admit_action(&lifecycle("create-pane", &selector.shown()), declaration, &self.lifecycle_site())
            .await?;
        let made = tmux.create_pane(&selector, &admitted).await?;
        self.scope.touch_state();
        Ok(made.place().into())
    }

    async fn kill_pane(
        &mut self,
        session: Option<String>,
        pane: String,
        declaration: types::Declaration,
    ) -> Result<panes::Place, Refusal> {
        let tmux = self.managed().await?;
        let selector = tmux.canonical(session.as_deref(), &pane).await?;
        tmux.check_end(&selector).await?;
        let admitted =
            self.admit_action(&lifecycle("kill-pane", &selector.shown()), declaration, &self.lifecycle_site()).await?;
        let ended = tmux.kill_pane(&selector, &admitted).await?;
        self.scope.touch_state();
        Ok(ended.place().into())
    }
}
impl State {
    /// The managed tmux, for a plugin that may use panes.
    async fn managed(&mut self) -> Result<Arc<Tmux>, Failure> {
        self.grants()?.panes()?;
        self.scope.panes.managed().await?.cloned().ok_or_else(no_panes)
    }

    /// The action names the session or pane itself.
    fn lifecycle_site(&self) -> Landing {
        Landing { backend: self.scope.backend.name().into(), ..Landing::default() }
    }
}

/// A lifecycle action, in the words of the command that it is.
fn lifecycle(verb: &str, name: &str) -> String {
    format!("tmux {verb} {name}")
}
