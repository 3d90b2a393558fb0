//! New agents, and changes of those that there are.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, schemars};

/// Characters of an agent's id.
const ID_CHARS: std::ops::RangeInclusive<usize> = 2..=64;

/// Refuses what cannot be the id of an agent.
fn check_id(id: &str) -> Result<()> {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let fits = ID_CHARS.contains(&id.len()) && id.starts_with(|first: char| first.is_ascii_lowercase());
    if fits && id.split('-').all(is_word) {
        return Ok(());
    }
    Err(Failure::invalid("`agent_id` is not the id of an agent")
        .hint("2 to 64 of a-z, 0-9 and single `-` between them, a letter first"))
}

#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    /// Both may write.
    #[default]
    TwoWay,
    /// Only the new agent may write.
    OneWay,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LinkKind {
    #[default]
    Peer,
    /// One leads the other.
    Hierarchical,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Link {
    /// Id of the agent or person.
    target: String,
    /// Who may write.
    #[serde(default)]
    direction: Direction,
    /// Kind of link.
    #[serde(default)]
    kind: LinkKind,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateInput {
    /// Id: 2 to 64 of a-z, 0-9 and `-`.
    agent_id: String,
    /// Name for people.
    display_name: String,
    /// What it does, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Markdown: its character and how it speaks.
    soul_content: String,
    /// Markdown: what it is and what it is for.
    identity_content: String,
    /// Markdown: how it must act.
    role_content: String,
    /// Agents and people that it can write to.
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Created {
    agent_id: String,
    /// What did not go well besides, a sentence each.
    #[serde(default)]
    warnings: Vec<String>,
}

pub(crate) struct CreateAgent;

impl Tool for CreateAgent {
    const NAME: &str = "factory_create_agent";
    const TITLE: Option<&str> = Some("Set up an agent");
    const SUMMARY: &str = "Make a new agent from three texts and start it.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You have its texts, and the person agreed.",
        when_not_to_use: "",
        disambiguation: "Its id cannot change later. It begins to work at once.",
        examples: &[
            r#"{"agent_id":"release-helper","display_name":"Release helper","soul_content":"Calm.","identity_content":"Prepares releases.","role_content":"Ask first."}"#,
        ],
    };
    const EVENTS: &[&str] = &["agent.create"];
    type Input = CreateInput;
    type Output = Created;

    fn call(input: CreateInput) -> Result<Created> {
        check_id(&input.agent_id)?;
        let texts = [
            ("display_name", &input.display_name),
            ("soul_content", &input.soul_content),
            ("identity_content", &input.identity_content),
            ("role_content", &input.role_content),
        ];
        texts.into_iter().try_for_each(|(name, text)| check_text(name, text))?;
        input.links.iter().try_for_each(|link| check_text("target", &link.target))?;
        hand_over("agent.create", &input)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdentityInput {
    /// Id of the agent.
    agent_id: String,
    /// New Markdown: its character and how it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    soul_content: Option<String>,
    /// New Markdown: what it is and what it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity_content: Option<String>,
    /// New Markdown: how it must act.
    #[serde(skip_serializing_if = "Option::is_none")]
    role_content: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Updated {
    agent_id: String,
    /// What counts only once it starts anew, or did not go well.
    #[serde(default)]
    warnings: Vec<String>,
}

pub(crate) struct UpdateIdentity;

impl Tool for UpdateIdentity {
    const NAME: &str = "factory_update_identity";
    const TITLE: Option<&str> = Some("Change who an agent is");
    const SUMMARY: &str = "Replace the texts that define an agent.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "An agent should speak or act differently from now on.",
        when_not_to_use: "",
        disambiguation: "A text that you give replaces the whole old text; the others stay.",
        examples: &[r#"{"agent_id":"release-helper","role_content":"Ask before you publish."}"#],
    };
    const EVENTS: &[&str] = &["factory.identity"];
    type Input = IdentityInput;
    type Output = Updated;

    fn call(input: IdentityInput) -> Result<Updated> {
        check_id(&input.agent_id)?;
        let texts = [
            ("soul_content", &input.soul_content),
            ("identity_content", &input.identity_content),
            ("role_content", &input.role_content),
        ];
        if texts.iter().all(|(_, text)| text.is_none()) {
            return Err(Failure::invalid("nothing to change is given")
                .hint("give `soul_content`, `identity_content` or `role_content`"));
        }
        texts.into_iter().try_for_each(|(name, text)| text.as_ref().map_or(Ok(()), |text| check_text(name, text)))?;
        hand_over("factory.identity", &input)
    }
}

/// Models of its processes.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Routing {
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    compactor: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    cortex: Option<String>,
}

/// Its limits.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tuning {
    /// 1 to 32.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent_branches: Option<u64>,
    /// 1 to 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent_workers: Option<u64>,
    /// Turns of a channel: 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_turns: Option<u64>,
    /// Turns of a branch: 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_max_turns: Option<u64>,
    /// Tokens: 1,000 to 2,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigInput {
    /// Id of the agent.
    agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<Routing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<Tuning>,
}

pub(crate) struct UpdateConfig;

impl Tool for UpdateConfig {
    const NAME: &str = "factory_update_config";
    const TITLE: Option<&str> = Some("Change an agent's settings");
    const SUMMARY: &str = "Change the models and limits of an agent.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "An agent is too slow, too expensive, or gives up too early.",
        when_not_to_use: "",
        disambiguation: "Settings that you omit stay as they are.",
        examples: &[r#"{"agent_id":"release-helper","tuning":{"max_concurrent_workers":4}}"#],
    };
    const EVENTS: &[&str] = &["factory.config"];
    type Input = ConfigInput;
    type Output = Updated;

    fn call(input: ConfigInput) -> Result<Updated> {
        check_id(&input.agent_id)?;
        if input.routing.is_none() && input.tuning.is_none() {
            return Err(Failure::invalid("nothing to change is given").hint("give `routing` or `tuning`"));
        }
        if let Some(tuning) = &input.tuning {
            let bounds = [
                ("max_concurrent_branches", tuning.max_concurrent_branches, 1..=32),
                ("max_concurrent_workers", tuning.max_concurrent_workers, 1..=64),
                ("max_turns", tuning.max_turns, 1..=100),
                ("branch_max_turns", tuning.branch_max_turns, 1..=100),
                ("context_window", tuning.context_window, 1000..=2_000_000),
            ];
            let is_out = |(_, value, bounds): &&(_, Option<u64>, std::ops::RangeInclusive<u64>)| {
                value.is_some_and(|value| !bounds.contains(&value))
            };
            if let Some((name, _, bounds)) = bounds.iter().find(is_out) {
                return Err(Failure::invalid(format!("`{name}` is {} to {}", bounds.start(), bounds.end())));
            }
        }
        hand_over("factory.config", &input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_words_parted_by_single_dashes() {
        for id in ["ab", "a1-b2-c3", &"a".repeat(64)] {
            assert!(check_id(id).is_ok(), "{id}");
        }
        for id in ["", "a", "1a", "-ab", "ab-", "a--b", "Ab", "a b", "a/b", &"a".repeat(65)] {
            assert!(check_id(id).is_err(), "{id}");
        }
    }
}
