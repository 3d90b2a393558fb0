//! `wit/events.wit`: what a guest says while it runs. Needs no grant; the caps are in `event.rs`.

use super::bindings::toolcrib::plugin::events;
use crate::sandbox::State;
use base::text::sanitize;
use policy::event::{Event, Level};

impl events::Host for State {
    async fn log(&mut self, level: events::Level, text: String) -> wasmtime::Result<()> {
        self.meter.charge_bytes(text.len())?;
        let level = match level {
            events::Level::Debug => Level::Debug,
            events::Level::Info => Level::Info,
            events::Level::Warn => Level::Warn,
            events::Level::Error => Level::Error,
        };
        self.scope.emit_for_guest(text.len(), || Event::log(level, &text));
        Ok(())
    }

    async fn progress(&mut self, done: u64, total: Option<u64>, message: Option<String>) -> wasmtime::Result<()> {
        let bytes = message.as_ref().map_or(0, String::len);
        self.meter.charge_bytes(bytes)?;
        self.scope.emit_for_guest(bytes, || {
            let message = message.map(|message| sanitize::line(&message).into_owned());
            Event::Progress { done, total, message }
        });
        Ok(())
    }
}
