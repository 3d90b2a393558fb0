//! What a command prints: into the bounded store, and as clean text to whoever watches.

use super::Plan;
use crate::reach::Reach;
use base::text::sanitize;
use kept_output::{Capture, Captured};
use policy::event::Event;
use policy::guard::Redactor;

/// One stream of a command.
pub(super) struct Stream<'s> {
    capture: Capture<'s>,
    scope: &'s Reach,
    event: fn(String) -> Event,
    undecoded: Vec<u8>,
    cleaner: sanitize::Stream,
    /// What it takes out of what is kept and handed out.
    redactor: Redactor<'s>,
    /// The same for events: what controls of a terminal took apart reads as one there.
    of_events: Redactor<'s>,
}

impl<'s> Stream<'s> {
    pub(super) fn new(name: &'static str, plan: &Plan, scope: &'s Reach) -> Self {
        let event = match name {
            "stderr" => |text| Event::Stderr { text },
            _ => |text| Event::Stdout { text },
        };
        let capture = scope.output.capture(format!("{}-{name}", scope.id), plan.head_chars, plan.head_bytes);
        let capture = capture.with_tail(plan.tail_chars).of_command();
        let (undecoded, cleaner) = (Vec::new(), sanitize::Stream::new());
        let (redactor, of_events) = (scope.guard.stream(), scope.guard.stream());
        Self { capture, scope, event, undecoded, cleaner, redactor, of_events }
    }

    pub(super) async fn push(&mut self, bytes: &[u8]) {
        let bytes = self.redactor.push(bytes);
        self.take(&bytes).await;
    }

    async fn take(&mut self, bytes: &[u8]) {
        self.capture.push(bytes).await;
        if !self.scope.is_watched() {
            return;
        }
        self.undecoded.extend_from_slice(bytes);
        let text = decode(&mut self.undecoded);
        self.emit(text);
    }

    fn emit(&mut self, text: String) {
        let text = self.cleaner.push(&text);
        self.show(&text);
    }

    fn show(&mut self, text: &str) {
        let text = String::from_utf8_lossy(&self.of_events.push(text.as_bytes())).into_owned();
        if !text.is_empty() {
            self.scope.emit((self.event)(text));
        }
    }

    pub(super) async fn finish(mut self) -> Captured {
        let held = std::mem::replace(&mut self.redactor, self.scope.guard.stream()).finish();
        self.take(&held).await;
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.undecoded)).into_owned();
        self.emit(rest);
        let last = std::mem::replace(&mut self.cleaner, sanitize::Stream::new()).finish();
        self.show(&last);
        let last = String::from_utf8_lossy(&self.of_events.finish()).into_owned();
        if !last.is_empty() {
            self.scope.emit((self.event)(last));
        }
        let captured = self.capture.finish().await;
        captured.stored.iter().for_each(|path| self.scope.remember_kept(path));
        captured
    }
}

/// Takes the text out of the bytes; a sequence that is not complete yet stays.
fn decode(bytes: &mut Vec<u8>) -> String {
    let incomplete = bytes.utf8_chunks().last().map_or(0, |chunk| {
        let is_cut = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if is_cut { chunk.invalid().len() } else { 0 }
    });
    let rest = bytes.split_off(bytes.len() - incomplete);
    String::from_utf8_lossy(&std::mem::replace(bytes, rest)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_not_complete_waits_for_its_rest() {
        let mut bytes = "a🙂".as_bytes()[..3].to_vec();
        assert_eq!(decode(&mut bytes), "a");
        bytes.extend_from_slice(&"a🙂".as_bytes()[3..]);
        assert_eq!((decode(&mut bytes).as_str(), bytes.is_empty()), ("🙂", true));
    }

    #[test]
    fn bytes_that_are_not_text_do_not_hold_up_what_follows() {
        let mut bytes = b"a\xff\xfeb\xf0\x9f".to_vec();
        assert_eq!(decode(&mut bytes), "a\u{fffd}\u{fffd}b");
        assert_eq!(bytes, b"\xf0\x9f");
    }
}
