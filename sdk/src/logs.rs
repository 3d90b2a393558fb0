//! What the macros of the `log` crate say, as events of the call: in the plugin's own code, and in crates that it uses.

use crate::events;
use log::{Level, LevelFilter, Log, Metadata, Record};

struct Events;

impl Log for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        match record.level() {
            Level::Info => events::info(&record.args().to_string()),
            level => events::info(&format!("{}: {}", level.as_str().to_ascii_lowercase(), record.args())),
        }
    }

    fn flush(&self) {}
}

/// Makes events of what is logged from now on. A logger that is there already stays.
pub(crate) fn begin() {
    if log::set_logger(&Events).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Host, json};

    #[test]
    fn what_is_logged_is_an_event_with_its_level_in_front() {
        begin();
        let host = Host::new();
        host.run(|| {
            log::info!("read {} files", 3);
            log::warn!("one was empty");
            log::debug!("not told");
        });
        let told: Vec<_> = host.calls().into_iter().map(|call| call.arguments).collect();
        assert_eq!(told, [json!({ "text": "read 3 files" }), json!({ "text": "warn: one was empty" })]);
    }
}
