//! Prompts for other agents.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, schemars};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecInput {
    /// The agent, by its name.
    r#ref: String,
    /// What it is to do or answer: it knows nothing of this conversation.
    prompt: String,
    /// To go on with it where an earlier call ended: the session that this call returned.
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
                when_to_use: "Another agent knows or can do what you cannot, and you need its answer to go on.",
                when_not_to_use: "You can do it yourself. To tell somebody something: send a message.",
                disambiguation: $other,
                examples: &[r#"{"ref":"researcher","prompt":"Which of our three suppliers ships to Norway? Name your sources."}"#],
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
    "Give another agent a prompt, and return its answer.",
    "It calls agents that are linked to you; `agent_exec_any` calls any. Calls go four agents deep, and never back to one that led to them."
);
exec!(
    AgentExecAny,
    "agent_exec_any",
    true,
    "Call any agent",
    "Give any agent a prompt, and return its answer.",
    "It calls any agent; `agent_exec` calls those that are linked to you. Calls go four agents deep, and never back to one that led to them."
);
