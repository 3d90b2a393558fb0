//! `wit/panes.wit`: looking at panes and typing into them, after a grant of `shell.pane` admitted what changes them: typing is running.
//!
//! Panes are those of the managed tmux. Where there is none, the one that this program was started in can be looked at and typed into.

use super::Refusal;
use super::bindings::toolcrib::plugin::{panes, types};
use super::shell::check_why;
use crate::backend::Backend;
use crate::envelope::{Failure, Kind};
use crate::policy::approval::{Declaration, Landing, Site};
use crate::policy::shell::{AdmittedAction, PaneAction};
use crate::sandbox::State;
use crate::sanitize;
use crate::scope::Scope;
use crate::tmux::{Input, OwnPane, Pane, Panes, Place, Selector, Tmux, View};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// What one capture hands over at most, as `wit/panes.wit` promises.
const SCREEN_BYTES: usize = 256 << 10;
/// The longest delay, as `wit/panes.wit` promises.
const DELAY: Duration = Duration::from_secs(600);
/// Keys and bytes of one `send`.
const MOST_KEYS: usize = 100;
const TEXT_BYTES: usize = 64 << 10;

/// Keys with names of their own, as tmux has them.
#[rustfmt::skip]
const KEYS: [&str; 34] = [
    "Enter", "Escape", "Space", "Tab", "BTab", "BSpace", "Up", "Down", "Left", "Right", "Home", "End", "PageUp", "PgUp", "PPage",
    "PageDown", "PgDn", "NPage", "Insert", "IC", "Delete", "DC", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12",
];

impl panes::Host for State {
    async fn capture(&mut self, pane: types::Pane, view: panes::View, delay_ms: u64) -> Result<panes::Screen, Refusal> {
        self.grants.panes()?;
        let (selector, view) = (Selector::from(pane), View::try_from(view)?);
        delay(delay_ms, self.scope.clone()).await?;
        let (id, text, mut notices) = match (&self.scope.panes, self.scope.panes.managed().await?) {
            (_, Some(tmux)) => look(tmux, &selector, &view).await?,
            (Panes::Own(own), None) => look_at_own(own, &selector, &view).await?,
            (_, None) => return Err(no_panes().into()),
        };
        // Escape sequences are shown, not handed on.
        let text = if view.escapes { text.replace('\u{1b}', "\u{241b}") } else { text };
        let text = sanitize::text(&text).into_owned();
        let cut = text.len().saturating_sub(SCREEN_BYTES);
        let begin = (cut..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
        if begin > 0 {
            notices.push(format!("only the last {SCREEN_BYTES} of {} bytes were taken", text.len()));
        }
        let text = text[begin..].to_owned();
        let unchanged_ms = self.scope.unchanged_ms(format!("{id} {view:?}"), &text);
        Ok(panes::Screen { text, notices, unchanged_ms })
    }

    async fn send(
        &mut self,
        pane: types::Pane,
        input: panes::Input,
        delay_ms: u64,
        declaration: types::Declaration,
    ) -> Result<panes::Place, Refusal> {
        self.grants.panes()?;
        let (selector, input) = (Selector::from(pane), Input::try_from(input)?);
        // Found before anybody is asked: the question names the pane, and a pane that is gone is no question.
        let target = match (&self.scope.panes, self.scope.panes.managed().await?) {
            (_, Some(tmux)) => Target::Managed(tmux.find(&selector).await?),
            (Panes::Own(own), None) => Target::Own(own.clone(), own.place(&selector).await?),
            (_, None) => return Err(no_panes().into()),
        };
        let action = PaneAction { shown: shown(&input, &target.shown()), script: input.text.clone() };
        let site = Typing { target: &target, backend: self.scope.backend.clone(), delay_ms };
        let admitted = self.admit_action(action, declaration, &site).await?;
        delay(delay_ms, self.scope.clone()).await?;
        self.scope.touch_state();
        Ok(target.send(&input, &admitted).await?.into())
    }
}

impl State {
    /// Lets policy and, where it says so, a person decide.
    pub(super) async fn admit_action(
        &mut self,
        action: PaneAction,
        declaration: types::Declaration,
        site: &dyn Site,
    ) -> Result<AdmittedAction, Refusal> {
        self.meter.charge_bytes(action.shown.len() + declaration.why.len())?;
        let declaration = Declaration::from(declaration);
        check_why(&declaration)?;
        let (grant, scope) = (self.grants.shell()?.clone(), self.scope.clone());
        Ok(grant.admit_action(action, declaration, site, &scope).await?)
    }
}

/// What is typed into.
enum Target {
    Managed(Pane),
    Own(Arc<OwnPane>, Place),
}

impl Target {
    fn shown(&self) -> String {
        match self {
            Self::Managed(pane) => pane.shown(),
            Self::Own(_, place) => format!("{} of {}, where this program was started", place.pane, place.session),
        }
    }

    async fn send(self, input: &Input, admitted: &AdmittedAction) -> Result<Place, Failure> {
        match self {
            Self::Managed(pane) => pane.send(input, admitted).await.map(|()| pane.place()),
            Self::Own(own, place) => own.send(input, admitted).await.map(|()| place),
        }
    }
}

/// Where and when keys are typed.
struct Typing<'t> {
    target: &'t Target,
    backend: Arc<dyn Backend>,
    delay_ms: u64,
}

#[async_trait]
impl Site for Typing<'_> {
    async fn landing(&self) -> Result<Landing, Failure> {
        let directory = match self.target {
            Target::Managed(pane) => pane.directory().await?,
            Target::Own(..) => None,
        };
        let delay = Some(Duration::from_millis(self.delay_ms)).filter(|delay| !delay.is_zero());
        let pane = Some(self.target.shown());
        Ok(Landing { backend: self.backend.name().into(), pane, directory, delay })
    }
}

/// Returns the pane's id, what it shows, and what there is to say. One that is gone is replaced by the shared pane.
async fn look(tmux: &Tmux, selector: &Selector, view: &View) -> Result<(String, String, Vec<String>), Failure> {
    let mut notices = Vec::new();
    let pane = match tmux.find(selector).await {
        Err(missing) if missing.kind == Kind::ExecutionFailed && *selector != Selector::default() => {
            notices.push(format!("{}: this is the shared pane instead", missing.message));
            tmux.find(&Selector::default()).await?
        }
        found => found?,
    };
    let (text, notice) = pane.capture(view).await?;
    let place = pane.place();
    notices.extend(place.notices.into_iter().chain(notice));
    Ok((place.id, text, notices))
}

async fn look_at_own(
    own: &OwnPane,
    selector: &Selector,
    view: &View,
) -> Result<(String, String, Vec<String>), Failure> {
    let place = own.place(selector).await?;
    let (text, notice) = own.capture(view).await?;
    Ok((place.id, text, notice.into_iter().collect()))
}

pub(super) fn no_panes() -> Failure {
    Failure::new(Kind::Unavailable, "there are no panes: this host runs commands without tmux")
        .hint("install tmux and start without `--no-tmux`")
}

async fn delay(delay_ms: u64, scope: Arc<Scope>) -> Result<(), Failure> {
    let delay = Duration::from_millis(delay_ms);
    if delay > DELAY {
        return Err(Failure::invalid(format!("a delay is at most {} s", DELAY.as_secs())));
    }
    if delay.is_zero() {
        return Ok(());
    }
    let _waiting = scope.clock.waiting();
    tokio::select! {
        () = tokio::time::sleep(delay) => Ok(()),
        () = scope.cancel.cancelled() => Err(Failure::cancelled()),
    }
}

fn shown(input: &Input, pane: &str) -> String {
    let mut shown = format!("type into pane {pane}:");
    if !input.text.is_empty() {
        shown += &format!(" {:?}", input.text);
    }
    for key in input.keys.iter().map(String::as_str).chain(input.enter.then_some("Enter")) {
        shown += &format!(" <{key}>");
    }
    shown
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
                Failure::invalid(format!("`{name}` is `{number}`, which is no line"))
                    .hint("give a number, negative ones reach into the history, or `-`")
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

impl TryFrom<panes::Input> for Input {
    type Error = Failure;

    /// Everything is checked before anything is typed.
    fn try_from(panes::Input { literal_text, keys, enter }: panes::Input) -> Result<Self, Failure> {
        let text = literal_text.unwrap_or_default();
        if text.len() > TEXT_BYTES || keys.len() > MOST_KEYS {
            let message = format!("at most {TEXT_BYTES} bytes and {MOST_KEYS} keys are typed at a time");
            return Err(Failure::invalid(message));
        }
        if let Some(control) = text.chars().find(|c| c.is_control() && *c != '\t') {
            return Err(Failure::invalid(format!("`literal_text` holds the control character {control:?}")).hint(
                "give keys by name in `keys`, such as `Enter` or `C-c`; a script of several lines is for run_shell",
            ));
        }
        if let Some(key) = keys.iter().find(|key| !is_key(key)) {
            let shown: String = sanitize::line(key).chars().take(40).collect();
            return Err(Failure::invalid(format!("`{shown}` is no key")).hint(
                "keys are named as tmux does: `C-c`, `Enter`, `Up`, `M-x`, `F1`; text goes into `literal_text`",
            ));
        }
        if text.is_empty() && keys.is_empty() && !enter {
            return Err(Failure::invalid("there is nothing to type").hint("give `literal_text`, `keys` or `enter`"));
        }
        Ok(Self { text, keys, enter })
    }
}

/// One of tmux's names, or a character; with or without modifiers.
fn is_key(key: &str) -> bool {
    let mut rest = key;
    while let Some(behind) = ["C-", "M-", "S-"].iter().find_map(|modifier| rest.strip_prefix(modifier)) {
        rest = behind;
    }
    let mut chars = rest.chars();
    let is_char = chars.next().is_some_and(|c| !c.is_control()) && chars.next().is_none();
    is_char || KEYS.contains(&rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_tmux() {
        assert!(["Enter", "C-c", "M-x", "C-M-Left", "F12", "q", "C-Space", "ß"].into_iter().all(is_key));
        assert!(["NoSuchKey", "", "C-", "enter now", "-R", "0x0d", "KP0", "C-\u{1}"].iter().all(|key| !is_key(key)));
    }

    #[test]
    fn nothing_is_typed_before_all_is_known() {
        let input = |text: &str, keys: &[&str]| {
            let keys = keys.iter().map(ToString::to_string).collect();
            Input::try_from(panes::Input { literal_text: Some(text.into()), keys, enter: false })
        };
        assert!(input("a\tb", &["C-c"]).is_ok());
        for (text, keys) in [("a\n", &["C-c"][..]), ("a\u{1b}[201~", &[]), ("a", &["Nope"]), ("", &[])] {
            assert_eq!(input(text, keys).expect_err("refused").kind, Kind::InvalidArguments);
        }
    }
}
