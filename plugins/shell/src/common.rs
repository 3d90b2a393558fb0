//! What `shell` and `exec` have in common: variables, the time they are given, and what a model gets of the streams.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use toolcrib_sdk::{Captured, Declaration, JsonSchema, Risk, notice, schemars};

/// Characters of the beginning and of the end of each stream: errors are mostly at the end.
pub(crate) const HEAD_AND_TAIL: (u32, u32) = (25_000, 25_000);
/// The longest time, and the usual one, in seconds.
const MOST_SECONDS: u64 = 300;
const SECONDS: u64 = 60;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    pub(crate) key: String,
    pub(crate) value: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// -1 when a signal ended it.
    pub(crate) exit_code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What happened besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<String>,
}

impl Output {
    /// What a model gets of what has ended, with a notice for each stream that was cut.
    pub(crate) fn of(exit_code: i32, stdout: Captured, stderr: Captured, mut notices: Vec<String>) -> Self {
        for (name, captured) in [("stdout", &stdout), ("stderr", &stderr)] {
            if let (true, Some(place)) = (captured.truncated, &captured.stored) {
                notices.push(format!("{name} has {} bytes; all of it is kept as `{place}`", captured.bytes));
            }
        }
        Self { exit_code, stdout: stdout.text, stderr: stderr.text, notices }
    }
}

/// How long to wait.
pub(crate) fn time(seconds: Option<u64>) -> Duration {
    let wanted = seconds.unwrap_or(SECONDS);
    let given = wanted.clamp(1, MOST_SECONDS);
    if given != wanted {
        notice(format!("`timeout_seconds` is 1 to {MOST_SECONDS}: {given} was used"));
    }
    Duration::from_secs(given)
}

/// What is declared of a command whose arguments declare nothing.
pub(crate) fn declaration(why: Option<String>) -> Declaration {
    let why = why.filter(|why| !why.trim().is_empty()).unwrap_or_else(|| "no reason was given".into());
    Declaration { risk: Risk::Medium, mutation: true, privesc: false, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_within_five_minutes() {
        let seconds = |wanted| time(wanted).as_secs();
        assert_eq!([None, Some(0), Some(7), Some(300), Some(1_000_000_000)].map(seconds), [60, 1, 7, 300, 300]);
    }

    #[test]
    fn a_stream_that_was_cut_says_where_all_of_it_is() {
        let whole = Captured { text: "ok".into(), bytes: 2, truncated: false, stored: None };
        let cut = Captured { text: "…".into(), bytes: 90_000, truncated: true, stored: Some("/kept/1".into()) };
        let output = Output::of(0, whole, cut, vec!["left running".into()]);
        assert_eq!(output.notices, ["left running", "stderr has 90000 bytes; all of it is kept as `/kept/1`"]);
    }

    #[test]
    fn a_command_without_a_reason_says_so() {
        assert_eq!(declaration(Some(" ".into())).why, "no reason was given");
        assert_eq!(declaration(Some("tests".into())).why, "tests");
    }
}
