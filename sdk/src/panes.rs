//! Terminal panes on the call's backend, which tmux keeps and people can attach to.
//!
//! The shared pane of the workspace's session is there when it is needed; others are made by [`pane_sessions`](crate::pane_sessions). The host
//! asks for approval and audits; it touches nothing that the agent has not made, but the pane that it was started in where the user chose
//! that. Everything here needs `shell.pane` in the plugin's grant. Without tmux everything here is `unavailable`.

use crate::duration::{self, milliseconds};
use crate::host::panes;
use crate::{Declaration, Failure, JsonSchema, Pane, Result};
use std::time::Duration;

pub use panes::{Input, Place, Screen, View};

/// What a [`Delay`] asks for at most.
const LONGEST_DELAY: Duration = Duration::from_mins(10);

/// The argument `delay` of a tool: how long to wait before a look or a key. The default is not at all.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`delay` is whole seconds, or a duration such as 500ms")]
pub enum Delay {
    /// Seconds.
    Seconds(u64),
    /// Digits with a unit: `500ms`, `30s`, `2m`.
    Text(String),
}

impl Default for Delay {
    fn default() -> Self {
        Self::Seconds(0)
    }
}

impl Delay {
    /// Returns what `delay` or its older form `delay_ms` asks for.
    ///
    /// # Errors
    /// `invalid_arguments` for both at once, for what is not a duration, and for more than 10 minutes.
    pub fn either(delay: Option<Self>, delay_ms: Option<u64>) -> Result<Duration> {
        match (delay, delay_ms) {
            (Some(_), Some(_)) => {
                Err(Failure::invalid("`delay` and `delay_ms` were both given").hint("omit `delay_ms`"))
            }
            (Some(delay), None) => delay.parse(),
            (None, delay_ms) => Self::Text(format!("{}ms", delay_ms.unwrap_or_default())).parse(),
        }
    }

    /// Returns what was asked for.
    ///
    /// # Errors
    /// `invalid_arguments` for what is not a duration, and for more than 10 minutes.
    pub fn parse(self) -> Result<Duration> {
        let given = match self {
            Self::Seconds(seconds) => seconds.to_string(),
            Self::Text(text) => text,
        };
        let forms = "seconds, or digits with a unit: 500ms, 30s, 2m";
        let delay = duration::parse(&given).ok_or_else(|| {
            Failure::invalid(format!("`delay` `{given}` is not a valid duration; valid forms are {forms}"))
        })?;
        if delay > LONGEST_DELAY {
            let message = format!("`delay` `{given}` is longer than the 10 minutes that one call may wait");
            return Err(Failure::invalid(message));
        }
        Ok(delay)
    }
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
    pub use contract::panes::{Input, Place, Screen, View};
    use contract::types::{Declaration, Pane};

    pub(crate) const CALLS: &[&[Signature]] = &[SIGNATURES];

    functions! { "panes":
        capture(pane: &Pane, view: &View, delay_ms: u64) -> Screen;
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
        Screen { text, notices, unchanged_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn parse(text: &str) -> Result<Duration> {
        Delay::Text(text.into()).parse()
    }

    #[test]
    fn a_delay_is_seconds_or_has_a_unit() {
        assert_eq!(Delay::default().parse(), Ok(Duration::ZERO));
        assert_eq!(Delay::Seconds(2).parse(), Ok(Duration::from_secs(2)));
        assert_eq!(parse("2"), Ok(Duration::from_secs(2)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn a_delay_of_more_than_ten_minutes_is_refused_with_the_bound() {
        assert_eq!(parse("10m"), Ok(LONGEST_DELAY));
        for delay in [Delay::Text("600001ms".into()), Delay::Text("1h".into()), Delay::Seconds(601)] {
            let failure = delay.parse().unwrap_err();
            assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
            assert!(failure.message.contains("10 minutes"), "{}", failure.message);
        }
    }

    #[test]
    fn milliseconds_are_an_older_form_and_stand_alone() {
        assert_eq!(Delay::either(None, None), Ok(Duration::ZERO));
        assert_eq!(Delay::either(None, Some(250)), Ok(Duration::from_millis(250)));
        assert_eq!(Delay::either(Some(Delay::Seconds(2)), None), Ok(Duration::from_secs(2)));
        for refused in [Delay::either(Some(Delay::default()), Some(0)), Delay::either(None, Some(600_001))] {
            assert_eq!(refused.unwrap_err().kind, Kind::INVALID_ARGUMENTS);
        }
    }

    #[test]
    fn what_is_no_delay_is_named_with_the_forms_that_work() {
        for delay in [Delay::Text(String::new()), Delay::Text("soon".into()), Delay::Seconds(u64::MAX)] {
            let failure = delay.parse().unwrap_err();
            assert_eq!(failure.kind, Kind::INVALID_ARGUMENTS);
            assert!(failure.message.contains("500ms, 30s, 2m"), "{}", failure.message);
        }
    }
}
