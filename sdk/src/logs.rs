//! What the macros of the `log` crate say, as events of the call: in the plugin's own code, and in crates that it uses.

use crate::events;
use log::{Level, LevelFilter, Log, Metadata, Record};

struct Events;

impl Log for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        let level = match record.level() {
            Level::Error => events::Level::Error,
            Level::Warn => events::Level::Warn,
            Level::Info => events::Level::Info,
            Level::Debug | Level::Trace => events::Level::Debug,
        };
        events::log(level, &record.args().to_string());
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
    fn what_is_logged_is_an_event_of_its_level() {
        begin();
        let host = Host::new();
        host.run(|| {
            log::info!("read {} files", 3);
            log::warn!("one was empty");
            log::debug!("not told");
            log::set_max_level(LevelFilter::Debug);
            log::debug!("it was `a`");
            log::set_max_level(LevelFilter::Info);
        });
        let told: Vec<_> = host.calls().into_iter().map(|call| call.arguments).collect();
        let said = |level: &str, text: &str| json!({ "level": level, "text": text });
        let all = [said("info", "read 3 files"), said("warn", "one was empty"), said("debug", "it was `a`")];
        assert_eq!(told, all);
    }
}
