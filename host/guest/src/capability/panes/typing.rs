//! Typing: the pane is found, what is typed is admitted, waited for and sent. A command for the pane that this program was started in is
//! typed as well.

use super::super::Refusal;
use super::super::shell::check_why;
use super::super::undo::checkpoint;
use super::{delay, no_panes};
use crate::reach::Reach;
use crate::sandbox::State;
use backend::Backend;
use backend::terminals::Sitting;
use base::envelope::Failure;
use base::input::Input;
use command::{Destination, Held};
use futures_util::future::BoxFuture;
use policy::approval::{Declaration, Landing, Site};
use policy::confine::Confinement;
use policy::shell::ShellGrant;
use policy::typing::{AdmittedInput, Keyboard, Typing};
use std::sync::Arc;
use std::time::Duration;
use tmux::{OwnPane, Pane, Panes, Place, Selector};

/// What is typed into.
pub(crate) enum Target {
    Managed(Pane),
    Own(Arc<OwnPane>, Place),
}

impl Target {
    /// Finds the pane that is meant. This comes before any question, which names it.
    pub(super) async fn find(
        grant: &ShellGrant,
        scope: &Arc<Reach>,
        selector: &Selector,
    ) -> Result<(Self, Confinement), Failure> {
        match (&scope.panes, scope.panes.managed().await?) {
            (_, Some(tmux)) => {
                let confinement = grant.confinement(scope).await?;
                let pane = tmux.find(&tmux.used_last(selector.clone()), confinement.cell()).await?;
                if let Some(cell) = confinement.cell()
                    && let Some(connections) = grant.connections(cell)
                {
                    // What is typed runs on after the call, and nobody is asked about it then.
                    drop(scope.services.egress.serve(cell, Arc::new(connections), &scope.scope)?);
                }
                Ok((Self::Managed(pane), confinement))
            }
            (Panes::Own(own), None) => {
                Ok((Self::Own(own.clone(), own.place(selector).await?), grant.confinement_of_own_pane()?))
            }
            (Panes::Managed(_) | Panes::None, None) => Err(no_panes()),
        }
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Managed(pane) => pane.shown(),
            Self::Own(_, place) => own_shown(place),
        }
    }

    async fn keyboard(&self) -> Result<Keyboard, Failure> {
        let terminal = match self {
            Self::Managed(pane) => pane.terminal().await?,
            Self::Own(own, _) => own.terminal().await?,
        };
        Ok(Keyboard { terminal, is_own: matches!(self, Self::Own(..)) })
    }

    fn unfinished(&self) -> String {
        match self {
            Self::Managed(pane) => pane.unfinished(),
            Self::Own(own, _) => own.unfinished(),
        }
    }

    async fn send(self, admitted: &AdmittedInput) -> Result<Place, Failure> {
        match self {
            Self::Managed(pane) => pane.send(admitted).await.map(|()| pane.place()),
            Self::Own(own, place) => own.send(admitted).await.map(|()| place),
        }
    }
}

/// What is to be typed, and when.
struct Wish {
    input: Input,
    held: Held,
    delay_ms: u64,
}

impl State {
    /// Types, once policy and, where it says so, a person have admitted it.
    pub(super) async fn type_into(
        &mut self,
        target: Target,
        confinement: &Confinement,
        input: Input,
        delay_ms: u64,
        declaration: Declaration,
    ) -> Result<Place, Refusal> {
        let unfinished = target.unfinished();
        let continued = if unfinished.is_empty() { Vec::new() } else { input.scripts(&unfinished) };
        let held = Held::Typed { texts: input.scripts(""), continued };
        let wish = Wish { input, held, delay_ms };
        self.admit_and_type(target, confinement, wish, declaration).await
    }

    /// Types a command at the prompt of the pane that this program was started in.
    pub(crate) async fn type_command(
        &mut self,
        own: Arc<OwnPane>,
        selector: &Selector,
        command: &str,
        declaration: Declaration,
    ) -> Result<Place, Refusal> {
        let input = Input::command(command)?;
        let place = own.place(selector).await?;
        own.ready().await?;
        let held = Held::Script(command.to_owned(), Destination::Pane);
        let confinement = self.grants()?.panes()?.confinement_of_own_pane()?;
        let wish = Wish { input, held, delay_ms: 0 };
        self.admit_and_type(Target::Own(own, place), &confinement, wish, declaration).await
    }

    async fn admit_and_type(
        &mut self,
        target: Target,
        confinement: &Confinement,
        Wish { input, held, delay_ms }: Wish,
        declaration: Declaration,
    ) -> Result<Place, Refusal> {
        let keyboard = target.keyboard().await?;
        let shown = format!("type into pane {}: {}", target.shown(), input.shown());
        self.meter.charge_bytes(shown.len() + declaration.why.len())?;
        check_why(&declaration)?;
        let (grant, scope) = (self.grants()?.panes()?.clone(), self.scope.clone());
        let site = Keys { target: &target, backend: scope.backend.clone(), delay_ms };
        let is_command = matches!(held, Held::Script(..));
        let typing = Typing { input, held, keyboard, shown };
        let admitted = grant.admit_typing(typing, declaration, confinement, &site, &scope).await?;
        delay(delay_ms, scope.clone()).await?;
        // While it was asked about and waited for, somebody may have sat down there, or another terminal have taken the pane's place.
        let (keyboard, is_asked) = (target.keyboard().await?, scope.approver.is_read());
        let checked = tokio::task::spawn_blocking(move || keyboard.check(is_asked, &Sitting::now())).await;
        checked
            .unwrap_or_else(|_| Err(Failure::denied("the host could not find out who reads what is typed there")))?;
        if let (Target::Own(own, _), true) = (&target, is_command) {
            own.ready().await?;
        }
        checkpoint(confinement.cell().map(|cell| &**cell), &scope).await;
        scope.touch_state();
        Ok(target.send(&admitted).await?)
    }
}

/// The pane that this program was started in, for people.
pub(super) fn own_shown(place: &Place) -> String {
    format!("{} of {}, where this program was started", place.pane, place.session)
}

/// Where and when keys are typed.
struct Keys<'t> {
    target: &'t Target,
    backend: Arc<dyn Backend>,
    delay_ms: u64,
}

impl Site for Keys<'_> {
    fn landing<'a>(&'a self) -> BoxFuture<'a, Result<Landing, Failure>> {
        Box::pin(async move {
            let directory = match self.target {
                Target::Managed(pane) => pane.directory().await?,
                Target::Own(own, _) => Some(own.directory().await?).filter(|directory| !directory.is_empty()),
            };
            Ok(landing(&*self.backend, self.target.shown(), directory, self.delay_ms))
        })
    }
}

/// Where an action on a pane lands, and when.
pub(super) fn landing(backend: &dyn Backend, pane: String, directory: Option<String>, delay_ms: u64) -> Landing {
    let delay = Some(Duration::from_millis(delay_ms)).filter(|delay| !delay.is_zero());
    Landing { backend: backend.name().into(), pane: Some(pane), directory, delay }
}
