//! The line at a shell's prompt: it must be empty when a command is typed, or its text would run with the command.
//!
//! No key empties every line editor: `C-u` takes what is left of the cursor, is swallowed behind Escape, and is text where the terminal is
//! raw. C-c does, but shows, and runs the user's traps. So it is pressed only where somebody may have begun a line: where the cursor is not
//! where it was at the last empty prompt, or keys came meanwhile. A notice says what was in the line.

use super::Session;
use super::client::Output;
use super::commands::{self, Command};
use super::condition::{Condition, Prompt, Since};
use super::look::Doing;
use super::pane::Pane;
use super::screen::View;
use base::envelope::{Failure, Kind};
use base::text::sanitize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How often a shell that is not at its prompt is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long a shell may take to be at its prompt again after a program that has left the alternate screen behind.
const COMES_BACK: Duration = Duration::from_millis(500);
/// How long a shell may take to answer C-c with a new prompt, and how often it is pressed: zsh first leaves a search.
const ANSWER: Duration = Duration::from_millis(700);
const PRESSES: u32 = 3;
/// A shell that has printed nothing for so long is done with its prompt.
const QUIET: Duration = Duration::from_millis(40);
/// How long a prompt may take after a command, and go on printing.
const PROMPT: Duration = Duration::from_secs(5);
/// Characters of a line that a notice shows.
const TOLD_CHARS: usize = 200;

impl Pane {
    /// Empties the line at the prompt if something may be in it; returns the notice about that. None where nothing was done.
    pub(super) async fn empty_line(
        &self,
        condition: &Condition,
        deadline: Instant,
    ) -> Result<Option<Option<String>>, Failure> {
        let is_doubtful = condition.may_have_line();
        if !is_doubtful && !condition.alternate {
            return Ok(None);
        }
        self.until_at_prompt(condition, deadline).await?;
        Ok(Some(if is_doubtful { self.discard_line(condition).await? } else { None }))
    }

    /// Keys that are pressed must not end what runs: a loop of a person's, `read`.
    async fn until_at_prompt(&self, condition: &Condition, deadline: Instant) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            match self.session.look_at_pane(self.number, &condition.pid).await? {
                // Nobody can tell what is left of a program that has left the alternate screen behind.
                Doing::Runs | Doing::Unknown if condition.alternate && begun.elapsed() > COMES_BACK => {
                    return Err(condition.fills_screen(self));
                }
                Doing::Unknown if condition.alternate => sleep(LOOK_AGAIN).await,
                Doing::Runs if Instant::now() + LOOK_AGAIN < deadline => sleep(LOOK_AGAIN).await,
                Doing::Runs => {
                    let message = format!("the shell of pane {} runs something that somebody typed", self.shown());
                    return Err(Failure::new(Kind::Busy, message).hint(
                        "wait for it, look with capture-pane, end it with send-keys `C-c`, or use another pane",
                    ));
                }
                Doing::Waits | Doing::Unknown => return Ok(()),
            }
        }
    }

    async fn discard_line(&self, condition: &Condition) -> Result<Option<String>, Failure> {
        let (session, number) = (&self.session, self.number);
        let mut output = session.client.watch(number);
        let (place, before) = session.last_line(number).await?;
        for _ in 0..PRESSES {
            session.client.run(&commands::press(number, "C-c")).await?;
            let answered_by = Instant::now() + ANSWER;
            // What comes first may be the rest of an older prompt: another C-c now would have its answer come behind the line that is typed next.
            while let Some(left) = answered_by.checked_duration_since(Instant::now()) {
                output.until_quiet(left, QUIET).await;
                let (now_at, after) = session.last_line(number).await?;
                if now_at != place {
                    session.client.run(&Prompt::record(number, &condition.since())).await?;
                    // A shell that is slow to echo, in a container, may not have shown yet what we know that we have typed.
                    return Ok(told(&before, &after).or_else(|| told(&session.unfinished.line(number), "")));
                }
            }
        }
        let message = format!("the shell of pane {} does not answer C-c", self.shown());
        Err(Failure::new(Kind::Busy, message)
            .hint("somebody may have begun a line in it: look with capture-pane, or use another pane"))
    }
}

impl Session {
    /// Where the cursor is among all lines that there ever were, and the last line that is not blank.
    async fn last_line(&self, number: u32) -> Result<(String, String), Failure> {
        let place = commands::ask(number, "#{history_size}:#{cursor_y}");
        let screen = commands::capture(number, &View { join: true, ..View::default() }, false);
        let [place, screen] = self.client.run_all([place, screen]).await?;
        let line = screen.text.lines().rev().map(str::trim_end).find(|line| !line.is_empty());
        Ok((place.text, line.unwrap_or_default().to_owned()))
    }
}

impl Prompt {
    /// What keeps where the cursor is now, at an empty prompt. What was typed since then is not known to be gone.
    pub(super) fn record(number: u32, since: &Since) -> Command {
        commands::set_expanded(number, Self::OPTION, &format!("{} {since}", Self::CURSOR))
    }

    /// What keeps where the cursor was when the first line was typed.
    pub(super) fn begin(number: u32, cursor: &str, since: &Since) -> Command {
        commands::set(number, Self::BEGAN, &format!("{cursor} {since}"))
    }

    /// What marks that keys were sent.
    pub(super) fn touch(number: u32) -> Command {
        commands::set(number, Self::OPTION, Self::TOUCHED)
    }
}

/// Waits for the prompt after a command that began at that time, or for its rest, and keeps where the cursor is then. Ends early when the
/// next command comes.
pub(super) async fn settle(
    session: Arc<Session>,
    number: u32,
    (mut output, has_begun): (Output, bool),
    began: Since,
    is_settled: Arc<AtomicBool>,
) {
    let first = if has_begun { QUIET } else { PROMPT };
    if output.until_quiet(first, QUIET).await {
        let record = Prompt::record(number, &began);
        // Keys that were sent while the command ran may be in the line by now; after an empty prompt nothing is under the cursor.
        let is_empty =
            format!("#{{&&:#{{!=:#{{{}}},{}}},#{{==:#{{cursor_character}}, }}}}", Prompt::OPTION, Prompt::TOUCHED);
        let _ = session.client.run_nested(&commands::when(number, &is_empty, &record)).await;
    }
    is_settled.store(true, Ordering::Release);
}

impl Output {
    /// Waits for the next output for at most so long, then until nothing came for a moment; false when the client is gone, or watches for
    /// somebody else.
    async fn until_quiet(&mut self, first: Duration, quiet: Duration) -> bool {
        let end = Instant::now() + PROMPT;
        let mut patience = first;
        while let Ok(piece) = timeout(patience, self.next()).await {
            match piece {
                None => return false,
                Some(_) if Instant::now() > end => return false,
                Some(_) => patience = quiet,
            }
        }
        true
    }
}

/// The notice about a line that was discarded: what followed the prompt, as far as that can be known.
fn told(before: &str, after: &str) -> Option<String> {
    let line = before.strip_prefix(after).unwrap_or(before).trim();
    let line = sanitize::beginning(line, TOLD_CHARS);
    (!line.is_empty()).then(|| format!("an unfinished line in the pane was discarded: `{line}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stood_behind_the_prompt_is_told() {
        let said = |line: &str| Some(format!("an unfinished line in the pane was discarded: `{line}`"));
        assert_eq!(told("root@a:~# touch F", "root@a:~#"), said("touch F"));
        assert_eq!(told("root@a:~#", "root@a:~#"), None);
        assert_eq!(told("other# x", "root@a:~#"), said("other# x"));
        assert_eq!(told("", ""), None);
    }
}
