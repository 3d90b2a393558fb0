//! Prompts for other agents.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecInput {
    /// Name of the agent.
    r#ref: String,
    /// Task or question; the agent does not know this conversation.
    prompt: String,
    /// Session of an earlier call, to continue it.
    session_id: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Executed {
    response: String,
    /// To go on with it later.
    #[serde(rename(serialize = "session_id"), alias = "session_id")]
    session: String,
}

#[derive(Serialize)]
struct Exec<'a> {
    agent: &'a str,
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    any: bool,
}

macro_rules! exec {
    ($tool:ident, $name:literal, $any:literal, $title:literal, $summary:literal, $other:literal) => {
        pub(crate) struct $tool;

        impl Tool for $tool {
            const NAME: &str = $name;
            const TITLE: Option<&str> = Some($title);
            const SUMMARY: &str = $summary;
            const GUIDANCE: Guidance = Guidance {
                when_to_use: "You need the answer of another agent to go on.",
                when_not_to_use: "You can do it yourself, or need no answer.",
                disambiguation: $other,
                examples: &[r#"{"ref":"researcher","prompt":"Which supplier ships to Norway?"}"#],
            };
            const EVENTS: &[&str] = &["agent.exec"];
            type Input = ExecInput;
            type Output = Executed;

            fn call(ExecInput { r#ref, prompt, session_id }: ExecInput) -> Result<Executed> {
                check_text("ref", &r#ref)?;
                check_text("prompt", &prompt)?;
                let session = session_id.as_deref().filter(|session| !session.trim().is_empty());
                hand_over("agent.exec", &Exec { agent: &r#ref, prompt: &prompt, session, any: $any })
            }
        }
    };
}

exec!(
    AgentExec,
    "agent_exec",
    false,
    "Call an agent",
    "Send a prompt to an agent that is linked to you, and return its answer.",
    "`agent_exec_any` also calls agents that are not linked to you. Calls nest at most four agents deep."
);
exec!(
    AgentExecAny,
    "agent_exec_any",
    true,
    "Call any agent",
    "Send a prompt to any agent, linked to you or not, and return its answer.",
    "`agent_exec` calls only agents that are linked to you. Calls nest at most four agents deep."
);
