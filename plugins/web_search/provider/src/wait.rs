//! Answers that ask to wait: status 429, and 503 with a time.

use crate::Provider;
use serde::Serialize;
use std::time::SystemTime;
use toolcrib_sdk::http::Response;
use toolcrib_sdk::{Failure, Kind};

/// The longest wait that is told: the quota of a month.
const MOST_SECS: u64 = 31 * DAY;
const DAY: u64 = 24 * 60 * 60;

#[derive(Serialize)]
struct Wait {
    retry_after_secs: u64,
}

/// The failure for an answer that asks to wait.
pub(crate) fn busy<P: Provider>(response: &Response) -> Option<Failure> {
    if ![429, 503].contains(&response.status) {
        return None;
    }
    let secs = retry_after(response, SystemTime::now()).or_else(|| P::wait_secs(response));
    let secs = secs.map(|secs| secs.clamp(1, MOST_SECS));
    let (name, status) = (P::NAME, response.status);
    match (secs, status) {
        (Some(secs), _) => {
            let wait = shown(secs);
            let failure =
                Failure::new(Kind::BUSY, format!("{name} takes no more searches for {wait} (status {status})"));
            Some(failure.hint(format!("wait {wait}, then search again")).data(&Wait { retry_after_secs: secs }))
        }
        (None, 429) => {
            let message = format!("{name} takes no more searches for now (status 429), and does not say for how long");
            Some(Failure::new(Kind::BUSY, message).hint("wait a minute or more, then search again"))
        }
        // Out of order rather than busy.
        (None, _) => None,
    }
}

/// The seconds of `retry-after`, which is a number or a date.
fn retry_after(response: &Response, now: SystemTime) -> Option<u64> {
    let value = response.header("retry-after")?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time as well.
        return Some(value.parse().unwrap_or(u64::MAX));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    // By the clock of the server, where it tells the time.
    let date = response.header("date").and_then(|date| httpdate::parse_http_date(date).ok());
    Some(until.duration_since(date.unwrap_or(now)).unwrap_or_default().as_secs())
}

/// A time in its largest unit, rounded up: waiting as long is enough.
fn shown(secs: u64) -> String {
    match secs {
        ..=120 => format!("{secs} s"),
        121..=7_200 => format!("{} min", secs.div_ceil(60)),
        7_201..=172_800 => format!("{} h", secs.div_ceil(60 * 60)),
        172_801.. => format!("{} days", secs.div_ceil(DAY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Found;
    use std::time::Duration;
    use toolcrib_sdk::Result;
    use toolcrib_sdk::http::Request;

    struct Engine;

    impl Provider for Engine {
        const NAME: &str = "Engine";

        fn request(query: &str) -> Request {
            Request::get(query)
        }

        fn found(response: &Response) -> Result<Found> {
            Err(crate::unexpected(Self::NAME, response.status))
        }
    }

    fn answer(status: u16, headers: &[(&str, &str)]) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Response { status, headers, url: String::new(), body: Vec::new(), truncated: false }
    }

    fn wait(status: u16, headers: &[(&str, &str)]) -> Option<String> {
        let failure = busy::<Engine>(&answer(status, headers))?;
        assert_eq!(failure.kind, Kind::BUSY);
        Some(failure.message)
    }

    #[test]
    fn a_wait_in_seconds_is_told() {
        let failure = busy::<Engine>(&answer(429, &[("retry-after", "30")])).unwrap();
        assert_eq!(failure.message, "Engine takes no more searches for 30 s (status 429)");
        assert_eq!(failure.hint.as_deref(), Some("wait 30 s, then search again"));
        assert_eq!(failure.data.as_deref(), Some(r#"{"retry_after_secs":30}"#));
        for (value, expected) in [
            ("0", "1 s"),
            (" 120 ", "120 s"),
            ("121", "3 min"),
            ("7201", "3 h"),
            ("1419704", "17 days"),
            ("99999999999999999999999", "31 days"),
        ] {
            let message = wait(429, &[("retry-after", value)]).unwrap();
            assert!(message.contains(&format!("for {expected} (")), "{value}: {message}");
        }
    }

    #[test]
    fn a_wait_until_a_date_is_told_by_the_clock_of_the_server() {
        let until = ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
        let message = wait(429, &[until, ("date", "Wed, 21 Oct 2015 07:27:15 GMT")]).unwrap();
        assert!(message.contains("for 45 s"), "{message}");
        let later = ("date", "Wed, 21 Oct 2015 08:00:00 GMT");
        assert!(wait(429, &[until, later]).unwrap().contains("for 1 s"));
        let now = httpdate::parse_http_date(until.1).unwrap() - Duration::from_secs(90);
        assert_eq!(retry_after(&answer(429, &[until]), now), Some(90));
    }

    #[test]
    fn without_a_wait_it_says_so() {
        for headers in [&[][..], &[("retry-after", "soon")], &[("retry-after", "-1")], &[("retry-after", "")]] {
            let message = wait(429, headers).unwrap();
            assert!(message.ends_with("does not say for how long"), "{message}");
        }
    }

    #[test]
    fn only_two_statuses_ask_to_wait() {
        let header = [("retry-after", "30")];
        assert!(wait(503, &header).is_some_and(|message| message.contains("30 s (status 503)")));
        assert_eq!(wait(503, &[]), None);
        for status in [200, 301, 403, 500, 502] {
            assert_eq!(wait(status, &header), None, "{status}");
        }
    }
}
