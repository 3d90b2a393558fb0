//! What a command prints: into the bounded store, and as clean text to whoever watches.

use super::Plan;
use crate::call::scope::Scope;
use crate::event::Event;
use crate::kept_output::{Capture, Captured};
use crate::text::sanitize;

/// One stream of a command.
pub(super) struct Stream<'s> {
    capture: Capture<'s>,
    scope: &'s Scope,
    event: fn(String) -> Event,
    undecoded: Vec<u8>,
    cleaner: sanitize::Stream,
}

impl<'s> Stream<'s> {
    pub(super) fn new(name: &'static str, plan: &Plan, scope: &'s Scope) -> Self {
        let event = match name {
            "stderr" => |text| Event::Stderr { text },
            _ => |text| Event::Stdout { text },
        };
        let capture = scope.output.capture(format!("{}-{name}", scope.id), plan.head_chars, plan.head_bytes);
        Self { capture, scope, event, undecoded: Vec::new(), cleaner: sanitize::Stream::new() }
    }

    pub(super) async fn push(&mut self, bytes: &[u8]) {
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
        if !text.is_empty() {
            self.scope.emit((self.event)(text));
        }
    }

    pub(super) async fn finish(mut self) -> Captured {
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.undecoded)).into_owned();
        self.emit(rest);
        let last = std::mem::replace(&mut self.cleaner, sanitize::Stream::new()).finish();
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
