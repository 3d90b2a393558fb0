//! Looking at a pane and typing into it: the same words of tmux, whoever says them to the server.

use super::commands::{self, Command};
use async_trait::async_trait;
use base::envelope::{Failure, Kind};
use base::input::{Input, Step};

/// Bytes of text that go into one command: a message between client and server is at most 16 KiB.
const PIECE: usize = 4 << 10;

/// What to look at; the fields are those of `wit/panes.wit`.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of tmux")]
pub struct View {
    pub start: Option<i64>,
    pub from_begin: bool,
    pub end: Option<i64>,
    pub to_end: bool,
    pub join: bool,
    pub trailing_spaces: bool,
    pub escapes: bool,
    pub octal: bool,
    pub alternate: bool,
}

/// A way to the server: a control-mode client, or a process for each command.
#[async_trait]
pub(super) trait Door: Sync {
    /// Runs one command. An error is tmux's own word.
    async fn command(&self, command: &Command) -> Result<Result<String, String>, Failure>;
}

impl View {
    /// Which part, for people.
    pub fn shown(&self) -> String {
        if self.start.is_none() && self.end.is_none() && !self.from_begin && !self.to_end {
            return "what is visible".into();
        }
        let line =
            |number: Option<i64>, whole: &str| number.map_or_else(|| whole.to_owned(), |line| format!("line {line}"));
        let first = if self.from_begin { "the begin of its history" } else { "the first visible line" };
        format!("from {} to {}", line(self.start, first), line(self.end, "the last visible line"))
    }
}

/// Takes what a pane shows, and what there is to say about it.
pub(super) async fn capture(door: &dyn Door, pane: u32, view: &View) -> Result<(String, Option<String>), Failure> {
    match door.command(&commands::capture(pane, view, view.alternate)).await? {
        Ok(text) => Ok((text, None)),
        Err(reason) if view.alternate && reason.contains("no alternate screen") => {
            let notice = "no alternate screen was put aside; this is the screen that is shown";
            Ok((run(door, &commands::capture(pane, view, false)).await?, Some(notice.into())))
        }
        Err(reason) => Err(said(&reason)),
    }
}

/// Types, step by step.
pub(super) async fn send(door: &dyn Door, pane: u32, input: &Input) -> Result<(), Failure> {
    // In a mode of tmux, keys are that mode's commands.
    let _ = door.command(&commands::leave_mode(pane)).await?;
    for step in input.steps() {
        match step {
            Step::Text(text) => {
                for piece in pieces(text) {
                    run(door, &commands::type_text(pane, piece)).await?;
                }
            }
            Step::Key(key) => _ = run(door, &commands::press(pane, &key.name())).await?,
        }
    }
    Ok(())
}

/// A text in pieces that a command of tmux can carry.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

async fn run(door: &dyn Door, command: &Command) -> Result<String, Failure> {
    door.command(command).await?.map_err(|reason| said(&reason))
}

/// A failure in tmux's own words; but for a session that is gone, as a client outlives its session by a moment.
pub(super) fn said(reason: &str) -> Failure {
    let reason = reason.trim();
    if reason == "no current target" || reason.starts_with("can't find session") {
        return gone();
    }
    Failure::failed(format!("tmux: {reason}"))
}

/// What there was to talk to is gone, with all that ran in it.
pub(super) fn gone() -> Failure {
    Failure::new(Kind::Unavailable, "the tmux server or session is gone")
        .hint("call again: the session is made anew; what ran in it has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_whose_session_is_gone_says_so() {
        for reason in ["no current target", "can't find session: $0\n"] {
            assert_eq!(said(reason).kind, Kind::Unavailable, "{reason}");
        }
        assert_eq!(said("can't find pane: %3").message, "tmux: can't find pane: %3");
    }
}
