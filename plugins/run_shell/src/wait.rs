//! The argument `wait`: a yes or no, seconds, or a duration with its unit.

use serde::Deserialize;
use toolcrib_sdk::shell::Wait;
use toolcrib_sdk::{Failure, JsonSchema, Result, duration, schemars};

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`wait` is a boolean, whole seconds below 2^64, or a duration such as 10m")]
pub(crate) enum Argument {
    UntilExit(Option<bool>),
    Seconds(u64),
    Duration(String),
}

impl Default for Argument {
    fn default() -> Self {
        Self::UntilExit(None)
    }
}

impl Argument {
    pub(crate) fn parse(self) -> Result<Wait> {
        let given = match self {
            Self::UntilExit(None | Some(true)) => return Ok(Wait::UntilExit),
            Self::UntilExit(Some(false)) => return Ok(Wait::Dispatch),
            Self::Seconds(seconds) => seconds.to_string(),
            Self::Duration(text) => text,
        };
        duration::parse(&given).map(Wait::AtMost).ok_or_else(|| {
            let forms = "`true`, `false`, seconds, or digits with a unit: 500ms, 30s, 10m, 1h, 2d";
            Failure::invalid(format!("invalid wait duration `{given}`; valid forms are {forms}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn parse(text: &str) -> Result<Wait> {
        Argument::Duration(text.into()).parse()
    }

    #[test]
    fn yes_and_no_wait_until_exit_or_not_at_all() {
        assert_eq!(Argument::default().parse(), Ok(Wait::UntilExit));
        assert_eq!(Argument::UntilExit(Some(true)).parse(), Ok(Wait::UntilExit));
        assert_eq!(Argument::UntilExit(Some(false)).parse(), Ok(Wait::Dispatch));
    }

    #[test]
    fn every_count_and_unit_is_read_exactly() {
        for count in 0..=10_000 {
            for (unit, unit_ms) in
                [("ms", 1), ("s", 1_000), ("", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
            {
                let expected = Ok(Wait::AtMost(Duration::from_millis(count * unit_ms)));
                assert_eq!(parse(&format!("{count}{unit}")), expected);
                assert_eq!(parse(&format!("{count}{}", unit.to_uppercase())), expected);
            }
            assert_eq!(Argument::Seconds(count).parse(), Ok(Wait::AtMost(Duration::from_secs(count))));
        }
    }

    #[test]
    fn every_other_suffix_is_refused() {
        let letters = || (' '..='~').filter(|letter| !letter.is_ascii_digit());
        let one = letters().map(String::from);
        let two = letters().flat_map(|first| letters().map(move |second| format!("{first}{second}")));
        for suffix in one.chain(two) {
            let known = ["ms", "s", "m", "h", "d"].contains(&suffix.to_ascii_lowercase().as_str());
            assert_eq!(parse(&format!("7{suffix}")).is_ok(), known, "7{suffix}");
        }
    }

    #[test]
    fn what_is_no_duration_is_named_with_the_forms_that_work() {
        for text in ["bad", "", "s", " 5s", "5s ", "5 s", "+5", "-5", "1.5h", "5s5s", "٣s", "10µs", "true"] {
            let failure = parse(text).unwrap_err();
            assert_eq!(failure.kind, toolcrib_sdk::Kind::INVALID_ARGUMENTS);
            assert!(failure.message.contains("invalid wait duration"), "{text}");
            assert!(failure.message.contains("500ms, 30s, 10m, 1h"));
        }
    }

    #[test]
    fn overflow_is_refused() {
        assert!(parse("18446744073709551615ms").is_ok());
        assert!(parse("18446744073709551616ms").is_err());
        assert!(parse("18446744073709552s").is_err());
        assert!(parse("213503982335d").is_err());
        assert!(Argument::Seconds(u64::MAX).parse().is_err());
    }
}
