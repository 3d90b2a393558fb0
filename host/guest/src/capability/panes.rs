//! `wit/panes.wit`: looking at panes and typing into them, after a grant of `shell.pane` admitted what changes them: typing is running.
//!
//! Panes are those of the managed tmux, or the one that this program was started in, where the user chose it; looking at that one is asked for,
//! too, because the user's own work is on its screen. Typing is `panes/typing.rs`.

mod typing;

use super::Refusal;
use super::bindings::toolcrib::plugin::{panes, types};
use super::shell::{Plan, check_why};
use crate::reach::Reach;
use crate::sandbox::State;
use backend::cell::Profile;
use base::envelope::{Failure, Kind};
use base::input::Input;
use base::text::sanitize;
use policy::approval::{Declaration, Site};
use policy::confine::Confinement;
use policy::shell::AdmittedAction;
use std::sync::Arc;
use std::time::Duration;
use tmux::{End, Left, Look, OwnPane, Panes, Place, Selector, Tmux, View};
use typing::{Target, landing, own_shown};

/// What one capture returns at most, as `wit/panes.wit` promises.
const SCREEN_BYTES: usize = 256 << 10;
/// The longest delay, as `wit/panes.wit` promises.
const DELAY: Duration = Duration::from_secs(600);

impl panes::Host for State {
    async fn capture(&mut self, pane: types::Pane, view: panes::View, delay_ms: u64) -> Result<panes::Screen, Refusal> {
        let grant = self.grants()?.panes()?.clone();
        let (selector, view) = (Selector::from(pane), View::try_from(view)?);
        check_delay(delay_ms)?;
        let (id, text, mut notices) = match (&self.scope.panes, self.scope.panes.managed().await?) {
            (_, Some(tmux)) => {
                // Of a pane that is made for this. A look needs no cell.
                let confinement = grant.confinement(&self.scope).await.ok();
                delay(delay_ms, self.scope.clone()).await?;
                look(tmux, &tmux.used_last(selector), &view, confinement.as_ref().and_then(Confinement::cell)).await?
            }
            (Panes::Own(own), None) => self.look_at_own(&own.clone(), &selector, &view, delay_ms).await?,
            (Panes::Managed(_) | Panes::None, None) => return Err(no_panes().into()),
        };
        // Escape sequences are shown, not handed on.
        let text = if view.escapes { text.replace('\u{1b}', "\u{241b}") } else { text };
        let text = sanitize::text(&text).into_owned();
        let cut = text.len().saturating_sub(SCREEN_BYTES);
        let begin = (cut..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
        if begin > 0 {
            notices.push(format!("only the last {SCREEN_BYTES} of {} bytes are shown", text.len()));
        }
        let text = text[begin..].to_owned();
        let unchanged_ms = self.scope.unchanged_ms(format!("{id} {view:?}"), &text);
        Ok(panes::Screen { text, notices, unchanged_ms })
    }

    async fn follow(
        &mut self,
        pane: types::Pane,
        wait_ms: u64,
        head: u32,
        tail: u32,
    ) -> Result<panes::Progress, Refusal> {
        self.grants()?.panes()?;
        check_delay(wait_ms)?;
        let tmux = self.scope.panes.managed().await?.cloned().ok_or_else(no_panes)?;
        let left = tmux.left_running(&Selector::from(pane)).await?;
        Ok(follow(&left, Duration::from_millis(wait_ms), (head, tail), &self.scope).await?)
    }

    async fn send(
        &mut self,
        pane: types::Pane,
        input: panes::Input,
        delay_ms: u64,
        declaration: types::Declaration,
    ) -> Result<panes::Place, Refusal> {
        let grant = self.grants()?.panes()?.clone();
        let panes::Input { literal_text, keys, enter } = input;
        let input = Input::parse(&literal_text.unwrap_or_default(), &keys, enter)?;
        check_delay(delay_ms)?;
        let (target, confinement) = Target::find(&grant, &self.scope, &Selector::from(pane)).await?;
        Ok(self.type_into(target, &confinement, input, delay_ms, declaration.into()).await?.into())
    }
}

impl State {
    /// Lets policy and, where it says so, a person decide.
    pub(super) async fn admit_action(
        &mut self,
        command: &str,
        declaration: types::Declaration,
        site: &dyn Site,
    ) -> Result<AdmittedAction, Refusal> {
        self.meter.charge_bytes(command.len() + declaration.why.len())?;
        let declaration = Declaration::from(declaration);
        check_why(&declaration)?;
        let (grant, scope) = (self.grants()?.panes()?.clone(), self.scope.clone());
        Ok(grant.admit_action(command, declaration, site, &scope).await?)
    }

    /// Looks at the pane that this program was started in, once it was admitted.
    async fn look_at_own(
        &mut self,
        own: &OwnPane,
        selector: &Selector,
        view: &View,
        delay_ms: u64,
    ) -> Result<(String, String, Vec<String>), Refusal> {
        let place = own.place(selector).await?;
        let (grant, scope) = (self.grants()?.panes()?.clone(), self.scope.clone());
        let pane = own_shown(&place);
        let shown = format!("look at pane {pane}: {}", view.shown());
        let landing = landing(&*scope.backend, pane, None, delay_ms);
        grant.admit_look(&shown, &landing, &scope).await?;
        delay(delay_ms, scope).await?;
        let (text, notice) = own.capture(view).await?;
        Ok((place.id, text, notice.into_iter().collect()))
    }
}

/// Returns the pane's id, what it shows, and what there is to say. One that is gone is replaced by the shared pane.
async fn look(
    tmux: &Tmux,
    selector: &Selector,
    view: &View,
    cell: Option<&Arc<Profile>>,
) -> Result<(String, String, Vec<String>), Failure> {
    let mut notices = Vec::new();
    let pane = match tmux.look_for(selector, cell).await {
        Err(missing) if missing.kind == Kind::ExecutionFailed && *selector != Selector::default() => {
            notices.push(format!("{}: this is the shared pane instead", missing.message));
            tmux.look_for(&Selector::default(), cell).await?
        }
        found => found?,
    };
    let (text, notice) = pane.capture(view).await?;
    let place = pane.place();
    notices.extend(place.notices.into_iter().chain(notice));
    Ok((place.id, text, notices))
}

async fn follow(
    left: &Left,
    wait: Duration,
    (head, tail): (u32, u32),
    scope: &Arc<Reach>,
) -> Result<panes::Progress, Failure> {
    let look = {
        let _waiting = scope.clock.waiting();
        tokio::select! {
            look = left.look(wait) => look,
            () = scope.cancel.cancelled() => return Err(Failure::cancelled()),
        }
    };
    let Look { command, printed, dropped, end } = look;
    let output = Plan::alone(wait, head, tail, scope).read(&printed, scope).await;
    let mut notices = Vec::new();
    if dropped > 0 {
        notices.push(format!("{dropped} bytes that it printed before were not kept"));
    }
    let exit_code = match end {
        None => None,
        Some(End::Exited(status)) => Some(status),
        Some(End::Unknown) => {
            notices.push(format!("it has ended in pane {}, and its shell did not report how", left.id()));
            None
        }
    };
    Ok(panes::Progress { command, is_running: end.is_none(), exit_code, output: output.into(), notices })
}

pub(super) fn no_panes() -> Failure {
    Failure::new(Kind::Unavailable, "there are no panes: this host runs commands without tmux")
        .hint("install tmux there, or start with `--panes host`; `--no-tmux` switches panes off")
}

fn check_delay(delay_ms: u64) -> Result<(), Failure> {
    if Duration::from_millis(delay_ms) > DELAY {
        return Err(Failure::invalid(format!("a delay is at most {} s", DELAY.as_secs())));
    }
    Ok(())
}

async fn delay(delay_ms: u64, scope: Arc<Reach>) -> Result<(), Failure> {
    if delay_ms == 0 {
        return Ok(());
    }
    let _waiting = scope.clock.waiting();
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(delay_ms)) => Ok(()),
        () = scope.cancel.cancelled() => Err(Failure::cancelled()),
    }
}

impl From<types::Pane> for Selector {
    fn from(types::Pane { session, pane, target }: types::Pane) -> Self {
        let given = |name: Option<String>| name.filter(|name| !name.trim().is_empty());
        Self { session: given(session), pane: given(pane), target: given(target) }
    }
}

impl From<Place> for panes::Place {
    fn from(Place { session, pane, id, created, notices }: Place) -> Self {
        Self { session, pane, id, created, notices }
    }
}

impl TryFrom<panes::View> for View {
    type Error = Failure;

    fn try_from(view: panes::View) -> Result<Self, Failure> {
        let line = |name: &str, given: Option<String>| match given.as_deref().map(str::trim) {
            None | Some("") => Ok((None, false)),
            Some("-") => Ok((None, true)),
            Some(number) => number.parse().map(|number| (Some(number), false)).map_err(|_| {
                Failure::invalid(format!("`{name}` is `{number}`, which is not a line number"))
                    .hint("give a number (negative ones are in the history), or `-`")
            }),
        };
        let ((start, from_begin), (end, to_end)) = (line("start", view.start)?, line("end", view.end)?);
        Ok(Self {
            start,
            from_begin,
            end,
            to_end,
            join: view.join_wrapped_lines,
            trailing_spaces: view.preserve_trailing_spaces,
            escapes: view.include_escape_sequences,
            octal: view.escape_non_printable,
            alternate: view.include_alternate_screen,
        })
    }
}
