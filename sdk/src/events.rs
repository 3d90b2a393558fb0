//! What whoever watches the call sees while it runs. The host drops events past 1,000 or 256 KiB a call.

use crate::host::events;

/// Says something in a sentence.
pub fn info(text: &str) {
    events::info(text);
}

/// Says how far the call is: `done` of `total` units of the plugin's choice.
pub fn progress(done: u64, total: Option<u64>, message: Option<&str>) {
    events::progress(done, total, message);
}
