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

/// Events need no answer, so nobody has to play them.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;
    pub(crate) use contract::events::Level;

    pub(crate) const CALLS: &[&[Signature]] = &[];

    pub(crate) fn log(level: Level, text: &str) {
        Call::new([("level", level.write()), ("text", text.write())]).note("events", "log");
    }

    pub(crate) fn progress(done: u64, total: Option<u64>, message: Option<&str>) {
        let arguments = [("done", done.write()), ("total", total.write()), ("message", message.write())];
        Call::new(arguments).note("events", "progress");
    }

    enums! {
        Level { Debug, Info, Warn, Error }
    }
}
