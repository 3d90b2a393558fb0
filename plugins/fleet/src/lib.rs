//! `fleet`: how an agent knows and calls others. Each tool checks its arguments and hands over one event, as the tools of `agent` do.
//!
//! Which agent asks is bound to its session, and never an argument; how deep calls go and whose sessions are whose is the host's to decide.

mod calls;
mod changes;
mod lists;

use calls::{AgentExec, AgentExecAny};
use changes::{AgentCreate, AgentCreateFromSource, AgentDelete, AgentDeleteAny, SelfReload};
use lists::{AgentInfo, AgentInfoAny, AgentList, AgentListAll, ImageList, ModelList};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolcrib_sdk::embedder::Event;
use toolcrib_sdk::{Failure, Result};

toolcrib_sdk::export!(
    AgentList,
    AgentListAll,
    AgentInfo,
    AgentInfoAny,
    AgentExec,
    AgentExecAny,
    AgentCreate,
    AgentCreateFromSource,
    AgentDelete,
    AgentDeleteAny,
    ImageList,
    ModelList,
    SelfReload,
);

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
