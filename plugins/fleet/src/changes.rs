//! Agents made, deleted, and started anew.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateInput {
    /// Image, from `image_list`.
    image: String,
    /// Name for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Model, from `model_list`; default: that of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceInput {
    /// Text of the Agentfile.
    source: String,
    /// Name for the agent.
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
    const SUMMARY: &str = "Make an agent from an image and start it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A kind of work recurs, and no agent does it.",
        when_not_to_use: "",
        disambiguation: "It exists until it is deleted. `agent_create_from_source` takes a text instead.",
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
    const TITLE: Option<&str> = Some("Make an agent from a text");
    const SUMMARY: &str = "Make an agent from an Agentfile that you write, and start it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "No image fits.",
        when_not_to_use: "",
        disambiguation: "The build may fail. The agent exists until it is deleted.",
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
    /// Name of the agent.
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
                when_to_use: "Nobody needs the agent any more.",
                when_not_to_use: "",
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
    "`agent_delete_any` also deletes agents that others made. What the agent knew is lost."
);
delete!(
    AgentDeleteAny,
    "agent_delete_any",
    true,
    "Delete any agent",
    "Delete any agent, made by you or others, with its conversations.",
    "`agent_delete` deletes only agents that you made. What the agent knew is lost."
);

pub(crate) struct SelfReload;

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reloading {
    #[serde(default = "yes")]
    reloading: bool,
}

impl Tool for SelfReload {
    const NAME: &str = "self_reload";
    const TITLE: Option<&str> = Some("Restart yourself");
    const SUMMARY: &str = "Restart yourself with the current tools and settings.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Your tools or settings were changed, and you need them.",
        when_not_to_use: "",
        disambiguation: "This conversation continues. Work that runs for you may end.",
        examples: &[],
    };
    const EVENTS: &[&str] = &["agent.reload"];
    type Input = ();
    type Output = Reloading;

    fn call((): ()) -> Result<Reloading> {
        hand_over("agent.reload", &serde_json::Map::new())
    }
}
