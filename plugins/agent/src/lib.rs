//! `agent`: what the program around the host does for its agent. Each tool checks its arguments and hands over one event.
//!
//! Which channel, worker or agent an event is about is bound to the session, and never an argument.

mod messages;
mod outcomes;
mod processes;
mod requests;

use messages::{Ask, React, Reply, SendMessageToAnotherChannel, Skip};
use outcomes::{AutonomyComplete, Restart, SendAgentMessage, SetHomeChannel, SetOutcome, SetStatus};
use processes::{Branch, Cancel, Route, SpawnWorker};
use requests::{MemoryPersistenceComplete, ProjectManage, SecretSet};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolcrib_sdk::embedder::Event;
use toolcrib_sdk::{Failure, Result};

toolcrib_sdk::export!(
    Reply,
    Ask,
    React,
    Skip,
    SendMessageToAnotherChannel,
    Branch,
    SpawnWorker,
    Route,
    Cancel,
    SetStatus,
    SetOutcome,
    SendAgentMessage,
    SetHomeChannel,
    Restart,
    AutonomyComplete,
    MemoryPersistenceComplete,
    SecretSet,
    ProjectManage,
);

/// Hands over an event whose payload are these arguments. People will see all of its texts.
fn hand_over<A: DeserializeOwned>(kind: &str, payload: &impl Serialize) -> Result<A> {
    read(kind, Event::new(kind, payload).visible("").send()?)
}

/// Reads an answer. One without members of its own may be anything: that there is one says that it was done.
fn read<A: DeserializeOwned>(kind: &str, answer: Value) -> Result<A> {
    let answer = if answer.is_object() { answer } else { Value::Object(serde_json::Map::new()) };
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

/// Refuses a list or text that is longer than it may be.
fn check_most(name: &str, count: usize, most: usize, of: &str) -> Result<()> {
    if count > most {
        return Err(Failure::invalid(format!("`{name}` has {count} {of} (limit: {most})")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[test]
    fn an_answer_without_members_says_that_it_was_done() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Optional {
            id: Option<String>,
        }
        for answer in [json!(null), json!(true), json!({}), json!({ "more": 1 })] {
            assert_eq!(read::<Optional>("a.b", answer), Ok(Optional { id: None }));
        }
        #[derive(Debug, Deserialize, PartialEq)]
        struct Needed {
            id: String,
        }
        let failure = read::<Needed>("a.b", json!({})).unwrap_err();
        assert_eq!(failure.message, "the embedder's answer to `a.b` cannot be used: missing field `id`");
    }
}
