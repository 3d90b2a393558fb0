//! When a schedule is due: by the clock of a zone, or each so many milliseconds since it was saved, within hours of the day.
//!
//! Due times follow from what was saved alone, never from when something ran: whoever computes them, and whenever, finds the same.

use base::envelope::Failure;
use base::text::sanitize;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of an expression, and of a zone's name.
const EXPRESSION_BYTES: usize = 128;
const ZONE_BYTES: usize = 64;
/// What may stand in the place of five fields.
const NICKNAMES: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
/// Looks for a due time within hours of the day: a rule that misses them so often misses them always.
const LOOKS: u32 = 2_000;
/// Due times that are looked at for the time between them: a day of one a minute.
const COMPARED: usize = 1440;
/// How late something may be begun, at least and at most: half of the time to the next due time.
const LATE_LEAST_MS: u64 = 120_000;
const LATE_MOST_MS: u64 = 7_200_000;

/// When a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    pub rule: Rule,
    /// The name of a zone, for hours and days.
    pub zone: String,
    /// Only from the beginning of the first hour to that of the second, over midnight if that is less.
    pub hours: Option<(u8, u8)>,
    /// Since when.
    pub since_ms: u64,
}

/// What repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Minute, hour, day of the month, month, day of the week.
    Cron(String),
    /// Each so many milliseconds.
    Every(u64),
}

impl Timing {
    /// Checks a rule and makes it one that can be computed. Without a zone it is that of `here`.
    ///
    /// # Errors
    ///
    /// `invalid_arguments` where it cannot be read, or is never due.
    pub fn new(
        rule: Rule,
        zone: Option<&str>,
        here: &str,
        hours: Option<(u8, u8)>,
        since_ms: u64,
    ) -> Result<Self, Failure> {
        if let Rule::Cron(expression) = &rule {
            cron(expression)?;
        }
        if let Some((start, end)) = hours {
            check_hours(start, end)?;
        }
        let zone = named_zone(zone.unwrap_or(here))?;
        let timing = Self { rule, zone, hours, since_ms };
        match timing.next_after(since_ms) {
            Some(_) => Ok(timing),
            None => Err(Failure::invalid(format!("{timing} is never"))
                .hint("give days that there are, and hours that it can meet")),
        }
    }

    /// The first due time after this one.
    pub fn next_after(&self, ms: u64) -> Option<u64> {
        let zone = zone(&self.zone)?;
        let rule = match &self.rule {
            Rule::Cron(expression) => Computed::Cron(Box::new(cron(expression).ok()?)),
            Rule::Every(every) => Computed::Every { every: (*every).max(1), since: self.since_ms },
        };
        let mut at = rule.next(ms, false, &zone)?;
        for _ in 0..LOOKS {
            let Some(opens) = self.opens_after(at, &zone) else { return Some(at) };
            at = rule.next(opens?, true, &zone)?;
        }
        None
    }

    /// The last due time until now, where there is one after that.
    pub fn last_until(&self, after_ms: u64, now_ms: u64) -> Option<u64> {
        // What is older is too late, whatever the rule.
        let mut last = None;
        let mut at = after_ms.max(now_ms.saturating_sub(LATE_MOST_MS + 1));
        while let Some(next) = self.next_after(at).filter(|next| *next <= now_ms) {
            (last, at) = (Some(next), next);
        }
        last
    }

    /// The least time between two due times, as far as they are looked at.
    pub fn shortest_ms(&self) -> u64 {
        if let Rule::Every(ms) = self.rule {
            return ms;
        }
        let due = std::iter::successors(self.next_after(self.since_ms), |at| self.next_after(*at));
        let due: Vec<u64> = due.take(COMPARED).collect();
        due.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(u64::MAX)
    }

    /// Until when something that was due then may begin.
    pub fn too_late_after(&self, due_ms: u64) -> u64 {
        let until_next = self.next_after(due_ms).map_or(LATE_MOST_MS, |next| next - due_ms);
        due_ms + (until_next / 2).clamp(LATE_LEAST_MS, LATE_MOST_MS)
    }

    /// Where a time is out of hours, when they begin next: none where that cannot be computed.
    fn opens_after(&self, ms: u64, zone: &TimeZone) -> Option<Option<u64>> {
        let (start, end) = self.hours?;
        let local = zoned(ms, zone)?;
        let hour = u8::try_from(local.hour()).unwrap_or_default();
        let is_open = if start < end { (start..end).contains(&hour) } else { hour >= start || hour < end };
        if is_open {
            return None;
        }
        let begins = Time::new(i8::try_from(start).unwrap_or_default(), 0, 0, 0).ok();
        let today = begins.and_then(|time| local.with().time(time).build().ok());
        let opens = today.and_then(|today| if today > local { Some(today) } else { today.checked_add(1.day()).ok() });
        Some(opens.and_then(|opens| u64::try_from(opens.timestamp().as_millisecond()).ok()))
    }

    /// A time as it is in its zone.
    pub fn shown(&self, ms: u64) -> String {
        let local = zone(&self.zone).and_then(|zone| zoned(ms, &zone));
        local.map_or_else(|| ms.to_string(), |local| local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
    }
}

/// A rule that was read.
enum Computed {
    Cron(Box<Cron>),
    Every { every: u64, since: u64 },
}

impl Computed {
    /// The first time after this one, or at it.
    fn next(&self, ms: u64, or_at: bool, zone: &TimeZone) -> Option<u64> {
        match self {
            Self::Cron(cron) => {
                let next = cron.find_next_occurrence(&zoned(ms, zone)?, or_at).ok()?;
                u64::try_from(next.timestamp().as_millisecond()).ok()
            }
            Self::Every { every, since } => {
                let passed = ms.saturating_sub(*since);
                let times = if or_at { passed.div_ceil(*every) } else { passed / every + 1 };
                since.checked_add(times.max(1).checked_mul(*every)?)
            }
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::Cron(expression) => write!(formatter, "`{expression}`")?,
            Rule::Every(ms) if ms.is_multiple_of(1000) => write!(formatter, "every {} s", ms / 1000)?,
            Rule::Every(ms) => write!(formatter, "every {ms} ms")?,
        }
        if let Some((start, end)) = self.hours {
            write!(formatter, " from {start} to {end} o'clock")?;
        }
        match (&self.rule, self.hours) {
            (Rule::Every(_), None) => Ok(()),
            (Rule::Cron(_) | Rule::Every(_), _) => write!(formatter, " ({})", self.zone),
        }
    }
}

fn zoned(ms: u64, zone: &TimeZone) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?.to_zoned(zone.clone()))
}

fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

/// The zone of this machine, where it can be told.
pub fn zone_here() -> String {
    let here = TimeZone::try_system().ok();
    here.and_then(|zone| zone.iana_name().map(str::to_owned)).unwrap_or_else(|| "UTC".to_owned())
}

/// A zone's name as it is written.
fn named_zone(name: &str) -> Result<String, Failure> {
    let found = Some(name).filter(|name| name.len() <= ZONE_BYTES).and_then(zone);
    found.and_then(|zone| zone.iana_name().map(str::to_owned)).ok_or_else(|| {
        let shown = sanitize::beginning(name, ZONE_BYTES);
        Failure::invalid(format!("there is no time zone `{shown}`"))
            .hint("write `Europe/Berlin`, `America/New_York`, `UTC` or the like")
    })
}

fn check_hours(start: u8, end: u8) -> Result<(), Failure> {
    if start > 23 || end > 23 {
        return Err(Failure::invalid("hours of the day are 0 to 23").hint("0 as the end is midnight"));
    }
    if start == end {
        return Err(Failure::invalid(format!("from {start} to {end} o'clock is no time"))
            .hint("leave the hours out for all of the day; 22 and 6 are over midnight"));
    }
    Ok(())
}

fn cron(expression: &str) -> Result<Cron, Failure> {
    let refused = |why: &str| {
        let shown = sanitize::beginning(expression, EXPRESSION_BYTES);
        Failure::invalid(format!("`{shown}` is no cron expression: {why}"))
            .hint("give minute, hour, day of the month, month and day of the week, such as `0 9 * * 1-5` or `*/15 * * * *`; 0 and 7 are Sunday")
    };
    if expression.len() > EXPRESSION_BYTES {
        return Err(refused("it is too long"));
    }
    let is_nickname = NICKNAMES.iter().any(|name| expression.trim().eq_ignore_ascii_case(name));
    if expression.contains('@') && !is_nickname {
        return Err(refused("there is no such name"));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(expression).map_err(|error| match expression.split_whitespace().count() {
        5 => refused(error.to_string().trim_end_matches('.')),
        1 if is_nickname => refused(error.to_string().trim_end_matches('.')),
        fields => refused(&format!("it has {fields} fields, not 5")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> u64 {
        u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
    }

    fn timing(rule: Rule, zone: &str, hours: Option<(u8, u8)>, since: &str) -> Timing {
        Timing::new(rule, Some(zone), "UTC", hours, ms(since)).map_err(|failure| failure.message).unwrap()
    }

    /// The next due times after it was saved.
    fn due(timing: &Timing, count: usize) -> Vec<String> {
        let next = std::iter::successors(timing.next_after(timing.since_ms), |at| timing.next_after(*at));
        next.take(count).map(|at| timing.shown(at)).collect()
    }

    fn by_cron(expression: &str, zone: &str, since: &str) -> Timing {
        timing(Rule::Cron(expression.into()), zone, None, since)
    }

    #[test]
    fn working_days_at_nine_are_monday_to_friday_at_nine_of_the_zone() {
        // 27 March 2026 is a Friday; on the 29th clocks in Berlin are set forward.
        let nine = by_cron("0 9 * * 1-5", "Europe/Berlin", "2026-03-27T08:00:00Z");
        let days = ["2026-03-30T09:00:00+02:00", "2026-03-31T09:00:00+02:00", "2026-04-01T09:00:00+02:00"];
        assert_eq!(due(&nine, 3), days);
        let friday = by_cron("0 9 * * 1-5", "Europe/Berlin", "2026-03-27T07:59:59Z");
        assert_eq!(due(&friday, 1), ["2026-03-27T09:00:00+01:00"]);
        assert_eq!(friday.to_string(), "`0 9 * * 1-5` (Europe/Berlin)");
    }

    #[test]
    fn zero_and_seven_are_sunday() {
        for expression in ["0 9 * * 0", "0 9 * * 7", "0 9 * * SUN"] {
            let sunday = by_cron(expression, "UTC", "2026-03-27T00:00:00Z");
            assert_eq!(due(&sunday, 2), ["2026-03-29T09:00:00+00:00", "2026-04-05T09:00:00+00:00"], "{expression}");
        }
        let weekend = by_cron("0 9 * * 6-7", "UTC", "2026-03-27T00:00:00Z");
        assert_eq!(due(&weekend, 2), ["2026-03-28T09:00:00+00:00", "2026-03-29T09:00:00+00:00"]);
    }

    #[test]
    fn where_clocks_are_set_what_is_skipped_comes_at_once_and_what_comes_twice_counts_once() {
        let spring = by_cron("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z");
        assert_eq!(due(&spring, 2), ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]);
        let autumn = by_cron("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z");
        assert_eq!(due(&autumn, 2), ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]);
        let each = by_cron("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:50:00Z");
        let half_hours = ["02:00:00+02:00", "02:30:00+02:00", "02:00:00+01:00", "02:30:00+01:00"];
        assert_eq!(due(&each, 4), half_hours.map(|time| format!("2026-10-25T{time}")));
    }

    #[test]
    fn intervals_count_from_when_they_were_saved() {
        let every = timing(Rule::Every(90_000), "UTC", None, "2026-01-01T00:00:10Z");
        assert_eq!(due(&every, 2), ["2026-01-01T00:01:40+00:00", "2026-01-01T00:03:10+00:00"]);
        assert_eq!(every.next_after(0), Some(every.since_ms + 90_000));
        assert_eq!(every.to_string(), "every 90 s");
    }

    #[test]
    fn hours_of_the_day_bound_both_also_over_midnight() {
        let hours = timing(Rule::Every(3_600_000), "Europe/Berlin", Some((9, 11)), "2026-01-01T20:30:00Z");
        let mornings = ["2026-01-02T09:30:00+01:00", "2026-01-02T10:30:00+01:00", "2026-01-03T09:30:00+01:00"];
        assert_eq!(due(&hours, 3), mornings);
        let night = timing(Rule::Cron("0 * * * *".into()), "UTC", Some((23, 1)), "2026-01-01T12:00:00Z");
        let nights = ["2026-01-01T23:00:00+00:00", "2026-01-02T00:00:00+00:00", "2026-01-02T23:00:00+00:00"];
        assert_eq!(due(&night, 3), nights);
        let until_midnight = timing(Rule::Cron("0 * * * *".into()), "UTC", Some((22, 0)), "2026-01-01T12:00:00Z");
        assert_eq!(due(&until_midnight, 3)[2], "2026-01-02T22:00:00+00:00");
        assert_eq!(night.to_string(), "`0 * * * *` from 23 to 1 o'clock (UTC)");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_write() {
        let refused = |rule: Rule, zone: &str, hours| {
            let failure = Timing::new(rule, Some(zone), "UTC", hours, 0).unwrap_err();
            assert_eq!(failure.kind, base::envelope::Kind::InvalidArguments);
            failure.message
        };
        let cron = |expression: &str| refused(Rule::Cron(expression.into()), "UTC", None);
        assert_eq!(cron("* * * *"), "`* * * *` is no cron expression: it has 4 fields, not 5");
        assert_eq!(cron("0 * * * * *"), "`0 * * * * *` is no cron expression: it has 6 fields, not 5");
        assert_eq!(cron("@reboot"), "`@reboot` is no cron expression: there is no such name");
        for bad in [
            "61 * * * *",
            "a b c d e",
            "",
            "* * * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "@daily @daily",
            "\u{202e} * * * *",
        ] {
            assert!(cron(bad).contains("is no cron expression"), "{bad}: {}", cron(bad));
        }
        assert!(cron(&"* ".repeat(200)).ends_with("it is too long"));
        assert_eq!(cron("0 0 30 2 *"), "`0 0 30 2 *` (UTC) is never");
        let daily = || Rule::Cron("0 12 * * *".into());
        assert_eq!(refused(daily(), "UTC", Some((13, 14))), "`0 12 * * *` from 13 to 14 o'clock (UTC) is never");
        assert_eq!(refused(daily(), "UTC", Some((9, 9))), "from 9 to 9 o'clock is no time");
        assert_eq!(refused(daily(), "UTC", Some((9, 24))), "hours of the day are 0 to 23");
        for bad in ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", &"a".repeat(100)] {
            assert!(refused(daily(), bad, None).starts_with("there is no time zone `"), "{bad}");
        }
        assert_eq!(timing(daily(), "europe/berlin", None, "2026-01-01T00:00:00Z").zone, "Europe/Berlin");
    }

    #[test]
    fn of_several_that_were_missed_the_last_counts_as_long_as_it_is_not_too_late() {
        let quarter = by_cron("*/15 * * * *", "UTC", "2026-01-01T00:00:00Z");
        let at = |text: &str| ms(&format!("2026-01-01T{text}Z"));
        assert_eq!(quarter.last_until(at("00:15:00"), at("00:14:59")), None);
        assert_eq!(quarter.last_until(at("00:14:59"), at("00:15:00")), Some(at("00:15:00")));
        assert_eq!(quarter.last_until(at("00:00:00"), at("09:16:00")), Some(at("09:15:00")));
        assert_eq!(quarter.last_until(at("09:15:00"), at("09:16:00")), None);
        // Half of the time to the next one; of a minute two, of a day two hours.
        assert_eq!(quarter.too_late_after(at("09:15:00")), at("09:22:30"));
        assert_eq!(by_cron("* * * * *", "UTC", "2026-01-01T00:00:00Z").too_late_after(at("09:15:00")), at("09:17:00"));
        let daily = by_cron("0 9 * * *", "UTC", "2026-01-01T00:00:00Z");
        assert_eq!(daily.too_late_after(at("09:00:00")), at("11:00:00"));
        assert_eq!(daily.last_until(at("00:00:00"), ms("2026-01-03T12:00:00Z")), None);
    }
}
