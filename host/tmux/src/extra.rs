//! Panes that commands get for themselves, so that none waits for the shared one: each is made for one command, named after its program, with a
//! new shell that begins where the shared pane is. Calls that name no pane look and type where the last such command went.

use super::commands;
use super::names;
use super::pane::{Entry, Pane};
use super::server::FIELD;
use super::{Selector, Session, Tmux};
use backend::cell::Profile;
use base::envelope::{Failure, Kind};
use futures_util::future::BoxFuture;
use policy::shell::AdmittedCommand;
use std::sync::Arc;

/// The option of a pane that was made for one command.
pub(super) const EXTRA: &str = "@toolcrib_extra";

impl Tmux {
    /// Commands that name no pane may get one for themselves.
    pub fn has_extra(&self) -> bool {
        self.has_extra
    }

    /// Makes a pane for one command, named after its program. Where the session has as many panes as it may have, one goes that was made so and
    /// whose command has ended.
    ///
    /// # Errors
    ///
    /// `limit` when none can go.
    pub fn extra<'a>(
        &'a self,
        program: &'a str,
        cell: Option<&'a Arc<Profile>>,
        _: &'a AdmittedCommand,
    ) -> BoxFuture<'a, Result<Pane, Failure>> {
        Box::pin(async move {
            let shared = self.find_again(&Selector::default(), cell).await?;
            let directory = shared.directory().await?;
            let (session, notices) = (shared.session, shared.notices);
            let mut panes = session.panes().await?;
            self.make_room(&session, &mut panes).await?;
            let named = names::pane(Some(program)).unwrap_or_else(|_| "command".into());
            let is_free = |name: &String| !panes.iter().any(|pane| pane.is_called(name));
            let more = (2..).map(|number| format!("{named}-{number}"));
            let name = std::iter::once(named.clone()).chain(more).find(is_free).expect("there is no last number");
            let pane = self.make_in(session, &name, cell, notices, directory.as_deref()).await?;
            pane.session.client.run(&commands::set(pane.number, EXTRA, "1")).await?;
            Ok(pane)
        })
    }

    /// Notes where a command went that named no pane.
    pub fn went_to(&self, pane: &Pane) {
        *self.unnamed.lock() = (!pane.is_shared()).then(|| pane.session.pane_id(pane.number));
    }

    /// The pane that is meant by a call which looks or types. Once it was told that the pane is gone, it is the shared one.
    pub fn used_last(&self, selector: Selector) -> Selector {
        if selector == Selector::default() {
            Selector { target: self.unnamed.lock().clone(), ..selector }
        } else {
            selector
        }
    }

    /// What is said where a pane is not there.
    pub(super) fn missing(&self, target: &str) -> Failure {
        let was_meant = self.unnamed.lock().take_if(|id| id == target).is_some();
        let message = if was_meant {
            format!("the pane of the last command, `{target}`, is gone")
        } else {
            format!("there is no pane `{target}`")
        };
        Failure::failed(message).hint("omit `target` for the shared pane, or make one with tmux-create-pane")
    }

    /// Where a session has as many panes as it may have, ends one that was made for a command which has ended.
    pub(super) async fn make_room(&self, session: &Session, panes: &mut Vec<Entry>) -> Result<(), Failure> {
        if (panes.len() as u64) < self.max_panes {
            return Ok(());
        }
        let gone = session.end_extra(panes).await?.ok_or_else(|| self.too_many(session))?;
        panes.retain(|pane| pane.number() != gone);
        Ok(())
    }

    fn too_many(&self, session: &Session) -> Failure {
        let message = format!("limit: tmux panes {} in session `{}`, and all are in use", self.max_panes, session.name);
        let hint = self.remedies.raise("tmux.max_panes", self.max_panes, "end one with tmux-kill-pane");
        Failure::limit(message).hint(hint)
    }
}

impl Session {
    /// Ends a pane that was made for a command which has ended; returns its number.
    async fn end_extra(&self, panes: &[Entry]) -> Result<Option<u32>, Failure> {
        let asked = format!("#{{pane_id}}{FIELD}#{{{EXTRA}}}");
        let said = self.client.run(&commands::list_panes_of(&self.id, &asked)).await?;
        let extra: Vec<u32> =
            said.lines().filter_map(|line| super::pane::number(line.strip_suffix(&format!("{FIELD}1"))?)).collect();
        for pane in panes.iter().filter(|pane| extra.contains(&pane.number())) {
            let number = pane.number();
            // A command of this host that is about to begin has no sign there yet.
            let Ok(_turn) = self.turn(number).try_lock_owned() else { continue };
            match self.is_idle(number).await {
                Ok(true) => {
                    self.client.run(&commands::kill_pane(number)).await?;
                    return Ok(Some(number));
                }
                Ok(false) => {}
                // The pane has ended meanwhile.
                Err(failure) if failure.kind == Kind::ExecutionFailed => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(None)
    }

    /// Whether a pane is at an empty prompt and no command holds it.
    async fn is_idle(&self, number: u32) -> Result<bool, Failure> {
        let condition = self.condition(number).await?;
        let is_free = condition.holder.is_empty() || self.free_stale(number, &condition).await?;
        Ok(is_free && condition.is_at_prompt() && !condition.may_have_line())
    }
}
