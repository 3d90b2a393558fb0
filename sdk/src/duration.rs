//! Durations as models write them: `500ms`, `30s`, `10m`, `1h`, `2d`; digits alone are seconds.

use std::time::Duration;

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
