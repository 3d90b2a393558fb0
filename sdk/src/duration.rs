//! Durations as models write them: `500ms`, `30s`, `10m`, `1h`, `2d`; digits alone are seconds.

use crate::{Failure, JsonSchema, Result};
use schemars::{Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::time::Duration;

/// A time among the arguments of a tool. All tools take it in this one form.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(untagged, expecting = "a time is whole seconds, or digits with a unit, such as 30s")]
pub enum Span {
    /// Seconds.
    Seconds(u64),
    /// Digits with a unit: `500ms`, `30s`, `10m`, `1h`.
    Text(String),
}

/// Without words: the argument has its own.
impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0 })
    }
}

impl Span {
    /// Returns the time that the argument of this name asks for.
    ///
    /// # Errors
    /// `invalid_arguments` for text that is not a time.
    pub fn of(&self, argument: &str) -> Result<Duration> {
        let given = self.given();
        parse(&given).ok_or_else(|| {
            let forms = "seconds, or digits with a unit: 500ms, 30s, 10m, 1h";
            Failure::invalid(format!("`{argument}` `{given}` is not a valid duration; valid forms are {forms}"))
        })
    }

    /// Returns what was given.
    #[must_use]
    pub fn given(&self) -> String {
        match self {
            Self::Seconds(seconds) => seconds.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Reads `<digits><ms|s|m|h|d>`, the unit in either case.
///
/// `None` for anything else, and for more milliseconds than 64 bits hold.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let unit_ms = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    // A host counts in milliseconds.
    count.checked_mul(unit_ms).map(Duration::from_millis)
}

/// Returns the number for the host, which counts at most 2^64 - 1 milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_seconds_or_has_a_unit() {
        let read = |json: &str| serde_json::from_str::<Span>(json).map_err(|error| error.to_string());
        assert_eq!(read("2").unwrap().of("wait"), Ok(Duration::from_secs(2)));
        assert_eq!(read("\"2\"").unwrap().of("wait"), Ok(Duration::from_secs(2)));
        assert_eq!(read("\"250ms\"").unwrap().of("wait"), Ok(Duration::from_millis(250)));
        assert!(read("0.5").unwrap_err().contains("such as 30s"));
        for other in [Span::Text(String::new()), Span::Text("soon".into()), Span::Seconds(u64::MAX)] {
            let failure = other.of("wait").unwrap_err();
            let start = format!("`wait` `{}` is not a valid duration; valid forms are", other.given());
            assert!(failure.message.starts_with(&start), "{}", failure.message);
        }
    }

    #[test]
    fn digits_count_a_unit_of_either_case() {
        for (text, millis) in
            [("500ms", 500), ("2", 2_000), ("30S", 30_000), ("10m", 600_000), ("1h", 3_600_000), ("2D", 172_800_000)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_no_duration() {
        for text in ["", "s", "5 s", " 5s", "-5", "+5", "1.5h", "٣s", "10µs", "1w", "18446744073709552s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_no_host_can_count_is_the_most_that_it_can() {
        assert_eq!(milliseconds(Duration::from_millis(7)), 7);
        assert_eq!(milliseconds(Duration::MAX), u64::MAX);
    }
}
