//! Events for the program around the host, the *embedder*: it alone can speak to people and move its agents.
//!
//! Name the kinds of a tool's events in [`Tool::EVENTS`](crate::Tool::EVENTS): where nobody takes them it is not offered.
//!
//! ```no_run
//! use serde_json::json;
//! use toolcrib_sdk::{Result, embedder::Event};
//!
//! fn look_up(customer: &str) -> Result<String> {
//!     let answer = Event::new("crm.look_up", &json!({ "customer": customer })).send()?;
//!     Ok(answer["name"].as_str().unwrap_or_default().to_owned())
//! }
//! ```

use crate::host::embedder;
use crate::{Failure, Result};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// An event in preparation.
#[must_use = "an event is handed over by `send` or `post`"]
pub struct Event(embedder::Event);

impl Event {
    /// Prepares an event. The payload is a JSON object of at most 256 KiB.
    pub fn new(kind: &str, payload: &impl Serialize) -> Self {
        // What is no JSON is refused by the host as what is no object.
        Self(embedder::Event::new(kind, &serde_json::to_string(payload).unwrap_or_default()))
    }

    /// Says that people will see the texts at this JSON pointer: what a screen obeys is taken out of them.
    pub fn visible(self, pointer: &str) -> Self {
        self.0.visible(pointer);
        self
    }

    /// Adds a file that the plugin may read, of at most 25 MiB. An empty name is the file's own.
    pub fn attach(self, path: &str, name: &str, media_type: &str) -> Self {
        self.0.attach(path, name, media_type);
        self
    }

    /// Waits for the answer so long, and no longer than the user has set.
    pub fn wait(self, wait: Duration) -> Self {
        self.0.wait_ms(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Hands it over, and returns the one answer.
    ///
    /// # Errors
    /// `denied` by policy or for a secret in it; `unavailable` where nobody takes it; `timed_out`; `outcome_unknown` where the embedder is
    /// gone before it answers; or the failure that it answers.
    pub fn send(self) -> Result<Value> {
        let answer = self.0.send().map_err(Failure::from_host)?;
        serde_json::from_str(&answer).map_err(|error| Failure::internal(format!("the answer is not JSON: {error}")))
    }

    /// Hands it over and waits for nothing; false where there was no room, and it is dropped.
    ///
    /// # Errors
    /// As [`Event::send`], but for what concerns an answer.
    pub fn post(self) -> Result<bool> {
        self.0.post().map_err(Failure::from_host)
    }
}

/// What a test plays of it.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod played {
    use crate::testing::played::*;

    pub(crate) const CALLS: &[&[Signature]] = &[Event::SIGNATURES];

    resource! { "embedder": Event(kind: &str, payload: &str) {
        set wait_ms(ms: u32);
        add visible by visible(pointer: &str);
        add attachments by attach(path: &str, name: &str, media_type: &str);
        end send -> String;
        end post -> bool;
    } }
}
