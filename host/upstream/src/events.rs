//! Streams of events ("server-sent events"), as far as servers use them: messages, each with a name to begin again behind it.
//!
//! rmcp brings sse-stream 0.2, which has no bound: after one event of 256 MiB it held 265 MiB. It also ends the stream at an unknown field, at a
//! line without a colon and at a `retry` that is not a number, none of which is an error in the HTML Standard (9.2.6).

use super::message::MESSAGE_BYTES;
use super::reading::{Line, Reading};
use http::header::HeaderValue;
use std::time::Duration;

/// How long it is waited before a stream is taken up again: where the server does not say, and at most.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// Bytes of the name of an event.
const NAME_BYTES: usize = 1 << 10;

/// What a stream says.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    Message(Vec<u8>),
    /// More than [`MESSAGE_BYTES`].
    TooLong,
}

/// A stream of events, also if it is taken up again.
#[derive(Default)]
pub(super) struct Events {
    reading: Reading,
    now: Pending,
    /// Behind which event it would be taken up.
    last: Option<HeaderValue>,
    retry: Option<Duration>,
}

/// An event that is not whole yet.
#[derive(Default)]
struct Pending {
    data: Option<Vec<u8>>,
    is_too_long: bool,
    /// It is none of the protocol's.
    is_other: bool,
    id: Option<HeaderValue>,
}

impl Events {
    /// Begins with a stream: what was not whole of the one before is no event.
    pub(super) fn begin(&mut self) {
        (self.reading, self.now) = Default::default();
    }

    /// The name of the event behind which the stream can be taken up again, if it can.
    pub(super) fn resumes(&self) -> Option<HeaderValue> {
        self.last.clone()
    }

    /// How long to wait before that.
    pub(super) fn retry(&self) -> Duration {
        self.retry.unwrap_or(RETRY).min(LONGEST_RETRY)
    }

    /// The events that end in these bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        let Self { reading, now, last, retry } = self;
        let mut events = Vec::new();
        reading.take(bytes, |line| {
            let line = match line {
                Line::Whole(line) => line.strip_suffix(b"\r").unwrap_or(line),
                Line::TooLong { .. } => {
                    now.is_too_long = true;
                    return;
                }
            };
            if line.is_empty() {
                let done = std::mem::take(now);
                if let Some(id) = done.id {
                    *last = Some(id).filter(|id| !id.is_empty());
                }
                events.extend(match (done.data, done.is_too_long, done.is_other) {
                    (_, _, true) => None,
                    (_, true, false) => Some(Event::TooLong),
                    (data, false, false) => data.filter(|data| !data.is_empty()).map(Event::Message),
                });
                return;
            }
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (field, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match field {
                b"data" => now.add(value),
                b"event" => now.is_other = !value.is_empty() && value != b"message",
                b"id" if value.len() <= NAME_BYTES => now.id = HeaderValue::from_bytes(value).ok(),
                b"retry" => {
                    let said = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    *retry = said.map(Duration::from_millis).or(*retry);
                }
                _ => {}
            }
        });
        events
    }
}

impl Pending {
    fn add(&mut self, value: &[u8]) {
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        if self.data.as_ref().is_some_and(|data| data.len() > MESSAGE_BYTES) {
            (self.data, self.is_too_long) = (None, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(events: &mut Events, text: &str) -> Vec<String> {
        let said = |event| match event {
            Event::Message(data) => String::from_utf8(data).expect("text"),
            Event::TooLong => "too long".into(),
        };
        events.take(text.as_bytes()).into_iter().map(said).collect()
    }

    #[test]
    fn events_are_put_together_from_pieces() {
        let mut events = Events::default();
        assert!(messages(&mut events, ": hello\r\nevent: mess").is_empty());
        assert_eq!(messages(&mut events, "age\r\ndata: {\"a\":\r\ndata:1}\r\n\r\ndata: 2\n\n"), ["{\"a\":\n1}", "2"]);
        assert!(messages(&mut events, "event: other\ndata: 3\n\n\n\n").is_empty());
    }

    #[test]
    fn a_stream_is_taken_up_behind_its_last_event() {
        let mut events = Events::default();
        assert_eq!((events.resumes(), events.retry()), (None, RETRY));
        assert!(messages(&mut events, "id: one\nretry: 500\ndata: \n\n").is_empty());
        assert_eq!(events.resumes().expect("its name"), "one");
        assert_eq!(events.retry(), Duration::from_millis(500));
        // One that has not ended has no name yet.
        assert!(messages(&mut events, "id: two\ndata: x\n").is_empty());
        assert_eq!(events.resumes().expect("its name"), "one");
        events.begin();
        assert_eq!(messages(&mut events, "retry: 9999999\ndata: y\n\n"), ["y"]);
        assert_eq!(events.retry(), LONGEST_RETRY);
    }

    #[test]
    fn no_server_puts_off_for_long_when_its_stream_is_taken_up_again() {
        let mut events = Events::default();
        for (said, waits) in [
            ("29999", Duration::from_millis(29_999)),
            ("120000", Duration::from_secs(30)),
            ("18446744073709551615", Duration::from_secs(30)),
        ] {
            assert!(messages(&mut events, &format!("retry: {said}\n\n")).is_empty());
            assert_eq!(events.retry(), waits, "{said}");
        }
        // What is no number of milliseconds changes nothing.
        assert!(messages(&mut events, "retry: 7\nretry: 1e9\nretry: -1\nretry:\n\n").is_empty());
        assert_eq!(events.retry(), Duration::from_millis(7));
    }

    #[test]
    fn a_message_has_a_bound_however_it_is_cut() {
        let long = "x".repeat(MESSAGE_BYTES / 2);
        let mut events = Events::default();
        assert_eq!(messages(&mut events, &format!("data: {long}\ndata: {long}\n\ndata: 1\n\n")), ["too long", "1"]);
        assert_eq!(messages(&mut events, &format!("data: {long}{long}\n\ndata: 2\n\n")), ["too long", "2"]);
    }
}
