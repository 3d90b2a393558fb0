//! What a call tells whoever watches it while it runs.
//!
//! The host emits `started`, output and `completed`; a guest adds `log` and `progress`, within caps. Delivery is the sink's affair.

use base::text::sanitize;
use config::Limits;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One thing that happened. Texts are sanitised.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// An action on the backend begins (a command), after its approval.
    Started {
        /// What begins, in one line.
        detail: String,
    },
    /// A piece of a command's standard output.
    Stdout {
        /// Not aligned to lines.
        text: String,
    },
    /// A piece of a command's standard error.
    Stderr {
        /// Not aligned to lines.
        text: String,
    },
    /// A sentence from the plugin, or what it printed.
    Log {
        /// How much it matters.
        level: Level,
        /// The sentence.
        text: String,
    },
    /// How far the plugin is.
    Progress {
        /// Units done.
        done: u64,
        /// Units in all, when known.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
        /// What is being done.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The call has its outcome.
    Completed {
        /// `ok` or the kind of the failure.
        outcome: &'static str,
    },
}

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// For who looks for a mistake in the plugin.
    Debug,
    /// What is printed is of this level, too.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something failed.
    Error,
}

/// Where events go. Emitting never blocks: a sink that cannot keep up drops.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: Event);

    /// Somebody looks at the events; where nobody does, none are made of a command's output.
    fn is_watched(&self) -> bool {
        true
    }

    /// A plugin is being compiled, from now until the second call of this for it; it happens once for its bytes, and takes seconds.
    fn compiles(&self, _: Compiling) {}
}

/// Where the compiling of one plugin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiling {
    /// It begins.
    Begins,
    /// It has come to an end, good or bad.
    Ended,
}

/// Drops every event.
pub struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _: Event) {}

    fn is_watched(&self) -> bool {
        false
    }
}

/// What a guest may still say in one call.
pub struct GuestEvents {
    events_left: AtomicU64,
    bytes_left: AtomicU64,
    marked: AtomicBool,
}

impl GuestEvents {
    pub fn new(limits: &Limits) -> Self {
        Self {
            events_left: AtomicU64::new(limits.events),
            bytes_left: AtomicU64::new(limits.event_kib << 10),
            marked: AtomicBool::new(false),
        }
    }

    /// Passes on an event of so many bytes of text while the guest is within its caps; the first one that is not leaves a mark.
    pub fn emit(&self, sink: &dyn EventSink, text_bytes: usize, event: impl FnOnce() -> Event) {
        if take(&self.events_left, 1) && take(&self.bytes_left, text_bytes as u64) {
            sink.emit(event());
        } else if !self.marked.swap(true, Ordering::Relaxed) {
            sink.emit(Event::log(Level::Warn, "[further events of this plugin are dropped]"));
        }
    }
}

impl Event {
    /// A sentence from a guest, cleaned.
    pub fn log(level: Level, text: &str) -> Self {
        Self::Log { level, text: sanitize::text(text).into_owned() }
    }
}

fn take(left: &AtomicU64, amount: u64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount)).is_ok()
}
