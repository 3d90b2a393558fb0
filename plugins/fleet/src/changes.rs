//! Agents made, deleted, and started anew.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateInput {
    /// What it is made of, as `image_list` has it.
    image: String,
    /// What it is to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What it is to think with, as `model_list` has it; without it, what the image says.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceInput {
    /// The text of an Agentfile.
    source: String,
    /// What it is to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Created {
    /// Its name, by which it is called.
    agent: String,
}

pub(crate) struct AgentCreate;

impl Tool for AgentCreate {
    const NAME: &str = "agent_create";
    const TITLE: Option<&str> = Some("Make an agent");
    const SUMMARY: &str = "Make an agent of an image, and start it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Work of a kind comes again and again, and no agent is for it.",
        when_not_to_use: "An agent for it exists: use `agent_exec`. For one task of your own: use a worker.",
        disambiguation: "It stays until it is deleted. `agent_create_from_source` makes one of a text instead of an image.",
        examples: &[r#"{"image":"ghcr.io/openotters/agents/researcher:v1","name":"researcher"}"#],
    };
    const EVENTS: &[&str] = &["agent.create"];
    type Input = CreateInput;
    type Output = Created;

    fn call(input: CreateInput) -> Result<Created> {
        check_text("image", &input.image)?;
        hand_over("agent.create", &input)
    }
}

pub(crate) struct AgentCreateFromSource;

impl Tool for AgentCreateFromSource {
    const NAME: &str = "agent_create_from_source";
    const TITLE: Option<&str> = Some("Make an agent of a text");
    const SUMMARY: &str = "Make an agent of an Agentfile that you write, and start it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "No image is what you need.",
        when_not_to_use: "An image for it exists: use `agent_create`.",
        disambiguation: "It is built from the text first, which may fail; then it stays until it is deleted.",
        examples: &[
            r#"{"source":"FROM scratch\nRUNTIME ghcr.io/openotters/runtime:latest\nMODEL ollama/qwen3:8b\nNAME greeter"}"#,
        ],
    };
    const EVENTS: &[&str] = &["agent.create"];
    type Input = SourceInput;
    type Output = Created;

    fn call(input: SourceInput) -> Result<Created> {
        check_text("source", &input.source)?;
        hand_over("agent.create", &input)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteInput {
    /// The agent, by its name.
    r#ref: String,
}

#[derive(Serialize)]
struct Delete<'a> {
    agent: &'a str,
    any: bool,
}

/// What nobody says otherwise of was done.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Deleted {
    /// False: there was none.
    #[serde(default = "yes")]
    deleted: bool,
}

fn yes() -> bool {
    true
}

macro_rules! delete {
    ($tool:ident, $name:literal, $any:literal, $title:literal, $summary:literal, $other:literal) => {
        pub(crate) struct $tool;

        impl Tool for $tool {
            const NAME: &str = $name;
            const TITLE: Option<&str> = Some($title);
            const SUMMARY: &str = $summary;
            const GUIDANCE: Guidance = Guidance {
                when_to_use: "It has done its work and nobody will call it again.",
                when_not_to_use: "It only should stop what it does now.",
                disambiguation: $other,
                examples: &[r#"{"ref":"researcher"}"#],
            };
            const EVENTS: &[&str] = &["agent.delete"];
            type Input = DeleteInput;
            type Output = Deleted;

            fn call(input: DeleteInput) -> Result<Deleted> {
                check_text("ref", &input.r#ref)?;
                hand_over("agent.delete", &Delete { agent: &input.r#ref, any: $any })
            }
        }
    };
}

delete!(
    AgentDelete,
    "agent_delete",
    false,
    "Delete an agent",
    "Delete an agent that you made, with its conversations.",
    "It deletes agents that you made; `agent_delete_any` deletes any. What it knew is lost."
);
delete!(
    AgentDeleteAny,
    "agent_delete_any",
    true,
    "Delete any agent",
    "Delete any agent, with its conversations.",
    "It deletes any agent; `agent_delete` deletes those that you made. What it knew is lost."
);

pub(crate) struct SelfReload;

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reloading {
    #[serde(default = "yes")]
    reloading: bool,
}

impl Tool for SelfReload {
    const NAME: &str = "self_reload";
    const TITLE: Option<&str> = Some("Start anew");
    const SUMMARY: &str = "Start yourself anew, with the tools and settings that there are by now.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Your tools or settings were changed, and you need them.",
        when_not_to_use: "Something failed: say so instead.",
        disambiguation: "This conversation goes on after it; what runs for you may end.",
        examples: &["{}"],
    };
    const EVENTS: &[&str] = &["agent.reload"];
    type Input = ();
    type Output = Reloading;

    fn call((): ()) -> Result<Reloading> {
        hand_over("agent.reload", &serde_json::Map::new())
    }
}
