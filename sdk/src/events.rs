//! What whoever watches the call sees while it runs. The host drops events past 1,000 or 256 KiB a call.

use crate::host::events;

pub use crate::bindings::toolcrib::plugin::events::Level;

/// Says something in a sentence, for who looks for a mistake in the plugin. Terminals do not show it.
pub fn debug(text: &str) {
    log(Level::Debug, text);
}

/// Says something in a sentence.
pub fn info(text: &str) {
    log(Level::Info, text);
}

/// Says that something is not as it should be.
pub fn warn(text: &str) {
    log(Level::Warn, text);
}

/// Says that something failed.
pub fn error(text: &str) {
    log(Level::Error, text);
}

/// Says something that matters so much.
pub fn log(level: Level, text: &str) {
    events::log(level, text);
}

/// Says how far the call is: `done` of `total` units of the plugin's choice.
pub fn progress(done: u64, total: Option<u64>, message: Option<&str>) {
    events::progress(done, total, message);
}
