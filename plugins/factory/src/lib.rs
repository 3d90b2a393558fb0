//! `factory`: how an agent sets others up: presets, what is known of the people and their work, identities, settings. Each tool checks its
//! arguments and hands over one event; what comes of it, the embedder decides.

mod agents;
mod presets;

use agents::{CreateAgent, UpdateConfig, UpdateIdentity};
use presets::{ListPresets, LoadPreset, SearchContext};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolcrib_sdk::embedder::Event;
use toolcrib_sdk::{Failure, Result};

toolcrib_sdk::export!(ListPresets, LoadPreset, SearchContext, CreateAgent, UpdateIdentity, UpdateConfig);

/// Hands over an event whose payload this is. People will see all of its texts.
fn hand_over<A: DeserializeOwned>(kind: &str, payload: &impl Serialize) -> Result<A> {
    let answer = Event::new(kind, payload).visible("").send()?;
    serde_json::from_value(answer).map_err(|error| {
        Failure::failed(format!("the embedder's answer to `{kind}` cannot be used: {error}"))
            .hint("what it did is done; this is a fault of the embedder")
    })
}

/// Refuses a text without content.
fn check_text(name: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Failure::invalid(format!("`{name}` is blank")));
    }
    Ok(())
}
