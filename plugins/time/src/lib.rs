//! `time`: returns the host's time in the forms that models and programs use.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

struct Time;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Form to repeat as `formatted`.
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    Epoch,
    EpochMs,
    EpochNs,
    Iso,
    Rfc2822,
    Date,
    Time,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Now {
    source: &'static str,
    /// Whose clock this is.
    note: &'static str,
    unix_seconds: i64,
    unix_millis: i128,
    unix_nanos: i128,
    iso_8601_utc: String,
    iso_8601_millis_utc: String,
    rfc_2822_utc: String,
    date_utc: String,
    time_utc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    formatted: Option<String>,
}

impl Tool for Time {
    const NAME: &str = "time";
    const TITLE: Option<&str> = Some("Current time");
    const SUMMARY: &str = "Return the current date and time in UTC.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A task needs today's date or the current time.",
        when_not_to_use: "To measure how long a command takes.",
        disambiguation: "It is this machine's clock. For that of a container, run `date`.",
        examples: &[r#"{"format":"iso"}"#],
    };
    type Input = Input;
    type Output = Now;

    fn call(Input { format }: Input) -> Result<Now> {
        let now = render(OffsetDateTime::now_utc());
        let formatted = format.map(|format| now.formatted(format));
        Ok(Now { formatted, ..now })
    }
}

impl Now {
    fn formatted(&self, format: Format) -> String {
        match format {
            Format::Epoch => self.unix_seconds.to_string(),
            Format::EpochMs => self.unix_millis.to_string(),
            Format::EpochNs => self.unix_nanos.to_string(),
            Format::Iso => self.iso_8601_utc.clone(),
            Format::Rfc2822 => self.rfc_2822_utc.clone(),
            Format::Date => self.date_utc.clone(),
            Format::Time => self.time_utc.clone(),
        }
    }
}

/// Returns the forms of a moment. Fractions are cut off, towards the past.
fn render(moment: OffsetDateTime) -> Now {
    let (year, month, day) = moment.to_calendar_date();
    let date = format!("{year:04}-{:02}-{day:02}", u8::from(month));
    let (hour, minute, second) = moment.to_hms();
    let time = format!("{hour:02}:{minute:02}:{second:02}");
    let (weekday, month) = (moment.weekday().to_string(), month.to_string());
    let nanos = moment.unix_timestamp_nanos();
    Now {
        source: "harness",
        note: "the clock of the machine that runs the tools; a container or a remote target may differ",
        unix_seconds: moment.unix_timestamp(),
        unix_millis: nanos.div_euclid(1_000_000),
        unix_nanos: nanos,
        iso_8601_utc: format!("{date}T{time}Z"),
        iso_8601_millis_utc: format!("{date}T{time}.{:03}Z", moment.millisecond()),
        rfc_2822_utc: format!("{weekday:.3}, {day:02} {month:.3} {year:04} {time} +0000"),
        date_utc: date,
        time_utc: time,
        formatted: None,
    }
}

toolcrib_sdk::export!(Time);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i128) -> Now {
        render(OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap())
    }

    fn seconds(seconds: i128) -> String {
        at(seconds * 1_000_000_000).iso_8601_utc
    }

    #[test]
    fn the_epoch_in_every_form() {
        let epoch = at(0);
        assert_eq!((epoch.unix_seconds, epoch.unix_millis, epoch.unix_nanos), (0, 0, 0));
        assert_eq!(epoch.iso_8601_utc, "1970-01-01T00:00:00Z");
        assert_eq!(epoch.iso_8601_millis_utc, "1970-01-01T00:00:00.000Z");
        assert_eq!(epoch.rfc_2822_utc, "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!((epoch.date_utc.as_str(), epoch.time_utc.as_str()), ("1970-01-01", "00:00:00"));
    }

    #[test]
    fn a_moment_of_2024() {
        let moment = at(1_709_130_123_456_789_012);
        assert_eq!((moment.date_utc.as_str(), moment.time_utc.as_str()), ("2024-02-28", "14:22:03"));
        assert_eq!(moment.iso_8601_millis_utc, "2024-02-28T14:22:03.456Z");
        assert_eq!(moment.rfc_2822_utc, "Wed, 28 Feb 2024 14:22:03 +0000");
        assert_eq!(moment.unix_millis, 1_709_130_123_456);
        assert_eq!(moment.unix_nanos, 1_709_130_123_456_789_012);
    }

    #[test]
    fn a_moment_before_1970() {
        let moment = at(-1);
        assert_eq!((moment.unix_seconds, moment.unix_millis, moment.unix_nanos), (-1, -1, -1));
        assert_eq!(moment.iso_8601_millis_utc, "1969-12-31T23:59:59.999Z");
        assert_eq!(moment.rfc_2822_utc, "Wed, 31 Dec 1969 23:59:59 +0000");
    }

    #[test]
    fn leap_days_and_the_ends_of_years() {
        assert_eq!(seconds(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(seconds(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(seconds(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(seconds(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(seconds(1_735_689_600), "2025-01-01T00:00:00Z");
        assert_eq!(seconds(-62_135_596_800), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn nanoseconds_stay_an_integer() {
        let now = Time::call(Input { format: Some(Format::EpochNs) }).unwrap();
        assert!(now.unix_nanos > 1 << 53);
        assert_eq!(now.formatted, Some(now.unix_nanos.to_string()));
    }
}
