//! What `shell` and `exec` have in common: variables, and the time they are given.

use serde::Deserialize;
use std::time::Duration;
use toolcrib_sdk::duration::Span;
use toolcrib_sdk::{Declaration, JsonSchema, Result, Risk, notice, schemars};

/// The shortest time, the longest, and the usual one.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(300);
const USUAL: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    /// Name.
    pub(crate) key: String,
    /// Value.
    pub(crate) value: String,
}

/// How long to wait.
pub(crate) fn time(timeout: Option<&Span>) -> Result<Duration> {
    let wanted = timeout.map_or(Ok(USUAL), |timeout| timeout.of("timeout_seconds"))?;
    let given = wanted.clamp(LEAST, MOST);
    if given != wanted {
        notice(format!("`timeout_seconds` is 1 to {}: {} was used", MOST.as_secs(), given.as_secs()));
    }
    Ok(given)
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
        let seconds = |wanted: u64| time(Some(&Span::Seconds(wanted))).map(|time| time.as_secs());
        assert_eq!([0, 7, 300, 1_000_000_000].map(seconds), [1, 7, 300, 300].map(Ok));
        assert_eq!(time(None), Ok(USUAL));
        assert_eq!(time(Some(&Span::Text("2m".into()))), Ok(Duration::from_mins(2)));
        assert!(time(Some(&Span::Text("soon".into()))).is_err());
    }

    #[test]
    fn a_command_without_a_reason_says_so() {
        assert_eq!(declaration(Some(" ".into())).why, "no reason was given");
        assert_eq!(declaration(Some("tests".into())).why, "tests");
    }
}
