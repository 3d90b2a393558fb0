//! Terminal panes on the call's backend, which tmux keeps and people can attach to.
//!
//! The shared pane of the workspace's session is there when it is needed; others are made by [`pane_sessions`](crate::pane_sessions). The host
//! asks for approval and audits; it touches nothing that the agent has not made, but the pane that it was started in where the user chose
//! that. Everything here needs `shell.pane` in the plugin's grant. Without tmux everything here is `unavailable`.

use crate::duration::{Span, milliseconds};
use crate::host::panes;
use crate::{Declaration, Failure, Pane, Result};
use std::time::Duration;

pub use panes::{Input, Place, Progress, Screen, View};

/// What [`delay`] and [`span`] accept at most.
const LONGEST_DELAY: Duration = Duration::from_mins(10);

/// Returns what the argument `delay` of a tool asks for, or its older form `delay_ms`: how long to wait before a look or a key; without either not at
/// all.
///
/// # Errors
/// `invalid_arguments` for both at once, for what is not a duration, and for more than 10 minutes.
pub fn delay(delay: Option<&Span>, delay_ms: Option<u64>) -> Result<Duration> {
    match (delay, delay_ms) {
        (Some(_), Some(_)) => Err(Failure::invalid("`delay` and `delay_ms` were both given").hint("omit `delay_ms`")),
        (None, Some(ms)) => at_most("delay", &format!("{ms}ms"), Duration::from_millis(ms)),
        (delay, None) => span("delay", delay),
    }
}

/// Returns what an argument asks for that says how long to wait; without it not at all.
///
/// # Errors
/// `invalid_arguments` for what is not a duration, and for more than 10 minutes.
pub fn span(argument: &str, given: Option<&Span>) -> Result<Duration> {
    match given {
        Some(span) => at_most(argument, &span.given(), span.of(argument)?),
        None => Ok(Duration::ZERO),
    }
}

fn at_most(argument: &str, given: &str, wait: Duration) -> Result<Duration> {
    if wait > LONGEST_DELAY {
        let message = format!("`{argument}` `{given}` is longer than the 10 minutes that one call may wait");
        return Err(Failure::invalid(message));
    }
    Ok(wait)
}

/// Waits for `delay`, then returns what the pane shows, at most the last 256 KiB.
///
/// A pane that is gone is replaced by the shared one; a notice says so.
///
/// # Errors
/// `invalid_arguments`, `unavailable` or `cancelled`, as the host finds.
pub fn capture(pane: &Pane, view: &View, delay: Duration) -> Result<Screen> {
    panes::capture(pane, view, milliseconds(delay)).map_err(Failure::from_host)
}

/// Waits for the end of a command that was left running in a pane, at most for `wait`; returns `head` characters of what it has printed since the
/// last look, and `tail` characters of the end of that. Without a pane, it is the command that was left last.
///
/// # Errors
/// `execution_failed` when none was left there; `invalid_arguments`, `unavailable` or `cancelled`, as the host finds.
pub fn follow(pane: &Pane, wait: Duration, head: u32, tail: u32) -> Result<Progress> {
    panes::follow(pane, milliseconds(wait), head, tail).map_err(Failure::from_host)
}

/// Waits for `delay`, then types: first the text, then the keys, then Enter. Returns the pane that was typed into.
///
/// # Errors
/// `denied` by policy or a person, and where people answer questions; `invalid_arguments` for an unknown key or a control character in the
/// text but line breaks, which are Enter;
/// `execution_failed` for a pane that is gone.
pub fn send(pane: &Pane, input: &Input, delay: Duration, declaration: &Declaration) -> Result<Place> {
    panes::send(pane, input, milliseconds(delay), declaration).map_err(Failure::from_host)
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub use contract::panes::{Input, Place, Progress, Screen, View};
    use contract::types::{Declaration, Pane};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "panes":
        capture(pane: &Pane, view: &View, delay_ms: u64) -> Screen;
        follow(pane: &Pane, wait_ms: u64, head: u32, tail: u32) -> Progress;
        send(pane: &Pane, input: &Input, delay_ms: u64, declaration: &Declaration) -> Place;
    }

    written! {
        Input { literal_text, keys, enter }
        View {
            start, end, join_wrapped_lines, preserve_trailing_spaces, include_escape_sequences, escape_non_printable,
            include_alternate_screen
        }
    }

    read! {
        Progress { command, is_running, exit_code, output, notices }
        Screen { text, notices, unchanged_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn text(text: &str) -> Span {
        Span::Text(text.into())
    }

    #[test]
    fn a_delay_of_more_than_ten_minutes_is_refused_with_the_bound() {
        assert_eq!(delay(Some(&text("10m")), None), Ok(LONGEST_DELAY));
        for longer in [text("600001ms"), text("1h"), Span::Seconds(601)] {
            let failure = delay(Some(&longer), None).unwrap_err();
            assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
            assert!(failure.message.contains("10 minutes"), "{}", failure.message);
        }
    }

    #[test]
    fn milliseconds_are_an_older_form_and_stand_alone() {
        assert_eq!(delay(None, None), Ok(Duration::ZERO));
        assert_eq!(delay(None, Some(250)), Ok(Duration::from_millis(250)));
        assert_eq!(delay(Some(&Span::Seconds(2)), None), Ok(Duration::from_secs(2)));
        for refused in [delay(Some(&Span::Seconds(0)), Some(0)), delay(None, Some(600_001))] {
            assert_eq!(refused.unwrap_err().kind, Kind::INVALID_ARGUMENTS);
        }
    }
}
