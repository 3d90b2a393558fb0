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
    /// The agent, by its name.
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
                Guidance { when_to_use: $when, when_not_to_use: $not, disambiguation: $other, examples: &["{}"] };
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
    "List the agents that you can call, with what each is for.",
    "Another agent may know or do what you cannot.",
    "For one agent whose name you know: use `agent_info`.",
    "It has the agents that are linked to you; `agent_list_all` has all of them."
);
list!(
    AgentListAll,
    "agent_list_all",
    "agent.list",
    Agents,
    true,
    "List all agents",
    "List all agents, whether they are linked to you or not.",
    "You look after other agents.",
    "To find one to call: use `agent_list`.",
    "It has all agents; `agent_list` has those that are linked to you."
);
list!(
    ImageList,
    "image_list",
    "image.list",
    Images,
    false,
    "List images",
    "List the images that agents can be made of.",
    "Before `agent_create`.",
    "For agents that run: use `agent_list`.",
    "An image is what an agent is made of, a model what it thinks with (`model_list`)."
);
list!(
    ModelList,
    "model_list",
    "model.list",
    Models,
    false,
    "List models",
    "List the models that agents can use.",
    "Before `agent_create`, or to say which model another agent should have.",
    "For agents: use `agent_list`.",
    "A model is what an agent thinks with, an image what it is made of (`image_list`)."
);

macro_rules! info {
    ($tool:ident, $name:literal, $any:literal, $title:literal, $summary:literal, $other:literal) => {
        pub(crate) struct $tool;

        impl Tool for $tool {
            const NAME: &str = $name;
            const TITLE: Option<&str> = Some($title);
            const SUMMARY: &str = $summary;
            const GUIDANCE: Guidance = Guidance {
                when_to_use: "You want to know what an agent is for, or whether it runs, before you call it.",
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
    "Show what an agent that you can call is for, and whether it runs.",
    "It knows the agents that are linked to you; `agent_info_any` knows all of them."
);
info!(
    AgentInfoAny,
    "agent_info_any",
    true,
    "Show any agent",
    "Show what any agent is for, and whether it runs.",
    "It knows all agents; `agent_info` knows those that are linked to you."
);
