//! What there is: agents, images, models.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

/// An agent, as far as the embedder tells.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Agent {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// For example `running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Agents {
    agents: Vec<Agent>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InfoInput {
    /// Name of the agent.
    r#ref: String,
}

/// An image of an agent, or a model.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Named {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Images {
    images: Vec<Named>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Models {
    models: Vec<Named>,
}

/// What is asked for.
#[derive(Serialize)]
struct About<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    /// Also those that are not linked to this agent.
    any: bool,
}

macro_rules! list {
    ($tool:ident, $name:literal, $kind:literal, $output:ty, $any:literal, $title:literal, $summary:literal, $when:literal, $not:literal, $other:literal) => {
        pub(crate) struct $tool;

        impl Tool for $tool {
            const NAME: &str = $name;
            const TITLE: Option<&str> = Some($title);
            const SUMMARY: &str = $summary;
            const GUIDANCE: Guidance =
                Guidance { when_to_use: $when, when_not_to_use: $not, disambiguation: $other, examples: &[] };
            const EVENTS: &[&str] = &[$kind];
            type Input = ();
            type Output = $output;

            fn call((): ()) -> Result<$output> {
                hand_over($kind, &About { agent: None, any: $any })
            }
        }
    };
}

list!(
    AgentList,
    "agent_list",
    "agent.list",
    Agents,
    false,
    "List agents",
    "List the agents that are linked to you, with the purpose of each.",
    "Another agent may know or do what you cannot.",
    "You know the name of the agent: use `agent_info`.",
    "`agent_list_all` also lists agents that are not linked to you."
);
list!(
    AgentListAll,
    "agent_list_all",
    "agent.list",
    Agents,
    true,
    "List all agents",
    "List all agents, linked to you or not.",
    "You manage other agents.",
    "To find an agent to call: use `agent_list`.",
    "`agent_list` lists only agents that are linked to you."
);
list!(
    ImageList,
    "image_list",
    "image.list",
    Images,
    false,
    "List images",
    "List the images from which agents can be made.",
    "Before `agent_create`.",
    "To list agents: use `agent_list`.",
    ""
);
list!(
    ModelList,
    "model_list",
    "model.list",
    Models,
    false,
    "List models",
    "List the models that agents can use.",
    "Before `agent_create`, to choose a model.",
    "To list agents: use `agent_list`.",
    ""
);

macro_rules! info {
    ($tool:ident, $name:literal, $any:literal, $title:literal, $summary:literal, $other:literal) => {
        pub(crate) struct $tool;

        impl Tool for $tool {
            const NAME: &str = $name;
            const TITLE: Option<&str> = Some($title);
            const SUMMARY: &str = $summary;
            const GUIDANCE: Guidance = Guidance {
                when_to_use: "Before you call an agent.",
                when_not_to_use: "You do not know its name: use `agent_list`.",
                disambiguation: $other,
                examples: &[r#"{"ref":"researcher"}"#],
            };
            const EVENTS: &[&str] = &["agent.info"];
            type Input = InfoInput;
            type Output = Agent;

            fn call(input: InfoInput) -> Result<Agent> {
                check_text("ref", &input.r#ref)?;
                hand_over("agent.info", &About { agent: Some(&input.r#ref), any: $any })
            }
        }
    };
}

info!(
    AgentInfo,
    "agent_info",
    false,
    "Show an agent",
    "Show the purpose and state of an agent that is linked to you.",
    "`agent_info_any` also shows agents that are not linked to you."
);
info!(
    AgentInfoAny,
    "agent_info_any",
    true,
    "Show any agent",
    "Show the purpose and state of any agent, linked to you or not.",
    "`agent_info` shows only agents that are linked to you."
);
