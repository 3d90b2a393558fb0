//! What `shell` and `exec` have in common: variables, and the time they are given.

use serde::Deserialize;
use std::time::Duration;
use toolcrib_sdk::{Declaration, JsonSchema, Risk, notice, schemars};

/// The longest time, and the usual one, in seconds.
const MOST_SECONDS: u64 = 300;
const SECONDS: u64 = 60;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    pub(crate) key: String,
    pub(crate) value: String,
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
    fn a_command_without_a_reason_says_so() {
        assert_eq!(declaration(Some(" ".into())).why, "no reason was given");
        assert_eq!(declaration(Some("tests".into())).why, "tests");
    }
}
