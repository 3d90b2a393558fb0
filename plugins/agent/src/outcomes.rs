//! What a process says of itself and to others of its kind: `set_status`, `set_outcome`, `send_agent_message`, `set_home_channel`,
//! `restart`, `autonomy_complete`.

use crate::{check_text, hand_over};
use serde::{Deserialize, Serialize};
use toolcrib_sdk::embedder::Event;
use toolcrib_sdk::{Failure, Guidance, JsonSchema, Result, Tool, notice, schemars};

/// Bytes of a status that are shown.
const STATUS_BYTES: usize = 256;
/// Characters of a summary at least.
const SUMMARY_CHARS: usize = 10;

pub(crate) struct SetStatus;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusInput {
    /// What you are doing, in at most 256 bytes. As an `outcome`: the result of the task.
    status: String,
    /// Kind of report.
    #[serde(default)]
    kind: StatusKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StatusKind {
    /// The work goes on.
    #[default]
    Progress,
    /// The work is done.
    Outcome,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct StatusSet {
    /// False: too many wait to be shown, and this one is left out.
    delivered: bool,
}

#[derive(Serialize)]
struct Status<'s> {
    status: &'s str,
    kind: StatusKind,
}

#[derive(Deserialize)]
struct Done {}

impl Tool for SetStatus {
    const NAME: &str = "set_status";
    const TITLE: Option<&str> = Some("Show progress");
    const SUMMARY: &str = "Show what you are doing, or report the outcome of your task.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "A long step begins. At the end, report the `outcome` once: it ends your task.",
        when_not_to_use: "",
        disambiguation: "A `progress` may be dropped if many come; an `outcome` always arrives whole.",
        examples: &[r#"{"status":"All tests pass; the cause was a stale cache.","kind":"outcome"}"#],
    };
    const EVENTS: &[&str] = &["agent.status"];
    type Input = StatusInput;
    type Output = StatusSet;

    fn call(StatusInput { status, kind }: StatusInput) -> Result<StatusSet> {
        check_text("status", &status)?;
        match kind {
            StatusKind::Outcome => {
                let Done {} = hand_over("agent.status", &Status { status: &status, kind })?;
                Ok(StatusSet { delivered: true })
            }
            StatusKind::Progress => {
                let shown = cut(&status, STATUS_BYTES);
                if shown.len() < status.len() {
                    notice(format!("the first {} of {} bytes are shown", shown.len(), status.len()));
                }
                let delivered = Event::new("agent.status", &Status { status: shown, kind }).visible("").post()?;
                Ok(StatusSet { delivered })
            }
        }
    }
}

/// As much of a text as has so many bytes, cut at a word where it has one.
fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let end = text.floor_char_boundary(bytes);
    // What goes on right behind the end is a word that is cut.
    let is_between = text[end..].starts_with(char::is_whitespace);
    let head = &text[..end];
    let word = if is_between { end } else { head.rfind(char::is_whitespace).unwrap_or(end) };
    let head = text[..word].trim_end();
    if head.is_empty() { &text[..end] } else { head }
}

pub(crate) struct SetOutcome;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutcomeInput {
    /// The whole text that people read.
    outcome: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Accepted {
    /// The program around you has it.
    accepted: bool,
}

impl Tool for SetOutcome {
    const NAME: &str = "set_outcome";
    const TITLE: Option<&str> = Some("Deliver the outcome");
    const SUMMARY: &str = "Set the text that this scheduled task delivers.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The task is done and its result is for people.",
        when_not_to_use: "",
        disambiguation: "Nothing else that you write is delivered. The last call counts.",
        examples: &[r#"{"outcome":"3 of 41 checks failed tonight: …"}"#],
    };
    const EVENTS: &[&str] = &["agent.outcome"];
    type Input = OutcomeInput;
    type Output = Accepted;

    fn call(input: OutcomeInput) -> Result<Accepted> {
        check_text("outcome", &input.outcome)?;
        accepted("agent.outcome", &input)
    }
}

pub(crate) struct SendAgentMessage;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentMessageInput {
    /// Name of the agent.
    agent: String,
    /// What the agent should know or do.
    message: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct MessageSent {
    sent: bool,
    /// The task that the other agent has got by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_number: Option<u64>,
}

#[derive(Deserialize)]
struct Task {
    task_number: Option<u64>,
}

impl Tool for SendAgentMessage {
    const NAME: &str = "send_agent_message";
    const TITLE: Option<&str> = Some("Message another agent");
    const SUMMARY: &str = "Send a message to another agent, which works on it by itself.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "Something is the task of another agent.",
        when_not_to_use: "For people: use `reply`. For your workers: use `route`.",
        disambiguation: "It does not wait for an answer.",
        examples: &[r#"{"agent":"release","message":"The changelog of 2.1 is ready in docs/."}"#],
    };
    const EVENTS: &[&str] = &["agent.message"];
    type Input = AgentMessageInput;
    type Output = MessageSent;

    fn call(input: AgentMessageInput) -> Result<MessageSent> {
        check_text("agent", &input.agent)?;
        check_text("message", &input.message)?;
        hand_over("agent.message", &input).map(|Task { task_number }| MessageSent { sent: true, task_number })
    }
}

pub(crate) struct SetHomeChannel;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HomeInput {
    /// Default: this conversation's channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
}

impl Tool for SetHomeChannel {
    const NAME: &str = "set_home_channel";
    const TITLE: Option<&str> = Some("Set the home channel");
    const SUMMARY: &str = "Set the channel in which the agent speaks unasked.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The person wants reports and reminders in a certain channel.",
        when_not_to_use: "For one message: use `send_message_to_another_channel`.",
        disambiguation: "",
        examples: &[r#"{"channel":"ops"}"#],
    };
    const EVENTS: &[&str] = &["agent.home"];
    type Input = HomeInput;
    type Output = Accepted;

    fn call(input: HomeInput) -> Result<Accepted> {
        input.channel.as_deref().map_or(Ok(()), |channel| check_text("channel", channel))?;
        accepted("agent.home", &input)
    }
}

pub(crate) struct Restart;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestartInput {
    /// Why a restart is needed.
    reason: String,
}

impl Tool for Restart {
    const NAME: &str = "restart";
    const TITLE: Option<&str> = Some("Restart the agent");
    const SUMMARY: &str = "Ask the host application to restart this agent.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "The person asks for it, or changed settings need it.",
        when_not_to_use: "",
        disambiguation: "It ends everything that runs, including this conversation.",
        examples: &[r#"{"reason":"The person changed the model in the settings."}"#],
    };
    const EVENTS: &[&str] = &["agent.restart"];
    type Input = RestartInput;
    type Output = Accepted;

    fn call(input: RestartInput) -> Result<Accepted> {
        check_text("reason", &input.reason)?;
        accepted("agent.restart", &input)
    }
}

pub(crate) struct AutonomyComplete;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompleteInput {
    /// What was done and what is left: at least 10 characters.
    summary: String,
}

impl Tool for AutonomyComplete {
    const NAME: &str = "autonomy_complete";
    const TITLE: Option<&str> = Some("End unasked work");
    const SUMMARY: &str = "End a period of unasked work with a summary.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You were given time of your own and have nothing more to do.",
        when_not_to_use: "",
        disambiguation: "",
        examples: &[r#"{"summary":"Sorted the inbox; two mails wait for an answer."}"#],
    };
    const EVENTS: &[&str] = &["agent.complete"];
    type Input = CompleteInput;
    type Output = Accepted;

    fn call(input: CompleteInput) -> Result<Accepted> {
        let chars = input.summary.trim().chars().count();
        if chars < SUMMARY_CHARS {
            return Err(Failure::invalid(format!(
                "`summary` has {chars} characters: say what was done in {SUMMARY_CHARS} or more"
            )));
        }
        accepted("agent.complete", &input)
    }
}

fn accepted(kind: &str, payload: &impl Serialize) -> Result<Accepted> {
    hand_over(kind, payload).map(|Done {}| Accepted { accepted: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_cut_at_a_word() {
        assert_eq!(cut("a short one", 256), "a short one");
        assert_eq!(cut("one two three", 9), "one two");
        assert_eq!(cut("one two three", 7), "one two");
        assert_eq!(cut("one  two", 4), "one");
        assert_eq!(cut(&"x".repeat(300), 256).len(), 256);
        assert_eq!(cut("ääää", 3), "ä");
        assert_eq!(cut("   x", 2), "  ");
    }

    #[test]
    fn texts_without_content_are_refused_before_anything_is_handed_over() {
        let blank = |failure: Result<Accepted>| failure.unwrap_err().message;
        assert_eq!(blank(SetOutcome::call(OutcomeInput { outcome: " ".into() })), "`outcome` is blank");
        assert_eq!(blank(Restart::call(RestartInput { reason: String::new() })), "`reason` is blank");
        assert_eq!(blank(SetHomeChannel::call(HomeInput { channel: Some(" ".into()) })), "`channel` is blank");
        let short = blank(AutonomyComplete::call(CompleteInput { summary: "done".into() }));
        assert_eq!(short, "`summary` has 4 characters: say what was done in 10 or more");
    }
}
