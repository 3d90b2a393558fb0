//! What a job says while it runs: taken from the events of its call, and added to its output in pieces.
//!
//! Nothing is dropped for a slow disk: what waits is bounded, as the output is. Beyond its bound the end is kept, so that the last lines are
//! there.

use parking_lot::Mutex;
use policy::event::{Event, EventSink};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::engine::{Engine, Stream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// So much is written at once, or what there is after so long.
const PIECE: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(200);
/// What is kept of the end of what is too long.
const TAIL: usize = 64 << 10;

/// The output of one run of a job.
pub(crate) struct Spool {
    engine: Arc<dyn Engine>,
    id: String,
    epoch: u64,
    /// Bytes that are kept of each stream, but for its end.
    most: u64,
    stdout: Mutex<Buffer>,
    stderr: Mutex<Buffer>,
    changed: Notify,
    failed: Mutex<Option<String>>,
}

#[derive(Default)]
struct Buffer {
    waiting: Vec<u8>,
    taken: u64,
    written: u64,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Buffer {
    fn push(&mut self, text: &str, most: u64) {
        let room = usize::try_from(most - self.taken).unwrap_or(usize::MAX);
        // Nothing that comes later belongs before what was left out.
        let fits = if self.dropped > 0 || !self.tail.is_empty() { 0 } else { text.floor_char_boundary(room) };
        let (kept, rest) = text.split_at(fits);
        self.waiting.extend_from_slice(kept.as_bytes());
        self.taken += kept.len() as u64;
        self.tail.extend(rest.as_bytes());
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    /// The end of what was too long, behind a line that says so.
    fn close(&mut self) {
        let tail: Vec<u8> = self.tail.drain(..).collect();
        if self.dropped > 0 {
            // A character may have been cut in two.
            let skipped = tail.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            let dropped = self.dropped + skipped as u64;
            self.waiting.extend(format!("\n[{dropped} bytes were not kept]\n").into_bytes());
            self.waiting.extend(&tail[skipped..]);
        } else {
            self.waiting.extend(tail);
        }
    }
}

impl Spool {
    pub(crate) fn new(engine: Arc<dyn Engine>, id: &str, epoch: u64, most: u64) -> Self {
        let (stdout, stderr, changed, failed) = Default::default();
        Self { engine, id: id.to_owned(), epoch, most, stdout, stderr, changed, failed }
    }

    /// Writes what comes in until `stop`. Dropping this future in the middle of a write could lose or overwrite a piece.
    pub(crate) async fn keep(&self, stop: &CancellationToken) {
        loop {
            tokio::select! { () = stop.cancelled() => return, () = self.changed.notified() => {} }
            // What comes first is there at once.
            self.flush().await;
            let enough = async {
                while self.waiting() < PIECE {
                    self.changed.notified().await;
                }
            };
            tokio::select! { () = stop.cancelled() => return, _ = tokio::time::timeout(PAUSE, enough) => {} }
            self.flush().await;
        }
    }

    /// Writes the rest. Returns how many bytes there are in all, and why some are missing, if they are.
    pub(crate) async fn finish(&self, outcome: Option<String>) -> (u64, Option<String>) {
        self.stdout.lock().close();
        self.stderr.lock().close();
        self.flush().await;
        let mut bytes = self.stdout.lock().written + self.stderr.lock().written;
        if let Some(outcome) = outcome {
            bytes += outcome.len() as u64;
            let written = self.engine.append(&self.id, self.epoch, Stream::Outcome, 0, outcome.into_bytes()).await;
            self.note(written.err().map(|failure| failure.message));
        }
        (bytes, self.failed.lock().take())
    }

    fn waiting(&self) -> usize {
        self.stdout.lock().waiting.len() + self.stderr.lock().waiting.len()
    }

    async fn flush(&self) {
        for (buffer, stream) in [(&self.stdout, Stream::Stdout), (&self.stderr, Stream::Stderr)] {
            let (bytes, at) = {
                let mut buffer = buffer.lock();
                (std::mem::take(&mut buffer.waiting), buffer.written)
            };
            if bytes.is_empty() {
                continue;
            }
            let length = bytes.len() as u64;
            match self.engine.append(&self.id, self.epoch, stream, at, bytes).await {
                Ok(()) => buffer.lock().written += length,
                Err(failure) => self.note(Some(failure.message)),
            }
        }
    }

    fn note(&self, failed: Option<String>) {
        let mut noted = self.failed.lock();
        if noted.is_none() {
            *noted = failed;
        }
    }
}

impl EventSink for Spool {
    fn emit(&self, event: Event) {
        let (buffer, text) = match &event {
            Event::Stdout { text } => (&self.stdout, text),
            Event::Stderr { text } => (&self.stderr, text),
            Event::Started { .. } | Event::Log { .. } | Event::Progress { .. } | Event::Completed { .. } => return,
        };
        buffer.lock().push(text, self.most);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(most: u64, texts: &[&str]) -> String {
        let mut buffer = Buffer::default();
        texts.iter().for_each(|text| buffer.push(text, most));
        buffer.close();
        String::from_utf8(buffer.waiting).expect("text")
    }

    #[test]
    fn what_is_too_long_keeps_its_beginning_and_its_end() {
        assert_eq!(kept(100, &["ab", "cd"]), "abcd");
        // All of it is there after all.
        assert_eq!(kept(3, &["ab", "cd"]), "abcd");
        let middle = "m".repeat(1 << 20);
        let text = kept(10, &["begin", &middle, "the end"]);
        assert!(text.starts_with("beginmmmmm\n[") && text.ends_with("mmmthe end"), "{}", &text[..60]);
        assert!(text.len() < 10 + TAIL + 64);
        let umlauts = "ä".repeat(1 << 20);
        assert!(kept(5, &["b", &umlauts]).starts_with("bää\n["));
    }
}
